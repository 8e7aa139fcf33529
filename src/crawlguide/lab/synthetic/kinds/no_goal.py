"""A crawl that is told nothing but whether pages were good: it has no topic, no keywords and no example."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES, slug
from crawlguide.lab.synthetic.texts import FIRST, GENERAL

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

TOPICS, HOSTS = 5, 8
LINKS, ALIKE = 9, 0.6
WEIGHTS = (1, 2, 3, 6, 9)  # of topics: the first is the rarest
SHOWN = 6  # pages on a home page


def draw(sketch: Sketch, pages: int) -> list[Task]:
    homes = [sketch.page(f"http://www.{FIRST[host]}-works.example/", "Welcome") for host in range(HOSTS)]
    about: dict[str, int] = {}
    for number in range(pages):
        topic = sketch.random.choices(range(TOPICS), WEIGHTS)[0]
        title = sketch.title(topic)
        where = f"{homes[number % HOSTS]}{sketch.random.choice(GENERAL)}/{slug(title)}-{number}"
        about[sketch.page(where, title, topic)] = topic
    for page, topic in about.items():
        alike = [other for other, its in about.items() if its == topic and other != page]
        for _ in range(LINKS):
            sketch.link(page, sketch.random.choice(alike if sketch.random.random() < ALIKE else list(about)))
    for home in homes:
        for page in sketch.some([page for page in about if page.startswith(home)], SHOWN):
            sketch.link(home, page)
    return [
        sketch.task(NAMES[topic], homes, [page for page, its in about.items() if its == topic], goal="")
        for topic in range(TOPICS - 1)
    ]
