"""Rules of a robots.txt compiled to columns: one kernel finds the rule that decides, for many paths at once.

A rule is a pattern: texts with anything between them (`*`), and perhaps nothing after them (`$`). The longest pattern
that matches decides, and `allow` wins a tie (RFC 9309, 2.2.2). So rules are sorted once, and the first that matches
decides. A rule is skipped in a few instructions where the path lacks one of its pairs of neighbouring bytes; the others
are searched by the method of Knuth, Morris and Pratt, so that no pattern and no path makes a search slow.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import numba
import numpy as np

from crawlguide.core.kernels import bools, fixed_bytes, i32s, i64s, kernel, nothing, part
from crawlguide.core.url_bytes import LINE_END
from crawlguide.policy.robots import normal_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.tables import I32, I64, U8, U64, Mask

    Rule = tuple[bool, bytes, str]  # allowed, the pattern in its normal form, the pattern as it was written

ITSELF = "/robots.txt"
MOST_STARTS, MOST_MARKS = 100, 20
_PLAIN = re.compile(r"[A-Za-z0-9_.~!&'()+,;=:@/?-]*")
DOLLAR = b"%24"  # a last "$" says that nothing follows, but some who wrote one meant the letter
WORDS = 4  # of bits, for each rule
BITS = numba.uint64[:, ::1]


class Rules(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Patterns, the one that decides first. `part` says where the texts of a rule stand among all texts.

    Of tens of thousands of files the garbage collector would look at every array, while everybody waits (`gc=False`).
    """

    texts: tuple[str, ...]  # as they were written, for people
    allow: Mask
    part: I64  # of rule k: from part[k] to part[k + 1]
    ends: Mask  # nothing may follow its last text
    need: U64  # the pairs of bytes that a URL must have
    start: I64  # of text k: from start[k] to start[k + 1] in `pattern`
    pattern: U8
    slip: I32  # where the search goes on after a byte that does not match

    def first(self, paths: bytes, count: int) -> I64:
        """The number of the rule that decides on each path, of which there is one a line; -1: none."""
        found = np.full(count, -1, np.int64)
        search(
            np.frombuffer(paths, np.uint8),
            self.part, self.ends, self.need, self.start, self.pattern, self.slip, found,
        )  # fmt: skip
        return found

    def permits(self, paths: bytes, count: int) -> Mask:
        found = self.first(paths, count)
        permitted: Mask = (found < 0) | self.allow[found]
        return permitted


class Matcher(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The rules in both normal forms. What one of them forbids is forbidden: a doubt is no permission.

    Files with the same bytes have the same one, so that their paths can be matched together.
    """

    literal: Rules
    decoded: Rules
    differ: bool  # the two forms of the patterns
    starts: tuple[str, ...]  # with one of which every path begins that a rule without a star forbids
    marks: tuple[tuple[str, str], ...]  # how paths begin that one with a star forbids, and a text that is in them

    def _surely_permitted(self, path: str) -> bool:
        """No rule forbids a path that looks like none of them and has nothing to escape: most are of this kind."""
        if path.startswith(self.starts):
            return False
        if self.marks and any(path.startswith(start) and mark in path for start, mark in self.marks):
            return False
        return bool(_PLAIN.fullmatch(path))

    def permits(self, paths: Sequence[str]) -> list[bool]:
        """Which paths, each with its query, may be fetched. The robots.txt itself may, unless a rule names it."""
        if not self.literal.texts or all(map(self._surely_permitted, paths)):
            return [True] * len(paths)
        text = normal_form.literal_paths(paths)
        keep, decoded = self.literal.permits(text, len(paths)), normal_form.decoded_paths(text)
        if self.differ or decoded != text or DOLLAR in text:
            keep &= self.decoded.permits(decoded, len(paths))
        if ITSELF in paths and ITSELF not in self.literal.texts:
            keep |= np.array([path == ITSELF for path in paths])
        permitted: list[bool] = keep.tolist()
        return permitted

    def why(self, path: str) -> str:
        """The rule that decides on a path, in words."""
        text = normal_form.literal_paths([path])
        readings = ((self.literal, text), (self.decoded, normal_form.decoded_paths(text)))
        deciding = [_described(rules, int(rules.first(form, 1)[0])) for rules, form in readings]
        return next((words for allowed, words in deciding if not allowed), deciding[0][1])


def compiled(rules: Iterable[tuple[bool, str]]) -> Matcher:
    """Rules as they are written in a file, (allowed, pattern); each counts once."""
    literal = dict.fromkeys((allow, normal_form.literal_pattern(text), text) for allow, text in _with_folders(rules))
    return _matcher(list(literal)) if literal else of_no_rules()


@cache
def of_no_rules() -> Matcher:
    """One for all files, of which most forbid nothing of some kind."""
    return _matcher([])


def _matcher(literal: list[Rule]) -> Matcher:
    decoded = [(allow, normal_form.decoded_pattern(form), text) for allow, form, text in literal]
    dollars = [(allow, form[:-1] + DOLLAR, text) for allow, form, text in decoded if form.endswith(b"$")]
    first, others = _columns(literal), decoded + dollars
    same = literal == decoded and not dollars
    looks = {_looks(form) for allow, form, _ in literal + others if not allow}
    return Matcher(first, first if same else _columns(others), literal != decoded, *_starts_and_marks(looks))


def _columns(rules: Sequence[Rule]) -> Rules:
    order = sorted(rules, key=lambda rule: (-len(rule[1]), not rule[0]))
    parts = [_parts(pattern) for _, pattern, _ in order]
    pieces = [piece for of_rule, _ in parts for piece in of_rule]
    pattern, start = np.frombuffer(b"".join(pieces), np.uint8), _sums(map(len, pieces))
    part = _sums(len(of_rule) for of_rule, _ in parts)
    slip, need = np.zeros(len(pattern), np.int32), np.zeros((len(order), WORDS), np.uint64)
    slips(pattern, start, slip)
    bits(pattern, start, part, need)
    allow = np.array([rule[0] for rule in order], np.bool_)
    ends = np.array([anchored for _, anchored in parts], np.bool_)
    return Rules(tuple(rule[2] for rule in order), allow, part, ends, need, start, pattern, slip)


def _parts(pattern: bytes) -> tuple[list[bytes], bool]:
    """The texts of a pattern: the first must stand at the beginning, the others in this order after it."""
    anchored = pattern.endswith(b"$")
    first, *others = (pattern[:-1] if anchored else pattern).split(b"*")
    middle = [text for text in others[:-1] if text]
    last = [text for text in others[-1:] if text or anchored]  # "*$" ends anywhere: its last text is empty
    return [first, *middle, *last], anchored


def _looks(pattern: bytes) -> tuple[str, str]:
    """What a path begins with, if the pattern matches it, and the longest text that must come after a star."""
    start, *others = (text.decode("ascii", "replace") for text in pattern.removesuffix(b"$").split(b"*"))
    return start, max(others, key=len, default="")


def _starts_and_marks(looks: set[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Of very many rules little is said: whoever looks at each of them is slower than the kernel."""
    marks = {(start, mark) for start, mark in looks if mark}
    if len(marks) > MOST_MARKS:
        marks = set()
    starts = {start for start, mark in looks if (start, mark) not in marks}
    return tuple(starts) if len(starts) <= MOST_STARTS else ("/",), tuple(marks)


def _with_folders(rules: Iterable[tuple[bool, str]]) -> Iterable[tuple[bool, str]]:
    """A rule that allows the index page of a folder allows the folder: both are one page."""
    for allow, text in rules:
        yield allow, text
        folder, slash, name = text.rpartition("/")
        if allow and slash and name.startswith("index.htm"):
            yield True, f"{folder}/$"


def _described(rules: Rules, found: int) -> tuple[bool, str]:
    if found < 0:
        return True, "no rule matches"
    allowed = bool(rules.allow[found])
    return allowed, f"{'Allow' if allowed else 'Disallow'}: {rules.texts[found][:200]}"


def _sums(sizes: Iterable[int]) -> I64:
    return np.cumsum([0, *sizes], dtype=np.int64)


@part
def mark(first: Any, second: Any, marks: Any, row: Any) -> None:
    """Set one of 256 bits, in four words of a row, for two neighbouring bytes."""
    mixed = (np.uint64(first) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(second) * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed * np.uint64(0x165667B19E3779F9)) >> np.uint64(56)
    marks[row, np.int64(mixed >> np.uint64(6))] |= np.uint64(1) << (mixed & np.uint64(63))


@part
def has_all(has: Any, need: Any, rule: Any) -> Any:
    """Whether every bit that the rule needs is set."""
    for word in range(WORDS):  # noqa: SIM110 - numba knows no generators
        if need[rule, word] & ~has[0, word] != 0:
            return False
    return True


@part
def begins(path: Any, begin: Any, end: Any, pattern: Any, start: Any, stop: Any) -> Any:
    """Whether path[begin:end] begins with pattern[start:stop]."""
    if end - begin < stop - start:
        return False
    for at in range(stop - start):  # noqa: SIM110
        if path[begin + at] != pattern[start + at]:
            return False
    return True


@part
def after(path: Any, begin: Any, end: Any, pattern: Any, start: Any, stop: Any, slip: Any) -> Any:
    """Where the first occurrence of pattern[start:stop] in path[begin:end] ends; -1: there is none."""
    matched, size = 0, stop - start
    if size > end - begin:
        return -1
    for at in range(begin, end):
        while matched and path[at] != pattern[start + matched]:
            matched = slip[start + matched - 1]
        if path[at] == pattern[start + matched]:
            matched += 1
            if matched == size:
                return at + 1
    return -1


@part
def matches(path: Any, begin: Any, end: Any, rule: Any, part_at: Any, ends: Any, start: Any, pattern: Any, slip: Any) -> Any:  # fmt: skip # noqa: E501
    """Its first text at the beginning, the others as early as can be, the last at the end if nothing may follow."""
    first, last = part_at[rule], part_at[rule + 1] - 1
    if not begins(path, begin, end, pattern, start[first], start[first + 1]):
        return False
    here = begin + start[first + 1] - start[first]
    for text in range(first + 1, last + 1):
        size = start[text + 1] - start[text]
        if text == last and ends[rule]:
            return end - size >= here and begins(path, end - size, end, pattern, start[text], start[text + 1])
        here = after(path, here, end, pattern, start[text], start[text + 1], slip)
        if here < 0:
            return False
    return not ends[rule] or here == end


@kernel(nothing(fixed_bytes, i64s, bools, BITS, i64s, fixed_bytes, i32s, i64s))
def search(paths, part_at, ends, need, start, pattern, slip, found):  # type: ignore[no-untyped-def]
    """The first rule that matches each line."""
    begin, has = 0, np.zeros((1, WORDS), np.uint64)
    for number in range(len(found)):
        end = begin
        has[0, :] = 0
        while end < len(paths) and paths[end] != LINE_END:
            if end > begin:
                mark(paths[end - 1], paths[end], has, 0)
            end += 1
        for rule in range(len(need)):
            if has_all(has, need, rule) and matches(paths, begin, end, rule, part_at, ends, start, pattern, slip):
                found[number] = rule
                break
        begin = end + 1


@kernel(nothing(fixed_bytes, i64s, i32s))
def slips(pattern, start, slip):  # type: ignore[no-untyped-def]
    """For every byte of a text: how many bytes before and with it are also how the text begins."""
    for text in range(len(start) - 1):
        begin, matched = start[text], 0
        for at in range(begin + 1, start[text + 1]):
            while matched and pattern[at] != pattern[begin + matched]:
                matched = slip[begin + matched - 1]
            if pattern[at] == pattern[begin + matched]:
                matched += 1
            slip[at] = matched


@kernel(nothing(fixed_bytes, i64s, i64s, BITS))
def bits(pattern, start, part_at, need):  # type: ignore[no-untyped-def]
    """Mark the pairs of neighbouring bytes in the texts of each rule."""
    for rule in range(len(need)):
        for text in range(part_at[rule], part_at[rule + 1]):
            for at in range(start[text] + 1, start[text + 1]):
                mark(pattern[at - 1], pattern[at], need, rule)
