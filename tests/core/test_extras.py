"""What is not installed: every message says how to mend that in the same words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import crawlguide
from crawlguide.core.extras import installing

PACKAGE = Path(crawlguide.__file__).parent


def test_a_client_over_grpc_says_what_to_install() -> None:
    program = "import sys; sys.modules['grpc'] = None; from crawlguide import Client; Client('grpc://127.0.0.1:1')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    last = ended.stderr.splitlines()[-1]
    assert last.endswith(f"url: gRPC needs grpc, which is not installed: {installing('grpc')}")


def test_no_message_has_words_of_its_own_for_it() -> None:
    said = [file for file in PACKAGE.rglob("*.py") if "pip install '" in file.read_text()]
    assert [str(file.relative_to(PACKAGE)) for file in said] == ["core/extras.py"]
