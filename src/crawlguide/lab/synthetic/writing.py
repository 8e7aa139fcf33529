"""What pages say: sentences of common words and words of the topic, always the same for the same page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.chance import stream
from crawlguide.lab.synthetic.words import COMMON, TOPICS

if TYPE_CHECKING:
    from random import Random

ON_TOPIC, NAME, OTHER = 0.30, 0.25, 0.04  # of words; of the topic's words those of its name; of another topic
SENTENCES = (10, 24)
_NAMES = [tuple(name.split("-")) for name in TOPICS]
_WORDS = list(TOPICS.values())


def text(topic: int, *names: object) -> str:
    """Some sentences about a topic, or about nothing in particular where it is -1."""
    chance = stream("text", *names)
    other = chance.randrange(len(_WORDS))
    return " ".join(_sentence(topic, other, chance) for _ in range(chance.randint(*SENTENCES)))


def _sentence(topic: int, other: int, chance: Random) -> str:
    words = [_word(topic, other, chance) for _ in range(chance.randint(6, 14))]
    return " ".join(words).capitalize() + "."


def _word(topic: int, other: int, chance: Random) -> str:
    draw = chance.random()
    if topic >= 0 and draw < ON_TOPIC:
        return chance.choice(_NAMES[topic] if draw < ON_TOPIC * NAME else _WORDS[topic])
    return chance.choice(_WORDS[other] if draw > 1 - OTHER else COMMON)
