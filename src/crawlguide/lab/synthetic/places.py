"""robots.txt and sitemaps of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from crawlguide.core.errors import UrlError
from crawlguide.core.urls import canonical, parts
from crawlguide.lab.synthetic import layout, traps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.synthetic.linking import World

SITEMAP_PAGES = 200
_SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"


def robots_text(base: str, forbidden: Sequence[str], sitemap: bool) -> str:
    """The rules of a host; `base` is its address without the last slash."""
    rules = "\n".join(f"Disallow: {path}" for path in forbidden) or "Disallow:"
    return f"User-agent: *\n{rules}\n" + (f"\nSitemap: {base}/sitemap.xml\n" if sitemap else "")


def sitemap_text(base: str, path: str, urls: Sequence[str]) -> str | None:
    """`/sitemap.xml`, an index, or one of the parts it names, such as `/sitemap-2.xml`; None if it has no such part."""
    parts = range(1, -(-len(urls) // SITEMAP_PAGES) + 1)
    if path == "/sitemap.xml":
        return _document("sitemapindex", "sitemap", [f"{base}/sitemap-{part}.xml" for part in parts])
    number = path.removeprefix("/sitemap-").removesuffix(".xml")
    if not number.isdecimal() or int(number) not in parts:
        return None
    first = (int(number) - 1) * SITEMAP_PAGES
    return _document("urlset", "url", urls[first : first + SITEMAP_PAGES])


def _document(root: str, element: str, urls: Sequence[str]) -> str:
    entries = "".join(f"<{element}><loc>{escape(url)}</loc></{element}>\n" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_SCHEMA}">\n{entries}</{root}>\n'


# What lies at an address: a page, a copy, an old address, a file, a trap, or nothing.

MIRROR, PRINT, OLD = "mirror.", "/print", "/go/"
FORBIDDEN = (f"/{layout.MEMBERS}/", "/calendar/")  # by the robots.txt of hosts that have rules


class Place(NamedTuple):
    """What lies at an address. Whatever it is, its own host is written as `base` says."""

    kind: str  # page, copy, moved, file, trap, dead
    host: int = -1
    row: int = -1  # of the page, of what a copy shows, of where an old address leads
    path: str = ""
    query: str = ""
    base: str = ""


NOWHERE = Place("dead")


def place_of(world: World, url: str) -> Place:
    """Where a URL leads, in whatever spelling."""
    try:
        address = url if url in world.rows else canonical(url)
    except UrlError:
        return NOWHERE
    scheme, name, port, path, query = parts(address)
    host = world.host_rows.get(name.removeprefix(MIRROR), -1)
    mirror = name.startswith(MIRROR)
    if host < 0 or port or scheme != "http" or (mirror and not world.hosts.mirrored[host]):
        return NOWHERE
    place = Place("dead", host, -1, path, query, f"http://{name}")
    return _page(world, place, mirror) or _old(world, place) or _file(world, place) or _trap(world, place) or place


def file_text(world: World, place: Place) -> str | None:
    """The text of robots.txt or of a sitemap, where the host has them."""
    sitemap = bool(world.hosts.sitemap[place.host])
    rules = FORBIDDEN if world.hosts.robots[place.host] else ()
    if place.path == "/robots.txt" and (rules or sitemap):
        return robots_text(place.base, rules, sitemap)
    if not sitemap or not place.path.startswith("/sitemap"):
        return None
    paths = [path_of(world, row) for row in np.flatnonzero(world.pages.host == place.host).tolist()]
    urls = [place.base + path for path in paths if not path.startswith(FORBIDDEN)]
    return sitemap_text(place.base, place.path, urls)


def path_of(world: World, row: int) -> str:
    return world.pages.url[row].removeprefix(world.base(int(world.pages.host[row])))


def _page(world: World, place: Place, mirror: bool) -> Place | None:
    """A page, its mirror image or its print version."""
    if place.query:
        return None
    printed = place.path.startswith(PRINT + "/")
    row = world.rows.get(world.base(place.host) + (place.path.removeprefix(PRINT) if printed else place.path))
    if row is None or (printed and not world.pages.printed[row]):
        return None
    return place._replace(kind="copy" if mirror or printed else "page", row=row)


def _old(world: World, place: Place) -> Place | None:
    number = place.path.removeprefix(OLD)
    if place.query or not place.path.startswith(OLD) or not number.isdecimal() or len(number) > 9:
        return None
    row = int(number)
    known = row < len(world.rows) and world.pages.moved[row] and world.pages.host[row] == place.host
    return place._replace(kind="moved", row=row) if known and number == str(row) else None


def _file(world: World, place: Place) -> Place | None:
    return place._replace(kind="file") if not place.query and file_text(world, place) is not None else None


def _trap(world: World, place: Place) -> Place | None:
    kind = traps.kind_of(place.path, place.query)
    if (place.host, kind) not in world.trapped:
        return None
    shown = traps.shown(kind, place.path)
    known = shown < 0 or (shown < len(world.rows) and world.pages.host[shown] == place.host)
    return place._replace(kind="trap") if known else None
