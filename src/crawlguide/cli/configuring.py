"""crawlguide config show, check, explain."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.cli.common import ConfigOption, JsonOption, app, config_file, say_json, settings
from crawlguide.core.errors import ConfigError, MalformedRequest
from crawlguide.core.events import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.config import Config

config = typer.Typer(help="Show, check and explain the configuration.", no_args_is_help=True)
app.add_typer(config, name="config")
PREDICT = "predict"
DataFlag = Annotated[str | None, typer.Option("--data", help="As for serve.")]
HostFlag = Annotated[str | None, typer.Option("--host", help="As for serve.")]
PortFlag = Annotated[int | None, typer.Option("--port", help="As for serve.")]


@config.command("show")
def show_(
    data: DataFlag = None,
    host: HostFlag = None,
    port: PortFlag = None,
    path: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Show every key, its value and where it comes from.

    That is a default, a file, an environment variable or a flag.

    Example: crawlguide config show

    Example: crawlguide config show --port 9090 --json
    """
    from crawlguide.cli.showing import show, table  # noqa: PLC0415
    from crawlguide.cli.starting import toml  # noqa: PLC0415

    flags = {"server.host": host, "server.port": port, "store.data": data}
    values, sources = _flat(settings(path, flags)), _sources(config_file(path), flags)
    if json:
        say_json({key: {"value": value, "source": sources.get(key, "default")} for key, value in values.items()})
        return
    rows = [(key, toml(value), sources.get(key, "default")) for key, value in values.items()]
    show(table(("key", "value", "from"), rows))


@config.command()
def check(
    data: DataFlag = None,
    host: HostFlag = None,
    port: PortFlag = None,
    path: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Say whether a server could start with this configuration.

    Ends with 0 if so, with 2 and the reason if not.

    Example: crawlguide config check

    Example: crawlguide config check --config settings.toml
    """
    flags = {"server.host": host, "server.port": port, "store.data": data}
    file = config_file(path)
    try:
        _check_use(settings(path, flags))
    except ConfigError as wrong:
        if json:
            say_json({"good": False, "file": file and str(file), "message": wrong.message})
        raise
    changed = len(_sources(file, flags))
    if json:
        say_json({"good": True, "file": file and str(file), "set": changed})
    else:
        typer.echo(printable(f"good: {file or 'no file'}, {changed} {'key' if changed == 1 else 'keys'} set"))


@config.command()
def explain(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Such as server.port.")], json: JsonOption = False
) -> None:
    """Say what a key means and takes, its default and its variable.

    Example: crawlguide config explain server.port
    """
    from crawlguide.cli.meanings import MEANINGS, kind_in_words  # noqa: PLC0415
    from crawlguide.cli.starting import toml  # noqa: PLC0415
    from crawlguide.core.config import keys  # noqa: PLC0415

    if key not in keys():
        raise ConfigError(_unknown(key, list(keys())))
    kind, default = keys()[key]
    about = {"key": key, "meaning": MEANINGS[key], "type": kind_in_words(kind)}
    if json:
        say_json({**about, "default": default, "environment": variable(key)})
        return
    for name, words in {**about, "default": toml(default), "environment": variable(key)}.items():
        typer.echo(f"{name:<12} {words}")


def variable(key: str) -> str:
    """The environment variable that sets a key."""
    from crawlguide.core.config import PREFIX  # noqa: PLC0415

    return PREFIX + key.replace(".", "_").upper()


def _flat(options: Config) -> dict[str, Any]:
    import msgspec  # noqa: PLC0415

    tree = msgspec.to_builtins(options)
    predict = {PREDICT: tree.pop(PREDICT)}
    found = {f"{section}.{name}": value for section, values in tree.items() for name, value in values.items()}
    return found | (predict if predict[PREDICT] else {})


def _sources(file: Path | None, flags: Mapping[str, Any]) -> dict[str, str]:
    """Where each key that is not left at its default comes from; the last one that names it counts."""
    from crawlguide.core.config import keys  # noqa: PLC0415

    tree = tomllib.loads(file.read_text()) if file is not None else {}
    found = {PREDICT: f"file {file}"} if tree.pop(PREDICT, None) else {}
    found |= {f"{section}.{name}": f"file {file}" for section, options in tree.items() for name in options}
    found |= {key: f"environment {variable(key)}" for key in keys() if variable(key) in os.environ}
    return found | {key: "flag" for key, value in flags.items() if value is not None}


def _check_use(options: Config) -> None:
    """What a server refuses later than loading: addresses of other machines, filters that are not there."""
    from crawlguide.core.crawls import Definition  # noqa: PLC0415
    from crawlguide.gateway.serve import bound  # noqa: PLC0415
    from crawlguide.guide import composition  # noqa: PLC0415

    bound(options.server.host, 0).close()
    try:
        composition.filters(options.guide.filters, Definition())
        composition.check_default(options)
    except MalformedRequest as wrong:
        raise ConfigError(wrong.message) from None


def _unknown(key: str, known: list[str]) -> str:
    import difflib  # noqa: PLC0415

    named = [one for one in known if one.endswith(f".{key}") or variable(one) == key.upper()]
    inside = [one for one in known if one.startswith(f"{key}.")]
    near = named or inside or difflib.get_close_matches(key, known, 1, 0.5)
    return f"unknown key {key!r}" + (f"; did you mean {', '.join(near)}?" if near else "; `config show` lists all")
