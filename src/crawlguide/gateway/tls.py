"""TLS for all doors: a certificate and its key, read again when their files change, and whose clients are known."""

from __future__ import annotations

import os
import ssl
import time
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import ERROR, happened

if TYPE_CHECKING:
    from crawlguide.core.config import ServerOptions

LOOKS_EVERY_S = 1.0
Version = tuple[tuple[int, int, int], ...]


class Certificates:
    """What new connections are encrypted with: `context()`, or None without TLS."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._files = [name for name in (options.tls_certificate, options.tls_key, options.tls_client_ca) if name]
        self._context = loaded(options)
        self._version = self._looked_up()
        self._looked_at = time.monotonic()

    def context(self) -> ssl.SSLContext | None:
        """The newest that could be loaded. Connections that are open keep what they began with."""
        now = time.monotonic()
        if self._context is not None and now - self._looked_at >= LOOKS_EVERY_S:
            self._looked_at = now
            self._renew()
        return self._context

    def _renew(self) -> None:
        version = self._looked_up()
        if version == self._version:
            return
        self._version = version
        try:
            self._context = loaded(self._options)
        except ConfigError as problem:
            happened("tls_failed", "the old certificate stays: {problem}", ERROR, problem=problem.message)
        else:
            file = self._options.tls_certificate
            happened("tls_reloaded", "new connections get the certificate that {file} holds now", file=file)

    def _looked_up(self) -> Version | None:
        """Differs when a file was written or replaced; None while one of them is missing."""
        try:
            found = [os.stat(name) for name in self._files]  # noqa: PTH116 - a path is only made to be looked at
        except OSError:
            return None
        return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)


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
        with open(file, "rb"):  # noqa: PTH123 - as above
            pass
    except OSError as problem:
        raise ConfigError(f"server.{name}: cannot read {file}: {problem.strerror}") from None
