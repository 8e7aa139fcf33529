"""Who says which URLs may not be fetched, and what else a filter may know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Hosts, Lesson


class Filter(Protocol):
    """Ranked rows to survivors. Rows arrive best first; a filter never revives a row and never reorders.

    `name` is the file's name, the key in `dropped` and, with `_ok`, the word in `filters_applied`.
    `refusal` says what a refusal means: "pass" (not in this answer), "defer" (not now), "withhold" (not this host for
    a while), "forbid" (never: the store remembers it as dropped) or "shut" (passed over, and dropped where it has
    shut for good) or "either" (of the refused rows some are deferred, and the others forbidden).
    """

    @property
    def name(self) -> str: ...

    @property
    def refusal(self) -> str: ...

    def keep(self, batch: Batch, ask: Ask) -> Mask: ...

    def why(self, batch: Batch, ask: Ask) -> str:
        """What a person is told about the verdict on a batch of one row."""
        ...


class Defers(Filter, Protocol):
    """A filter whose refusals are for now (`refusal` is "defer"): it says how long each row has to wait.

    One that also forbids (`refusal` is "either") says NaN for what it forbids.
    """

    def wait(self, batch: Batch, ask: Ask) -> F64: ...


class Withholds(Filter, Protocol):
    """A filter that refuses whole hosts (`refusal` is "withhold"): it says until when, NaN for not at all."""

    def until(self, hosts: Hosts, ask: Ask) -> F64: ...


class Shuts(Filter, Protocol):
    """A filter that learns what is not worth it (`refusal` is "shut"): of the refused rows some are dropped."""

    def shut(self, batch: Batch) -> Mask: ...


@runtime_checkable
class Rests(Shuts, Protocol):
    """One that also knows rows that are not worth it while there is anything else: they wait behind all others."""

    def last(self, batch: Batch) -> Mask: ...


@runtime_checkable
class Sees(Protocol):
    """A filter that can tell from a URL alone: what it refuses is dropped when it is found. Seeds are not judged."""

    @property
    def name(self) -> str: ...

    def sight(self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64) -> Sequence[str | None]:
        """Why each URL is dropped, found on a page of these queues ("": on none that is known); None: it is not.

        What is found out here may be remembered by id, so that no ask has to read the URL.
        """
        ...


@runtime_checkable
class Hears(Protocol):
    """A filter that learns from what was fetched and found."""

    @property
    def name(self) -> str: ...

    def learn(self, lesson: Lesson) -> None: ...

    def inherit(self, before: Any) -> None:
        """Go on with what the filter of the same name has learned before the crawl was defined anew."""
        ...
