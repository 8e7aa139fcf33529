"""What stores answer, in a plain form: by id and not by row, so that two stores can be held against each other."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core.tables import Fact
from crawlguide.core.types import Batch, Hosts, Paths

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook, Records
    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl

NAMES = {kind: [name for name, fact in vars(kind).items() if isinstance(fact, Fact)] for kind in (Batch, Hosts)}


def plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries; NaN is "nan", which equals itself."""
    if isinstance(value, float):
        return value if value == value else "nan"  # noqa: PLR0124 - only NaN does not
    if value is None or isinstance(value, int | str | bytes):
        return value
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return _columns(value)


def _columns(value: Any) -> Any:
    if isinstance(value, Batch):
        return batch(value)
    if isinstance(value, Paths):
        return sorted(zip(*(plain(getattr(value, field.name)) for field in fields(value)), strict=True))
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


def batch(found: Batch) -> list[dict[str, Any]]:
    """Every row with all its facts, and with all the facts of its host."""
    hosts = [{"host": name} | facts for name, facts in zip(found.hosts.name, _facts(found.hosts), strict=True)]
    keyed = zip(found.id.tolist(), found.url, found.host.tolist(), _facts(found), strict=True)
    return [{"id": key, "url": url, "on": hosts[host]} | facts for key, url, host, facts in keyed]


def _facts(table: Batch | Hosts) -> list[dict[str, Any]]:
    return [dict(zip(NAMES[type(table)], plain(row), strict=True)) for row in table.facts.T.tolist()]


def learned(notebook: Notebook) -> dict[str, Any]:
    """Every sheet field by field."""
    return {name: _records(sheet.rows[: sheet.used]) for name, sheet in notebook.in_use().items()}


def _records(rows: Records) -> dict[str, Any]:
    if rows.dtype.names is None:
        return {"": plain(rows)}
    return {name: plain(rows[name]) for name in rows.dtype.names}


async def known(store: Store, crawl: Crawl, ids: U64) -> dict[str, Any]:
    """Everything a store says of a crawl without being changed by the question."""
    return {
        "stats": plain(await store.stats(crawl)),
        "find": plain(await store.find(crawl, ids)),
        "scan": sorted(record.url for record in (await store.scan(crawl, None, None, 10_000, None))[0]),
        "look": plain(await store.look(crawl, ids)),
        "parents": plain(await store.parents(crawl, ids)),
        "children": plain(await store.children(crawl, ids)),
        "notebook": learned(await store.notebook(crawl)),
        "definition": await store.crawl_get(crawl),
        "urls": {one.url: msgspec.to_builtins(one) for one in (await store.dump(crawl, 0, 10_000))[0]},
        "links": {one.page: msgspec.to_builtins(one) for one in (await store.dump_links(crawl, 0, 10_000))[0]},
    }
