"""Requests made from our own OpenAPI document, right ones and wrong ones: the server keeps what the document says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

VERSION = "2025-11"
CRAWL = "/v1/crawls/{crawl_id}"
WITH_BODY = (("POST", "/v1/next"), ("POST", "/v1/report"), ("PUT", CRAWL), ("POST", CRAWL + "/seeds"))
STEERING = (("POST", CRAWL + "/release"), ("POST", CRAWL + "/rules"), ("PATCH", CRAWL))
OF_A_CRAWL = (
    *(("GET", CRAWL), ("DELETE", CRAWL), ("POST", CRAWL + "/pause"), ("POST", CRAWL + "/resume")),
    *(("GET", CRAWL + "/rules"), ("GET", CRAWL + "/export"), ("POST", CRAWL + "/import")),
)
ABOUT_URLS = (("GET", "/v1/urls"), ("DELETE", "/v1/urls"), ("GET", "/v1/explain"))
BACKUPS = ("POST", "/v1/backups")  # refused here: the server that all tests share keeps nothing on disk
PLAIN = ("/v1/crawls", "/v1/stats", "/healthz", "/readyz", "/openapi.json", "/metrics")
OPERATIONS = (*WITH_BODY, *STEERING, *OF_A_CRAWL, *ABOUT_URLS, BACKUPS, *(("GET", path) for path in PLAIN))
NOT_ALWAYS = (*ABOUT_URLS, BACKUPS)  # a URL that nobody has heard of; no folder
schemathesis.serializer.alias("application/x-ndjson", "text/plain")
bounded = settings(
    max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)


@pytest.fixture(scope="session")
def document(client: httpx.Client) -> Any:
    return schemathesis.openapi.from_url(str(client.base_url) + "/openapi.json")


def answered(cases: Any, prepared: Callable[[Any], None] = lambda _: None) -> set[int]:
    """Send the cases, check each answer against the document; the statuses that came.

    Not checked: that all a schema permits is accepted. A schema cannot say what a crawler can fetch.
    """
    statuses: set[int] = set()

    @seed(1)
    @bounded
    @given(case=cases)
    def send(case: Any) -> None:
        prepared(case)
        answer = case.call_and_validate(timeout=10, excluded_checks=[positive_data_acceptance])
        statuses.add(answer.status_code)

    send()
    return statuses


def test_the_document_names_every_operation_there_is(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path in paths for method in paths[path]} == set(OPERATIONS)


@pytest.mark.parametrize("name", ["AskMessage", "ReportMessage"])
def test_the_document_says_which_version_is_spoken(client: httpx.Client, name: str) -> None:
    field = client.get("/openapi.json").json()["components"]["schemas"][name]["properties"]["mcp_version"]
    assert VERSION in (field.get("const"), *field.get("enum", ()))


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_request_that_fits_the_document_gets_an_answer_that_fits_it(document: Any, method: str, path: str) -> None:
    def in_our_version(case: Any) -> None:
        if isinstance(case.body, dict) and "mcp_version" in case.body:
            case.body["mcp_version"] = VERSION

    statuses = answered(document[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE), in_our_version)
    assert statuses & {200, 201} or path.startswith(CRAWL) or (method, path) in NOT_ALWAYS


@pytest.mark.parametrize(("method", "path"), OF_A_CRAWL)
def test_a_request_about_a_crawl_there_is_gets_an_answer_that_fits_the_document(
    client: httpx.Client, document: Any, crawl: str, method: str, path: str
) -> None:
    def about_a_known_crawl(case: Any) -> None:
        client.put(f"/v1/crawls/{crawl}", json={}).raise_for_status()
        case.path_parameters["crawl_id"] = crawl

    cases = document[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE)
    assert answered(cases, about_a_known_crawl) == {200}


@pytest.mark.parametrize(("method", "path"), STEERING)
def test_steering_a_crawl_there_is_gets_an_answer_that_fits_the_document(
    client: httpx.Client, document: Any, crawl: str, method: str, path: str
) -> None:
    def about_a_known_crawl(case: Any) -> None:
        client.put(f"/v1/crawls/{crawl}", json={}).raise_for_status()
        case.path_parameters["crawl_id"] = crawl

    cases = document[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE)
    assert 200 in answered(cases, about_a_known_crawl) <= {200, 400}


@pytest.mark.parametrize(("method", "path"), [*WITH_BODY, *STEERING])
def test_a_request_that_does_not_fit_the_document_is_refused_as_it_says(document: Any, method: str, path: str) -> None:
    cases = document[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE)
    assert 400 in answered(cases)


def test_every_operation_has_an_id_of_its_own(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    ids = [one["operationId"] for path in paths.values() for one in path.values() if "operationId" in one]
    assert len(ids) == len(set(ids))
