"""Six of ten links are dead although their hosts answer: which, their form, page, age and anchor tell.

Dead are addresses of the old system of a host, links on pages that nobody keeps up, most pages of old years, and those
whose anchor says "archived"; the rest of the dead links look like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES, slug
from crawlguide.lab.synthetic.texts import FIRST, GENERAL

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

TOPICS, HOSTS = 4, 8
LINKS, ALIKE = 6, 0.7  # of a page that lead somewhere
DEAD = 9  # of a page that do not, so that they are six of ten
CAUSES = ("form", "page", "age", "anchor", "none")
SHARES = (35, 25, 20, 10, 10)  # of dead links, in percent, by what tells them
OLD_YEARS, YEARS = range(2008, 2016), range(2016, 2027)
OLD_ALIVE = 0.1  # of pages: of old years, and still there
LINK_PAGES = 0.15  # of pages: nothing but links, nearly all dead
WEIGHTS = (1, 2, 3, 4)  # of topics: the first is the rarest
SHOWN = 8  # pages on a home page


def draw(sketch: Sketch, pages: int) -> list[Task]:
    homes = [sketch.page(f"http://www.{FIRST[host]}-guild.example/", "Welcome") for host in range(HOSTS)]
    about: dict[str, int] = {}
    for number in range(pages):
        topic = sketch.random.choices(range(TOPICS), WEIGHTS)[0]
        title = sketch.title(topic)
        years = OLD_YEARS if sketch.random.random() < OLD_ALIVE else YEARS
        about[sketch.page(_address(sketch, homes[number % HOSTS], title, years), title, topic)] = topic
    neglected = _link_pages(sketch, homes, pages, about)
    by_topic = [[page for page, its in about.items() if its == topic] for topic in range(TOPICS)]
    for page, topic in about.items():
        for _ in range(LINKS):
            sketch.link(page, sketch.random.choice(by_topic[topic] if sketch.random.random() < ALIKE else list(about)))
        for _ in range(DEAD):
            _dead(sketch, page, topic, homes, neglected)
    for home in homes:
        for page in sketch.some([page for page in about if page.startswith(home)], SHOWN):
            sketch.link(home, page)
    return [sketch.task(NAMES[topic], homes, by_topic[topic]) for topic in range(TOPICS)]


def _link_pages(sketch: Sketch, homes: list[str], pages: int, about: dict[str, int]) -> list[str]:
    made = [
        sketch.page(f"{sketch.random.choice(homes)}links/{number}", f"Links, {number}")
        for number in range(int(LINK_PAGES * pages))
    ]
    for page in made:
        sketch.link(page, sketch.random.choice(list(about)))
        sketch.link(sketch.random.choice(list(about)), page)
    return made


def _address(sketch: Sketch, home: str, title: str, years: range) -> str:
    section, year, number = sketch.random.choice(GENERAL), sketch.random.choice(years), sketch.random.randrange(10**6)
    return f"{home}{section}/{year}/{slug(title)}-{number}"


def _dead(sketch: Sketch, page: str, topic: int, homes: list[str], neglected: list[str]) -> None:
    """A link to where nothing is, with the anchor and the words of a page on the topic."""
    title, home, (why,) = sketch.title(topic), sketch.random.choice(homes), sketch.random.choices(CAUSES, SHARES)
    to = _address(sketch, home, title, OLD_YEARS if why == "age" else YEARS)
    if why == "form":
        to = f"{home}cgi/show.asp?doc={slug(title)}&id={sketch.random.randrange(10**6)}"
    at = sketch.random.choice(neglected) if why == "page" else page
    sketch.link(at, to, f"{title} (archived)" if why == "anchor" else title)
