"""Rules compiled to columns: one kernel finds the rule that decides, for many URLs at once.

A rule is a pattern: texts with anything between them (`*`), and perhaps nothing after them (`$`). The longest pattern
that matches decides, and `allow` wins a tie (RFC 9309, 2.2.2). So rules are sorted once, and the first that matches
is it. A rule is passed over in a few instructions where the URL lacks one of its pairs of neighbouring bytes; the
others are searched by Knuth, Morris and Pratt's method, so no pattern and no URL makes a search slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.policy.robots import forms
from crawlguide.policy.robots.searching import WORDS, bits, search, slips

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crawlguide.core.tables import I32, I64, U8, U64, Mask

    Rule = tuple[bool, bytes, str]  # allowed, the pattern in its form, the pattern as it was written

ITSELF = "/robots.txt"
MOST_STARTS = 100
_PLAIN = re.compile(r"[A-Za-z0-9_.~!&'()+,;=:@/?-]*")
DOLLAR = b"%24"  # a last "$" says that nothing follows, but some who wrote one meant the letter


@dataclass(frozen=True)
class Rules:
    """Patterns, the one that decides first. `part` says where the texts of a rule stand among all texts."""

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


@dataclass(frozen=True)
class Matcher:
    """The rules in both readings of escapes. What one of them forbids is forbidden: a doubt is no permission."""

    by_letter: Rules
    by_meaning: Rules
    differ: bool  # the patterns themselves, and not only the URLs
    starts: tuple[str, ...]  # how the paths begin that anything may be forbidden to

    def _plainly(self, path: str) -> bool:
        """No rule forbids a path with nothing to escape that begins like none of them: most are of this kind."""
        return not path.startswith(self.starts) and bool(_PLAIN.fullmatch(path))

    def permits(self, paths: Sequence[str]) -> list[bool]:
        """Which paths, each with its query, may be fetched. The robots.txt itself may, unless a rule names it."""
        if not self.by_letter.texts or all(map(self._plainly, paths)):
            return [True] * len(paths)
        text = forms.targets(paths)
        keep, meant = self.by_letter.permits(text, len(paths)), forms.meant_targets(text)
        if self.differ or meant != text or DOLLAR in text:
            keep &= self.by_meaning.permits(meant, len(paths))
        if ITSELF in paths and ITSELF not in self.by_letter.texts:
            keep |= np.array([path == ITSELF for path in paths])
        permitted: list[bool] = keep.tolist()
        return permitted

    def why(self, path: str) -> str:
        """The rule that decides on a path, in words."""
        text = forms.targets([path])
        readings = ((self.by_letter, text), (self.by_meaning, forms.meant_targets(text)))
        said = [_said(rules, int(rules.first(form, 1)[0])) for rules, form in readings]
        return next((words for allowed, words in said if not allowed), said[0][1])


def compiled(rules: Iterable[tuple[bool, str]]) -> Matcher:
    """Rules as a file says them, (allowed, pattern); each counts once."""
    by_letter = list(dict.fromkeys((allow, forms.pattern(text), text) for allow, text in _with_folders(rules)))
    by_meaning = [(allow, forms.meant_pattern(form), text) for allow, form, text in by_letter]
    letters = [(allow, form[:-1] + DOLLAR, text) for allow, form, text in by_meaning if form.endswith(b"$")]
    first, others = _columns(by_letter), by_meaning + letters
    same = by_letter == by_meaning and not letters
    forbidden = {_start(form) for allow, form, _ in by_letter + others if not allow}
    starts = tuple(forbidden) if len(forbidden) <= MOST_STARTS else ("/",)
    return Matcher(first, first if same else _columns(others), by_letter != by_meaning, starts)


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


def _start(pattern: bytes) -> str:
    """What a path begins with, if the pattern matches it."""
    return pattern.removesuffix(b"$").partition(b"*")[0].decode("ascii", "replace")


def _with_folders(rules: Iterable[tuple[bool, str]]) -> Iterable[tuple[bool, str]]:
    """Whoever allows a folder's index page allows the folder: both are one page."""
    for allow, text in rules:
        yield allow, text
        folder, slash, name = text.rpartition("/")
        if allow and slash and name.startswith("index.htm"):
            yield True, f"{folder}/$"


def _said(rules: Rules, found: int) -> tuple[bool, str]:
    if found < 0:
        return True, "no rule matches"
    allowed = bool(rules.allow[found])
    return allowed, f"{'Allow' if allowed else 'Disallow'}: {rules.texts[found][:200]}"


def _sums(sizes: Iterable[int]) -> I64:
    return np.cumsum([0, *sizes], dtype=np.int64)
