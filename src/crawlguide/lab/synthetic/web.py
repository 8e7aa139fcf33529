"""The synthetic web: what a fetch of every address gives, and the truth about it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import xxhash

from crawlguide.lab.pages import Link, Page, Task
from crawlguide.lab.synthetic import traps
from crawlguide.lab.synthetic.addresses import FORBIDDEN, MIRROR, OLD, PRINT, file_text, path_of, resource_at
from crawlguide.lab.synthetic.options import PREFIX, Options
from crawlguide.lab.synthetic.texts import TOPICS, draw, generator, page_text
from crawlguide.lab.synthetic.world import DEAD_LINK, OLD_LINK, World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from crawlguide.lab.synthetic.addresses import Resource

PORTAL, NEAR, FAR = 50, 3, 5  # seeds of each kind
WASTE = {"trap": "trap", "dead": "dead", "copy": "duplicate"}
TIMEOUT_MS = 10_000.0
FAILURE_LASTS_S = 600.0
NO_HOST_MS = 100.0
SAYS_NOTHING = 0.15  # of anchors: "read more"


class SyntheticWeb:
    """A made-up web. The same options give the same web, in every process."""

    def __init__(self, options: Options) -> None:
        self.name = _name(options)
        self.options = options
        self._world = World.drawn(options)

    def __len__(self) -> int:
        return self.options.pages

    @property
    def hosts(self) -> list[str]:
        """The names of all hosts, mirrors last."""
        names = self._world.hosts.name
        return names + [MIRROR + names[host] for host in np.flatnonzero(self._world.hosts.mirrored)]

    def tasks(self) -> Sequence[Task]:
        return [self._task(topic, name) for topic, name in enumerate(list(TOPICS)[: self.options.topics])]

    def fetch(self, url: str, at: float = 0.0) -> Page:
        """What is there `at` seconds after the beginning: pages change, and trouble comes and goes."""
        world, resource = self._world, resource_at(self._world, url)
        if resource.row >= 0 and fails(world, resource.row, at):
            return failed_page(world, url, resource)
        if resource.kind in {"page", "copy", "trap"}:
            return rendered(world, url, resource, version_at(world, resource.row, at) if resource.row >= 0 else 0)
        took_ms = elapsed_ms(world, url, resource.host)
        if resource.kind == "moved":
            return Page(url, 301, redirected_to=world.pages.url[resource.row], elapsed_ms=took_ms)
        if resource.kind == "file":
            body = file_text(world, resource) or ""
            return Page(url, 200, text=body, size=len(body), elapsed_ms=took_ms)
        return Page(url, 404, elapsed_ms=took_ms)

    def is_relevant(self, task: Task, url: str) -> bool:
        """Copies and pages of traps are not, whatever they show."""
        resource = resource_at(self._world, url)
        return resource.kind == "page" and self._world.pages.url[resource.row] in task.relevant

    def waste(self, url: str) -> str | None:
        resource = resource_at(self._world, url)
        if resource.row >= 0 and fails(self._world, resource.row, 0.0):
            return "error"
        return WASTE.get(resource.kind)

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        """At the beginning, when what fails is failing."""
        graph, reached = self._world.graph, np.zeros(len(self), bool)
        live = graph.form != DEAD_LINK
        rows = [resource_at(self._world, url).row for url in seeds]
        frontier = np.array([row for row in rows if row >= 0], np.int64)
        while len(frontier):
            frontier = np.unique(frontier[~self._failing[frontier]])
            reached[frontier] = True
            following = [graph.to[graph.of(row)][live[graph.of(row)]] for row in frontier]
            frontier = np.concatenate([np.array([], np.int64), *following])
            frontier = frontier[~reached[frontier]]
        return frozenset(self._world.pages.url[row] for row in np.flatnonzero(reached))

    def forbidden(self, url: str) -> bool:
        """Does the robots.txt of its host forbid it?"""
        resource = resource_at(self._world, url)
        has_rules = resource.host >= 0 and bool(self._world.hosts.robots[resource.host])
        return has_rules and resource.path.startswith(FORBIDDEN)

    def change_rate(self, url: str) -> float:
        """Changes a second of the page at this URL."""
        resource = resource_at(self._world, url)
        return float(self._world.pages.change_rate[resource.row]) if resource.kind in {"page", "copy"} else 0.0

    @cached_property
    def _failing(self) -> NDArray[np.bool_]:
        return np.array([fails(self._world, row, 0.0) for row in range(len(self))])

    def _task(self, topic: int, name: str) -> Task:
        world = self._world
        rows = np.flatnonzero((world.pages.topic == topic) & ~self._failing)  # what nobody can get is no target
        known = np.bincount(world.graph.to, minlength=len(self))[rows]
        others = np.flatnonzero(world.hosts.topic != topic)[:FAR]
        starts = {
            "portal": np.arange(min(PORTAL, self.options.hosts)),
            "near": rows[np.argsort(-known, kind="stable")[:NEAR]],
            "far": others,
        }
        seeds = {kind: tuple(world.pages.url[row] for row in its) for kind, its in starts.items() if len(its)}
        return Task(name, seeds, frozenset(world.pages.url[row] for row in rows))


def rendered(world: World, url: str, resource: Resource, version: int) -> Page:
    """A page, a copy of one, or a page of a trap."""
    trap = traps.kind_of(resource.path, resource.query) if resource.kind == "trap" else -1
    row = traps.repeated_page(trap, resource.path) if trap >= 0 else resource.row
    topic = world.pages.topic[row] if row >= 0 else world.hosts.topic[resource.host]
    title = world.pages.title[row] if row >= 0 else f"{traps.KINDS[trap]} of {world.hosts.name[resource.host]}"
    text = page_text(int(topic), world.options.seed, row if row >= 0 else url, version)
    pairs = _trap_links(resource, trap) if trap >= 0 else _page_links(world, resource)
    links = tuple(Link(to, anchor, position) for position, (to, anchor) in enumerate(pairs))
    return Page(
        url,
        200,
        title,
        text,
        size=len(text) + 80 * len(links) + 500,
        language="en",
        links=links,
        elapsed_ms=elapsed_ms(world, url, resource.host),
        content_hash=xxhash.xxh3_64_hexdigest(f"{title}\n{text}".encode()),
    )


def _page_links(world: World, resource: Resource) -> Iterator[tuple[str, str]]:
    """The links of a page with their anchors: those that were drawn, then to its copies and into traps."""
    row, its = resource.row, world.graph.of(resource.row)
    for to, form in zip(world.graph.to[its].tolist(), world.graph.form[its].tolist(), strict=True):
        yield _link_url(world, to, form, resource), _anchor(world, row, to)
    if world.pages.printed[row] and not resource.path.startswith(PRINT + "/"):
        yield f"{resource.base}{PRINT}{resource.path}", "print version"
    if world.pages.trap[row] >= 0:
        link = traps.entrance(int(world.pages.trap[row]), row)
        yield resource.base + link.path, link.anchor
    if row < world.options.hosts and world.hosts.mirrored[row] and resource.kind == "page":
        yield f"http://{MIRROR}{world.hosts.name[row]}/", "mirror of this site"


def _trap_links(resource: Resource, trap: int) -> Iterator[tuple[str, str]]:
    """Further into the trap, and one way out."""
    for link in [*traps.links(trap, resource.path, resource.query), traps.TrapLink("/", "home")]:
        yield resource.base + link.path, link.anchor


def _link_url(world: World, to: int, form: int, resource: Resource) -> str:
    """How a page writes the address of another: on a mirror, its own pages are mirrored ones."""
    host = int(world.pages.host[to])
    base = resource.base if host == resource.host else world.base(host)
    if form == OLD_LINK:
        return f"{base}{OLD}{to}"
    return base + ("/archive" if form == DEAD_LINK else "") + path_of(world, to)


def _anchor(world: World, row: int, to: int) -> str:
    if to < world.options.hosts:
        return "home" if to == world.pages.host[row] else world.hosts.name[to]
    return "read more" if draw(world.options.seed, "anchor", row, to) < SAYS_NOTHING else world.pages.title[to]


def elapsed_ms(world: World, url: str, host: int) -> float:
    """Around the host's median, the same each time."""
    median = float(world.hosts.median_ms[host]) if host >= 0 else NO_HOST_MS
    return round(median * (0.5 + draw(world.options.seed, "elapsed", url)), 1)


def fails(world: World, row: int, at: float) -> bool:
    """Does the page fail now? Its copies fail with it; home pages never do, as all else is reached from them."""
    if row < world.options.hosts:
        return False
    rate = float(world.hosts.failure_rate[world.pages.host[row]])
    return draw(world.options.seed, "fails", row, int(at // FAILURE_LASTS_S)) < rate


def failed_page(world: World, url: str, resource: Resource) -> Page:
    how = draw(world.options.seed, "how", resource.row)
    if how < 0.3:
        return Page(url, 0, error="timeout", elapsed_ms=TIMEOUT_MS)
    return Page(url, 500 if how < 0.6 else 503, elapsed_ms=elapsed_ms(world, url, resource.host))


def version_at(world: World, row: int, at: float) -> int:
    """How often the page has changed until then: a Poisson process of its rate."""
    rate, count = float(world.pages.change_rate[row]), 0
    if not rate:
        return 0
    rng = generator(world.options.seed, "changes", row)
    when = rng.expovariate(rate)
    while when <= at:
        count, when = count + 1, when + rng.expovariate(rate)
    return count


def _name(options: Options) -> str:
    """As one would write it: only what differs from the usual."""
    usual = msgspec.structs.asdict(Options())
    changed = [f"{key}={value:g}" for key, value in msgspec.structs.asdict(options).items() if value != usual[key]]
    return PREFIX + (":" + ",".join(changed) if changed else "")
