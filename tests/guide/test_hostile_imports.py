"""Lines of an import that no export wrote: each is left out with a reason, and the crawl goes on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.guide.crawl.transfer import exported, imported
from crawlguide.guide.explain import explain

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide

CRAWL, OTHER = Crawl("default", "default"), Crawl("default", "other")
STATES = ("queued", "done", "dropped")
NUMBERS = (
    "priority", "given", "relevance", "discovered", "fetched", "due", "parent_sum", "parent_best", "depth", "max_depth",
    "status", "tries", "parents",
)  # fmt: skip
WRONG = ("1e18", "-1e18", "1e308", "1e999", "NaN", "-Infinity", "9" * 400, "true", '"3"', "[]", "{}", "-2e9")
EXTREME = ("0", "1", "-1", "0.5", "255", "999", "32767", "1e6", "1e9", "1e11", "1e12", "1e-320", "null", "2147483647")
LEVELS = (31, 40, 100, 900, 1_100, 10_000, 100_000)


def url_line(number: int, field: str, value: str) -> bytes:
    return f'{{"url": "https://a.org/{number}", "state": "{STATES[number % 3]}", "{field}": {value}}}'.encode()


async def taken(guide: LocalGuide, lines: list[bytes]) -> int:
    """Import them one by one: how many were of use. Each of the others is one skipped line with a reason."""
    count = 0
    for line in lines:
        done = await imported(guide, CRAWL, [line])
        assert done.lines + len(done.skipped) == 1
        assert all(reason.startswith("line 1: ") and len(reason) > 15 for reason in done.skipped)
        count += done.lines
    return count


async def check_all_doors(guide: LocalGuide) -> None:
    """Whatever shows a URL still does."""
    records, _ = await guide.store.scan(CRAWL, None, None, 10_000, None)
    lines = b"".join([part async for part in exported(guide, CRAWL)]).splitlines()
    assert len(lines) == len(records) + 1
    for record in records:
        msgspec.json.encode(record)
        msgspec.json.encode(await explain(guide, CRAWL, record.url))
    answer = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(100)))
    assert msgspec.json.decode(msgspec.json.encode(answer))
    await guide.upkeep()
    assert (await guide.stats(name="default")).crawls["default"].state != "paused"


async def guide_at(place: Path | str) -> LocalGuide:
    guide = open_guide(place, Config(), ManualClock())
    await guide.define(CRAWL, Definition())
    return guide


async def test_numbers_out_of_all_bounds_are_left_out() -> None:
    guide = await guide_at(MEMORY)
    lines = [url_line(number, name, value) for number, value in enumerate(WRONG) for name in NUMBERS]
    assert await taken(guide, lines) == 0
    await check_all_doors(guide)
    await guide.close()


async def test_numbers_at_the_bounds_break_nothing_not_even_after_a_restart(tmp_path: Path) -> None:
    guide = await guide_at(tmp_path / "data")
    cases = [(name, value) for name in NUMBERS for value in EXTREME]
    lines = [url_line(number, name, value) for number, (name, value) in enumerate(cases)]
    assert 0 < await taken(guide, lines) < len(lines)
    await guide.close()
    guide = await guide_at(tmp_path / "data")
    await check_all_doors(guide)
    await guide.close()


@pytest.mark.parametrize("levels", LEVELS)
async def test_metadata_that_nests_too_deep_is_left_out(levels: int) -> None:
    guide = await guide_at(MEMORY)
    nested = ['{"a": ' * levels + "1" + "}" * levels, f'{{"a": {"[" * levels}{"]" * levels}}}']
    pages = [f'{{"page": "https://a.org/", "links": {"[" * levels}{"]" * levels}}}'.encode()]
    assert await taken(guide, [url_line(0, "metadata", value) for value in nested] + pages) == 0
    await check_all_doors(guide)
    await guide.close()


async def test_metadata_as_deep_as_any_message_is_taken_and_handed_out() -> None:
    guide = await guide_at(MEMORY)
    assert await taken(guide, [url_line(0, "metadata", '{"a": ' * 29 + "1" + "}" * 29)]) == 1
    await check_all_doors(guide)
    await guide.close()


async def test_a_definition_that_nests_too_deep_ends_the_import() -> None:
    guide = open_guide(MEMORY, Config(), ManualClock())
    for levels in LEVELS[-3:]:
        strategy = f'{{"kind": {"[" * levels}{"]" * levels}}}'
        with pytest.raises(MalformedRequest, match="definition"):
            await imported(guide, CRAWL, [f'{{"crawl": "a", "definition": {{"strategy": {strategy}}}}}'.encode()])
    assert not await guide.crawls.names("default")
    await guide.close()


async def test_lines_that_are_nothing_at_all_are_left_out() -> None:
    guide = await guide_at(MEMORY)
    lines = [
        b"null", b"[]", b"1", b'"x"', b"\xff", b"{", b"[" * 100_000, b'{"url": 1}', b'{"url": "https://a.org/\\ud800"}',
        b'{"url": "https://a.org/\xff", "state": "queued"}', b'{"url": "https://a.org/", "state": "leased"}',
        b'{"page": "https://a.org/", "links": [{"url": "https://b.org/", "position": 1e18}]}',
        b'{"page": "https://a.org/", "links": [{"url": "https://b.org/", "position": -9999999999}]}',
        b'{"url": "https://a.org/", "state": "dropped", "reason": "' + b"x" * 300 + b'"}',
        b'{"url": "https://a.org/", "state": "dropped", "reason": "\\ud800"}',
    ]  # fmt: skip
    assert await taken(guide, lines) == 0
    await check_all_doors(guide)
    await guide.close()


@pytest.mark.parametrize("within", [",".join(["[]"] * 1_000_000), ",".join(["[" * 26 + "]" * 26] * 60_000)])
async def test_a_line_of_a_million_lists_is_left_out_before_they_are_made(within: str) -> None:
    """Four seconds went by in which nobody else was served."""
    guide = await guide_at(MEMORY)
    began = time.thread_time()
    assert await taken(guide, [url_line(0, "metadata", f'{{"a": [{within}]}}')]) == 0
    strategy = f'{{"kind": "layered", "a": [{within}]}}'
    with pytest.raises(MalformedRequest, match="expected at most 100000 lists and objects"):
        await imported(guide, OTHER, [f'{{"crawl": "a", "definition": {{"strategy": {strategy}}}}}'.encode()])
    assert time.thread_time() - began < 0.3
    await guide.close()


async def test_of_very_many_lines_of_no_use_the_first_hundred_are_named_and_all_counted() -> None:
    guide = open_guide(MEMORY, Config(), ManualClock(1_000.0))
    await guide.define(CRAWL, Definition())
    done = await imported(guide, CRAWL, [b"{}"] * 5_000)
    assert (len(done.skipped), done.skipped_lines) == (100, 5_000)
    await guide.close()
