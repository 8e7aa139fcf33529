"""Places in a drawing: round ticks, and labels that do not lie on each other."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from crawlguide.gateway.dashboard.axes import ticks
from crawlguide.lab.report.charts import spaced_apart


@given(some.floats(-1e3, 1e3), some.floats(1e-3, 1e3), some.integers(1, 10))
def test_ticks_enclose_what_is_drawn_and_are_not_many(low: float, span: float, about: int) -> None:
    marks = ticks(low, low + span, about)
    assert marks[0] <= low + 1e-6 * span
    assert marks[-1] >= low + span - 1e-6 * span
    assert 2 <= len(marks) <= about + 3


def test_ticks_are_round() -> None:
    assert ticks(0, 0.47) == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert ticks(0, 2_000) == [0, 500, 1_000, 1_500, 2_000]
    assert ticks(-0.12, 0.3, 6) == [-0.2, -0.1, 0.0, 0.1, 0.2, 0.3]


@given(some.lists(some.floats(0, 400), max_size=40))
def test_labels_stand_apart_inside_and_in_order(wanted: list[float]) -> None:
    places = spaced_apart(wanted, 16, 0, 400)
    gap = min(16, 400 / max(1, len(wanted) - 1))
    placed = sorted(places)
    assert all(later - earlier >= gap - 0.2 for earlier, later in pairwise(placed))
    assert all(-0.1 <= place <= 400.1 for place in places)
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    assert [places[number] for number in order] == placed


def test_labels_with_room_stay_where_they_belong() -> None:
    assert spaced_apart([300, 10, 100], 16, 0, 400) == [300, 10, 100]
    assert spaced_apart([100, 100], 16, 0, 400) == [92, 108]
