"""crawlguide serve."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from crawlguide.cli.common import ConfigOption, app, run, say, settings


@app.command()
def serve(
    data: Annotated[str | None, typer.Option(help="Folder to remember in; :memory: forgets at the end.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")] = None,
    ready_file: Annotated[Path | None, typer.Option(help="Written, with the ports as JSON, when ready.")] = None,
    config: ConfigOption = None,
    seed: Annotated[int, typer.Option(help="Chance starts from here.")] = 0,
) -> None:
    """Answer crawlers over HTTP until Ctrl-C.

    Example: crawlguide serve --port 8080
    """
    from crawlguide.gateway import serve as door  # noqa: PLC0415
    from crawlguide.gateway.folder import greeting  # noqa: PLC0415
    from crawlguide.gateway.library import open_guide  # noqa: PLC0415

    options = settings(config, {"server.host": host, "server.port": port, "store.data": data})
    door.bound(options.server.host, options.server.port).close()  # say that a port is taken before loading anything
    began = time.monotonic()
    guide = open_guide(options.store.data, options, seed=seed)
    took_s = time.monotonic() - began

    async def answer() -> None:
        say(await greeting(guide, took_s))
        await door.serve(guide, options, ready_file, say)

    run(answer())
