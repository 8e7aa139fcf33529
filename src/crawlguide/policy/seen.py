"""No URL twice: neither twice in one answer nor again before it is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from crawlguide.core.columns import first_of_each

if TYPE_CHECKING:
    from crawlguide.core.definition import Definition
    from crawlguide.core.tables import Mask
    from crawlguide.core.types import Ask, Batch


@dataclass(frozen=True)
class Seen:
    label: ClassVar = "with a crawler"

    name: str = "seen"
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        return first_of_each(batch.id)

    def why(self, batch: Batch, ask: Ask) -> str:
        return "it stands once in an answer, and is given out again only when it is due"


def build(definition: Definition) -> Seen:
    return Seen()
