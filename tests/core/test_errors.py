"""The tree of errors in the docstring is the tree of classes, and each has its place on the wire."""

from __future__ import annotations

import re

import pytest

from crawlguide.core import errors
from crawlguide.core.errors import CrawlGuideError
from crawlguide.gateway import responses as http
from crawlguide.gateway import wire

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CrawlGuideError)]
_NODE = re.compile(r"^ {4}(?P<bars>[│├└─ ]*)(?P<name>[A-Z]\w+)", re.MULTILINE)


def drawn() -> dict[str, str | None]:
    """Each class of the drawing with its parent."""
    branch: list[str] = []
    tree: dict[str, str | None] = {}
    for node in _NODE.finditer(errors.__doc__ or ""):
        level = len(node["bars"]) // 4
        branch[level:] = [node["name"]]
        tree[node["name"]] = branch[level - 1] if level else None
    return tree


def test_the_drawing_has_a_root_and_branches() -> None:
    assert next(iter(drawn())) == "CrawlGuideError"
    assert len(drawn()) > 10


def test_every_class_is_drawn_and_everything_drawn_is_a_class() -> None:
    assert set(drawn()) == {kind.__name__ for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES[1:], ids=lambda kind: kind.__name__)
def test_an_error_hangs_where_it_is_drawn(kind: type[CrawlGuideError]) -> None:
    assert drawn()[kind.__name__] == kind.__bases__[0].__name__


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_code_of_an_error_has_an_http_status(kind: type[CrawlGuideError]) -> None:
    assert kind.code in http.STATUS


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("malformed_request", 400), ("unsupported_version", 400), ("unauthenticated", 401), ("forbidden", 403),
        ("not_found", 404), ("conflict", 409), ("too_large", 413), ("rate_limited", 429), ("unavailable", 503),
        ("storage_full", 507),
    ],
)  # fmt: skip
def test_a_code_has_the_status_the_protocol_gives_it(code: str, status: int) -> None:
    assert http.STATUS[code] == status


@pytest.mark.parametrize(
    "code",
    ["malformed_request", "unsupported_version", "unauthenticated", "forbidden", "not_found", "conflict", "too_large",
     "rate_limited", "unavailable", "storage_full"],
)  # fmt: skip
def test_every_code_of_the_protocol_belongs_to_a_class(code: str) -> None:
    assert code in {kind.code for kind in CLASSES}


@pytest.mark.parametrize(
    "kind", [kind for kind in CLASSES if errors.RequestError in kind.__bases__], ids=lambda kind: kind.__name__
)
def test_what_the_caller_can_mend_is_a_4xx(kind: type[CrawlGuideError]) -> None:
    assert 400 <= http.STATUS[kind.code] < 500


def test_an_error_reads_on_the_wire_as_the_protocol_draws_it() -> None:
    problem = errors.RateLimited("too many", field="crawler_id", retry_after_s=1.5)
    assert wire.error(problem) == (
        b'{"error":{"code":"rate_limited","message":"too many","field":"crawler_id","retry_after_s":1.5}}'
    )


def test_a_url_error_is_a_value_error_for_those_who_know_only_python() -> None:
    assert issubclass(errors.UrlError, ValueError)
