"""Writes what the .td files hold into docs: Ops.md and Passes.md, and the Semantics of each op in Spec.md.

--check writes nothing and fails where a page is out of date.

Usage: generate-docs.py --build BUILD [--check]
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Of each page its source, how mlir-tblgen reads it, its title, and what stands above the rest.
PAGES = {
    "Ops.md": (
        "dialect/CommsOps.td",
        ["-gen-dialect-doc", "-dialect=comms"],
        "Operations of comms",
        "Syntax and operands of each op. The [Spec](Spec.md) has the constraints, examples and the memory model.",
    ),
    "Passes.md": (
        "lowering/Passes.td",
        ["-gen-pass-doc"],
        "Passes",
        "`comms-opt FILE --pass-pipeline='builtin.module(comms-to-cpu{ranks=4})' --mlir-print-ir-after-all` runs the\n"
        "pipeline for the CPU and prints the IR after each pass; `comms-to-nvvm` is the one for GPUs.",
    ),
}


def tool(build: pathlib.Path) -> str:
    """Path of the mlir-tblgen that the build uses."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(r"^MLIR_DIR:\w+=(.*)/lib/cmake/mlir$", cache, re.MULTILINE)
    if not found:
        raise SystemExit(f"{build} is not configured: run make build first")
    return f"{found[1]}/bin/mlir-tblgen"


def pipe_table(html: re.Match[str]) -> str:
    """The Markdown of a table that mlir-tblgen writes as HTML."""
    rows = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row, re.DOTALL) for row in html[0].split("</tr>")]
    lines = [" | ".join(re.sub(r"</?code>", "`", cell) for cell in row) for row in rows if row]
    separator = " | ".join(":---" for _ in rows[0])
    return "\n".join(f"| {line} |" for line in [lines[0], separator, *lines[1:]])


def generate(mlir_tblgen: str, source: str, flags: list[str], title: str, above: str) -> str:
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
    body = body.replace("[TOC]\n\n", "")
    # A trait of every op says nothing about one.
    body = re.sub(r"^Traits: `Comms_KnownAttributes`\n\n", "", body, flags=re.MULTILINE)
    body = re.sub(r", `Comms_KnownAttributes`|`Comms_KnownAttributes`, ", "", body)
    body = re.sub(r"<table>.*?</table>", pipe_table, body, flags=re.DOTALL)
    body = body.replace("| :-----: |", "| :--- |")
    body = re.sub(r"^# .*\n", "", body.lstrip())  # The page has a title of its own.
    if not re.search(r"^## ", body, re.MULTILINE):  # Passes come as ###: no level is left out.
        body = re.sub(r"^#(#+ )", r"\1", body, flags=re.MULTILINE)
    return f"# {title}\n\nMade from `{source}` by `make docs`; do not edit.\n\n{above}\n\n{body.strip()}\n"


def operations(mlir_tblgen: str) -> dict[str, tuple[str, list[str]]]:
    """Summary and description, in paragraphs, of each op."""
    llvm_tblgen = pathlib.Path(mlir_tblgen).with_name("llvm-tblgen")
    include = pathlib.Path(mlir_tblgen).parents[1] / "include"
    source = ROOT / "dialect" / "CommsOps.td"
    command = list(map(str, [llvm_tblgen, "--dump-json", "-I", include, "-I", source.parent, source]))
    records = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = {}
    for name in records["!instanceof"]["Op"]:
        op = records[name]
        paragraphs = textwrap.dedent(op["description"]).strip().split("\n\n")
        found[op["opName"]] = (op["summary"], [one if is_kept(one) else " ".join(one.split()) for one in paragraphs])
    return found


def is_kept(paragraph: str) -> bool:
    """Whether its lines are as they are in the source: code, lists, tables."""
    return paragraph.startswith(("```", "- ", "* ", "|"))


def fill(paragraph: str) -> str:
    """In lines of a page."""
    if is_kept(paragraph):
        return paragraph
    return textwrap.fill(paragraph, 150, break_long_words=False, break_on_hyphens=False)


def specification(page: str, ops: dict[str, tuple[str, list[str]]]) -> str:
    """The Spec, with the summary of each op below its heading and its description as the beginning of its Semantics."""
    for name, (summary, paragraphs) in ops.items():
        pattern = re.compile(
            rf"(?<=^### comms\.{name}\n\n).*?\n\n\*\*Semantics\.\*\* .*?(?=^\*\*Operands)", re.M | re.S
        )
        section = pattern.search(page)
        if not section or not paragraphs[0]:
            continue
        old = section[0].strip().partition("**Semantics.** ")[2].split("\n\n")
        new = ["**Semantics.** " + paragraphs[0], *paragraphs[1:]]
        wrapped = [fill(text) for text in new]
        body = "\n\n".join([summary, *wrapped, *old[len(new) :]]) + "\n\n"
        page = page[: section.start()] + body + page[section.end() :]
    return page


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    mlir_tblgen = tool(options.build)
    stale = []
    spec = (ROOT / "docs" / "Spec.md").read_text(encoding="utf-8")
    made = {page: generate(mlir_tblgen, *inputs) for page, inputs in PAGES.items()}
    made["Spec.md"] = specification(spec, operations(mlir_tblgen))
    for page, text in made.items():
        path = ROOT / "docs" / page
        if options.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(page)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"docs/{', docs/'.join(stale)}: not what the .td files say; run make docs and commit")
    return 1 if stale else 0


sys.exit(main())
