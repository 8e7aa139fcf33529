"""Words of the topic, and how many of them a text has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.core.definition import Goal

WORD = re.compile(r"[^\W_]+")


def topic_words(goal: Goal) -> tuple[str, ...]:
    """The keywords of the goal, or the words of its topic where it has none; in small letters, each once."""
    words = WORD.findall(" ".join(goal.keywords).lower()) or WORD.findall(goal.topic.lower())
    return tuple(dict.fromkeys(words))


def share(words: tuple[str, ...], text: str) -> float:
    """The share of the words that occur in a text, also as parts of longer words."""
    lower = text.lower()
    return sum(word in lower for word in words) / len(words) if words else 0.0
