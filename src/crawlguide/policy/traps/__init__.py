"""Nothing of pages without end: calendars, sessions, orders of filters, paths that grow, copies under new addresses.

What the form of a URL alone says is dropped when it is found. What only experience tells is bounded by a budget for
each template: what is over it is passed over, and dropped once the template has shut.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.patterns import Patterns
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.disabled import Disabled
from crawlguide.policy.traps import kernels, lessons
from crawlguide.policy.traps.novelty import RECORD, KeptSightings, Novelty, Sightings
from crawlguide.policy.traps.reading import Reading, read
from crawlguide.policy.traps.shape import Suspicion, suspicion
from crawlguide.policy.traps.templates import bare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F32, I8, I32, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson

MOST_PROBES = 10_000  # on their way
CERTAIN = 0.9  # from here on the form of a URL is enough
BY_PATTERN, SHUT = 3, 4
REASONS = (
    None,
    "its form is that of a trap",
    "it shows the same as another",
    "policy.trap_patterns",
    "its template has shut",
)
NOTHING: tuple[dict[str, int], Reading] = {}, read([], None)
SHEETS = {"trap.acc": kernels.ACCOUNT, "trap.dup": RECORD, "trap.ttl": RECORD}
FIRST_CREDIBLE = 946_684_800.0  # a clock that stands before 2000 does not know the year


def score(urls: Sequence[str]) -> F32:
    """How likely each URL is part of a trap, from 0 to 1, by its form alone, judged today."""
    year = datetime.now(UTC).year
    found = [addresses.canonical(url) for url in urls]
    return read(found, year).much.astype(np.float32)


@dataclass
class TrapMemory:
    """What one crawl has learned about templates. All of it is bounded.

    Budgets, contents and titles are kept in the crawl's notebook; the rest is learned anew by a guide that starts anew.
    """

    novelty: Novelty = field(default_factory=Novelty)
    contents: KeptSightings = field(default_factory=KeptSightings)
    titles: KeptSightings = field(default_factory=KeptSightings)
    words: Sightings = field(default_factory=Sightings)
    forms: Sightings = field(default_factory=lambda: Sightings(1 << 18))
    numbers: ValueCache = field(default_factory=ValueCache)  # of templates, by URL
    sighted: tuple[dict[str, int], Reading] = field(default_factory=lambda: NOTHING)  # until a lesson comes of them
    shut: set[str] = field(default_factory=set)  # hosts of which a template has shut
    probes: set[int] = field(default_factory=set)  # URLs on their way whose templates rest
    at: float = 0.0  # the newest instant it heard of

    def read(self, urls: Sequence[str]) -> Reading:
        return read(urls, self.year())

    def read_again(self, urls: Sequence[str]) -> Reading:
        """The same of URLs that were mostly among the newest sighted ones."""
        rows, found = self.sighted
        try:
            return found.take([rows[url] for url in urls])
        except KeyError:
            return self.read(urls)

    def account(self, found: Reading) -> I32:
        """The accounts of URLs that were read."""
        return self.novelty.numbers(found.levels, found.much)

    def remember(self, ids: U64, found: Reading) -> None:
        """Keep the accounts that are open and do not change by these URLs, so that no ask has to read them."""
        numbers = self.novelty.settled(found.levels, found.much)
        if np.count_nonzero(numbers) < len(numbers):
            ids, numbers = ids[numbers > 0], numbers[numbers > 0]
        self.numbers.put(ids, numbers.astype(np.float64))

    def shut_out(self, found: Reading) -> Mask:
        """URLs whose template has shut for good."""
        return self.novelty.over_at_sight(found.levels, found.much)

    def judge(self, found: Reading, verdicts: I8) -> None:
        """Which URLs are traps by themselves: for what they look like, or since they show what another one shows."""
        forms = self.forms
        kernels.sight(found.much, found.bare, found.whole, found.clothed, CERTAIN, forms.keys, forms.owners, verdicts)

    def probe(self, ids: Sequence[int]) -> None:
        """These are given out although their templates rest."""
        if len(self.probes) > MOST_PROBES:
            self.probes.clear()
        self.probes.update(ids)

    def copied(self) -> TrapMemory:
        """For whoever only looks: what an ask reads and writes, apart from it."""
        forms, numbers = deepcopy((self.forms, self.numbers))
        return replace(self, novelty=self.novelty.copied(), forms=forms, numbers=numbers, probes=set(self.probes))

    def shape(self, url: str) -> Suspicion:
        return suspicion(url, self.year())

    def year(self) -> int | None:
        return datetime.fromtimestamp(self.at, UTC).year if self.at > FIRST_CREDIBLE else None


@dataclass
class Traps:
    label: ClassVar = "looks like a trap"
    reads: ClassVar = ("policy.traps", "policy.trap_patterns")

    patterns: Patterns
    memory: TrapMemory = field(default_factory=TrapMemory)
    kept: bool = False  # whether the memory is written into a notebook
    name: str = lessons.NAME
    refusal: str = "shut"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        if ask.looking:  # in a copy: no account is opened and no probe counted for it
            return replace(self, memory=self.memory.copied()).keep(batch, replace(ask, looking=False))
        self.memory.at = max(self.memory.at, ask.at)
        keep, probes = self.memory.novelty.chosen(self._numbers(batch), batch.manual_priority)
        if probes:
            self.memory.probe(batch.id[keep].tolist())
        return keep

    def shut(self, batch: Batch) -> Mask:
        """Rows whose template is over for good, so that no answer will hold them."""
        closed: Mask = self.memory.novelty.states(self._numbers(batch)) == kernels.IS_OVER
        self.memory.shut.update(batch.hosts.name[np.unique(batch.host[closed])].tolist())
        return closed

    def last(self, batch: Batch) -> Mask:
        """Rows whose template has used up its budget: they wait behind all others."""
        rests: Mask = self.memory.novelty.states(self._numbers(batch)) == kernels.RESTS
        return rests

    def sight(self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64) -> list[str | None]:
        """Why each URL is dropped when it is found, in short; None: it is not."""
        memory, verdicts = self.memory, np.zeros(len(urls), np.int8)
        found = memory.read(urls)
        memory.sighted = dict(zip(urls, range(len(urls)), strict=True)), found
        if self.patterns:
            verdicts[[bool(self.patterns.found(url)) for url in urls]] = BY_PATTERN
        memory.judge(found, verdicts)
        if memory.shut:
            there = [row for row, queue in enumerate(queues) if queue in memory.shut and not verdicts[row]]
            verdicts[there] = np.where(memory.shut_out(found.take(there)), SHUT, 0)
        return [REASONS[verdict] for verdict in verdicts.tolist()]

    def learn(self, lesson: Lesson) -> None:
        lessons.heard(self.memory, lesson)
        self.memory.sighted = NOTHING

    def remember(self, notebook: Notebook) -> None:
        """Go on with what lies in the crawl's notebook, and write there from now on."""
        sheets = (notebook.sheet(name, kind) for name, kind in SHEETS.items())
        accounts, contents, titles = sheets
        self.memory = TrapMemory(Novelty(accounts), KeptSightings(contents), KeptSightings(titles))
        self.kept = True

    def inherit(self, before: Traps) -> None:
        """Go on with what another filter of the crawl has learned, unless it lies in a notebook that is read anew."""
        if not self.kept or self.memory.novelty.sheet is before.memory.novelty.sheet:
            self.memory, self.kept = before.memory, before.kept

    def why(self, batch: Batch, ask: Ask) -> str:
        memory, url, queue = self.memory.copied(), batch.url.tolist()[0], batch.hosts.name.tolist()[0]
        shape, found, verdicts = memory.shape(url), memory.read([url]), np.zeros(1, np.int8)
        if shape.much >= CERTAIN:
            return shape.why
        if pattern := self.patterns.found(url):
            return f"policy.trap_patterns holds {self.patterns.texts[pattern[0]]!r}"
        memory.judge(found, verdicts)
        if verdicts[0]:
            return f"it shows the same as another form of {bare(url)}"
        number = int(memory.account(found)[0])
        shut = queue in memory.shut and memory.shut_out(found)[0]
        return memory.novelty.words(number) if shut or not shape.why else shape.why

    def _numbers(self, batch: Batch) -> I32:
        """The account of each row's template; a text is read only for rows that were not looked at lately."""
        memory = self.memory
        numbers, new = memory.numbers.find(batch.id)
        if len(new):
            numbers[new] = memory.account(memory.read(batch.url[new].tolist()))
            memory.numbers.put(batch.id[new], numbers[new])
        return numbers.astype(np.int32)


def build(definition: Definition) -> Traps | Disabled:
    policy = definition.policy
    patterns = Patterns(policy.trap_patterns, "policy.trap_patterns")  # wrong ones are refused in any case
    return Traps(patterns) if policy.traps else Disabled(lessons.NAME, "policy.traps is off")
