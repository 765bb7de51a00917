"""Writes docs/Ops.md and docs/Passes.md from the .td files, or checks that they are up to date.

Usage: generate-docs.py --build BUILD [--check]
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {
    "Ops.md": (
        "dialect/CommsOps.td",
        ["-gen-dialect-doc", "-dialect=comms"],
        "Operations of comms",
    ),
    "Passes.md": ("lowering/Passes.td", ["-gen-pass-doc"], "Passes"),
}


def tool(build: pathlib.Path) -> str:
    """Path of the mlir-tblgen that the build uses."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(r"^MLIR_DIR:\w+=(.*)/lib/cmake/mlir$", cache, re.MULTILINE)
    if not found:
        raise SystemExit(f"{build} is not configured: run make build first")
    return f"{found[1]}/bin/mlir-tblgen"


def generate(mlir_tblgen: str, source: str, flags: list[str], title: str) -> str:
    """The Markdown of one page."""
    include = pathlib.Path(mlir_tblgen).parents[1] / "include"
    body = subprocess.run(
        [mlir_tblgen, *flags, "-I", str(include), "-I", str(ROOT / "dialect"), str(ROOT / source)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    body = re.sub(r"<!--.*?-->\n?", "", body, flags=re.DOTALL)
    body = re.sub(r"[ \t]+$", "", body, flags=re.MULTILINE)
    body = re.sub(r"^# .*\n", "", body.lstrip())  # The page has a title of its own.
    if not re.search(r"^## ", body, re.MULTILINE):  # Passes come as ###: no level is left out.
        body = re.sub(r"^#(#+ )", r"\1", body, flags=re.MULTILINE)
    return f"# {title}\n\nMade from `{source}` by `make docs`; do not edit.\n\n{body.strip()}\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    mlir_tblgen = tool(options.build)
    stale = []
    for page, (source, flags, title) in PAGES.items():
        path = ROOT / "docs" / page
        text = generate(mlir_tblgen, source, flags, title)
        if options.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(page)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"docs/{', docs/'.join(stale)}: not what the .td files say; run make docs and commit")
    return 1 if stale else 0


sys.exit(main())
