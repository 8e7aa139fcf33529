"""Which hosts and pages a synthetic web has, and who links to whom: all that is drawn once, as columns.

The first pages are the home pages, one for each host, then come the hubs, then pages with a topic. Links form a tree on
each host, so that every page can be found; most others are drawn by topic and nearness.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from crawlguide.lab.synthetic import traps
from crawlguide.lab.synthetic.texts import COMMON, FIRST, GENERAL, SECOND, SUB, TOPICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from crawlguide.lab.synthetic.options import Options

    Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]  # links: from a page, to a page

MEMBERS = "members"  # the part of a host that its robots.txt forbids
PRIVATE = 0.1  # of pages on such hosts
TITLE_ON_TOPIC = 0.75  # of the words of a title
HOUR_S = 3_600.0
MONTH_S = 30 * 24 * HOUR_S
NEAR = 0.6  # of links: to the same host
HUB_LINKS = 3  # times as many as a page
PLAIN_LINK, DEAD_LINK, OLD_LINK = 0, 1, 2  # leads to a page, to one that is no longer there, to a page's old address
ANY = -2  # topic


@dataclass(frozen=True)
class World:
    """Hosts, pages and links, and the ways to find them."""

    options: Options
    hosts: Hosts
    pages: Pages
    graph: Graph
    rows: dict[str, int] = field(init=False)  # of pages, by URL
    host_rows: dict[str, int] = field(init=False)  # of hosts, by name
    trapped: frozenset[tuple[int, int]] = field(init=False)  # which host has which kind of trap

    @classmethod
    def drawn(cls, options: Options) -> Self:
        rng = np.random.Generator(np.random.PCG64(options.seed))
        hosts = draw_hosts(options, rng)
        pages = draw_pages(options, hosts, rng)
        return cls(options, hosts, pages, draw_links(options, pages, rng))

    def __post_init__(self) -> None:
        with_trap = np.flatnonzero(self.pages.trap >= 0)
        pairs = zip(self.pages.host[with_trap].tolist(), self.pages.trap[with_trap].tolist(), strict=True)
        object.__setattr__(self, "rows", {url: row for row, url in enumerate(self.pages.url)})
        object.__setattr__(self, "host_rows", {name: row for row, name in enumerate(self.hosts.name)})
        object.__setattr__(self, "trapped", frozenset(pairs))

    def base(self, host: int) -> str:
        """The address of a host, without the last slash."""
        return f"http://{self.hosts.name[host]}"


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


@dataclass(frozen=True)
class Graph:
    """The links of page `row` lie from `first[row]` to `first[row + 1]`; `form` says how the target is written."""

    first: NDArray[np.int64]
    to: NDArray[np.int64]
    form: NDArray[np.int8]

    def of(self, row: int) -> slice:
        return slice(int(self.first[row]), int(self.first[row + 1]))


def draw_hosts(options: Options, rng: np.random.Generator) -> Hosts:
    count = options.hosts
    median = 60.0 * np.exp(rng.normal(1.0, 0.5, count))
    return Hosts(
        name=[_host_name(number) for number in range(count)],
        topic=_topics(options, count, rng),
        by_topic=rng.random(count) < 0.5,
        median_ms=np.where(_some(options.slow, count, rng), 20 * median, median),
        failure_rate=np.where(_some(options.failing, count, rng), options.failure_rate, 0.0),
        robots=_some(options.robots, count, rng),
        sitemap=_some(options.sitemaps, count, rng),
        mirrored=_some(options.mirrors / count, count, rng),
    )


def draw_pages(options: Options, hosts: Hosts, rng: np.random.Generator) -> Pages:
    count = options.pages
    first = options.hosts + options.hubs  # the first page with a topic
    host = _hosts_of_pages(options, rng)
    topic = np.where(rng.random(count) < options.focus, hosts.topic[host], _topics(options, count, rng))
    topic[:first] = -1
    topic[first : first + options.topics] = np.arange(options.topics)  # each has a page
    hub = np.full(count, -1)
    hub[options.hosts : first] = np.arange(options.hubs) % options.topics
    titles = _titles(topic, rng)
    ordinary = np.arange(count) >= first
    changing = rng.random(count) < options.changing
    every_s = np.exp(rng.uniform(np.log(HOUR_S), np.log(MONTH_S), count))
    return Pages(
        host=host,
        topic=topic,
        hub=hub,
        title=_named(titles, hosts, options),
        url=_urls(titles, host, topic, hosts, rng),
        printed=ordinary & (rng.random(count) < options.duplicates),
        moved=ordinary & (rng.random(count) < options.redirects),
        trap=np.where(ordinary & (rng.random(count) < options.traps), rng.integers(len(traps.KINDS), size=count), -1),
        change_rate=np.where(changing, 1 / every_s, 0.0),
    )


def _some(share: float, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Exactly the share, rounded: with few hosts, chance alone would give none or half of them."""
    chosen = np.zeros(count, bool)
    chosen[rng.permutation(count)[: round(share * count)]] = True
    return chosen


def _topics(options: Options, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Some topics are common and some are rare."""
    weight = 1 / np.arange(1, options.topics + 1)
    return rng.choice(options.topics, count, p=weight / weight.sum())


def _host_name(number: int) -> str:
    """Different for each number; some are neighbours under one domain."""
    domain, sub = divmod(number, 2)
    first, second = FIRST[domain % len(FIRST)], SECOND[domain // 12 % len(SECOND)]
    again = domain // (12 * len(SECOND))
    return f"{SUB[(domain + 3 * sub) % 6]}.{first}-{second}{again or ''}.example"


def _hosts_of_pages(options: Options, rng: np.random.Generator) -> NDArray[np.int64]:
    """A few hosts are large and most are small, as on the web; a home page each, and at least one page more."""
    weight = np.arange(1, options.hosts + 1) ** -0.8
    host = rng.choice(options.hosts, options.pages, p=weight / weight.sum())
    host[: options.hosts] = np.arange(options.hosts)
    after = options.hosts + options.hubs
    host[after : after + options.hosts] = np.arange(options.hosts)
    return host


def _titles(topic: NDArray[np.int64], rng: np.random.Generator) -> list[list[str]]:
    """Three words for each page, most of them of its topic."""
    vocabularies = [(*name.split("-"), *its) for name, its in TOPICS.items()]
    on_topic = (rng.random((len(topic), 3)) < TITLE_ON_TOPIC) & (topic >= 0)[:, None]
    words = rng.random((len(topic), 3))
    titles: list[list[str]] = []
    for about, on, draws in zip(topic.tolist(), on_topic.tolist(), words.tolist(), strict=True):
        sources = [vocabularies[about] if is_on else COMMON for is_on in on]
        titles.append([source[int(draw * len(source))] for source, draw in zip(sources, draws, strict=True)])
    return titles


def _named(titles: list[list[str]], hosts: Hosts, options: Options) -> list[str]:
    homes = [f"Welcome to {name}" for name in hosts.name]
    hubs = [f"Links worth a visit, {number + 1}" for number in range(options.hubs)]
    return homes + hubs + [" ".join(title).capitalize() for title in titles[len(homes) + len(hubs) :]]


def _urls(
    titles: list[list[str]], host: NDArray[Any], topic: NDArray[Any], hosts: Hosts, rng: np.random.Generator
) -> list[str]:
    """Half of the hosts sort their pages by topic, and a few of the pages are for members."""
    private = hosts.robots[host] & (rng.random(len(host)) < PRIVATE)
    general = rng.integers(len(GENERAL), size=len(host))
    sections = [name.partition("-")[0] for name in TOPICS]
    urls = [f"http://{name}/" for name in hosts.name]
    for row in range(len(urls), len(host)):
        section = sections[topic[row]] if hosts.by_topic[host[row]] and topic[row] >= 0 else GENERAL[general[row]]
        urls.append(
            f"http://{hosts.name[host[row]]}/{MEMBERS if private[row] else section}/{'-'.join(titles[row])}-{row}"
        )
    return urls


def draw_links(options: Options, pages: Pages, rng: np.random.Generator) -> Graph:
    source, to = map(np.concatenate, zip(*_live_links(options, pages, rng), strict=True))
    kept = (source != to) & (to >= 0)
    source, to = np.divmod(np.unique(source[kept] * options.pages + to[kept]), options.pages)
    form = np.where(pages.moved[to] & (rng.random(len(to)) < 0.5), OLD_LINK, PLAIN_LINK)
    gone = round(len(to) * options.dead / (1 - options.dead))
    source = np.concatenate([source, rng.choice(source, gone)])
    to = np.concatenate([to, rng.integers(_first_with_topic(options), options.pages, gone)])
    form = np.concatenate([form, np.full(gone, DEAD_LINK)]).astype(np.int8)
    order = np.lexsort((rng.random(len(source)), source))  # where a link stands on its page says nothing
    first = np.searchsorted(source[order], np.arange(options.pages + 1))
    return Graph(first, to[order], form[order])


def _first_with_topic(options: Options) -> int:
    """The first page with a topic."""
    return options.hosts + options.hubs


def _live_links(options: Options, pages: Pages, rng: np.random.Generator) -> list[Pairs]:
    return [
        _tree(options, pages, rng),
        _by_topic(options, pages, rng),
        _of_hubs(options, pages, rng),
        _to_hubs(options, rng),
        _homes(options, rng),
        (np.arange(options.pages), pages.host),  # back to the home page
    ]


def _tree(options: Options, pages: Pages, rng: np.random.Generator) -> Pairs:
    """Every page is linked from one before it on its host, of the same topic where homophily wants it."""
    before: dict[tuple[int, int], list[int]] = {}
    alike = rng.random(options.pages) < options.homophily
    draw = rng.random(options.pages)
    parents = pages.host.copy()
    for row in range(options.hosts, options.pages):
        host, topic = int(pages.host[row]), int(pages.topic[row])
        choice = before.get((host, topic if alike[row] else ANY), [])
        if choice:
            parents[row] = choice[int(draw[row] * len(choice))]
        before.setdefault((host, topic), []).append(row)
        before.setdefault((host, ANY), []).append(row)
    return parents[options.hosts :], np.arange(options.hosts, options.pages)


def _by_topic(options: Options, pages: Pages, rng: np.random.Generator) -> Pairs:
    """Most links: to the same topic or to any, on the same host or on any."""
    count = rng.poisson(options.links, options.pages)
    count[: _first_with_topic(options)] = 0
    source = np.repeat(np.arange(options.pages), count)
    host, topic = pages.host[source], pages.topic[source]
    alike, near = (rng.random(len(source)) < share for share in (options.homophily, NEAR))
    content = np.arange(_first_with_topic(options), options.pages)
    both = _groups(pages.host * options.topics + pages.topic, content, options.hosts * options.topics)
    choices = [
        (alike & near, both, host * options.topics + topic),
        (alike & ~near, _groups(pages.topic, content, options.topics), topic),
        (~alike & near, _groups(pages.host, content, options.hosts), host),
        (~alike & ~near, _groups(np.zeros_like(pages.host), content, 1), np.zeros_like(host)),
    ]
    to = np.full(len(source), -1)
    for chosen, groups, key in choices:
        to[chosen] = groups.draw(key[chosen], rng)
    return source, to


def _groups(key: NDArray[np.int64], rows: NDArray[np.int64], count: int) -> Groups:
    order = rows[np.argsort(key[rows], kind="stable")]
    return Groups(order, np.searchsorted(key[order], np.arange(count + 1)))


def _of_hubs(options: Options, pages: Pages, rng: np.random.Generator) -> Pairs:
    hubs = np.repeat(np.arange(options.hosts, _first_with_topic(options)), HUB_LINKS * options.links)
    content = np.arange(_first_with_topic(options), options.pages)
    return hubs, _groups(pages.topic, content, options.topics).draw(pages.hub[hubs], rng)


def _to_hubs(options: Options, rng: np.random.Generator) -> Pairs:
    """A hub is known to pages of all topics."""
    hubs = np.repeat(np.arange(options.hosts, _first_with_topic(options)), max(3, options.pages // 100))
    return rng.integers(_first_with_topic(options), options.pages, len(hubs)), hubs


def _homes(options: Options, rng: np.random.Generator) -> Pairs:
    """Home pages link in a ring, so that every host can be found from every other, and to two more."""
    homes = np.arange(options.hosts)
    others = rng.integers(options.hosts, size=2 * options.hosts)
    return np.tile(homes, 3), np.concatenate([(homes + 1) % options.hosts, others])


@dataclass(frozen=True)
class Groups:
    """Rows by a key, to draw from; the first of a group are drawn more often, as some pages are better known."""

    rows: NDArray[np.int64]
    first: NDArray[np.int64]

    def draw(self, key: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """One row for each key, or -1 where the group is empty."""
        size = self.first[key + 1] - self.first[key]
        place = self.first[key] + (size * rng.random(len(key)) ** 2).astype(np.int64)
        return np.where(size > 0, self.rows[np.minimum(place, len(self.rows) - 1)], -1)
