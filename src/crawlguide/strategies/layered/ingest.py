"""Links and pages become numbers once, when they are told: the places of a link, its words, and its meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import coded, numbered
from crawlguide.core.kernels import fixed_bytes, i64s, kernel, nothing, one_i64, part, u8s, u64s
from crawlguide.core.url_bytes import HASH_START, find_byte, hash_byte, hash_pair, is_digit, is_letter, lower
from crawlguide.features.embedding import Embedding, plain
from crawlguide.strategies.layered.columns import ADDRESS, ANCHOR, TITLE
from crawlguide.strategies.layered.evidence import observe_similarities
from crawlguide.strategies.layered.meaning import NEITHER, add_to_profile, embed_links, profile_direction
from crawlguide.strategies.layered.records import ANCHOR_WORDS, LEVELS, LINKS, MEANING, PLACES, WORDS

if TYPE_CHECKING:
    from crawlguide.core.tables import F32, I64, U64
    from crawlguide.core.types import Links
    from crawlguide.strategies.layered.meaning import Aim
    from crawlguide.strategies.layered.memory import LayeredMemory

READ_OF_A_PAGE = 600  # characters of its text

# Reading URLs and anchors as bytes. A word is a run of letters, or of digits (all numbers count as one word), of either
# case; it also ends where a capital follows a small letter.

SLASH, QUESTION, COLON = 47, 63, 58
IN_ANCHOR, IN_ADDRESS = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)
IN_DATE = np.uint64(0x2545F4914F6CDD1D)
FOLDERS = LEVELS - 2
SIMILAR = 0.65  # share of the longer word that must be common at its beginning


@part
def letter(byte):  # type: ignore[no-untyped-def]
    """All bytes beyond ASCII count as letters."""
    return is_letter(byte) or byte >= 128


@part
def word_end(text, start, end):  # type: ignore[no-untyped-def]
    """Where the word that begins here ends; `start`, if none begins here."""
    at = start
    if is_digit(text[at]):
        while at < end and is_digit(text[at]):
            at += 1
    elif letter(text[at]):
        at += 1
        while at < end and letter(text[at]) and not (65 <= text[at] <= 90 and 97 <= text[at - 1] <= 122):
            at += 1
    return at


@part
def contained(text, start, end, goal, first, last):  # type: ignore[no-untyped-def]
    """A word of the goal, of at least four letters, within a longer one."""
    size = last - first
    if size < 4:
        return False
    for begin in range(start, end - size + 1):
        at = 0
        while at < size and lower(text[begin + at]) == goal[first + at]:
            at += 1
        if at == size:
            return True
    return False


@part
def similar(text, start, end, goal, first, last):  # type: ignore[no-untyped-def]
    """The same word, or one that begins like the other."""
    if lower(text[start]) == goal[first]:
        short, long = min(end - start, last - first), max(end - start, last - first)
        common = 1
        while common < short and lower(text[start + common]) == goal[first + common]:
            common += 1
        if common == long or common >= max(4.0, SIMILAR * long):
            return True
    return contained(text, start, end, goal, first, last)


@part
def add_word(text, start, end, kind, link):  # type: ignore[no-untyped-def]
    """One more word of a link; all numbers are one."""
    code = kind
    if not is_digit(text[start]):
        for at in range(start, end):
            code = hash_byte(code, lower(text[at]))
    link.words[link.spoken] = np.uint16(hash_pair(code, kind) >> np.uint64(48))
    link.spoken += 1


@part
def mark_goal_words(text, start, end, goal, goal_ends, met):  # type: ignore[no-untyped-def]
    """Mark the goal's words that this one is similar to."""
    first = 0
    for number in range(len(goal_ends)):
        if similar(text, start, end, goal, first, goal_ends[number]):
            met[number] = 1
        first = goal_ends[number]


@part
def read_words(text, start, end, kind, most, link, goal, goal_ends, met):  # type: ignore[no-untyped-def]
    """Add the words of a piece to a link's, at most so many; mark those of the goal's words that are among them."""
    last = min(link.spoken + most, WORDS)
    while start < end:
        stop = word_end(text, start, end)
        if stop - start > 1:
            if link.spoken < last:
                add_word(text, start, stop, kind, link)
            if not is_digit(text[start]):  # a goal has no numbers
                mark_goal_words(text, start, stop, goal, goal_ends, met)
        start = max(stop, start + 1)


@part
def number_at(text, start, end, digits):  # type: ignore[no-untyped-def]
    """The number in so many digits that begin here; -1: they are fewer."""
    value = 0
    if start + digits > end:
        return -1
    for at in range(start, start + digits):
        if not is_digit(text[at]):
            return -1
        value = 10 * value + text[at] - 48
    return value


@part
def read_date(text, start, end, link):  # type: ignore[no-untyped-def]
    """The first year in an address; and its month and day, if they follow, as words: what is of one day may be of one
    story, on whatever host.
    """
    link.chosen = 0
    for at in range(start + 1, end - 3):
        year, after = number_at(text, at, end, 4), at + 4
        if not 1970 <= year < 2100 or is_digit(text[at - 1]):
            continue
        apart = after < end and not is_digit(text[after])  # 2026/03/14, 2026-03-14
        together = number_at(text, at, end, 8) >= 0 and (at + 8 >= end or not is_digit(text[at + 8]))  # 20260314
        if apart or together or after == end:
            link.chosen = year - 1900
            add_date(text, after + apart, end, apart, year, link)
            return


@part
def add_date(text, at, end, apart, year, link):  # type: ignore[no-untyped-def]
    """The words of a month and of a day; the digits begin at `at`."""
    month = number_at(text, at, end, 2)
    if not 1 <= month <= 12 or link.spoken >= WORDS:
        return
    code = hash_pair(np.uint64(100 * year + month), IN_DATE)
    link.words[link.spoken] = np.uint16(code >> np.uint64(48))
    link.spoken += 1
    day = number_at(text, at + 2 + apart, end, 2)
    if 1 <= day <= 31 and link.spoken < WORDS:
        link.words[link.spoken] = np.uint16(hash_pair(code, np.uint64(day)) >> np.uint64(48))
        link.spoken += 1


@part
def take_share(met):  # type: ignore[no-untyped-def]
    """The share of the goal's words that were marked; the marks are taken away."""
    total = 0.0
    for number in range(len(met)):
        total += met[number]
        met[number] = 0
    return total / max(len(met), 1)


@part
def read_places(text, start, end, key, keys):  # type: ignore[no-untyped-def]
    """The keys of the three innermost folders, and of the leading letters of the last name; 0 where there is none.

    Only the innermost: URLs of one host may begin alike for many folders, which tells nothing. Returns how many
    folders there are, whether there is a query, and whether the path ends in a folder.
    """
    stop = find_byte(text, start, end, QUESTION)
    code, level, depth, last = key, 1, 0, start + 1
    outer = -FOLDERS
    for at in range(start + 1, stop):
        outer += text[at] == SLASH
    for at in range(start, stop):
        code = hash_byte(code, text[at])
        if text[at] == SLASH and at > start:
            depth += 1
            last = at + 1
            if depth > outer:
                keys[level] = hash_pair(code, HASH_START)
                level += 1
    head = keys[level - 1]
    at = last
    while at < stop and letter(text[at]):
        head = hash_byte(head, lower(text[at]))
        at += 1
    if at > last:
        keys[level] = hash_pair(head, IN_ANCHOR)
    return depth, stop < end, last == stop


@kernel(nothing(fixed_bytes, i64s, fixed_bytes, i64s, fixed_bytes, i64s, u8s, i64s, LINKS, u64s))
def read(urls, url_ends, anchors, anchor_ends, goal, goal_ends, met, rows, links, keys):  # type: ignore[no-untyped-def]
    """Fill in what the texts of new links say; `keys` gets the keys of their places, `LEVELS` for each."""
    url, anchor = 0, 0
    for number in range(len(rows)):
        link, mine = links[rows[number]], keys[number * LEVELS : (number + 1) * LEVELS]
        mine[:] = 0
        end = url_ends[number]
        host = find_byte(urls, url, end, COLON) + 3
        path = find_byte(urls, host, end, SLASH)
        code = HASH_START
        for at in range(host, path):
            code = hash_byte(code, urls[at])
        mine[0] = hash_pair(code, HASH_START)
        depth, query, folder = read_places(urls, path, end, code, mine)
        link.path, link.query, link.folder, link.spoken = min(depth, 255), query, folder, 0
        read_words(anchors, anchor, anchor_ends[number], IN_ANCHOR, ANCHOR_WORDS, link, goal, goal_ends, met)
        link.said = take_share(met)
        read_words(urls, path, end, IN_ADDRESS, WORDS, link, goal, goal_ends, met)
        link.named = take_share(met)
        read_date(urls, path, end, link)
        url, anchor = end, anchor_ends[number]


# Places: each link lies in up to `LEVELS` of them. Links that stand side by side mostly lie in the same ones.


@kernel(one_i64(u64s, u64s, i64s))
def differing(keys, asked, at):  # type: ignore[no-untyped-def]
    """The keys that are not those of the link before go to `asked`, in their order; returns how many they are.

    `keys` holds `LEVELS` for each link, 0 where there is no place; `at` gets where each key stands in `asked`, -1: it
    is none. Every link has a host.
    """
    count = 0
    for number in range(len(keys)):
        if number % LEVELS == 0:
            keys[number] |= np.uint64(1)
        if keys[number] == 0:
            at[number] = -1
        elif number >= LEVELS and keys[number] == keys[number - LEVELS]:
            at[number] = at[number - LEVELS]
        else:
            asked[count], at[number] = keys[number], count
            count += 1
    return count


@kernel(nothing(i64s, i64s, i64s, one_i64, LINKS, PLACES))
def set_places(rows, at, found, other_hosts, links, places):  # type: ignore[no-untyped-def]
    """`found` are the places that were asked for, -1 where there was no room: only a host is replaced."""
    for number in range(len(rows)):
        link, level = links[rows[number]], 0
        while level < LEVELS:
            asked = at[number * LEVELS + level]
            place = found[asked] if asked >= 0 else -1
            if level == 0 and place < 0:
                place = other_hosts
            if place < 0:
                break
            link.places[level] = place
            places[place].waiting += 1
            level += 1
        link.levels = level


def assign_places(memory: LayeredMemory, rows: I64, keys: U64) -> None:
    """New links get their places, by `LEVELS` keys for each."""
    keys = keys.ravel()
    asked, at = np.empty(len(keys), np.uint64), np.empty(len(keys), np.int64)
    count = differing(keys, asked, at)
    found = memory.claim_places(asked[:count])
    other_hosts = memory.other_hosts() if (found < 0).any() else -1
    set_places(rows, at, found, other_hosts, memory.links.rows, memory.places.rows)


# Links and pages as they are told.


def read_links(memory: LayeredMemory, aim: Aim, links: Links, new: I64, rows: I64) -> None:
    """Fill in the records of links that are new: places, words and meaning."""
    texts = (links.url, links.host, links.anchor)
    urls, hosts, anchors = ((one if len(new) == len(links) else one[new]).tolist() for one in texts)
    url_bytes, anchor_bytes = coded(urls), coded(anchors)
    goal, goal_ends = aim.letters
    keys = np.empty(LEVELS * len(rows), np.uint64)
    read(
        url_bytes.letters, url_bytes.ends, anchor_bytes.letters, anchor_bytes.ends, goal, goal_ends,
        np.zeros(len(goal_ends), np.uint8), rows, memory.links.rows, keys,
    )  # fmt: skip
    assign_places(memory, rows, keys)
    embedding = Embedding.load()
    host, first = numbered(keys[::LEVELS])
    if not anchor_bytes.ascii:
        anchor_bytes = coded([plain(anchor) for anchor in anchors])
    compare_links(
        memory, aim, rows, embedding.sums(anchor_bytes),
        embedding.sums_of_addresses(urls, url_bytes, [hosts[number] for number in first.tolist()], host),
    )  # fmt: skip


def compare_links(memory: LayeredMemory, aim: Aim, rows: I64, anchors: F32, addresses: F32) -> None:
    """Compare the embeddings of links with the goal, and keep the leading dimensions of them."""
    anchor, address = np.empty((2, len(rows)), np.float32)
    direction = np.zeros(anchors.shape[1], np.float32) if aim.direction is None else aim.direction
    embed_links(rows, anchors, addresses, direction, anchor, address, memory.links.rows)
    observe_similarities(anchor, ANCHOR, memory.crawl.rows)
    observe_similarities(address, ADDRESS, memory.crawl.rows)


def read_pages(memory: LayeredMemory, aim: Aim, rows: I64, titles: list[str], texts: list[str], kind: I64) -> F32:
    """How similar each title is to the goal; and the profile learns what hits are like."""
    pages = [f"{title} {text[:READ_OF_A_PAGE]}" for title, text in zip(titles, texts, strict=True)]
    vectors = Embedding.load().embed(titles + pages)
    title = aim.similarity(vectors[: len(titles)])
    observe_similarities(title, TITLE, memory.crawl.rows)
    add_to_profile(vectors[len(titles) :], kind, memory.profile.rows[:NEITHER])
    places = memory.vectors.claim(memory.links.rows["id"][rows])
    memory.vectors.rows["vector"][places], memory.vectors.rows["kind"][places] = vectors[len(titles) :, :MEANING], kind
    memory.profile_direction = profile_direction(memory.profile.rows)
    return title


def move_in_profile(memory: LayeredMemory, rows: I64, kind: I64) -> None:
    """Late rewards: pages that were read a while ago turn out to be of another kind."""
    places = memory.vectors.find(memory.links.rows["id"][rows])
    read, profile = memory.vectors.rows, memory.profile.rows
    for place, new in zip(places[places >= 0].tolist(), kind[places >= 0].tolist(), strict=True):
        for record, sign in ((int(read["kind"][place]), -1.0), (new, 1.0)):
            if record != NEITHER:
                profile["count"][record] += sign
                profile["sum"][record] += sign * read["vector"][place]
        read["kind"][place] = new
    memory.vectors.sheet.changed(places[places >= 0])
    memory.profile_direction = profile_direction(memory.profile.rows)
