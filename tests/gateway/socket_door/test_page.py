"""The documentation of the socket says what it does."""

from __future__ import annotations

import json
import re

from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import (
    PAGE,
    opened,
)


async def test_the_conversation_in_the_documentation_is_true(own_server: Served) -> None:
    (talk,) = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    async with opened(own_server) as line:
        for said in talk.splitlines():
            if said.startswith("> "):
                await line.socket.send(said[2:])
                continue
            heard = json.dumps(await line.hear(), separators=(",", ":"), ensure_ascii=False)
            pattern = ".+?".join(re.escape(part) for part in said.removeprefix("< ").split("…"))
            assert re.fullmatch(pattern, heard), f"heard    {heard}\nexpected {said}"
