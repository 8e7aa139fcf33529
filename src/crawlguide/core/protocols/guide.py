"""Who answers a crawler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from crawlguide.core.messages import Ack, Advice, AskMessage, ReportMessage


class Guide(Protocol):
    """What answers ask and tell: in this process, at the edge or far away."""

    async def ask(self, message: AskMessage, tenant: str = ...) -> Advice: ...

    async def tell(self, message: ReportMessage, tenant: str = ...) -> Ack: ...
