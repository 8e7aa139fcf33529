"""No pages without end: calendars, sessions, sort orders, paths that grow, copies under new URLs.

What the form of a URL alone shows is dropped when the link is found. What only experience shows is bounded by a page
budget for each URL template: rows over the budget wait, and are dropped once the template is closed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from msgspec import Struct, msgpack

from crawlguide.core import urls as addresses
from crawlguide.core.kernels import f64s, i8s, kernel, nothing, one_f64, one_i64, u64s
from crawlguide.core.patterns import Patterns
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.disabled import Disabled
from crawlguide.policy.traps import evidence
from crawlguide.policy.traps.duplicates import RECORD, FirstOwners, StoredFirstOwners, owned_by_another
from crawlguide.policy.traps.evidence import NAME
from crawlguide.policy.traps.explain import normal_form, suspicion
from crawlguide.policy.traps.template_budgets import ACCOUNT, CLOSED, EXHAUSTED, TemplateBudgets
from crawlguide.policy.traps.url_scan import IS_VARIANT, NORMAL_FORM, WHOLE, UrlScan, scan_urls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F32, I8, I32, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson

MOST_PROBES = 10_000  # fetches on their way
CERTAIN = 0.9  # from this suspicion on the form of a URL is enough to drop it
PASSED, TRAP_FORM, VARIANT, BY_PATTERN, TEMPLATE_CLOSED = range(5)  # verdicts on a URL when it is found
REASONS = (
    None,
    "its form is that of a trap",
    "it shows the same as another",
    "policy.trap_patterns",
    "its template has shut",
)
SHEETS = {"trap.acc": ACCOUNT, "trap.dup": RECORD, "trap.ttl": RECORD}
FIRST_CREDIBLE = 946_684_800.0  # a clock that shows a time before 2000 does not know the year


def score(urls: Sequence[str]) -> F32:
    """How likely each URL is part of a trap, from 0 to 1, by its form alone, as of today."""
    year = datetime.now(UTC).year
    return scan_urls([addresses.canonical(url) for url in urls], year).suspicion.astype(np.float32)


class AtRest(Struct, array_like=True):
    """What is in no notebook, while the crawl is not used."""

    link_texts: bytes
    forms: bytes
    shut: list[str]
    probes: list[int]
    at: float


@dataclass
class TrapMemory:
    """What one crawl has learned about URL templates. All of it is bounded.

    Budgets, contents and titles are kept in the crawl's notebook; the rest is learned again after a restart.
    """

    novelty: TemplateBudgets = field(default_factory=TemplateBudgets)
    contents: StoredFirstOwners = field(default_factory=StoredFirstOwners)
    titles: StoredFirstOwners = field(default_factory=StoredFirstOwners)
    link_texts: FirstOwners = field(default_factory=FirstOwners)
    forms: FirstOwners = field(default_factory=lambda: FirstOwners(1 << 18))  # normal forms of URLs
    numbers: ValueCache = field(default_factory=ValueCache)  # of accounts, by URL
    latest: tuple[dict[str, int], UrlScan] | None = None  # the links found last, until a lesson came of them
    shut: set[str] = field(default_factory=set)  # hosts of which a template is closed
    probes: set[int] = field(default_factory=set)  # URLs on their way whose templates are exhausted
    at: float = 0.0  # the latest time it was told

    def scan(self, urls: Sequence[str]) -> UrlScan:
        return scan_urls(urls, self.year())

    def scan_again(self, urls: Sequence[str]) -> UrlScan:
        """The same for URLs that are usually among the links found last."""
        if self.latest is None:
            return self.scan(urls)
        rows, found = self.latest
        try:
            return found.take([rows[url] for url in urls])
        except KeyError:
            return self.scan(urls)

    def accounts(self, found: UrlScan) -> I32:
        """The account numbers of URLs that were scanned."""
        return self.novelty.numbers(found.budget_keys, found.suspicion)

    def cache_accounts(self, ids: U64, found: UrlScan) -> None:
        """Cache the accounts that are open and do not change by these URLs, so that no ask has to read their texts."""
        numbers = self.novelty.unchanged_numbers(found.budget_keys, found.suspicion)
        if np.count_nonzero(numbers) < len(numbers):
            ids, numbers = ids[numbers > 0], numbers[numbers > 0]
        self.numbers.put(ids, numbers.astype(np.float64))

    def closed(self, found: UrlScan) -> Mask:
        """URLs whose template is closed for good."""
        return self.novelty.closed_when_found(found.budget_keys, found.suspicion)

    def judge(self, found: UrlScan, verdicts: I8) -> None:
        """Which URLs are traps by themselves: for their form, or since they show what another one shows."""
        self.forms.expect(len(verdicts))
        judge_urls(
            found.suspicion, found.code(NORMAL_FORM), found.code(WHOLE), found.code(IS_VARIANT), CERTAIN,
            self.forms.keys, self.forms.owners, self.forms.slots, verdicts,
        )  # fmt: skip

    def probe(self, ids: Sequence[int]) -> None:
        """These are assigned although their templates are exhausted."""
        if len(self.probes) > MOST_PROBES:
            self.probes.clear()
        self.probes.update(ids)

    def year(self) -> int | None:
        return datetime.fromtimestamp(self.at, UTC).year if self.at > FIRST_CREDIBLE else None


@kernel(nothing(f64s, u64s, u64s, u64s, one_f64, u64s, u64s, one_i64, i8s))
def judge_urls(suspicion, normal_form, whole, is_variant, certain, keys, owners, slots, verdicts):  # type: ignore[no-untyped-def]
    """Rows that have a verdict keep it."""
    for row in range(len(suspicion)):
        if verdicts[row] != PASSED:
            continue
        if suspicion[row] >= certain:
            verdicts[row] = TRAP_FORM
        elif owned_by_another(normal_form[row], whole[row], keys, owners, slots) and is_variant[row] != 0:
            verdicts[row] = VARIANT


@dataclass
class Traps:
    label: ClassVar = "looks like a trap"
    revivable: ClassVar = True
    reads: ClassVar = ("policy.traps", "policy.trap_patterns")

    patterns: Patterns
    memory: TrapMemory = field(default_factory=TrapMemory)
    kept: bool = False  # whether the memory is written into a notebook
    name: str = NAME
    refusal: str = "shut"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        if ask.looking:  # in an excerpt: no account is opened and no probe counted for it
            found = replace(self.memory, at=max(self.memory.at, ask.at)).scan(batch.url.tolist())
            budgets = self.memory.novelty.excerpt(found.budget_keys)
            return budgets.chosen(budgets.numbers(found.budget_keys, found.suspicion), batch.manual_priority)[0]
        self.memory.at = max(self.memory.at, ask.at)
        keep, probes = self.memory.novelty.chosen(self._numbers(batch), batch.manual_priority)
        if probes:
            self.memory.probe(batch.id[keep].tolist())
        return keep

    def shut(self, batch: Batch) -> Mask:
        """Rows whose template is closed for good, so that no answer will hold them."""
        closed: Mask = self.memory.novelty.states(self._numbers(batch)) == CLOSED
        self.memory.shut.update(batch.hosts.name[np.unique(batch.host[closed])].tolist())
        return closed

    def last(self, batch: Batch) -> Mask:
        """Rows whose template has used up its budget: they wait behind all others."""
        exhausted: Mask = self.memory.novelty.states(self._numbers(batch)) == EXHAUSTED
        return exhausted

    def judge_links(
        self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64
    ) -> list[str | None]:
        """Why each URL is dropped when it is found, in short; None: it is not."""
        memory, verdicts = self.memory, np.zeros(len(urls), np.int8)
        found = memory.scan(urls)
        memory.latest = dict(zip(urls, range(len(urls)), strict=True)), found
        if self.patterns:
            verdicts[[bool(self.patterns.found(url)) for url in urls]] = BY_PATTERN
        memory.judge(found, verdicts)
        if memory.shut:
            there = [row for row, queue in enumerate(queues) if queue in memory.shut and not verdicts[row]]
            verdicts[there] = np.where(memory.closed(found.take(there)), TEMPLATE_CLOSED, PASSED)
        return [REASONS[verdict] for verdict in verdicts.tolist()]

    def learn(self, lesson: Lesson) -> None:
        evidence.record(self.memory, lesson)
        self.memory.latest = None

    def remember(self, notebook: Notebook) -> None:
        """Go on with what lies in the crawl's notebook, and write there from now on."""
        accounts, contents, titles = (notebook.sheet(name, kind) for name, kind in SHEETS.items())
        self.memory = TrapMemory(TemplateBudgets(accounts), StoredFirstOwners(contents), StoredFirstOwners(titles))
        self.kept = True

    def inherit(self, before: Traps) -> None:
        """Go on with what another filter of the crawl has learned, unless it lies in a notebook that is read anew."""
        if not self.kept or self.memory.novelty.sheet is before.memory.novelty.sheet:
            self.memory, self.kept = before.memory, before.kept

    def at_rest(self) -> bytes:
        memory = self.memory
        shut, probes = sorted(memory.shut), sorted(memory.probes)
        return msgpack.encode(AtRest(memory.link_texts.packed(), memory.forms.packed(), shut, probes, memory.at))

    def awake(self, left: bytes) -> None:
        rest, memory = msgpack.decode(left, type=AtRest), self.memory
        memory.link_texts.unpack(rest.link_texts)
        memory.forms.unpack(rest.forms)
        memory.shut, memory.probes, memory.at = set(rest.shut), set(rest.probes), rest.at

    def why(self, batch: Batch, ask: Ask) -> str:
        memory, url, queue = self.memory, batch.url.tolist()[0], batch.hosts.name.tolist()[0]
        form, found = suspicion(url, memory.year()), memory.scan([url])
        if form.probability >= CERTAIN:
            return form.why
        if pattern := self.patterns.found(url):
            return f"policy.trap_patterns holds {self.patterns.texts[pattern[0]]!r}"
        if found.code(IS_VARIANT)[0] and memory.forms.known_of_another(found.code(NORMAL_FORM), found.code(WHOLE)):
            return f"it shows the same as another form of {normal_form(url)}"
        budgets = memory.novelty.excerpt(found.budget_keys)
        number = int(budgets.numbers(found.budget_keys, found.suspicion)[0])
        closed = queue in memory.shut and budgets.closed_when_found(found.budget_keys, found.suspicion)[0]
        return budgets.explained(number) if closed or not form.why else form.why

    def _numbers(self, batch: Batch) -> I32:
        """The account of each row's template; texts are read only for rows that are not in the cache."""
        memory = self.memory
        numbers, misses = memory.numbers.get(batch.id)
        if len(misses):
            numbers[misses] = memory.accounts(memory.scan(batch.url[misses].tolist()))
            memory.numbers.put(batch.id[misses], numbers[misses])
        return numbers.astype(np.int32)


def build(definition: Definition) -> Traps | Disabled:
    policy = definition.policy
    patterns = Patterns(policy.trap_patterns, "policy.trap_patterns")  # wrong ones are refused in any case
    return Traps(patterns) if policy.traps else Disabled(NAME, "policy.traps is off")
