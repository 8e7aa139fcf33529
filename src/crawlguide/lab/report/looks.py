"""Who wears which colour: the same on every figure of a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.gateway.dashboard.words import visible
from crawlguide.lab.compare import subject

if TYPE_CHECKING:
    from crawlguide.lab.study import Study

COLOURS = 6  # of Okabe and Ito's, which also those tell apart who see fewer; the style sheet knows them
LONGEST = 22  # characters of a name that fit beside a line


@dataclass(frozen=True)
class Look:
    """A policy's name and the class that colours it: c0 … c5, `other` once these are used up, or `reference`."""

    policy: str
    name: str
    short: str
    kind: str


def looks(study: Study) -> list[Look]:
    """The compared policy first, then the others, the best first, then the references."""
    first = [subject(study)] if study.policies else []
    policies = first + [name for name in study.policies if name not in first]
    kinds = [f"c{place}" if place < COLOURS else "other" for place in range(len(policies))]
    kinds += ["reference"] * len(study.references)
    return [
        Look(policy, visible(policy), shortened(visible(policy)), kind)
        for policy, kind in zip(policies + study.references, kinds, strict=True)
    ]


def shortened(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
