"""An answer that reached nobody is withdrawn, unless whoever asked again has it by now."""

from __future__ import annotations

from typing import Any

from crawlguide.core.config import Config
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Context
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.testing import ManualClock

PAGES = [f"https://h{number}.example/" for number in range(4)]
ASK = AskMessage(VERSION, "c-1", BudgetMessage(3), request_id="a", context=Context(seed_urls=PAGES))


async def leased(guide: Any) -> int:
    return int((await guide.stats()).crawls["default"].leased)


async def test_what_nobody_waits_for_is_assigned_to_the_next() -> None:
    guide = open_guide(MEMORY, Config(), ManualClock())
    advice = await guide.ask(ASK)
    await guide.withdraw(ASK, advice)
    assert await leased(guide) == 0
    assert len((await guide.ask(ASK)).assigned_urls) == len(advice.assigned_urls)
    assert await leased(guide) == len(advice.assigned_urls) > 0
    await guide.close()


async def test_what_was_given_again_meanwhile_stays_leased() -> None:
    """A deadline passes, the crawler asks again at once and gets the same answer: that one holds."""
    guide = open_guide(MEMORY, Config(), ManualClock())
    first = await guide.ask(ASK)
    again = await guide.ask(ASK)
    await guide.withdraw(ASK, first)
    assert again.assigned_urls
    assert await leased(guide) == len(again.assigned_urls)
    await guide.close()
