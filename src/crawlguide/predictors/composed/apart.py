"""A call that nobody waits for longer than it may take: it runs in a thread of its own, and is left behind."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Late(Exception):
    """It is still at it."""


class Apart:
    """One call at a time: as long as one is left behind there is no other.

    Python cannot stop it. A model that computes outside of Python, sleeps or waits leaves the interpreter to others;
    one that loops in Python takes turns with them until it ends.
    """

    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call
        self._thread: Thread | None = None

    def within(self, seconds: float, given: Any) -> Any:
        """What the call gives or raises; `Late` if it takes longer."""
        if self._thread is not None and self._thread.is_alive():
            raise Late
        box: list[tuple[Any, Exception | None]] = []
        self._thread = Thread(target=self._run, args=(given, box), daemon=True, name="predictor")
        self._thread.start()
        self._thread.join(seconds)
        if not box:
            raise Late
        found, raised = box[0]
        if raised is not None:
            raise raised
        return found

    def _run(self, given: Any, box: list[tuple[Any, Exception | None]]) -> None:
        try:
            box.append((self._call(given), None))
        except Exception as raised:  # noqa: BLE001 - whoever waits for it hears of it
            box.append((None, raised))
