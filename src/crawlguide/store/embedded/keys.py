"""What stands where: every key begins with the number of the crawl it belongs to, 0 for the whole folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.store.embedded.expiring import DiskExpiring
from crawlguide.store.tables.shelves import Shelves, key_of

if TYPE_CHECKING:
    from crawlguide.store.embedded.disk import Disk
    from crawlguide.store.embedded.shelf import DiskShelf

FOLDER = 0


def shelf(disk: Disk, owner: int, name: bytes, family: str = "default") -> DiskShelf:
    return disk.shelf(family, key_of(owner) + name)


def shelves(disk: Disk, owner: int) -> Shelves:
    return Shelves(
        urls=shelf(disk, owner, b"u", "urls"),
        metadata=shelf(disk, owner, b"m"),
        links=shelf(disk, owner, b"l", "links"),
        leases=shelf(disk, owner, b"e"),
        hosts=shelf(disk, owner, b"h"),
        states=shelf(disk, owner, b"s"),
    )


def sheets(disk: Disk, owner: int) -> DiskShelf:
    return shelf(disk, owner, b"n")


def answers(disk: Disk, owner: int) -> DiskExpiring:
    return DiskExpiring(shelf(disk, owner, b"a"), shelf(disk, owner, b"A"))


def told(disk: Disk, owner: int) -> DiskExpiring:
    return DiskExpiring(shelf(disk, owner, b"t"), shelf(disk, owner, b"T"))
