"""docs/troubleshooting.md and docs/scrapy.md quote messages that the code can print."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

LEAST = 10  # letters: shorter pieces say nothing
REFUSED = {  # messages about a configuration, and one that causes each
    "…: unknown key 'server.prot'; did you mean 'server.port'?": "[server]\nprot = 1",
    "…: server.port: expected …, got …": "[server]\nport = 'x'",
    "…: unknown key 'port'; …": "port = 1",
    "…: server: expected a section [server], got …": "server = 1",
    "…: not TOML: …": "x =",
    "guide.filters: expected one of banned, budget, …, got '…'": "[guide]\nfilters = ['sen']",
}


def quoted() -> list[str]:
    """The messages in the first column, without the symptoms at the end."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text().partition("## It answers")[0]
    page += (ROOT / "docs" / "scrapy.md").read_text().partition("## Troubleshooting")[2]
    page += (ROOT / "docs" / "agents.md").read_text().partition("## Troubleshooting")[2]
    cells = re.findall(r"^\| (`[^|]*?) \|", page, re.MULTILINE)
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]


@cache
def printed() -> list[list[str]]:
    """Every text in the code, as the pieces between what is filled in."""
    trees = [ast.parse(path.read_text()) for path in sorted((ROOT / "src").rglob("*.py"))]
    return [pieces for tree in trees for node in ast.walk(tree) if (pieces := _pieces(node))]


def _pieces(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [piece for piece in re.split(r"\{\w+\}", node.value) if len(piece) >= LEAST]
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    literal = [part.value for part in parts if isinstance(part, ast.Constant)]
    return [piece for piece in literal if isinstance(piece, str) and len(piece) >= LEAST]


@pytest.mark.parametrize("message", [message for message in quoted() if message not in REFUSED])
def test_a_message_is_one_that_the_code_can_print(message: str) -> None:
    shown = [piece.strip() for piece in message.split("…") if len(piece.strip()) >= LEAST]
    assert any(
        (all(piece in message for piece in pieces) and 3 * sum(map(len, pieces)) > len(message))  # and not just a word
        or (shown and all(one in "…".join(pieces) for one in shown))
        for pieces in printed()
    )


@pytest.mark.parametrize("message", REFUSED)
def test_a_configuration_is_refused_in_the_words_of_the_page(message: str, tmp_path: Path) -> None:
    assert message in quoted()
    path = tmp_path / "crawlguide.toml"
    path.write_text(REFUSED[message])
    program = str(Path(sys.executable).with_name("crawlguide"))
    command = [program, "config", "check", "--config", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert re.match("crawlguide: " + ".*".join(map(re.escape, message.split("…"))), ended.stderr)
