"""One forum whose addresses hold no words: only the names in their queries tell an article from a login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.lab.synthetic.kinds._sketch import NAMES

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task
    from crawlguide.lab.synthetic.kinds._sketch import Sketch

TOPICS = 4
RELATED, ALIKE = 5, 0.7
LISTED = 20  # threads on a page of a board
USERS = 6  # threads for each user
HOME = "http://forum.river-circle.example/"
WEIGHTS = (1, 2, 3, 6)  # of topics: the first is the rarest


def draw(sketch: Sketch, pages: int) -> list[Task]:
    home = sketch.page(HOME, "The forum")
    threads: dict[str, int] = {}
    for number in range(pages // 2):
        topic = sketch.random.choices(range(TOPICS), WEIGHTS)[0]
        threads[sketch.page(f"{HOME}index.php?t={number}&view=thread", sketch.title(topic), topic)] = topic
    users = [
        sketch.page(f"{HOME}index.php?u={number}&view=user", f"Member {number}")
        for number in range(len(threads) // USERS)
    ]
    for place, (thread, topic) in enumerate(threads.items()):
        _buttons(sketch, thread, place, users)
        alike = [other for other, its in threads.items() if its == topic and other != thread]
        for _ in range(RELATED):
            sketch.link(thread, sketch.random.choice(alike if sketch.random.random() < ALIKE else list(threads)))
    for user in users:
        for thread in sketch.some(list(threads), USERS):
            sketch.link(user, thread)
    _board(sketch, home, list(threads))
    return [
        sketch.task(NAMES[topic], [home], [thread for thread, its in threads.items() if its == topic])
        for topic in range(TOPICS)
    ]


def _buttons(sketch: Sketch, thread: str, number: int, users: list[str]) -> None:
    """What stands on every page of a forum: users, and forms that say nothing."""
    title = sketch.pages[thread].title
    sketch.link(thread, sketch.random.choice(users), "member")
    for verb in ("reply", "print"):
        sketch.link(
            thread, sketch.page(f"{HOME}index.php?t={number}&view={verb}", f"{verb} {title}"), f"{verb}: {title}"
        )
    sketch.link(thread, sketch.page(f"{HOME}index.php?back={number}&view=login", "Log in"), "log in")
    sketch.link(thread, HOME, "home")


def _board(sketch: Sketch, home: str, threads: list[str]) -> None:
    before = home
    for first in range(0, len(threads), LISTED):
        here = sketch.page(f"{HOME}index.php?page={first // LISTED + 1}&view=board", "All threads")
        sketch.link(before, here, "all threads" if before == home else "older")
        for thread in threads[first : first + LISTED]:
            sketch.link(here, thread)
        before = here
