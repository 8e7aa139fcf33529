"""Repositories: what is looked for are PDF files, which lead nowhere; only pages that are no targets lead to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES
from crawlguide.lab.synthetic.texts import FIRST

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

TOPICS, HOSTS = 4, 6
HAS_FILE = 0.8  # of papers
RELATED, ALIKE = 6, 0.7  # papers that a paper leads to; the share of them on its own topic
LISTED = 25  # papers on a page of the list
WEIGHTS = (1, 2, 3, 4)  # of topics: the first is the rarest


def draw(sketch: Sketch, pages: int) -> list[Task]:
    homes = [sketch.page(f"http://repository.{FIRST[host]}-house.example/", "Repository") for host in range(HOSTS)]
    papers: dict[str, int] = {}
    files: dict[str, int] = {}
    for number in range(pages // 2):
        topic = sketch.random.choices(range(TOPICS), WEIGHTS)[0]
        home = homes[number % HOSTS]
        paper = sketch.page(f"{home}record/{number}", sketch.title(topic), topic)
        papers[paper] = topic
        if sketch.random.random() < HAS_FILE:
            file = sketch.page(f"{home}record/{number}/files/fulltext-{number}.pdf", sketch.pages[paper].title, topic)
            files[file] = topic
            sketch.link(paper, file, sketch.random.choice(("PDF", "Download", "Full text")))
    for home in homes:
        _list(sketch, home, [paper for paper in papers if paper.startswith(home)])
    for paper, topic in papers.items():
        alike = [other for other, its in papers.items() if its == topic and other != paper]
        for _ in range(RELATED):
            sketch.link(paper, sketch.random.choice(alike if sketch.random.random() < ALIKE else list(papers)))
    return [
        sketch.task(NAMES[topic], homes, [file for file, its in files.items() if its == topic])
        for topic in range(TOPICS)
    ]


def _list(sketch: Sketch, home: str, papers: list[str]) -> None:
    before = home
    for first in range(0, len(papers), LISTED):
        here = sketch.page(f"{home}recent?page={first // LISTED + 1}", "Recent submissions")
        sketch.link(before, here, "recent submissions" if before == home else "next page")
        for paper in papers[first : first + LISTED]:
            sketch.link(here, paper)
            sketch.link(paper, home, "home")
        before = here
