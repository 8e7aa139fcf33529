"""Any web of the lab, by what it is called: `synthetic[:option=value,…]`, a folder that holds a recorded one, or a file
of a crawl or the folder of `crawlguide crawl`, out of which a web is made at once."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from crawlguide.core.errors import ConfigError
from crawlguide.crawler.folder import CrawlFolder
from crawlguide.lab import synthetic
from crawlguide.lab.recorded import RecordedWeb
from crawlguide.lab.synthetic.options import PREFIX

if TYPE_CHECKING:
    from crawlguide.lab.pages import Web


def open(where: str | Path) -> Web:  # noqa: A001 - a web is opened, and callers write web.open
    """A web, ready to be fetched from. Raises `ConfigError` where there is none."""
    if isinstance(where, str) and (where == PREFIX or where.startswith(PREFIX + ":")):
        return synthetic.parsed(where)
    place = Path(where)
    if not place.exists():
        raise ConfigError(
            f"{where}: there is no such web; expected a folder with a recorded one, a file of a crawl"
            f" (crawlguide export, or WARC), or {PREFIX}[:option=value,…]"
        )
    return RecordedWeb(place) if place.is_dir() and not CrawlFolder(place).identity.exists() else _made(place)


def _made(place: Path) -> RecordedWeb:
    """The web that a crawl saw. Its folder is read whole, so nothing of it need stay."""
    from crawlguide.lab.build import build  # noqa: PLC0415 - what reads HTML and WARC is loaded when it is wanted

    with TemporaryDirectory() as folder:
        out = Path(folder) / place.resolve().name.partition(".")[0]
        build(out, [str(place)])
        return RecordedWeb(out)
