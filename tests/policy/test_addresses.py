"""Which addresses are public: the list, the embedded ones, and what hostile URLs lead to."""

from __future__ import annotations

import json
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from crawlguide.core import urls
from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.policy.addresses import is_public, may_reach, networks

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "ssrf_cases.jsonl"


def cases(key: str) -> list[dict[str, Any]]:
    if not CORPUS.exists():
        pytest.skip(f"the corpus {CORPUS.name} is not here")
    return [case for line in CORPUS.read_text().splitlines() if key in (case := json.loads(line))]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
        "192.0.0.192", "168.63.129.16", "192.88.99.1", "198.18.0.1", "203.0.113.5", "0.0.0.0", "255.255.255.255",
        "224.0.0.1", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fec0::1", "ff02::1",
        "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::808:808",
        "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:808:808::", "2001:db8::1", "2001:10::1", "3fff::1", "5f00::1",
        "2606:4700::5efe:10.0.0.1", "", "example.org", "127.1", "1.2.3.4.5",
    ],
)  # fmt: skip
def test_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "2001:4860:4860::8888",
        "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1",
    ],
)  # fmt: skip
def test_public(address: str) -> None:
    assert is_public(address)


def test_nothing_in_the_networks_that_others_refuse_is_public() -> None:
    for case in cases("cidr"):
        network = ip_network(case["cidr"])
        assert not is_public(network[0])
        assert not is_public(network[-1])


def test_every_way_to_write_an_address_leads_to_the_same_verdict() -> None:
    for case in cases("ipv4"):
        try:
            host = urls.parts(urls.canonical(f"http://{case['input']}/")).host
        except UrlError:
            continue  # a URL that nobody can fetch
        assert host == case["ipv4"] or case["ipv4"] is None
        if case["ipv4"]:
            assert is_public(host) == is_public(case["ipv4"])


def test_an_operator_may_allow_networks_that_are_not_public() -> None:
    allowed = networks(["10.0.0.0/8", "::1/128"], "outgoing.allow_networks")
    assert may_reach("10.1.2.3", allowed)
    assert may_reach("::1", allowed)
    assert may_reach("8.8.8.8", allowed)
    assert not may_reach("192.168.0.1", allowed)
    assert not may_reach("nonsense", allowed)


def test_what_is_no_network_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"outgoing\.allow_networks: expected a network such as .* got '10/33'"):
        networks(["10/33"], "outgoing.allow_networks")
