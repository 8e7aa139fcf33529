"""A page as a fetch shows it: its title, its text, its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xxhash

from crawlguide.lab.pages import Link, Page
from crawlguide.lab.synthetic import linking, traps, writing
from crawlguide.lab.synthetic.chance import unit
from crawlguide.lab.synthetic.places import MIRROR, OLD, PRINT, path_of
from crawlguide.lab.synthetic.weather import elapsed_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.lab.synthetic.places import Place
    from crawlguide.lab.synthetic.world import World

SAYS_NOTHING = 0.15  # of anchors


def shown(world: World, url: str, place: Place, version: int) -> Page:
    """A page, a copy of one, or a page of a trap."""
    trap = traps.kind_of(place.path, place.query) if place.kind == "trap" else -1
    row = traps.shown(trap, place.path) if trap >= 0 else place.row
    topic = world.pages.topic[row] if row >= 0 else world.hosts.topic[place.host]
    title = world.pages.title[row] if row >= 0 else f"{traps.KINDS[trap]} of {world.hosts.name[place.host]}"
    text = writing.text(int(topic), world.options.seed, row if row >= 0 else url, version)
    found = _ways(place, trap) if trap >= 0 else _links(world, place)
    links = tuple(Link(to, anchor, position) for position, (to, anchor) in enumerate(found))
    return Page(
        url,
        200,
        title,
        text,
        size=len(text) + 80 * len(links) + 500,
        language="en",
        links=links,
        elapsed_ms=elapsed_ms(world, url, place.host),
        content_hash=xxhash.xxh3_64_hexdigest(f"{title}\n{text}".encode()),
    )


def _links(world: World, place: Place) -> Iterator[tuple[str, str]]:
    """The links of a page with their anchors: those that were drawn, then to its copies and into traps."""
    row, its = place.row, world.graph.of(place.row)
    for to, form in zip(world.graph.to[its].tolist(), world.graph.form[its].tolist(), strict=True):
        yield _address(world, to, form, place), _anchor(world, row, to)
    if world.pages.printed[row] and not place.path.startswith(PRINT + "/"):
        yield f"{place.base}{PRINT}{place.path}", "print version"
    if world.pages.trap[row] >= 0:
        way = traps.entrance(int(world.pages.trap[row]), row)
        yield place.base + way.path, way.anchor
    if row < world.options.hosts and world.hosts.mirrored[row] and place.kind == "page":
        yield f"http://{MIRROR}{world.hosts.name[row]}/", "mirror of this site"


def _ways(place: Place, trap: int) -> Iterator[tuple[str, str]]:
    """Further into the trap, and one way out."""
    for way in [*traps.ways(trap, place.path, place.query), traps.Way("/", "home")]:
        yield place.base + way.path, way.anchor


def _address(world: World, to: int, form: int, place: Place) -> str:
    """How a page writes the address of another: on a mirror, its own pages are mirrored ones."""
    host = int(world.pages.host[to])
    base = place.base if host == place.host else world.base(host)
    if form == linking.OLD:
        return f"{base}{OLD}{to}"
    return base + ("/archive" if form == linking.DEAD else "") + path_of(world, to)


def _anchor(world: World, row: int, to: int) -> str:
    if to < world.options.hosts:
        return "home" if to == world.pages.host[row] else world.hosts.name[to]
    return "read more" if unit(world.options.seed, "anchor", row, to) < SAYS_NOTHING else world.pages.title[to]
