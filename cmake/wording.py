#!/usr/bin/env python3
"""Looks for phrases that field engineers read as something else, or not at all.

    wording.py FILE...

Prints one line per finding, with what to write, and exits with 1 if there is any. A name in code, such as a variable
`beside`, is no finding; the table says what is.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

#: What is refused, as a regular expression, and what to write.
REFUSED = {
    r"\bbut for (?=[a-z`'-])": "except",
    # As a preposition: a word follows, which a name in code has not. "beside a matmul" is in titles of reports.
    r"\bbeside (?!(?:is|if|in|and|or|not|for|else)\b|communication|a matmul)(?=[a-z`…{])": "next to, in addition to",
    r"\bfor ever\b": "forever; or name the deadlock",
    r"\b(?:hitherto|therein|whereof|whilst|amongst|henceforth|thereby)\b": "plain words",
    r"\bwhat is put\b": "the subject: who puts what",
    r"\bwho waits\b": "the rank, thread or process that waits",
}

#: A space in a phrase: also the end of a line, with the mark of a comment on the next.
_GAP = r"(?: |\n[ \t]*(?:(?:/{2,3}|#:?|\*) )?)"
_REFUSED = [(re.compile(phrase.replace(" ", _GAP), re.IGNORECASE), better) for phrase, better in REFUSED.items()]


def find(text: str) -> list[tuple[int, str, str]]:
    """The line, the phrase and what to write of each refused phrase in `text`."""
    found = [
        (text.count("\n", 0, match.start()) + 1, " ".join(re.findall(r"\w+", match[0])), better)
        for phrase, better in _REFUSED
        for match in phrase.finditer(text)
    ]
    return sorted(found)


def main(paths: list[str]) -> int:
    status = 0
    for path in paths:
        for number, phrase, better in find(Path(path).read_text(errors="replace")):
            print(f"{path}:{number}: '{phrase}': write {better}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
