"""The process in which rules are evaluated: it can be killed, it sees no environment, and it may open nothing.

It stands alone: `python -I worker.py`. A line of JSON comes in, a line goes out. The first one brings the bundle.
"""

import json
import os
import re
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

MOST_MEMORY = 1 << 30
QUERY = "deny := data.crawlguide.deny"
# Ways to look at a URL without naming its fields: by a variable (but for the place in a list), all of them, as a text.
WHOLE = re.compile(
    r"(?<!\burls)(?<!\bdeny)\[\s*[A-Za-z]\w*\s*\]|\bsome\s+\w+\s*,|\bwalk\s*\(|\b(object|json|yaml)\.|\b(sprintf|count)\s*\("
)


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the engine prints its errors
    lines = iter(sys.stdin)
    try:
        source = json.loads(next(lines))
        bundle, fields = loaded(source), named(source)
    except Exception as problem:  # noqa: BLE001 - whatever is wrong with somebody's rules goes back to them
        reply(replies, {"error": f"{type(problem).__name__}: {problem}"[:2_000]})
        return
    confine()
    reply(replies, {"deny": {}})
    for line in lines:
        reply(replies, evaluated(bundle, fields, line))


def named(source: Mapping[str, Any]) -> frozenset[str] | None:
    """The fields of a URL that the rules can see: those that they or their data name, and `url`. None: all.

    Handing a field over costs more than evaluating most rules.
    """
    modules = "\n".join(source["modules"].values())
    if WHOLE.search(modules):
        return None
    return frozenset(re.findall(r"\w+", modules + "\n".join(source["data"]))) | {"url"}


def loaded(source: Mapping[str, Any]) -> Any:
    from regopy import Interpreter  # noqa: PLC0415 - where it is missing that is told like any other problem

    interpreter = Interpreter()
    for document in source["data"]:
        interpreter.add_data_json(document)
    for name, text in source["modules"].items():
        interpreter.add_module(name, text)
    return interpreter.build(QUERY, [])


def confine() -> None:
    """From here on no file can be opened or written, and memory is bounded."""
    most = reserved() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def reserved() -> int:
    """Bytes of address space in use; the engine reserves much more than it needs."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def evaluated(bundle: Any, fields: frozenset[str] | None, line: str) -> dict[str, Any]:
    from regopy import Interpreter  # noqa: PLC0415 - known since the bundle was loaded

    try:
        interpreter, question = Interpreter(), json.loads(line)
        if fields is not None:
            question["urls"] = [{name: each[name] for name in each if name in fields} for each in question["urls"]]
        interpreter.set_input(question)
        text = str(interpreter.query_bundle(bundle))
        if text == "undefined":
            return {"error": "there is no rule `deny` in the package `crawlguide`"}
        if not text.startswith("{"):
            return {"error": text[:2_000] or "no answer"}
        return {"deny": denied(json.loads(text)["bindings"]["deny"])}
    except Exception as problem:  # noqa: BLE001
        return {"error": f"{type(problem).__name__}: {problem}"[:2_000]}


def denied(found: object) -> dict[str, str]:
    """A set of URLs, or an object that says why."""
    if isinstance(found, dict):
        return {str(url): str(why) for url, why in found.items()}
    if isinstance(found, list):
        return {str(url): "" for url in found}
    raise TypeError(f"deny: expected a set of URLs or an object, got {json.dumps(found)[:80]}")


def reply(replies: TextIO, message: Mapping[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()
