"""The script that counts what one ask and one tell pass through."""

from __future__ import annotations

from scripts.trace import trace


def test_one_ask_and_one_tell_can_be_traced() -> None:
    asked, told = trace()
    assert ("/guide/local.py", "LocalGuide.ask") in asked.functions
    assert ("/guide/local.py", "LocalGuide.tell") in told.functions
    assert len(asked.files) < 80
    assert len(told.files) < 90
