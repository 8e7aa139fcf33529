"""robots.txt as bytes: what it says to whom, and which URLs that covers."""

from __future__ import annotations

import gc
import json
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlguide.policy.robots import allowed, cache, matcher, normal_form, parser

CORPORA = Path(__file__).parents[3] / "shared" / "corpora"
LETTERS = st.text(st.sampled_from("ab/*$?%4é<"), max_size=12)


def lines(name: str) -> list[dict[str, Any]]:
    path = CORPORA / name
    if not path.exists():
        pytest.skip(f"the corpus {name} is not here")
    return [json.loads(line) for line in path.read_text().splitlines()]


def file(*rules: str, agent: str = "*") -> bytes:
    return "\n".join([f"User-agent: {agent}", *rules]).encode()


def test_every_case_of_googles_own_suite_and_nearly_all_of_the_others_are_right() -> None:
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    too_much = 0
    for case in lines("robots_cases.jsonl"):
        verdict = allowed(case["robots_txt"].encode(case["robots_encoding"]), case["user_agent"], case["url"])
        total[case["source"]] += 1
        right[case["source"]] += verdict == case["allowed"]
        too_much += verdict and not case["allowed"] and case["source"] != "protego_tests"
    others = sum(total.values()) - total["protego_tests"]
    assert right["google_robots_test"] == total["google_robots_test"] == 145
    assert (sum(right.values()) - right["protego_tests"]) / others >= 0.98
    assert too_much / others <= 0.015
    assert right["protego_tests"] >= 254  # the suites contradict one another about the rest


def test_real_files_are_read_as_googles_parser_reads_them() -> None:
    bodies = {each["site"]: each["robots_txt"].encode() for each in lines("robots_real_files.jsonl")}
    asked = defaultdict(list)
    for case in lines("robots_real_differential.jsonl"):
        asked[case["site"], case["user_agent"]].append((case["url"], case["allowed"]))
    agree = too_much = total = 0
    for (site, agent), cases in asked.items():
        compiled = matcher.compiled(parser.parse(bodies[site], agent)[0].rules)
        verdicts = compiled.permits([normal_form.path(url) for url, _ in cases])
        for verdict, (_, wanted) in zip(verdicts, cases, strict=True):
            total, agree = total + 1, agree + (verdict == wanted)
            too_much += verdict and not wanted
    assert agree / total >= 0.999
    assert too_much / total <= 2 / 10_000


@given(st.lists(st.tuples(st.booleans(), LETTERS), min_size=1, max_size=8), st.lists(LETTERS, min_size=1, max_size=8))
def test_the_compiled_rules_decide_as_the_rfc_describes_it(rules: list[tuple[bool, str]], tails: list[str]) -> None:
    rules = [(allow, "/" + text) for allow, text in rules if "index.htm" not in text]
    paths = ["/" + tail.replace("\n", "") for tail in tails]
    verdicts = matcher.compiled(rules).literal.permits(normal_form.literal_paths(paths), len(paths)).tolist()
    texts = normal_form.literal_paths(paths).split(b"\n")
    assert verdicts == [
        plainly([(allow, normal_form.literal_pattern(text)) for allow, text in rules], text) for text in texts
    ]


@given(st.lists(st.tuples(st.booleans(), LETTERS), min_size=1, max_size=8), LETTERS)
def test_the_short_way_for_plain_paths_leads_to_the_same_verdict(rules: list[tuple[bool, str]], tail: str) -> None:
    compiled = matcher.compiled([(allow, "/" + text) for allow, text in rules])
    text = normal_form.literal_paths(["/" + tail])
    both = compiled.literal.permits(text, 1) & compiled.decoded.permits(normal_form.decoded_paths(text), 1)
    assert compiled.permits(["/" + tail]) == both.tolist()


@pytest.mark.parametrize("many", [0, matcher.MOST_MARKS, matcher.MOST_STARTS])
def test_rules_with_stars_forbid_the_same_however_many_there_are(many: int) -> None:
    others = [(False, f"/*other-{number}") for number in range(many)]
    compiled = matcher.compiled(
        [(False, "/*?print="), (False, "/a/*/x*.pdf$"), (False, "/b/*"), (False, "*z"), *others]
    )
    paths = ["/p", "/p?print=1", "/a/x.pdf", "/a/b/x.pdf", "/a/b/x.pdf?", "/b/", "/b", "/quiz", "/p?other-3"]
    verdicts = [True, False, True, False, True, False, True, False, many <= 3]
    assert compiled.permits(paths) == verdicts
    assert [compiled.permits([path])[0] for path in paths] == verdicts


@given(st.lists(st.tuples(st.booleans(), LETTERS), max_size=8), st.lists(LETTERS, min_size=1, max_size=8))
def test_the_verdict_on_a_path_is_the_same_whatever_paths_are_judged_with_it(
    rules: list[tuple[bool, str]], tails: list[str]
) -> None:
    compiled = matcher.compiled([(allow, "/" + text) for allow, text in rules])
    paths = ["/" + tail for tail in tails]
    assert compiled.permits(paths) == [compiled.permits([path])[0] for path in paths]


def plainly(rules: list[tuple[bool, bytes]], path: bytes) -> bool:
    """The same by regular expressions, as slow as they are plain."""
    matching_rules = [(len(text), allow) for allow, text in rules if _expression(text).match(path)]
    return max(matching_rules, default=(0, True))[1]


def _expression(pattern: bytes) -> re.Pattern[bytes]:
    end = pattern.endswith(b"$")
    texts = (pattern[:-1] if end else pattern).split(b"*")
    return re.compile(b".*".join(map(re.escape, texts)) + (rb"\Z" if end else b""), re.DOTALL)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_marks_of_an_encoding_and_odd_line_ends_hide_no_rule(mark: bytes, end: str) -> None:
    body = mark + end.join(["User-Agent: *", "Disallow: /private", ""]).encode()
    assert not allowed(body, "crawlguide", "https://example.org/private/x")
    assert allowed(body, "crawlguide", "https://example.org/public")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_file_in_wide_letters_is_read(encoding: str) -> None:
    text = "User-agent: *\r\nDisallow: /privé\r\n"
    body = ("\ufeff" if encoding != "utf-16" else "").encode(encoding) + text.encode(encoding)
    assert not allowed(body, "x", "https://example.org/priv%C3%A9/1")


def test_a_crawler_that_calls_itself_compatible_goes_by_its_own_name() -> None:
    agent = "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.org/bot)"
    assert not allowed(file("Disallow: /", agent="examplebot"), agent, "https://example.org/")
    assert allowed(file("Disallow: /", agent="mozilla"), agent, "https://example.org/")


def test_only_the_first_500_kib_count_and_half_a_line_says_nothing() -> None:
    filler = b"#" + b"x" * 998 + b"\n"
    body = file("Disallow: /a", "") + filler * 511
    body += b"#" * (parser.MAX_BYTES - len(body) - 12) + b"\nDisallow: /bbbbbb\n"
    assert len(body) > parser.MAX_BYTES
    assert not allowed(body, "x", "https://example.org/a")
    assert allowed(body, "x", "https://example.org/bbbbbb")
    assert allowed(body, "x", "https://example.org/b")


def test_an_agents_own_groups_count_together_and_alone() -> None:
    own = file("Disallow: /one", agent="CrawlGuide/2.0"), file("Disallow: /two", agent="crawlguide")
    body = b"\n".join([file("Disallow: /all"), *own])
    for path, verdict in (("/one", False), ("/two", False), ("/all", True)):
        assert allowed(body, "crawlguide/1.0 (+https://example.org)", f"https://example.org{path}") is verdict
    assert not allowed(body, "other", "https://example.org/all")


def test_lines_that_nobody_knows_do_not_end_a_group() -> None:
    body = b"User-agent: one\nCache-delay: 3\nSitemap: https://example.org/map\nUser-agent: two\nDisallow: /x"
    assert not allowed(body, "one", "https://example.org/x")
    assert not allowed(body, "two", "https://example.org/x")


def test_an_escape_and_what_it_stands_for_are_the_same() -> None:
    assert not allowed(file("Disallow: /~joe"), "x", "https://example.org/%7Ejoe/a")
    assert not allowed(file("Disallow: /caf%C3%A9"), "x", "https://example.org/café")
    assert not allowed(file("Disallow: /a%3cd"), "x", "https://example.org/a%3Cd")
    assert not allowed(file("Disallow: /b%61z"), "x", "https://example.org/baz")
    assert not allowed(file("Disallow: /x%2A$"), "x", "https://example.org/x*")


def test_a_doubt_is_no_permission() -> None:
    body = file("Disallow: /", "Allow: /b%61z")
    assert allowed(body, "x", "https://example.org/b%61z")
    assert not allowed(body, "x", "https://example.org/baz")


def test_the_file_itself_may_be_fetched() -> None:
    assert allowed(file("Disallow: /"), "x", "https://example.org/robots.txt")


def test_pauses_are_read_in_every_unit() -> None:
    def pause(*rules: str) -> float | None:
        return parser.parse(file(*rules), "x")[0].pause_s

    assert pause("Crawl-delay: 2.5") == 2.5
    assert pause("Request-rate: 1/5m") == 300.0
    assert pause("Request-rate: 4/10s 0600-0845", "Crawl-delay: 1") == 2.5
    assert pause("Crawl-delay: 1", "Crawl-delay: 30", "Crawl-delay: x", "Crawl-delay: 2") == 30.0
    assert pause("Request-rate: 1/2m", "Request-rate: 1/1s") == 120.0
    assert pause("Crawl-delay: 1", "User-agent: *", "Crawl-delay: 30") == 30.0
    assert pause("Crawl-delay: 1e12") == parser.MAX_DELAY_S
    assert [pause("Crawl-delay: nan"), pause("Crawl-delay: -1"), pause("Request-rate: 0/5"), pause()] == [None] * 4


def test_sitemaps_are_said_to_everyone_and_other_paths_to_the_group() -> None:
    body = b"Sitemap: https://example.org/a.xml\nUser-agent: x\nNoindex: /n\nNofollow: /f\nsitemap: /b.xml # here"
    said, sitemaps = parser.parse(body, "x")
    assert sitemaps == ["https://example.org/a.xml", "/b.xml"]
    assert (said.noindex, said.nofollow) == (["/n"], ["/f"])


def test_a_rule_is_told_as_it_was_written() -> None:
    compiled = matcher.compiled([(False, "/private/*"), (True, "/private/café")])
    assert compiled.why("/private/x") == "Disallow: /private/*"
    assert compiled.why("/private/caf%C3%A9") == "Allow: /private/café"
    assert compiled.why("/x") == "no rule matches"


BOMBS = {
    "plain rules": file() + b"".join(b"\nDisallow: /p%d" % number for number in range(30_000)),
    "stars": file() + b"".join(b"\nDisallow:/*ba*b%d" % number for number in range(26_000)),
    "one star after another": file() + (b"\nDisallow: /" + b"*ab" * 5_000 + b"c") * 32,
    "nearly a match": file() + b"".join(b"\nDisallow: /*" + b"a" * (4_000 - k) + b"baac" for k in range(120)),
    "agents": b"".join(b"User-agent: a%d\n" % number for number in range(28_000)) + b"Disallow: /",
    "escapes": file() + b"\nDisallow: /*%42%43" * 25_000,
    "one line": b"Disallow:" + b"*a" * 300_000,
    "line ends": b"\r" * 512_000,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("path", ["ab" * 4_000, "a" * 4_050 + "b" + "a" * 3_900 + "?ac"])
def test_no_file_takes_long_to_read_or_to_match(name: str, path: str) -> None:
    began = time.process_time()
    allowed(BOMBS[name], "x", f"https://example.org/{path}")
    assert time.process_time() - began < 1.0


@given(st.binary(max_size=300), st.text(max_size=20), st.text(max_size=60))
def test_whatever_the_bytes_there_is_a_verdict(body: bytes, agent: str, url: str) -> None:
    assert allowed(body, agent, url) in (True, False)


def test_only_so_many_copies_are_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_COPIES", 3)
    monkeypatch.setattr(cache, "MOST_BYTES", 1_000)
    monkeypatch.setattr(cache, "BARE_BYTES", 0)
    known, names = cache.RobotsCache(), [f"https://{name}.org" for name in "abcde"]
    for name in names[:3]:
        known.put(name, cache.CachedRobots(b"x" * 10))
        known.compiled(name, "bot", cache.RobotsRules.read(b"", "bot"))
    known.get(names[0])
    known.put(names[3], cache.CachedRobots(b"x" * 10))  # what was used least goes
    assert [known.get(name) is not None for name in names] == [True, False, True, True, False]
    assert known.file(names[1], "bot") is None
    known.put(names[4], cache.CachedRobots(b"x" * 995))
    assert [known.get(name) is not None for name in names] == [False, False, False, False, True]
    assert list(known.stands) == ["e.org"]


def test_however_many_files_are_kept_the_garbage_collector_has_little_to_look_at() -> None:
    """Everybody waits while it looks at all there is."""
    copies, files = cache.RobotsCache(), 1_000

    def looked_at() -> int:
        gc.collect()
        return len(gc.get_objects())

    before = looked_at()
    for number in range(files):
        copy = cache.CachedRobots(b"User-agent: *\nDisallow: /%d\nSitemap: https://a.example/" % number, 0.0, 0.0)
        copies.put(f"https://h{number}.example", copy)
        for agent in ("one", "other"):
            copies.compiled(f"https://h{number}.example", agent, cache.RobotsRules.read(copy.body, agent))
    assert looked_at() - before < files // 10


def test_what_was_compiled_of_the_same_text_stays() -> None:
    known, name = cache.RobotsCache(), "https://a.org"
    known.put(name, cache.CachedRobots(b"one"))
    known.compiled(name, "bot", cache.RobotsRules.read(b"one", "bot"))
    known.put(name, cache.CachedRobots(b"one", failures=1))
    assert known.file(name, "bot") is not None
    known.put(name, cache.CachedRobots(b"two"))
    assert known.file(name, "bot") is None


def test_small_files_with_the_same_bytes_share_their_rules_for_an_agent() -> None:
    body = file("Disallow: /private", "", "User-agent: b", "Disallow: /")
    one = cache.RobotsRules.read(body, "a")
    assert cache.RobotsRules.read(bytes(bytearray(body)), "a") is one
    assert cache.RobotsRules.read(body, "b") is not one
    assert cache.RobotsRules.read(body + b"\n", "a") is not one


def test_rules_of_large_files_are_held_by_their_origins_alone() -> None:
    body = file(*(f"Disallow: /{number:04d}" for number in range(200)))
    assert len(body) > cache.SHARED_BYTES
    assert cache.RobotsRules.read(body, "a") is not cache.RobotsRules.read(body, "a")


def test_a_file_is_ready_while_it_is_compiled_for_the_agent_valid_and_not_due() -> None:
    known, name, now = cache.RobotsCache(), "https://a.org", 1_000_000.0
    assert not known.ready(name, "bot", now)
    known.put(name, cache.CachedRobots(b"", now, now, 0, 1))
    assert not known.ready(name, "bot", now)
    known.compiled(name, "bot", cache.RobotsRules.read(b"", "bot"))
    assert known.ready(name, "bot", now)
    assert not known.ready(name, "other", now)
    assert not known.ready(name, "bot", now + cache.DUE_AFTER_S)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://example.org/a@b/c", "https://example.org"),
        ("http://me:secret@example.org:8080/", "http://example.org:8080"),
        ("https://[::1]:8443/x?y=http://z/", "https://[::1]:8443"),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert cache.origin_of(url) == origin
    assert cache.is_file(cache.address(origin))
    assert not cache.is_file(url)
