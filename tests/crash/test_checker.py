"""The checker itself: histories with a broken promise must be noticed, and those without one must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crash import check_states, checker, wire
from tests.crash.builders import (
    NOON,
    OTHER,
    PAGE,
    asked,
    crawled,
    fetched,
    operation,
    refused,
    released,
    told,
)
from tests.crash.final import Crawled, Known
from tests.crash.history import Note, Ok
from tests.crash.operators import MAIN

if TYPE_CHECKING:
    from tests.crash.history import Operation


def broken(*operations: Operation, final: Crawled | None, notes: tuple[Note, ...] = ()) -> list[str]:
    """What the checker says; None: the crawl is not there at the end."""
    found = checker.check(operations, notes, {} if final is None else {MAIN: final})
    return [str(violation) for violation in found]


@pytest.fixture
def report() -> Operation:
    return told("t1", NOON, fetched(PAGE, OTHER))


def test_a_kept_promise_is_none_broken(report: Operation) -> None:
    assert not broken(report, final=crawled({PAGE: "done", OTHER: "queued"}))


@pytest.mark.parametrize("state", ["queued", "leased", "dropped"])
def test_a_page_that_is_not_done_any_more_is_noticed(report: Operation, state: str) -> None:
    (said,) = broken(report, final=crawled({PAGE: state, OTHER: "queued"}, fetches=1))
    assert said == f"I1: t1: {PAGE} was told and acknowledged, but is {state} at the end"


def test_a_lost_link_is_noticed(report: Operation) -> None:
    (said,) = broken(report, final=crawled({PAGE: "done"}))
    assert said.startswith("I1: t1: 1 URLs of an acknowledged call are lost")


def test_a_lost_page_in_the_history_of_an_ask_is_noticed() -> None:
    context = {"recent_history": [fetched(PAGE)]}
    ask = operation(wire.ask("a1", MAIN, "c1", {"timeout_ms": 1}, context), NOON, {"assigned_urls": []})
    assert not broken(ask, final=crawled({PAGE: "done"}))
    assert broken(ask, final=crawled({}))


def test_a_lost_seed_is_noticed() -> None:
    seeds = operation(wire.seed("s1", MAIN, [PAGE]), NOON, {"accepted": 1})
    assert broken(seeds, final=crawled({})) == [f"I1: s1: 1 acknowledged seeds are lost: {PAGE}"]


@pytest.mark.parametrize("counted", [0, 2])
def test_a_fetch_counted_never_or_twice_is_noticed(report: Operation, counted: int) -> None:
    said = broken(report, final=crawled({PAGE: "done", OTHER: "queued"}, fetches=counted))
    assert said == [f"I1: {MAIN}: fetches is {counted}, expected 1 to 1"]


@pytest.mark.parametrize("there", [{PAGE: "done", OTHER: "queued"}, {}])
def test_a_report_without_answer_may_be_there_or_not(there: dict[str, str]) -> None:
    assert not broken(told("t1", NOON, fetched(PAGE, OTHER), known=False), final=crawled(there))


def test_two_answers_to_one_report_are_noticed(report: Operation) -> None:
    report.answers.append(Ok("t1", NOON + 1, report.answers[0].answer | {"accepted": 0}))
    (said,) = broken(report, final=crawled({PAGE: "done", OTHER: "queued"}))
    assert "answered in 2 ways" in said


def called_a_duplicate(report: Operation) -> Operation:
    report.answers[0].answer["results"][0] |= {"status": "skip", "reason": "duplicate"}
    return report


def test_a_report_told_once_is_no_duplicate() -> None:
    report = called_a_duplicate(told("t1", NOON, fetched(PAGE)))
    assert broken(report, final=crawled({PAGE: "done"})) == [f"I1: t1: {PAGE} was told once and called a duplicate"]
    report.unknowns.extend(told("t1", NOON - 1, fetched(PAGE), known=False).unknowns)
    assert not broken(report, final=crawled({PAGE: "done"}))


def test_the_same_fetch_in_two_reports_is_accepted_once() -> None:
    first, second = (told(name, at, fetched(PAGE, fetch_time="noon")) for name, at in (("t1", NOON), ("t2", NOON + 1)))
    said = broken(first, second, final=crawled({PAGE: "done"}))
    assert said == [f"I1: t2: {PAGE} was told before, and accepted again"]
    assert not broken(first, called_a_duplicate(second), final=crawled({PAGE: "done"}))
    assert "expected 1 to 1" in broken(first, second, final=crawled({PAGE: "done"}, fetches=2))[-1]


def test_refusals_and_faults_are_noticed(report: Operation) -> None:
    end = crawled({PAGE: "done", OTHER: "queued"})
    assert "refused with 409" in broken(refused(report, 409), final=end)[0]


def test_a_second_lease_while_the_first_runs_is_noticed() -> None:
    first, second = asked("a1", NOON, PAGE), asked("a2", NOON + 24.9, PAGE, client="c2")
    (said,) = broken(first, second, final=crawled({PAGE: "leased"}, discovered=1))[:1]
    assert said == f"I2: {PAGE} was given to a1 and a2, 0.100 s before the first lease ended"


def leases(*between: Operation, again_after_s: float = 1.0) -> list[str]:
    """One page given out twice, with something between; only what concerns leases."""
    first, second = asked("a1", NOON, PAGE), asked("a2", NOON + again_after_s, PAGE, client="c2")
    said = broken(first, *between, second, final=crawled({PAGE: "leased"}))
    return [violation for violation in said if violation.startswith("I2")]


def test_a_lease_that_ended_may_be_followed_by_another() -> None:
    assert not leases(again_after_s=25.0)
    assert not leases(told("t1", NOON + 0.5, released(PAGE)))
    assert not leases(told("t1", NOON + 0.5, released(PAGE), known=False))
    assert not leases(told("t1", NOON + 0.5, fetched(PAGE, status=503)))


def test_only_its_holder_in_time_and_unjudged_ends_a_lease() -> None:
    assert leases(told("t1", NOON + 0.5, released(PAGE), client="c3"))
    assert leases(told("t1", NOON + 2.0, released(PAGE)))
    assert leases(told("t1", NOON + 0.5, released(OTHER)))
    assert leases(told("t1", NOON + 0.5, fetched(PAGE)))


def test_a_page_given_out_after_it_was_done_is_noticed() -> None:
    said = broken(told("t1", NOON, fetched(PAGE)), asked("a1", NOON + 1, PAGE), final=crawled({PAGE: "done"}))
    assert said == [f"I2: {PAGE} was given to a1 0.990 s after it was acknowledged done"]


def test_a_lease_that_was_forgotten_is_noticed() -> None:
    ask, back = asked("a1", NOON, PAGE), told("t1", NOON + 1, released(PAGE))
    back.answers[0].answer["results"][0] |= {"status": "skip", "reason": "not_leased"}
    (said,) = broken(ask, back, final=crawled({PAGE: "queued"}, discovered=1))[:1]
    assert said == f"I2: t1: the lease of {PAGE} was given back in time, but was forgotten"
    other = told("t0", NOON + 0.5, fetched(PAGE), client="c2")
    assert not any("forgotten" in said for said in broken(ask, other, back, final=crawled({PAGE: "done"})))


def pace(*asks: Operation) -> list[str]:
    said = broken(*asks, final=crawled({PAGE: "leased", OTHER: "leased"}))
    return [violation for violation in said if violation.startswith("I3")]


def test_two_starts_on_one_host_too_close_are_noticed() -> None:
    assert pace(asked("a1", NOON, PAGE), asked("a2", NOON + 0.03, OTHER, client="c2"))
    assert pace(asked("a1", NOON, PAGE, OTHER))
    assert pace(asked("a1", NOON, PAGE, wait_ms=100), asked("a2", NOON + 0.1, OTHER))


def test_starts_a_delay_apart_are_polite() -> None:
    assert not pace(asked("a1", NOON, PAGE), asked("a2", NOON + 0.05, OTHER))
    assert not pace(asked("a1", NOON, PAGE), asked("a2", NOON, OTHER, wait_ms=50))
    assert not pace(asked("a1", NOON, PAGE), asked("a2", NOON, "https://h2.fast2.example/p/1"))


def test_slow_hosts_keep_their_own_delay() -> None:
    first, second = "https://h100.slow2.example/p/1", "https://h100.slow2.example/p/2"
    assert pace(asked("a1", NOON, first), asked("a2", NOON + 0.9, second))
    assert not pace(asked("a1", NOON, first), asked("a2", NOON + 1.0, second))


def test_a_start_before_retry_after_is_over_is_noticed() -> None:
    busy = told("t1", NOON, fetched(PAGE, status=429, retry_after_s=4.0))
    assert pace(busy, asked("a1", NOON + 1.0, OTHER, wait_ms=2_500))
    assert not pace(busy, asked("a1", NOON + 1.0, OTHER, wait_ms=3_000))


def test_a_clock_that_jumps_ahead_does_not_excuse_an_early_start() -> None:
    (said,) = pace(asked("a1", NOON, PAGE), asked("a2", NOON + 0.02, OTHER, ahead_s=60.0))
    assert said.endswith("by the clients' clock")


def test_a_clock_that_goes_back_is_noticed() -> None:
    (said,) = pace(asked("a1", NOON, PAGE), asked("a2", NOON + 1, OTHER, ahead_s=-5.0))
    assert said == "I3: a2: the server's clock went back by 4.000 s"


def states(final: Crawled) -> list[str]:
    report = told("t1", NOON, fetched(PAGE, OTHER))
    return [said for said in broken(report, final=final) if said.startswith("I5")]


def test_numbers_that_do_not_add_up_are_noticed() -> None:
    assert not states(crawled({PAGE: "done", OTHER: "queued"}))
    assert "the number says 3" in states(crawled({PAGE: "done", OTHER: "queued"}, queued=3))[0]
    assert "were discovered" in states(crawled({PAGE: "done", OTHER: "queued"}, discovered=5))[0]


def test_a_url_that_is_there_twice_or_from_nowhere_is_noticed() -> None:
    end = crawled({PAGE: "done", OTHER: "queued"}, queued=2, discovered=3)
    twice = Crawled(end.definition, end.numbers, [*(end.urls or ()), Known(OTHER, "queued")])
    assert states(twice) == [f"I5: {MAIN}: {OTHER} is there 2 times"]
    assert "nobody ever mentioned it" in states(crawled({PAGE: "done", OTHER: "queued", PAGE + "x": "queued"}))[0]
    assert "nobody ever told so" in states(crawled({PAGE: "done", OTHER: "done"}))[0]


def test_a_lost_crawl_definition_pause_or_deletion_is_noticed() -> None:
    define = operation(wire.define("d1", MAIN, {"goal": {"topic": "new"}}), NOON, {})
    pause, delete = operation(wire.pause("d2", MAIN), NOON + 1, {}), operation(wire.delete("d3", MAIN), NOON + 2, {})
    assert not broken(define, pause, final=crawled({}, "new", state="paused"))
    assert "at the end it is 'old'" in broken(define, final=crawled({}, "old"))[0]
    assert "expected paused" in broken(define, pause, final=crawled({}, "new"))[0]
    assert "is not there" in broken(define, final=None)[0]
    assert "it is there at the end" in broken(define, delete, final=crawled({}, "new"))[0]
    assert not broken(define, delete, final=None)


def test_what_is_given_out_in_a_pause_is_noticed() -> None:
    pause, ask = operation(wire.pause("d2", MAIN), NOON, {}), asked("a1", NOON + 1, PAGE)
    resume = operation(wire.resume("d3", MAIN), NOON + 2, {})
    said = broken(pause, ask, resume, final=crawled({PAGE: "leased"}))
    assert f"I5: {MAIN}: {PAGE} was given out while the crawl was paused" in said


def test_a_fleet_that_stands_still_after_the_kills_is_noticed(report: Operation) -> None:
    end = crawled({PAGE: "done", OTHER: "queued"})
    (said,) = broken(report, final=end, notes=(Note(NOON + 1, checker.HEALED),))
    assert said.startswith("I6")


def test_numbers_that_change_when_the_server_ends_are_noticed() -> None:
    live, stored = crawled({PAGE: "done"}), crawled({PAGE: "done"}, fetches=0)
    assert [str(said) for said in check_states.same({MAIN: live}, {MAIN: stored})] == [
        f"I5: {MAIN}: fetches was 1 when the server ended, its folder says 0"
    ]
