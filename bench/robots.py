"""What robots.txt costs: a match on 200 rules, the slowest files of 500 KiB there are, and an ask over many files.

    python bench/robots.py [--files 5000]

The last is the same ask of two crawls of one guide, one that obeys and one that ignores, in turn: beside what it costs,
the ratio of the two.
"""

from __future__ import annotations

import argparse
import time
from random import Random
from statistics import median

from crawlguide import Guide
from crawlguide.policy.robots import allowed, matcher, normal_form, parser

VERSION = "2025-11"
WORDS = (
    "shop",
    "cart",
    "user",
    "login",
    "search",
    "tag",
    "page",
    "print",
    "item",
    "news",
    "sort",
    "filter",
    "ref",
    "id",
)
PAGES, ASKS, AT_ONCE = 20, 150, 250
LONG = "https://example.org/" + "ab" * 4_000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--files", type=int, default=5_000, help="origins with a robots.txt of their own")
    files, chance = arguments.parse_args().files, Random(1)
    body = _file(chance, 200)
    urls = [f"https://www.example.org/{_word(chance)}/{_word(chance)}?{_word(chance)}={k}" for k in range(20_000)]
    compiled = matcher.compiled(parser.parse(body, "crawlguide")[0].rules)
    for size in (1, 10, 200):
        best = min(_match(compiled, urls, size) for _ in range(5))
        print(f"200 rules, {size:3} URLs at a time: {best * 1e6:.2f} µs a URL")
    for name, bomb in _bombs().items():
        began = time.process_time()
        allowed(bomb, "crawlguide", LONG)
        print(f"{name}, {len(bomb):,} bytes: {(time.process_time() - began) * 1e3:.0f} ms to read and match")
    obeying(files, chance)


def obeying(files: int, chance: Random) -> None:
    """Every origin has a file of its own, of 5 to 50 rules."""
    with Guide.open(":memory:") as guide:
        for mode in ("ignore", "crawler"):
            policy = {"robots": mode, "default_delay_s": 0, "traps": False, "risk_threshold": 1.0}
            guide.define(mode, {"policy": policy, "strategy": {"kind": "best-first"}})
        for start in range(0, files, AT_ONCE):
            hosts = [f"https://host{number}.example" for number in range(start, min(start + AT_ONCE, files))]
            guide.seed("ignore", pages := [f"{host}/{_word(chance)}/{n}" for host in hosts for n in range(PAGES)])
            guide.seed("crawler", pages)
            bodies = [_file(chance, chance.randrange(5, 50)).decode() for _ in hosts]
            told = [
                {"url": f"{host}/robots.txt", "status": 200, "text": body}
                for host, body in zip(hosts, bodies, strict=True)
            ]
            guide.tell({"mcp_version": VERSION, "crawler_id": "c", "crawl_id": "crawler", "fetches": told})
        first, later = _asks(guide, ASKS), _asks(guide, ASKS)
    for when, spent in (("first", first), ("later", later)):
        ignore, obey = median(spent["ignore"]), median(spent["crawler"])
        print(
            f"{files:,} files, {when} {ASKS} asks for 30 URLs: {obey * 1e3:.2f} ms of CPU, "
            f"{ignore * 1e3:.2f} ms where they are ignored, ratio {obey / ignore:.2f}; "
            f"the slowest {max(spent['crawler']) * 1e3:.1f} ms"
        )


def _asks(guide: Guide, count: int) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {"ignore": [], "crawler": []}
    for _ in range(count):
        for mode, times in spent.items():
            message = {"mcp_version": VERSION, "crawler_id": "c", "crawl_id": mode, "budget": {"max_urls": 30}}
            began = time.process_time()
            guide.ask(message)
            times.append(time.process_time() - began)
    return spent


def _match(compiled: matcher.Matcher, urls: list[str], size: int) -> float:
    began = time.process_time()
    for start in range(0, len(urls), size):
        compiled.permits([normal_form.path_of_canonical(url) for url in urls[start : start + size]])
    return (time.process_time() - began) / len(urls)


def _file(chance: Random, rules: int) -> bytes:
    """A quarter each: a folder, a name in the query, a name below a folder, an extension."""
    kinds = ("/{0}/{1}", "/*?{0}=", "/{0}/*/{1}", "/*.{0}$")
    patterns = [chance.choice(kinds).format(_word(chance), _word(chance)) for _ in range(rules)]
    return "\n".join(
        ["User-agent: *", *(f"{chance.choice(('Allow', 'Disallow'))}: {one}" for one in patterns)]
    ).encode()


def _word(chance: Random) -> str:
    return chance.choice(WORDS) + chance.choice(("", "s", "-a", "_b", str(chance.randrange(100))))


def _bombs() -> dict[str, bytes]:
    head = b"User-agent: *\n"
    return {
        "plain rules": head + b"".join(b"Disallow: /p%d\n" % number for number in range(30_000)),
        "rules with stars": head + b"".join(b"Disallow:/*ba*b%d\n" % number for number in range(26_000)),
        "stars in a row": head + (b"Disallow: /" + b"*ab" * 5_000 + b"c\n") * 32,
        "agents": b"".join(b"User-agent: a%d\n" % number for number in range(28_000)) + b"Disallow: /\n",
        "line ends": b"\r" * 512_000,
    }


if __name__ == "__main__":
    main()
