"""What a thread of PTX is, and what it does to memory of all ranks at once."""

import dataclasses
import functools

from matrices import Copies, Groups, Maps
from memory import RELAXED, SYS, Memory, Viewer
from registers import WIDTHS, combined


@dataclasses.dataclass
class Context:
    """One thread."""

    memory: Memory
    who: Viewer
    params: int
    thread: int
    threads: int
    cta: int
    ctas: int
    cluster: int
    symbols: dict[str, int]
    maps: Maps
    copies: Copies = dataclasses.field(default_factory=Copies)
    #: Of the first of four warps.
    groups: Groups = dataclasses.field(default_factory=Groups)


def multimem_read(c: Context, address: int, what: str, kind: str, count: int) -> list[int]:
    size = WIDTHS[kind] // 8
    parts = [c.memory.read(c.who, at, size, count, RELAXED, SYS) for at in c.memory.everywhere(address)]
    return [combined(what, kind, list(values)) for values in zip(*parts, strict=True)]


def multimem_write(c: Context, address: int, size: int, values: list[int]) -> None:
    for at in c.memory.everywhere(address):
        c.memory.write(c.who, at, size, values, RELAXED, SYS)


def multimem_update(c: Context, address: int, what: str, kind: str, values: list[int]) -> None:
    size = WIDTHS[kind] // 8
    for base in c.memory.everywhere(address):
        for number, value in enumerate(values):
            add = functools.partial(lambda value, old: combined(what, kind, [old, value]), value)
            c.memory.update(c.who, base + number * size, size, add, RELAXED, SYS, False)
