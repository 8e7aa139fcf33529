"""`make kernels` leaves nothing to compile for those who have to be in time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crawlguide.core.compiling import PACKAGE

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
