"""crawlguide agents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawlguide.cli.common import (
    CaOption,
    ConfigOption,
    TokenOption,
    app,
    compile_first,
    run,
    settings,
    show_to_servers,
)
from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import installing

if TYPE_CHECKING:
    from crawlguide.agents.serve import AgentsOptions
    from crawlguide.core.config import Config

MEMORY, PORT = ":memory:", 8082
OVER_HTTP, FINDING = "Over HTTP", "How find_pages fetches"


@app.command("agents")
def agents(  # noqa: PLR0913, PLR0917 - the options of a command
    data: Annotated[
        str | None, typer.Option(help="Folder to remember in; without one all is forgotten at the end.")
    ] = None,
    guide: Annotated[
        str | None, typer.Option(metavar="URL", help="A server to speak to instead of a guide of its own.")
    ] = None,
    token: TokenOption = None,
    ca: CaOption = None,
    http: Annotated[
        bool, typer.Option("--http", help="Answer over streamable HTTP, at /mcp.", rich_help_panel=OVER_HTTP)
    ] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", rich_help_panel=OVER_HTTP)] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on; 0 picks a free one.", show_default=str(PORT), rich_help_panel=OVER_HTTP),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="Certificate in PEM: speak TLS.", rich_help_panel=OVER_HTTP)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key in PEM.", rich_help_panel=OVER_HTTP)] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Listen for everybody, without any credential.", rich_help_panel=OVER_HTTP),
    ] = False,
    ready_file: Annotated[
        Path | None, typer.Option(help="Written, with the port as JSON, when ready.", rich_help_panel=OVER_HTTP)
    ] = None,
    delay: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="Seconds between two requests to a host; 1.", rich_help_panel=FINDING),
    ] = None,
    user_agent: Annotated[str, typer.Option(help="The name it has for sites.", rich_help_panel=FINDING)] = "crawlguide",
    contact: Annotated[
        str, typer.Option(metavar="URL|MAIL", help="For those whose sites are fetched.", rich_help_panel=FINDING)
    ] = "",
    proxy: Annotated[str | None, typer.Option(metavar="URL", help="An HTTP proxy.", rich_help_panel=FINDING)] = None,
    allow_network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIDR", help="May be reached though it is not public; repeatable.", rich_help_panel=FINDING
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Answer language-model agents: tools of the Model Context Protocol, over stdio until the input ends.

    What happens is logged to the standard error.

    Example: crawlguide agents --data crawls
    """
    if guide is not None and data is not None:
        raise ConfigError("--data and --guide: expected one of them, got both")
    if http and token:
        raise ConfigError("--token: over HTTP every caller shows a credential of its own; leave it out")
    if guide is None and (token or ca):
        raise ConfigError("--token, --ca: only with --guide; a guide of its own wants nothing shown")
    if not http:
        _check_only_http(
            host=host, port=port, tls_certificate=tls_certificate, tls_key=tls_key, insecure=insecure or None,
            ready_file=ready_file,
        )  # fmt: skip
    show_to_servers(token, ca)
    flags = {
        "server.host": host,
        "server.port": PORT if port is None else port,
        "server.tls_certificate": tls_certificate and str(tls_certificate),
        "server.tls_key": tls_key and str(tls_key),
        "server.insecure": insecure or None,
        "store.data": data or MEMORY,
    }
    options, networks = settings(config, flags), tuple(allow_network or ())
    where = _checked(guide, user_agent, networks)
    compile_first(options)
    from crawlguide.agents.finding import CONCURRENCY, SearchOptions
    from crawlguide.agents.serve import AgentsOptions
    from crawlguide.crawler.fetch import FetchOptions
    from crawlguide.gateway import logs

    fetching = FetchOptions(
        user_agent=user_agent, contact=contact, proxy=proxy, concurrency=CONCURRENCY, allow_networks=networks
    )
    with logs.kept(options.server, sys.stderr):
        _serve(options, AgentsOptions(SearchOptions(fetching, delay), where, ready_file), http=http)


def _checked(guide: str | None, user_agent: str, allow_networks: tuple[str, ...]) -> str | None:
    """The address of the guide. What cannot work is said before anything is compiled."""
    from crawlguide.gateway.arguments import address

    where = guide and address(guide, "--guide")
    _check_installed()
    from crawlguide.cli.connection import check_answers
    from crawlguide.crawler.options import token as robots_name
    from crawlguide.policy.addresses import networks

    robots_name(user_agent)  # these say what is wrong
    networks(allow_networks, "--allow-network")
    if where is not None:
        check_answers(where)
    return where


def _check_only_http(**options: object) -> None:
    """Over stdio nobody listens: whoever says where has forgotten `--http`."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if given:
        raise ConfigError(f"{', '.join(given)}: only with --http; over stdio there is nothing to listen on")


def _check_installed() -> None:
    try:
        import mcp.server
    except ModuleNotFoundError as missing:
        raise ConfigError(f"agents need {missing.name}, which is not installed: {installing('agents')}") from None
    del mcp


def _serve(options: Config, agent_options: AgentsOptions, *, http: bool) -> None:
    from crawlguide.agents import serve
    from crawlguide.gateway import serve as door
    from crawlguide.gateway import tls
    from crawlguide.gateway.listener import bound

    if not http:
        run(serve.over_stdio(options, agent_options))
        return
    door.check_listening(options)
    tls.loaded(options.server)
    bound(options.server.host, options.server.port).close()  # say that a port is taken before opening anything
    run(serve.over_http(options, agent_options))
