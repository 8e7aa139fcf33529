"""Fetches, one by one, become columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.types import Fetches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Fetch

NAN = float("nan")


@dataclass
class FetchColumns:
    """Collects fetches row by row and turns them into columns."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, number: int, fetch: Fetch, url: str, target: str, relevance: float) -> None:
        self.rows.append(
            (
                number,
                url,
                target,
                -1 if fetch.status is None and fetch.error is None else fetch.status or 0,
                fetch.error or ("other" if fetch.status == 0 else ""),  # a status of 0 is what many call no answer
                _number(fetch.elapsed_ms),
                _number(fetch.bytes),
                relevance,
                _number(fetch.reward),
                _number(fetch.retry_after_s),
                fetch.fetch_time or "",
                fetch.content_hash or "",
            )
        )

    def columns(self, crawler_id: str) -> Fetches:
        numbers: Sequence[Sequence[Any]] = list(zip(*self.rows, strict=True)) or [()] * 12
        item, url, target, status, error, elapsed, size, relevance, reward, retry, time, content = numbers
        return Fetches(
            item=np.array(item, np.int64),
            url=texts(url),
            id=np.array([urls.identity(one) for one in url], np.uint64),
            host=texts(urls.queue(one) for one in url),
            target_url=texts(target),
            target_id=np.array([urls.identity(one) for one in target], np.uint64),
            target_host=texts(urls.queue(one) for one in target),
            status=np.array(status, np.int32),
            error=texts(error),
            elapsed_ms=np.array(elapsed, np.float64),
            bytes=np.array(size, np.float64),
            relevance=np.array(relevance, np.float64),
            reward=np.array(reward, np.float64),
            retry_after_s=np.array(retry, np.float64),
            fetch_time=texts(time),
            content_hash=texts(content),
            crawler_id=crawler_id,
        )


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)
