"""Risk: what the model says of URLs, what it must not live on, and what the filter does with it in a guide."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlguide import Guide
from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import ConfigError
from crawlguide.core.messages import Fetch
from crawlguide.core.types import Lesson
from crawlguide.guide.tell.intake import IntakeRules, reported
from crawlguide.policy import risk
from crawlguide.policy.risk import features
from crawlguide.policy.risk.model import SHIPPED, Model, load
from crawlguide.policy.risk.outcomes import Outcomes
from crawlguide.policy.risk.url_text import url_texts
from crawlguide.testing import ManualClock
from tests.support import CRAWL, NOW, asked, batch, fetched, question, state_of, tell

A = "https://a.org/"
BAD = "http://paypal.com.secure-login.tk/webscr/login.php"
OPEN = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}
RULES = IntakeRules(judge=lambda _: float("nan"), verdict=lambda _: None)


def built(threshold: float = 0.8) -> risk.Risk:
    rule = risk.build(Definition(policy=Policy(risk_threshold=threshold)))
    assert isinstance(rule, risk.Risk)
    return rule


def opened(**policy: object) -> Guide:
    guide = Guide.open(":memory:", clock=ManualClock())
    guide.define("default", {"policy": {**OPEN, **policy}})
    return guide


# the model


def test_scores_are_probabilities_in_single_precision() -> None:
    found = risk.score([A, BAD])
    assert (found.dtype.name, found.shape) == ("float32", (2,))
    assert 0 <= found[0] < 0.5
    assert 0.8 < found[1] <= 1


def test_no_urls_have_no_scores() -> None:
    assert risk.score([]).shape == (0,)


@pytest.mark.parametrize("url", [BAD, "http://example.org/a/b?c=d", "http://www.example.com/"])
def test_the_scheme_says_nothing(url: str) -> None:
    assert risk.score([url])[0] == risk.score([url.replace("http:", "https:")])[0]


@pytest.mark.parametrize("url", ["http://{}example.org/story", "http://{}secure-login.tk/"])
def test_www_says_nothing(url: str) -> None:
    assert risk.score([url.format("")])[0] == risk.score([url.format("www.")])[0]


@pytest.mark.parametrize(
    "url", ["https://example.org/guide", "https://en.wikipedia.org/wiki/Cat", "https://github.com/a/b"]
)
def test_a_longer_good_url_is_still_good_and_so_is_a_short_one(url: str) -> None:
    home = "/".join(url.split("/")[:3]) + "/"
    assert (risk.score([home, url, url + "/a-long-story-about-many-things" * 3]) < 0.5).all()


def test_digits_are_one_letter() -> None:
    assert risk.score(["https://a.org/item/123"])[0] == risk.score(["https://a.org/item/987"])[0]


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.7/bank/verify/",
        "http://[2001:db8::1]:8080/",
        "https://xn--bcher-kva.example/",
        A + "%FF?" + "x" * 5_000,
    ],
)
def test_any_url_has_a_score(url: str) -> None:
    assert 0 <= risk.score([url])[0] <= 1


def test_a_score_does_not_depend_on_the_others() -> None:
    many = [A, BAD, "https://b.org/x?y=z", "http://c.org:81/~me/"]
    assert risk.score(many).tolist() == [risk.score([url])[0] for url in many]


def test_no_url_has_more_features_than_there_is_room_for() -> None:
    text, seams = url_texts([f"https://{'a' * 60}.{'b' * 60}.{'c' * 60}.example.org/{'d' * 300}?{'e' * 3_000}"])
    index, value, ends = np.empty(10_000, np.int32), np.empty(10_000, np.float32), np.empty(1, np.int64)
    features.extract(text, seams, index, value, ends)  # type: ignore[no-untyped-call]
    assert ends[0] <= features.MOST_FEATURES


def test_the_model_is_small() -> None:
    assert SHIPPED.stat().st_size <= 2 * 1024 * 1024


@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"PK\x03\x04 no"])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.npz").write_bytes(content)
    with pytest.raises(ConfigError, match="expected a model of risk"):
        load(tmp_path / "model.npz")


def test_a_model_of_another_size_is_refused(tmp_path: Path) -> None:
    Model(np.zeros(7, np.int8), 1.0, 0.0, 1.0, 0.0).save(tmp_path / "model.npz")
    with pytest.raises(ConfigError, match="weights of one byte"):
        load(tmp_path / "model.npz")


# in a guide


def test_a_link_to_what_looks_malicious_is_dropped_when_it_is_found_and_explained() -> None:
    with opened() as guide:
        tell(guide, fetched(A, BAD, f"{A}good"))
        assert asked(guide) == [f"{A}good"]
        told = guide.explain("default", BAD)
        assert (told["state"], told["reason"]) == ("dropped", "risk")
        assert "policy.risk_threshold is 0.8" in str(told["filters"])


def test_the_log_says_high_risk_once_for_a_report(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "crawlguide"), opened() as guide:
        tell(guide, fetched(A, BAD, f"{BAD}?again"))
    said = [record.getMessage() for record in caplog.records if record.__dict__.get("event") == "high_risk"]
    assert len(said) == 1
    assert said[0].startswith("high risk: possibly malicious")


def test_a_threshold_of_one_switches_it_off_and_what_was_dropped_comes_back() -> None:
    with opened() as guide:
        tell(guide, fetched(A, BAD))
        guide.patch("default", {"policy": {"risk_threshold": 1.0}})
        assert asked(guide) == [BAD]


def test_a_seed_is_never_too_risky() -> None:
    with opened() as guide:
        guide.seed("default", [BAD])
        assert asked(guide) == [BAD]


def test_links_within_a_domain_are_not_judged() -> None:
    with opened() as guide:
        tell(guide, fetched(BAD, "http://paypal.com.secure-login.tk/webscr/verify.php"))
        assert asked(guide) == ["http://paypal.com.secure-login.tk/webscr/verify.php"]


def test_what_came_without_being_judged_is_judged_before_it_leaves() -> None:
    with opened(risk_threshold=1.0) as guide:
        tell(guide, fetched(A, BAD, f"{A}good"))
        guide.patch("default", {"policy": {"risk_threshold": 0.8}})
        assert asked(guide) == [f"{A}good"]
        assert state_of(guide, BAD) == "dropped"


def test_judgements_are_remembered() -> None:
    rule, candidates = built(), batch([A, BAD], depth=[1.0, 1.0])
    assert rule.keep(candidates, question()).tolist() == [True, False]
    assert not len(rule.known.get(candidates.id)[1])
    assert rule.keep(candidates, question()).tolist() == [True, False]


def test_off_keeps_all() -> None:
    rule = risk.build(Definition(policy=Policy(risk_threshold=1.0)))
    assert rule.keep(batch([BAD], depth=[1.0]), question()).tolist() == [True]
    assert rule.why(batch([BAD]), question()) == "policy.risk_threshold is 1"


# what a crawl has met


def corrected(*told: Any) -> float:
    """By how much the log odds of a link from a.org to dead.example move after these fetches."""
    known = Outcomes()
    ids = np.array([urls.identity("https://dead.example/1"), urls.identity("https://dead.example/2")], np.uint64)
    known.record_sources(ids, ["www.a.org", "b.org"])
    report = asyncio.run(reported(told, CRAWL, "c-1", NOW, RULES))
    known.learn(lesson(report))
    return float(known.shift(["x.dead.example"], ["a.org"])[0])


def lesson(report: Any) -> Lesson:
    empty = texts([""] * len(report.fetches))
    return Lesson(NOW, report.fetches, empty, empty, report.links, np.zeros(0, np.bool_))


def test_where_nothing_was_met_nothing_is_corrected() -> None:
    assert corrected() == 0.0


def test_a_domain_that_turned_out_dead_is_more_of_a_risk_and_so_is_who_links_there() -> None:
    one, other = Fetch("https://dead.example/1", error="dns"), Fetch("https://dead.example/2", error="dns")
    assert corrected(one) == pytest.approx(2 * np.log(3 / 2))  # a.org linked there
    assert corrected(other) == pytest.approx(np.log(3 / 2))  # b.org did


def test_a_domain_that_gave_pages_is_less_of_one_and_nobody_is_moved_far() -> None:
    good = [Fetch("https://dead.example/1", 200, fetch_time=str(n)) for n in range(500)]
    assert corrected(*good[:1]) < 0
    assert corrected(*good) == -4.0


def doubtful() -> str:
    """A URL that the model alone would let pass, though not by far."""
    names = [
        f"http://{word}-{n}.example.{end}/{path}"
        for word in ("login", "shop")
        for n in range(99)
        for end in ("tk", "com")
        for path in ("signin", "a", "login.php")
    ]
    return next(url for url in names if 0.45 < risk.score([url])[0] < 0.75)


def met(guide: Guide, **policy: object) -> None:
    """Pages of bad.org led to thirty hosts that were blocked."""
    known = {"robots": "ignore", "default_delay_s": 0, "traps": False}
    guide.define("default", {"policy": known | policy})
    tell(guide, fetched("https://bad.org/", *(f"https://gone{n}.example/" for n in range(30))))
    tell(guide, *({"url": f"https://gone{n}.example/", "error": "blocked"} for n in range(30)))


def test_a_crawl_learns_which_pages_link_to_what_is_dead() -> None:
    near = doubtful()
    with Guide.open(":memory:", clock=ManualClock(NOW)) as guide:
        met(guide)
        tell(guide, fetched("https://good.org/", near), fetched("https://bad.org/2", near + "/2"))
        assert state_of(guide, near) == "queued"
        assert state_of(guide, near + "/2") == "dropped"


def test_what_was_met_outlives_a_restart(tmp_path: Path) -> None:
    near = doubtful()
    with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
        met(guide)
    with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
        tell(guide, fetched("https://good.org/", near), fetched("https://bad.org/2", near + "/2"))
        assert state_of(guide, near) == "queued"
        assert state_of(guide, near + "/2") == "dropped"


def test_from_where_a_url_was_found_outlives_a_restart_too(tmp_path: Path) -> None:
    near = doubtful()
    with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
        guide.define("default", {"policy": {"robots": "ignore", "default_delay_s": 0, "traps": False}})
        tell(guide, fetched("https://bad.org/", *(f"https://gone{n}.example/" for n in range(30))))
    with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
        tell(guide, *({"url": f"https://gone{n}.example/", "error": "blocked"} for n in range(30)))
        tell(guide, fetched("https://bad.org/2", near + "/2"))
        assert state_of(guide, near + "/2") == "dropped"


def test_a_filter_that_is_switched_on_later_is_kept_from_then_on(tmp_path: Path) -> None:
    near = doubtful()
    with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
        guide.define("default", {"policy": {"risk_threshold": 1.0}})
        met(guide, risk_threshold=0.8)
    with Guide.open(tmp_path / "data", clock=ManualClock(NOW)) as guide:
        tell(guide, fetched("https://bad.org/2", near + "/2"))
        assert state_of(guide, near + "/2") == "dropped"
