"""A crawl out of a place into a file: what the command `export` does. Nothing is held whole, whatever its size."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from crawlguide.core.errors import ConfigError, CrawlGuideError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crawlguide.gateway.places import Place

STANDARD_OUTPUT = Path("-")


def give(place: Place, crawl: str, file: BinaryIO) -> int:
    """Export; returns how many lines were written."""
    count = 0
    for lines in place.exported(crawl):
        file.write(lines)
        count += lines.count(b"\n")
    return count


@contextmanager
def written(output: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when it is whole; `-`, a pipe or a device is written as it comes."""
    try:
        if output == STANDARD_OUTPUT or (output.exists() and not output.is_file()):
            with _as_it_comes(output) as file:
                yield file
        else:
            with _renamed_at_the_end(output.resolve()) as file:
                yield file
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as problem:
        raise ConfigError(f"output: cannot write {output}: {problem.strerror}") from None
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise CrawlGuideError(f"output: cannot write {output}: {problem.strerror}") from None


@contextmanager
def _as_it_comes(output: Path) -> Iterator[BinaryIO]:
    """Of the standard output a second handle, so that what could not be written is not tried again at the end."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") if output == STANDARD_OUTPUT else output.open("wb") as file:
        yield file


@contextmanager
def _renamed_at_the_end(output: Path) -> Iterator[BinaryIO]:
    half = output.with_name(output.name + ".half")
    try:
        with half.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        half.replace(output)
    finally:
        half.unlink(missing_ok=True)
