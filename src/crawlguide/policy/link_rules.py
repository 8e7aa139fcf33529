"""Which links a crawl follows by their URL: patterns that must or must not match, and kinds of files."""

from __future__ import annotations

import mimetypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Policy
    from crawlguide.core.messages import Fetch

LONGEST_EXTENSION = 12
NO_PATTERNS = Patterns((), "")


@dataclass(frozen=True)
class LinkRules:
    include: Patterns = NO_PATTERNS
    exclude: Patterns = NO_PATTERNS
    extensions: frozenset[str] = field(default_factory=frozenset)  # never wanted, in lower case and without a dot

    def __bool__(self) -> bool:
        return bool(self.include or self.exclude or self.extensions)

    def why_not(self, url: str) -> str | None:
        """Why a canonical URL is not wanted; None: it is."""
        if (found := self.exclude.found(url)) and self.exclude:
            return f"policy.exclude_patterns holds {self.exclude.texts[found[0]]!r}"
        if self.include and not self.include.found(url):
            return "none of policy.include_patterns is found in it"
        ending = extension(url) if self.extensions else ""
        return f"files that end in .{ending} are not wanted" if ending in self.extensions else None


def link_rules(policy: Policy) -> LinkRules:
    """Unwanted content types are recognised by their usual extensions."""
    extensions = {one.lower().lstrip(".") for one in policy.deny_extensions}
    types = policy.deny_content_types
    known = {ending[1:] for ending, kind in mimetypes.types_map.items() if is_kind(kind, types)}
    return LinkRules(
        Patterns(policy.include_patterns, "policy.include_patterns"),
        Patterns(policy.exclude_patterns, "policy.exclude_patterns"),
        frozenset(extensions | known) - {""},
    )


def extension(url: str) -> str:
    """Of the file that a canonical URL names, in lower case: https://a.org/b/c.PDF?d -> pdf. "": it has none."""
    name = url.partition("?")[0].rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    return ending if len(ending) <= LONGEST_EXTENSION else ""


def follows(policy: Policy, fetch: Fetch) -> bool:
    """Whether the links of a page may be followed: its language and its content type are wanted."""
    spoken = {one.lower().partition("-")[0] for one in policy.languages}
    if spoken and fetch.language and fetch.language.lower().replace("_", "-").partition("-")[0] not in spoken:
        return False
    kind = (fetch.content_type or "").partition(";")[0].strip().lower()
    return not (kind and is_kind(kind, policy.deny_content_types))


def is_kind(kind: str, types: Sequence[str]) -> bool:
    """Whether a content type is one of these: image/png is one of image/*."""
    return any(_fits(kind, one.lower()) for one in types)


def _fits(kind: str, one: str) -> bool:
    """A star stands for any characters; there may be one."""
    head, star, tail = one.partition("*")
    return kind.startswith(head) and kind.endswith(tail) and len(kind) >= len(head + tail) if star else kind == one
