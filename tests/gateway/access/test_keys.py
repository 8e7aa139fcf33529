"""API keys: who has none, a wrong one, one that reaches not far enough or no longer."""

from __future__ import annotations

import json
import re
import socket
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import httpx
import pytest
from tests.gateway.access.common import NO_LIMITS, Guarded, audited, guarding, run, until
from tests.gateway.http_door.common import ask, done, fetched, refused, tell
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from crawlguide.cli import keys
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("path", ["/v1/crawls", "/v1/stats", "/v1/urls", "/metrics", "/v1/crawls/x/export", "/nowhere"])
def test_nobody_comes_in_without_a_credential(guarded: Guarded, path: str) -> None:
    with guarded.client() as nobody:
        answer = nobody.get(path)
    refused(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/docs"])
def test_what_shows_nothing_of_anybody_is_free(guarded: Guarded, path: str) -> None:
    with guarded.client() as nobody:
        assert nobody.get(path).status_code == 200


@pytest.mark.parametrize(
    "shown",
    [
        "Bearer",
        "Bearer x y",
        "Basic Og==",
        "Bearer cg_",
        "Bearer cg_000000000000_" + "a" * 43,
        "Bearer a.b.c",
        "x" * 9_000,
    ],
)
def test_what_is_no_key_is_refused(guarded: Guarded, shown: str) -> None:
    with guarded.client() as nobody:
        refused(nobody.get("/v1/stats", headers={"authorization": shown}), 401, "unauthenticated")


def test_two_keys_at_once_are_refused(guarded: Guarded) -> None:
    shown = ("authorization", f"Bearer {guarded.key('read')}")
    with guarded.client() as somebody:
        assert somebody.get("/v1/stats", headers=[shown]).status_code == 200
        refused(somebody.get("/v1/stats", headers=[shown, shown]), 401, "unauthenticated")


def test_a_key_with_one_letter_changed_is_refused(guarded: Guarded) -> None:
    key = guarded.key("read")
    wrong = key[:-1] + ("a" if key[-1] != "a" else "b")
    with guarded.client(wrong) as nobody:
        refused(nobody.get("/v1/stats"), 401, "unauthenticated")


def test_a_body_is_not_read_before_the_credential(guarded: Guarded) -> None:
    """A gigabyte is announced, and refused at once without a byte of it."""
    with socket.create_connection(("127.0.0.1", guarded.server.port), 10) as line:
        line.sendall(b"POST /v1/report HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1073741824\r\n\r\n")
        assert line.recv(1_000).startswith(b"HTTP/1.1 401 ")


CALLS: dict[str, Callable[[httpx.Client, str], httpx.Response]] = {
    "ask": lambda door, crawl: door.post("/v1/next", json=ask(crawl)),
    "tell": lambda door, crawl: door.post("/v1/report", json=tell(crawl, fetched("https://a.example/"))),
    "read": lambda door, crawl: door.get("/v1/stats", params={"crawl_id": crawl}),
    "admin": lambda door, crawl: door.post(f"/v1/crawls/{crawl}/pause"),
}


@pytest.mark.parametrize("scope", CALLS)
def test_a_scope_permits_what_it_says_and_nothing_else(guarded: Guarded, crawl: str, scope: str) -> None:
    with guarded.client(guarded.key("admin")) as admin:
        done(admin.put(f"/v1/crawls/{crawl}", json={}), 201)
    with guarded.client(guarded.key(scope)) as door:
        for needed, call in CALLS.items():
            answer = call(door, crawl)
            if scope in (needed, "admin"):
                assert answer.status_code == 200, answer.text
            else:
                assert f"the scope {needed}" in refused(answer, 403, "forbidden")["message"]


def test_a_scope_may_reach_crawls_of_one_prefix_alone(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("ask", f"read@{crawl}", crawl=f"{crawl}-*")) as door:
        assert door.post("/v1/next", json=ask(f"{crawl}-news")).status_code == 200
        refused(door.post("/v1/next", json=ask(crawl)), 403, "forbidden")
        refused(door.get(f"/v1/crawls/{crawl}-news"), 403, "forbidden")
        refused(door.get(f"/v1/crawls/{crawl}"), 404, "not_found")


def test_whoever_reads_some_crawls_is_shown_those(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("admin")) as admin:
        for name in (f"{crawl}-a", f"{crawl}-b"):
            done(admin.put(f"/v1/crawls/{name}", json={}), 201)
    with guarded.client(guarded.key("read", crawl=f"{crawl}-a")) as door:
        assert [one["crawl_id"] for one in door.get("/v1/crawls").json()["crawls"]] == [f"{crawl}-a"]
        assert list(door.get("/v1/stats").json()["crawls"]) == [f"{crawl}-a"]


def test_whoever_reads_some_crawls_sees_what_those_were_asked(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("ask", tenant="counted")) as door:
        for name in (f"{crawl}-a", f"{crawl}-a", f"{crawl}-b"):
            done(door.post("/v1/next", json=ask(name)))
    with (
        guarded.client(guarded.key("read", tenant="counted")) as whole,
        guarded.client(guarded.key("read", crawl=f"{crawl}-b", tenant="counted")) as part,
    ):
        assert whole.get("/v1/stats").json()["num_queries_completed"] == 3
        assert part.get("/v1/stats").json()["num_queries_completed"] == 1
        one = {"crawl_id": f"{crawl}-b"}
        assert part.get("/v1/stats", params=one).json()["num_queries_completed"] == 1
        assert ("3 answered" in whole.get("/").text, "answered" in part.get("/").text) == (True, False)


def test_the_pages_take_the_scope_for_reading(guarded: Guarded) -> None:
    with guarded.client(guarded.key("ask", "tell")) as door:
        answer = door.get("/")
    assert (answer.status_code, "the scope read" in answer.text) == (403, True)


def test_metrics_of_the_process_take_a_scope_of_their_own(guarded: Guarded) -> None:
    def shown(*scopes: str, tenant: str = "default") -> str:
        with guarded.client(guarded.key(*scopes, tenant=tenant)) as door:
            return door.get("/metrics").raise_for_status().text

    with guarded.client(guarded.key("ask", tenant="measured")) as crawler:
        done(crawler.post("/v1/next", json=ask("c")))
    of_process, of_tenant = "process_resident_memory_bytes", 'crawlguide_asks_total{tenant="measured"} 1.0'
    found = {
        "metrics": shown("metrics"),
        "admin": shown("admin"),
        "read": shown("read"),
        "its own": shown("metrics", tenant="measured"),
    }
    assert [name for name, text in found.items() if of_process in text] == ["metrics", "admin"]
    assert [name for name, text in found.items() if of_tenant in text] == ["metrics", "admin", "its own"]


def test_the_scope_for_metrics_opens_nothing_else(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("metrics")) as door:
        for call in CALLS.values():
            refused(call(door, crawl), 403, "forbidden")
        assert door.get("/").status_code == 403
    with guarded.client(guarded.key("metrics", crawl="news-*")) as part:
        refused(part.get("/metrics"), 403, "forbidden")


def test_a_server_with_keys_does_not_say_that_all_may_come_in(tmp_path: Path) -> None:
    with guarding(tmp_path, CRAWLGUIDE_SERVER_INSECURE="true", CRAWLGUIDE_SERVER_HOST="127.0.0.2") as guarded:
        assert until(lambda: "keys can be read on their way" in guarded.server.said())
        assert "may use this server" not in guarded.server.said()


def test_every_scope_is_on_the_page_and_in_the_help() -> None:
    page = Path(__file__).resolve().parents[3].joinpath("docs/access.md").read_text()
    table = page.partition("\n## Scopes\n")[2].partition("\n## ")[0]
    assert {*re.findall(r"^\| `([a-z:]+)` \|", table, re.MULTILINE)} == {*SCOPES}
    option = get_args(keys.Scopes)[1]
    assert all(scope in option.help for scope in SCOPES)


def test_an_ask_that_tells_or_seeds_takes_both_scopes(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("ask")) as door:
        seeds = ask(crawl, context={"seed_urls": ["https://a.example/"]})
        refused(door.post("/v1/next", json=seeds), 403, "forbidden")


def test_ignoring_robots_takes_a_scope_of_its_own(guarded: Guarded, crawl: str) -> None:
    ignoring = {"policy": {"robots": "ignore"}}
    with (
        guarded.client(guarded.key("admin")) as admin,
        guarded.client(guarded.key("admin", "robots:override")) as other,
    ):
        refused(admin.put(f"/v1/crawls/{crawl}", json=ignoring), 403, "forbidden")
        refused(
            admin.put(f"/v1/crawls/{crawl}", json={"policy": {"robots_exceptions": ["a.example"]}}), 403, "forbidden"
        )
        line = json.dumps({"crawl": crawl, "definition": ignoring})
        refused(admin.post(f"/v1/crawls/{crawl}/import", content=line), 403, "forbidden")
        done(other.put(f"/v1/crawls/{crawl}", json=ignoring), 201)
        done(admin.patch(f"/v1/crawls/{crawl}", json={"limits": {"max_pages": 5}}))  # what others permitted stays
        done(admin.patch(f"/v1/crawls/{crawl}", json={"policy": {"robots": "obey"}}))
        refused(admin.patch(f"/v1/crawls/{crawl}", json=ignoring), 403, "forbidden")


def test_beginning_with_what_another_crawl_learned_takes_the_right_to_read_it(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("admin")) as admin:
        done(admin.put(f"/v1/crawls/{crawl}", json={}), 201)
    warm = {"strategy": {"kind": "layered", "warm_start": crawl}}
    with guarded.client(guarded.key("admin", crawl=f"{crawl}-*")) as door:
        refused(door.put(f"/v1/crawls/{crawl}-warm", json=warm), 403, "forbidden")


def test_a_key_of_one_crawler_speaks_for_no_other(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("ask", "tell", crawler_id="c-7")) as door:
        assert refused(door.post("/v1/next", json=ask(crawl)), 403, "forbidden")["field"] == "crawler_id"
        done(door.post("/v1/next", json=ask(crawl) | {"crawler_id": "c-7"}))
        refused(door.post(f"/v1/crawls/{crawl}/release", json={"crawler_id": "c-1"}), 403, "forbidden")


def test_a_revoked_key_is_refused_by_a_server_that_runs(guarded: Guarded) -> None:
    key = guarded.key("read")
    with guarded.client(key) as door:
        assert door.get("/v1/stats").status_code == 200
        api_keys.revoke(guarded.keys, key.split("_")[1])
        assert until(lambda: door.get("/v1/stats").status_code == 401)


def test_an_expired_key_says_so(guarded: Guarded) -> None:
    with guarded.client(guarded.key("read", days=0.0)) as door:
        assert "expired" in refused(door.get("/v1/stats"), 401, "unauthenticated")["message"]


def test_a_file_that_is_broken_or_gone_lets_nobody_in(tmp_path: Path) -> None:
    with guarding(tmp_path) as guarded:
        key, file = guarded.key("read"), guarded.keys
        with guarded.client(key) as door, guarded.client() as nobody:
            assert until(lambda: door.get("/v1/stats").status_code == 200)
            file.write_text("[{")
            assert until(lambda: bool(door.get("/v1/stats")) and "keys.json cannot be used" in guarded.server.said())
            assert door.get("/v1/stats").status_code == 200
            file.unlink()
            time.sleep(1.2)
            assert nobody.get("/v1/stats").status_code == 401


def test_the_first_key_closes_a_server_that_was_open(tmp_path: Path) -> None:
    from tests.gateway.conftest import serving

    with serving(tmp_path, tmp_path / "data") as server:
        guarded = Guarded(server, tmp_path / "data")
        with guarded.client() as nobody:
            assert nobody.get("/v1/stats").status_code == 200
            guarded.key("read")
            assert until(lambda: nobody.get("/v1/stats").status_code == 401)


def test_only_a_hash_is_kept_and_only_for_its_owner(guarded: Guarded) -> None:
    key = guarded.key("read")
    file = guarded.keys
    assert key.split("_")[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_keys_are_made_shown_and_revoked_by_the_command_line(tmp_path: Path) -> None:
    made = run(
        "keys", "create", "--scope", "read,ask@news-*", "--tenant", "acme", "--days", "3", "--json", cwd=tmp_path
    )
    key = json.loads(made.stdout)
    assert key["scopes"] == ["read", "ask@news-*"]
    listed = run("keys", "list", "--json", cwd=tmp_path)
    assert [one["name"] for one in json.loads(listed.stdout)] == [key["name"]]
    assert key["key"] not in listed.stdout + run("keys", "list", cwd=tmp_path).stdout
    assert run("keys", "revoke", key["key"], cwd=tmp_path).returncode == 0
    assert json.loads(run("keys", "list", "--json", cwd=tmp_path).stdout) == []
    gone = run("keys", "revoke", key["name"], cwd=tmp_path)
    assert (gone.returncode, "no key is named" in gone.stderr) == (1, True)
    whats = [line["what"].split()[:2] for line in audited(tmp_path / "crawlguide-data")]
    assert whats == [["keys", "create"], ["keys", "revoke"]]


def test_keys_that_lie_elsewhere_are_audited_where_all_is(tmp_path: Path) -> None:
    made = run("keys", "create", cwd=tmp_path, CRAWLGUIDE_ACCESS_KEYS="elsewhere/keys.json")
    assert made.returncode == 0, made.stderr
    assert [line["what"].split()[:2] for line in audited(tmp_path / "crawlguide-data")] == [["keys", "create"]]
    assert not (tmp_path / "elsewhere" / "audit.jsonl").exists()


def test_revoking_a_key_where_none_was_made_changes_nothing(tmp_path: Path) -> None:
    gone = run("keys", "revoke", "x", "--data", "data", cwd=tmp_path)
    assert (gone.returncode, "there are: none" in gone.stderr) == (1, True), gone.stderr
    assert list(tmp_path.iterdir()) == []
    assert run("config", "check", "--data", "data", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scope", "fly"], "scope: expected one of ask"),
        (["--tenant", "A/B"], "tenant: expected"),
        (["--crawl", "a*b"], "crawl: expected"),
        (["--scope", "ask@"], "crawl: expected"),
    ],
)
def test_what_no_key_can_have_is_said(tmp_path: Path, words: list[str], says: str) -> None:
    refusal = run("keys", "create", *words, cwd=tmp_path)
    assert (refusal.returncode, refusal.stderr.startswith(f"crawlguide: {says}")) == (2, True), refusal.stderr


def test_what_admins_do_is_written_down(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("admin", tenant="acme")) as admin, guarded.client(guarded.key("ask")) as other:
        admin.put(f"/v1/crawls/{crawl}", json={})
        other.delete(f"/v1/crawls/{crawl}")
    lines = [line for line in audited(guarded.data) if crawl in line["what"]]
    assert [(line["what"], line["status"], line["tenant"]) for line in lines] == [
        (f"PUT /v1/crawls/{crawl}", 201, "acme"),
        (f"DELETE /v1/crawls/{crawl}", 403, "default"),
    ]
    assert {line["address"] for line in lines} == {"127.0.0.1"}


def test_the_log_says_who_was_refused(tmp_path: Path) -> None:
    with guarding(tmp_path, **NO_LIMITS) as guarded:
        key, wrong = guarded.key("ask", tenant="acme"), "cg_0123456789ab_" + "a" * 43
        with guarded.client(key) as door, guarded.client(wrong) as nobody:
            refused(door.get("/v1/crawls/c"), 403, "forbidden")
            refused(nobody.get("/v1/stats"), 401, "unauthenticated")
            assert nobody.post("/login", data={"token": wrong}).status_code == 401
            done(door.post("/v1/next", json=ask("c")))
        with opened(guarded, key) as line:
            said(line, {"type": "stats", "id": 1})
        assert until(lambda: "/ws stats" in guarded.server.said())
    lines = guarded.server.said().splitlines()
    who = f"(key {key.split('_')[1]} at 127.0.0.1) (tenant acme)"
    nobody_known = "(somebody with key 0123456789ab at 127.0.0.1)"
    assert [line.split()[2] for line in lines if line.endswith(who)] == ["/v1/crawls/{crawl_id}", "/ws"]
    assert [line.split(" was ")[0].split(maxsplit=2)[2] for line in lines if line.endswith(nobody_known)] == [
        "a request",
        "/login",
    ]
    assert [line for line in lines if line.endswith(" crawl c was created (tenant acme)")]


def test_no_secret_is_in_the_log(guarded: Guarded) -> None:
    with guarded.client(guarded.key("admin")) as door:
        door.put("/v1/crawls/audited", json={})
    key = guarded.key("ask")
    with guarded.client(key) as door:
        refused(door.get(f"/v1/crawls/{key}"), 403, "forbidden")
        refused(door.get(f"/{key}"), 404, "not_found")
    assert key.split("_")[2] not in guarded.server.said()
    assert key.split("_")[2] not in (guarded.data / "access" / "audit.jsonl").read_text()


def test_a_socket_closes_when_its_key_is_revoked(guarded: Guarded, crawl: str) -> None:
    key = guarded.key("ask", "tell")
    with opened(guarded, key) as line, opened(guarded, guarded.key("ask")) as other:
        body = {"crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": 1}}
        assert said(line, {"type": "ping", "id": "p"})["type"] == "pong"
        line.send(json.dumps({"type": "subscribe", "id": "s"} | body))
        api_keys.revoke(guarded.keys, key.split("_")[1])
        with pytest.raises(ConnectionClosed) as closed:
            hear_all(line)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
        assert closed.value.rcvd.reason.startswith("unauthenticated: the API key is not one of this server's")
        assert said(other, {"type": "ping", "id": "p"})["type"] == "pong"


def hear_all(line: ClientConnection) -> None:
    while True:
        line.recv(timeout=10)


def opened(guarded: Guarded, key: str | None) -> ClientConnection:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    return connect(guarded.server.url.replace("http", "ws") + "/ws", additional_headers=headers, proxy=None)


def said(line: ClientConnection, message: dict[str, object]) -> dict[str, object]:
    line.send(json.dumps(message))
    answer: dict[str, object] = json.loads(line.recv(timeout=10))
    return answer


def test_sockets_take_the_same_credentials_and_scopes(guarded: Guarded, crawl: str) -> None:
    with pytest.raises(InvalidStatus) as nobody, opened(guarded, None):
        pass
    assert nobody.value.response.status_code == 401
    with opened(guarded, guarded.key("ask")) as line:
        assert said(line, {"type": "next", "id": 1, **ask(crawl)})["type"] == "next"
        report = {"type": "report", "id": 2, **tell(crawl, fetched("https://a.example/"))}
        for message in (report, {"type": "stats", "id": 3}, {"type": "release", "id": 4, "crawler_id": "x"}):
            answer = said(line, message)
            assert (answer["type"], answer["id"]) == ("error", message["id"])
            assert answer["error"]["code"] == "forbidden"  # type: ignore[index]


def test_a_revoked_key_ends_sockets_that_are_open(guarded: Guarded, crawl: str) -> None:
    key = guarded.key("ask")
    with opened(guarded, key) as line:
        assert said(line, {"type": "next", "id": 1, **ask(crawl)})["type"] == "next"
        api_keys.revoke(guarded.keys, key.split("_")[1])
        assert until(lambda: said(line, {"type": "next", "id": 1, **ask(crawl)})["type"] == "error")


def test_a_fetch_that_was_never_assigned_teaches_only_with_the_scope_for_it(guarded: Guarded, crawl: str) -> None:
    def learned(door: httpx.Client, name: str) -> float:
        report = tell(name, *(fetched(f"https://{n}.example/", f"https://{n}.example/x") for n in range(5)))
        for fetch in report["fetches"]:
            fetch["relevance"] = 1.0
        done(door.post("/v1/report", json=report))
        numbers = done(door.get("/v1/stats", params={"crawl_id": name}))["crawls"][name]
        assert (numbers["fetches"], numbers["discovered"] > 5) == (5, True)
        return float(numbers["relevant"])

    with (
        guarded.client(guarded.key("tell", "read")) as door,
        guarded.client(guarded.key("tell", "read", "import")) as trusted,
    ):
        assert learned(door, f"{crawl}-a") == 0
        assert learned(trusted, f"{crawl}-b") == 5


def test_a_server_does_not_begin_without_keys_that_were_there(tmp_path: Path) -> None:
    made = run("keys", "create", "--data", "data", cwd=tmp_path)
    assert made.returncode == 0
    (tmp_path / "data" / "access" / api_keys.FILE).unlink()
    refusal = run("serve", "--data", "data", "--port", "0", cwd=tmp_path)
    assert (refusal.returncode, "keys.json is gone" in refusal.stderr) == (2, True), refusal.stderr
    named = run("serve", "--data", "other", "--port", "0", cwd=tmp_path, CRAWLGUIDE_ACCESS_KEYS="nowhere.json")
    assert (named.returncode, "nowhere.json is gone" in named.stderr) == (2, True), named.stderr


def test_a_robots_txt_that_nobody_was_sent_for_is_not_believed(guarded: Guarded, crawl: str) -> None:
    """Nor does a late reward for a page that nobody was sent to teach anything."""
    page, file = f"https://{crawl}.example/", f"https://{crawl}.example/robots.txt"
    with guarded.client(guarded.key("ask", "tell", "read")) as door:
        done(door.post("/v1/report", json=tell(crawl, fetched(page, f"{page}b"))))
        before = door.get("/v1/explain", params={"crawl_id": crawl, "url": f"{page}b"}).json()["p"]
        told = tell(crawl, {"url": page, "reward": 1.0}, {"url": file, "status": 200, "text": ""})
        done(door.post("/v1/report", json=told))
        assert door.get("/v1/explain", params={"crawl_id": crawl, "url": f"{page}b"}).json()["p"] == before


def test_what_is_said_of_an_address_by_a_header_is_not_believed(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("admin")) as admin:
        admin.put(f"/v1/crawls/{crawl}", json={}, headers={"x-forwarded-for": "6.6.6.6"})
    assert [line["address"] for line in audited(guarded.data) if crawl in line["what"]] == ["127.0.0.1"]


def test_hints_name_no_crawl_that_a_key_may_not_see(guarded: Guarded, crawl: str) -> None:
    with guarded.client(guarded.key("admin")) as admin:
        done(admin.put(f"/v1/crawls/secret-{crawl}", json={}), 201)
        assert "did you mean" in refused(admin.get(f"/v1/crawls/secre-{crawl}"), 404, "not_found")["message"]
    with guarded.client(guarded.key("read", crawl="s*")) as door:
        assert "did you mean" not in refused(door.get(f"/v1/crawls/secre-{crawl}"), 404, "not_found")["message"]


def test_what_is_missing_is_said_with_how_to_get_it(guarded: Guarded) -> None:
    with guarded.client(guarded.key("ask", "tell")) as door:
        message = refused(door.get("/v1/crawls"), 403, "forbidden")["message"]
    assert "; it has ask, tell; `crawlguide keys create --scope read` makes one that has it" in message


def test_commands_name_the_folder_of_the_keys(tmp_path: Path) -> None:
    away = run("keys", "list", "--data", "dataa", cwd=tmp_path)
    assert away.stderr == "no keys in dataa, which is not there; `crawlguide keys create` makes one\n"
    assert not (tmp_path / "dataa").exists()
    made = run("keys", "create", "--data", "dtaa", cwd=tmp_path)
    assert made.stderr.startswith("the first key in dtaa: from now on a server with it wants a credential")
