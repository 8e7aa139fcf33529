"""What is looked for: rules such as `databases=\\bsql\\b|databases?`, on a page's title, address and text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from crawlguide.lab.build.sources import FoundPage

OFTEN = 3  # a word in passing does not make a page


@dataclass(frozen=True)
class Topic:
    """A page is on the topic if its title or its address says so, or its text says so three times."""

    name: str
    rule: re.Pattern[str]

    def fits(self, page: FoundPage) -> bool:
        if self.rule.search(page.title) or self.rule.search(page.url):
            return True
        return sum(1 for _, _ in zip(range(OFTEN), self.rule.finditer(page.text), strict=False)) == OFTEN


def parsed(text: str) -> Topic:
    """`NAME=REGEX`; capital or small letters are the same."""
    name, _, rule = text.partition("=")
    if not name or not rule:
        raise ConfigError(f"topic: expected NAME=REGEX, got {text!r}")
    try:
        return Topic(name, re.compile(rule, re.IGNORECASE))
    except re.error as problem:
        raise ConfigError(f"topic: {name}: expected a regular expression: {problem}, got {rule!r}") from None
