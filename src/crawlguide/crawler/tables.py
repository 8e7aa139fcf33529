"""`pages.parquet` and `links.parquet`, written portion by portion: however long a crawl is, little is in memory."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.errors import ConfigError, DataError
from crawlguide.core.extras import installing
from crawlguide.crawler.headers import plain_line
from crawlguide.crawler.lines import PageLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from crawlguide.core.messages import Fetch

ROWS = 20_000  # of a portion
THROUGH = b"crawlguide.parts"  # how many parts of the links a file holds
KINDS = {
    "revisited": "bool_", "status": "int16", "links": "int32", "bytes": "int64", "warc_offset": "int64",
    "warc_length": "int64", "relevance": "float32", "p": "float32", "score": "float32", "elapsed_ms": "float32",
}  # fmt: skip
LINK_KINDS = {"source": "string", "target": "string", "anchor": "string", "rel": "string", "position": "int32"}


class Tables:
    """Both files of a folder. Links lie in numbered parts, until they are put together."""

    def __init__(self, folder: Path, parts: Path) -> None:
        self._folder, self._parts = folder, parts
        try:
            self._arrow: Any = import_module("pyarrow")
            self._parquet: Any = import_module("pyarrow.parquet")
        except ImportError:
            raise ConfigError(f"crawl needs pyarrow: {installing('crawl')}; or say --no-parquet") from None

    def write_part(self, number: int, reports: Sequence[Fetch]) -> None:
        """The links of some pages. A part that is there already is of the same pages, and is written anew."""
        self._parts.mkdir(exist_ok=True)
        new = self._part(number).with_suffix(".new")
        self._parquet.write_table(self._links(reports), new, compression="zstd")
        new.replace(self._part(number))

    def mend(self, through: int) -> list[str]:
        """Before a run: what is said of links that somebody took away, or that nobody can read any more."""
        final = self._folder / "links.parquet"
        try:
            held = self._held(final)
        except (self._arrow.ArrowException, OSError) as wrong:
            aside = final.replace(final.with_suffix(".unreadable"))
            return [f"{final} cannot be read, is set aside as {aside.name} and begins anew: {plain_line(str(wrong))}"]
        gone = not all(self._part(number).exists() for number in range(held + 1, through + 1))
        return [f"links of earlier runs are no longer in {final}: it goes on with new ones"] if gone else []

    def last_part(self) -> int:
        """The number of the last part that is there, by itself or joined to others; of what cannot be read, 0."""
        parts = [int(part.stem) for part in self._parts.glob("*.parquet")]
        try:
            return max([self._held(self._folder / "links.parquet"), *parts])
        except (self._arrow.ArrowException, OSError):
            return max(parts, default=0)

    def join_links(self, through: int) -> None:
        """All parts into one file, after those that it holds already."""
        final, new = self._folder / "links.parquet", self._folder / "links.parquet.new"
        held = self._held(final)
        if held >= through and final.exists():
            return self._drop_parts(held)
        files = [final] if final.exists() else []
        files += [self._part(number) for number in range(held + 1, through + 1) if self._part(number).exists()]
        schema = self._schema(LINK_KINDS).with_metadata({THROUGH: str(through).encode()})
        with self._parquet.ParquetWriter(new, schema, compression="zstd") as writer:
            for batch in self._batches(files):
                writer.write_batch(batch.cast(schema) if batch.schema != schema else batch)
        new.replace(final)
        return self._drop_parts(through)

    def write_pages(self, lines: Path) -> None:
        """All of `pages.jsonl` as columns."""
        final, new = self._folder / "pages.parquet", self._folder / "pages.parquet.new"
        schema = self._schema({name: KINDS.get(name, "string") for name in PageLine.__struct_fields__})
        with self._parquet.ParquetWriter(new, schema, compression="zstd") as writer:
            for some in _portions(lines):
                columns = {name: [getattr(line, name) for line in some] for name in PageLine.__struct_fields__}
                writer.write_table(self._arrow.table(columns, schema=schema))
        new.replace(final)

    def _part(self, number: int) -> Path:
        return self._parts / f"{number:06}.parquet"

    def _held(self, final: Path) -> int:
        """How many parts the file holds."""
        if not final.exists():
            return 0
        metadata = self._parquet.read_schema(final).metadata or {}
        return int(metadata.get(THROUGH, b"0"))

    def _batches(self, files: Iterable[Path]) -> Iterator[Any]:
        for file in files:
            with self._parquet.ParquetFile(file) as opened:
                yield from opened.iter_batches(ROWS)

    def _drop_parts(self, through: int) -> None:
        for part in self._parts.glob("*.parquet"):
            if int(part.stem) <= through:
                part.unlink()

    def _links(self, reports: Sequence[Fetch]) -> Any:
        pairs = [(report.redirected_to or report.url, link) for report in reports for link in report.outlinks or ()]
        columns = {
            "source": [source for source, _ in pairs],
            "target": [link.url for _, link in pairs],
            "anchor": [link.anchor for _, link in pairs],
            "rel": [link.rel for _, link in pairs],
            "position": [link.position for _, link in pairs],
        }
        return self._arrow.table(columns, schema=self._schema(LINK_KINDS))

    def _schema(self, kinds: dict[str, str]) -> Any:
        return self._arrow.schema([(name, getattr(self._arrow, kind)()) for name, kind in kinds.items()])


def _portions(path: Path) -> Iterator[list[PageLine]]:
    some: list[PageLine] = []
    for line in page_lines(path):
        some.append(line)
        if len(some) == ROWS:
            yield some
            some = []
    if some:
        yield some


def page_lines(path: Path) -> Iterator[PageLine]:
    """The lines of `pages.jsonl`, one after the other. Raises `DataError` for one that the crawler did not write."""
    decode = msgspec.json.Decoder(PageLine).decode
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            try:
                yield decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
                raise DataError(f"{path}: line {number}: expected a line of this crawler: {wrong}") from None


def whole_lines(path: Path) -> int:
    """The bytes of a file up to the end of its last whole line."""
    with path.open("rb") as file:
        return sum(len(line) for line in file if line.endswith(b"\n"))
