"""JSON Web Tokens: every way in which one is forged, stale or meant for somebody else."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.gateway.access.common import NO_LIMITS, Guarded, guarding
from tests.gateway.access.tokens import (
    CURVE,
    EDWARDS,
    FORGED,
    GOOD,
    ISSUER,
    RSA,
    SECRET,
    STRANGER,
    jwk,
    jwks,
    pem,
    token,
)
from tests.gateway.http_door.common import ask, done, refused
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from crawlguide.core.config import AccessOptions, Config, StoreOptions
from crawlguide.core.errors import ConfigError, RateLimited, Unauthenticated
from crawlguide.gateway.access.entrance import Caller, Entrance
from crawlguide.gateway.access.tokens import Tokens, keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("trusting")
    (folder / "jwks.json").write_text(json.dumps(jwks()))
    settings = {"JWT_KEYS": str(folder / "jwks.json"), "JWT_ISSUER": ISSUER}
    settings = {f"CRAWLGUIDE_ACCESS_{name}": text for name, text in settings.items()}
    with guarding(folder, **NO_LIMITS, **settings) as found:
        yield found
        assert "Traceback" not in found.server.said()


@pytest.mark.parametrize("name", GOOD)
def test_a_good_token_comes_in(trusting: Guarded, name: str, crawl: str) -> None:
    with trusting.client(GOOD[name]) as door:
        done(door.post("/v1/next", json=ask(crawl)))


def test_no_forged_token_comes_in(trusting: Guarded) -> None:
    for name, forged in FORGED.items():
        with trusting.client(forged) as door:
            answer = door.get("/v1/stats")
        assert answer.status_code == 401, name
        message = refused(answer, 401, "unauthenticated")["message"]
        assert "issuer.example" not in message, name
        headers = {"authorization": f"Bearer {forged}"}
        url = trusting.server.url.replace("http", "ws") + "/ws"
        with pytest.raises(InvalidStatus) as refusal, connect(url, additional_headers=headers, proxy=None):
            pass
        assert refusal.value.response.status_code in (401, 413), name  # a head has its limits, too


@pytest.mark.parametrize("claim", ["aud", "iss"])
def test_a_token_for_somebody_else_is_told_which_claim_it_is(trusting: Guarded, claim: str) -> None:
    with trusting.client(token(**{claim: "https://elsewhere.example"})) as door:
        message = refused(door.get("/v1/stats"), 401, "unauthenticated")["message"]
    setting = {"aud": "jwt_audience", "iss": "jwt_issuer"}[claim]
    assert f"{claim}: expected what access.{setting} names" in message


def test_a_token_without_scopes_is_told_of_the_claim(trusting: Guarded) -> None:
    with trusting.client(token(scope="")) as door:
        message = refused(door.get("/v1/stats"), 403, "forbidden")["message"]
    assert "it has nothing; the claim `scope` of a token says what it may do" in message


def test_a_token_has_the_tenant_scopes_and_crawler_that_it_says(trusting: Guarded, crawl: str) -> None:
    mine = token(tenant="acme", scope="ask", crawl=f"{crawl}*", crawler_id="c-1")
    with trusting.client(mine) as door:
        done(door.post("/v1/next", json=ask(crawl)))
        refused(door.post("/v1/next", json=ask("other")), 403, "forbidden")
        refused(door.get(f"/v1/crawls/{crawl}"), 403, "forbidden")
        refused(door.post("/v1/next", json=ask(crawl) | {"crawler_id": "c-2"}), 403, "forbidden")
    with trusting.client(token()) as other:
        refused(other.get(f"/v1/crawls/{crawl}"), 404, "not_found")


def test_words_of_other_services_are_passed_over(trusting: Guarded, crawl: str) -> None:
    with trusting.client(token(scope="openid profile fly@x ask")) as door:
        done(door.post("/v1/next", json=ask(crawl)))
        refused(door.get("/v1/stats"), 403, "forbidden")


@pytest.mark.parametrize("scope", ["fly", "", "openid read:all admin2"])
def test_a_token_without_a_scope_of_ours_may_do_nothing(trusting: Guarded, scope: str) -> None:
    with trusting.client(token(scope=scope)) as door:
        answers = [door.post("/v1/next", json=ask("c")), door.get("/v1/stats"), door.get("/metrics"), door.get("/")]
    assert [answer.status_code for answer in answers] == [403] * 4


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(jwks()))
    return Tokens(AccessOptions(jwt_keys=str(file), jwt_issuer=ISSUER))


@dataclass
class At:
    now: float

    def __call__(self) -> float:
        return self.now


def test_messages_name_the_clock(tokens: Tokens, tmp_path: Path) -> None:
    clock = At(time.time() + 2 * 86_400)
    late = Tokens(AccessOptions(jwt_keys=str(tmp_path / "jwks.json"), jwt_issuer=ISSUER), clock)
    with pytest.raises(Unauthenticated, match=r"expired \d+ s ago; this server's clock shows 20"):
        late.credential(token())
    clock.now -= 3 * 86_400
    with pytest.raises(Unauthenticated, match="so one of the clocks is wrong"):
        late.credential(token())


def test_a_key_that_leaves_the_file_signs_no_longer(tokens: Tokens, tmp_path: Path) -> None:
    mine = token()
    assert tokens.credential(mine).tenant == "default"
    left = {"keys": [key for key in jwks()["keys"] if key["kid"] != "rsa"]}
    (tmp_path / "jwks.json").write_text(json.dumps(left))
    tokens._file._looked = float("-inf")
    with pytest.raises(Unauthenticated, match="names no key"):
        tokens.credential(mine)


def test_a_token_without_a_tenant_is_of_the_one_that_the_operator_names(tokens: Tokens, tmp_path: Path) -> None:
    with pytest.raises(Unauthenticated, match=r"names no tenant .* access\.default_tenant"):
        tokens.credential(token(tenant=None, scope="admin"))
    options = AccessOptions(jwt_keys=str(tmp_path / "jwks.json"), jwt_issuer=ISSUER, default_tenant="guests")
    assert Tokens(options).credential(token(tenant=None)).tenant == "guests"
    assert Tokens(options).credential(token(tenant="acme")).tenant == "acme"


def of_file(folder: Path, name: str, content: bytes) -> Tokens:
    (folder / name).write_bytes(content)
    return Tokens(AccessOptions(jwt_keys=str(folder / name), jwt_issuer=ISSUER))


@pytest.mark.parametrize("kid", [None, "any"])
def test_keys_in_pem_have_no_names_and_are_tried(tmp_path: Path, kid: str | None) -> None:
    """As while they rotate: the old one, the new one, and one of another kind."""
    tokens = of_file(tmp_path, "keys.pem", pem(STRANGER) + pem(RSA) + pem(CURVE))
    for key, algorithm in ((RSA, "RS256"), (STRANGER, "PS256"), (CURVE, "ES256")):
        assert tokens.credential(token(key, algorithm, kid)).name == "token 'fleet'"
    another = ec.generate_private_key(ec.SECP256R1())
    for forged in (token(another, "ES256", kid), token(EDWARDS, "EdDSA", kid), token(SECRET, "HS256", kid)):
        with pytest.raises(Unauthenticated):
            tokens.credential(forged)


def test_what_a_key_without_a_name_signed_is_looked_at_as_well(tmp_path: Path) -> None:
    tokens = of_file(tmp_path, "keys.pem", pem(STRANGER) + pem(RSA))
    for wrong in ({"aud": "other"}, {"exp": int(time.time()) - 60}, {"iss": "https://evil.example"}):
        with pytest.raises(Unauthenticated):
            tokens.credential(token(kid=None, **wrong))


def test_a_key_of_a_jwks_may_have_no_name(tmp_path: Path) -> None:
    nameless = {name: value for name, value in jwks()["keys"][0].items() if name != "kid"}
    tokens = of_file(tmp_path, "one.json", json.dumps({"keys": [nameless, jwks()["keys"][1]]}).encode())
    for kid in (None, "any"):
        assert tokens.credential(token(kid=kid)).name == "token 'fleet'"
    with pytest.raises(Unauthenticated):
        tokens.credential(token(kid="curve"))


def test_very_many_keys_without_a_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "keys.pem").write_bytes(pem(CURVE) * 9)
    with pytest.raises(ConfigError, match="at most 8 keys without a name"):
        keys_of(tmp_path / "keys.pem")


def test_tenants_share_no_limit(tmp_path: Path) -> None:
    """Tokens of two tenants may have one subject, and so one name."""
    (tmp_path / "jwks.json").write_text(json.dumps(jwks()))
    access = AccessOptions(jwt_keys=str(tmp_path / "jwks.json"), jwt_issuer=ISSUER, requests_per_s=0.01)
    entrance = Entrance(Config(access=access, store=StoreOptions(data=str(tmp_path))))
    for tenant in ("acme", "beta"):
        caller = Caller("192.0.2.1", f"Bearer {token(tenant=tenant)}")
        assert entrance.admit(caller).name == "token 'fleet'"
        with pytest.raises(RateLimited):
            entrance.admit(caller)


WEAK = {
    "short RSA": {"keys": [jwk("RS256", rsa.generate_private_key(65_537, 1_024).public_key(), "x")]},
    "short secret": {"keys": [{"kty": "oct", "k": "c2hvcnQ", "kid": "x"}]},
    "another curve": {"keys": [jwk("ES384", ec.generate_private_key(ec.SECP384R1()).public_key(), "x")]},
    "nothing": {"keys": []},
    "no keys at all": [],
}


def test_keys_for_other_purposes_are_left_out(tmp_path: Path) -> None:
    others = [jwk("RS256", STRANGER.public_key(), "e", use="enc", alg="RSA-OAEP"), {"kty": "AKP", "kid": "p"}]
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [*others, *jwks()["keys"]]}))
    assert [key.name for key in keys_of(tmp_path / "jwks.json")] == ["rsa", "curve", "edwards", "secret"]


@pytest.mark.parametrize("name", WEAK)
def test_a_file_of_keys_that_nobody_should_trust_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "jwks.json").write_text(json.dumps(WEAK[name]))
    with pytest.raises(ConfigError, match=r"jwks\.json: expected"):
        keys_of(tmp_path / "jwks.json")
