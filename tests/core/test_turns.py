"""Long work in turns: what others on the event loop wait for."""

from __future__ import annotations

import asyncio

from crawlguide.core.turns import let_others

MANY, PORTIONS = 50, 4


async def test_however_many_work_long_one_of_them_goes_on_in_each_turn_of_the_loop() -> None:
    at_once, turn = dict[int, int](), 0

    async def work() -> None:
        for _ in range(PORTIONS):
            await let_others()
            at_once[turn] = at_once.get(turn, 0) + 1

    working = asyncio.gather(*(work() for _ in range(MANY)))
    while not working.done():
        await asyncio.sleep(0)
        turn += 1
    assert sum(at_once.values()) == MANY * PORTIONS
    assert max(at_once.values()) <= 2  # one, and one that comes when nobody stands in line


async def test_all_come_to_an_end_although_some_leave_the_line() -> None:
    async def work() -> int:
        for _ in range(PORTIONS):
            await let_others()
        return 1

    working = [asyncio.create_task(work()) for _ in range(MANY)]
    for _ in range(8):
        await asyncio.sleep(0)
    for leaving in working[::2]:
        leaving.cancel()
    done = await asyncio.wait_for(asyncio.gather(*working, return_exceptions=True), 10)
    assert done.count(1) == MANY // 2
