"""`make kernels` leaves nothing to compile for those who have to be in time, and a guide loads what it needs alone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from crawlguide.core.compiling import PACKAGE

if TYPE_CHECKING:
    from pathlib import Path

ALL = """
from importlib import import_module
from crawlguide.core import kernels
from crawlguide.core.compiling import kernel_modules

made, compiled = [], kernels._compiled
kernels._compiled = lambda *words, **more: made.append(compiled(*words, **more)) or made[-1]
for name in kernel_modules():
    import_module(name)
fixed = [one for one in made if one.nopython_signatures and not one._can_compile]
print(len(fixed), sum(bool(one.stats.cache_hits) for one in fixed))
"""

OPENED = """
import sys
from crawlguide.core.compiling import kernel_modules, needed_by
from crawlguide.core.config import Config
from crawlguide.gateway import serve
from crawlguide.gateway.opening import open_guide

open_guide(sys.argv[1], Config())
loaded = set(kernel_modules()) & set(sys.modules)
print(sorted(loaded - set(needed_by(Config()))), sorted(set(needed_by(Config())) - loaded))
"""


def imported() -> list[int]:
    """How many kernels there are, and how many came out of what was kept."""
    command = [sys.executable, "-c", ALL]
    ran = subprocess.run(command, cwd=PACKAGE.parents[1], capture_output=True, text=True, timeout=600, check=True)
    return [int(word) for word in ran.stdout.split()]


@pytest.mark.timeout(1_200)
def test_every_kernel_is_kept_once_all_modules_with_kernels_were_imported() -> None:
    written = sum(path.read_text().count("\n@kernel(") for path in PACKAGE.rglob("*.py"))
    assert written > 50
    assert imported() == [written, written] or imported() == [written, written]  # the first may have compiled some


@pytest.mark.timeout(600)
def test_a_guide_loads_the_modules_that_were_compiled_for_it_and_no_others(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPENED, str(tmp_path / "data")]
    ran = subprocess.run(command, cwd=PACKAGE.parents[1], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[] ['crawlguide.gateway.grpc.counting']"  # a door that is closed
