"""Three seeds on no topic: all targets lie on hosts that links lead to, and half of such links lead to no host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES, slug
from crawlguide.lab.synthetic.texts import FIRST, SECOND

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

TOPICS = 4
SIZE = 10  # pages of a host
FOCUS = 0.8  # of its pages are on its topic
INSIDE = 4  # links to the same host
OUTSIDE = 0.5  # links to other hosts, for each page
ALIKE = 0.7  # of them: to hosts of the same topic
GONE = 0.5  # of links to other hosts: nobody answers there
PORTALS, LISTED = 3, 12
WEIGHTS = (1, 2, 3, 6)  # of topics: the first is the rarest


def draw(sketch: Sketch, pages: int) -> list[Task]:
    about = {_home(number): sketch.random.choices(range(TOPICS), WEIGHTS)[0] for number in range(pages // SIZE)}
    relevant: dict[int, list[str]] = {topic: [] for topic in range(TOPICS)}
    for home, topic in about.items():
        sketch.page(home, sketch.title(topic))
    for home, topic in about.items():
        mine = [_page(sketch, home, topic, relevant) for _ in range(SIZE - 1)]
        _link_up(sketch, home, mine)
        for page in mine:
            if sketch.random.random() < OUTSIDE:
                _abroad(sketch, page, topic, about)
    seeds = _portals(sketch, list(about))
    return [sketch.task(NAMES[topic], seeds, relevant[topic]) for topic in range(TOPICS)]


def _home(number: int) -> str:
    return f"http://{FIRST[number % 12]}-{SECOND[number // 12 % 11]}-{number}.example/"


def _page(sketch: Sketch, home: str, main: int, relevant: dict[int, list[str]]) -> str:
    topic = main if sketch.random.random() < FOCUS else sketch.random.randrange(TOPICS)
    title = sketch.title(topic)
    url = sketch.page(f"{home}{slug(title)}-{len(sketch.pages)}", title, topic)
    relevant[topic].append(url)
    sketch.link(url, home, "home")
    return url


def _link_up(sketch: Sketch, home: str, mine: list[str]) -> None:
    """Some pages are linked from the home page, the others from those; and all from some others."""
    for place, page in enumerate(mine):
        sketch.link(home if place < INSIDE else mine[place // 2], page)
        for to in sketch.some(mine, INSIDE):
            sketch.link(page, to)


def _portals(sketch: Sketch, homes: list[str]) -> list[str]:
    seeds = [sketch.page(f"http://portal-{number}.example/", "Portal") for number in range(PORTALS)]
    for seed in seeds:
        for home in sketch.some(homes, LISTED):
            sketch.link(seed, home)
        for number in range(LISTED):
            sketch.link(seed, f"http://closed-{slug(sketch.title(-1))}-{number}.example/", sketch.title(-1))
    return seeds


def _abroad(sketch: Sketch, page: str, topic: int, about: dict[str, int]) -> None:
    alike = sketch.random.random() < ALIKE
    to = sketch.random.choice([home for home, its in about.items() if its == topic or not alike])
    if sketch.random.random() < GONE:
        sketch.link(
            page,
            f"http://closed-{slug(sketch.title(topic))}-{len(sketch.pages[page].links)}.example/",
            sketch.title(topic),
        )
    else:
        sketch.link(page, to)
