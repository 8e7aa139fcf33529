"""Named places at which a test may let the process die, as if somebody had pulled it from under its feet.

CRAWLGUIDE_FAULTPOINT=after_write:3 ends the process at the third passing of `after_write`. Unset, a point costs a
comparison.
"""

from __future__ import annotations

import os

VARIABLE = "CRAWLGUIDE_FAULTPOINT"
KILLED = 137
POINTS = (
    "before_write",  # changed in memory, nothing written
    "after_write",  # in the operating system's hands, not on the disk
    "after_sync",  # on the disk, not acknowledged
    "during_snapshot",
    "before_snapshot_end",  # all pieces written, the log still begins at the old place
    "after_snapshot_end",  # the log begins anew, its old part not yet deleted
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
