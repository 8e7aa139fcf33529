"""What Redis answers, as columns and records; and ids as it takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core.columns import texts
from crawlguide.core.types import Batch, Hosts, UrlRecord
from crawlguide.store.tables.rows import HOST, POLITENESS, ROW, STATES

if TYPE_CHECKING:
    from crawlguide.core.tables import I64, U64

# The order of the facts in core.types.Batch and core.types.Hosts, as far as they are fields of ROW and HOST.
FACTS = (
    "arm",
    "depth",
    "sequence",
    "discovered",
    "fetched",
    "parents",
    "parent_sum",
    "parent_best",
    "given",
    "priority",
)
HOST_FACTS = ("pages", "failures", "errors", "judged", "relevance_sum", "domain")


def raw(ids: U64) -> list[str]:
    """Ids as text: Lua's numbers end at 2**53, and its msgpack knows no binary strings."""
    whole = ids.tobytes().hex()
    return [whole[n : n + 16] for n in range(0, len(whole), 16)]


def ids(*raw: bytes) -> U64:
    return np.frombuffer(bytes.fromhex(b"".join(raw).decode()), np.uint64)


def lines(joined: bytes) -> list[str]:
    return joined.decode().split("\n") if joined else []


def batch(replies: list[list[Any]]) -> Batch:
    rows, mine, pace = (
        np.frombuffer(b"".join(reply[n] for reply in replies), kind)
        for n, kind in ((2, ROW), (6, HOST), (7, POLITENESS))
    )
    names = [lines(reply[5]) for reply in replies]
    offsets = np.cumsum([0, *map(len, names)])[:-1]
    places = [np.frombuffer(r[4], np.int64) + offset for r, offset in zip(replies, offsets, strict=True)]
    host: I64 = np.concatenate([*places, np.zeros(0, np.int64)])
    medians, opens = [pace["median_ms"], mine["median_bytes"]], np.maximum(pace["next_fetch"], pace["blocked"])
    pages = mine["pages"] + pace["leases"]  # of the host; its domain's lie in the same partition, nobody adds them up
    queue = [*medians, pace["delay"], pace["last"], opens, pace["leases"], pace["limit"]]
    known = np.array([*(mine[name] for name in HOST_FACTS), pages, *queue], np.float64)
    estimates = [*(median[host] for median in medians), rows["priority"], rows["priority"]]
    facts = np.array([*(rows[name] for name in FACTS), *estimates], np.float64)
    known_ids, found = ids(*(reply[1] for reply in replies)), texts(url for reply in replies for url in lines(reply[3]))
    return Batch(found, known_ids, host, facts, Hosts(texts(name for some in names for name in some), known))


def record(bytes_: bytes, url: bytes, why: bytes | None, lease: bytes | None) -> UrlRecord:
    row = np.frombuffer(bytes_, ROW)[0]
    who, _, ends, *_ = msgspec.msgpack.decode(lease) if lease else (None, None, None)
    status, fetched = int(row["status"]) or None, None if np.isnan(row["fetched"]) else float(row["fetched"])
    reason, priority = why.decode() if why else None, float(row["priority"])
    return UrlRecord(url.decode(), STATES[int(row["state"])], reason, priority, who, ends, status, fetched)
