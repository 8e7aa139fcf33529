"""The synthetic web: what every address gives, and the truth about it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crawlguide.lab.pages import Page, Task
from crawlguide.lab.synthetic import linking, pages
from crawlguide.lab.synthetic.layout import TOPICS
from crawlguide.lab.synthetic.linking import World
from crawlguide.lab.synthetic.options import PREFIX, Options
from crawlguide.lab.synthetic.pages import shown
from crawlguide.lab.synthetic.places import FORBIDDEN, MIRROR, file_text, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

PORTAL, NEAR, FAR = 50, 3, 5
WASTE = {"trap": "trap", "dead": "dead", "copy": "duplicate"}


class SyntheticWeb:
    """A made-up web. The same options give the same web, in every process."""

    def __init__(self, options: Options) -> None:
        self.name = _name(options)
        self.options = options
        self._world = World.made(options)

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
        world, place = self._world, place_of(self._world, url)
        if place.row >= 0 and pages.fails(world, place.row, at):
            return pages.failed(world, url, place)
        if place.kind in {"page", "copy", "trap"}:
            return shown(world, url, place, pages.version(world, place.row, at) if place.row >= 0 else 0)
        elapsed_ms = pages.elapsed_ms(world, url, place.host)
        if place.kind == "moved":
            return Page(url, 301, redirected_to=world.pages.url[place.row], elapsed_ms=elapsed_ms)
        if place.kind == "file":
            body = file_text(world, place) or ""
            return Page(url, 200, text=body, size=len(body), elapsed_ms=elapsed_ms)
        return Page(url, 404, elapsed_ms=elapsed_ms)

    def is_relevant(self, task: Task, url: str) -> bool:
        """Copies and pages of traps are not, whatever they show."""
        place = place_of(self._world, url)
        return place.kind == "page" and self._world.pages.url[place.row] in task.relevant

    def waste(self, url: str) -> str | None:
        place = place_of(self._world, url)
        if place.row >= 0 and pages.fails(self._world, place.row, 0.0):
            return "error"
        return WASTE.get(place.kind)

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        """At the beginning, when what fails is failing."""
        graph, found = self._world.graph, np.zeros(len(self), bool)
        live = graph.form != linking.DEAD
        rows = [place_of(self._world, url).row for url in seeds]
        edge = np.array([row for row in rows if row >= 0], np.int64)
        while len(edge):
            edge = np.unique(edge[~self._failing[edge]])
            found[edge] = True
            following = [graph.to[graph.of(row)][live[graph.of(row)]] for row in edge]
            edge = np.concatenate([np.array([], np.int64), *following])
            edge = edge[~found[edge]]
        return frozenset(self._world.pages.url[row] for row in np.flatnonzero(found))

    def forbidden(self, url: str) -> bool:
        """Does the robots.txt of its host forbid it?"""
        place = place_of(self._world, url)
        return place.host >= 0 and bool(self._world.hosts.robots[place.host]) and place.path.startswith(FORBIDDEN)

    def change_rate(self, url: str) -> float:
        """Changes a second of the page at this URL."""
        place = place_of(self._world, url)
        return float(self._world.pages.change_rate[place.row]) if place.kind in {"page", "copy"} else 0.0

    def same_topic(self) -> float:
        """The share of links between pages with a topic that lead to the same one: what `homophily` came to."""
        graph, topic = self._world.graph, self._world.pages.topic
        source = np.repeat(np.arange(len(self)), np.diff(graph.first))
        between = (topic[source] >= 0) & (topic[graph.to] >= 0) & (graph.form != linking.DEAD)
        return float((topic[source] == topic[graph.to])[between].mean())

    @cached_property
    def _failing(self) -> NDArray[np.bool_]:
        return np.array([pages.fails(self._world, row, 0.0) for row in range(len(self))])

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


def _name(options: Options) -> str:
    """As one would write it: only what differs from the usual."""
    usual = msgspec.structs.asdict(Options())
    said = [f"{key}={value:g}" for key, value in msgspec.structs.asdict(options).items() if value != usual[key]]
    return PREFIX + (":" + ",".join(said) if said else "")
