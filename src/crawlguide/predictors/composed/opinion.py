"""What predictors say of a batch, alone or together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64
    from crawlguide.core.types import Batch
    from crawlguide.predictors.composed.part import Part


class Opinion(NamedTuple):
    """The value of each row, what may be learned by fetching it (None: nothing), and with which value it waits."""

    value: F64
    hope: F64 | None = None
    waits: F64 | None = None  # None: its value


class Member(Protocol):
    """One predictor behind its guard, or several that speak as one. They never raise."""

    @property
    def version(self) -> str: ...

    @property
    def parts(self) -> Sequence[Part]:
        """All predictors in it."""
        ...

    def judge(self, batch: Batch) -> Opinion | None:
        """For an answer, from all rows it is chosen from; None: nobody has anything to say now."""
        ...

    def rest(self, batch: Batch) -> Opinion | None:
        """For rows that wait, whatever stands beside them."""
        ...

    def speakers(self) -> list[Part]:
        """Those whose opinion counts now."""
        ...

    def troubles(self) -> list[str]:
        """Why others are passed over."""
        ...
