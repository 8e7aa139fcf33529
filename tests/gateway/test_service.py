"""What a service tells the doors in front of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gateway.bus.common import ask

from crawlguide.core.config import Config
from crawlguide.core.errors import MalformedRequest, UnavailableError
from crawlguide.core.messages import AskMessage
from crawlguide.gateway import routes, wire
from crawlguide.gateway.access.entrance import Caller
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service, Wanted

NEXT = next(route for route in routes.ROUTES if route.path == "/v1/next")


async def test_a_door_is_told_whose_answer_it_was_and_only_of_answers() -> None:
    service, told = Service(open_guide(MEMORY, Config()), Config()), list[tuple[str, Any]]()

    async def answered(message: dict[str, Any]) -> Any:
        def read() -> AskMessage:
            found: AskMessage = wire.convert(message, AskMessage)
            return found

        wanted = Wanted("test", NEXT, {}, {}, read, on_served=lambda call, result: told.append((call.tenant, result)))
        return await service.answer(Caller("test", ""), wanted)

    with pytest.raises(MalformedRequest):
        await answered(ask(budget={}))
    assert told == []
    advice = await answered(ask())
    assert told == [("default", advice)]
    await service.guide.close()


async def test_where_reports_wait_long_one_more_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(open_guide(MEMORY, Config()), Config())
    monkeypatch.setattr(service.guide.tells, "is_crowded", lambda tenant: tenant == "default")
    report = next(route for route in routes.ROUTES if route.path == "/v1/report")

    def read() -> Any:
        raise AssertionError("it was read")

    with pytest.raises(UnavailableError, match="more reports"):
        await service.answer(Caller("test", ""), Wanted("test", report, {}, {}, read))
    history = {"recent_history": [{"url": "https://a.example/", "status": 200}]}
    asked = ask(context=history)
    wanted = Wanted("test", NEXT, {}, {}, lambda: wire.convert(asked, AskMessage))
    with pytest.raises(UnavailableError, match="more reports"):
        await service.answer(Caller("test", ""), wanted)
    assert service.load.are_tells_crowded()  # so the connection need not even parse them
    await service.guide.close()
