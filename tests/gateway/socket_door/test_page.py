"""The documentation of the socket says what it does."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys

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


async def test_the_program_in_the_documentation_speaks_message_pack(served: Served) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-c", program.replace("127.0.0.1:8080", f"127.0.0.1:{served.port}")]
    ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "{'type': 'pong', 'id': 1}\n"
