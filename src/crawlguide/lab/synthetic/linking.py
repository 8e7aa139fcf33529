"""Who links to whom: a tree on each host, so that every page can be found, and links drawn by topic and nearness."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from crawlguide.lab.synthetic import layout, traps

if TYPE_CHECKING:
    from crawlguide.lab.synthetic.options import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from crawlguide.lab.synthetic.layout import Pages
    from crawlguide.lab.synthetic.options import Options

    Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

NEAR = 0.6  # of links: to the same host
HUB_LINKS = 3  # times as many as a page
PLAIN, DEAD, OLD = 0, 1, 2  # as it is; no longer there; by its old address
ANY = -2  # topic


@dataclass(frozen=True)
class Graph:
    """The links of page `row` lie from `first[row]` to `first[row + 1]`; `form` says how the target is written."""

    first: NDArray[np.int64]
    to: NDArray[np.int64]
    form: NDArray[np.int8]

    def of(self, row: int) -> slice:
        return slice(int(self.first[row]), int(self.first[row + 1]))


@dataclass(frozen=True)
class Groups:
    """Rows by a key, to draw from; the first of a group are drawn more often, as some pages are better known."""

    rows: NDArray[np.int64]
    first: NDArray[np.int64]

    def drawn(self, key: NDArray[np.int64], chance: np.random.Generator) -> NDArray[np.int64]:
        """One row for each key, or -1 where the group is empty."""
        size = self.first[key + 1] - self.first[key]
        place = self.first[key] + (size * chance.random(len(key)) ** 2).astype(np.int64)
        return np.where(size > 0, self.rows[np.minimum(place, len(self.rows) - 1)], -1)


def linked(options: Options, pages: Pages, chance: np.random.Generator) -> Graph:
    source, to = map(np.concatenate, zip(*_alive(options, pages, chance), strict=True))
    kept = (source != to) & (to >= 0)
    source, to = np.divmod(np.unique(source[kept] * options.pages + to[kept]), options.pages)
    form = np.where(pages.moved[to] & (chance.random(len(to)) < 0.5), OLD, PLAIN)
    gone = round(len(to) * options.dead / (1 - options.dead))
    source = np.concatenate([source, chance.choice(source, gone)])
    to = np.concatenate([to, chance.integers(_first(options), options.pages, gone)])
    form = np.concatenate([form, np.full(gone, DEAD)]).astype(np.int8)
    order = np.lexsort((chance.random(len(source)), source))  # where a link stands on its page says nothing
    first = np.searchsorted(source[order], np.arange(options.pages + 1))
    return Graph(first, to[order], form[order])


def _first(options: Options) -> int:
    """The first page with a topic."""
    return options.hosts + options.hubs


def _alive(options: Options, pages: Pages, chance: np.random.Generator) -> list[Pairs]:
    return [
        _tree(options, pages, chance),
        _by_topic(options, pages, chance),
        _of_hubs(options, pages, chance),
        _to_hubs(options, chance),
        _homes(options, chance),
        (np.arange(options.pages), pages.host),  # back to the home page
    ]


def _tree(options: Options, pages: Pages, chance: np.random.Generator) -> Pairs:
    """Every page is linked from one before it on its host, of the same topic where homophily wants it."""
    before: dict[tuple[int, int], list[int]] = {}
    alike = chance.random(options.pages) < options.homophily
    draw = chance.random(options.pages)
    parents = pages.host.copy()
    for row in range(options.hosts, options.pages):
        host, topic = int(pages.host[row]), int(pages.topic[row])
        choice = before.get((host, topic if alike[row] else ANY), [])
        if choice:
            parents[row] = choice[int(draw[row] * len(choice))]
        before.setdefault((host, topic), []).append(row)
        before.setdefault((host, ANY), []).append(row)
    return parents[options.hosts :], np.arange(options.hosts, options.pages)


def _by_topic(options: Options, pages: Pages, chance: np.random.Generator) -> Pairs:
    """Most links: to the same topic or to any, on the same host or on any."""
    count = chance.poisson(options.links, options.pages)
    count[: _first(options)] = 0
    source = np.repeat(np.arange(options.pages), count)
    host, topic = pages.host[source], pages.topic[source]
    alike, near = (chance.random(len(source)) < share for share in (options.homophily, NEAR))
    content = np.arange(_first(options), options.pages)
    both = _groups(pages.host * options.topics + pages.topic, content, options.hosts * options.topics)
    choices = [
        (alike & near, both, host * options.topics + topic),
        (alike & ~near, _groups(pages.topic, content, options.topics), topic),
        (~alike & near, _groups(pages.host, content, options.hosts), host),
        (~alike & ~near, _groups(np.zeros_like(pages.host), content, 1), np.zeros_like(host)),
    ]
    to = np.full(len(source), -1)
    for chosen, groups, key in choices:
        to[chosen] = groups.drawn(key[chosen], chance)
    return source, to


def _groups(key: NDArray[np.int64], rows: NDArray[np.int64], count: int) -> Groups:
    order = rows[np.argsort(key[rows], kind="stable")]
    return Groups(order, np.searchsorted(key[order], np.arange(count + 1)))


def _of_hubs(options: Options, pages: Pages, chance: np.random.Generator) -> Pairs:
    hubs = np.repeat(np.arange(options.hosts, _first(options)), HUB_LINKS * options.links)
    content = np.arange(_first(options), options.pages)
    return hubs, _groups(pages.topic, content, options.topics).drawn(pages.hub[hubs], chance)


def _to_hubs(options: Options, chance: np.random.Generator) -> Pairs:
    """A hub is known to pages of all topics."""
    hubs = np.repeat(np.arange(options.hosts, _first(options)), max(3, options.pages // 100))
    return chance.integers(_first(options), options.pages, len(hubs)), hubs


def _homes(options: Options, chance: np.random.Generator) -> Pairs:
    """Home pages link in a ring, so that every host can be found from every other, and to two more."""
    homes = np.arange(options.hosts)
    others = chance.integers(options.hosts, size=2 * options.hosts)
    return np.tile(homes, 3), np.concatenate([(homes + 1) % options.hosts, others])


# Everything that is drawn once: hosts, pages and links, and the ways to find them.


@dataclass(frozen=True)
class World:
    options: Options
    hosts: layout.Hosts
    pages: layout.Pages
    graph: Graph
    rows: dict[str, int] = field(init=False)  # of pages, by URL
    host_rows: dict[str, int] = field(init=False)  # of hosts, by name
    trapped: frozenset[tuple[int, int]] = field(init=False)  # which host has which kind of trap

    @classmethod
    def made(cls, options: Options) -> Self:
        chance = np.random.Generator(np.random.PCG64(options.seed))
        hosts = layout.hosts(options, chance)
        pages = layout.pages(options, hosts, len(traps.KINDS), chance)
        return cls(options, hosts, pages, linked(options, pages, chance))

    def __post_init__(self) -> None:
        with_trap = np.flatnonzero(self.pages.trap >= 0)
        pairs = zip(self.pages.host[with_trap].tolist(), self.pages.trap[with_trap].tolist(), strict=True)
        object.__setattr__(self, "rows", {url: row for row, url in enumerate(self.pages.url)})
        object.__setattr__(self, "host_rows", {name: row for row, name in enumerate(self.hosts.name)})
        object.__setattr__(self, "trapped", frozenset(pairs))

    def base(self, host: int) -> str:
        """The address of a host, without the last slash."""
        return f"http://{self.hosts.name[host]}"
