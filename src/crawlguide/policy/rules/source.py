"""A bundle as it lies on disk: one `.rego` file, or a folder with `.rego` files and `.json` files of data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

MOST_BYTES = 4 * 1024 * 1024


class Source(msgspec.Struct, frozen=True):
    modules: dict[str, str]
    data: list[str]


def files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in {".rego", ".json"} and file.is_file())


def stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Changes when a file does."""
    found = []
    for file in files(path):
        state = file.stat()
        found.append((str(file), state.st_mtime_ns, state.st_size))
    return tuple(found)


def read(path: Path) -> Source:
    """Raises `ConfigError` for what cannot be read."""
    found = files(path)
    if not any(file.suffix == ".rego" for file in found):
        raise ConfigError(f"guide.rules: expected a .rego file or a folder with one, got {path}")
    if sum(file.stat().st_size for file in found) > MOST_BYTES:
        raise ConfigError(f"guide.rules: expected at most {MOST_BYTES} bytes of rules and data in {path}")
    try:
        texts = {str(file): file.read_text() for file in found}
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"guide.rules: {path} cannot be read: {problem}") from None
    modules = {name: text for name, text in texts.items() if name.endswith(".rego")}
    return Source(modules, [text for name, text in texts.items() if name.endswith(".json")])
