"""The operator's rules in service: the newest bundle that works, evaluated in a process of its own, within its time.

A bundle is one `.rego` file, or a folder with `.rego` files and `.json` files of data. A new bundle is tried beside the
one in service and replaces it only if it loads and answers. Where no bundle works there are no verdicts: what is not
known to be permitted stays where it is.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import installing
from crawlguide.core.telemetry import ERROR, happened
from crawlguide.policy.rules.process import RulesFailed, Worker

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

MOST_BYTES = 4 * 1024 * 1024  # of a bundle
CHECK_EVERY_S = 1.0  # for changed files
USUAL_URLS = 200  # the time limit is for so many; more URLs have more time
TRIAL = b'{"at":0,"crawl":"trial","crawler_id":"trial","urls":[{"url":"https://example.org/","host":"example.org",\
"domain":"example.org","path":"/","query":"","depth":0,"score":0,"value":0,"parents":0,"host_pages":0,"host_failures":0}]}'
KEPT, MISSING = "rules_kept", "rules_unavailable"


class Bundle(msgspec.Struct, frozen=True):
    """The texts of a bundle, as the worker receives them."""

    modules: dict[str, str]
    data: list[str]


class Engine:
    """One for a whole guide; questions are answered one after the other."""

    def __init__(self, path: Path, limit_s: float) -> None:
        if not path.exists():
            raise ConfigError(f"guide.rules: expected a file or a folder, there is nothing at {path}")
        if find_spec("regopy") is None:
            raise ConfigError(f"guide.rules needs regopy, which is not installed: {installing('rego')}")
        self._path, self._limit_s = path, limit_s
        self._worker: Worker | None = None
        self._stamp: object = None
        self._in_service: Bundle | None = None
        self._checked = float("-inf")
        self._lock = asyncio.Lock()
        self._refused = False  # the bundle on disk does not work
        self._background: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str | None:
        """What answers say in `degraded`."""
        if self._stamp is not None and self._worker is None:
            return MISSING
        return KEPT if self._refused else None

    async def denied(self, question: bytes, urls: int) -> dict[str, str] | None:
        """URLs that the rules deny, with their reasons; None where there is no verdict."""
        await self._refresh()
        async with self._lock:
            if self._worker is None:
                return None
            try:
                within_s = self._limit_s * max(1.0, urls / USUAL_URLS)
                return await asyncio.to_thread(self._worker.ask, question, within_s)
            except RulesFailed as failed:
                self._worker = None
                _log_failure(self._path, failed.message, "they are started anew")
                self._in_background(self._restart())
                return None

    async def reload(self) -> None:
        """Try the bundle on disk, if it is not the one that was tried last."""
        try:
            found = bundle_stamp(self._path)
            if found == self._stamp:
                return
            self._stamp = found
            bundle = read_bundle(self._path)
            worker = await asyncio.to_thread(_started, bundle, self._limit_s)
        except (RulesFailed, ConfigError, OSError) as failed:
            self._refused = True
            what = "nothing is given out" if self._worker is None else "the ones before stay in service"
            _log_failure(self._path, getattr(failed, "message", str(failed)), what)
            return
        async with self._lock:
            old, self._worker, self._in_service, self._refused = self._worker, worker, bundle, False
        if old is not None:
            old.close()
        happened("rules_loaded", "rules of {path} are in service", path=str(self._path))

    async def close(self) -> None:
        if self._background is not None:
            await asyncio.gather(self._background, return_exceptions=True)
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    async def _refresh(self) -> None:
        """Check the files now and then; only the first bundle is waited for."""
        now = asyncio.get_running_loop().time()
        if self._stamp is None:
            self._checked = now
            await self.reload()
        elif now >= self._checked + CHECK_EVERY_S:
            self._checked = now
            self._in_background(self.reload())
        if self._worker is None:
            self._in_background(self._restart())

    def _in_background(self, step: Coroutine[Any, Any, None]) -> None:
        """Run a step in the background, unless another is still running there."""
        if self._background is None or self._background.done():
            self._background = asyncio.create_task(step)
        else:
            step.close()

    async def _restart(self) -> None:
        """Start a worker again with the bundle that was in service."""
        if self._in_service is None or self._worker is not None:
            return
        try:
            worker = await asyncio.to_thread(_started, self._in_service, self._limit_s)
        except RulesFailed as failed:
            _log_failure(self._path, failed.message, "nothing is given out")
            return
        async with self._lock:
            self._worker = worker


def _started(bundle: Bundle, limit_s: float) -> Worker:
    """A worker with this bundle that has answered a first question."""
    worker = Worker(bundle)
    worker.ask(TRIAL, limit_s)
    return worker


def _log_failure(path: Path, why: str, consequence: str) -> None:
    short = " ".join(why.split())[:500]
    happened("rules_failed", "rules of {path}: {what}: {why}", ERROR, path=str(path), what=consequence, why=short)


def bundle_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in {".rego", ".json"} and file.is_file())


def bundle_stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Changes when one of the files does."""
    found = []
    for file in bundle_files(path):
        state = file.stat()
        found.append((str(file), state.st_mtime_ns, state.st_size))
    return tuple(found)


def read_bundle(path: Path) -> Bundle:
    """Raises `ConfigError` for what cannot be read."""
    found = bundle_files(path)
    if not any(file.suffix == ".rego" for file in found):
        raise ConfigError(f"guide.rules: expected a .rego file or a folder with one, got {path}")
    if sum(file.stat().st_size for file in found) > MOST_BYTES:
        raise ConfigError(f"guide.rules: expected at most {MOST_BYTES} bytes of rules and data in {path}")
    try:
        texts = {str(file): file.read_text() for file in found}
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"guide.rules: {path} cannot be read: {problem}") from None
    modules = {name: text for name, text in texts.items() if name.endswith(".rego")}
    return Bundle(modules, [text for name, text in texts.items() if name.endswith(".json")])
