"""Tokens for tests: good ones, and every way in which one is forged, stale or meant for somebody else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER, AUDIENCE = "https://issuer.example", "crawlguide"
RSA = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
CURVE = ec.generate_private_key(ec.SECP256R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()
SECRET = b"s" * 40
STRANGER = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def pem(key: Any) -> bytes:
    return bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def jwk(algorithm: str, key: Any, kid: str, **more: str) -> dict[str, Any]:
    made = jwt.get_algorithm_by_name(algorithm)
    return {**json.loads(made.to_jwk(key)), "kid": kid, **more}


def jwks() -> dict[str, Any]:
    return {
        "keys": [
            jwk("RS256", RSA.public_key(), "rsa"),
            jwk("ES256", CURVE.public_key(), "curve"),
            jwk("EdDSA", EDWARDS.public_key(), "edwards"),
            {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).rstrip(b"=").decode(), "kid": "secret"},
        ]
    }


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 86_400, "iat": now, "sub": "fleet", "scope": "ask tell read"}
    usual["tenant"] = "default"
    return {name: value for name, value in (usual | more).items() if value is not None}


def token(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "rsa", header: Any = None, **more: Any) -> str:
    headers = ({} if kid is None else {"kid": kid}) | (header or {})
    return jwt.encode(claims(**more), key, algorithm, headers)


def unsigned(header: dict[str, Any]) -> str:
    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    return f"{part(header)}.{part(claims())}."


def signed_with_public_key() -> str:
    """HS256 over the public key that everybody knows, which a server mistakes for a secret if the token decides."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "rsa"}).encode()).rstrip(b"=")
    body = base64.urlsafe_b64encode(json.dumps(claims()).encode()).rstrip(b"=")
    sign = hmac.new(pem(RSA), head + b"." + body, hashlib.sha256).digest()
    return b".".join((head, body, base64.urlsafe_b64encode(sign).rstrip(b"="))).decode()


def of_text(payload: str, header: str = '"alg":"RS256","kid":"rsa"') -> str:
    """Well signed, whatever it says."""

    def part(content: bytes) -> bytes:
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    said = part(f"{{{header}}}".encode()) + b"." + part(payload.encode())
    return (said + b"." + part(RSA.sign(said, PKCS1v15(), SHA256()))).decode()


def with_empty_signature(token: str, size: int) -> str:
    """Zeros, which careless arithmetic takes for the signature of whatever stands before them."""
    head, body, _ = token.split(".")
    return ".".join((head, body, base64.urlsafe_b64encode(bytes(size)).rstrip(b"=").decode()))


def repeating(**more: Any) -> str:
    return f"{json.dumps(claims())[:-1]}, {json.dumps(more)[1:]}"


GOOD = {
    "as text": of_text(json.dumps(claims())),
    "RS256": token(),
    "PS256": token(algorithm="PS256"),
    "ES256": token(CURVE, "ES256", "curve"),
    "EdDSA": token(EDWARDS, "EdDSA", "edwards"),
    "HS256": token(SECRET, "HS256", "secret"),
    "several audiences": token(aud=["other", AUDIENCE]),
    "a clock ten seconds ahead": token(iat=int(time.time()) + 10),
}
FORGED = {
    "no algorithm": unsigned({"alg": "none", "kid": "rsa"}),
    "None in other letters": unsigned({"alg": "nOnE", "kid": "rsa"}),
    "a public key taken for a secret": signed_with_public_key(),
    "a secret with another key's name": token(SECRET, "HS256", "rsa"),
    "a stranger's key": token(STRANGER),
    "another key's name": token(CURVE, "ES256", "rsa"),
    "an algorithm that is too weak or too rare": token(algorithm="RS512"),
    "expired": token(exp=int(time.time()) - 60),
    "never expires": token(exp=None),
    "expires in words": token(exp="tomorrow"),
    "expires at infinity": token(exp=float("inf")),
    "expires at a number beyond all numbers": of_text(json.dumps(claims(exp=0))[:-1] + ', "exp": 1' + "0" * 400 + "}"),
    "expires because it is true": token(exp=True),
    "not yet": token(nbf=int(time.time()) + 86_400),
    "from the future": token(iat=int(time.time()) + 86_400),
    "another audience": token(aud="other"),
    "no audience": token(aud=None),
    "another issuer": token(iss="https://evil.example"),
    "a part of the issuer": token(iss=ISSUER[:-1]),
    "more than the issuer": token(iss=f"{ISSUER}.evil.example"),
    "several issuers": of_text(json.dumps(claims(iss=[ISSUER]))),
    "a part of the audience": token(aud=AUDIENCE[:-1]),
    "an audience as an object": of_text(json.dumps(claims(aud={AUDIENCE: 1}))),
    "an audience within a list within a list": of_text(json.dumps(claims(aud=[[AUDIENCE]]))),
    "no issuer": token(iss=None),
    "a path as a key's name": token(kid="../../../../dev/null"),
    "a query as a key's name": token(kid="rsa' UNION SELECT 'a"),
    "no key's name": token(kid=None),
    "a number as a key's name": unsigned({"alg": "RS256", "kid": 7}),
    "a key of its own": token(STRANGER, kid="x", header={"jwk": jwk("RS256", STRANGER.public_key(), "x")}),
    "a key from elsewhere": token(STRANGER, kid="x", header={"jku": "https://evil.example/keys"}),
    "a certificate of its own": token(STRANGER, kid="rsa", header={"x5c": [pem(STRANGER).decode()]}),
    "a certificate from elsewhere": token(STRANGER, kid="rsa", header={"x5u": "https://evil.example/keys"}),
    "a list of algorithms": of_text(json.dumps(claims()), '"alg":["RS256"],"kid":"rsa"'),
    "a signature of zeros on a curve": with_empty_signature(token(CURVE, "ES256", "curve"), 64),
    "a signature of zeros of Edwards": with_empty_signature(token(EDWARDS, "EdDSA", "edwards"), 64),
    "a signature of zeros of RSA": with_empty_signature(token(), 256),
    "no signature": with_empty_signature(token(), 0),
    "a body that stands elsewhere": of_text(json.dumps(claims()), '"alg":"RS256","kid":"rsa","b64":false'),
    "encrypted": f"{token()}.x.y",
    "an extension that matters": token(header={"crit": ["exp"]}),
    "a tenant with a slash": token(tenant="a/b"),
    "an empty tenant": token(tenant=""),
    "no tenant": token(tenant=None),
    "scopes as a number": token(scope=7),
    "scopes that are numbers": token(scope=[1]),
    "scopes that are names of fields": token(scope={"admin": 1}),
    "half a letter in its crawls": token(crawl="\ud800"),
    "half a letter in its subject": token(sub="\ud800"),
    "half a letter in its crawler": token(crawler_id="c\udfff"),
    "crawls as an object": token(crawl={"a": 1}),
    "crawls as a list": token(crawl=["a"]),
    "two ends": of_text(repeating(exp=int(time.time()) + 60)),
    "two tenants": of_text(repeating(tenant="acme")),
    "two names of a key": of_text(json.dumps(claims()), '"alg":"RS256","kid":"x","kid":"rsa"'),
    "two parts": ".".join(token().split(".")[:2]),
    "a changed claim": "{0}.{2}.{1}".format(*token().split(".")),
    "text": "not.a.token",
    "very long": token(sub="x" * 9_000),
}
