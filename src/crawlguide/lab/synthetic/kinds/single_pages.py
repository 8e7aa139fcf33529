"""Hundreds of hosts with one page each: what was learned of a host says nothing of any other page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES
from crawlguide.lab.synthetic.texts import COMMON

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

TOPICS = 4
LINKS, ALIKE = 8, 0.7
DIRECTORIES, LISTED = 3, 40
GONE = 0.2  # of links: to hosts that are no more
WEIGHTS = (1, 2, 3, 6)  # of topics: the first is the rarest


def draw(sketch: Sketch, pages: int) -> list[Task]:
    sites: dict[str, int] = {}
    for number in range(pages):
        topic = sketch.random.choices(range(TOPICS), WEIGHTS)[0]
        name = f"{sketch.random.choice(COMMON)}-{sketch.random.choice(COMMON)}-{number}"
        sites[sketch.page(f"http://{name}.example/", sketch.title(topic), topic)] = topic
    for site, topic in sites.items():
        alike = [other for other, its in sites.items() if its == topic and other != site]
        for _ in range(LINKS):
            to = sketch.random.choice(alike if sketch.random.random() < ALIKE else list(sites))
            if sketch.random.random() < GONE:
                sketch.link(site, to.replace("http://", "http://old-"), sketch.pages[to].title)
            else:
                sketch.link(site, to)
    seeds = [sketch.page(f"http://directory-{number}.example/", "Directory") for number in range(DIRECTORIES)]
    for seed in seeds:
        for site in sketch.some(list(sites), LISTED):
            sketch.link(seed, site)
    return [
        sketch.task(NAMES[topic], seeds, [site for site, its in sites.items() if its == topic])
        for topic in range(TOPICS)
    ]
