"""TLS for all doors: a certificate and its key, read again when their files change, and whose clients are known."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import ERROR, happened
from crawlguide.gateway.watched_files import WatchedFiles

if TYPE_CHECKING:
    from crawlguide.core.config import ServerOptions


class Certificates:
    """What new connections are encrypted with: `context()`, or None without TLS."""

    def __init__(self, options: ServerOptions) -> None:
        self._options, self._version = options, 1
        files = [Path(name) for name in (options.tls_certificate, options.tls_key, options.tls_client_ca) if name]
        loaded(options)  # what is missing is said at the start
        self._files = WatchedFiles(files, lambda: loaded(options), _unread)

    def context(self) -> ssl.SSLContext | None:
        """The newest that could be loaded. Connections that are open keep what they began with."""
        context = self._files.content()
        if self._version != self._files.version:
            self._version, file = self._files.version, self._options.tls_certificate
            happened("tls_reloaded", "new connections get the certificate that {file} holds now", file=file)
        return context


def _unread(_: Path, problem: str) -> None:
    happened("tls_failed", "the old certificate stays: {problem}", ERROR, problem=problem)


def loaded(options: ServerOptions) -> ssl.SSLContext | None:
    """The context for TLS, or None where none is wanted. Raises `ConfigError`."""
    if not options.tls_certificate:
        for name in ("tls_key", "tls_client_ca"):
            if getattr(options, name):
                raise ConfigError(f"server.{name}: expected server.tls_certificate beside it, got none")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    _load_pair(context, options)
    if options.tls_client_ca:
        _load_client_ca(context, options.tls_client_ca)
    return context


def _load_pair(context: ssl.SSLContext, options: ServerOptions) -> None:
    certificate, key = options.tls_certificate, options.tls_key or options.tls_certificate
    _check_readable("tls_certificate", certificate)
    _check_readable("tls_key", key)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")  # nobody sits at the keyboard
    except (OSError, ValueError) as wrong:
        why = "the key does not belong to it" if "MISMATCH" in str(wrong) else str(wrong)
        if not options.tls_key:
            why = "it holds no key; name the file of the key with --tls-key"
        words = f"server.tls_certificate: expected PEM files of a certificate and its plain key, got {certificate}"
        raise ConfigError(f"{words} and {key}: {why}") from None


def _load_client_ca(context: ssl.SSLContext, file: str) -> None:
    """A client may show a certificate; one that is shown is of this authority, or the connection ends."""
    _check_readable("tls_client_ca", file)
    try:
        context.load_verify_locations(cafile=file)
    except ssl.SSLError as wrong:
        raise ConfigError(f"server.tls_client_ca: expected a PEM file of certificates, got {file}: {wrong}") from None
    context.verify_mode = ssl.CERT_OPTIONAL


def _check_readable(name: str, file: str) -> None:
    try:
        Path(file).open("rb").close()
    except OSError as problem:
        raise ConfigError(f"server.{name}: cannot read {file}: {problem.strerror}") from None
