"""`make demo` shows what it promises: a guide, two crawlers that keep its pace, and more found than chance would."""

from __future__ import annotations

import re

from tests.making import make

FETCHES = 60


def test_the_demo_finds_more_than_chance_and_keeps_the_pace() -> None:
    said = make("demo", "QUICK=1").replace("\n", " ")
    numbers = r"(\d+) % of them about databases. (\d+) fetched, \d+ judged on topic: a harvest of (\d+) %."
    share, fetched, harvest = map(int, re.findall(numbers, said)[0])
    assert FETCHES <= fetched <= FETCHES + 10  # two crawlers hold five each when it is spent
    assert harvest > share
    gap, asked = map(int, re.findall(r"one site: (\d+) ms .asked for: (\d+) ms", said)[0])
    assert gap >= asked - 10  # measured where requests arrive
