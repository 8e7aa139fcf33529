"""An archive: targets lie three pages deep behind shelves, boxes and folders that do not say what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES
from crawlguide.lab.synthetic.texts import FIRST

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

TOPICS, HOSTS = 3, 4
BOXES, FOLDERS, ITEMS = 4, 4, 5  # in a shelf, a box, a folder
OF_A_KIND = 0.85  # folders of a box on its topic, and items of a folder on that of the folder
OTHER_TOPICS = 3  # that nobody looks for


def draw(sketch: Sketch, pages: int) -> list[Task]:
    homes = [sketch.page(f"http://archive.{FIRST[host]}-society.example/", "The archive") for host in range(HOSTS)]
    relevant: dict[int, list[str]] = {topic: [] for topic in range(TOPICS + OTHER_TOPICS)}
    for number in range(pages // (1 + BOXES * (1 + FOLDERS * (1 + ITEMS)))):
        home = homes[number % HOSTS]
        shelf = sketch.page(f"{home}shelf/{number}/", f"Shelf {number}")
        sketch.link(home, shelf, f"Shelf {number}")
        for box in range(BOXES):
            _box(sketch, shelf, f"{number}-{box}", relevant)
    _neighbours(sketch, homes)
    return [sketch.task(NAMES[topic], homes, relevant[topic]) for topic in range(TOPICS)]


def _box(sketch: Sketch, shelf: str, number: str, relevant: dict[int, list[str]]) -> None:
    about = sketch.random.randrange(TOPICS + OTHER_TOPICS)
    box = sketch.page(f"{shelf}box-{number}/", f"Box {number}")
    sketch.link(shelf, box, f"Box {number}")
    for place in range(FOLDERS):
        topic = _mostly(sketch, about)
        folder = sketch.page(f"{box}folder-{place}/", f"Folder {number}-{place}")
        sketch.link(box, folder, f"Folder {place}")
        sketch.link(folder, box, "up")
        for item in range(ITEMS):
            its = _mostly(sketch, topic)
            url = sketch.page(f"{folder}item-{item}", sketch.title(its), its)
            sketch.link(folder, url, f"Item {item}")
            sketch.link(url, folder, "up")
            relevant[its].append(url)


def _mostly(sketch: Sketch, topic: int) -> int:
    return topic if sketch.random.random() < OF_A_KIND else sketch.random.randrange(TOPICS + OTHER_TOPICS)


def _neighbours(sketch: Sketch, homes: list[str]) -> None:
    for home, other in zip(homes, homes[1:] + homes[:1], strict=True):
        sketch.link(home, other, "partner archive")
