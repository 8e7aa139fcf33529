"""The door to Kafka, against librdkafka's mock cluster: the protocol is real, the broker is not."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.bus.common import KafkaCrawler, KafkaMock, ask, config, key, opened, report, seeds, until

from crawlguide.core.config import AccessOptions, BusOptions, CrawlsOptions
from crawlguide.core.errors import CrawlGuideError
from crawlguide.core.messages import AskMessage, ReportMessage
from crawlguide.gateway import wire
from crawlguide.gateway.bus.kafka import Offsets, _pairs
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [f"https://h{number}.example/" for number in range(4)]


def options(mock: KafkaMock, prefix: str, **more: Any) -> BusOptions:
    return BusOptions(kafka=mock.address, prefix=prefix, redeliver_s=6.0, **more)


def headers(message: Any) -> dict[str, str]:
    return {name: value.decode() for name, value in message.headers()}


async def test_asks_and_tells_are_answered_as_by_the_guide_itself(kafka_mock: KafkaMock, prefix: str) -> None:
    settings = config(options(kafka_mock, prefix))
    other = open_guide(MEMORY, settings, ManualClock(), seed=7)
    async with opened(settings) as here:
        await here.guide.close()
        here.service.guide = open_guide(MEMORY, settings, ManualClock(), seed=7)
        crawler = KafkaCrawler(kafka_mock.address, prefix)
        messages = [
            ask(request_id="a", **seeds(*PAGES)),
            report(PAGES[0], report_id="b"),
            ask(request_id="c"),
            ask(request_id="a", **seeds(*PAGES)),  # once more: the same answer
            report(PAGES[0], report_id="b"),
            ask(request_id="c", budget={"max_urls": 1}),  # another body under the same id
            ask(request_id="d", budget={"max_urls": -3}),
            ask(request_id="e", mcp_version="1999-01"),
            report("https://h1.example/", report_id="f", fetches=[{"url": "no URL", "status": 200}]),
        ]
        answers: list[Any] = []
        reader = crawler.follow("answers.default")
        for number, message in enumerate(messages):
            await crawler.put("report" if "fetches" in message else "next", message, correlation_id=f"mine {number}")
            await crawler.more(reader, answers, partial(as_many, number + 1))
        reader.close()
        by_name = {headers(one)["correlation-id"]: one for one in answers}
        for number, message in enumerate(messages):
            assert by_name[f"mine {number}"].value() == await answered_by(other, message), message
        assert {one.key() for one in answers} == {b"c-1"}
        assert headers(by_name["mine 1"])["request-id"] == "b"
        assert [headers(by_name[f"mine {number}"])["status"] for number in (1, 5, 6)] == ["200", "409", "400"]
    await other.close()


async def has_a_fetch(here: Any) -> bool:
    crawls = (await here.guide.stats()).crawls
    return "default" in crawls and crawls["default"].fetches > 0


def as_many(number: int, found: list[Any]) -> bool:
    return len(found) == number


async def answered_by(guide: Any, message: dict[str, Any]) -> bytes:
    """As the library answers, errors as well."""
    try:
        if "fetches" in message:
            return wire.encode(await guide.tell(wire.convert(message, ReportMessage)))
        return wire.encode(await guide.ask(wire.convert(message, AskMessage)))
    except CrawlGuideError as problem:
        return wire.error(problem)


async def test_guards_dead_letters_and_tenants(kafka_mock: KafkaMock, prefix: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    mine, asks = key(data, "admin", tenant="mine"), key(data, "ask", tenant="mine")
    settings = config(options(kafka_mock, prefix), data, AccessOptions(requests_per_s=4.0))
    async with opened(settings) as here:
        crawler = KafkaCrawler(kafka_mock.address, prefix)
        await crawler.put("report", b"no JSON", authorization=mine)
        await crawler.put("next", ask())
        await crawler.put("report", report(PAGES[0]), authorization=asks)
        await crawler.put("next", ask(), authorization=mine, reply_to=f"{prefix}.answers.other.x")
        for number in range(12):  # more than the limit: they wait
            await crawler.put("report", report(f"https://a.example/{number}"), authorization=mine)
        dead = await crawler.read("dead", lambda found: len(found) == 2)
        assert {headers(one)["code"] for one in dead} == {"malformed_request", "unauthenticated"}
        assert all("authorization" not in headers(one) for one in dead)
        answers = await crawler.read("answers.mine", lambda found: len(found) == 14)
        bodies = [json.loads(one.value()) for one in answers]
        refused = [one["error"]["code"] for one in bodies if "error" in one]
        assert refused == ["forbidden", "forbidden"]
        assert sum(one.get("accepted", 0) for one in bodies) == 12
        assert (await here.guide.stats("mine")).crawls["default"].fetches == 12
        events = await crawler.read("events.mine", lambda found: len(found) == 13)
        assert {json.loads(one.value())["tenant"] for one in events} == {"mine"}
        assert {one.key() for one in events} == {b"default"}


async def test_no_tenant_takes_the_places_of_another(kafka_mock: KafkaMock, prefix: str, tmp_path: Path) -> None:
    """By asks for crawls that are one too many, by more than its limit allows, or without any credential."""
    data = tmp_path / "data"
    crowd, over, quiet = (key(data, "ask", "tell", tenant=name) for name in ("crowd", "over", "quiet"))
    access = AccessOptions(requests_per_s=5.0, address_requests_per_s=1.0, address_failures_per_s=0.1)
    bus, crawls = options(kafka_mock, prefix, in_flight=4), CrawlsOptions(max_auto_created=1)
    async with opened(config(bus, data, access, crawls=crawls)):
        crawler = KafkaCrawler(kafka_mock.address, prefix)
        for number in range(9):
            await crawler.put("next", ask(crawl_id=f"made-up-{number}"), authorization=crowd)
        for number in range(30):
            await crawler.put("next", ask(), authorization=f"Bearer cg_{number:012x}_{'a' * 43}")
            await crawler.put("next", ask(request_id=f"over-{number}"), authorization=over)
        await crawler.put("next", ask(request_id="quiet"), authorization=quiet)
        assert outcomes(await crawler.read("answers.quiet", partial(as_many, 1))) == {"200": 1}
        assert outcomes(await crawler.read("answers.crowd", partial(as_many, 9))) == {"200": 1, "429": 8}
        assert len(await crawler.read("dead", partial(as_many, 30))) == 30
        found = outcomes(await crawler.read("answers.over", partial(as_many, 30)))
        assert found["200"] >= 10 + 4  # at once, and those that waited
        assert found["200"] + found["429"] == 30


def outcomes(answers: list[Any]) -> Counter[str]:
    return Counter(headers(one)["status"] for one in answers)


@pytest.mark.timeout(180)
async def test_two_guides_share_a_group_and_a_restart_goes_on_after_what_was_answered(
    kafka_mock: KafkaMock, prefix: str
) -> None:
    settings, crawler = config(options(kafka_mock, prefix)), KafkaCrawler(kafka_mock.address, prefix)
    for number in range(40):  # before anybody is there, to all partitions
        await crawler.put("report", report(f"https://a.example/{number}"), key=f"c-{number}")
    async with opened(settings) as one, opened(settings) as other:

        async def fetches_of_both() -> list[int]:
            return [
                numbers["default"].fetches if "default" in (numbers := (await here.guide.stats()).crawls) else 0
                for here in (one, other)
            ]

        async def all_told() -> Any:
            counts = await fetches_of_both()
            return counts if sum(counts) >= 40 else None

        await until(all_told)
        for number in range(40, 80):
            await crawler.put("report", report(f"https://a.example/{number}"), key=f"c-{number}")
        answers = await crawler.read("answers.default", lambda found: len(names(found)) == 80)
        assert len(names(answers)) == 80
        assert min(await fetches_of_both()) > 0

        async def all_committed() -> bool:
            return await crawler.committed(prefix, "report") == 80

        await until(all_committed)
    async with opened(settings) as here:
        await crawler.put("report", report("https://b.example/"))
        await until(lambda: has_a_fetch(here))
        assert (await here.guide.stats()).crawls["default"].fetches == 1  # nothing of what was answered before


def names(answers: list[Any]) -> set[str]:
    return {headers(one)["id"] for one in answers}


async def test_what_was_not_acknowledged_comes_again_to_the_next_process_and_counts_once(
    kafka_mock: KafkaMock, prefix: str, tmp_path: Path
) -> None:
    """The first one ends between answers and acknowledgements; no message has an id of its own."""
    settings, forgotten = config(options(kafka_mock, prefix), tmp_path / "data"), set[str]()

    async def forget(received: Any) -> None:
        forgotten.add(received.delivery_id)

    crawler = KafkaCrawler(kafka_mock.address, prefix)
    async with opened(settings) as here:
        answering = here.door.buses[0]._answering
        assert answering is not None
        answering._connection.done = forget  # type: ignore[method-assign]
        await crawler.put("next", ask(**seeds(*PAGES)))
        await crawler.put("report", report("https://told.example/"))
        await until(lambda: len(forgotten) == 2)
    async with opened(settings) as here:
        answers = await crawler.read("answers.default", partial(as_many, 4))
        assert len(names(answers)) == len({one.value() for one in answers}) == 2
        numbers = (await here.guide.stats()).crawls["default"]
        assert (numbers.fetches, numbers.asks, numbers.leased) == (1, 1, 3)


@pytest.mark.timeout(180)
async def test_a_cluster_that_hangs_under_load_loses_and_doubles_nothing(prefix: str, tmp_path: Path) -> None:
    mock = KafkaMock()
    try:
        async with opened(config(options(mock, prefix), tmp_path / "data")) as here:
            crawler = KafkaCrawler(mock.address, prefix)
            for number in range(30):
                await crawler.put("report", report(f"https://q.example/{number}", report_id=f"q-{number}"))
            mock.hold()
            for number in range(30):
                message = report(f"https://d.example/{number}", report_id=f"d-{number}")
                await here.guide.tell(wire.convert(message, ReportMessage))
            await until(lambda: here.service.bus_figures()["bus_spool_bytes"])
            mock.go_on()
            answers = await crawler.read("answers.default", lambda found: len(names(found)) == 30, 60.0)
            assert {headers(one)["request-id"] for one in answers} == {f"q-{number}" for number in range(30)}
            events = await crawler.read("events.default", lambda found: len(names(found)) == 61, 60.0)
            told = [json.loads(one.value()) for one in {headers(one)["id"]: one for one in events}.values()]
            urls = [fetch["url"] for one in told if one["event"] == "fetches" for fetch in one["fetches"]]
            assert len(urls) == len(set(urls)) == 60
            assert (await here.guide.stats()).crawls["default"].fetches == 60
    finally:
        mock.stop()


async def test_a_guide_begins_without_its_brokers() -> None:
    async with opened(config(BusOptions(kafka="127.0.0.1:9", prefix="x")), wait=False) as here:
        await here.guide.tell(wire.convert(report(PAGES[0]), ReportMessage))
        assert here.service.buses_away() == ["bus kafka"]
        await until(lambda: here.door.buses[0]._last_problem)


def test_a_partition_is_done_up_to_the_first_message_that_is_not() -> None:
    offsets, one = Offsets(), ("t", 0)
    for offset in (5, 6, 7):
        offsets.begun(one, offset)
    assert offsets.done(one, 6) == 5
    assert offsets.done(one, 5) == 7
    assert offsets.done(one, 7) == 8
    assert offsets.done(one, 7) is None
    offsets.begun(one, 8)
    offsets.forget(one)
    assert offsets.done(one, 8) is None


class Unreadable:
    """A message of librdkafka one of whose headers has a name that is not UTF-8."""

    def headers(self) -> Any:
        raise SystemError("returned a result with an exception set")


def test_headers_that_cannot_be_read_are_none() -> None:
    assert _pairs(Unreadable()) == []  # type: ignore[arg-type]  # all that is read of it
