"""Papers with an archive by day: a story fills some days of all papers, and few headlines say its words."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES, slug
from crawlguide.lab.synthetic.texts import FIRST

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

STORIES, PAPERS, DAILY = 4, 5, 4  # articles of a paper in a day
LASTS = 14  # days
SHARE = 0.6  # of the articles of these days
SPOKEN = 0.5  # of headlines of a story: say its words
FIRST_DAY = date(2026, 1, 1)


def draw(sketch: Sketch, pages: int) -> list[Task]:
    days = max(pages // (PAPERS * (DAILY + 1)), STORIES * LASTS // 2)
    begins = [(2 * number + 1) * days // (2 * STORIES) for number in range(STORIES)]
    articles: dict[tuple[int, int], list[str]] = {}  # of a paper and a day
    story: dict[str, int] = {}
    homes = [
        sketch.page(f"http://www.{FIRST[paper]}-times.example/", f"The {FIRST[paper]} times") for paper in range(PAPERS)
    ]
    for paper, home in enumerate(homes):
        for day in range(days):
            articles[paper, day] = [_article(sketch, home, day, begins, story) for _ in range(DAILY)]
    for paper, home in enumerate(homes):
        _archive(sketch, home, days, {day: articles[paper, day] for day in range(days)})
    for (paper, day), its in articles.items():
        _relate(
            sketch, its, [url for other in range(PAPERS) for url in articles.get((other, day), []) if other != paper]
        )
        _related_stories(sketch, its, story)
    return [
        sketch.task(NAMES[number], homes, [url for url, its in story.items() if its == number])
        for number in range(STORIES)
    ]


def _article(sketch: Sketch, home: str, day: int, begins: list[int], story: dict[str, int]) -> str:
    running = [number for number, begin in enumerate(begins) if begin <= day < begin + LASTS]
    mine = running[0] if running and sketch.random.random() < SHARE else -1
    title = sketch.title(mine if sketch.random.random() < SPOKEN else -1)
    number = len(sketch.pages)
    url = sketch.page(f"{home}{_path(day)}{slug(title)}-{number}", title, mine)
    if mine >= 0:
        story[url] = mine
    sketch.link(url, home, "home")
    return url


def _path(day: int) -> str:
    return f"{FIRST_DAY + timedelta(day):%Y/%m/%d}/"


def _archive(sketch: Sketch, home: str, days: int, articles: dict[int, list[str]]) -> None:
    """The home page shows the newest articles and leads to months, months to days, days to their articles."""
    archive = sketch.page(f"{home}archive/", "Archive")
    sketch.link(home, archive, "archive")
    for day in range(days):
        when = FIRST_DAY + timedelta(day)
        month = f"{home}{when:%Y/%m}/"
        if month not in sketch.pages:
            sketch.link(archive, sketch.page(month, f"{when:%B %Y}"), f"{when:%B %Y}")
        here = sketch.page(f"{home}{_path(day)}", f"{when:%d %B %Y}")
        sketch.link(month, here, f"{when:%d %B}")
        for url in articles[day]:
            sketch.link(here, url)
            sketch.link(url, here, f"{when:%d %B %Y}")
            if day >= days - 2:
                sketch.link(home, url)


def _relate(sketch: Sketch, mine: list[str], others: list[str]) -> None:
    """Articles of the day, and now and then one of another paper."""
    for url in mine:
        for to in mine:
            if to != url:
                sketch.link(url, to)
        for to in sketch.some(others, 1):
            sketch.link(url, to)


def _related_stories(sketch: Sketch, mine: list[str], story: dict[str, int]) -> None:
    for url in mine:
        alike = [other for other in story if story[other] == story[url] and other != url] if url in story else []
        for to in sketch.some(alike or list(story), 2 if alike else 0):
            sketch.link(url, to)
