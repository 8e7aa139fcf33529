"""Judges of relevance: what each looks at, and what the crawl's own judge learns."""

from __future__ import annotations

import re
import time
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import msgspec
import numpy as np
import pytest
import xxhash

from crawlguide import Guide
from crawlguide.core.definition import Goal, Reward
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.notebook import Notebook
from crawlguide.core.types import Page
from crawlguide.features.relevance import Judge, five_signals, forager, judge
from crawlguide.features.relevance.page_judge import aimed
from crawlguide.features.relevance.warmth import Warmth
from crawlguide.features.relevance.words import Matcher, topic_words, words_in

Fetched = dict[str, Any]
WEBS = Path(__file__).parents[3] / "shared" / "data" / "webs"
SQL = Goal(topic="databases and SQL")
ON = "A relational database stores tables of rows. SQL queries select, join and group them; an index makes this fast."
OFF = "Water the roses in the morning, cut the hedge in autumn and give the lawn some rest over the winter."
SUBJECTS = {
    "https://example.org/cooking/soup": "Chop the onions, fry them in butter, add stock and simmer for an hour.",
    "https://example.org/football/cup": "The team scored twice in the second half and won the final of the cup.",
    "https://example.org/travel/coast": "The ferry leaves the harbour at noon; the coast is best seen from deck.",
    "https://example.org/law/court": "The court heard the appeal, and the judge upheld the sentence of two years.",
}


def page(text: str, url: str = "https://example.org/page", title: str = "", status: int = 200) -> Page:
    return Page(url, title, text, status)


# feedstock's five signals


def test_parts_of_words_are_no_words() -> None:
    goal = Goal(topic="art")
    assert five_signals(page("art " * 50), goal) > five_signals(page("party cart " * 18), goal) + 0.3


def test_titles_and_markdown_headings_are_headings() -> None:
    goal = Goal(keywords=("sql",))
    bare = five_signals(page("nothing here"), goal)
    assert five_signals(page("nothing here", title="SQL"), goal) > bare + 0.19
    assert five_signals(page("# SQL\nnothing here"), goal) > five_signals(page("SQL\nnothing here"), goal) + 0.1


@pytest.mark.parametrize("status", [301, 404, 500])
def test_only_2xx_succeeds(status: int) -> None:
    assert five_signals(page(ON), SQL) == pytest.approx(five_signals(page(ON, status=status), SQL) + 0.1)
    assert forager.relevance(page(ON, status=status), SQL) == 0.0
    assert judge(page(ON, status=status), SQL) == 0.0


# forager's formula


def test_nearness_to_the_reference_less_that_to_the_anti_reference() -> None:
    goal = Goal(reference="planets, stars and telescopes")
    against = Goal(reference="planets, stars and telescopes", anti_reference="film stars and celebrities")
    film = page("The film star met other celebrities at the premiere of the movie.")
    assert (
        forager.relevance(page("The planet was seen through a telescope."), goal)
        > forager.relevance(page(OFF), goal) + 0.1
    )
    assert forager.relevance(film, against) < forager.relevance(film, goal)


def test_every_group_of_keywords_has_to_be_there() -> None:
    goal = Goal(keywords=("car|automobile", "insurance"))
    assert forager.relevance(page("automobile insurance"), goal) == 1.0
    assert forager.relevance(page("automobile automobile"), goal) == 0.0


def test_goals_that_name_the_same_words_share_what_was_made_of_them() -> None:
    made = []
    for reward in (Reward(), Reward(novelty=0.25)):
        forager.relevance(page("A moon."), Goal("stars", ("planet|moon",), anti_reference="films", reward=reward))
        made.append([cache.cache_info().misses for cache in (forager.groups, forager.aim)])
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("keywords", "text", "relevance"),
    [
        # 400 characters: full density is 2 hits. Densities 1/2 and 1 (of 4/2): √(1/2 · 1)
        (("car|automobile", "insurance"), "automobile" + 4 * " insurance" + 350 * ".", 0.5**0.5),
        # 1 of 2 and 1 of 2 hits: √(1/2 · 1/2)
        (("car|automobile", "insurance"), "Car insurance".ljust(400, "."), 0.5),
        # alternatives of a group add up, 1 + 1 of 2 hits; a phrase counts as a whole
        (("machine learning|ml",), "ML is machine-learning".ljust(400, "."), 1.0),
        (("machine learning|ml",), "learning to use a machine".ljust(400, "."), 0.0),
        # parts of words are no hits
        (("car",), "carpets and scarfs".ljust(400, "."), 0.0),
    ],
)
def test_groups_of_keywords_combine_by_the_geometric_mean_of_their_densities(
    keywords: tuple[str, ...], text: str, relevance: float
) -> None:
    assert judge(page(text), Goal(keywords=keywords, judge="forager")) == pytest.approx(relevance)


# the judge that a goal selects


def test_feedstocks_formula_by_hand() -> None:
    """800 characters, 2 hits of 4 for full density; both keywords in a heading; one of two in the URL."""
    goal = Goal(keywords=("SQL", "index"), judge="feedstock")
    one = page("# SQL index\n".ljust(800, "."), "https://example.org/sql/page")
    assert judge(one, goal) == pytest.approx(0.40 * 2 / 4 + 0.20 * 1 + 0.15 * 1 / 2 + 0.15 * 800 / 2_000 + 0.10)
    assert judge(one, goal) == pytest.approx(0.635)


def test_feedstock_never_gives_more_than_one() -> None:
    goal = Goal(keywords=("sql",), judge="feedstock")
    assert judge(page("# sql\n" + "sql " * 2_000, "https://example.org/sql"), goal) == 1.0


def test_forager_takes_hundreds_of_groups() -> None:
    words = tuple(one + other for one in ascii_lowercase for other in ascii_lowercase)[:600]
    assert 0.0 < judge(page(" ".join(words)), Goal(keywords=words, judge="forager")) < 1.0


def test_what_is_reported_is_learned_from_after_a_restart_too() -> None:
    notebook, goal = Notebook(), Goal(topic="relational databases")
    first = Judge(goal)
    first.remember(notebook)
    first.judge(page(ON))
    again = Judge(goal)
    again.remember(notebook)
    before = first.state()
    again.hear(page(ON), 1.0)
    assert again.state() != before


def test_feedstock_gives_a_long_page_without_a_keyword_a_quarter() -> None:
    assert judge(page("." * 5_000), Goal(keywords=("sql",), judge="feedstock")) == pytest.approx(0.25)


def test_feedstock_finds_keywords_in_parts_of_words_without_overlaps() -> None:
    goal = Goal(keywords=("ana",), judge="feedstock")
    once = 0.40 * 1 / 10 + 0.15 + 0.10
    assert judge(page("banana".ljust(2_000, ".")), goal) == pytest.approx(once)


def test_feedstock_takes_the_words_of_the_topic_where_there_are_no_keywords() -> None:
    assert judge(page(ON), Goal(topic="the SQL index", judge="feedstock")) == judge(
        page(ON), Goal(keywords=("sql", "index"), judge="feedstock")
    )


@pytest.mark.parametrize(("kind", "relevance"), [("feedstock", 0.635), ("forager", 0.5)])
def test_a_crawl_is_judged_by_the_formula_it_asks_for(kind: str, relevance: float) -> None:
    """best-first ranks a link by the relevance of its page."""
    text = "# SQL index\n".ljust(800, ".") if kind == "feedstock" else "SQL index".ljust(400, ".")
    found = {"url": "https://example.org/sql/page", "status": 200, "text": text,
             "outlinks": [{"url": "https://example.org/next"}]}  # fmt: skip
    with Guide.open(":memory:") as guide:
        guide.define("c", {"goal": {"keywords": ["sql", "index"], "judge": kind}, "strategy": {"kind": "best-first"}})
        guide.tell(report([found]))
        assert guide.explain("c", "https://example.org/next")["p"] == pytest.approx(relevance)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ({"judge": "oracle"}, 'goal.judge: expected one of semantic, feedstock, forager, got "oracle"'),
        (
            {"judge": "forager", "keywords": ["sql", "car||van"]},
            "goal.keywords[1]: expected words between the bars, got 'car||van'",
        ),
    ],
)
def test_a_goal_that_cannot_be_judged_by_is_refused_with_the_reason(goal: dict[str, Any], message: str) -> None:
    with Guide.open(":memory:") as guide, pytest.raises(MalformedRequest, match=re.escape(message)):
        guide.define("c", {"goal": goal})


def test_what_was_learned_before_there_was_a_choice_of_judges_goes_on() -> None:
    """The goal's fingerprint lies in the notebooks of older folders, where goals had no judge."""
    before = {name: value for name, value in msgspec.to_builtins(SQL).items() if name != "judge"}
    notebook, found = Notebook(), Judge(SQL)
    found.remember(notebook)
    found.judge(page(ON))
    assert notebook.in_use()["j-sums"].rows["goal"][0] == xxhash.xxh3_64_intdigest(msgspec.json.encode(before))


# words


@pytest.mark.parametrize(
    ("word", "text", "found"),
    [
        ("statistics", "a statistical test", True),
        ("monitor", "Monitoring.", True),
        ("databases", "one database", True),
        ("sql", "SQLs", True),
        ("sql", "sqlite", False),
        ("art", "party", False),
        ("audio", "audible", False),
        ("networking", "network_interfaces", True),
        ("concurrency", "concurrent", True),
    ],
)
def test_forms_of_a_word(word: str, text: str, found: bool) -> None:
    assert Matcher((word,)).share(text) == found


def test_keywords_are_the_words_of_a_goal_before_its_topic() -> None:
    assert topic_words(Goal(topic="a topic", keywords=("Machine learning", "of learning"))) == ("machine", "learning")
    assert topic_words(Goal(topic="field::the_biology")) == ("field", "biology")


# the judge


def test_what_a_page_means_counts_not_only_its_words() -> None:
    found = Judge(Goal(topic="astronomy"))
    near = found.judge(page("Telescopes show galaxies, planets and the stars of the night sky."))
    assert near > 0.5 > found.judge(page(OFF))
    assert near > judge(page(OFF), Goal(topic="astronomy"))


def test_a_page_without_text_is_judged_by_its_title_and_url() -> None:
    found = Judge(Goal(topic="astronomy"))
    title = found.judge(page("", "https://example.org/wiki/Jupiter", "Jupiter, the planet"))
    assert title > found.judge(page("", "https://example.org/wiki/Rose", "Rose, the flower")) + 0.2


def warm(text: str, warmth: Warmth) -> float:
    return warmth.of(words_in(text))


def test_a_text_that_says_more_about_the_goal_is_warmer() -> None:
    warmth = Warmth(aimed(SQL))
    assert warm(f"{ON} {ON}", warmth) > warm(ON, warmth) > warm("SQL index", warmth) > warm(OFF, warmth)
    assert warm(OFF, warmth) == warm("", warmth) == 0.0


def test_words_that_have_nothing_to_do_with_the_goal_take_no_warmth() -> None:
    warmth = Warmth(aimed(SQL))
    assert warm(f"{ON} {OFF}", warmth) == warm(ON, warmth)


def test_warmth_is_the_same_whatever_was_read_before() -> None:
    fresh, used = Warmth(aimed(SQL)), Warmth(aimed(SQL))
    for text in SUBJECTS.values():
        warm(text, used)
    assert warm(ON, used) == warm(ON, fresh)


def test_a_page_without_a_text_is_not_held_to_be_a_cold_one() -> None:
    assert judge(page("", title="SQL queries"), SQL) > judge(page("See there.", title="SQL queries"), SQL)


def test_the_background_is_that_of_the_crawl() -> None:
    """Among pages that are all a little like the topic, one that is no more so is nothing special."""
    fresh, used = Judge(Goal(topic="computer science")), Judge(Goal(topic="computer science"))
    alike = ["The program prints the result.", "Install the package.", "Software for the desktop.", "Run the script."]
    for number in range(200):
        used.judge(page(alike[number % 4] + f" Version {number}.", f"https://example.org/{number}"))
    one = page("A program for the computer.")
    assert used.judge(one) < fresh.judge(one) - 0.02


def test_pages_of_one_host_count_less_and_less_as_background() -> None:
    """A crawl that stays where it is good would else find the same page worth less and less."""
    one, many = Judge(Goal(topic="computer science")), Judge(Goal(topic="computer science"))
    for number in range(300):
        said = f"Lecture {number} of the course: programs, algorithms and computers."
        one.judge(page(said, f"https://example.org/{number}"))
        many.judge(page(said, f"https://host{number}.example.org/"))
    next_one = page("Algorithms for parallel computers.", "https://example.com/next")
    assert one.judge(next_one) > 2 * many.judge(next_one)


def crawled(found: Judge, good: int) -> None:
    """Some pages on databases among others."""
    for number in range(100):
        for url, text in SUBJECTS.items():
            found.judge(page(text + f" Part {number}.", f"{url}{number}"))
    for number in range(good):
        said = f"{ON} The query planner chooses between a hash join and a nested loop. Lesson {number}."
        assert found.judge(page(said, f"https://example.org/sql/{number}", "SQL databases")) > 0.5


def test_what_is_near_to_the_best_pages_counts_once_there_are_eight() -> None:
    related = page("The planner estimates rows and picks a nested loop or a hash join.", "https://example.org/x")
    seven, many = Judge(SQL), Judge(SQL)
    crawled(seven, 7)
    crawled(many, 20)
    assert many.judge(related) > seven.judge(related)
    assert many.judge(page(SUBJECTS["https://example.org/law/court"])) < 0.2


def test_told_pages_teach_a_judge_that_has_to_judge_others() -> None:
    taught, silent = Judge(SQL), Judge(SQL)
    about = "Bees carry pollen to their hive, where it becomes honey."
    for found in (taught, silent):
        crawled(found, 0)
    for number in range(20):
        taught.hear(page(f"{about} Comb {number}."), 1.0)
    assert taught.judge(page(about)) > silent.judge(page(about)) + 0.1


def test_a_judge_who_is_always_told_never_works() -> None:
    found = Judge(SQL)
    found.hear(page(ON), 1.0)
    assert found.state() == Judge(SQL).state()


def test_a_goal_without_a_known_word_is_judged_by_its_words() -> None:
    goal = Goal(topic="データベース")
    assert judge(page("データベース " * 40), goal) == five_signals(page("データベース " * 40), goal) > 0.5


@pytest.mark.parametrize("url", ["", "no url", "https://", "mailto:a@example.org"])
def test_odd_urls_are_no_obstacle(url: str) -> None:
    assert 0.0 <= judge(page(ON, url), SQL) <= 1.0


def test_goals_of_every_shape() -> None:
    for goal in (SQL, Goal(keywords=("sql",)), Goal(reference=ON), Goal(topic="sql", anti_reference=OFF)):
        assert judge(page(ON, title="SQL"), goal) > 0.5 > judge(page(OFF), goal)
    assert judge(page(OFF), Goal()) == 0.5


def test_the_anti_reference_lowers() -> None:
    one = page("The film star met other celebrities at the premiere of the movie.")
    assert judge(one, Goal(topic="stars", anti_reference="films, actors and celebrities")) < judge(
        one, Goal(topic="stars")
    )


# what it keeps


def test_state_goes_from_judge_to_judge() -> None:
    one, other = Judge(SQL), Judge(SQL)
    crawled(one, 12)
    other.restore(one.state())
    assert len(one.state()) < 32_000
    for text in (ON, OFF, "nested loop join"):
        assert other.judge(page(text)) == one.judge(page(text))
    assert other.state() == one.state()


def test_state_of_many_hosts_goes_on_too() -> None:
    one, other = Judge(SQL), Judge(SQL)
    for number in range(600):
        one.judge(page(OFF, f"https://host{number % 300}.example.org/{number}"))
    other.restore(one.state())
    for number in range(20):
        again = page(f"{OFF} {number}", "https://host7.example.org/again")
        assert other.judge(again) == one.judge(again)
    assert other.state() == one.state()


def test_another_goal_counts_the_pages_of_hosts_anew() -> None:
    notebook, gardening = Notebook(), Goal(topic="gardening")
    first, another, fresh = Judge(SQL), Judge(gardening), Judge(gardening)
    first.remember(notebook)
    crawled(first, 0)
    another.remember(notebook)
    for number in range(20):
        one = page(f"{ON} {number}", f"https://example.org/{number}")
        assert another.judge(one) == fresh.judge(one)


def test_what_lies_in_a_notebook_goes_on_unless_the_goal_is_another() -> None:
    notebook = Notebook()
    first, second, another = Judge(SQL), Judge(SQL), Judge(Goal(topic="gardening"))
    first.remember(notebook)
    crawled(first, 12)
    state = first.state()
    second.remember(notebook)
    second.restore(second.state())
    assert second.state() == state
    another.remember(notebook)
    assert another.judge(page(OFF, title="Gardening")) == judge(page(OFF, title="Gardening"), Goal(topic="gardening"))


def test_a_guide_that_is_opened_again_judges_on(tmp_path: Path) -> None:
    stories = [
        {"url": f"{url}{number}", "status": 200, "text": f"{text} Part {number}.", "title": "A story"}
        for number in range(30)
        for url, text in SUBJECTS.items()
    ]
    last = {"url": "https://example.org/last", "status": 200, "text": ON, "title": "SQL",
            "outlinks": [{"url": "https://example.org/next"}]}  # fmt: skip
    given = [chance_of_the_last_link(tmp_path / str(parts), stories, last, parts) for parts in (1, 3)]
    assert given[0] == given[1]


def chance_of_the_last_link(folder: Path, stories: list[Fetched], last: Fetched, parts: int) -> float:
    """After all stories and the last page were told to a guide that was opened so often."""
    for some in np.array_split(np.arange(len(stories)), parts):
        with Guide.open(folder) as guide:
            guide.define("c", {"goal": {"topic": "databases and SQL"}, "strategy": {"kind": "best-first"}})
            guide.tell(report([stories[at] for at in some]))
    with Guide.open(folder) as guide:
        guide.tell(report([last]))
        found: float = guide.explain("c", "https://example.org/next")["p"]
    return found


def report(fetches: list[Fetched]) -> dict[str, Any]:
    return {"mcp_version": "2025-11", "crawler_id": "a", "crawl_id": "c", "fetches": fetches}


# cost


def test_a_page_costs_less_than_a_millisecond_of_work() -> None:
    found = Judge(Goal(topic="databases", keywords=tuple(f"word{number}" for number in range(900))))
    pages = [page(f"{ON} {number} " * 18, f"https://example.org/{number}", "A title") for number in range(200)]
    found.judge(pages[0])
    began = time.process_time()
    for one in pages:
        found.judge(one)
    assert (time.process_time() - began) / len(pages) < 0.003  # 0.3 ms on a quiet machine


@pytest.mark.skipif(not WEBS.is_dir(), reason="needs the recorded webs beside the project")
def test_it_ranks_recorded_pages() -> None:
    from bench import labels

    shown = labels.pages(WEBS / "docsweb", 2_000)
    column = shown.topics.index("databases-sql")
    found = Judge(Goal(topic=shown.topics[column]))
    scores = [found.judge(Page(*one)) for one in zip(shown.url, shown.title, shown.text, strict=True)]
    area, _ = labels.worth(shown.labels[:, [column]], np.array(scores)[:, None])
    assert area > 0.93
