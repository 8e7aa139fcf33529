"""Nothing of pages without end: calendars, sessions, orders of filters, paths that grow, copies under new addresses.

What the form of a URL alone says is dropped when it is found. What only experience tells is bounded by a budget for
each template: what is over it is passed over, and dropped once the template has shut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.patterns import Patterns
from crawlguide.core.recall import Recall
from crawlguide.policy.traps import lessons
from crawlguide.policy.traps.novelty import Novelty
from crawlguide.policy.traps.shape import Suspicion, suspicion
from crawlguide.policy.traps.sightings import Sightings
from crawlguide.policy.traps.templates import bare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.crawls import Definition
    from crawlguide.core.tables import F32, I32, Mask
    from crawlguide.core.types import Ask, Batch, Lesson

CERTAIN = 0.9  # from here on the form of a URL is enough
FIRST_CREDIBLE = 946_684_800.0  # a clock that stands before 2000 does not know the year


def score(urls: Sequence[str]) -> F32:
    """How likely each URL is part of a trap, from 0 to 1, by its form alone, judged today."""
    year = datetime.now(UTC).year
    return np.array([suspicion(addresses.canonical(url), year).much for url in urls], np.float32)


@dataclass
class Memory:
    """What one crawl has learned about templates. All of it is bounded; a guide that starts anew learns it anew."""

    novelty: Novelty = field(default_factory=Novelty)
    contents: Sightings = field(default_factory=Sightings)
    titles: Sightings = field(default_factory=Sightings)
    words: Sightings = field(default_factory=Sightings)
    forms: Sightings = field(default_factory=lambda: Sightings(1 << 18))
    numbers: Recall = field(default_factory=Recall)  # of templates, by URL
    shut: set[str] = field(default_factory=set)  # hosts of which a template has shut
    at: float = 0.0  # the newest instant it heard of

    def number(self, queue: str, url: str) -> int:
        return self.novelty.number(queue, url, self.shape(url).much)

    def shut_out(self, queue: str, url: str) -> str | None:
        """What is to be said of a URL whose template has shut; None if it has not."""
        number = self.number(queue, url)
        return self.novelty.words(number) if self.novelty.left(np.array([number], np.int32))[0] <= 0 else None

    def shape(self, url: str) -> Suspicion:
        year = datetime.fromtimestamp(self.at, UTC).year if self.at > FIRST_CREDIBLE else None
        return suspicion(url, year)


@dataclass(frozen=True)
class Off:
    """The crawl does not want it."""

    name: str = lessons.NAME
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:  # noqa: ARG002 - every filter is given the ask
        return np.ones(len(batch), np.bool_)

    def why(self, batch: Batch, ask: Ask) -> str:  # noqa: ARG002
        return "policy.traps is off"


@dataclass
class Traps:
    patterns: Patterns
    memory: Memory = field(default_factory=Memory)
    name: str = lessons.NAME
    refusal: str = "shut"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        self.memory.at = max(self.memory.at, ask.at)
        numbers = self._numbers(batch)
        return self.memory.novelty.chosen(numbers) | ~np.isnan(
            batch.given
        )  # who sets a priority by hand knows what it is for

    def shut(self, batch: Batch) -> Mask:
        """Rows whose template has used up its budget, so that no answer will hold them."""
        closed: Mask = self.memory.novelty.left(self._numbers(batch)) <= 0
        self.memory.shut.update(batch.hosts.name[np.unique(batch.host[closed])].tolist())
        return closed

    def sight(self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str]) -> list[str | None]:  # noqa: ARG002
        """Why each URL is dropped when it is found; None: it is not."""
        return [self._certain(queue, url) for queue, url in zip(queues, urls, strict=True)]

    def _certain(self, queue: str, url: str) -> str | None:
        memory = self.memory
        found = memory.shape(url)
        if found.much >= CERTAIN:
            return found.why
        if pattern := self.patterns.found(url):
            return f"policy.trap_patterns holds {self.patterns.texts[pattern[0]]!r}"
        form = bare(url)
        if memory.forms.met(form, addresses.identity(url, queue)) and form != url:
            return f"it shows the same as another form of {form}"
        return memory.shut_out(queue, url) if queue in memory.shut else None

    def learn(self, lesson: Lesson) -> None:
        lessons.heard(self.memory, lesson)

    def inherit(self, before: Traps) -> None:
        """Go on with what another filter of the crawl has learned."""
        self.memory = before.memory

    def why(self, batch: Batch, ask: Ask) -> str:  # noqa: ARG002 - every filter is given the ask
        if self.memory is None:
            return "policy.traps is off"
        url, queue = batch.url.tolist()[0], batch.hosts.name.tolist()[0]
        number = self.memory.number(queue, url)
        certain = self._certain(queue, url)
        return certain or self.memory.shape(url).why or self.memory.novelty.words(number)

    def _numbers(self, batch: Batch) -> I32:
        """The account of each row's template; a text is read only for rows that were not looked at lately."""
        memory = self.memory
        numbers, new = memory.numbers.find(batch.id)
        if len(new):
            queues = batch.hosts.name[batch.host[new]].tolist()
            found = map(memory.number, queues, batch.url[new].tolist())
            numbers[new] = np.fromiter(found, np.float64, len(new))
            memory.numbers.put(batch.id[new], numbers[new])
        return numbers.astype(np.int32)


def build(definition: Definition) -> Traps | Off:
    policy = definition.policy
    patterns = Patterns(policy.trap_patterns, "policy.trap_patterns")  # wrong ones are refused in any case
    return Traps(patterns) if policy.traps else Off()
