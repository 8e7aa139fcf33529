"""The dashboard behind a login, in a real browser and by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright
from tests.browsing import CHROMIUM, in_browser, watch
from tests.gateway.access.common import Guarded, run
from tests.gateway.conftest import serving
from tests.gateway.grpc_door.common import port_of
from tests.gateway.http_door.common import done, refused
from tests.gateway.waiting import MOST_S, others_wait

from crawlguide.gateway.access import api_keys, logins
from crawlguide.gateway.access.logins import COOKIE, Logins

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

PAGE = {"accept": "text/html"}


def logged_in(door: httpx.Client, key: str) -> httpx.Response:
    return door.post("/login", data={"token": key})


@in_browser
def test_somebody_logs_in_looks_and_logs_out(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("admin")) as admin:
        done(admin.put(f"/v1/crawls/{crawl}", json={}), 201)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page()
        wrong = watch(page, lambda url: url.startswith((guarded.server.url, "data:")))
        page.goto(guarded.server.url + f"/crawls/{crawl}")
        assert page.url.endswith("/login")
        page.fill("#token", guarded.key("read"))
        page.click("form.login button")
        page.wait_for_url(guarded.server.url + "/")
        assert page.locator(f"a[href='/crawls/{crawl}']").count()
        assert page.evaluate("document.cookie") == ""
        cookie = next(one for one in page.context.cookies() if one["name"] == COOKIE)
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.click("nav form button")
        page.wait_for_url(guarded.server.url + "/login")
        page.goto(guarded.server.url)
        assert page.url.endswith("/login")
        assert wrong == []
        browser.close()


@pytest.mark.parametrize("token", ["", "wrong", "cg_000000000000_" + "a" * 43, "é", "x" * 20_000])
def test_what_is_no_key_logs_nobody_in(guarded: Guarded, token: str) -> None:
    with guarded.client() as door:
        answer = logged_in(door, token)
    assert answer.status_code in (401, 413)
    assert "set-cookie" not in answer.headers
    assert "<form" in answer.text


def test_a_key_that_may_not_read_logs_nobody_in(guarded: Guarded) -> None:
    with guarded.client() as door:
        answer = logged_in(door, guarded.key("ask"))
    assert (answer.status_code, "the scope read" in answer.text) == (403, True)


def test_the_cookie_changes_nothing(guarded: Guarded, crawl: str) -> None:
    """It opens pages; what changes something takes the key, so no page of another site can do it."""
    with guarded.client() as door:
        assert logged_in(door, guarded.key("admin")).status_code == 303
        assert door.get("/", headers=PAGE).status_code == 200
        refused(door.put(f"/v1/crawls/{crawl}", json={}), 401, "unauthenticated")
        refused(door.post("/v1/next", json={}), 401, "unauthenticated")


def test_the_cookie_ends_with_its_key(guarded: Guarded) -> None:
    key = guarded.key("read")
    with guarded.client() as door:
        logged_in(door, key)
        assert door.get("/", headers=PAGE).status_code == 200
        api_keys.revoke(guarded.keys, key.split("_")[1])
        import time

        until = time.monotonic() + 10
        while door.get("/", headers=PAGE).status_code == 200 and time.monotonic() < until:
            time.sleep(0.1)
        assert door.get("/", headers=PAGE).headers["location"] == "/login"


def test_a_page_of_somebody_else_cannot_log_in_or_out(guarded: Guarded) -> None:
    with guarded.client() as door:
        foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        for path in ("/login", "/logout"):
            assert door.post(path, data={"token": "x"}, headers=foreign).status_code == 403


def test_logins_end_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(logins, "MOST", 3)
    kept = Logins(lambda: now[0])
    cookie = kept.begin("Bearer x")
    assert kept.authorization(cookie) == "Bearer x"
    now[0] = logins.LASTS_S
    assert kept.authorization(cookie) is None
    cookies = [kept.begin("Bearer x") for _ in range(5)]
    assert [kept.authorization(one) is not None for one in cookies] == [False, False, True, True, True]


def test_a_server_that_is_open_to_all_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAWLGUIDE_SERVER_INSECURE", "true")
    with serving(tmp_path, tmp_path / "data") as server, Guarded(server, tmp_path / "data").client() as door:
        page = door.get("/", headers=PAGE)
        assert "started with --insecure" in page.text
        assert "--insecure" in door.get("/v1/stats").headers["crawlguide-insecure"]


def test_whoever_types_commands_is_told_as_well_through_both_doors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"INSECURE": "true", "GRPC": "true", "GRPC_PORT": "0"}.items():
        monkeypatch.setenv(f"CRAWLGUIDE_SERVER_{name}", value)
    with serving(tmp_path, tmp_path / "data") as server:
        for url in (server.url, f"grpc://127.0.0.1:{port_of(tmp_path)}"):
            looked = run("status", "--url", url, cwd=tmp_path)
            assert looked.returncode == 0, looked.stderr
            assert "started with --insecure" in looked.stderr


def test_forms_of_any_kind_are_answered(guarded: Guarded) -> None:
    with guarded.client() as door:
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert door.post("/login", content=b"&".join([b"a=1"] * 50), headers=form).status_code == 400
        assert door.post("/login", content=b"%ff=%00&token=%00", headers=form).status_code == 401


COOKIES = {
    f"{COOKIE}=a": "a",
    f"a=b; {COOKIE} = c ; d=e": "c",
    f"{COOKIE}x=a; x{COOKIE}=b; {COOKIE}": "",
    ";=;": "",
    "": "",
}


@pytest.mark.parametrize(("header", "found"), COOKIES.items())
def test_the_cookie_is_found_among_others(header: str, found: str) -> None:
    assert logins.cookie_in(header) == found


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("text", ["\\", "\\x", '\\"', "a;", "=;", '"'])
def test_no_cookie_keeps_others_waiting(guarded: Guarded, method: str, text: str) -> None:
    """The standard library takes up to half a minute to undo the quotes of one."""
    cookie = f'{COOKIE}="{text * (60_000 // len(text))}"'
    with guarded.client() as door, others_wait(guarded.server) as wait:
        path = "/" if method == "GET" else "/logout"
        assert door.request(method, path, headers={"cookie": cookie}).status_code in (303, 401)
    assert wait.longest_s < MOST_S, wait
