"""What asks and tells cost on the Redis prototype: 100,000 URLs over 1,000 hosts, one client, loopback.

    .venv/bin/python -m bench.walls.measure_redis [--urls 100000]

Medians of wall time as the client sees it; `server` and `calls` are means of an ask: Redis' own time, and functions.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np
from bench.walls.redis_prototype import RedisPrototype
from bench.walls.redis_server import serving
from redis.asyncio import Redis
from tests.store.builders import CRAWL, ask, fetches, ids, links, terms

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

HOSTS, TOLD, REPEATS = 1_000, 2_000, 5
URLS_AN_ASK = 300  # that wait: an ask leases 30 of them


async def seconds(work: Awaitable[object]) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


def median_us(times: Iterable[float]) -> float:
    return statistics.median(times) * 1e6


async def asked(store: RedisPrototype, number: int) -> None:
    """30 of up to 200 candidates, each crawler a hundredth of a second after the one before."""
    at, name = 1.0 + number / 100, f"c-{number}"
    batch = await store.gather(CRAWL, ask(at, crawler_id=name), 200, 5.0, 50)
    if len(batch) < 30:
        raise RuntimeError(f"expected candidates for 30 leases, got {len(batch)}")
    some = batch.take(np.arange(30))
    grants = await store.reserve(CRAWL, some, terms(at, name, request_id=name, horizon_s=1e6))
    if grants.outcome.any():
        raise RuntimeError("expected 30 leases")


async def measured(port: int, partitions: int, urls: int) -> dict[str, float]:
    store, chance = RedisPrototype(Redis(port=port), partitions), np.random.default_rng(1)
    await store.redis.flushall()
    await store.load()
    found = [f"https://host{n % HOSTS}.example/page/{n}/some-title" for n in range(urls)]
    priority, before = chance.random(urls), (await store.redis.info("memory"))["used_memory"]
    batches = [links(*found[n : n + TOLD], manual_priority=priority[n : n + TOLD]) for n in range(0, urls, TOLD)]
    result = {"discover, µs a seed": median_us([await seconds(store.discover(CRAWL, b, None, 0.0)) for b in batches])}
    result["discover, µs a seed"] /= TOLD
    result["bytes a URL"] = ((await store.redis.info("memory"))["used_memory"] - before) / urls

    await store.stats(CRAWL)  # hints of all partitions
    await store.redis.config_resetstat()
    asks = urls // URLS_AN_ASK
    result["gather + reserve, µs"] = median_us([await seconds(asked(store, n)) for n in range(asks)])
    spent = (await store.redis.info("commandstats"))["cmdstat_fcall"]
    result["  server, µs"], result["  calls"] = spent["usec"] / asks, spent["calls"] / asks

    told = fetches(found[0], relevance=0.7)
    await store.record(CRAWL, told, 9.0, 3)
    children = [[f"https://host{n % 50}.example/{turn}/{n}" for n in range(TOLD)] for turn in range(REPEATS)]
    work = [store.discover(CRAWL, links(*some, parent=0), told, 9.0) for some in children]
    result["discover, µs a link of a page"] = median_us([await seconds(w) for w in work]) / TOLD
    known = ids(*children[-1])
    result["look at 2,000 ids, ms"] = median_us([await seconds(store.look(CRAWL, known)) for _ in range(REPEATS)]) / 1e3
    ranks = [store.rank(CRAWL, known, chance.random(TOLD)) for _ in range(REPEATS)]
    result["rank 2,000 ids, ms"] = median_us([await seconds(w) for w in ranks]) / 1e3
    late = [store.record(CRAWL, fetches(found[0], status=-1, reward=n / 9), 9.0, 3) for n in range(REPEATS)]
    result["correct 2,000 children, ms"] = median_us([await seconds(w) for w in late]) / 1e3
    result["stats, ms"] = median_us([await seconds(store.stats(CRAWL)) for _ in range(REPEATS)]) / 1e3
    await store.close()
    return result


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--urls", type=int, default=100_000)
    urls = arguments.parse_args().urls
    with serving() as port:
        columns = {count: asyncio.run(measured(port, count, urls)) for count in (4, 256)}
    print(f"{'':32}" + "".join(f"{f'{count} partitions':>16}" for count in columns))
    for name in columns[4]:
        print(f"{name:32}" + "".join(f"{column[name]:16,.1f}" for column in columns.values()))


if __name__ == "__main__":
    main()
