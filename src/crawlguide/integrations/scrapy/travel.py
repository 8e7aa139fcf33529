"""A request as the metadata of a URL: what it says beyond its address goes to the guide and comes back.

A guide knows URLs, so only what a GET says can travel, as JSON of at most 4 KiB. Of a class or a function only the name
of a method of the spider travels. Others who share the guide may have written what comes back: it can name a public
method that the spider itself defines, and nothing of it decides where a request goes or who it says it is. For the same
reason no secret travels.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

import msgspec
from scrapy import FormRequest, Request
from scrapy import Spider as BaseSpider

from crawlguide.core.messages import MAX_METADATA_BYTES
from crawlguide.integrations._crawl import STAYING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy import Spider

KEY = "crawlguide"  # in `meta`
NAME = "scrapy"  # in the metadata of a URL
OURS = frozenset({KEY, "download_slot", "download_latency", "dont_retry", "dont_obey_robotstxt"})
LEFT_OUT = ("cb_kwargs", "flags")  # copied as they are, where there are any
ROUTING = frozenset({"proxy", "bindaddress", "cookiejar", "allow_offsite", "_auth_proxy"})  # in `meta`


class Travelled(msgspec.Struct):
    """What comes back, checked."""

    callback: str = ""
    errback: str = ""
    headers: dict[str, list[str]] = {}
    meta: dict[str, Any] = {}
    cb_kwargs: dict[str, Any] = {}
    flags: list[str] = []
    encoding: str = "utf-8"
    dont_filter: bool = False


logger = logging.getLogger(__name__)


def packed(request: Request, spider: Spider) -> dict[str, Any] | None:
    """The metadata of a request; None: it cannot travel."""
    if request.method != "GET" or request.body or type(request) not in {Request, FormRequest}:
        return None
    if request.cookies or _is_routed(request.meta) or any(_stays(name) for name in request.headers):
        return None
    callback, errback = _name(request.callback, spider), _name(request.errback, spider)
    if callback is None or errback is None:
        return None
    said = {
        "callback": callback,
        "errback": errback,
        "headers": {_word(name): [*map(_word, values)] for name, values in request.headers.items()},
        "meta": {name: value for name, value in request.meta.items() if name not in OURS | ROUTING},
        "encoding": "" if request.encoding == "utf-8" else request.encoding,
        "dont_filter": request.dont_filter,
        **{name: getattr(request, name) for name in LEFT_OUT},
    }
    kept = {name: value for name, value in said.items() if value}
    return ({NAME: kept} if kept else {}) if _is_json({NAME: kept}) else None


def unpacked(url: str, metadata: Mapping[str, Any], spider: Spider) -> Request:
    """The request for an assigned URL. One that another crawler found says nothing beyond its address."""
    try:
        said = msgspec.convert(metadata.get(NAME, {}), Travelled)
        return Request(
            url,
            callback=_method(said.callback, spider),
            errback=_method(said.errback, spider),
            headers={name: values for name, values in said.headers.items() if _is_harmless(name, values)},
            meta={name: value for name, value in said.meta.items() if name not in ROUTING | OURS},
            cb_kwargs=said.cb_kwargs,
            flags=said.flags,
            encoding=said.encoding,
            dont_filter=said.dont_filter,
        )
    except (msgspec.ValidationError, LookupError, TypeError, ValueError) as wrong:
        logger.warning("crawlguide: what came with %s is no request of Scrapy: %s", url, wrong)
        return Request(url)


def _name(function: Callable[..., Any] | None, spider: Spider) -> str | None:
    """The name of a method of the spider, "" for none; None: it is something else."""
    if function is None:
        return ""
    name = getattr(function, "__name__", "")
    return name if name and getattr(spider, name, None) == function else None


def _method(name: str, spider: Spider) -> Callable[..., Any] | None:
    """A public method, but none that every spider has: those are for Scrapy to call."""
    own = name == "parse" or not (name.startswith("_") or hasattr(BaseSpider, name))
    found = getattr(spider, name, None) if name and own else None
    if name and not callable(found):
        logger.warning("crawlguide: %s has no method %r, which a URL asks for; parse is called", spider.name, name)
    return found if callable(found) else None


def _is_routed(meta: Mapping[str, Any]) -> bool:
    """Whether it goes a way of its own. The proxies of the environment are everybody's: Scrapy puts them in again."""
    usual = {_place(proxy) for proxy in getproxies().values()}
    return any(_place(str(meta[name])) not in usual for name in ROUTING & meta.keys())


def _place(proxy: str) -> str:
    """Host and port, without scheme and credentials."""
    return proxy.rpartition("://")[2].rpartition("@")[2].rstrip("/")


def _stays(name: bytes) -> bool:
    return _word(name).strip().lower() in STAYING


def _is_harmless(name: str, values: list[str]) -> bool:
    return name.strip().lower() not in STAYING and not any("\r" in text or "\n" in text for text in (name, *values))


def _word(text: bytes) -> str:
    return text.decode("latin-1")


def _is_json(said: dict[str, Any]) -> bool:
    """Whether it comes back as it was, and is small enough."""
    try:
        encoded = msgspec.json.encode(said)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return False
    return len(encoded) <= MAX_METADATA_BYTES and msgspec.json.decode(encoded) == said
