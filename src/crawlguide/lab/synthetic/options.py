"""What can be said about a synthetic web, in Python or as `synthetic:pages=5000,hosts=40`."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from crawlguide.core.errors import ConfigError
from crawlguide.lab.synthetic.texts import TOPICS

PREFIX = "synthetic"
Share = Annotated[float, Meta(ge=0, le=1)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A web of `pages` pages. Shares are of what the comment names, from 0 to 1."""

    seed: Annotated[int, Meta(ge=0)] = 0
    pages: Annotated[int, Meta(ge=20, le=2_000_000)] = 2_000  # home pages and hubs are among them
    hosts: Annotated[int, Meta(ge=1, le=5_000)] = 20
    topics: Annotated[int, Meta(ge=2, le=len(TOPICS))] = len(TOPICS)  # each is a task; from common to rare
    links: Annotated[int, Meta(ge=1, le=200)] = 12  # of a page, on average
    homophily: Share = 0.7  # of links: drawn among pages of the same topic, the others among all
    focus: Share = 0.6  # of pages: on the main topic of their host
    hubs: Annotated[int, Meta(ge=0, le=1_000)] = 16  # pages on no topic whose links lead to one topic
    traps: Share = 0.05  # of pages: carry a link into a trap
    duplicates: Share = 0.05  # of pages: have a print version
    mirrors: Annotated[int, Meta(ge=0, le=1_000)] = 1  # hosts that exist twice
    dead: Annotated[float, Meta(ge=0, le=0.9)] = 0.04  # of links: lead nowhere
    redirects: Share = 0.05  # of pages: have an old address, which every second link still says
    slow: Share = 0.1  # of hosts: need seconds instead of tenths
    failing: Share = 0.1  # of hosts: fail
    failure_rate: Share = 0.3  # of fetches on a host that fails
    robots: Share = 0.3  # of hosts: forbid a part of themselves
    sitemaps: Share = 0.5  # of hosts: have one
    changing: Share = 0.2  # of pages: change, between once an hour and once in a month


def checked(options: dict[str, Any]) -> Options:
    """Named options, or a clear word about the one that is wrong."""
    for name in options:
        if name not in Options.__struct_fields__:
            raise ConfigError(_unknown(name))
    try:
        web = msgspec.convert(options, Options, strict=False)
    except msgspec.ValidationError as problem:
        what, _, where = str(problem).partition(" - at `$.")
        raise ConfigError(f"{PREFIX}: {where.strip('`') or 'option'}: {what[0].lower()}{what[1:]}") from None
    least = 2 * web.hosts + web.hubs + web.topics
    if web.pages < least:
        raise ConfigError(f"{PREFIX}: pages: expected at least 2 × hosts + hubs + topics = {least}, got {web.pages}")
    if web.mirrors > web.hosts:
        raise ConfigError(f"{PREFIX}: mirrors: expected at most hosts = {web.hosts}, got {web.mirrors}")
    return web


def pairs(text: str) -> dict[str, str]:
    """What `synthetic` or `synthetic:option=value,…` says."""
    _, _, listed = text.partition(":")
    options: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in listed.split(","))):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value:
            raise ConfigError(f"{PREFIX}: expected option=value, got {pair!r}")
        if name in options:
            raise ConfigError(f"{PREFIX}: {name}: expected once, got it twice")
        options[name] = value
    return options


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, Options.__struct_fields__, 1, 0.5)
    hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(Options.__struct_fields__)}"
    return f"{PREFIX}: unknown option {name!r}{hint}"
