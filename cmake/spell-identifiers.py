#!/usr/bin/env python3
"""Looks for British spelling inside identifiers, which codespell reads as one word each.

    spell-identifiers.py FILE...

Splits the identifiers of each file at underscores and capitals and looks the parts up in codespell's table from British
to American English. Prints one line per finding and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import codespell_lib

#: Words that codespell's table lacks, and their American spelling.
LACKING = {
    "neighbours": "neighbors",  # codespell:ignore
    "quantise": "quantize",
    "quantised": "quantized",
    "quantises": "quantizes",
}

#: Parts of identifiers that keep their spelling: former names that programs may still use, NumPy's flag, a test input.
KEPT = {"quantised", "specialise", "drop_licences", "writeable", "signalled_by_data"}  # codespell:ignore

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def read_table() -> dict[str, str]:
    """British words, in lower case, and their American spelling."""
    path = Path(codespell_lib.__file__).parent / "data/dictionary_en-GB_to_en-US.txt"
    pairs = (line.split("->") for line in path.read_text().splitlines() if "->" in line)
    return {british: american.strip(", ") for british, american in pairs} | LACKING


def find(text: str, table: dict[str, str]) -> list[tuple[int, str, str]]:
    """The line, the identifier and the American word of each British word in identifiers of `text`."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for identifier in _IDENTIFIER.findall(line):
            if not any(kept in identifier.replace("-", "_") for kept in KEPT):
                words = (part.lower() for part in _PART.findall(identifier))
                found += [(number, identifier, table[word]) for word in words if word in table]
    return found


def main(paths: list[str]) -> int:
    table = read_table()
    status = 0
    for path in paths:
        text = Path(path).read_text(errors="replace")
        # A file's name is read like its first line.
        for number, identifier, american in find(path, table) + find(text, table):
            print(f"{path}:{number}: {identifier}: American English has '{american}'")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
