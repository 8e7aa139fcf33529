"""docs/agents.md is true: its table of tools, its conversation, its entries for agents, its command."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import msgspec
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from crawlguide.agents.http import PATH
from crawlguide.agents.messages import FoundPages
from crawlguide.agents.tools import BY_NAME, TOOLS
from crawlguide.gateway import wire
from tests.agents.common import over_http, process_over_http
from tests.docs.blocks import ROOT, of_page
from tests.gateway.conftest import SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "agents.md").read_text()


def said() -> list[dict[str, Any]]:
    return [json.loads(line) for block in of_page("docs/agents.md", "json") for line in block.text.splitlines()]


def test_the_table_names_every_tool_as_it_is() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (yes|no) \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert rows == [(tool.name, tool.title, "yes" if tool.reads_only else "no") for tool in TOOLS]


def test_the_calls_of_the_conversation_are_what_the_tools_take() -> None:
    calls = [message for message in said() if "tool" in message]
    assert len(calls) >= 5
    for call in calls:
        wire.convert(call["arguments"], BY_NAME[call["tool"]].takes)
    (answer,) = (message for message in said() if "pages" in message)
    assert msgspec.to_builtins(msgspec.convert(answer, FoundPages)) == answer


async def test_the_first_entry_starts_a_server(tmp_path: Path) -> None:
    first, *others = (message["mcpServers"]["crawlguide"] for message in said() if "mcpServers" in message)
    args = [word.replace("/home/me", str(tmp_path)) for word in first["args"]]
    async with Client(StdioServerParameters(command=str(SCRIPT), args=args)) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == set(BY_NAME)
    assert (tmp_path / "crawls").is_dir()
    assert [other for other in others if other.get("url", "").endswith(PATH)]


async def test_the_command_answers_over_http(tmp_path: Path) -> None:
    (block,) = of_page("docs/agents.md", "sh")
    program, agents, http, port, number, *options = shlex.split(block.text)
    assert (program, agents, http, port, number) == ("crawlguide", "agents", "--http", "--port", "8082")
    with process_over_http(tmp_path, *options) as process:
        async with over_http(process.port) as client:
            assert len((await client.list_tools()).tools) == len(TOOLS)
        process.process.terminate()
        assert await asyncio.to_thread(process.process.wait, 30) == 0
