"""Any web of the lab, by what it is called: a folder that holds a recorded one, or `synthetic[:option=value,…]`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.lab import synthetic
from crawlguide.lab.recorded import RecordedWeb
from crawlguide.lab.synthetic.options import PREFIX

if TYPE_CHECKING:
    from crawlguide.lab.pages import Web


def open(where: str | Path) -> Web:  # noqa: A001 - a web is opened, and callers write web.open
    """A web, ready to be fetched from. Raises `ConfigError` where there is none."""
    if isinstance(where, str) and (where == PREFIX or where.startswith(PREFIX + ":")):
        return synthetic.parsed(where)
    return RecordedWeb(Path(where))
