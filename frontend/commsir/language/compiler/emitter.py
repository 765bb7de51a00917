"""Builds the text of a kernel, line by line, each with its place in the Python source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..source import Place


@dataclass
class Line:
    text: str
    depth: int
    # Ends an op, and so carries a location.
    place: Place | None


_REPEATABLE = {
    *("memref.load", "memref.dim", "comms.tile_load", "comms.splat", "comms.row_reduce", "comms.check_bounds"),
    *("comms.team", "comms.team_split", "comms.rank", "comms.size", "comms.translate_rank", "comms.peer"),
    *("comms.block_id", "comms.num_blocks", "comms.epoch"),
}
_AUTO = re.compile(r"%(\d+)\b")


class Emitter:
    """An append-only list of lines. Names of values are numbers until the text is made; then hints count."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.depth = 2
        self.next = 0
        self.hints: dict[int, str] = {}
        self.constants: dict[tuple[str, str], str] = {}
        self.prologue: list[Line] = []
        # Regions of collectives hold their own constants, where they stand.
        self.inline_constants = False

    def fresh(self) -> str:
        self.next += 1
        return f"%{self.next - 1}"

    @property
    def is_nested(self) -> bool:
        """Whether emitted ops are inside a branch or loop, and may not run."""
        return self.depth > 2

    def emit(self, text: str, place: Place | None) -> None:
        self.lines.append(Line(text, self.depth, place))

    def result(self, text: str, place: Place | None) -> str:
        """Emits an op of one result, whose name is returned."""
        name = self.fresh()
        self.emit(f"{name} = {text}", place)
        return name

    def once(self, text: str, place: Place | None) -> str:
        """An op at the kernel's beginning, where every region sees its result; it is dropped if none uses it."""
        name = self.fresh()
        self.prologue.append(Line(f"{name} = {text}", 2, place))
        return name

    def hint(self, name: str, hint: str) -> None:
        match = _AUTO.fullmatch(name)
        if match and hint.isascii():
            self.hints.setdefault(int(match[1]), hint)

    def constant(self, literal: str, type_: str, place: Place | None, hint: str = "") -> str:
        key = (literal, type_)
        if key not in self.constants:
            text = f"arith.constant {literal}" + (f" : {type_}" if type_ != "i1" else "")
            name = self.result(text, place) if self.inline_constants else self.once(text, place)
            if hint:
                self.hint(name, hint)
            self.constants[key] = name
        return self.constants[key]

    @contextmanager
    def into(self, lines: list[Line], deeper: int = 0) -> Iterator[None]:
        """Appends to another list."""
        saved = self.lines, self.depth
        self.lines, self.depth = lines, self.depth + deeper
        try:
            yield
        finally:
            self.lines, self.depth = saved

    @contextmanager
    def region(self) -> Iterator[None]:
        """The region of a collective, which sees no value from outside but constants."""
        saved = self.constants, self.inline_constants
        self.constants, self.inline_constants = {}, True
        try:
            yield
        finally:
            self.constants, self.inline_constants = saved

    def splice(self, lines: list[Line]) -> None:
        self.lines.extend(lines)

    def render(self, header: str, place: Place, taken: set[str], locations: bool) -> str:
        """The module's text: header, constants that are used, body."""
        everything = self._used_prologue() + self.lines
        names = self._names([line.text for line in everything], taken)
        aliases: dict[Place, str] = {}

        def located(line: Line) -> str:
            text = "  " * line.depth + _AUTO.sub(lambda m: names[m[1]], line.text)
            if not locations or line.place is None:
                return text
            return f"{text} loc({aliases.setdefault(line.place, f'#l{len(aliases)}')})"

        body = [located(line) for line in everything]
        end = Line("comms.return", 2, place)
        body.append(located(end))
        tail = "  }"
        if locations:
            tail += f" loc({aliases.setdefault(place, f'#l{len(aliases)}')})"
        module = ["module {", f"  {header} {{", *body, tail, "}"]
        tables = [f"{alias} = loc({quote(f)}:{line}:{column})" for (f, line, column), alias in aliases.items()]
        return "\n".join(module + tables) + "\n"

    def _used_prologue(self) -> list[Line]:
        used = {number for line in self.lines for number in _AUTO.findall(line.text)}
        kept: list[Line] = []
        for line in reversed(self.prologue):
            made, *needed = _AUTO.findall(line.text)
            if made in used:
                used.update(needed)
                kept.append(line)
        return kept[::-1]

    def _names(self, texts: list[str], taken: set[str]) -> dict[str, str]:
        """Names in the order of their first use: the programmer's name, else a number."""
        names: dict[str, str] = {}
        count = 0
        used = set(taken)
        for text in texts:
            for number in _AUTO.findall(text):
                if number in names:
                    continue
                hint = self.hints.get(int(number))
                if hint is None:
                    names[number] = f"%{count}"
                    count += 1
                    continue
                unique, suffix = hint, 0
                while unique in used:
                    suffix += 1
                    unique = f"{hint}_{suffix}"
                used.add(unique)
                names[number] = f"%{unique}"
        return names


def may_be_repeated(line: str) -> bool:
    """Whether repeating an op gives the same result without side effects."""
    op = line.split(" = ", 1)[-1].split(" ", 1)[0]
    return op.startswith(("arith.", "math.", "tensor.")) or op in _REPEATABLE


def quote(text: str) -> str:
    """A string literal in MLIR syntax; characters outside of plain ASCII become UTF-8 escapes, and "?" stands for
    control characters, which the parser refuses.
    """
    text = "".join("?" if ord(c) < 32 and c not in "\n\t" or 127 <= ord(c) < 160 else c for c in text)
    plain = (chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\{b:02X}" for b in text.encode(errors="replace"))
    return '"' + "".join(plain) + '"'
