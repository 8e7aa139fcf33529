"""Build a wheel that carries the machine code of all kernels, so that no start with it has to compile.

.venv/bin/python -m scripts.wheel --out dist

The code is for processors of the kind that `processor.KINDS` names, for this version of Python and of numba; elsewhere
kernels are compiled at the first start, as from a wheel without code.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from crawlguide.core import processor

ROOT = Path(__file__).resolve().parents[1]
KIND = "x86-64-v3"
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}-none-linux_x86_64"
COMPILE = """
import sys
from crawlguide.core.compiling import all_modules, compile_kernels
if __name__ == "__main__":
    compile_kernels(sys.argv[1:] or all_modules())
"""


def plain_wheel(folder: Path) -> Path:
    """The one that is built of the source alone."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)  # noqa: S603
    return next(folder.glob("*.whl"))


def compile_in(tree: Path, modules: list[str]) -> None:
    """Compile what was unpacked, beside its source."""
    tree.joinpath("crawlguide", processor.MADE_FOR.name).write_text(f"{KIND}\n")
    program = tree.parent / "compile.py"
    program.write_text(COMPILE)
    bare = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    environment = {**bare, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, str(program), *modules], env=environment, cwd=tree.parent, check=True)  # noqa: S603


def packed(tree: Path, plain: Path, out: Path) -> Path:
    """The files of a tree as a wheel for one kind of platform, with the list of their digests that it must have."""
    about = next(tree.glob("*.dist-info"))
    described = (about / "WHEEL").read_text().replace("Root-Is-Purelib: true", "Root-Is-Purelib: false")
    (about / "WHEEL").write_text(described.replace("Tag: py3-none-any", f"Tag: {TAG}"))
    (about / "RECORD").unlink()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / plain.name.replace("py3-none-any", TAG)
    record = about.relative_to(tree) / "RECORD"
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for file in tree.rglob("*") if file.is_file()):
            name, content = file.relative_to(tree), file.read_bytes()
            archive.write(file, name)
            digest = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        archive.writestr(str(record), "\n".join([*lines, f"{record},,", ""]))
    return wheel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="The folder for the wheel.")
    parser.add_argument("--only", nargs="*", default=[], help="Modules whose kernels are compiled; without it all.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain, tree = plain_wheel(Path(folder)), Path(folder) / "tree"
        with zipfile.ZipFile(plain) as archive:
            archive.extractall(tree)
        compile_in(tree, options.only)
        sys.stdout.write(f"{packed(tree, plain, options.out)}\n")


if __name__ == "__main__":
    main()
