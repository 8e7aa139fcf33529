"""Write the parts of the documentation that come out of the code: the table of keys, and the page of endpoints.

`python scripts/reference.py` writes them; with `--check` it only says whether they are up to date.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from crawlguide.cli.config import MEANINGS
from crawlguide.core.config import keys
from crawlguide.gateway.reference import Endpoint, Field, Message, reference

DOCS = Path(__file__).resolve().parents[1] / "docs"
LINKED = {"WebSockets": "websocket.md", "the log": "logs.md"}  # words in a meaning that another page explains


def pages() -> dict[Path, str]:
    """Every page that is made, or holds something that is."""
    configuration = DOCS / "configuration.md"
    return {configuration: _with_keys(configuration.read_text()), DOCS / "api.md": _endpoints()}


def _with_keys(page: str) -> str:
    head, _, rest = page.partition("## Keys\n")
    return f"{head}## Keys\n\n{_keys()}\n##{rest.partition('##')[2]}"


def _keys() -> str:
    rows = [f"| `{key}` | `{_plain(default)}` | {_linked(MEANINGS[key])} |" for key, (_, default) in keys().items()]
    return table(("key", "default", "meaning"), rows)


def _linked(meaning: str) -> str:
    for words, page in LINKED.items():
        meaning = meaning.replace(words, f"[{words}]({page})")
    return meaning


def _endpoints() -> str:
    known = reference()
    rows = [_endpoint(one) for one in known.endpoints]
    return (
        "# Endpoints and messages\n\n"
        "Generated from the code. Every server has this page at `/docs`, for the version that runs there, and the\n"
        "same for programs at `/openapi.json` (OpenAPI 3.1). The meaning of the fields is explained in\n"
        "[the guide protocol](protocol.md), errors in [errors](errors.md).\n\n"
        + table(("method", "path", "what it does", "takes", "gives"), rows)
        + "\n## Messages\n"
        + "".join(_message(one) for one in known.messages)
    )


def _endpoint(one: Endpoint) -> str:
    query = "".join(f" `{name}`" for name in one.query)
    path = f"`{one.path}`" + (f"<br>?{query}" if query else "")
    return f"| {one.method} | {path} | {one.summary} | {_held(one.takes)} | {_held(one.gives)} |"


def _message(one: Message) -> str:
    about = f"\n{one.about}\n" if one.about else ""
    rows = [f"| `{field.name}` | {_held(field)} | {_needed(field)} |" for field in one.fields]
    return f"\n### {one.name}\n{about}\n" + table(("field", "holds", ""), rows)


def _held(field: Field | None) -> str:
    if field is None:
        return "nothing"
    words = field.kind.replace("|", "\\|")
    return f"[{words}](#{field.message.lower()})" if field.message else words


def _needed(field: Field) -> str:
    return "always" if field.needed else "" if field.default is None else f"default `{field.default}`"


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def table(head: tuple[str, ...], rows: list[str]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *rows]
    return "".join(re.sub(r"  +", " ", line).rstrip() + "\n" for line in lines)


def write_or_check(pages: dict[Path, str], description: str | None) -> None:
    """The command of every script that writes pages: write them or, with --check, fail if they are out of date."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    if not parser.parse_args().check:
        for path, text in pages.items():
            path.write_text(text)
    elif stale := [str(path) for path, text in pages.items() if path.read_text() != text]:
        sys.exit(f"out of date: {', '.join(stale)}")


if __name__ == "__main__":
    write_or_check(pages(), __doc__)
