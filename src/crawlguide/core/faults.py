"""Fault points: named places at which a test may kill the process.

CRAWLGUIDE_FAULTPOINT=after_write:3 ends the process when it passes `after_write` for the third time. Unset, a point
costs a comparison.
"""

from __future__ import annotations

import os

VARIABLE = "CRAWLGUIDE_FAULTPOINT"
KILLED = 137
POINTS = (
    "before_write",  # changed in memory, nothing written
    "after_write",  # written, not synced to the disk
    "after_sync",  # synced, not acknowledged
    "during_snapshot",
    "before_snapshot_end",  # all pieces written, the log not yet cut
    "after_snapshot_end",  # the log cut, its old part not yet deleted
)
_name, _, _count = os.environ.get(VARIABLE, "").partition(":")
_left = int(_count or 1)


def point(name: str) -> None:
    """Die here if a test asked for it."""
    if name == _name:
        _pass()


def _pass() -> None:
    global _left  # noqa: PLW0603 - one process dies once
    _left -= 1
    if _left <= 0:
        os._exit(KILLED)
