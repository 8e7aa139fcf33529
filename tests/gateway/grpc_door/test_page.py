"""docs/grpc.md: its programs run as they stand, made of guide.proto by stock tools."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import of_page
from tests.gateway.conftest import Served

from crawlguide import Client
from crawlguide.gateway.grpc import guide_pb2
from crawlguide.gateway.grpc.transport import CODES
from crawlguide.gateway.responses import STATUS

PAGE = "docs/grpc.md"
PROTO = Path(guide_pb2.__file__).with_name("guide.proto")
MODULES = os.environ.get("CRAWLGUIDE_TEST_NODE_MODULES", "")
GO_PACKAGES = Path("/usr/share/gocode")  # where Debian keeps the sources of packages for Go
has_go = all(map(shutil.which, ("go", "protoc", "protoc-gen-go", "protoc-gen-go-grpc"))) and all(
    (GO_PACKAGES / "src" / "google.golang.org" / package).is_dir() for package in ("grpc", "protobuf")
)
FREE = {"policy": {"robots": "ignore", "default_delay_s": 0}}


def run(*words: str, cwd: Path, within_s: float = 60, more: dict[str, str] | None = None) -> str:
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | (more or {})
    ended = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=within_s, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def prepared(served: Served, text: str, crawl: str) -> str:
    with Client(served.url) as guide:
        guide.define(crawl, FREE)
    return text.replace("127.0.0.1:8081", served.grpc_url.removeprefix("grpc://")).replace('"books"', f'"{crawl}"')


def test_a_client_made_by_stock_tools_works(served: Served, crawl: str, tmp_path: Path) -> None:
    shutil.copy(PROTO, tmp_path)
    run(sys.executable, *shlex.split(of_page(PAGE, "sh")[1].text)[1:], cwd=tmp_path)
    (tmp_path / "crawler.py").write_text(prepared(served, of_page(PAGE, "python")[0].text, crawl))
    assert run(sys.executable, "crawler.py", cwd=tmp_path).splitlines() == [
        "https://example.com/ 1 1",
        "INVALID_ARGUMENT budget.max_urls: expected an integer from 1 to 10000, got -3",
        "['0', '1', '2']",
    ]
    (tmp_path / "errors.py").write_text(prepared(served, of_page(PAGE, "python")[1].text, crawl))
    printed = run(sys.executable, "errors.py", cwd=tmp_path)
    assert printed == "{'code': 'malformed_request', 'field': 'budget.max_urls', 'retry_after_s': None}\n"


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_a_client_for_node_works(served: Served, crawl: str, tmp_path: Path) -> None:
    """With packages of npm: a folder that has them is named by CRAWLGUIDE_TEST_NODE_MODULES, else they are fetched."""
    shutil.copy(PROTO, tmp_path)
    if MODULES:
        (tmp_path / "node_modules").symlink_to(MODULES)
    else:
        words = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "@grpc/grpc-js", "@grpc/proto-loader"]
        fetched = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
        if fetched.returncode:
            pytest.skip(f"npm cannot fetch what the client needs: {fetched.stderr[-200:]}")
    (tmp_path / "guide.mjs").write_text(prepared(served, of_page(PAGE, "js")[0].text, crawl))
    assert run("node", "guide.mjs", cwd=tmp_path).splitlines() == [
        "https://example.com/ 12 1",
        "3 budget.max_urls: expected an integer from 1 to 10000, got -3",
        "first advice",
    ]


@pytest.mark.skipif(not has_go, reason="Go, protoc, its plugins for Go or Debian's packages of gRPC are not installed")
def test_a_client_for_go_compiles_and_works(served: Served, crawl: str, tmp_path: Path) -> None:
    generated, program = tmp_path / "src", tmp_path / "src" / "example"
    program.mkdir(parents=True)
    run(
        "protoc",
        f"--proto_path={PROTO.parent}",
        f"--go_out={generated}",
        f"--go-grpc_out={generated}",
        PROTO.name,
        cwd=tmp_path,
    )
    (program / "guide.go").write_text(prepared(served, of_page(PAGE, "go")[0].text, crawl))
    offline = {"GO111MODULE": "off", "GOPATH": f"{tmp_path}:{GO_PACKAGES}"}
    assert run("go", "vet", "example", cwd=tmp_path, more=offline) == ""
    assert run("go", "run", "example", cwd=tmp_path, more=offline).splitlines() == [
        "https://example.com/ 1",
        "InvalidArgument budget.max_urls: expected an integer from 1 to 10000, got -3",
    ]


def test_every_code_is_on_the_page() -> None:
    words = Path(__file__).resolve().parents[3].joinpath(PAGE).read_text()
    assert CODES.keys() == STATUS.keys()
    for code, status in CODES.items():
        if code != "method_not_allowed":  # gRPC says it itself
            assert f"`{code}`" in words
            assert f"`{status.name}`" in words
