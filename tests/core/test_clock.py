"""Time comes in by the door and never runs backwards."""

from __future__ import annotations

import time

import pytest

from crawlguide import testing
from crawlguide.core.clock import ManualClock, SystemClock, iso


class Times:
    """What the operating system says, under our control."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.monotonic = 1_000.0, 50.0
        monkeypatch.setattr(time, "time", lambda: self.wall)
        monkeypatch.setattr(time, "monotonic", lambda: self.monotonic)


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(monkeypatch)


def test_the_system_clock_starts_at_the_wall_clock(times: Times) -> None:
    assert SystemClock().now() == 1_000.0


def test_the_system_clock_moves_with_monotonic_time(times: Times) -> None:
    clock = SystemClock()
    times.monotonic += 2.5
    assert clock.now() == 1_002.5


def test_a_wall_clock_set_back_does_not_move_the_system_clock(times: Times) -> None:
    clock = SystemClock()
    times.wall -= 500.0
    assert clock.now() == 1_000.0


def test_a_wall_clock_set_back_before_a_restart_goes_on_from_the_last_persisted_instant(times: Times) -> None:
    assert SystemClock(last_persisted=1_400.0).now() == 1_400.0


def test_an_instant_persisted_long_ago_does_not_hold_the_clock_back(times: Times) -> None:
    assert SystemClock(last_persisted=400.0).now() == 1_000.0


def test_a_manual_clock_stands_still_by_itself() -> None:
    clock = ManualClock(7.0)
    assert (clock.now(), clock.now()) == (7.0, 7.0)


def test_a_manual_clock_moves_when_told_to() -> None:
    clock = ManualClock(7.0)
    clock.advance(0.5)
    assert clock.now() == 7.5


def test_a_manual_clock_refuses_to_run_backwards() -> None:
    with pytest.raises(ValueError, match="never runs backwards"):
        ManualClock().advance(-0.001)


def test_tests_outside_find_the_manual_clock_where_the_design_says() -> None:
    assert testing.ManualClock is ManualClock


def test_an_instant_is_written_in_utc_with_milliseconds() -> None:
    assert iso(1_762_179_581.5) == "2025-11-03T14:19:41.500Z"


def test_an_instant_is_written_in_utc_wherever_the_machine_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert iso(0.0) == "1970-01-01T00:00:00.000Z"
    finally:
        monkeypatch.undo()
        time.tzset()
