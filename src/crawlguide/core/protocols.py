"""The plugs of the house: who answers, who says what URLs are worth, who says which may be fetched, and who remembers.

    Guide                            answers ask and tell
    Strategy: Sampler, Predictor     which URLs are worth fetching; a predictor may also be a
              Learner, Explores, Explains, ReportsStats
    Filter                           which URLs may not be fetched; it may also be one that
              Prepares, Degrades             needs something before it can judge
              Defers, Withholds, DropsSome, RanksSomeLast    refuses for a while, or not all in one way
              JudgesLinks, LearnsFromFetches judges what is discovered, and learns from what was fetched
              Rests                          knows more than its notebook holds
    Store                            what is known of URLs, hosts, links and leases

Roles that some plugs have besides their main one are protocols of their own: a plug that has not such a role lacks its
methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from crawlguide.core.definition import Weights
    from crawlguide.core.messages import Ack, Advice, AskMessage, ReportMessage
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.telemetry import Telemetry
    from crawlguide.core.types import (
        Ask,
        Batch,
        Crawl,
        Discovery,
        Draw,
        Fetches,
        Grants,
        Hosts,
        KnownLink,
        KnownPage,
        KnownUrl,
        LeaseTerms,
        Lesson,
        Links,
        Paths,
        QueueAsk,
        QueuedUrl,
        QueueFacts,
        Recorded,
        Revisits,
        Sample,
        UrlRecord,
        Usage,
    )


# Who answers a crawler


MOST_RERANKED = 2_000  # URLs that are ranked anew after one tell, besides those that its links lead to


class Guide(Protocol):
    """What answers ask and tell: in this process, at the edge or far away."""

    async def ask(self, message: AskMessage, tenant: str = ...) -> Advice: ...

    async def tell(self, message: ReportMessage, tenant: str = ...) -> Ack: ...


# Which URLs are worth fetching


class Strategy(Protocol):
    """A named composition of judges with the weights it wants unless the crawl says otherwise."""

    @property
    def sampler(self) -> Sampler: ...

    @property
    def predictor(self) -> Predictor: ...

    @property
    def weights(self) -> Weights: ...


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

    def assigned(self, batch: Batch, ask: Ask) -> None:
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

    def exploration_bonus(self, batch: Batch) -> F64:
        """What each row is worth beyond its value, in the same units; 0: nothing."""
        ...

    def draw(self, ask: Ask, wanted: int) -> Draw:
        """Of an answer of `wanted` URLs some may be others than the best: those to gather besides.

        Those that do not wait, or whose host may not be fetched now, are passed over. What was drawn comes back as
        `ask.draw` in the calls that follow.
        """
        ...

    def draw_bonus(self, batch: Batch, ask: Ask) -> F64:
        """How far each row goes before others since it was drawn for this ask; 0: it was not."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A predictor that can say what its opinion rests on."""

    def explain(self, batch: Batch) -> list[str]:
        """What speaks for and against the first row, in words, the most telling first."""
        ...


@runtime_checkable
class ReportsStats(Protocol):
    """A predictor that tells in numbers what it has learned so far: `learner` in the statistics of its crawl."""

    def stats(self) -> Mapping[str, float]: ...


# Which URLs may not be fetched


class Filter(Protocol):
    """Ranked rows to survivors. Rows arrive best first; a filter never revives a row and never reorders.

    `name` is the file's name, the key in `dropped` and, with `_ok`, the word in `filters_applied`.
    `refusal` says what a refusal means: "pass" (not in this answer), "defer" (not now), "withhold" (not this host for
    a while), "forbid" (never: the store remembers it as dropped) or "shut" (passed over, and dropped where it has
    shut for good) or "either" (of the refused rows some are deferred, and the others forbidden).

    `keep` judges; it may remember what it worked out, but nothing at all where `ask.looking`. A filter may also say
    `label` (what the status page shows of a URL that it refuses), `reads` (fields of a definition, such as
    "policy.traps", by which it judges: when one of them changes, what it refused for good is judged anew), `revivable`
    (True: what it refused for good waits again when a permitted link to it is found), and `connected(services)` (itself
    with what it needs of the guide, `policy.Services`; None: the crawl does not need it).
    """

    @property
    def name(self) -> str: ...

    @property
    def refusal(self) -> str: ...

    def keep(self, batch: Batch, ask: Ask) -> Mask: ...

    def why(self, batch: Batch, ask: Ask) -> str:
        """What a person is told about the verdict on a batch of one row."""
        ...


class Prepares(Filter, Protocol):
    """A filter that has to ask or read something before it can judge a batch."""

    async def prepared(self, batch: Batch, ask: Ask) -> Filter | None:
        """The filter for this batch of this ask; what was found out is its own, so that asks cannot mix.

        None: something came into the queues meanwhile that goes before the batch; never where `ask.looking`.
        """
        ...


class Degrades(Filter, Protocol):
    """A filter that may have to do with less than it needs."""

    def degraded(self, batch: Batch, ask: Ask) -> str | None:
        """Which word says so of an answer with these rows; None: all is well."""
        ...


class Defers(Filter, Protocol):
    """A filter whose refusals are for now (`refusal` is "defer"): it says how long each row has to wait.

    One that also forbids (`refusal` is "either") says NaN for what it forbids. Hosts of which all rows wait are kept
    out of `gather` until then, and `hold_back_s` longer.
    """

    @property
    def hold_back_s(self) -> float: ...

    def wait(self, batch: Batch, ask: Ask) -> F64: ...


class Withholds(Filter, Protocol):
    """A filter that refuses whole hosts (`refusal` is "withhold"): it says until when, NaN for not at all."""

    def until(self, hosts: Hosts, ask: Ask) -> F64: ...


class DropsSome(Filter, Protocol):
    """A filter that learns what is not worth it (`refusal` is "shut"): of the refused rows some are dropped."""

    def shut(self, batch: Batch) -> Mask: ...


@runtime_checkable
class RanksSomeLast(DropsSome, Protocol):
    """One that also knows rows that are not worth it while there is anything else: they wait behind all others."""

    def last(self, batch: Batch) -> Mask: ...


@runtime_checkable
class JudgesLinks(Protocol):
    """A filter that can tell from a URL alone: what it refuses is dropped when it is found. Seeds are not judged."""

    @property
    def name(self) -> str: ...

    def judge_links(
        self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64
    ) -> Sequence[str | None]:
        """Why each URL is dropped, found on a page of these queues ("": on none that is known); None: it is not.

        What is found out here may be remembered by id, so that no ask has to read the URL.
        """
        ...


@runtime_checkable
class LearnsFromFetches(Protocol):
    """A filter that learns from what was fetched and found."""

    @property
    def name(self) -> str: ...

    def learn(self, lesson: Lesson) -> None: ...

    def inherit(self, before: Any) -> None:
        """Go on with what the filter of the same name has learned before the crawl was defined anew."""
        ...


@runtime_checkable
class Rests(Protocol):
    """A filter that knows more than its notebook holds: it is kept while nobody uses the crawl and it is unloaded."""

    def at_rest(self) -> bytes: ...

    def awake(self, left: bytes) -> None:
        """Go on with what `at_rest` gave; called after all else that was remembered."""
        ...


# What is known


class Store(Protocol):
    """What is known of URLs, hosts, links and leases. All in batches; O(batch), never O(frontier).

    A URL of a crawl is in exactly one state: queued, leased, done or dropped (with a reason).
    Times are seconds from the caller's clock; a store never looks at a clock of its own.
    """

    # crawls, and what was counted of each

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:
        """Create or replace a crawl's definition; True if it is new. Its frontier stays."""
        ...

    async def crawl_get(self, crawl: Crawl) -> bytes | None: ...

    async def crawl_list(self, tenant: str) -> list[Crawl]: ...

    async def tenants(self) -> list[str]:
        """Those with crawls, in order; "" is nobody."""
        ...

    async def crawl_turns(self, most: int) -> list[Crawl]:
        """The next few crawls of all tenants, in turns, for upkeep; the crawl of tenant "" is nobody's."""
        ...

    async def is_untouched(self, crawl: Crawl) -> bool:
        """Whether nothing was ever found or learned in a crawl."""
        ...

    async def usage(self, tenant: str) -> Usage:
        """How much a tenant keeps here. O(its crawls)."""
        ...

    async def crawl_delete(self, crawl: Crawl) -> bool:
        """Forget a crawl and all it holds. What hosts are owed in politeness stays."""
        ...

    async def count(self, crawl: Crawl, numbers: Mapping[str, int]) -> None:
        """Add to the crawl's counters, which `stats` shows."""
        ...

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]: ...

    # URLs: what was found and fetched, what waits, and in which order it goes out

    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        """Add links. A known URL gains evidence and keeps its state; one with a `reason` is dropped on sight."""
        ...

    async def record(self, crawl: Crawl, fetches: Fetches, at: float, max_retries: int, trains: bool = ...) -> Recorded:
        """Fetched state, host profiles, retries and redirects.

        Without `trains`, what is not leased to the crawler that tells it says nothing about relevance.
        """
        ...

    async def rank(self, crawl: Crawl, ids: U64, priority: F64) -> None:
        """Write the priority at rest of queued URLs; then, over quota, the lowest-ranked are forgotten."""
        ...

    async def set_priority(self, crawl: Crawl, ids: U64, manual_priority: F64) -> None:
        """Set the priority of known URLs by hand; NaN lifts it. It counts when they are ranked the next time."""
        ...

    async def look(self, crawl: Crawl, ids: U64) -> Batch:
        """The rows of known URLs, in the order of `ids`, without touching them."""
        ...

    async def parents(self, crawl: Crawl, ids: U64) -> Paths: ...

    async def children(self, crawl: Crawl, ids: U64) -> Paths: ...

    async def gather(
        self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int, also: U64 | None = None
    ) -> Batch:
        """The best queued URLs of hosts that may be fetched within the horizon, best first, O(limit).

        A store spread over partitions looks into a few of them: best first then means among those it looked into.
        Those named in `also` stand behind them, as far as they wait and their hosts may be fetched.
        """
        ...

    async def wait(self, crawl: Crawl, at: float, *, changes: bool = ...) -> float | None:
        """Seconds until something may be given again; None if nothing is queued, leased or scheduled.

        With `changes`, until something may be given that may not be given now: what waits and is free does not count.
        """
        ...

    async def schedule(self, crawl: Crawl, ids: U64, due: F64) -> None:
        """Queue done URLs again at the given instants (recrawl); one that waits for a sooner one already keeps it."""
        ...

    async def take_due(self, crawl: Crawl, at: float, most: int) -> U64:
        """Take out some scheduled URLs whose instant has come, of a crawl that holds them: they wait no more.

        Whoever takes them schedules them again, or has them queued, before anything is committed.
        """
        ...

    async def hold_due(self, crawl: Crawl, held: bool) -> None:
        """Scheduled URLs whose instant comes wait until somebody takes them out; else they are queued by themselves."""
        ...

    async def queue_again(self, crawl: Crawl, ids: U64) -> None:
        """Done URLs wait for their turn once more; others are left alone."""
        ...

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        """Queued URLs become dropped, and stay known so that they are not asked again."""
        ...

    async def revive(self, crawl: Crawl, ids: U64, deepest: int = ...) -> None:
        """Dropped URLs become queued again, except those that lie deeper than `deepest` (-1: no bound)."""
        ...

    # leases: who holds which URLs, and how politely hosts are asked

    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        """Take host slots and leases for all rows at once; atomic per partition, partial is normal."""
        ...

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        """Give back everything a crawler holds."""
        ...

    async def held(self, crawl: Crawl, crawler_id: str, at: float) -> int:
        """How many URLs a crawler holds."""
        ...

    async def expire(self, crawl: Crawl, at: float) -> int:
        """Leases that ended go back to the queue."""
        ...

    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: F64) -> None:
        """Keep a crawl's hosts out of `gather`, each until its instant; one in the past lets a host in again."""
        ...

    async def admit(self, crawl: Crawl) -> None:
        """Every host of the crawl that is kept out of `gather` is let in again."""
        ...

    async def control(
        self,
        queue: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> None:
        """As the operator says: set a politeness queue's own delay, block it until an instant, or cap its leases.

        0 lifts a cap. Nobody else makes shorter what others wish for: see `hold`.
        """
        ...

    async def hold(self, queue: str, *, until: float = ..., delay_s: float = ...) -> None:
        """A wish beside those of others: not before an instant, so long between two fetches. The longest counts."""
        ...

    async def located(self, host: str, address: str) -> None:
        """A host (as its politeness queue names it) is at an address.

        Where addresses are what is asked politely (`store.politeness_queue`) it shares from now on the slots of all
        that were found there; else nothing comes of it.
        """
        ...

    # queues that clients name: each is of one crawl alone, and is served as a whole

    async def queues_begin(self, crawl: Crawl, mark: str) -> None:
        """The queues of this crawl are its own from now on; `mark` tells it from earlier ones of the same name."""
        ...

    async def queues_named(self, crawl: Crawl) -> bool:
        """Whether there is such a crawl, and its queues are its own."""
        ...

    async def queues_open(self, crawl: Crawl, ask: QueueAsk) -> Batch:
        """The best waiting URLs of queues that are open, queue by queue; the one whose best URL is best comes first."""
        ...

    async def queues_serve(self, crawl: Crawl, ids: U64, terms: LeaseTerms) -> Grants:
        """Lease URLs that wait, and close their queues for as long as each is to be left alone."""
        ...

    async def queue_control(
        self,
        crawl: Crawl,
        key: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> bool:
        """Set a queue's delay, block it until an instant, or cap the URLs done there; 0 lifts a cap.

        False: there is no such queue.
        """
        ...

    async def queue_facts(self, crawl: Crawl, key: str | None, at: float) -> QueueFacts: ...

    async def queue_names(
        self, crawl: Crawl, start: int, most: int, at: float, *, inactive: bool = ...
    ) -> Sequence[str]:
        """The names of queues from number `start` on; without `inactive`, of those that have something and are open."""
        ...

    async def queue_ids(self, crawl: Crawl, key: str | None, before: float = ...) -> U64:
        """All URLs of a queue, or of all queues, that were known before an instant."""
        ...

    async def queue_urls(self, crawl: Crawl, ids: U64) -> list[QueuedUrl | None]: ...

    async def queue_forget(self, crawl: Crawl, ids: U64, *, leased: bool = ...) -> tuple[int, int]:
        """Forget URLs, also `leased` ones; returns how many these were, and how many of them were not done."""
        ...

    async def queue_begin_anew(self, crawl: Crawl, key: str) -> None:
        """Whatever was set for a queue counts no more."""
        ...

    async def revisit(self, crawl: Crawl, revisits: Revisits, at: float) -> int:
        """URLs are done, or wait from their date on; returns how many were not known. Of equal ones the last counts."""
        ...

    # what is kept of a crawl besides its URLs: answers given, and what was learned

    async def answer_get(self, crawl: Crawl, key: str, at: float) -> bytes | None: ...

    async def answer_put(self, crawl: Crawl, key: str, answer: bytes, expires: float) -> None: ...

    async def state_get(self, crawl: Crawl, name: str) -> tuple[bytes, int] | None: ...

    async def state_put(self, crawl: Crawl, name: str, state: bytes, version: int) -> bool:
        """Write if `version` is newer than what is there; True if it was."""
        ...

    async def notebook(self, crawl: Crawl) -> Notebook:
        """Where the crawl's strategy keeps what it learns. It lasts with the next commit, like all else, and goes with
        the crawl."""
        ...

    async def generation(self) -> int:
        """Another number than before if all was read anew since: what was lent before (notebooks) is of no use then."""
        ...

    # what people and judges look at, a bounded part at a time

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]: ...

    async def scan(
        self, crawl: Crawl, state: str | None, host: str | None, limit: int, cursor: str | None
    ) -> tuple[list[UrlRecord], str | None]:
        """A page of URLs and the cursor of the next; a URL that is there throughout is seen exactly once."""
        ...

    async def count_above(self, crawl: Crawl, priority: float, cursor: int) -> tuple[int, int | None]:
        """How many of the next waiting URLs stand before this priority; and the next cursor, None at the end."""
        ...

    async def hosts(self, crawl: Crawl, limit: int) -> tuple[Hosts, I64, F64]:
        """The hosts to look at first, how many URLs wait on each, and until when it is withheld (-inf: it is not).

        Up to half of them failed most, on the others most URLs wait. Looks at a bounded number of hosts.
        """
        ...

    async def open_hosts(
        self, crawl: Crawl, domain: str | None, until: float, limit: int, cursor: int
    ) -> tuple[list[str], int | None]:
        """Hosts, of a registrable domain or of any, on which URLs wait and that may be fetched by then.

        From a cursor (0: the beginning) on; and the next cursor, None at the end. Looks at a bounded number of hosts.
        """
        ...

    # what goes from one store into another, and what is forgotten

    async def dump(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownUrl], int | None]:
        """Everything known of some URLs, from a cursor (0: the beginning) on; and the next cursor, None at the end."""
        ...

    async def dump_links(self, crawl: Crawl, cursor: int, limit: int) -> tuple[list[KnownPage], int | None]:
        """The same for the links between them."""
        ...

    async def adopt(self, crawl: Crawl, ids: U64, hosts: Sequence[str], urls: Sequence[KnownUrl], at: float) -> int:
        """Take over URLs as another store knew them; those known here are left alone. Returns how many were new."""
        ...

    async def adopt_links(self, crawl: Crawl, page: int, children: U64, links: Sequence[KnownLink], at: float) -> None:
        """Take over the links of a page to URLs that are known here, unless it has links here."""
        ...

    async def purge(self, crawl: Crawl, state: str | None, host: str | None) -> int:
        """Forget the matching URLs, except leased ones."""
        ...

    async def forget_old(self, crawl: Crawl, at: float) -> int:
        """Look at some of the URLs that are done or dropped and forget those that are too old or too many."""
        ...

    # what lasts beyond the process, and what that costs

    @property
    def opened_s(self) -> float:
        """How long opening it took."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where all is kept; None for a store that keeps nothing on a disk of its own."""
        ...

    def listen(self, telemetry: Telemetry) -> None:
        """From now on say to `telemetry` what keeping costs: `sync_seconds`, from any thread."""
        ...

    async def figures(self) -> Mapping[str, float]:
        """What it takes now: `columns_bytes` in memory, and of a folder `disk_bytes` and `log_bytes`."""
        ...

    async def commit(self, durable: bool = ...) -> None:
        """Returning means that all that was done so far survives this process; with `durable`, a loss of power.

        Calls between two commits last together or not at all. Raises `StorageFull` or `StoreUnavailable`: then
        nothing of it is to be acknowledged. What was done lasts with the next commit that returns, or, where a read has
        failed and the folder was read anew, is undone.
        """
        ...

    async def backup(self, target: Path) -> str:
        """A copy of all that is known at this moment, in a new folder; returns its state hash."""
        ...

    async def close(self) -> None: ...
