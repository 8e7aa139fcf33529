"""What lies at an address of a synthetic web: a page, a copy, an old address, a file, a trap, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from crawlguide.core.errors import UrlError
from crawlguide.core.urls import canonical, parts
from crawlguide.lab.synthetic import traps
from crawlguide.lab.synthetic.world import MEMBERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.lab.synthetic.world import World

SITEMAP_PAGES = 200
SITEMAP_SCHEMA = "http://www.sitemaps.org/schemas/sitemap/0.9"
MIRROR, PRINT, OLD = "mirror.", "/print", "/go/"
FORBIDDEN = (f"/{MEMBERS}/", "/calendar/")  # by the robots.txt of hosts that have rules


class Resource(NamedTuple):
    """What lies at an address. Whatever it is, its own host is written as `base` says."""

    kind: str  # page, copy, moved, file, trap, dead
    host: int = -1
    row: int = -1  # of the page, of what a copy shows, of where an old address leads
    path: str = ""
    query: str = ""
    base: str = ""


NOWHERE = Resource("dead")


def resource_at(world: World, url: str) -> Resource:
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
    resource = Resource("dead", host, -1, path, query, f"http://{name}")
    return (
        _page(world, resource, mirror)
        or _old(world, resource)
        or _file(world, resource)
        or _trap(world, resource)
        or resource
    )


def file_text(world: World, resource: Resource) -> str | None:
    """The text of robots.txt or of a sitemap, where the host has them."""
    sitemap = bool(world.hosts.sitemap[resource.host])
    rules = FORBIDDEN if world.hosts.robots[resource.host] else ()
    if resource.path == "/robots.txt" and (rules or sitemap):
        return robots_text(resource.base, rules, sitemap)
    if not sitemap or not resource.path.startswith("/sitemap"):
        return None
    paths = [path_of(world, row) for row in np.flatnonzero(world.pages.host == resource.host).tolist()]
    urls = [resource.base + path for path in paths if not path.startswith(FORBIDDEN)]
    return sitemap_text(resource.base, resource.path, urls)


def path_of(world: World, row: int) -> str:
    return world.pages.url[row].removeprefix(world.base(int(world.pages.host[row])))


def _page(world: World, resource: Resource, mirror: bool) -> Resource | None:
    """A page, its mirror image or its print version."""
    if resource.query:
        return None
    printed = resource.path.startswith(PRINT + "/")
    row = world.rows.get(world.base(resource.host) + (resource.path.removeprefix(PRINT) if printed else resource.path))
    if row is None or (printed and not world.pages.printed[row]):
        return None
    return resource._replace(kind="copy" if mirror or printed else "page", row=row)


def _old(world: World, resource: Resource) -> Resource | None:
    number = resource.path.removeprefix(OLD)
    if resource.query or not resource.path.startswith(OLD) or not number.isdecimal() or len(number) > 9:
        return None
    row = int(number)
    known = row < len(world.rows) and world.pages.moved[row] and world.pages.host[row] == resource.host
    return resource._replace(kind="moved", row=row) if known and number == str(row) else None


def _file(world: World, resource: Resource) -> Resource | None:
    return resource._replace(kind="file") if not resource.query and file_text(world, resource) is not None else None


def _trap(world: World, resource: Resource) -> Resource | None:
    kind = traps.kind_of(resource.path, resource.query)
    if (resource.host, kind) not in world.trapped:
        return None
    repeated = traps.repeated_page(kind, resource.path)
    known = repeated < 0 or (repeated < len(world.rows) and world.pages.host[repeated] == resource.host)
    return resource._replace(kind="trap") if known else None


def robots_text(base: str, forbidden: Sequence[str], sitemap: bool) -> str:
    """The rules of a host; `base` is its address without the last slash."""
    rules = "\n".join(f"Disallow: {path}" for path in forbidden) or "Disallow:"
    return f"User-agent: *\n{rules}\n" + (f"\nSitemap: {base}/sitemap.xml\n" if sitemap else "")


def sitemap_text(base: str, path: str, urls: Sequence[str]) -> str | None:
    """`/sitemap.xml`, an index, or one of the parts it names, such as `/sitemap-2.xml`; None if it has no such part."""
    parts = range(1, -(-len(urls) // SITEMAP_PAGES) + 1)
    if path == "/sitemap.xml":
        return _sitemap_document("sitemapindex", "sitemap", [f"{base}/sitemap-{part}.xml" for part in parts])
    number = path.removeprefix("/sitemap-").removesuffix(".xml")
    if not number.isdecimal() or int(number) not in parts:
        return None
    first = (int(number) - 1) * SITEMAP_PAGES
    return _sitemap_document("urlset", "url", urls[first : first + SITEMAP_PAGES])


def _sitemap_document(root: str, element: str, urls: Sequence[str]) -> str:
    entries = "".join(f"<{element}><loc>{escape(url)}</loc></{element}>\n" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{SITEMAP_SCHEMA}">\n{entries}</{root}>\n'
