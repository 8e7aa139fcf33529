"""What pages say: sentences of common words and words of the topic, always the same for the same page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xxhash

from crawlguide.lab.pages import Link, Page
from crawlguide.lab.synthetic import linking, traps
from crawlguide.lab.synthetic.layout import COMMON, TOPICS, stream, unit
from crawlguide.lab.synthetic.places import MIRROR, OLD, PRINT, path_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from crawlguide.lab.synthetic.linking import World
    from crawlguide.lab.synthetic.places import Place

ON_TOPIC, NAME, OTHER = 0.30, 0.25, 0.04  # of words; of the topic's words those of its name; of another topic
SENTENCES = (10, 24)
_NAMES = [tuple(name.split("-")) for name in TOPICS]
_WORDS = list(TOPICS.values())


def page_text(topic: int, *names: object) -> str:
    """Some sentences about a topic, or about nothing in particular where it is -1."""
    chance = stream("text", *names)
    other = chance.randrange(len(_WORDS))
    return " ".join(_sentence(topic, other, chance) for _ in range(chance.randint(*SENTENCES)))


def _sentence(topic: int, other: int, chance: Random) -> str:
    words = [_word(topic, other, chance) for _ in range(chance.randint(6, 14))]
    return " ".join(words).capitalize() + "."


def _word(topic: int, other: int, chance: Random) -> str:
    draw = chance.random()
    if topic >= 0 and draw < ON_TOPIC:
        return chance.choice(_NAMES[topic] if draw < ON_TOPIC * NAME else _WORDS[topic])
    return chance.choice(_WORDS[other] if draw > 1 - OTHER else COMMON)


# How fetches go: how long they take, what fails, and what has changed since.

TIMEOUT_MS = 10_000.0
TROUBLE_LASTS_S = 600.0
NO_HOST_MS = 100.0


def elapsed_ms(world: World, url: str, host: int) -> float:
    """Around the host's median, the same each time."""
    median = float(world.hosts.median_ms[host]) if host >= 0 else NO_HOST_MS
    return round(median * (0.5 + unit(world.options.seed, "elapsed", url)), 1)


def fails(world: World, row: int, at: float) -> bool:
    """Does the page fail now? Its copies fail with it; home pages never do, as all else is found from them."""
    if row < world.options.hosts:
        return False
    rate = float(world.hosts.failure_rate[world.pages.host[row]])
    return unit(world.options.seed, "fails", row, int(at // TROUBLE_LASTS_S)) < rate


def failed(world: World, url: str, place: Place) -> Page:
    how = unit(world.options.seed, "how", place.row)
    if how < 0.3:
        return Page(url, 0, error="timeout", elapsed_ms=TIMEOUT_MS)
    return Page(url, 500 if how < 0.6 else 503, elapsed_ms=elapsed_ms(world, url, place.host))


def version(world: World, row: int, at: float) -> int:
    """How often the page has changed until then: a Poisson process of its rate."""
    rate, count = float(world.pages.change_rate[row]), 0
    if not rate:
        return 0
    chance = stream(world.options.seed, "changes", row)
    when = chance.expovariate(rate)
    while when <= at:
        count, when = count + 1, when + chance.expovariate(rate)
    return count


# A page as a fetch shows it: its title, its text, its links.

SAYS_NOTHING = 0.15  # of anchors


def shown(world: World, url: str, place: Place, version: int) -> Page:
    """A page, a copy of one, or a page of a trap."""
    trap = traps.kind_of(place.path, place.query) if place.kind == "trap" else -1
    row = traps.shown(trap, place.path) if trap >= 0 else place.row
    topic = world.pages.topic[row] if row >= 0 else world.hosts.topic[place.host]
    title = world.pages.title[row] if row >= 0 else f"{traps.KINDS[trap]} of {world.hosts.name[place.host]}"
    text = page_text(int(topic), world.options.seed, row if row >= 0 else url, version)
    found = _ways(place, trap) if trap >= 0 else _links(world, place)
    links = tuple(Link(to, anchor, position) for position, (to, anchor) in enumerate(found))
    return Page(
        url,
        200,
        title,
        text,
        size=len(text) + 80 * len(links) + 500,
        language="en",
        links=links,
        elapsed_ms=elapsed_ms(world, url, place.host),
        content_hash=xxhash.xxh3_64_hexdigest(f"{title}\n{text}".encode()),
    )


def _links(world: World, place: Place) -> Iterator[tuple[str, str]]:
    """The links of a page with their anchors: those that were drawn, then to its copies and into traps."""
    row, its = place.row, world.graph.of(place.row)
    for to, form in zip(world.graph.to[its].tolist(), world.graph.form[its].tolist(), strict=True):
        yield _address(world, to, form, place), _anchor(world, row, to)
    if world.pages.printed[row] and not place.path.startswith(PRINT + "/"):
        yield f"{place.base}{PRINT}{place.path}", "print version"
    if world.pages.trap[row] >= 0:
        way = traps.entrance(int(world.pages.trap[row]), row)
        yield place.base + way.path, way.anchor
    if row < world.options.hosts and world.hosts.mirrored[row] and place.kind == "page":
        yield f"http://{MIRROR}{world.hosts.name[row]}/", "mirror of this site"


def _ways(place: Place, trap: int) -> Iterator[tuple[str, str]]:
    """Further into the trap, and one way out."""
    for way in [*traps.ways(trap, place.path, place.query), traps.Way("/", "home")]:
        yield place.base + way.path, way.anchor


def _address(world: World, to: int, form: int, place: Place) -> str:
    """How a page writes the address of another: on a mirror, its own pages are mirrored ones."""
    host = int(world.pages.host[to])
    base = place.base if host == place.host else world.base(host)
    if form == linking.OLD:
        return f"{base}{OLD}{to}"
    return base + ("/archive" if form == linking.DEAD else "") + path_of(world, to)


def _anchor(world: World, row: int, to: int) -> str:
    if to < world.options.hosts:
        return "home" if to == world.pages.host[row] else world.hosts.name[to]
    return "read more" if unit(world.options.seed, "anchor", row, to) < SAYS_NOTHING else world.pages.title[to]
