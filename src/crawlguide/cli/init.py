"""crawlguide init."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawlguide.cli.common import JsonOption, app, say_json
from crawlguide.core.errors import ConfigError
from crawlguide.core.telemetry import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path("crawlguide.toml")
HEAD = """\
# What crawlguide can be told, every key at its default. Take away the # before what you change.
# Flags win over environment variables, which win over this file; `crawlguide config show` says what counts.
"""


@app.command()
def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The file to write.")] = FILE,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    json: JsonOption = False,
) -> None:
    """Write a commented crawlguide.toml with every key at its default.

    Example: crawlguide init

    Example: crawlguide init settings.toml --force
    """
    content = document()
    _write(path, content, force)
    if json:
        say_json({"path": str(path), "bytes": len(content.encode())})
        return
    how = "crawlguide reads it in this folder" if path == FILE else f"use it with --config {path}"
    typer.echo(printable(f"wrote {path}: every key at its default, commented out; {how}"))


def document() -> str:
    """The whole file."""
    return HEAD + "".join(_sections())


def toml(value: Any) -> str:
    """A default as TOML; for the kinds that keys have, that is JSON."""
    import msgspec

    return msgspec.json.encode(value).decode()


def _sections() -> Iterator[str]:
    import msgspec

    from crawlguide.cli.config import MEANINGS
    from crawlguide.core.config import sections

    for section in sections():
        yield f"\n[{section.name}]  # {section.type.__doc__}\n"
        for option in msgspec.structs.fields(section.type):
            meaning = MEANINGS[f"{section.name}.{option.name}"]
            yield f"\n# {meaning}\n#{option.name} = {toml(option.default)}\n"


def _write(path: Path, content: str, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise ConfigError(f"{path}: it is there already; --force writes over it") from None
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be written: {problem.strerror}") from None
