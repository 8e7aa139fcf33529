"""Count what one ask and one tell pass through: `python -m scripts.trace` prints distinct functions and files of each.

The guide is in this process and in memory; its crawl uses `layered` and obeys robots.txt files that are known, and the
page that is told has 20 links. Everything was used before, so that only what every ask and tell pays for is counted.
Only Python counts: kernels are compiled and one call each. `--names` lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import crawlguide
from crawlguide import Guide
from crawlguide.core.clock import ManualClock

SOURCE = str(Path(crawlguide.__file__).parent)
VERSION = {"mcp_version": "2025-11", "crawler_id": "c1", "crawl_id": "traced"}
LINKS, ROUNDS = 20, 3
NOT_FUNCTIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")


class Passed(NamedTuple):
    """Functions that were called, by file and name."""

    functions: set[tuple[str, str]]

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    def __str__(self) -> str:
        return f"{len(self.functions)} functions in {len(self.files)} files"


def traced(call: Callable[[], Any]) -> Passed:
    """The functions of crawlguide that a call passes through."""
    seen: set[CodeType] = set()
    sys.setprofile(lambda frame, event, _: _note(seen, frame, event))
    try:
        call()
    finally:
        sys.setprofile(None)
    ours = (code for code in seen if code.co_filename.startswith(SOURCE) and code.co_name not in NOT_FUNCTIONS)
    return Passed({(code.co_filename.removeprefix(SOURCE), code.co_qualname) for code in ours if not _is_kernel(code)})


def _is_kernel(code: CodeType) -> bool:
    """Numba reports calls of what it compiled as if it were Python."""
    path = Path(code.co_filename).relative_to(Path(SOURCE).parent).with_suffix("")
    module = sys.modules.get(".".join(path.parts).removesuffix(".__init__"))
    return hasattr(getattr(module, code.co_name, None), "py_func")


def _note(seen: set[CodeType], frame: FrameType, event: str) -> None:
    if event == "call":
        seen.add(frame.f_code)


def page(number: int) -> dict[str, Any]:
    """A page with links, half of them to other hosts."""
    links = [f"https://host{number * LINKS + each}.org/{number}/{each}" for each in range(LINKS // 2)]
    links += [f"https://start.org/{number}/{each}" for each in range(LINKS // 2)]
    return {
        "url": f"https://start.org/{number}", "status": 200, "elapsed_ms": 80, "bytes": 9_000, "relevance": 0.5,
        "title": f"page {number}", "text": "a text", "outlinks": [{"url": url, "anchor": "words"} for url in links],
    }  # fmt: skip


def robots(number: int) -> list[dict[str, Any]]:
    """The robots.txt files of every host that a page names."""
    hosts = [f"host{number * LINKS + each}.org" for each in range(LINKS // 2)]
    text = "User-agent: *\nDisallow: /private\n"
    return [{"url": f"https://{host}/robots.txt", "status": 200, "text": text} for host in ["start.org", *hosts]]


def trace() -> tuple[Passed, Passed]:
    """What one ask and one tell pass, after some of each."""
    clock = ManualClock()
    with Guide.open(":memory:", clock=clock) as guide:
        guide.define("traced", {"strategy": {"kind": "layered"}, "goal": {"topic": "a topic"}})
        guide.seed("traced", [f"https://start.org/{number}" for number in range(ROUNDS + 1)])
        guide.tell({**VERSION, "fetches": robots(ROUNDS)})
        for number in range(ROUNDS):
            guide.tell({**VERSION, "fetches": [page(number), *robots(number)]})
            guide.ask({**VERSION, "request_id": f"q{number}", "budget": {"max_urls": 5}})
            clock.advance(5.0)
        tell = {**VERSION, "report_id": "r", "fetches": [page(ROUNDS)]}
        ask = {**VERSION, "request_id": "q", "budget": {"max_urls": 5}}
        told = traced(lambda: guide.tell(tell))
        clock.advance(5.0)
        asked = traced(lambda: guide.ask(ask))
    return asked, told


def main() -> None:
    asked, told = trace()
    sys.stdout.write(f"one ask:  {asked}\none tell: {told}\n")
    if "--names" in sys.argv:
        for name, passed in (("ask", asked), ("tell", told)):
            sys.stdout.writelines(f"{name} {file} {function}\n" for file, function in sorted(passed.functions))


if __name__ == "__main__":
    main()
