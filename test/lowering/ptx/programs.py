"""Random programs of one block, which loads and stores tiles and elements.

A program computes with them, and nests loops and branches whose conditions no compiler can know: data, the epoch, the
rank. It loads what other threads, warps and CTAs have stored, at shifted offsets and through several views of the same
memory, so that each barrier between threads is necessary.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

KINDS = ["i32", "i32", "i8", "i64", "f32", "bf16"]
LENGTHS = [1, 1, 3, 16, 17, 33, 64, 150, 257]
WINDOW, ARRAY, SCRATCH, PART, SEEN = 320, 288, 272, 270, 8192
MOST = 3  # What an index of a loop is at most.
DEPTH = 3


class Tile(NamedTuple):
    name: str
    length: int


class View(NamedTuple):
    name: str
    length: int
    type: str


class Program:
    """A kernel's text, and what a next op may use."""

    def __init__(self, lots: random.Random, ranks: int, cluster: int) -> None:
        self.lots, self.ranks, self.cluster, self.kind = lots, ranks, cluster, lots.choice(KINDS)
        # Without loops, branches and checks of bounds CTAs of a cluster count what arrives of a row, and do not meet.
        self.deepest = 0 if lots.random() < 0.25 else DEPTH
        self.lines: list[str] = []
        self.tiles: list[Tile] = []
        self.indices: list[str] = []
        self.depth, self.names, self.seen = 1, 0, 0
        self.stored: View | None = None
        sizes = {"own": WINDOW, "peer": WINDOW, "array": ARRAY, "scratch": SCRATCH}
        self.views = [View(f"%{name}", size, f"memref<{size}x{self.kind}>") for name, size in sizes.items()]
        self.views.append(View("%part", PART, f"memref<{PART}x{self.kind}, strided<[1]>>"))

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def let(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def type(self, length: int) -> str:
        return f"tensor<{length}x{self.kind}>"

    def op(self, integer: Sequence[str], real: Sequence[str]) -> str:
        return self.lots.choice(integer if self.kind[0] == "i" else real)

    def keep(self, text: str, length: int) -> None:
        """A new tile."""
        self.tiles.append(Tile(self.let(text), length))

    def pick(self) -> Tile:
        return self.lots.choice(self.tiles[-4:] if self.lots.random() < 0.6 else self.tiles)

    def same(self, length: int) -> str:
        return self.lots.choice([tile.name for tile in self.tiles if tile.length == length][-4:])

    # Numbers that a compiler cannot fold ------------------------------------------------------------------------------

    def constant(self, number: int) -> str:
        return self.let(f"arith.constant {number} : index")

    def index(self, limit: int) -> str:
        """A number from 0 to the limit."""
        first = self.lots.choice([0, min(1, limit), min(16, limit), limit, self.lots.randint(0, limit)])
        base = self.constant(first)
        if not self.deepest:
            return base
        choice = self.lots.choice(["constant", "constant", "loop", "loop", "chosen", "unknown"])
        if choice == "loop" and self.indices:
            factors = [factor for factor in (1, 2, 8, 17, 64) if factor * MOST + first <= limit]
            factor = self.constant(self.lots.choice(factors or [0]))
            scaled = self.let(f"arith.muli {self.lots.choice(self.indices)}, {factor} : index")
            return self.let(f"arith.addi {base}, {scaled} : index")
        if choice == "chosen":
            other = self.constant(self.lots.randint(0, limit))
            return self.let(f"arith.select {self.condition()}, {base}, {other} : index")
        return self.unknown(base) if choice == "unknown" else base

    def unknown(self, number: str) -> str:
        return self.let(f"arith.addi {number}, %zero : index")

    def element(self) -> str:
        view = self.lots.choice(self.views)
        return self.let(f"memref.load {view.name}[{self.constant(self.lots.randrange(view.length))}] : {view.type}")

    def condition(self) -> str:
        choice = self.lots.choice(["data", "data", "epoch", "loop", "rank" if self.ranks > 1 else "data"])
        if choice == "loop" and self.indices:
            return self.let(f"arith.cmpi ne, {self.lots.choice(self.indices)}, %c1 : index")
        if choice == "rank":
            return self.let(f"arith.cmpi {self.lots.choice(['eq', 'ne'])}, %me, %c0 : index")
        if choice == "epoch":
            return self.let(f"arith.cmpi {self.lots.choice(['eq', 'ne'])}, %zero, %c0 : index")
        return self.let(f"arith.{self.op(['cmpi sgt'], ['cmpf ogt'])}, {self.element()}, %none : {self.kind}")

    # Ops on tiles and memory ------------------------------------------------------------------------------------------

    def valid(self, length: int) -> str:
        return f" valid {self.index(length)}" if self.lots.random() < 0.2 else ""

    def load(self) -> None:
        # What was stored last is what other threads may not have stored yet.
        view = self.stored if self.stored and self.lots.random() < 0.6 else self.lots.choice(self.views)
        length = self.lots.choice(LENGTHS)
        at = self.index(view.length - length)
        self.keep(f"comms.tile_load {view.name}[{at}]{self.valid(length)} : {view.type} -> {self.type(length)}", length)
        if self.seen + length <= SEEN:
            where = self.constant(self.seen)
            self.seen += length
            self.line(
                f"comms.tile_store {self.tiles[-1].name}, %seen[{where}] : {self.type(length)},"
                f" memref<{SEEN}x{self.kind}>"
            )

    def store(self) -> None:
        view, tile = self.lots.choice(self.views), self.pick()
        at, valid = self.index(view.length - tile.length), self.valid(tile.length)
        self.stored = view
        self.line(f"comms.tile_store {tile.name}, {view.name}[{at}]{valid} : {self.type(tile.length)}, {view.type}")

    def arithmetic(self) -> None:
        name, length = self.pick()
        op = self.op(["addi", "subi", "muli", "xori", "maxsi"], ["addf", "subf", "maximumf", "minimumf"])
        self.keep(f"arith.{op} {name}, {self.same(length)} : {self.type(length)}", length)

    def reduce(self) -> None:
        tile, op = self.pick(), self.op(["sum", "max", "xor"], ["sum", "max", "min"])
        self.keep(f"comms.row_reduce {op} {tile.name} : {self.type(tile.length)} -> {self.type(1)}", 1)

    def spread(self) -> None:
        length, choice = self.lots.choice(LENGTHS), self.lots.choice(["row", "splat", "iota"])
        if choice == "row" and any(tile.length == 1 for tile in self.tiles):
            self.keep(f"comms.broadcast_row {self.same(1)} : {self.type(1)} -> {self.type(length)}", length)
        elif choice == "iota" and self.kind[0] == "i":
            self.keep(f"comms.iota : {self.type(length)}", length)
        else:
            self.keep(f"comms.splat {self.element()} : {self.kind} -> {self.type(length)}", length)

    def move(self) -> None:
        view, value = self.lots.choice(self.views[:-1]), self.element()  # Elements of a subview cannot be stored.
        self.line(f"memref.store {value}, {view.name}[{self.index(view.length - 1)}] : {view.type}")

    # Regions ----------------------------------------------------------------------------------------------------------

    def region(self, head: str, yields: Sequence[int] = (), tiles: Sequence[Tile] = (), index: str = "") -> None:
        """Ops that may use these tiles and this index, and, where tiles are yielded, of which lengths."""
        outer = list(self.tiles), list(self.indices)
        self.line(head)
        self.depth += 1
        self.tiles += tiles
        self.indices += [index] if index else []
        for _ in range(self.lots.randint(1, 4)):
            self.statement()
        if yields:
            names = ", ".join(self.same(length) for length in yields)
            self.line(f"scf.yield {names} : {', '.join(map(self.type, yields))}")
        self.depth -= 1
        self.tiles, self.indices = outer

    def count(self) -> str:
        """How often a loop goes round."""
        known = self.constant(self.lots.randint(1, MOST))
        choice = self.lots.choice(["known", "unknown", "any"])
        return self.index(MOST) if choice == "any" else known if choice == "known" else self.unknown(known)

    def loop(self) -> None:
        carried = [self.pick() for _ in range(self.lots.randint(0, 2))]
        lengths = [tile.length for tile in carried]
        index, count, result = self.name(), self.count(), self.name()
        inner = [Tile(self.name(), length) for length in lengths]
        starts = ", ".join(f"{a.name} = {b.name}" for a, b in zip(inner, carried, strict=True))
        head = f"scf.for {index} = %c0 to {count} step %c1"
        if carried:
            head = f"{result}:{len(carried)} = {head}"
            head += f" iter_args({starts}) -> ({', '.join(map(self.type, lengths))})"
        self.region(head + " {", lengths, inner, index)
        self.line("}")
        self.tiles += [Tile(f"{result}#{number}", length) for number, length in enumerate(lengths)]

    def branch(self) -> None:
        choice, condition = self.lots.choice(["then", "else", "tile"]), self.condition()
        length = self.pick().length
        if choice == "tile":
            result = self.name()
            self.region(f"{result} = scf.if {condition} -> ({self.type(length)}) {{", [length])
            self.region("} else {", [length])
            self.tiles.append(Tile(result, length))
        else:
            self.region(f"scf.if {condition} {{")
            if choice == "else":
                self.region("} else {")
        self.line("}")

    def repeat(self) -> None:
        count, before, after = self.count(), self.name(), self.name()
        self.region(f"{self.name()} = scf.while ({before} = %c0) : (index) -> index {{", index=before)
        more = self.let(f"arith.cmpi slt, {before}, {count} : index")
        self.line(f"scf.condition({more}) {before} : index")
        self.line("} do {")
        self.region(f"^bb0({after}: index):", index=after)
        self.line(f"scf.yield {self.let(f'arith.addi {after}, %c1 : index')} : index")
        self.line("}")

    def switch(self) -> None:
        self.line(f"scf.index_switch {self.index(2)}")
        for case in self.lots.choice([["case 0"], ["case 0", "case 1"], ["case 1", "case 2"]]) + ["default"]:
            self.region(f"{case} {{")
            self.line("  scf.yield")
            self.line("}")

    def statement(self) -> None:
        rows = 6 if self.deepest else 15
        flat = {self.load: 30, self.store: 30, self.arithmetic: 10, self.reduce: rows, self.spread: 6, self.move: 5}
        nested = {self.loop: 6, self.branch: 8, self.repeat: 3, self.switch: 3}
        ways = flat | nested if self.depth <= self.deepest else flat
        self.lots.choices(list(ways), list(ways.values()))[0]()

    def text(self) -> str:
        kind = self.kind
        window = f"!comms.window<{WINDOW}x{kind}>"
        own, array, scratch, part = (self.views[number].type for number in (0, 2, 3, 4))
        arguments = f"%window: {window}, %array: {array}, %left: {scratch}, %seen: memref<{SEEN}x{kind}>"
        # A cluster has no comms.scratch: an array stands in for it there.
        arguments += f", %scratch: {scratch}" * (self.cluster > 1)
        park = f"  %scratch = comms.scratch : {scratch}\n" * (self.cluster == 1)
        head = f"""comms.kernel @program({arguments}) attributes {{blocks = 1 : i64}} {{
  %team = comms.team world
  %me = comms.rank %team
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c40 = arith.constant 40 : index
  %none = arith.constant {"0" if kind[0] == "i" else "0.0"} : {kind}
  %epoch = comms.epoch
  %zero = arith.shrui %epoch, %c40 : index
  %self = arith.addi %me, %zero : index
  %own = comms.local %window : {window} -> {own}
  %peer = comms.peer %window at %self of %team : {window} -> {own}
  %part = memref.subview %own[0] [{PART}] [1] : {own} to {part}
{park}  %clear = comms.splat %none : {kind} -> {self.type(SCRATCH)}
  comms.tile_store %clear, %scratch[%c0] : {self.type(SCRATCH)}, {scratch}
"""
        self.load()
        for _ in range(self.lots.randint(6, 16)):
            self.statement()
        tail = f"""  %last = comms.tile_load %scratch[%c0] : {scratch} -> {self.type(SCRATCH)}
  comms.tile_store %last, %left[%c0] : {self.type(SCRATCH)}, {scratch}
  comms.return
}}
"""
        return head + "\n".join(self.lines) + "\n" + tail
