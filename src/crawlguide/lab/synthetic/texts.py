"""What the synthetic web says: words for each topic, words that everybody uses, and sentences made of them.

A topic is named after its two commonest words, so that a judge who knows only the name finds them on its pages. What is
drawn here and for single pages belongs to a name, not to the state of a generator: it is the same in every process.
"""

from __future__ import annotations

import random

import xxhash

ON_TOPIC, NAME, OTHER = 0.30, 0.25, 0.04  # of words; of the topic's words those of its name; of another topic
SENTENCES = (10, 24)
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
_NAMES = [tuple(name.split("-")) for name in TOPICS]
_WORDS = list(TOPICS.values())


def page_text(topic: int, *names: object) -> str:
    """Some sentences about a topic, or about nothing in particular where it is -1."""
    rng = generator("text", *names)
    other = rng.randrange(len(_WORDS))
    return " ".join(_sentence(topic, other, rng) for _ in range(rng.randint(*SENTENCES)))


def _sentence(topic: int, other: int, rng: random.Random) -> str:
    words = [_word(topic, other, rng) for _ in range(rng.randint(6, 14))]
    return " ".join(words).capitalize() + "."


def _word(topic: int, other: int, rng: random.Random) -> str:
    share = rng.random()
    if topic >= 0 and share < ON_TOPIC:
        return rng.choice(_NAMES[topic] if share < ON_TOPIC * NAME else _WORDS[topic])
    return rng.choice(_WORDS[other] if share > 1 - OTHER else COMMON)


def draw(*names: object) -> float:
    """A number in [0, 1) that belongs to these names."""
    return float(xxhash.xxh3_64_intdigest("/".join(map(str, names)).encode()) / 2**64)


def generator(*names: object) -> random.Random:
    """A generator that belongs to these names. Made-up pages need no secrets."""
    return random.Random("/".join(map(str, names)))  # noqa: S311
