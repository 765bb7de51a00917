# ===- conf.py - The site of the documentation ------------------------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Sphinx's settings: `make docs` renders README.md, docs/ and the pages next to them into build/site.

The source folder is the project's folder, so links between pages are the same as on GitHub. A broken link is an error.
The site needs no network: it uses no fonts, scripts or styles of other sites, and the search runs in the page.
"""

from __future__ import annotations

import pathlib
from typing import Any

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "CommsIR"
author = "the CommsIR authors"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = ["docs/results/*.json"]
html_theme = "furo"
html_title = "CommsIR"
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_static_path = [str(pathlib.Path(__file__).parent / "static")]
html_css_files = ["site.css"]
myst_heading_anchors = 4
myst_enable_extensions: list[str] = []
nitpicky = True

#: The pages of the menu. A page of docs/ that is in none of the lists comes last.
MENU = {
    "Use": ["Results", "Tutorial", "OwnCollective", "Torch", "TorchCompile", "Python", "Groups", "Gpu", "Debugging"],
    "Reference": [
        *("Glossary", "PythonKernels", "Spec", "Ops", "Passes", "Checker", "CheckerErrors", "CheckerSequences", "CApi"),
        *("TorchReference", "GroupsReference", "GpuReference", "Versioning", "Security"),
    ],
    "Contribute": [
        *("../CONTRIBUTING", "Architecture", "Rationale", "AddAnOp", "AddACollective", "AddAnAlgorithm"),
        *("AddAProtocol", "AddACheckerRule", "AddATarget", "Editors", "../SECURITY", "../CHANGELOG"),
    ],
    "Measurements": ["Benchmarking", "Benchmarks", "results/README"],
}


def menu_text() -> str:
    """The table of contents, as MyST writes it, for the end of the README."""
    named = {page for pages in MENU.values() for page in pages}
    rest = sorted(path.stem for path in (ROOT / "docs").glob("*.md") if path.stem not in named)
    menu = {caption: list(pages) for caption, pages in MENU.items()}
    menu["Measurements"] += [f"history/{path.stem}" for path in sorted((ROOT / "docs" / "history").glob("*.md"))]
    if rest:
        menu["More"] = rest
    text = ""
    for caption, pages in menu.items():
        names = [page.removeprefix("../") if page.startswith("../") else f"docs/{page}" for page in pages]
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
    return text


class MlirLexer(RegexLexer):  # type: ignore[misc]
    """Colors of MLIR, which Pygments does not know."""

    name = "MLIR"
    aliases = ["mlir"]
    tokens = {
        "root": [
            (r"//[^\n]*", Comment.Single),
            (r'"(?:[^"\\]|\\.)*"', String),
            (r"[%^][\w$.#-]+", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"[!#][a-z_]\w*(?:\.\w+)*", Name.Class),
            (words(("attributes", "ins", "outs", "args", "consume", "produce"), prefix=r"\b", suffix=r"\b"), Keyword),
            (r"\b[a-z_]+\.[a-z_.]+\b", Keyword),
            (r"\b(?:tensor|vector|memref|index|[ui]\d+|b?f\d+\w*)\b", Keyword.Type),
            (r"-?\b\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b", Number),
            (r"[-+*/=<>:,(){}\[\]?]+", Operator),
            (r"\s+", Text),
            (r".", Text),
        ]
    }


def add_menu(app: Any, name: str, source: list[str]) -> None:
    """The README is the first page; its text does not know of the site."""
    if name == root_doc:
        source[0] += app.config.menu


def add_index(app: Any, failure: Exception | None) -> None:
    """What a browser opens in a folder leads to the first page."""
    if failure is None and app.builder.name == "html":
        line = f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={root_doc}.html"><title>{project}</title>\n'
        (pathlib.Path(app.outdir) / "index.html").write_text(line, encoding="utf-8")


def setup(app: Any) -> None:
    app.add_lexer("mlir", MlirLexer)
    app.add_config_value("menu", menu_text(), "env")  # A build with another menu reads all pages again.
    app.connect("source-read", add_menu)
    app.connect("build-finished", add_index)
