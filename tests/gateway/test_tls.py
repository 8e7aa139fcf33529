"""TLS: one setting for all doors, certificates that change while the server runs, clients that show their own."""

from __future__ import annotations

import asyncio
import datetime
import json
import socket
import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.gateway.conftest import Served
from tests.gateway.http_door.test_connection import Echo, everything, on_uvloop, running, until
from tests.gateway.socket_door.common import tuned
from websockets.sync.client import connect

from crawlguide.core.config import ServerOptions
from crawlguide.core.errors import ConfigError
from crawlguide.gateway import tls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DAY = datetime.timedelta(days=1)


@dataclass
class Authority:
    """A certificate authority that signs certificates for names."""

    name: str

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed(self.name, self._key, is_authority=True)

    def write(self, folder: Path) -> Path:
        file = folder / f"{self.name}.pem"
        file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return file

    def issue(
        self, folder: Path, name: str, organization: str = "", lasts: datetime.timedelta = DAY
    ) -> tuple[Path, Path]:
        """The files of a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate, secret = folder / f"{name}-certificate.pem", folder / f"{name}-key.pem"
        certificate.write_bytes(self._signed(name, key, organization, lasts).public_bytes(serialization.Encoding.PEM))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate, secret

    def _signed(
        self,
        name: str,
        key: ec.EllipticCurvePrivateKey,
        organization: str = "",
        lasts: datetime.timedelta = DAY,
        *,
        is_authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_named(name, organization))
            .issuer_name(_named(self.name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + lasts)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.DNSName(name)]), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _named(name: str, organization: str = "") -> x509.Name:
    kinds = {NameOID.COMMON_NAME: name, NameOID.ORGANIZATION_NAME: organization}
    return x509.Name([x509.NameAttribute(kind, text) for kind, text in kinds.items() if text])


def options(certificate: Path, key: Path, authority: Path | None = None) -> dict[str, Any]:
    files = {"tls_certificate": certificate, "tls_key": key, "tls_client_ca": authority}
    return {name: str(file) for name, file in files.items() if file}


@contextmanager
def serving(folder: Path, **files: str) -> Iterator[Served]:
    with tuned(folder, **{name: json.dumps(file) for name, file in files.items()}) as server:  # type: ignore[arg-type]
        yield server


def trusting(authority: Path, *own: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority))
    if own:
        certificate, key = own
        context.load_cert_chain(certificate, key)
    return context


def shown(port: int, context: ssl.SSLContext) -> str:
    """The name that the server's certificate says."""
    line = socket.create_connection(("127.0.0.1", port), timeout=10)
    with context.wrap_socket(line, server_hostname="localhost") as secure:
        certificate: Any = secure.getpeercert()
    return str(dict(part[0] for part in certificate["subject"])["commonName"])


def soon(holds: Callable[[], bool], within_s: float = 30) -> None:
    """Wait for what a server that looks at its files once a second comes to show."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_all_doors_speak_tls_and_its_certificate_changes_without_a_restart(tmp_path: Path) -> None:
    authority = Authority("authority")
    files, trusted = authority.issue(tmp_path, "first"), authority.write(tmp_path)
    context = trusting(trusted)
    with serving(tmp_path, **options(*files)) as server:
        assert json.loads((tmp_path / "ready.json").read_text())["scheme"] == "https"
        url = f"https://localhost:{server.port}"
        with httpx.Client(base_url=url, verify=context, trust_env=False) as client:
            assert client.get("/v1/stats").status_code == 200
            assert client.post("/v1/next", content=b"x" * 5_000_000).status_code == 413
            with connect(f"wss://localhost:{server.port}/ws", ssl=context, proxy=None) as door:
                door.send('{"type": "ping", "id": 1}')
                assert json.loads(door.recv(10))["type"] == "pong"
            assert shown(server.port, context) == "first"
            files[0].write_text("broken")
            soon(lambda: shown(server.port, context) == "first" and "the old certificate stays" in server.said())
            for file, new in zip(files, authority.issue(tmp_path, "second"), strict=True):
                new.replace(file)
            soon(lambda: shown(server.port, context) == "second")
            assert client.get("/healthz").status_code == 200
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://localhost:{server.port}/healthz", trust_env=False)
        assert f"answers on https://127.0.0.1:{server.port}" in server.said()
        assert "Traceback" not in server.said()
        assert server.stop() == 0


@on_uvloop
async def test_a_certificate_of_the_client_reaches_the_application(tmp_path: Path) -> None:
    ours, theirs, strange = Authority("ours"), Authority("theirs"), Authority("strange")
    trusted, clients = ours.write(tmp_path), theirs.write(tmp_path)
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["client"][0], scope["state"]["peer_certificate"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    settings = ServerOptions(**options(*ours.issue(tmp_path, "server"), clients))
    async with running(app, settings) as (port, load):
        url = f"https://localhost:{port}/"
        for own in ((), theirs.issue(tmp_path, "crawler-7")):
            async with httpx.AsyncClient(verify=trusting(trusted, *own), trust_env=False) as client:
                assert (await client.get(url)).status_code == 204
        async with httpx.AsyncClient(verify=trusting(trusted, *strange.issue(tmp_path, "evil"))) as client:
            with pytest.raises(httpx.HTTPError):
                await client.get(url)
    assert seen[0] == ("127.0.0.1", None)
    assert ("commonName", "crawler-7") in [part[0] for part in seen[1][1]["subject"]]
    assert len(seen) == 2
    assert len(load.connections) == 0


@on_uvloop
async def test_handshakes_that_do_not_end_count_as_connections_and_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlguide.gateway.listener.HANDSHAKE_S", 0.5)
    authority = Authority("authority")
    context = trusting(authority.write(tmp_path))
    settings = ServerOptions(**options(*authority.issue(tmp_path, "server")), max_connections=2)
    async with running(Echo(), settings) as (port, load):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await until(lambda: len(load.connections) == 2)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await everything(reader) == b""
        writer.close()
        await until(lambda: len(load.connections) == 0)
        async with httpx.AsyncClient(verify=context, trust_env=False) as client:
            assert (await client.get(f"https://localhost:{port}/a")).status_code == 200
        for _, other in silent:
            other.close()


def test_files_that_cannot_be_used_are_said_before_anything_opens(tmp_path: Path) -> None:
    authority = Authority("authority")
    certificate, key = authority.issue(tmp_path, "one")
    _, other = authority.issue(tmp_path, "two")
    (junk := tmp_path / "junk.pem").write_text("junk")
    locked = tmp_path / "locked.pem"
    secret = serialization.load_pem_private_key(key.read_bytes(), None)
    locked.write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    for wrong, word in [
        ({"tls_certificate": str(tmp_path / "nowhere"), "tls_key": str(key)}, "tls_certificate: cannot read"),
        (options(certificate, tmp_path / "nowhere"), "tls_key: cannot read"),
        (options(certificate, other), "does not belong"),
        (options(certificate, locked), "plain key"),
        (options(junk, key), "PEM"),
        (options(certificate, key, junk), "tls_client_ca"),
        ({"tls_key": str(key)}, "tls_certificate beside it"),
    ]:
        with pytest.raises(ConfigError, match=word):
            tls.loaded(ServerOptions(**wrong))
    assert tls.loaded(ServerOptions()) is None
    assert tls.loaded(ServerOptions(**options(certificate, key))) is not None
