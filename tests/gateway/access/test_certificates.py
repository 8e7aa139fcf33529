"""Client certificates: the name in one is a crawler, the organization its tenant, through both doors, until it ends."""

from __future__ import annotations

import datetime
import json
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.access.common import NO_LIMITS, Guarded, guarding, until
from tests.gateway.http_door.common import ask, done, fetched, refused, tell
from tests.gateway.test_tls import Authority, trusting
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from crawlguide.core.config import AccessOptions, Config, ServerOptions, StoreOptions
from crawlguide.core.errors import Unauthenticated
from crawlguide.gateway.access.entrance import Caller, Entrance

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Doors:
    """A server that asks for certificates, and the authority that makes them."""

    guarded: Guarded
    authority: Authority
    folder: Path

    def context(self, name: str = "", organization: str = "", **more: Any) -> ssl.SSLContext:
        """As somebody with such a certificate connects; without a name, with none."""
        own = self.authority.issue(self.folder, name, organization, **more) if name else ()
        return trusting(self.folder / "authority.pem", *own)

    def client(self, context: ssl.SSLContext, token: str | None = None) -> httpx.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        url = f"https://localhost:{self.guarded.server.port}"
        return httpx.Client(base_url=url, verify=context, headers=headers, timeout=30.0, trust_env=False)

    def socket(self, context: ssl.SSLContext) -> ClientConnection:
        return connect(f"wss://localhost:{self.guarded.server.port}/ws", ssl=context, proxy=None)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority("authority")
    trusted, (certificate, key) = authority.write(folder), authority.issue(folder, "server")
    files = {"CERTIFICATE": certificate, "KEY": key, "CLIENT_CA": trusted}
    settings = {f"CRAWLGUIDE_SERVER_TLS_{name}": str(file) for name, file in files.items()}
    with guarding(folder, **NO_LIMITS, **settings, CRAWLGUIDE_ACCESS_CERTIFICATE_SCOPES="ask") as found:
        yield Doors(found, authority, folder)
        assert "Traceback" not in found.server.said()


def said(line: ClientConnection, **message: Any) -> dict[str, Any]:
    line.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(line.recv(timeout=10))
    return answer


def mine(crawl: str) -> dict[str, Any]:
    return ask(crawl) | {"crawler_id": "c-7"}


def test_a_certificate_is_a_crawler_of_its_tenant_with_the_scopes_of_all(doors: Doors, crawl: str) -> None:
    with doors.client(doors.context("c-7", "acme")) as door:
        done(door.post("/v1/next", json=mine(crawl)))
        other = refused(door.post("/v1/next", json=ask(crawl)), 403, "forbidden")
        assert (other["field"], "certificate 'c-7' speaks for 'c-7' alone" in other["message"]) == ("crawler_id", True)
        refused(door.post("/v1/report", json=tell(crawl, fetched("https://a.example/"))), 403, "forbidden")
    keys = {tenant: doors.guarded.key("read", tenant=tenant) for tenant in ("acme", "default")}
    with doors.client(doors.context(), keys["acme"]) as acme, doors.client(doors.context(), keys["default"]) as others:
        done(acme.get(f"/v1/crawls/{crawl}"))
        refused(others.get(f"/v1/crawls/{crawl}"), 404, "not_found")


def test_it_is_the_same_over_a_socket(doors: Doors, crawl: str) -> None:
    with doors.socket(doors.context("c-7", "acme")) as line:
        assert said(line, type="next", id=1, **mine(crawl))["type"] == "next"
        for message in ({"type": "next", **ask(crawl)}, {"type": "stats"}):
            assert said(line, id=2, **message)["error"]["code"] == "forbidden"


def test_without_a_certificate_or_a_tenant_in_it_nobody_comes_in(doors: Doors) -> None:
    for context, says in ((doors.context(), "expected a credential"), (doors.context("c-7"), "names no tenant (O)")):
        with doors.client(context) as door:
            assert says in refused(door.post("/v1/next", json=mine("c")), 401, "unauthenticated")["message"]
        with pytest.raises(InvalidStatus) as refusal, doors.socket(context):
            pass
        assert refusal.value.response.status_code == 401


def test_a_key_that_is_shown_as_well_counts_instead(doors: Doors, crawl: str) -> None:
    with doors.client(doors.context("c-7", "acme"), doors.guarded.key("tell")) as door:
        done(door.post("/v1/report", json=tell(crawl, fetched("https://a.example/"))))
        refused(door.post("/v1/next", json=mine(crawl)), 403, "forbidden")


def test_a_certificate_that_ends_ends_connections_that_are_open(doors: Doors, crawl: str) -> None:
    context = doors.context("c-7", "acme", lasts=datetime.timedelta(seconds=3))
    with doors.client(context) as door, doors.socket(context) as line:
        done(door.post("/v1/next", json=mine(crawl)))
        assert said(line, type="next", id=1, **mine(crawl))["type"] == "next"
        assert until(lambda: door.post("/v1/next", json=mine(crawl)).status_code == 401)
        answer = said(line, type="next", id=2, **mine(crawl))
    assert (answer["error"]["code"], "has expired" in answer["error"]["message"]) == ("unauthenticated", True)


SUBJECT = ((("commonName", "c-7"),),)
STRANGE = {
    "no name": (),
    "two names": (*SUBJECT, (("commonName", "c-8"),)),
    "two tenants": (*SUBJECT, (("organizationName", "a"),), (("organizationName", "b"),)),
    "no tenant's name": (*SUBJECT, (("organizationName", "ACME Inc."),)),
}


def entrance(folder: Path, tenant: str) -> Entrance:
    access, server = AccessOptions(default_tenant=tenant), ServerOptions(tls_client_ca="ca.pem")
    return Entrance(Config(access=access, server=server, store=StoreOptions(data=str(folder))))


@pytest.mark.parametrize("name", STRANGE)
def test_a_subject_that_names_nobody_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unauthenticated, match="the certificate"):
        entrance(tmp_path, "guests").admit(Caller("192.0.2.1", certificate={"subject": STRANGE[name]}))


def test_a_certificate_without_a_tenant_is_of_the_one_that_the_operator_names(tmp_path: Path) -> None:
    found = entrance(tmp_path, "guests").admit(Caller("192.0.2.1", certificate={"subject": SUBJECT}))
    assert (found.tenant, found.crawler_id) == ("guests", "c-7")
