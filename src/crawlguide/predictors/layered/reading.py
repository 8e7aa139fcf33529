"""A link read once: the places it lies in, its words, and how many of the goal's words are among them.

Bytes in, numbers out. A word is a run of letters, or of digits (which all count as one word), of either case; it ends
where a capital follows a small letter.
"""

import numpy as np

from crawlguide.core.kernels import I64, U8, U64, Bytes, kernel, nothing, part, records
from crawlguide.core.letters import EMPTY, alpha, digit, find, joined, lower, stepped
from crawlguide.predictors.layered.records import ANCHOR_WORDS, LEVELS, LINK, WORDS

SLASH, QUESTION, COLON = 47, 63, 58
IN_ANCHOR, IN_ADDRESS = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)
FOLDERS = LEVELS - 2
ALIKE = 0.65  # of the longer word must be common at its beginning


@part
def letter(byte):  # type: ignore[no-untyped-def]
    """Beyond ASCII all is letters."""
    return alpha(byte) or byte >= 128


@part
def word_end(text, start, end):  # type: ignore[no-untyped-def]
    """Where the word that begins here ends; `start`: none does."""
    at = start
    if digit(text[at]):
        while at < end and digit(text[at]):
            at += 1
    elif letter(text[at]):
        at += 1
        while at < end and letter(text[at]) and not (65 <= text[at] <= 90 and 97 <= text[at - 1] <= 122):
            at += 1
    return at


@part
def inside(text, start, end, goal, first, last):  # type: ignore[no-untyped-def]
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
def alike(text, start, end, goal, first, last):  # type: ignore[no-untyped-def]
    """The same word, or one that begins like the other."""
    if lower(text[start]) == goal[first]:
        short, long = min(end - start, last - first), max(end - start, last - first)
        common = 1
        while common < short and lower(text[start + common]) == goal[first + common]:
            common += 1
        if common == long or common >= max(4.0, ALIKE * long):
            return True
    return inside(text, start, end, goal, first, last)


@part
def add_word(text, start, end, kind, link):  # type: ignore[no-untyped-def]
    """One more word of a link; all numbers are one."""
    code = kind
    if not digit(text[start]):
        for at in range(start, end):
            code = stepped(code, lower(text[at]))
    link.words[link.spoken] = np.uint16(joined(code, kind) >> np.uint64(48))
    link.spoken += 1


@part
def meet(text, start, end, goal, goal_ends, met):  # type: ignore[no-untyped-def]
    """Mark the goal's words that are like this one."""
    first = 0
    for number in range(len(goal_ends)):
        if alike(text, start, end, goal, first, goal_ends[number]):
            met[number] = 1
        first = goal_ends[number]


@part
def read_words(text, start, end, kind, most, link, goal, goal_ends, met):  # type: ignore[no-untyped-def]
    """Add the words of a piece to a link's, at most so many; mark those of the goal's that were met."""
    last = min(link.spoken + most, WORDS)
    while start < end:
        stop = word_end(text, start, end)
        if stop - start > 1:
            if link.spoken < last:
                add_word(text, start, stop, kind, link)
            if not digit(text[start]):  # a goal has no numbers
                meet(text, start, stop, goal, goal_ends, met)
        start = max(stop, start + 1)


@part
def share(met):  # type: ignore[no-untyped-def]
    total = 0.0
    for number in range(len(met)):
        total += met[number]
        met[number] = 0
    return total / max(len(met), 1)


@part
def read_places(text, start, end, key, keys):  # type: ignore[no-untyped-def]
    """The host, the three innermost folders, and how the last name begins; 0 where there is none.

    Addresses of one host may begin alike for many folders and say nothing by it. Returns how many folders there are,
    whether there is a query, and whether the address ends in a folder.
    """
    stop = find(text, start, end, QUESTION)
    code, level, depth, last = key, 1, 0, start + 1
    outer = -FOLDERS
    for at in range(start + 1, stop):
        outer += text[at] == SLASH
    for at in range(start, stop):
        code = stepped(code, text[at])
        if text[at] == SLASH and at > start:
            depth += 1
            last = at + 1
            if depth > outer:
                keys[level] = joined(code, EMPTY)
                level += 1
    head = keys[level - 1]
    at = last
    while at < stop and letter(text[at]):
        head = stepped(head, lower(text[at]))
        at += 1
    if at > last:
        keys[level] = joined(head, IN_ANCHOR)
    return depth, stop < end, last == stop


@kernel(nothing(Bytes, I64, Bytes, I64, Bytes, I64, U8, I64, records(LINK), U64))
def read(urls, url_ends, anchors, anchor_ends, goal, goal_ends, met, rows, links, keys):  # type: ignore[no-untyped-def]
    """Fill in what the texts of new links say; `keys` holds the keys of their places, `LEVELS` for each."""
    url, anchor = 0, 0
    for number in range(len(rows)):
        link, mine = links[rows[number]], keys[number * LEVELS : (number + 1) * LEVELS]
        mine[:] = 0
        end = url_ends[number]
        host = find(urls, url, end, COLON) + 3
        path = find(urls, host, end, SLASH)
        code = EMPTY
        for at in range(host, path):
            code = stepped(code, urls[at])
        mine[0] = joined(code, EMPTY)
        depth, query, folder = read_places(urls, path, end, code, mine)
        link.path, link.query, link.folder, link.spoken = min(depth, 255), query, folder, 0
        read_words(anchors, anchor, anchor_ends[number], IN_ANCHOR, ANCHOR_WORDS, link, goal, goal_ends, met)
        link.said = share(met)
        read_words(urls, path, end, IN_ADDRESS, WORDS, link, goal, goal_ends, met)
        link.named = share(met)
        url, anchor = end, anchor_ends[number]
