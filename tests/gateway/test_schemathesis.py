"""Requests made from our own OpenAPI document, right ones and wrong ones: the server keeps what the document says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode

if TYPE_CHECKING:
    import httpx

CRAWL = "/v1/crawls/{crawl_id}"
OPERATIONS = (
    ("POST", "/v1/next"),
    ("POST", "/v1/report"),
    ("GET", "/v1/crawls"),
    ("PUT", CRAWL),
    ("GET", CRAWL),
    ("DELETE", CRAWL),
    ("POST", CRAWL + "/seeds"),
    ("POST", CRAWL + "/pause"),
    ("POST", CRAWL + "/resume"),
    ("GET", "/v1/stats"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/openapi.json"),
    ("GET", "/metrics"),
)
TAKING = [operation for operation in OPERATIONS if operation[0] in {"POST", "PUT"} and "s/{crawl_id}/" not in operation[1]]
bounded = settings(
    max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)


@pytest.fixture(scope="session")
def document(client: httpx.Client) -> Any:
    return schemathesis.openapi.from_url(str(client.base_url) + "/openapi.json")


def test_the_document_names_every_operation_there_is(document: Any) -> None:
    found = {(one.ok().method.upper(), one.ok().path) for one in document.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_request_that_fits_the_document_gets_an_answer_that_fits_it(document: Any, method: str, path: str) -> None:
    cases = document[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE)

    @seed(1)
    @bounded
    @given(case=cases)
    def answered(case: Any) -> None:
        case.call_and_validate(timeout=10)

    answered()


@pytest.mark.parametrize(("method", "path"), TAKING)
def test_a_request_that_does_not_fit_the_document_is_refused_as_it_says(
    document: Any, method: str, path: str
) -> None:
    cases = document[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @seed(1)
    @bounded
    @given(case=cases)
    def answered(case: Any) -> None:
        case.call_and_validate(timeout=10)

    answered()
