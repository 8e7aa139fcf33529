"""Regular expressions that users write, searched in URLs. RE2: linear in the text, whatever the pattern.

How long a pattern takes to compile and to search, and the memory it needs, all grow with the steps of its program, of
which a few characters can make a million: `\\pL{1000}`. So a crawl's definition has a budget of steps.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

import re2

from crawlguide.core.errors import MalformedRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

MOST_STEPS = 40_000  # of all patterns of a crawl: a list of 500 that people wrote against traps has 30,000
CHECKED_BYTES = 256 * 1024  # with so much memory RE2 refuses a pattern of more than some 8,000 steps, within 10 ms
KEPT_BYTES = 64 * 1024 * 1024  # what a pattern could have before there was a budget; folders with such ones go on
JOINED_BYTES = 8 * 1024 * 1024  # to search all of a list at once, besides its steps
SINGLE_BYTES = 16 * 1024 * 1024  # to search those of a list one by one
QUICK_WORK = 2_000_000  # steps times characters that take some 10 ms at worst; what is more is searched in a thread
LONG_WORK = 100_000_000  # after which the thread may search for others
MOST_AHEAD = 20_000  # texts of which the result is kept for who asks next
STEP_BYTES = 128  # without which RE2 refuses to compile


_SEARCHING = ThreadPoolExecutor(1, thread_name_prefix="patterns")  # RE2 lets go of the interpreter while it searches


class Patterns:
    """Several patterns at once. A text without a match costs one search, however many patterns there are.

    Few characters of a pattern can make RE2 walk through all its steps for each character of a text, which takes
    seconds for a long one. So whoever has many texts, or long ones, calls `search_ahead` before `found`.
    """

    def __init__(self, texts: Sequence[str], field: str) -> None:
        self.texts = tuple(texts)
        steps = [_steps_of_any(text, f"{field}[{number}]") for number, text in enumerate(texts)]
        spare = SINGLE_BYTES // max(len(texts), 1)
        self._each = [_compiled(text, STEP_BYTES * size + spare) for text, size in zip(texts, steps, strict=True)]
        joined = "|".join(map(_alone, texts))
        self._any = _compiled(joined, STEP_BYTES * sum(steps) + JOINED_BYTES) if texts else None
        self._steps = 2 * sum(steps)  # joined, and one by one
        self._ahead: dict[str, list[int]] = {}

    def found(self, text: str) -> list[int]:
        """The numbers of the patterns that match somewhere in the text."""
        ahead = self._ahead.get(text) if self._ahead else None
        return self._found(text) if ahead is None else ahead

    async def search_ahead(self, texts: Collection[str]) -> None:
        """Search what may take long without keeping others waiting; `found` then knows it."""
        if self._steps * sum(map(len, texts)) <= QUICK_WORK:
            return
        for some in self._portions([text for text in dict.fromkeys(texts) if text not in self._ahead]):
            found = await asyncio.get_running_loop().run_in_executor(_SEARCHING, self._found_all, some)
            if len(self._ahead) + len(found) > MOST_AHEAD:
                self._ahead = {text: self._ahead[text] for text in texts if text in self._ahead}
            self._ahead |= found

    def _portions(self, texts: Sequence[str]) -> Iterator[list[str]]:
        some, work = list[str](), 0
        for text in texts:
            some.append(text)
            work += self._steps * len(text)
            if work > LONG_WORK:
                yield some
                some, work = [], 0
        yield some

    def _found_all(self, texts: Sequence[str]) -> dict[str, list[int]]:
        return {text: self._found(text) for text in texts}

    def _found(self, text: str) -> list[int]:
        if self._any is None or not self._any.search(text):
            return []
        return [number for number, pattern in enumerate(self._each) if pattern.search(text)]

    def __bool__(self) -> bool:
        return bool(self.texts)


def check(text: str, field: str) -> int:
    """How many steps a pattern has; raises `MalformedRequest` for what is none, or has too many for any budget."""
    try:
        return _steps(text, CHECKED_BYTES)
    except re2.error as wrong:
        why = wrong.args[0].decode(errors="replace") if wrong.args else "it cannot be compiled"
        message = f"{field}: expected an RE2 pattern, got {text[:80]!r}: {why[:200]}"
        raise MalformedRequest(message, field=field) from None
    except UnicodeEncodeError as wrong:
        raise MalformedRequest(f"{field}: expected text, got {text[:80]!r}: {wrong}", field=field) from None


def check_budget(lists: Mapping[str, Sequence[str]]) -> None:
    """Raise `MalformedRequest` if the patterns of these fields are too many together, or one is none."""
    steps = 0
    for field, texts in lists.items():
        for number, text in enumerate(texts):
            steps += check(text, f"{field}[{number}]")
            if steps > MOST_STEPS:
                message = f"expected patterns of at most {MOST_STEPS} steps in all, got more by {text[:80]!r}"
                raise MalformedRequest(f"{field}[{number}]: {message}", field=field)


def _steps_of_any(text: str, field: str) -> int:
    """Also of one that was defined before there was a budget."""
    try:
        return check(text, field)
    except MalformedRequest:
        try:
            return _steps(text, KEPT_BYTES)
        except (re2.error, UnicodeEncodeError):
            pass
        raise


@lru_cache(maxsize=4_096)
def _steps(text: str, most_bytes: int) -> int:
    return int(_compiled(text, most_bytes).programsize)


def _alone(text: str) -> str:
    """A pattern that can be joined with others by "|"."""
    return f"(?:{text})"


def _compiled(pattern: str, most_bytes: int) -> re2._Regexp:
    """Made anew and kept nowhere else: `re2.compile` would hold on to the last 128."""
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, most_bytes
    return re2._Regexp(_alone(pattern), options)
