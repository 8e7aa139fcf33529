"""Many runs: every task, policy and repeat, one process for each core.

Finished runs are kept in a folder and not made again, as long as nothing has changed that decides about them: what was
asked for, the web, and the code.
"""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
import xxhash

import crawlguide
from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.core.processes import end_at_once, pool_of, uninterrupted
from crawlguide.lab import policy_names
from crawlguide.lab import web as webs
from crawlguide.lab.results import Run
from crawlguide.lab.run import Settings, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from crawlguide.lab.pages import Web

Item = TypeVar("Item")
Result = TypeVar("Result")
PACKAGES = ("crawlguide", "numpy", "numba", "msgspec")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run to be made."""

    web: str
    task: str
    policy: str
    repeat: int
    settings: Settings

    @property
    def file_name(self) -> str:
        """Where the finished run is kept: a hash of everything that decides about it."""
        decides = (self, versions(), code_of(self.policy), _modified(self.web))
        return f"{xxhash.xxh3_128_hexdigest(msgspec.json.encode(decides))}.json"


def jobs(web: str, tasks: Sequence[str], policies: Sequence[str], repeats: int, settings: Settings) -> list[Job]:
    """In an order in which the first results say something about every policy."""
    return [
        Job(web=web, task=task, policy=policy, repeat=repeat, settings=settings)
        for repeat in range(repeats)
        for task in tasks
        for policy in policies
    ]


def completed(todo: Sequence[Job], kept: Path | None, workers: int | None = None) -> Iterator[Run]:
    """The runs as they are finished; those in `kept` come first, and the others are added there."""
    left = []
    for job in todo:
        before = _read(job, kept)
        if before is None:
            left.append(job)
        else:
            yield before
    count = min(workers or cores(), len(left))
    if count > 1:
        opened.cache_clear()  # each process has its own, and this one needs none
    for job, finished in worked(do, left, count):
        _write(job, finished, kept)
        yield finished


def count_kept(todo: Sequence[Job], kept: Path) -> int:
    """How many of the runs are in `kept` and need not be made again."""
    return sum(_read(job, kept) is not None for job in todo)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def versions() -> dict[str, str]:
    """What the runs were made with."""
    return {package: version(package) for package in PACKAGES}


def task_named(web: Web, wanted: str | None) -> str:
    """The one task that a command means; without a name the first of the web."""
    names = tasks_named(web, ["all"])
    if wanted is not None and wanted not in names:
        raise ConfigError(f"--task: expected one of {', '.join(names)}, got {wanted!r}")
    return wanted or names[0]


def tasks_named(web: Web, wanted: Sequence[str]) -> list[str]:
    """The tasks of a web that a command means, in the web's own order."""
    names = [task.name for task in web.tasks()]
    if not names:
        raise ConfigError(
            f"--web: {web.name} has nothing to look for; make a web with crawlguide lab build --topic NAME=REGEX, or"
            " export a crawl whose pages were judged"
        )
    if list(wanted) == ["all"]:
        return names
    for name in wanted:
        if name not in names:
            raise ConfigError(f"--tasks: expected all or some of {', '.join(names)}, got {name!r}")
    return [name for name in names if name in wanted]


@lru_cache(maxsize=1)
def opened(where: str) -> Web:
    """The web of this process: it is opened once."""
    return webs.open(where)


def do(job: Job) -> Run:
    web = opened(job.web)
    task = next(task for task in web.tasks() if task.name == job.task)
    return run(web, task, job.policy, job.repeat, job.settings)


def code_of(policy: str) -> str:
    """The code that decides in a run: all of this package, and of a policy from elsewhere the package it is in."""
    code = code_hash(Path(crawlguide.__file__).parent)
    elsewhere = policy_names.module_elsewhere(policy)
    folders = import_module(elsewhere.partition(".")[0]).__path__ if elsewhere else ()
    return code + "".join(code_hash(Path(folder), "*.py") for folder in folders)


@cache
def code_hash(folder: Path, files: str = "*") -> str:
    """Of every such file in a folder and below, with its place; read once in a process."""
    digest = xxhash.xxh3_128()
    for file in sorted(path for path in folder.rglob(files) if path.is_file() and "__pycache__" not in path.parts):
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def worked(work: Callable[[Item], Result], left: Sequence[Item], workers: int) -> Iterator[tuple[Item, Result]]:
    """Each item with what came of it, as they are finished; one worker is this process itself."""
    if workers <= 1:
        yield from ((item, work(item)) for item in left)
    else:
        yield from _in_processes(work, left, workers)


def _in_processes(work: Callable[[Item], Result], left: Sequence[Item], workers: int) -> Iterator[tuple[Item, Result]]:
    pool = pool_of(workers)
    with uninterrupted():
        waiting = {pool.submit(work, item): item for item in left}
    try:
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), _result(future)
    except BaseException:  # also when somebody interrupts
        end_at_once(pool)
        raise
    pool.shutdown()


def _result(future: Future[Result]) -> Result:
    try:
        return future.result()
    except BrokenExecutor:
        raise CrawlGuideError("a process of the lab was ended from outside: is there enough memory?") from None


def _modified(web: str) -> int:
    """When a recorded web was last written: runs on another one of that name are other runs."""
    return Path(web).stat().st_mtime_ns if Path(web).exists() else 0


def _read(job: Job, kept: Path | None) -> Run | None:
    if kept is None or not (kept / job.file_name).is_file():
        return None
    try:
        return msgspec.json.decode((kept / job.file_name).read_bytes(), type=Run)
    except msgspec.DecodeError:
        return None  # it was cut short: made again


def _write(job: Job, finished: Run, kept: Path | None) -> None:
    """A file gets its name when it is complete."""
    if kept is not None:
        try:
            kept.mkdir(parents=True, exist_ok=True)
            beside = kept / f".{job.file_name}"
            beside.write_bytes(msgspec.json.encode(finished))
            beside.replace(kept / job.file_name)
        except OSError as problem:
            raise CrawlGuideError(f"{kept}: a finished run cannot be written: {problem.strerror}") from None
