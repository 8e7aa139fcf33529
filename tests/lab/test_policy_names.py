"""A policy's name may hold options of its strategy: they come to the crawl, and wrong ones are refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from crawlguide.core.errors import ConfigError
from crawlguide.lab import policy_names, synthetic
from crawlguide.lab.run import Settings, run

SMALL = "pages=300,hosts=5,topics=3"


@pytest.mark.parametrize(
    ("policy", "strategy"),
    [
        ("layered", {"kind": "layered"}),
        ("layered[without=draws]", {"kind": "layered", "without": ["draws"]}),
        ("layered[without=draws+bonus]", {"kind": "layered", "without": ["draws", "bonus"]}),
        ('layered[without=["draws","bonus"]]', {"kind": "layered", "without": ["draws", "bonus"]}),
        ("layered[ most_urls = 20000 , without=words ]", {"kind": "layered", "most_urls": 20000, "without": ["words"]}),
        ("groups[epsilon=0.3,group_by=host]", {"kind": "groups", "epsilon": 0.3, "group_by": "host"}),
        ("groups[faithful=true]", {"kind": "groups", "faithful": True}),
        ('tres[domain_weights={"a.b":2,"c.d":1}]', {"kind": "tres", "domain_weights": {"a.b": 2, "c.d": 1}}),
    ],
)  # fmt: skip
def test_what_stands_in_brackets_is_what_the_crawl_says(policy: str, strategy: dict[str, Any]) -> None:
    assert policy_names.chosen([policy]) == [policy]
    assert policy_names.strategy(policy) == strategy


def test_a_comma_in_brackets_does_not_end_a_name() -> None:
    words = 'random, layered[without=draws,most_urls=20000],tres,x[y={"a":1,"b":2}]'
    assert policy_names.split_names(words) == [
        "random",
        "layered[without=draws,most_urls=20000]",
        "tres",
        'x[y={"a":1,"b":2}]',
    ]


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ("layered[without=draws", r"expected NAME\[option=value,…\], got 'layered\[without=draws'"),
        ("layered[without]", "layered: expected option=value, got 'without'"),
        ("layered[without=]", "layered: expected option=value, got 'without='"),
        ("layered[with=draws]", "layered.with: unknown option; expected one of kind, without"),
        ("layered[without=luck]", "strategy.without: expected some of parents.*, got 'luck'"),
        ("layered[most_urls=few]", r"layered\.most_urls: expected an integer from .*, got few"),
        ("layred[without=draws]", r"got 'layred' \(did you mean 'layered'\?\)"),
        ("keyword[x=1]", r"expected options of a strategy of the product only, got 'keyword\[x=1\]'"),
        ("oracle-full[x=1]", "expected options of a strategy of the product only"),
    ],
)
def test_what_a_strategy_does_not_take_is_refused_before_anything_runs(policy: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        policy_names.chosen([policy])


def test_options_change_what_is_fetched_and_the_run_bears_the_whole_name() -> None:
    web = synthetic.parsed(SMALL)
    task, settings = web.tasks()[0], Settings(budget=60)
    plain, other = "layered", "layered[without=learning+exploration+prior]"
    found = {policy: run(web, task, policy, 0, settings) for policy in (plain, other)}
    assert found[other].policy == other
    assert found[plain].host != found[other].host
