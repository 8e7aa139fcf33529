"""Chance that is the same in every process: numbers drawn from a name instead of from a state."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from crawlguide.lab.synthetic.options import Options


def unit(*names: object) -> float:
    """A number in [0, 1) that belongs to these names."""
    return float(xxhash.xxh3_64_intdigest("/".join(map(str, names)).encode()) / 2**64)


def stream(*names: object) -> random.Random:
    """A generator that belongs to these names. Made-up pages need no secrets."""
    return random.Random("/".join(map(str, names)))  # noqa: S311


# The vocabulary of the synthetic web: words for each topic, and words that everybody uses.
#
# A topic is named after its two commonest words, so that a judge who knows only the name finds them on its pages.

_TOPICS = {
    "garden-plants": """soil seed compost pruning mulch perennial shrub greenhouse seedling bloom hedge orchard lawn
        rose tulip fern herb trellis watering fertiliser pollen rootstock harvest weed pot cutting bulb climber""",
    "sailing-boats": """keel rudder mast rigging harbour anchor tide hull spinnaker regatta skipper jib helm mooring
        windward leeward buoy yacht dinghy berth gale chart compass halyard deck crew knot marina""",
    "databases-sql": """query index transaction join schema table replication storage cursor commit rollback shard
        planner isolation column trigger view backup migration lock vacuum snapshot constraint primary tuple""",
    "astronomy-stars": """telescope nebula galaxy orbit planet comet eclipse spectrum redshift supernova constellation
        parallax lens observatory meteor asteroid photon quasar pulsar lunar solar equinox magnitude crater""",
    "baking-bread": """dough yeast flour oven crust knead proof loaf sourdough starter rye wheat gluten crumb baguette
        pastry butter rolling brioche grain bran hydration scoring banneton semolina salt malt""",
    "chess-openings": """pawn knight bishop rook queen castling gambit endgame checkmate fork pin tempo defence
        variation sacrifice tournament rating grandmaster blunder stalemate fianchetto board clock zugzwang""",
    "railways-trains": """locomotive carriage signal track station timetable freight gauge tunnel viaduct platform
        conductor junction sleeper bogie tram diesel electrification commuter shunting ballast terminus ticket""",
    "birds-migration": """feather nest plumage songbird flock wing warbler heron swallow owl hawk breeding wetland
        habitat ringing binoculars flyway moult egg fledgling perch estuary reed gull finch crane""",
    "ceramics-pottery": """clay kiln glaze wheel firing porcelain stoneware slip bisque vase throwing pigment oxide raku
        terracotta handle rim mould celadon thumb studio shard burnish""",
    "cycling-bicycles": """pedal chain gear saddle handlebar brake spoke tyre peloton climb sprint derailleur frame
        crank helmet gravel touring commute cadence puncture pannier hub descent stage rider""",
    "opera-singing": """soprano tenor aria libretto orchestra overture baritone chorus conductor stage duet rehearsal
        score premiere vibrato contralto recitative composer encore breath phrasing curtain score pit""",
    "weather-forecast": """rain cloud pressure front humidity thunder snowfall drought barometer isobar gust frost
        monsoon radar satellite cyclone drizzle temperature breeze fog hail visibility jetstream""",
}
TOPICS = {name: tuple(words.split()) for name, words in _TOPICS.items()}
_COMMON = """time year people way day thing world life hand part child place week case point company number group
    problem fact work question night area story result change morning reason research moment force kind history party
    word house service friend father power hour game line end member city community name minute idea body
    information back parent face level office door health person art war reader book letter page report list
    example guide note answer detail first new good long great little own other old right big high different
    small large next early young important few public bad same able simple quiet open plain useful common
    careful usual later often always never rather quite several many most some each every such between under
    over about after before during without within through"""
COMMON = tuple(_COMMON.split())
GENERAL = ("articles", "notes", "wiki", "posts", "pages", "library")
FIRST = ("harbour", "maple", "north", "silver", "open", "river", "stone", "daily", "grand", "plain", "cedar", "blue")
SECOND = ("review", "archive", "journal", "society", "works", "house", "forum", "press", "circle", "notes", "guild")
SUB = ("www", "docs", "blog", "news", "wiki", "shop")

# Which pages there are: on which host, about which topic, called what. Columns; a page is a row.
#
# The first rows are the home pages, one for each host, then come the hubs, then pages with a topic.

MEMBERS = "members"  # the part of a host that its robots.txt forbids
PRIVATE = 0.1  # of pages on such hosts
TITLE_ON_TOPIC = 0.75  # of the words of a title
HOUR_S = 3_600.0
MONTH_S = 30 * 24 * HOUR_S


@dataclass(frozen=True)
class Hosts:
    """One row for each host."""

    name: list[str]
    topic: NDArray[np.int64]  # its main one
    by_topic: NDArray[np.bool_]  # its paths say the topic
    median_ms: NDArray[np.float64]
    failure_rate: NDArray[np.float64]
    robots: NDArray[np.bool_]
    sitemap: NDArray[np.bool_]
    mirrored: NDArray[np.bool_]


@dataclass(frozen=True)
class Pages:
    """One row for each page."""

    host: NDArray[np.int64]
    topic: NDArray[np.int64]  # -1: none
    hub: NDArray[np.int64]  # the topic that a hub leads to, else -1
    title: list[str]
    url: list[str]
    printed: NDArray[np.bool_]  # has a print version
    moved: NDArray[np.bool_]  # has an old address
    trap: NDArray[np.int64]  # the kind of trap it leads into, else -1
    change_rate: NDArray[np.float64]  # changes a second


def hosts(options: Options, chance: np.random.Generator) -> Hosts:
    count = options.hosts
    median = 60.0 * np.exp(chance.normal(1.0, 0.5, count))
    return Hosts(
        name=[_host_name(number) for number in range(count)],
        topic=_topics(options, count, chance),
        by_topic=chance.random(count) < 0.5,
        median_ms=np.where(_some(options.slow, count, chance), 20 * median, median),
        failure_rate=np.where(_some(options.failing, count, chance), options.failure_rate, 0.0),
        robots=_some(options.robots, count, chance),
        sitemap=_some(options.sitemaps, count, chance),
        mirrored=_some(options.mirrors / count, count, chance),
    )


def pages(options: Options, its: Hosts, trap_kinds: int, chance: np.random.Generator) -> Pages:
    count = options.pages
    first = options.hosts + options.hubs  # the first page with a topic
    host = _hosts_of_pages(options, chance)
    topic = np.where(chance.random(count) < options.focus, its.topic[host], _topics(options, count, chance))
    topic[:first] = -1
    topic[first : first + options.topics] = np.arange(options.topics)  # each has a page
    hub = np.full(count, -1)
    hub[options.hosts : first] = np.arange(options.hubs) % options.topics
    titles = _titles(topic, chance)
    ordinary = np.arange(count) >= first
    changing = chance.random(count) < options.changing
    every_s = np.exp(chance.uniform(np.log(HOUR_S), np.log(MONTH_S), count))
    return Pages(
        host=host,
        topic=topic,
        hub=hub,
        title=_named(titles, its, options),
        url=_urls(titles, host, topic, its, chance),
        printed=ordinary & (chance.random(count) < options.duplicates),
        moved=ordinary & (chance.random(count) < options.redirects),
        trap=np.where(ordinary & (chance.random(count) < options.traps), chance.integers(trap_kinds, size=count), -1),
        change_rate=np.where(changing, 1 / every_s, 0.0),
    )


def _some(share: float, count: int, chance: np.random.Generator) -> NDArray[np.bool_]:
    """Exactly the share, rounded: with few hosts, chance alone would give none or half of them."""
    chosen = np.zeros(count, bool)
    chosen[chance.permutation(count)[: round(share * count)]] = True
    return chosen


def _topics(options: Options, count: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """Some topics are common and some are rare."""
    weight = 1 / np.arange(1, options.topics + 1)
    return chance.choice(options.topics, count, p=weight / weight.sum())


def _host_name(number: int) -> str:
    """Different for each number; some are neighbours under one domain."""
    domain, sub = divmod(number, 2)
    first, second = FIRST[domain % len(FIRST)], SECOND[domain // 12 % len(SECOND)]
    again = domain // (12 * len(SECOND))
    return f"{SUB[(domain + 3 * sub) % 6]}.{first}-{second}{again or ''}.example"


def _hosts_of_pages(options: Options, chance: np.random.Generator) -> NDArray[np.int64]:
    """A few hosts are large and most are small, as on the web; a home page each, and at least one page more."""
    weight = np.arange(1, options.hosts + 1) ** -0.8
    host = chance.choice(options.hosts, options.pages, p=weight / weight.sum())
    host[: options.hosts] = np.arange(options.hosts)
    after = options.hosts + options.hubs
    host[after : after + options.hosts] = np.arange(options.hosts)
    return host


def _titles(topic: NDArray[np.int64], chance: np.random.Generator) -> list[list[str]]:
    """Three words for each page, most of them of its topic."""
    vocabularies = [(*name.split("-"), *its) for name, its in TOPICS.items()]
    on_topic = (chance.random((len(topic), 3)) < TITLE_ON_TOPIC) & (topic >= 0)[:, None]
    drawn = chance.random((len(topic), 3))
    titles: list[list[str]] = []
    for about, on, draws in zip(topic.tolist(), on_topic.tolist(), drawn.tolist(), strict=True):
        sources = [vocabularies[about] if is_on else COMMON for is_on in on]
        titles.append([source[int(draw * len(source))] for source, draw in zip(sources, draws, strict=True)])
    return titles


def _named(titles: list[list[str]], its: Hosts, options: Options) -> list[str]:
    homes = [f"Welcome to {name}" for name in its.name]
    hubs = [f"Links worth a visit, {number + 1}" for number in range(options.hubs)]
    return homes + hubs + [" ".join(title).capitalize() for title in titles[len(homes) + len(hubs) :]]


def _urls(
    titles: list[list[str]], host: NDArray[Any], topic: NDArray[Any], its: Hosts, chance: np.random.Generator
) -> list[str]:
    """Half of the hosts sort their pages by topic, and a few of the pages are for members."""
    private = its.robots[host] & (chance.random(len(host)) < PRIVATE)
    general = chance.integers(len(GENERAL), size=len(host))
    sections = [name.partition("-")[0] for name in TOPICS]
    found = [f"http://{name}/" for name in its.name]
    for row in range(len(found), len(host)):
        section = sections[topic[row]] if its.by_topic[host[row]] and topic[row] >= 0 else GENERAL[general[row]]
        found.append(
            f"http://{its.name[host[row]]}/{MEMBERS if private[row] else section}/{'-'.join(titles[row])}-{row}"
        )
    return found
