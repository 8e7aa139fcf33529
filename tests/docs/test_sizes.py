"""Files are of one idea and functions of one purpose: neither is long."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "crawlguide"
FILES = sorted(SOURCE.rglob("*.py"))
LINES, LINES_OF_A_FUNCTION = 300, 40
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("room", sorted({path.relative_to(SOURCE).parts[0] for path in FILES}))
def test_no_file_and_no_function_is_long(room: str) -> None:
    long = []
    for path in (path for path in FILES if path.relative_to(SOURCE).parts[0] == room):
        text = path.read_text()
        long += [str(path)] if text.count("\n") > LINES else []
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, FUNCTIONS) and (node.end_lineno or 0) - node.lineno >= LINES_OF_A_FUNCTION:
                long.append(f"{path}:{node.lineno} {node.name}")
    assert not long
