"""The contents of a page of documentation: its blocks of code, and the commands in them.

A block is

  ```python              run in the page's own Python, one block after the other
  ```console             commands, `$ comms-run …`, each followed by its output
  ```sh                  commands without their output
  ```mlir                passes comms-opt; with `refused`, comms-check-sync emits the errors next to its lines
  ```c, ```cpp           compiles
  ```text                the output of the block above
  ```LANGUAGE title=FILE is written to FILE, which a later command must use

Shown output must be complete; runs of blanks count as one. `…` in a line stands for any text within the
line, and a line of only `…` for any lines. `# exit status N` after a command says that it ends with N (else 0).
"""

from __future__ import annotations

import pathlib
import re
import subprocess
from dataclasses import dataclass, field

#: Lines that a page has at most, so that one reads it at once. References are longer.
LONGEST = 300
REFERENCES = ("Spec.md", "PythonKernels.md", "CHANGELOG.md")
FENCE = re.compile(r"^```(\w*)(?: +([^\n]*))?$")


@dataclass
class Command:
    """One command of a reader, what the page shows of its output, and the status that it ends with."""

    text: str
    expected: str | None = None
    status: int = 0


@dataclass
class Block:
    """A fenced block. `line` is that of its fence; `shown` is the output that the page shows below it."""

    line: int
    language: str
    words: list[str]
    text: str
    shown: str | None = None
    commands: list[Command] = field(default_factory=list)

    @property
    def title(self) -> str:
        return next((word.removeprefix("title=") for word in self.words if word.startswith("title=")), "")


@dataclass
class Page:
    path: pathlib.Path
    text: str
    blocks: list[Block]
    faults: list[str]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def needs_torch(self) -> bool:
        return any(re.search(r"^ *(import|from) torch|^\$ torchrun", block.text, re.M) for block in self.blocks)

    @property
    def generated(self) -> bool:
        """Made from the .td files, whose examples are tests of their own."""
        return "by `make docs`; do not edit." in self.text

    @property
    def reference(self) -> bool:
        return self.name in REFERENCES or self.name.endswith("Reference.md")

    @property
    def dated(self) -> bool:
        """What was measured on some day, by commands of that day."""
        return self.path.parent.name == "history"


def read(path: pathlib.Path) -> Page:
    """The blocks of a page, and the places that hide code from the runner."""
    page = Page(path, path.read_text(encoding="utf-8"), [], [])
    lines = page.text.splitlines()
    number, below_block, in_list = 0, False, False
    while number < len(lines):
        line = lines[number]
        if line.startswith("```"):
            end = next((i for i in range(number + 1, len(lines)) if lines[i].startswith("```")), len(lines))
            match = FENCE.match(line)
            if not match or end == len(lines):
                page.faults.append(f"{path.name}:{number + 1}: no such fence: {line}")
                break
            _add(page, number, match, lines[number + 1 : end], below_block)
            number, below_block = end + 1, True
            continue
        if line.startswith("    ") and number and not lines[number - 1].strip() and not in_list:
            page.faults.append(f"{path.name}:{number + 1}: indented code, which nobody runs: use a fence")
        elif re.match(r"\s+```", line):
            page.faults.append(f"{path.name}:{number + 1}: an indented fence, which nobody runs")
        if line.strip():
            below_block = False
            if not line.startswith(" "):
                in_list = bool(re.match(r"[-*] |\d+\. ", line))
        number += 1
    return page


def _add(page: Page, number: int, match: re.Match[str], body: list[str], below_block: bool) -> None:
    text = "".join(line + "\n" for line in body)
    block = Block(number + 1, match[1], (match[2] or "").split(), text)
    if not block.language:
        page.faults.append(f"{page.name}:{block.line}: a block of no language")
    above = page.blocks[-1] if page.blocks and below_block else None
    if block.language == "text" and above and above.language in ("python", "sh") and above.shown is None:
        above.shown = text
        if above.commands:
            above.commands[-1].expected = text
        return
    if block.language == "console":
        block.commands = _console(page, block)
    elif block.language == "sh":
        block.commands = _script(page, block)
    page.blocks.append(block)


def _console(page: Page, block: Block) -> list[Command]:
    commands: list[Command] = []
    lines = iter(block.text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command += "\n" + next(lines, "")
            commands.append(Command(command, ""))
        elif not commands:
            page.faults.append(f"{page.name}:{block.line}: output before the first command")
            break
        elif status := re.fullmatch(r"# exit status (\d+)", line):
            commands[-1].status = int(status[1])
        else:
            commands[-1].expected = (commands[-1].expected or "") + line + "\n"
    if not commands:
        page.faults.append(f"{page.name}:{block.line}: a console without a command")
    return commands


def _script(page: Page, block: Block) -> list[Command]:
    """Lines are put together until the shell says that they are whole."""
    commands: list[Command] = []
    part = ""
    for line in block.text.splitlines():
        part += line + "\n"
        whole = not line.endswith("\\") and subprocess.run(["bash", "-n"], input=part, text=True, capture_output=True)
        if whole and whole.returncode == 0:
            if re.sub(r"^\s*(#.*)?$", "", part, flags=re.M).strip():
                commands.append(Command(part.strip()))
            part = ""
    if part:
        page.faults.append(f"{page.name}:{block.line}: no whole command: {part.strip()}")
    return commands


def differs(shown: str, printed: str) -> str:
    """Empty where what was printed is what the page shows, else the first shown line that does not come."""
    wanted, lines = _lines(shown), _lines(printed)
    text = "".join(line + "\n" for line in lines)
    if re.fullmatch(_expression(wanted), text):
        return ""
    for count in range(1, len(wanted) + 1):
        if not re.match(_expression(wanted[:count]), text):
            return f"{wanted[count - 1]}    (line {count} of what is shown)"
    return "(the end: more is printed than is shown)"


def _expression(wanted: list[str]) -> str:
    parts = [
        r"(?:[^\n]*\n)*?" if line == "…" else r"[^\n]*".join(map(re.escape, line.split("…"))) + r"\n" for line in wanted
    ]
    return "".join(parts)


def _lines(text: str) -> list[str]:
    """Without blank lines at the ends; runs of blanks are one."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]
