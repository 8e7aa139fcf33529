"""Where the requests of one crawl went: why each was made that found nothing, and what better was known then."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from crawlguide.core.urls import queue
from crawlguide.gateway.transfers import written
from crawlguide.lab.run import run, seeds_of
from crawlguide.lab.watch import Watch

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.lab.pages import Task, Web
    from crawlguide.lab.results import Run
    from crawlguide.lab.run import Settings
    from crawlguide.lab.watch import Look, Request

SCHEMA = 1
PROMISED = 0.3  # from this p on, the model said that it would likely pay
BLOCK = 100  # requests that are counted together
SHOWN = 20  # rows of a list
OF_A_HOST = 4  # regrets that are listed: pages of one host often waited for one reason


class Cause(NamedTuple):
    """Why a request was made, as it is written and for people."""

    name: str
    meaning: str


HIT = Cause("hit", "a relevant page that was new")
SEED = Cause("seed", "where the crawl was told to begin")
DEAD_LINK = Cause("dead link", "no page there, on a host that had answered before")
DEAD_HOST = Cause("dead host", "no page there, on a host that had never answered")
DETOUR = Cause("detour", "a redirect, a copy of a page, or a page of a trap")
DRY = Cause("ran dry", "no relevant page was known that was not given out already")
EXPLORED = Cause("explored", "more for what it may lead to than for its own chance")
PROMISED_WRONG = Cause("promised", f"the model said p ≥ {PROMISED}, and it was not relevant")
GUESSED = Cause("guessed", f"p below {PROMISED}, and yet the best by the model's account")
CAUSES = (HIT, SEED, DEAD_LINK, DEAD_HOST, DETOUR, DRY, EXPLORED, PROMISED_WRONG, GUESSED)


class Spent(msgspec.Struct, kw_only=True, frozen=True):
    """One request. The fields from `waiting` on tell what better was known; rank 1 would have been the next."""

    url: str
    host: str
    cause: str
    p: float
    exploration: float
    status: int
    waiting: int  # relevant pages that were known and not given out
    better: str | None  # the one of them that the guide thought best of, as far as it was looked at
    better_p: float | None
    better_rank: int | None


class Regret(msgspec.Struct, kw_only=True, frozen=True):
    """A relevant page that was known early, and fetched late or never."""

    url: str
    known: int  # requests given out when it became known
    fetched: int | None  # which request it was; None: never
    wasted: int  # requests made for nothing while it waited
    first_p: float | None  # when it was looked at first
    first_rank: int | None
    found_on: str | None


class Hub(msgspec.Struct, kw_only=True, frozen=True):
    """A page that was the first to lead to relevant pages."""

    url: str
    opened: int  # relevant pages that it made known
    relevant: bool
    known: int
    fetched: int


class HostSpent(msgspec.Struct, kw_only=True, frozen=True):
    host: str
    requests: int
    hits: int
    wasted: int
    cause: str  # the commonest of the wasted ones
    left: int  # relevant pages known there that were never fetched


class ErrorBudget(msgspec.Struct, kw_only=True, frozen=True):
    """All of it, as `lab explain-run --json` writes it."""

    schema: int = SCHEMA
    command: list[str]
    web: str
    task: str
    policy: str
    seed: int
    budget: int
    reachable: int
    causes: dict[str, int]
    blocks: list[dict[str, int]]  # the same for every hundred requests
    hosts: list[HostSpent]
    regrets: list[Regret]
    hubs: list[Hub]
    requests: list[Spent]

    @property
    def hits(self) -> int:
        return self.causes[HIT.name]

    @property
    def wasted(self) -> int:
        return len(self.requests) - self.hits


def explain_run(web: Web, task: Task, policy: str, settings: Settings, command: list[str]) -> ErrorBudget:
    """Run a policy once, and account for every request."""
    _, seeds = seeds_of(web, task, settings.seeds_from)
    watch = Watch(task.relevant, seeds)
    done = run(web, task, policy, 0, settings, watch)
    spent = _accounted(done, watch)
    return ErrorBudget(
        command=command, web=web.name, task=task.name, policy=policy, seed=done.seed, budget=done.budget,
        reachable=done.reachable, causes=_counted(spent),
        blocks=[_counted(spent[first : first + BLOCK]) for first in range(0, len(spent), BLOCK)],
        hosts=_hosts(spent, watch), regrets=_regrets(spent, watch), hubs=_hubs(watch), requests=spent,
    )  # fmt: skip


def write_json(document: ErrorBudget, path: Path) -> None:
    """The file gets its name when it is whole."""
    with written(path) as file:
        file.write(msgspec.json.encode(document) + b"\n")


def _accounted(done: Run, watch: Watch) -> list[Spent]:
    answered: set[str] = set()  # hosts
    spent: list[Spent] = []
    for request, hit, letter, status in zip(watch.requests, done.relevant, done.outcome, watch.statuses, strict=True):
        host = queue(request.url)
        cause = HIT if hit else _cause(request, letter, request.url in watch.seeds, host in answered)
        spent.append(_spent(request, host, cause, status))
        if letter not in "de":
            answered.add(host)
    return spent


def _cause(request: Request, letter: str, is_seed: bool, host_answers: bool) -> Cause:
    """The first that holds: what a URL turned out to be, then what was known, then why it stood where it stood."""
    if is_seed:
        return SEED
    if letter in "de":
        return DEAD_LINK if host_answers else DEAD_HOST
    if letter in "rut":
        return DETOUR
    if not request.better.waiting:
        return DRY
    if request.exploration > request.relevance:
        return EXPLORED
    return PROMISED_WRONG if request.p >= PROMISED else GUESSED


def _spent(request: Request, host: str, cause: Cause, status: int) -> Spent:
    look = request.better.look
    return Spent(
        url=request.url, host=host, cause=cause.name, p=_rounded(request.p), status=status,
        exploration=_rounded(request.exploration), waiting=request.better.waiting, better=request.better.url,
        better_p=None if look is None else _rounded(look.p), better_rank=None if look is None else look.rank,
    )  # fmt: skip


def _rounded(value: float) -> float:
    return round(float(value), 6)


def _counted(spent: list[Spent]) -> dict[str, int]:
    found = Counter(one.cause for one in spent)
    return {cause.name: found[cause.name] for cause in CAUSES}


def _hosts(spent: list[Spent], watch: Watch) -> list[HostSpent]:
    """Those with the most wasted requests first."""
    by_host: dict[str, Counter[str]] = {}
    for one in spent:
        by_host.setdefault(one.host, Counter())[one.cause] += 1
    fetched = {one.url for one in spent}
    left = Counter(queue(url) for url in watch.relevant if url in watch.known and url not in fetched)
    rows = [_host_spent(host, causes, left[host]) for host, causes in by_host.items()]
    return sorted(rows, key=lambda row: (-row.wasted, row.host))[:SHOWN]


def _host_spent(host: str, causes: Counter[str], left: int) -> HostSpent:
    hits = causes.pop(HIT.name, 0)
    commonest = causes.most_common(1)[0][0] if causes else HIT.name
    wasted = causes.total()
    return HostSpent(host=host, requests=hits + wasted, hits=hits, wasted=wasted, cause=commonest, left=left)


def _regrets(spent: list[Spent], watch: Watch) -> list[Regret]:
    """The pages that most wasted requests were made instead of, not all of one host."""
    wasted = [0]  # until each request
    for one in spent:
        wasted.append(wasted[-1] + (one.cause != HIT.name))
    when = {one.url: number for number, one in reversed(list(enumerate(spent, 1)))}
    regrets = [
        _regret(url, watch, when.get(url), wasted[when[url] - 1 if url in when else -1] - wasted[watch.known[url]])
        for url in watch.relevant & watch.known.keys()
    ]
    largest = sorted((one for one in regrets if one.wasted), key=lambda one: (-one.wasted, one.known, one.url))
    return _few_of_a_host(largest)[:SHOWN]


def _few_of_a_host(regrets: list[Regret]) -> list[Regret]:
    shown: Counter[str] = Counter()
    few = []
    for one in regrets:
        shown[queue(one.url)] += 1
        if shown[queue(one.url)] <= OF_A_HOST:
            few.append(one)
    return few


def _regret(url: str, watch: Watch, fetched: int | None, wasted: int) -> Regret:
    look: Look | None = watch.first_looks.get(url)
    return Regret(
        url=url, known=watch.known[url], fetched=fetched, wasted=wasted, found_on=watch.finder.get(url),
        first_p=None if look is None else _rounded(look.p), first_rank=None if look is None else look.rank,
    )  # fmt: skip


def _hubs(watch: Watch) -> list[Hub]:
    opened = Counter(watch.finder[url] for url in watch.relevant & watch.finder.keys())
    when = {request.url: number for number, request in reversed(list(enumerate(watch.requests, 1)))}
    best = sorted(opened.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN]
    return [
        Hub(url=url, opened=count, relevant=url in watch.relevant, known=watch.known[url], fetched=when[url])
        for url, count in best
    ]
