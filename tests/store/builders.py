"""Columns for a store, from a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.types import Ask, Budget, Crawl, Fetches, LeaseTerms, Links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import U64
    from crawlguide.core.types import Batch

CRAWL = Crawl("tenant", "crawl")


def ids(*found: str) -> U64:
    return np.array([urls.identity(url) for url in found], np.uint64)


def links(*found: str, parent: int | Sequence[int] = -1, **columns: Any) -> Links:
    """Links to the given URLs; other columns by name, one value for all or one each."""
    count = len(found)
    given = {
        "anchor": "",
        "position": 0,
        "manual_priority": np.nan,
        "max_depth": -1,
        "metadata": None,
        "reason": None,
    } | columns
    column = {name: _spread(value, count) for name, value in given.items()}
    return Links(
        parent=np.array(_spread(parent, count), np.int64),
        url=texts(found),
        id=ids(*found),
        host=texts(urls.queue(url) for url in found),
        anchor=texts(column["anchor"]),
        position=np.array(column["position"], np.int32),
        manual_priority=np.array(column["manual_priority"], np.float64),
        max_depth=np.array(column["max_depth"], np.int32),
        metadata=texts(column["metadata"]),
        reason=texts(column["reason"]),
    )


def fetches(*found: str, target: str | None = None, crawler_id: str = "c-1", **columns: Any) -> Fetches:
    """Fetches of the given URLs, by default good ones."""
    count = len(found)
    nan = np.nan
    given: dict[str, Any] = {"status": 200, "error": "", "elapsed_ms": nan, "bytes": nan, "relevance": nan}
    given |= {"reward": nan, "retry_after_s": nan, "fetch_time": "", "content_hash": ""} | columns
    column = {name: _spread(value, count) for name, value in given.items()}
    targets = [target or url for url in found]
    return Fetches(
        item=np.arange(count),
        url=texts(found),
        id=ids(*found),
        host=texts(urls.queue(url) for url in found),
        target_url=texts(targets),
        target_id=ids(*targets),
        target_host=texts(urls.queue(url) for url in targets),
        status=np.array(column["status"], np.int32),
        error=texts(column["error"]),
        elapsed_ms=np.array(column["elapsed_ms"], np.float64),
        bytes=np.array(column["bytes"], np.float64),
        relevance=np.array(column["relevance"], np.float64),
        reward=np.array(column["reward"], np.float64),
        retry_after_s=np.array(column["retry_after_s"], np.float64),
        fetch_time=texts(column["fetch_time"]),
        content_hash=texts(column["content_hash"]),
        crawler_id=texts([crawler_id] * count),
        labelled=~(np.isnan(np.array(column["relevance"])) & np.isnan(np.array(column["reward"]))),
    )


def ask(at: float = 0.0, crawl: Crawl = CRAWL, crawler_id: str = "c-1", **more: Any) -> Ask:
    return Ask(crawl, crawler_id, at, Budget(100), **more)


def terms(at: float = 0.0, crawler_id: str = "c-1", **more: Any) -> LeaseTerms:
    given: dict[str, Any] = {"request_id": "r-1", "lease_s": 150.0, "delay_s": 0.0, "horizon_s": 5.0} | more
    return LeaseTerms(crawler_id=crawler_id, at=at, **given)


def listed(batch: Batch) -> list[str]:
    return [str(url) for url in batch.url]


def _spread(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value] * count
