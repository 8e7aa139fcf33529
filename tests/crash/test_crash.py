"""What the server promised holds when it is killed: short forms of `kill` and `ordering`."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from crawlguide import Guide
from crawlguide.core.faults import POINTS
from tests.crash import chaos, ordering
from tests.crash.operators import STRATEGIES
from tests.crash.trial import Trial

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 5
ONE_BY_ONE, TOGETHER = 14, 16
SEED = 1

pytestmark = pytest.mark.timeout(900, func_only=True)  # ten seconds each on a quiet machine
traced = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed; `make test` installs it")


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """On a fresh machine the first guide compiles its kernels, which may take longer than all tests here."""
    with Guide.open(tmp_path_factory.mktemp("compiled")) as guide:
        for kind in ("layered", *STRATEGIES):
            guide.define(kind, {"strategy": {"kind": kind}})


async def test_a_killed_server_keeps_every_promise(tmp_path: Path) -> None:
    summary = await Trial(tmp_path, SEED).run(chaos.kills(KILLS))
    assert not summary.violations, summary
    assert summary.kills == KILLS
    assert summary.items > 100


async def test_a_server_that_dies_at_any_named_point_keeps_every_promise(tmp_path: Path) -> None:
    summary = await Trial(tmp_path, SEED, heal_s=0.5).run(chaos.points(POINTS))
    assert not summary.violations, summary
    assert summary.kills == len(POINTS)


async def test_a_server_that_forgets_is_noticed(tmp_path: Path) -> None:
    summary = await Trial(tmp_path, SEED, forgetful=True).run(chaos.kills(2))
    assert {"I1", "I2"} & {violation.invariant for violation in summary.violations}


@traced
async def test_no_ack_leaves_before_its_log_is_synced(tmp_path: Path) -> None:
    verdict = await ordering.run(tmp_path, ONE_BY_ONE, TOGETHER)
    assert verdict.good, verdict
    assert verdict.acks == ONE_BY_ONE + TOGETHER


@traced
async def test_every_ack_is_early_where_syncs_do_nothing(tmp_path: Path) -> None:
    verdict = await ordering.run(tmp_path, ONE_BY_ONE, TOGETHER, pretend=True)
    assert len(verdict.early) == ONE_BY_ONE + TOGETHER, verdict
