"""The reports: what they say is what was measured, and the page is a page in a real browser.

The browser is the Debian package chromium.
"""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from crawlguide.gateway.dashboard.formatting import visible
from crawlguide.lab.compare import compare
from crawlguide.lab.report import charts, formatting, table, write_html
from crawlguide.lab.report.page import html
from crawlguide.lab.results import write_json
from crawlguide.lab.summary import Summary
from tests.browsing import in_browser, is_bright, watch
from tests.lab.made import made, results, run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from crawlguide.lab.results import Results

DOCUMENTED = (Path(__file__).resolve().parents[2] / "docs" / "lab-results.md").read_text()
HOSTILE = (
    "<script>alert(1)</script>", "</title></style><img src=x onerror=alert(2)>", "\"'><svg onload=alert(3)>",
    "{{ 7*7 }}", "[red]not markup[/red]", "[link=https://elsewhere.example]x[/link]", "\u202eback\u202c",
    "\x1b[31mred\x07\x00", "&lt;b&gt;", "a" * 300, "two\nlines", "",
)  # fmt: skip
LOOK = """() => ({
  text: document.body.innerText,
  scripts: document.scripts.length,
  foreign: document.querySelectorAll("img, iframe, object, embed, form, input, link, base, audio, video, a").length,
  handlers: [...document.querySelectorAll("*")].filter(one => [...one.attributes].some(
    attribute => attribute.name.startsWith("on") || attribute.name == "style" || /url\\(|^https?:/.test(attribute.value)
  )).length,
  wide: document.documentElement.scrollWidth,
  outside: [...document.querySelectorAll("svg")].filter(one => one.getBoundingClientRect().width && (() => {
    const frame = one.getBoundingClientRect();
    return [...one.querySelectorAll("text")].some(text => {
      const place = text.getBoundingClientRect();
      return place.right > frame.right + 2 || place.left < frame.left - 2;
    });
  })()).map(one => one.getAttribute("aria-label")),
})"""


@pytest.fixture(scope="module")
def sample() -> Results:
    return made(5, 2, 1_000)


def printed(given_results: Results, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table(given_results))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_table_says_what_was_measured(sample: Results, width: int) -> None:
    summary, text = Summary(sample), printed(sample, width)
    lines = [line.split() for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= width
    for name in summary.policies + summary.references:
        first, second = (line for line in lines if line[:1] == [name] and line[1][0].isdigit())
        harvests = [formatting.decimal(summary.mean(name, f"harvest@{k}")) for k in summary.checkpoints]
        assert first[1:7] == [*harvests, formatting.decimal(summary.mean(name, "auc"))]
        assert second[1] == formatting.decimal(summary.over(name, "oracle-full", summary.last), 2)
    for other in summary.policies[1:]:
        found = compare(summary, "layered", other)
        row = next(
            line for line in text.splitlines() if line.split()[:2] == [other, formatting.signed(found.difference)]
        )
        assert f"{formatting.span(found.low, found.high)}  " in row
        assert f" {found.wins}/{found.ties}/{found.losses} " in row


def test_a_policy_that_never_finds_half_is_not_said_to_have_found_it() -> None:
    poor = run([0, 0, 0, 1], policy="random", targets=4)
    given = results([run([1, 1, 1, 1], policy="layered"), poor])
    for text in (printed(given), html(given)):
        assert "less than half of all targets after 4 requests" in re.sub(r"\s+", " ", text)


def test_what_is_not_in_a_table_is_not_explained_below_it(sample: Results) -> None:
    assert "÷" in printed(sample)
    assert "÷" not in printed(results([run([1, 0], policy="layered")]))


def test_what_was_not_run_is_said(sample: Results) -> None:
    kept = [one for one in sample.runs if (one.policy, one.task) != ("keyword", "fonts")]
    assert "keyword: 1 task of 5 not run" in printed(results(kept))
    assert "Not complete: <bdi>keyword</bdi> has no run on 1 task." in html(results(kept))


def test_names_in_the_terminal_are_text() -> None:
    text = printed(results([run([1, 0], policy=name, task=name) for name in HOSTILE]), 400)
    assert "[red]not markup[/red]" in text
    assert not {"\x1b", "\x07", "\x00"} & set(text)


def test_one_result_gives_one_page(sample: Results, tmp_path: Path) -> None:
    write_html(sample, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == html(sample)


def test_the_page_says_what_was_measured(sample: Results) -> None:
    summary, page = Summary(sample), html(sample)
    rows = re.findall(r"<bdi>([^<]*)</bdi></th>((?:<td[^>]*>[^<]*</td>)+)", page.partition("Table 1.")[2])
    first = {name: re.findall(r">([^<]*)</td>", cells) for name, cells in reversed(rows)}
    assert first.keys() == set(summary.everyone)
    for name, cells in first.items():
        expected = [formatting.decimal(summary.mean(name, f"harvest@{k}")) for k in summary.checkpoints]
        assert cells[:5] == expected
    found = compare(summary, "layered", "keyword")
    assert formatting.span(found.low, found.high) in page
    assert "crawlguide lab run --web made --policies layered,keyword" in page
    assert all(version in page for version in sample.versions.values())


def test_the_python_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(made(3, 2, 2_000), Path("out.json"))
    (example,) = re.findall(r"^```python\n(.*?)^```", DOCUMENTED, re.MULTILINE | re.DOTALL)
    exec(compile(example, "lab-results.md", "exec"), {})
    assert re.fullmatch(r"layered 0\.\d+\n\+0\.\d+ \[\+0\.\d+, \+0\.\d+\], worst on .*\n", capsys.readouterr().out)
    assert Path("out.html").stat().st_size > 10_000


def test_the_command_of_the_documentation_runs_on_a_smaller_web(tmp_path: Path) -> None:
    command = next(
        block
        for block in re.findall(r"^```sh\n(.*?)^```", DOCUMENTED, re.MULTILINE | re.DOTALL)
        if "synthetic:" in block
    )
    said = shlex.split(
        command.replace("\\\n", "").replace("pages=20000,hosts=200,topics=8", "pages=400,hosts=5,topics=2")
    )
    program = str(Path(sys.executable).with_name("crawlguide"))
    less = ["--budget", "60", "--repeat", "1"]
    subprocess.run([program, *said[1:], *less], cwd=tmp_path, capture_output=True, timeout=110, check=True)
    page = (tmp_path / "lab.html").read_text()
    assert all(f"<bdi>{name}</bdi>" in page for name in ("layered", "keyword", "oracle-full", "ceiling"))


def test_a_small_drawing_names_the_three_best_of_its_task_and_the_highest_reference() -> None:
    """The ninth policy has no colour of its own, but is the best of one task."""
    hits = {f"policy-{number}": 90 - 10 * number for number in range(9)} | {"oracle": 95}
    runs = [
        run([1] * count + [0] * (100 - count), policy=name, task=task, reference=name == "oracle")
        for task in ("usual", "usual too", "strange")
        for name, count in (hits | {"policy-8": 94} if task == "strange" else hits).items()
    ]
    summary = Summary(results(runs))
    _, small = charts.harvest_curves(summary, charts.all_series(summary))
    named = {chart.title: {label.series.policy for label in chart.labels} for chart in small}
    assert named["usual"] == {"policy-0", "policy-1", "policy-2", "oracle"}
    assert named["strange"] == {"policy-8", "policy-0", "policy-1", "oracle"}


@pytest.mark.parametrize("hits", [0, 1, 7, 12, 21, 25, 26, 47, 60, 99, 100])
def test_curves_and_ticks_stay_inside_their_frame(hits: int) -> None:
    summary = Summary(results([run([1] * hits + [0] * (100 - hits)), run([0] * (100 - hits) + [1] * hits, policy="y")]))
    large, small = charts.harvest_curves(summary, charts.all_series(summary))
    for chart in (large, *small):
        frame = chart.frame
        assert all(frame.top <= tick.at <= frame.bottom for tick in chart.y_ticks)
        assert len(chart.y_ticks) >= 2
        for line in chart.curves:
            for point in re.findall(r"[\d.]+ [\d.]+", line.path):
                x, y = map(float, point.split())
                assert frame.left <= x <= frame.right
                assert frame.top <= y <= frame.bottom


def test_the_heat_map_shows_shares_of_the_highest_reference() -> None:
    hits = {"x": 25, "y": 49, "oracle": 50}
    runs = [run([1] * n + [0] * (100 - n), policy=name, reference=name == "oracle") for name, n in hits.items()]
    runs.append(run([1] * 10 + [0] * 90, policy="x", task="b"))
    summary = Summary(results(runs))
    first, second, _ = charts.heat_map(summary, charts.all_series(summary)).rows
    assert [(cell.text, cell.level, cell.best) for cell in first.cells] == [
        ("0.49", "h9", True), ("0.25", "h5", False), ("0.50", "h9", False)
    ]  # fmt: skip
    assert [(cell.text, cell.level, cell.best) for cell in second.cells] == [
        ("", "", False), ("0.10", "h9", True), ("", "", False)
    ]  # fmt: skip


def strange() -> dict[str, Results]:
    """Results that are hardly any: one request, nothing found, one of everything, references alone."""
    nothing = [run([0] * 600, policy=name, p=[0.5] * 600, reachable=0, targets=0) for name in ("x", "y")]
    return {
        "one request": results([run([1])]),
        "nothing made": results([run([], budget=10)]),
        "nothing found": results(nothing),
        "references alone": results([run([1, 0], reference=True)]),
        "never met": results([run([1], policy="x", task="a"), run([0], policy="y", task="b")]),
        "two webs": results([run([1, 0, 1], policy=name, web=web) for name in "xy" for web in "vw"]),
    }


@pytest.mark.parametrize("name", strange())
def test_results_that_are_hardly_any_are_shown_too(name: str) -> None:
    given_results = strange()[name]
    assert "nan" not in html(given_results).partition("</style>")[2].lower().replace("finan", "")
    assert "nan" not in printed(given_results)


def look(browser: Browser, page: Path, **options: Any) -> dict[str, Any]:
    """What is on the page, after checking that it asked for nothing, ran nothing and complained of nothing."""
    with browser.new_context(**options) as context:
        tab = context.new_page()
        wrong = watch(tab, page.as_uri().__eq__)
        tab.goto(page.as_uri())
        seen: dict[str, Any] = tab.evaluate(LOOK)
    assert wrong == []
    assert (seen["scripts"], seen["foreign"], seen["handlers"]) == (0, 0, 0)
    return seen


@in_browser
@pytest.mark.parametrize("width", [390, 1_100])
def test_the_page_needs_no_network_no_scripts_and_no_wide_screen(
    browser: Browser, sample: Results, tmp_path: Path, width: int
) -> None:
    write_html(sample, tmp_path / "report.html")
    seen = look(browser, tmp_path / "report.html", viewport={"width": width, "height": 800})
    assert seen["wide"] == width
    assert seen["outside"] == []
    for number in range(1, 6):
        assert f"Figure {number}." in seen["text"]
    for number in range(1, 4):
        assert f"Table {number}." in seen["text"]


@in_browser
def test_long_names_stay_inside_their_drawings(browser: Browser, tmp_path: Path) -> None:
    names = ("tres-reconstruction", "feedstock-repaired", "best-first-mean", "oracle-one-hop")
    runs = [
        run([1] * (90 - place) + [0] * (10 + place), policy=name, task=task, reference=name.startswith("oracle"))
        for task in ("xml-markup-templates", "text-regex-unicode")
        for place, name in enumerate(names)
    ]
    write_html(results(runs), tmp_path / "report.html")
    assert look(browser, tmp_path / "report.html", viewport={"width": 1_100, "height": 800})["outside"] == []


@in_browser
def test_the_policy_of_the_page_forbids_what_it_does_not_need(
    browser: Browser, sample: Results, tmp_path: Path
) -> None:
    """A script that got in would not run, and an image would not be asked for."""
    page = tmp_path / "report.html"
    page.write_text(
        html(sample).replace("</main>", "<script>document.title = 'ran'</script><img src=http://x.example/></main>")
    )
    with browser.new_context() as context:
        tab, refused = context.new_page(), list[tuple[str, str | None]]()
        tab.on("requestfailed", lambda request: refused.append((request.url, request.failure)))
        tab.goto(page.as_uri())
        assert tab.title() == "Harvest on made · crawlguide lab"
        assert refused == [("http://x.example/", "csp")]
        assert tab.evaluate("getComputedStyle(document.querySelector('.curve.c0')).strokeWidth") == "3px"


@in_browser
def test_whatever_things_are_called_stays_text(browser: Browser, tmp_path: Path) -> None:
    budget = 40
    runs = [
        run(
            [1, 0] * (budget // 2),
            policy=policy,
            task=task,
            web=task,
            p=[0.5] * budget,
            feedback=task,
            seeds_from=policy,
        )
        for policy in HOSTILE
        for task in HOSTILE
    ]
    page = tmp_path / "hostile.html"
    write_html(results(runs, command=list(HOSTILE), versions={name: name for name in HOSTILE}), page)
    text = look(browser, page, viewport={"width": 1_100, "height": 800})["text"]
    squeezed = re.sub(r"\s+", " ", text)
    for name in HOSTILE:
        assert re.sub(r"\s+", " ", visible(name)).strip() in squeezed


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("media", ["screen", "print"])
def test_the_page_follows_the_reader_and_paper_is_white(
    browser: Browser, sample: Results, tmp_path: Path, scheme: Any, media: Any
) -> None:
    write_html(sample, tmp_path / "report.html")
    with browser.new_context(color_scheme=scheme, java_script_enabled=False) as context:
        tab = context.new_page()
        tab.emulate_media(media=media)
        tab.goto((tmp_path / "report.html").as_uri())
        assert is_bright(tab) == (scheme == "light" or media == "print")
