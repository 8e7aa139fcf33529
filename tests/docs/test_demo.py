"""`make demo`: two crawlers that share a guide keep its rules, and find more than breadth first."""

from __future__ import annotations

import re

import pytest

from tests.making import make


@pytest.mark.timeout(300)
def test_the_demo_finds_more_than_breadth_first_and_keeps_the_rules() -> None:
    said = make("demo", "QUICK=1")
    rows = re.findall(r"│ (guided|breadth)[^│]*│ +(\d+) │ +(\d+) │ +(\d+) │ +(\d+) │", said)
    (_, guided, relevant, forbidden, _), (_, plain, without, also_forbidden, _) = rows
    assert int(guided) > 30
    assert int(plain) == int(guided)
    assert int(relevant) > int(without)
    assert forbidden == also_forbidden == "0"
    assert "times as many relevant pages" in said
