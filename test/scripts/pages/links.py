"""Links between pages, their anchors, and the files of the project that pages name."""

from __future__ import annotations

import functools
import pathlib
import re

from pages.exceptions import WRITTEN

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = r"(?:dialect|lowering|runtime|frontend|tools|test|cmake|docs|commsir|examples)"
LINK = re.compile(r"\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
PATH = re.compile(rf"`({FOLDERS}/[\w./-]+)`")


def faults(page: pathlib.Path, text: str) -> list[str]:
    """Links that lead nowhere, and named files that are not there."""
    prose = re.sub(r"^```.*?^```$", lambda match: "\n" * match[0].count("\n"), text, flags=re.M | re.S)
    wrong: list[str] = []
    for number, line in _paragraphs(prose):
        place = f"{page.name}:{number}"
        for target in LINK.findall(line):
            wrong += [f"{place}: {fault}" for fault in _link(page, target)]
        for path in PATH.findall(line):
            if path not in WRITTEN.get(page.name, set()) and not _exists(path):
                wrong.append(f"{place}: there is no {path}")
    return wrong


def _paragraphs(text: str) -> list[tuple[int, str]]:
    """Paragraphs as one line each, since a link may be broken over lines."""
    found, start, part = [], 1, ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip():
            start = start if part else number
            part += " " + line.strip()
        elif part:
            found.append((start, part))
            part = ""
    return found


def _link(page: pathlib.Path, target: str) -> list[str]:
    if re.match(r"[a-z]+:", target):
        return []
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page.resolve()
    if not file.exists():
        return [f"{target}: there is no {path}"]
    if anchor and (file.suffix != ".md" or anchor not in anchors(file)):
        return [f"{target}: {file.name} has no heading #{anchor}"]
    return []


@functools.cache
def anchors(file: pathlib.Path) -> set[str]:
    """The anchors that headings get: lower case, no punctuation, blanks as hyphens, a number where one comes again."""
    text = re.sub(r"^```.*?^```$", "", file.read_text(encoding="utf-8"), flags=re.M | re.S)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.*?)\s*#*$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (f"{name}-{number}" if number else name) in found:
            number += 1
        found.add(f"{name}-{number}" if number else name)
    return found


def _exists(path: str) -> bool:
    """`lowering/check/Program` stands for its files; `examples/torch` lies in the package."""
    path = path.rstrip("/.")
    return any(
        (place / path).exists() or list((place / path).parent.glob(f"{(place / path).name}.*"))
        for place in (ROOT, ROOT / "frontend", ROOT / "frontend" / "commsir")
    )
