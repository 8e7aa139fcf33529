"""A crawler that takes its assignments one by one, from a guide in this process or from a server."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.clients.answering import Answering, Told
from tests.gateway.conftest import Served

from crawlguide import AsyncClient, AsyncGuide
from crawlguide.core.errors import MalformedRequest, UnavailableError
from crawlguide.gateway.client.assignments import Assignments

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

OPEN = {"policy": {"robots": "ignore", "default_delay_s": 0, "traps": False}}
HOME = "https://a.example/"


@asynccontextmanager
async def opened(where: str, served: Served) -> AsyncIterator[Any]:
    async with AsyncGuide.open() if where == "embedded" else AsyncClient(served.url) as guide:
        yield guide


@pytest.fixture(params=["embedded", "served"])
async def guide(request: pytest.FixtureRequest, served: Served) -> AsyncIterator[Any]:
    async with opened(request.param, served) as found:
        yield found


async def begun(guide: Any, crawl: str, *seeds: str, **policy: Any) -> None:
    await guide.define(crawl, {"policy": OPEN["policy"] | policy})
    await guide.seed(crawl, seeds or [HOME])


async def crawled(assignments: Assignments, links: dict[str, list[str]]) -> list[str]:
    """Fetch until nothing is left, over a web that is a dictionary."""
    seen = []
    while (one := await assignments.next()) is not None:
        seen.append(one.url)
        outlinks = [{"url": url} for url in links.get(one.url, [])]
        assignments.report({"url": one.url, "status": 200, "outlinks": outlinks})
    return seen


async def test_a_crawl_ends_when_all_that_was_discovered_is_fetched(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    links = {HOME: [f"{HOME}{n}" for n in range(30)], f"{HOME}7": [f"{HOME}deep"]}
    async with Assignments(guide, crawl, concurrency=3) as assignments:
        seen = await asyncio.wait_for(crawled(assignments, links), 60)
    assert sorted(seen) == sorted([HOME, f"{HOME}deep", *links[HOME]])


async def test_several_workers_share_one_crawlers_assignments(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    links = {HOME: [f"{HOME}{n}" for n in range(40)]}
    async with Assignments(guide, crawl, concurrency=4) as assignments:
        seen = await asyncio.gather(*(crawled(assignments, links) for _ in range(4)))
    every = [url for some in seen for url in some]
    assert len(every) == len(set(every)) == 41


async def test_a_report_is_acknowledged(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    async with Assignments(guide, crawl) as assignments:
        one = await assignments.next()
        assert one is not None
        result = await assignments.report({"url": one.url, "status": 200})
    assert (result.url, result.status) == (HOME, "ok")
    assert (await guide.stats(crawl))["crawls"][crawl]["done"] == 1


async def test_what_is_not_reported_goes_back(guide: Any, crawl: str) -> None:
    await begun(guide, crawl, *(f"{HOME}{n}" for n in range(10)))
    async with Assignments(guide, crawl, concurrency=2) as assignments:
        await assignments.next()
        assert (await guide.stats(crawl))["crawls"][crawl]["leased"] >= 1
    after = (await guide.stats(crawl))["crawls"][crawl]
    assert (after["leased"], after["queued"]) == (0, 10)


async def test_what_a_killed_run_held_goes_back_when_it_starts_again(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    killed = await Assignments(guide, crawl, "c-1").__aenter__()
    assert await killed.next() is not None
    assert killed._task is not None
    killed._task.cancel()
    async with Assignments(guide, crawl, "c-1") as assignments:
        again = await asyncio.wait_for(assignments.next(), 60)
        assert again is not None
        assert again.url == HOME


async def test_a_url_starts_no_earlier_than_its_host_allows(guide: Any, crawl: str) -> None:
    host = f"https://{crawl}.example/"
    await begun(guide, crawl, host, f"{host}b", default_delay_s=0.2)
    loop = asyncio.get_running_loop()
    async with Assignments(guide, crawl) as assignments:
        first = await assignments.next()
        began = loop.time()
        second = await asyncio.wait_for(assignments.next(), 60)
        took = loop.time() - began
    assert first is not None
    assert second is not None
    assert took > 0.1


async def test_after_a_late_start_the_next_one_of_the_host_keeps_its_distance(guide: Any, crawl: str) -> None:
    host = f"https://{crawl}.example/"
    await begun(guide, crawl, *(f"{host}{n}" for n in range(3)), default_delay_s=0.2)
    loop = asyncio.get_running_loop()
    async with Assignments(guide, crawl) as assignments:
        await assignments.next()
        await asyncio.sleep(0.5)  # by now the others may start, by the plan of the guide
        starts = []
        for _ in range(2):
            await asyncio.wait_for(assignments.next(), 60)
            starts.append(loop.time())
    assert starts[1] - starts[0] > 0.15


async def test_links_found_after_the_crawl_seemed_exhausted_are_fetched(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    async with Assignments(guide, crawl, concurrency=2) as assignments:
        one = await assignments.next()
        assert one is not None
        late = asyncio.create_task(assignments.next())
        await asyncio.sleep(0.1)  # the guide is asked meanwhile, and has nothing
        assert not late.done()
        assignments.report({"url": one.url, "status": 200, "outlinks": [{"url": "/late"}]})
        found = await asyncio.wait_for(late, 60)
    assert found is not None
    assert found.url == f"{HOME}late"


async def test_a_crawl_that_was_over_goes_on_with_new_seeds(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    async with Assignments(guide, crawl, concurrency=2) as assignments:
        assert await crawled(assignments, {}) == [HOME]
        assert assignments.is_over
        assert await assignments.seed([HOME, f"{HOME}more"]) == 1
        assert not assignments.is_over
        assert await asyncio.wait_for(crawled(assignments, {}), 60) == [f"{HOME}more"]


async def test_whoever_is_cancelled_while_closing_may_close_again(guide: Any, crawl: str) -> None:
    await begun(guide, crawl, *(f"{HOME}{n}" for n in range(10)))
    assignments = await Assignments(guide, crawl, concurrency=2).__aenter__()
    one = await assignments.next()
    assert one is not None
    assignments.report({"url": one.url, "status": 200})
    closing = asyncio.create_task(assignments.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await assignments.close()
    after = (await guide.stats(crawl))["crawls"][crawl]
    assert (after["leased"], after["queued"], after["done"]) == (0, 9, 1)


async def test_it_closes_although_its_own_task_was_cancelled(guide: Any, crawl: str) -> None:
    """As `asyncio.run` does with every task when its program ends."""
    await begun(guide, crawl)
    assignments = await Assignments(guide, crawl).__aenter__()
    one = await assignments.next()
    assert one is not None
    assert assignments._task is not None
    assignments._task.cancel()
    assignments.report({"url": one.url, "status": 200})
    await assignments.close()
    assert (await guide.stats(crawl))["crawls"][crawl]["done"] == 1


async def test_a_wrong_report_names_what_is_wrong(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    async with Assignments(guide, crawl) as assignments:
        with pytest.raises(MalformedRequest, match="status"):
            assignments.report({"url": HOME, "status": "fine"})


async def test_seeds_go_out_before_the_next_ask(guide: Any, crawl: str) -> None:
    await guide.define(crawl, OPEN)
    async with Assignments(guide, crawl) as assignments:
        for number in range(250):
            assignments.seed_soon(f"{HOME}{number}", metadata={"n": number})
        assert not assignments.is_over
        found = [await asyncio.wait_for(assignments.next(), 60) for _ in range(3)]
    assert all(one is not None and one.url == f"{HOME}{one.metadata['n']}" for one in found)
    assert (await guide.stats(crawl))["crawls"][crawl]["queued"] == 250


async def test_a_seed_that_nobody_can_fetch_is_refused_alone(guide: Any, crawl: str) -> None:
    await guide.define(crawl, OPEN)
    async with Assignments(guide, crawl) as assignments:
        for url in (HOME, "mailto:me@example.com", f"{HOME}b"):
            assignments.seed_soon(url)
        seen = await asyncio.wait_for(crawled(assignments, {}), 60)
    assert sorted(seen) == [HOME, f"{HOME}b"]
    assert [result.url for result in assignments.refused] == ["mailto:me@example.com"]


async def test_reports_that_a_guide_did_not_take_are_known_after_the_end(
    crawl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlguide.gateway.client.assignments.CLOSES_WITHIN_S", 0.1)
    async with AsyncClient("http://127.0.0.1:9", retries=0) as nobody, Assignments(nobody, crawl) as assignments:
        assignments.report({"url": HOME, "status": 200})
    assert [fetch.url for fetch in assignments.unacknowledged()] == [HOME]


async def test_a_report_that_is_too_large_keeps_no_other_from_being_heard(guide: Any, crawl: str) -> None:
    await begun(guide, crawl, *(f"{HOME}{n}" for n in range(5)))
    async with Assignments(guide, crawl, concurrency=5) as assignments:
        urls = [one.url for _ in range(5) if (one := await assignments.next()) is not None]
        many = [{"url": f"{HOME}{n}/{'x' * 1_000}", "anchor": "y" * 1_000} for n in range(3_000)]
        reports = [{"url": url, "status": 200, "outlinks": many if url == urls[2] else []} for url in urls]
        told = [assignments.report(report) for report in reports]
        results = [await asyncio.wait_for(one, 60) for one in told]
    assert [result.status for result in results] == ["ok"] * 5
    assert (await guide.stats(crawl))["crawls"][crawl]["done"] == 5


async def test_of_a_page_with_too_many_links_the_last_ones_are_left_out(
    guide: Any, crawl: str, caplog: pytest.LogCaptureFixture
) -> None:
    await begun(guide, crawl)
    async with Assignments(guide, crawl, concurrency=1) as assignments:
        many = [{"url": f"{HOME}{n}/{'x' * 900}"} for n in range(9_000)]
        report = {"url": HOME, "status": 200, "title": "Home", "text": "roses", "outlinks": many}
        assert (await asyncio.wait_for(assignments.report(report), 60)).status == "ok"
        assert assignments.refused == []
    numbers = (await guide.stats(crawl))["crawls"][crawl]
    found = numbers["queued"] + numbers["done"]
    assert 2_000 < found < 2_400
    (said,) = [record.message for record in caplog.records if "not told" in record.message]
    assert f"{9_001 - found} of 9000 links of {HOME}" in said


async def test_of_what_a_guide_refuses_links_go_first_and_words_last() -> None:
    """Its own limit may be lower than ours."""
    refusal = Told(413, json.dumps({"error": {"code": "too_large", "message": "body: too large"}}).encode())
    answer = {"accepted": 1, "discovered": 0, "truncated": 0, "results": [{"url": HOME, "status": "ok"}]}
    with Answering(*[refusal] * 3, Told(200, json.dumps(answer).encode())) as there:
        async with AsyncClient(there.url, retries=0) as guide:
            assignments = Assignments(guide, "crawl")
            links = [{"url": f"{HOME}{n}"} for n in range(2)]
            told = assignments.report({"url": HOME, "status": 200, "title": "Home", "outlinks": links})
            while not told.done():
                await assignments._send()
    reports = [json.loads(heard.body)["fetches"][0] for heard in there.heard]
    assert [(len(one.get("outlinks") or ()), one.get("title")) for one in reports] == [
        (2, "Home"), (1, "Home"), (0, "Home"), (0, None)
    ]  # fmt: skip


async def test_halves_of_surrogate_pairs_keep_no_report_from_being_heard(guide: Any, crawl: str) -> None:
    """Some HTTP clients make such of the bytes of a header."""
    await begun(guide, crawl)
    async with Assignments(guide, crawl) as assignments:
        await assignments.next()
        links = [
            {"url": f"{HOME}ok", "anchor": "a\udcff"},
            {"url": f"{HOME}\udcff", "metadata": {"\udcff": ["x"]}},
        ]
        report = {"url": HOME, "status": 200, "content_type": "text/html; charset=\udcff", "outlinks": links}
        told = await asyncio.wait_for(assignments.report(report), 30)
        assert (told.status, told.url) == ("ok", HOME)
        following = await asyncio.wait_for(assignments.next(), 30)
        assert following is not None and following.url.startswith(HOME)  # noqa: PT018


async def test_what_takes_longer_than_its_lease_is_not_handed_out_twice(
    guide: Any, crawl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlguide.gateway.client.assignments.LEASE_S", 0.2)
    await begun(guide, crawl, HOME, f"{HOME}other")
    async with Assignments(guide, crawl) as assignments:
        slow = await assignments.next()
        other = await assignments.next()
        assert slow is not None and other is not None  # noqa: PT018
        held = (await guide.explain(crawl, slow.url))["lease"]
        while (await guide.explain(crawl, slow.url))["lease"] in (held, None):  # until it is leased anew
            with suppress(TimeoutError):
                assert await asyncio.wait_for(assignments.next(), 0.05) is None
        for one in (slow, other):
            await asyncio.wait_for(assignments.report({"url": one.url, "status": 200}), 30)
        assert await asyncio.wait_for(assignments.next(), 30) is None


async def test_nobody_waits_for_assignments_that_are_closed(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    assignments = await Assignments(guide, crawl).__aenter__()
    await assignments.close()
    assert await asyncio.wait_for(assignments.next(), 10) is None


async def test_nobody_waits_for_reports_that_will_never_be_sent(guide: Any, crawl: str) -> None:
    await begun(guide, crawl)
    assignments = await Assignments(guide, crawl).__aenter__()
    await assignments.close()
    assignments.report({"url": HOME, "status": 200})
    with pytest.raises(UnavailableError, match="1 are left"):
        await asyncio.wait_for(assignments.flush(), 10)
