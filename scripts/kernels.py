"""Compile every kernel and keep the machine code, so that nothing that has to be in time waits for a compiler.

.venv/bin/python scripts/kernels.py
"""

from __future__ import annotations

import sys

from crawlguide.core.compiling import all_modules, compile_kernels

if __name__ == "__main__":
    sys.stdout.write("Kernels: what is not compiled for this machine yet takes about a minute.\n")
    sys.stdout.flush()
    compile_kernels(all_modules())
