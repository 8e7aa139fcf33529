"""Politeness of a whole fleet, measured at the hosts: `make politeness` in its short form."""

from __future__ import annotations

import pytest

from tests.making import make
from tests.politeness import web
from tests.politeness.crawlers import Start
from tests.politeness.judged import judged
from tests.politeness.trial import holds


@pytest.mark.timeout(400)
@pytest.mark.parametrize("trial", ["usual", "killed", "strict-killed"])
def test_no_host_is_asked_too_early_and_hardly_a_slot_is_lost(trial: str) -> None:
    assert f"ok     {trial}: " in make("politeness", "QUICK=1", f"TRIALS={trial}")


def test_a_gap_that_is_too_short_is_noticed_unless_a_crawler_was_late() -> None:
    (host,) = hosts = web.hosts(80, 1)
    seen = [(host.address, f"/{number}", number * host.delay_s) for number in range(5)]
    assert judged(hosts, seen, {}, 1.0).short_s == pytest.approx(0.0)
    early = [*seen[:4], (host.address, "/4", 4 * host.delay_s - 0.2)]
    found = judged(hosts, early, {}, 1.0)
    assert found.short_s == pytest.approx(0.2)
    assert not holds(found, strict=False)
    late = judged(hosts, early, {f"{host.url}/3": Start(0.2, 0.0)}, 1.0)
    assert late.late == 1
    assert late.short_s == pytest.approx(0.0)
    assert late.unexplained_s == pytest.approx(0.0)


def test_slots_that_nobody_used_are_noticed() -> None:
    (host,) = hosts = web.hosts(80, 1)
    seen = [(host.address, f"/{number}", number * host.delay_s) for number in range(0, 40, 2)]
    assert judged(hosts, seen, {}, 40 * host.delay_s).utilisation == pytest.approx(0.5, abs=0.02)
