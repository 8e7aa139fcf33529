"""Compile every kernel and keep the machine code, so that nothing that has to be in time waits for a compiler.

.venv/bin/python scripts/kernels.py
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"


def modules() -> list[str]:
    """Those in which kernels stand; to import them compiles them."""
    files = [path for path in sorted(SOURCE.rglob("*.py")) if "\n@kernel(" in path.read_text()]
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in files]


if __name__ == "__main__":
    sys.stdout.write("Kernels: what is not compiled for this machine yet takes a minute or two.\n")
    sys.stdout.flush()
    for name in modules():
        import_module(name)
