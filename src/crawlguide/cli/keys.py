"""crawlguide keys: API keys of a server, made and revoked while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from crawlguide.cli.common import ConfigOption, InOrder, JsonOption, app, say, say_json, settings
from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import printable

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.config import Config
    from crawlguide.gateway.access.api_keys import ApiKey

keys = typer.Typer(cls=InOrder, no_args_is_help=True, help="Make, list and revoke API keys.")
app.add_typer(keys, name="keys")
DataFlag = Annotated[str | None, typer.Option("--data", help="The data folder of the server, which may be running.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        metavar="SCOPE[@CRAWL]",
        help="ask, tell, read, admin, import, metrics or robots:override; repeatable. Default: ask and tell.",
    ),
]


@keys.command()
def create(  # noqa: PLR0913, PLR0917 - the options of a command
    scope: Scopes = None,
    crawl: Annotated[str, typer.Option("--crawl", help="For this crawl alone, or for all that begin so: news-*")] = "*",
    tenant: Annotated[str, typer.Option("--tenant", help="Whose key it is.")] = "default",
    crawler: Annotated[str | None, typer.Option("--crawler", metavar="ID", help="For this crawler alone.")] = None,
    days: Annotated[float | None, typer.Option("--days", min=0.001, max=36_500, help="Until it expires.")] = None,
    note: Annotated[str, typer.Option("--note", help="What `keys list` says about it.")] = "",
    data: DataFlag = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Make a key, and print it: once, for it is kept as a hash.

    Example: crawlguide keys create --data data --note "crawler of the news team"

    Example: crawlguide keys create --data data --scope read --scope ask@news-* --tenant acme --days 90
    """
    from crawlguide.gateway.access import api_keys
    from crawlguide.gateway.access.credential import grants_of

    options = settings(config, {"store.data": data})
    wanted = [part.strip() for text in scope or ["ask", "tell"] for part in text.split(",")]
    made = _where(options)
    first = not made.exists()
    text, key = api_keys.create(
        made, grants_of(wanted, crawl), tenant, days=days, crawler_id=crawler, note=printable(note)[:200]
    )
    _audit(options, f"keys create {key.name} {' '.join(key.scopes)} for tenant {key.tenant}")
    if json:
        say_json({"key": text, "name": key.name, "tenant": key.tenant, "scopes": key.scopes})
        return
    if first:
        words = "the first key in {place}: from now on a server with it wants a credential from everybody"
        say(words.format(place=_place(options)))
    say(f"key {key.name} of tenant {key.tenant}, with {', '.join(key.scopes)}; it is shown once:")
    typer.echo(text)


@keys.command("list")
def list_(data: DataFlag = None, config: ConfigOption = None, json: JsonOption = False) -> None:
    """Show which keys there are, and what each may do.

    Example: crawlguide keys list --data data
    """
    from crawlguide.cli.printing import show, table
    from crawlguide.gateway.access import api_keys

    options = settings(config, {"store.data": data})
    found = api_keys.listed(_where(options))
    if json:
        say_json([{**_shown(key), "scopes": key.scopes, "expires": key.expires} for key in found])
        return
    if not found:
        place = _place(options)
        say(f"no keys in {place}{'' if place.exists() else ', which is not there'}; `crawlguide keys create` makes one")
        return
    rows = [(*_shown(key).values(), ", ".join(key.scopes), _ends(key)) for key in found]
    show(table(("key", "tenant", "crawler", "created", "note", "scopes", "expires"), rows))


@keys.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="KEY", help="Its name, as `keys list` shows it.")],
    data: DataFlag = None,
    config: ConfigOption = None,
) -> None:
    """Make a key useless, for a running server too, within a second.

    Example: crawlguide keys revoke 4f1c09ab77d2 --data data
    """
    from crawlguide.gateway.access import api_keys

    options = settings(config, {"store.data": data})
    where = _where(options)
    if name.startswith(f"{api_keys.PREFIX}_"):  # somebody pasted the whole key
        name = name.split("_")[1]
    gone = api_keys.revoke(where, name)
    _audit(options, f"keys revoke {gone.name}")
    say(f"key {gone.name} of tenant {gone.tenant} is revoked")


def _where(options: Config) -> Path:
    from crawlguide.gateway.access.entrance import keys_file

    if options.store.data == ":memory:" and not options.access.keys:
        raise ConfigError("data: expected a folder to keep keys in, or access.keys, got :memory:")
    return keys_file(options)


def _place(options: Config) -> Path:
    """What its operator calls it: the data folder, or the file that is configured."""
    from pathlib import Path

    named_file = options.access.keys or options.store.data == ":memory:"
    return _where(options) if named_file else Path(options.store.data)


def _audit(options: Config, what: str) -> None:
    """Into the same log as what admins do over the network; where nothing is kept but keys, beside them."""
    import getpass
    from pathlib import Path

    from crawlguide.gateway.access.audit import FILE, AuditLog
    from crawlguide.gateway.access.entrance import FOLDER, keys_file

    data = options.store.data
    log = AuditLog(keys_file(options).with_name(FILE) if data == ":memory:" else Path(data) / FOLDER / FILE)
    log.write(f"user {getpass.getuser()}", "default", "this machine", what, 200)
    log.close()


def _shown(key: ApiKey) -> dict[str, str]:
    return {
        "name": key.name, "tenant": key.tenant, "crawler_id": key.crawler_id or "", "created": key.created,
        "note": key.note,
    }  # fmt: skip


def _ends(key: ApiKey) -> str:
    if key.expires is None:
        return "never"
    left = (key.expires - time.time()) / 86_400
    return f"in {left:.1f} days" if left > 0 else "expired"
