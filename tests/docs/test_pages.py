"""Whatever a page shows runs: questions to a server and their answers, programs, settings.

Each block of code is run by a test here, or named below with who runs it or why nobody does.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from scripts import reference

from crawlguide.core import config, errors
from crawlguide.gateway.responses import STATUS
from tests.docs.blocks import ROOT, blocks, of_page, pages_with
from tests.gateway.conftest import serving

USUAL = re.compile(r"(localhost|127\.0\.0\.1):8080")
ELSEWHERE = {
    ("README.md", "python"): "tests/docs/test_documentation.py",
    ("docs/agents.md", ""): "an installation; the environment of the tests is one",
    ("docs/agents.md", "sh"): "tests/agents/test_page.py",
    ("docs/clients.md", "python"): "tests/docs/test_examples.py",
    ("docs/install.md", "dockerfile"): "nothing here builds images; test_targets.py builds the wheel",
    ("docs/own-crawler.md", "go"): "tests/docs/test_snippets.py",
    ("docs/own-crawler.md", "js"): "tests/docs/test_snippets.py",
    ("docs/command-line.md", ""): "tests/cli/test_examples.py",
    ("docs/command-line.md", "json"): "tests/cli/test_examples.py",
    ("docs/grpc.md", "go"): "there is no compiler here that has what it imports",
    ("docs/grpc.md", "js"): "tests/gateway/grpc_door/test_page.py",
    ("docs/grpc.md", "python"): "tests/gateway/grpc_door/test_page.py",
    ("docs/grpc.md", "sh"): "tests/gateway/grpc_door/test_page.py",
    ("docs/guided-scripts.md", "python"): "tests/integrations/test_pages.py",
    ("docs/crawlee.md", "python"): "tests/integrations/test_pages.py",
    ("docs/crawl4ai.md", "python"): "tests/integrations/test_pages.py",
    ("docs/lab.md", "python"): "tests/lab/test_lab_page.py",
    ("docs/lab.md", "sh"): "tests/lab/test_lab_page.py",
    ("docs/lab-freshness.md", "json"): "tests/lab/test_freshness_page.py",
    ("docs/lab-freshness.md", "python"): "tests/lab/test_freshness_page.py",
    ("docs/lab-freshness.md", "sh"): "tests/lab/test_freshness_page.py",
    ("docs/lab-results.md", "python"): "tests/lab/test_report.py",
    ("docs/lab-webs.md", "python"): "tests/lab/test_webs_page.py",
    ("docs/lab-webs.md", "sh"): "tests/lab/test_webs_page.py",
    ("docs/lab-webs.md", "text"): "tests/lab/test_webs_page.py",
    ("docs/recipes.md", "python"): "tests/integrations/test_pages.py",
    ("docs/rules.md", "rego"): "tests/policy/test_rules.py",
    ("docs/scrapy.md", "python"): "tests/integrations/test_scrapy.py",
    ("docs/scrapy.md", "sh"): "tests/integrations/test_scrapy.py",
    ("docs/steering.md", "python"): "tests/docs/test_steering.py",
    ("docs/urlfrontier.md", "python"): "tests/gateway/urlfrontier/test_page.py",
    ("docs/urlfrontier.md", "sh"): "tests/gateway/urlfrontier/test_page.py",
    ("docs/urlfrontier.md", "yaml"): "settings of StormCrawler; there is none here to read them",
    ("docs/websocket.md", "python"): "tests/gateway/socket_door/test_page.py",
    ("docs/bus.md", "python"): "tests/gateway/bus/test_page.py",
    ("docs/websocket.md", "text"): "tests/gateway/socket_door/test_page.py",
    ("docs/access.md", "sh"): "openssl; tests/gateway/access/test_fleet.py makes the same with a library",
    ("docs/deploy.md", "ini"): "a unit of systemd; there is none here to read it",
    ("docs/deploy.md", "nginx"): "settings of nginx; there is none here to read them",
    ("docs/logs.md", "text"): "lines with the time of the day in them; tests/gateway/test_logs.py checks their form",
    ("docs/metrics.md", "yaml"): "settings of Prometheus; there is none here to read them",
}
NO_COMMAND = {
    "export CRAWLGUIDE_TOKEN=cg_…": "tests/gateway/access/test_fleet.py",
    "export CRAWLGUIDE_TOKEN=cg_… CRAWLGUIDE_CA=authority.pem": "tests/gateway/access/test_fleet.py",
    "make demo      # the built-in crawler and a Scrapy spider share a guide over a small web": "test_demo.py",
    "make test     # all tests, with real parts": "this is it",
    '{"crawl":"books","definition":{…}}': "lines with parts left out; tests/gateway/test_transfers.py reads whole ones",
}
PRINTED = {
    "docs/robots.md": ["robots https://example.com/robots.txt", "['https://example.com/a'] {'robots': 1}"],
    "docs/index.md": ["https://example.com/next"],
    "docs/logs.md": [],
    "docs/own-crawler.md": ["1", "1", "exhausted"],
    "docs/how-to/filter.md": ["['https://example.org/'] {'pictures': 1}"],
    "docs/how-to/stage.md": ["https://example.org/sql-index relational-1>worded-1"],
    "docs/how-to/strategy.md": ["https://example.org/ short-1", "https://good.example/news"],
    "docs/how-to/store.md": ["['1700000000 default: 1 fetches of me']"],
}


def test_every_block_is_run_or_it_is_said_why_not() -> None:
    run = {"console", "python", "toml", "json"}
    left = [
        (block.page, block.first)
        for block in blocks()
        if block.language not in run
        and (block.page, block.language) not in ELSEWHERE
        and block.first not in NO_COMMAND
        and not block.text.startswith("crawlguide ")  # tests/cli/test_examples.py
        and "──" not in block.text  # a drawing
    ]
    assert left == []


# a server


@pytest.mark.parametrize("page", [page for page in pages_with("console") if page != "README.md"])
def test_a_server_answers_as_the_page_says(page: str, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for block in of_page(page, "console"):
            lines = block.text.splitlines()
            steps = [(line[2:], lines[number + 1]) for number, line in enumerate(lines) if line.startswith("$ ")]
            assert 2 * len(steps) == len(lines)
            for command, expected in steps:
                words = shlex.split(USUAL.sub(rf"\1:{server.port}", command))
                printed = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout
                pattern = ".+?".join(re.escape(part) for part in expected.split("…"))
                assert re.match(pattern, printed), f"{command}\nprinted  {printed}\nexpected {expected}"
        assert server.stop() == 0


# programs


@pytest.mark.parametrize("page", [page for page in pages_with("python") if (page, "python") not in ELSEWHERE])
def test_the_programs_of_a_page_run(page: str, tmp_path: Path) -> None:
    """A block with the name of a file as its title is that file; the others are run, in a folder with these files."""
    printed = []
    for block in of_page(page, "python"):
        if block.title.endswith(".py"):
            (tmp_path / block.title).parent.mkdir(exist_ok=True)
            (tmp_path / block.title).write_text(block.text)
            continue
        command = [sys.executable, "-W", "error", "-c", block.text]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
        assert ended.returncode == 0, ended.stderr
        printed += ended.stdout.splitlines()
    assert printed == PRINTED.get(page, printed)


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: block.page)
def test_settings_load(block: object, tmp_path: Path) -> None:
    path = tmp_path / "crawlguide.toml"
    path.write_text(block.text)  # type: ignore[attr-defined]
    assert config.load(path) != config.Config()


@pytest.mark.parametrize("block", blocks("json"), ids=lambda block: block.page)
def test_json_is_json(block: object) -> None:
    for line in block.text.splitlines():  # type: ignore[attr-defined]
        assert msgspec.json.decode(line)


# what is made out of the code


@pytest.mark.parametrize("path", reference.pages(), ids=lambda path: path.name)
def test_what_is_made_out_of_the_code_is_up_to_date(path: Path) -> None:
    assert path.read_text() == reference.pages()[path], "run: .venv/bin/python scripts/reference.py"


def test_every_code_is_explained_with_its_status_and_class() -> None:
    page = (ROOT / "docs" / "errors.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| (\d+) \| `(\w+)` \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert {code: int(status) for code, status, *_ in rows} == STATUS
    assert {code: getattr(errors, name).code for code, _, name, *_ in rows} == {code: code for code in STATUS}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = [kind for kind in kinds if issubclass(kind, errors.CrawlGuideError)]
    assert {kind.code for kind in raised} == set(STATUS)
    assert [kind.__name__ for kind in raised if kind.__name__ not in str(errors.__doc__)] == []


def test_every_decision_is_listed() -> None:
    listed = re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", (ROOT / "docs" / "adr" / "index.md").read_text())
    assert listed == sorted(path.name for path in (ROOT / "docs" / "adr").glob("0*.md"))


def test_every_page_of_the_navigation_is_there() -> None:
    named = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(named) > 15
    assert [name for name in named if not (ROOT / "docs" / name).exists()] == []


def test_json_in_the_log_page_is_one_event() -> None:
    (block,) = of_page("docs/logs.md", "json")
    assert json.loads(block.text)["event"] == "request_refused"
