"""What clients put, and what they are given: between messages of URLFrontier and those of the guide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from crawlguide.core.messages import Fetch
from crawlguide.core.urls import MAX_LENGTH
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.guide.queues import Found, Known, host_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.types import QueuedUrl
    from crawlguide.guide.queues import Taken

DEFAULT = "DEFAULT"
LONGEST_KEY, MOST_METADATA_BYTES = 255, 64 * 1024
MOST_BYTES = 2 * MOST_METADATA_BYTES  # of one URL with all that is said of it: what has more is not looked at
OURS = ("guide.score", "guide.reason", "guide.p")  # set when a URL is given out
STATUS = ("fetch.statusCode",)
ELAPSED_MS = ("fetch.elapsedTime", "fetch.loadingTime")
BYTES = ("fetch.contentLength", "fetch.byteLength")
RETRY_AFTER_S = ("fetch.retryAfter",)
TITLE = ("parse.title", "title")
RELEVANCE, REWARD = ("guide.relevance",), ("guide.reward",)
PATH = "url.path"  # the pages that led to a URL, the last of them last
LONGEST_DATE = 2**63 - 1
Metadata = dict[str, list[str]]
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class Put(NamedTuple):
    """One URL that was put: for which crawl, and as what; None: it is of no use."""

    crawl: str
    item: Found | Known | None


def crawl_name(text: str) -> str:
    """A blank one is the crawl DEFAULT."""
    return text if text.strip() else DEFAULT


def put(item: wire.URLItem) -> Put:
    """An item of `PutURLs`."""
    kind = item.WhichOneof("item")
    if kind == "discovered":
        return discovered(item.discovered.info)
    if kind == "known":
        return known(item.known)
    return Put(DEFAULT, None)


def discovered(info: wire.URLInfo) -> Put:
    crawl, key = crawl_name(info.crawlID), _key(info)
    if info.ByteSize() > MOST_BYTES:
        return Put(crawl, None)
    if not info.metadata:
        return Put(crawl, Found(info.url, key) if key else None)
    metadata = _metadata(info)
    packed = _encode(metadata)
    if not key or len(packed) > MOST_METADATA_BYTES:
        return Put(crawl, None)
    path = metadata.get(PATH)
    return Put(crawl, Found(info.url, key, packed if metadata else None, path[-1] if path else ""))


def known(item: wire.KnownURLItem) -> Put:
    info = item.info
    if info.ByteSize() > MOST_BYTES:
        return Put(crawl_name(info.crawlID), None)
    crawl, key, metadata = crawl_name(info.crawlID), _key(info), _metadata(info)
    packed = _encode(metadata) if metadata else None
    if not key or (packed and len(packed) > MOST_METADATA_BYTES):
        return Put(crawl, None)
    fetch = _fetch(info.url, metadata) if metadata else None
    return Put(crawl, Known(info.url, key, packed, min(item.refetchable_from_date, LONGEST_DATE), fetch))


def key_of(url: str, key: str) -> str:
    """The queue of a URL; "" where there is none."""
    found = key or host_key(url)
    return found if len(found) <= LONGEST_KEY else ""


def _key(info: wire.URLInfo) -> str:
    return key_of(info.url, info.key) if 0 < len(info.url) <= MAX_LENGTH else ""


def _metadata(info: wire.URLInfo) -> Metadata:
    found = {name: list(values.values) for name, values in info.metadata.items()}
    for name in OURS:
        found.pop(name, None)
    return found


def _fetch(url: str, metadata: Metadata) -> Fetch | None:
    """What metadata says of a fetch; None: nothing."""
    status, reward, relevance = _number(metadata, STATUS), _number(metadata, REWARD), _number(metadata, RELEVANCE)
    if status is None and reward is None and relevance is None:
        return None
    answered = 200 if status is None else int(status)
    return Fetch(
        url,
        status=answered if 100 <= answered <= 999 else None,
        error=None if 100 <= answered <= 999 else "other",
        elapsed_ms=_number(metadata, ELAPSED_MS),
        bytes=_number(metadata, BYTES),
        retry_after_s=_number(metadata, RETRY_AFTER_S),
        title=_first(metadata, TITLE),
        relevance=None if relevance is None else min(relevance, 1.0),
        reward=None if reward is None else min(reward, 1e6),
    )


def _first(metadata: Mapping[str, Sequence[str]], names: Sequence[str]) -> str | None:
    return next((metadata[name][0] for name in names if metadata.get(name)), None)


def _number(metadata: Mapping[str, Sequence[str]], names: Sequence[str]) -> float | None:
    """A number that is not negative; what is none says nothing."""
    text = _first(metadata, names)
    try:
        number = float(text) if text else -1.0
    except ValueError:
        return None
    return number if 0.0 <= number < 1e15 else None


# what is given


def given(crawl: str, taken: Taken) -> wire.URLInfo:
    """A URL to fetch; its metadata says what the guide thinks of it."""
    info = wire.URLInfo(url=taken.url, key=taken.key, crawlID=crawl)
    _fill(info, taken.metadata)
    metadata = info.metadata
    metadata["guide.score"].values.append(f"{taken.score:.4f}")
    metadata["guide.reason"].values.append(taken.reason)
    metadata["guide.p"].values.append(f"{taken.p:.4f}")
    return info


def listed(crawl: str, found: QueuedUrl) -> wire.URLItem:
    """A URL as it is known."""
    item = wire.URLItem(creation_date=found.created)
    item.known.refetchable_from_date = max(0, found.date)  # an import may say what no date was made of
    info = item.known.info
    info.url, info.key, info.crawlID = found.url, found.key, crawl
    _fill(info, found.metadata)
    return item


def _fill(info: wire.URLInfo, metadata: bytes | None) -> None:
    """Metadata that came through another door may be anything."""
    if metadata is not None:
        for name, values in _decode(metadata).items():
            texts = values if isinstance(values, list) else [values]
            info.metadata[name].values.extend(text if isinstance(text, str) else str(text) for text in texts)
