"""How `layered` reads links: places, words, and the goal's words among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.strategies.alone import A, learner, link, linked, place
from tests.strategies.lessons import told
from tests.support import fetched

if TYPE_CHECKING:
    from crawlguide.strategies.layered.learner import Layered


def read(*links: tuple[str, str], topic: str = "") -> Layered:
    """A learner that found these links, each with its anchor, on one page."""
    found = learner(topic)
    found.learn(told({"url": A, "status": 200, "relevance": 0.0, "outlinks": [linked(*one) for one in links]}))
    return found


def words(found: Layered, url: str) -> list[int]:
    one = link(found, url)
    spoken: list[int] = one["words"][: one["spoken"]].tolist()
    return spoken


@pytest.mark.parametrize(
    ("url", "levels"),
    [
        ("https://b.org/", 1),
        ("https://b.org/12", 1),  # a name that begins with no letter is no place
        ("https://b.org/item-12", 2),
        ("https://b.org/x/12", 2),
        ("https://b.org/x/item12.html", 3),
        ("https://b.org/x/y/z/item12.html", 5),
        ("https://b.org/w/x/y/z/item12.html", 5),  # three folders are enough
        ("https://b.org/x/12?u=/y/z/", 2),  # in a query there are no folders
    ],
)
def test_a_link_lies_in_its_host_its_folders_and_among_names_that_begin_alike(url: str, levels: int) -> None:
    assert link(read((url, "")), url)["levels"] == levels


def test_links_share_the_places_that_they_share() -> None:
    first, second, third, other = (
        "https://b.org/x/item-1", "https://b.org/x/item-2", "https://b.org/y/item-3", "https://c.org/x/item-4",
    )  # fmt: skip
    found = read((first, ""), (second, ""), (third, ""), (other, ""))
    places = [link(found, url)["places"][:3].tolist() for url in (first, second, third, other)]
    assert places[0] == places[1]
    assert [here == there for here, there in zip(places[0], places[2], strict=True)] == [True, False, False]
    assert not set(places[0]) & set(places[3])
    assert place(found, first)["waiting"] == 3
    assert place(found, first, 2)["waiting"] == 2


def test_new_hosts_share_a_place_of_their_own_where_there_is_no_room_for_more() -> None:
    first, second, third = "https://b.org/x/1", "https://c.org/x/1", "https://d.org/y/2"
    found = read((first, ""))
    found.memory.most_places = found.memory.places.used
    found.learn(told(*(fetched(url, relevance=0.0) for url in (A, first)), fetched(A + "2", second, third)))
    host, *others = (link(found, url)["places"][0] for url in (first, second, third))
    assert others[0] == others[1] != host
    assert [link(found, url)["levels"] for url in (first, second, third)] == [2, 1, 1]
    assert place(found, second)["waiting"] == 2
    assert place(found, first)["waiting"] == 0


def test_folders_deep_in_a_host_are_told_apart() -> None:
    deep = "https://b.org/en/docs/v2/manual/"
    first, second, other = deep + "parts/one/x", deep + "parts/one/y", deep + "tunes/two/x"
    found = read((first, ""), (second, ""), (other, ""))
    mine = [link(found, url)["places"][:4].tolist() for url in (first, second, other)]
    assert mine[0] == mine[1]
    assert [here == there for here, there in zip(mine[0], mine[2], strict=True)] == [True, True, False, False]


def test_an_address_that_ends_in_a_folder_is_known_by_it() -> None:
    found = read((A + "x/", ""), (A + "x/?q=1", ""), (A + "x", ""))
    assert [int(link(found, url)["folder"]) for url in (A + "x/", A + "x/?q=1", A + "x")] == [1, 1, 0]


def test_path_and_query_are_read() -> None:
    found = read(("https://b.org/x/y/z?q=1", ""), ("https://b.org/z", ""))
    assert (link(found, "https://b.org/x/y/z?q=1")["path"], link(found, "https://b.org/x/y/z?q=1")["query"]) == (2, 1)
    assert (link(found, "https://b.org/z")["path"], link(found, "https://b.org/z")["query"]) == (0, 0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("camelCase words", "camel-case WORDS"),
        ("page 2024", "page 17"),
        ("a word or 2", "word or"),  # single letters and digits are no words
        ("Zürich été", "Zürich, été!"),
    ],
)
def test_words_are_the_same_however_they_are_written(one: str, other: str) -> None:
    found = read(("https://b.org/", one), ("https://c.org/", other))
    assert words(found, "https://b.org/") == words(found, "https://c.org/")
    assert words(found, "https://b.org/")


def test_a_word_in_an_anchor_is_another_than_in_an_address() -> None:
    found = read(("https://b.org/", "birds"), ("https://b.org/birds", ""))
    assert set(words(found, "https://b.org/")).isdisjoint(words(found, "https://b.org/birds"))


def test_words_end_with_their_link() -> None:
    found = read(("https://b.org/song", "song"), ("https://c.org/bird", "bird"), ("https://d.org/", "songbird"))
    assert [link(found, url)["spoken"] for url in ("https://b.org/song", "https://c.org/bird")] == [2, 2]
    assert set(words(found, "https://d.org/")).isdisjoint(words(found, "https://b.org/song"))


def test_of_many_words_the_first_are_kept() -> None:
    long = " ".join(f"word{chr(97 + number)}" for number in range(26))
    address = "https://b.org/" + long.replace(" ", "/")
    found = read((address, long), ("https://c.org/", " ".join(long.split()[:10])))
    assert link(found, address)["spoken"] == 24
    assert words(found, address)[:10] == words(found, "https://c.org/")


@pytest.mark.parametrize(
    ("anchor", "share"),
    [
        ("Jazz and flutes", 1.0),
        ("flute", 0.5),  # begins alike
        ("jazzfestival", 0.5),
        ("acidjazz", 0.5),  # inside a longer word
        ("jaz", 0.0),
        ("Jäzz", 0.0),
        ("", 0.0),
    ],
)
def test_the_goals_words_are_met_in_anchors_and_addresses(anchor: str, share: float) -> None:
    named = "https://b.org/" + anchor.replace(" ", "-")
    found = read((A + "x", anchor), (named, ""), topic="jazz flutes")
    assert link(found, A + "x")["said"] == pytest.approx(share)
    assert link(found, named)["named"] == pytest.approx(share)
    assert link(found, named)["said"] == 0.0


def test_a_goal_beyond_ascii_is_met_too() -> None:
    found = read(("https://b.org/", "über Vögel"), topic="vögel")
    assert link(found, "https://b.org/")["said"] == 1.0


@pytest.mark.parametrize(
    ("path", "year"),
    [
        ("2026/03/14/harbour", 2026),
        ("2026-03-14-harbour", 2026),
        ("20260314/harbour", 2026),
        ("sport/2012/harbour", 2012),
        ("harbour-2012", 2012),
        ("12026/harbour", 0),
        ("202603145/harbour", 0),
        ("1812/harbour", 0),
        ("harbour", 0),
    ],
)
def test_the_year_in_an_address_is_read(path: str, year: int) -> None:
    url = f"https://b.org/{path}"
    assert link(read((url, "")), url)["chosen"] == max(year - 1900, 0)


def test_what_is_of_one_day_shares_words_on_whatever_host_it_is() -> None:
    day, same, month, other = (
        "https://b.org/2026/03/14/a1", "https://c.org/news-2026-03-14", "https://b.org/2026/03/20/a2",
        "https://b.org/2026/04/14/a3",
    )  # fmt: skip
    found = read((day, ""), (same, ""), (month, ""), (other, ""))
    shared = [len(set(words(found, day)) & set(words(found, url))) for url in (same, month, other)]
    numbers = 1  # all numbers are one word, beside what they say as a date
    assert [count - numbers for count in shared] == [2, 1, 0]
