"""Texts from anywhere, as they may stand in a line for people."""

from __future__ import annotations

import pytest

from crawlguide.core.telemetry import printable
from crawlguide.gateway.dashboard.formatting import span, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain – Ünïcode 漢字", "plain – Ünïcode 漢字"),
        ("a\u00a0b\u3000c", "a b c"),
        (f"in {span(3.0)}", "in 3.0 s"),
        ("red\x1b[31m", r"red\x1b[31m"),
        ("two\nlines\u2028three", r"two\nlines\u2028three"),
        ("turned\u202e", r"turned\u202e"),
    ],
)
def test_nothing_moves_the_cursor_and_spaces_are_spaces(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_what_turns_the_direction_of_a_page_is_seen() -> None:
    assert visible("moc.\u202eexample\u2066.\x07") == "moc.\ufffdexample\ufffd.\u2407"
