"""Who says which URLs are worth fetching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from crawlguide.core.crawls import Weights
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Also, Ask, Batch, Lesson, Sample


class Sampler(Protocol):
    """Many to some: which rows are worth a model pass."""

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample: ...


class Predictor(Protocol):
    """Some to values: the worth of fetching each row, in 0…1.

    The same function writes a row's priority at rest and its exact value in an answer, so it must depend on the
    columns of the batch alone, and, if it is a `Learner`, on what it heard. `version` names it in answers and logs.
    """

    @property
    def version(self) -> str: ...

    def predict(self, batch: Batch) -> F64: ...


@runtime_checkable
class Learner(Predictor, Protocol):
    """A predictor that hears what became of its advice. One that does not learn simply lacks these two methods.

    It may be asked about URLs it never heard of: they came by an import, or before it was built.
    """

    def given(self, batch: Batch) -> None:
        """These rows were just handed out, as they stood when it was decided: the one half of an example."""
        ...

    def learn(self, lesson: Lesson) -> U64 | None:
        """The other half: what was fetched and found. Returns URLs whose value changed besides those linked here.

        The URLs that a lesson's links lead to are ranked anew in any case. Of those returned the first 2 000 are, so
        that no tell costs more than it may; whoever has more keeps them for the next lesson.
        """
        ...


@runtime_checkable
class Explores(Protocol):
    """A predictor that also says what may be learned by fetching a row, and which rows to look at for that."""

    def explore(self, batch: Batch) -> F64:
        """What each row is worth beyond its value, in the same units; 0: nothing."""
        ...

    def also(self, ask: Ask, wanted: int) -> Also:
        """Of an answer of `wanted` URLs some may be others than the best: those to look at besides.

        Those that do not wait, or whose host may not be fetched now, are passed over.
        """
        ...

    def drawn(self, batch: Batch) -> F64:
        """1 for each row that goes before all others since it was drawn for this answer, else 0."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A predictor that can say what its opinion rests on."""

    def because(self, batch: Batch) -> list[str]:
        """What speaks for and against the first row, in words, the most telling first."""
        ...


class Strategy(Protocol):
    """A named composition of judges with the weights it wants unless the crawl says otherwise."""

    @property
    def sampler(self) -> Sampler: ...

    @property
    def predictor(self) -> Predictor: ...

    @property
    def weights(self) -> Weights: ...
