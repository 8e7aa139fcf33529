"""crawlguide serve."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crawlguide.cli.common import ConfigOption, app, compile_first, run, settings
from crawlguide.core.telemetry import happened

if TYPE_CHECKING:
    from crawlguide.core.config import Config

LogFormat = Literal["text", "json"]


@app.command()
def serve(  # noqa: PLR0913, PLR0917 - the options of a command
    data: Annotated[str | None, typer.Option(help="Folder to remember in; :memory: forgets at the end.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")] = None,
    grpc_port: Annotated[int | None, typer.Option(help="Answer over gRPC, too, on this port; usually 8081.")] = None,
    frontier_port: Annotated[
        int | None, typer.Option(help="Answer clients of URLFrontier, too, on this port; usually 7071.")
    ] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="Certificate in PEM: all doors speak TLS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key in PEM.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen for everybody, without any credential.")] = False,
    ready_file: Annotated[Path | None, typer.Option(help="Written, with the ports as JSON, when ready.")] = None,
    log_format: Annotated[LogFormat | None, typer.Option(help="How the log is written: text or json.")] = None,
    config: ConfigOption = None,
    seed: Annotated[int, typer.Option(help="Chance starts from here.")] = 0,
) -> None:
    """Answer crawlers over HTTP until Ctrl-C.

    What happens is logged to the standard error, a line for each event.

    Example: crawlguide serve --port 8080
    """
    from crawlguide.gateway import logs

    flags = {
        "server.host": host,
        "server.port": port,
        "server.grpc": None if grpc_port is None else True,
        "server.grpc_port": grpc_port,
        "server.frontier": None if frontier_port is None else True,
        "server.frontier_port": frontier_port,
        "server.tls_certificate": tls_certificate and str(tls_certificate),
        "server.tls_key": tls_key and str(tls_key),
        "server.insecure": insecure or None,
        "server.log_format": log_format,
        "store.data": data,
    }
    options = settings(config, flags)
    with logs.kept(options.server, sys.stderr):
        compile_first(options, partial(happened, "compiling"))
        _serve(options, ready_file, seed)


def _serve(options: Config, ready_file: Path | None, seed: int) -> None:
    from crawlguide.gateway import serve as door
    from crawlguide.gateway import tls
    from crawlguide.gateway.bus import messages as bus
    from crawlguide.gateway.opening import greet, open_guide

    door.check_listening(options)
    tls.loaded(options.server)  # what is wrong with the files is said before anything opens
    door.check_free(options.server)
    bus.check(options.bus)
    began = time.monotonic()
    guide = open_guide(options.store.data, options, seed=seed)
    took_s = time.monotonic() - began

    async def answer() -> None:
        await greet(guide, took_s)
        await door.serve(guide, options, ready_file)

    run(answer())
