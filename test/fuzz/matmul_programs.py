"""Random kernels of matrix products beside communication, in Python, and what NumPy makes of each step.

A program is a chain of steps on a matrix that every rank has: products of all types, layouts, scales, addends and
tiles, collectives with regions, and exchanges tile by tile between roles. Each step writes an array of its own. What
that is to hold follows from the arrays that the step has read, so that errors of one step do not add up to the next.
"""

import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Arrays = dict[str, list[Array]]
#: For each rank, what it is to have in an array, and how much that may differ.
Wanted = Iterator[tuple[Array, Array]]

TYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}
F8 = ("f8", "f8e5m2")
#: The largest relative error of rounding to a type, the largest error next to zero, and the largest number.
ROUNDING = {
    "f32": (2.0**-24, 2.0**-149, 3e38),
    "f16": (2.0**-11, 2.0**-24, 65504.0),
    "bf16": (2.0**-8, 2.0**-133, 3e38),
    "f8": (2.0**-4, 2.0**-10, 448.0),
    "f8e5m2": (2.0**-3, 2.0**-17, 57344.0),
}
SIZES = [1, 1, 3, 7, 16, 24, 63, 64, 65, 127, 128, 129, 260]
SMALL_SIZES = [1, 3, 8, 16, 24, 65]
#: All blocks of a rank wait for one another.
MEET = 'barrier(team_split(team(), "inner", 1), "grid")'
#: Behind each synchronization without which a program is not right.
SYNC = "  # sync"

#: Bodies of a consume region of `t` and up to one argument, its shape for rows by columns, and the same for NumPy.
REGIONS: list[tuple[str, tuple[int, int] | None, Callable[..., Array]]] = [
    ("t + d", (1, 1), lambda t, d: t + d),
    ("maximum(t * d, 0.0)", (0, 1), lambda t, d: np.maximum(t * d, 0)),
    ("fma(t, d, t)", (1, 0), lambda t, d: t * d + t),
    ("clip(t, -8.0, 8.0)", None, lambda t: np.clip(t, -8, 8)),
    ("t - t.max()", None, lambda t: t - t.max(1, keepdims=True)),
    ("t * 0.5", None, lambda t: t * 0.5),
]
#: The same of a produce region of `x` and up to one more input.
PRODUCED: list[tuple[str, tuple[int, int] | None, Callable[..., Array]]] = [
    ("x * d", (0, 1), lambda x, d: x * d),
    ("x * d", (1, 0), lambda x, d: x * d),
    ("maximum(x, 0.0)", None, lambda x: np.maximum(x, 0)),
    ("x * rsqrt((x * x).mean() + 1.0)", None, lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1)),
]


def wide(array: Any) -> Array:
    return np.asarray(array).astype(np.float64)


def stored(kind: str, size: Any) -> Array:
    """How much a value of at most that size differs once it is stored."""
    relative, least, _ = ROUNDING[kind]
    return relative * 1.001 * np.asarray(size) + least


def bound(terms: int, size: Array) -> Array:
    """The error of a sum in f32, where `size` is the sum of absolute values (docs/Spec.md)."""
    return 2 * terms * 2.0**-24 * size


def spread(scales: Array, shape: tuple[int, ...]) -> Array:
    """Scales as a factor of each element of an array."""
    for axis, size in enumerate(shape):
        if scales.shape[axis] not in (1, size):
            scales = np.repeat(scales, 128, axis)
        scales = scales[:size] if axis == 0 else scales[:, :size]
    return np.broadcast_to(scales, shape)


@dataclasses.dataclass
class Matrix:
    """An array that every rank has, in its own version."""

    name: str
    rows: int
    columns: int
    kind: str


@dataclasses.dataclass
class Operand:
    """A side of a product: an array, perhaps transposed, and its scales."""

    matrix: Matrix
    is_turned: bool
    scales: Matrix | None = None

    def text(self, part: str, terms: str, is_left: bool) -> str:
        """The part of rows (of the left side) or columns, for some of the terms."""
        rows, columns = (part, terms) if is_left != self.is_turned else (terms, part)
        return f"{self.matrix.name}[{rows}, {columns}]{'.T' * self.is_turned}"

    def value(self, array: Any, given: dict[str, Any], rank: int) -> Array:
        values = wide(array)
        if self.scales:
            values = values * spread(wide(given[self.scales.name][rank]), values.shape)
        return values.T if self.is_turned else values


@dataclasses.dataclass
class Produced:
    """A region that makes what is sent of each row and, perhaps, of a row of another array."""

    function: str
    given: str
    kind: str
    other: Matrix | None
    make: Callable[..., Array]

    def value(self, array: Any, given: dict[str, Any], rank: int) -> tuple[Array, Array]:
        """What is sent, and its error."""
        x = wide(array)
        extra = [wide(given[self.other.name][rank])] if self.other else []
        made = self.make(x, *extra)
        error = 2.0**-20 * np.abs(made)
        return made, error + stored(self.kind, np.abs(made) + error)


class Program:
    """A kernel's text, what it gets, and what each of its arrays is to hold."""

    def __init__(self, lots: random.Random, is_small: bool) -> None:
        self.lots, self.is_small = lots, is_small
        self.random = np.random.default_rng(lots.randrange(1 << 60))
        self.ranks = lots.choice([1, 2, 2, 3] if is_small else [1, 2, 2, 3, 4, 5, 8])
        self.blocks = lots.choice([1, 2] if is_small else [1, 2, 3])
        self.sizes = SMALL_SIZES if is_small else SIZES
        self.parameters: dict[str, str] = {}
        self.names = 0
        self.lines: list[str] = []
        self.given: dict[str, list[Array]] = {}
        self.steps: list[tuple[Matrix, Callable[[Arrays], Wanted]]] = []
        #: Arrays that decide how far loops go: the checker then proves nothing.
        self.counts: list[str] = []
        self.build()

    def build(self) -> None:
        lots = self.lots
        rows = lots.choice([1, 2, 4, 7, 16, 33, 64][: 5 if self.is_small else 7]) * lots.choice([1, self.ranks])
        kinds = ["bf16", "f16", "f8", "f8e5m2", "f32"][: 4 if self.is_small else 5]
        current = self.draw("x", rows, lots.choice(self.sizes), lots.choice(kinds))
        products: list[Callable[[Matrix], Matrix]] = [self.product, self.gather, self.scatter, self.pair, self.chain]
        count = 0
        for _ in range(lots.choice([1, 2, 2, 3, 3, 4])):
            moves = lots.choice([self.collective, self.collective, self.collective, self.exchange])
            step = moves if count == 2 or self.is_drawn(0.35) else lots.choice([self.product, *products])
            if self.fits(step, current):
                count += step in products
                current = self.add(step, current)
        if not count:
            self.add(self.product, current)

    def fits(self, step: Callable[[Matrix], Matrix], current: Matrix) -> bool:
        if step == self.scatter:
            return current.rows % self.ranks == 0
        if step == self.chain:
            return current.kind not in F8
        return step != self.gather or current.rows * self.ranks <= 300

    def add(self, step: Callable[[Matrix], Matrix], current: Matrix) -> Matrix:
        if self.steps and self.blocks > 1:
            self.emit(MEET + SYNC)
        elif self.is_drawn(0.2):
            self.emit(MEET)
        return step(current)

    def text(self) -> str:
        parameters = [f"    {name}: {kind}," for name, kind in self.parameters.items()]
        head = ["import commsir", "from commsir import *", "", "", "@commsir.kernel", "def f(", *parameters]
        return "\n".join([*head, ") -> None:", *self.lines, ""])

    # What a text consists of.

    def is_drawn(self, chance: float) -> bool:
        return self.lots.random() < chance

    def emit(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def name(self, letter: str, kind: str = "") -> str:
        self.names += 1
        name = f"{letter}{self.names}"
        if kind:
            self.parameters[name] = kind
        return name

    def declare(self, letter: str, rows: int, columns: int, kind: str) -> Matrix:
        """A new array or window."""
        place = self.lots.choice(["Array", "Window"])
        return Matrix(self.name(letter, f"{kind}[{place}, {rows}, {columns}]"), rows, columns, kind)

    def draw(self, letter: str, rows: int, columns: int, kind: str) -> Matrix:
        """An input, with other numbers on each rank."""
        matrix = self.declare(letter, rows, columns, kind)
        size = (self.ranks, rows, columns)
        self.given[matrix.name] = list((self.random.normal(size=size) / 2).astype(TYPES[kind]))
        return matrix

    def draw_row(self, columns: int) -> Matrix:
        """An input of one dimension, which all rows share."""
        name = self.name("d", f"f32[Array, {columns}]")
        self.given[name] = list((self.random.normal(size=(self.ranks, columns)) / 2).astype(np.float32))
        return Matrix(name, 1, columns, "f32")

    def weight(self, terms: int, kind: str, is_turned: bool) -> Operand:
        n = self.lots.choice(self.sizes)
        own = self.lots.choice(F8) if kind in F8 else kind
        return Operand(self.draw("w", *((n, terms) if is_turned else (terms, n)), own), is_turned)

    # Products.

    def tile(self, size: int) -> int:
        return self.lots.choice([n for n in (1, 4, 16, 40, 64, 128, 200) if n <= 2 * size and size <= 24 * n] or [size])

    def scales_of(self, operand: Operand, is_left: bool) -> Matrix:
        """Scales of a drawn kind: for all terms or 128, and for one, 128 or all rows of a left side."""
        shape = (operand.matrix.rows, operand.matrix.columns)
        along = 1 if is_left != operand.is_turned else 0
        sizes = [self.lots.choice([1, -(-size // 128)]) for size in shape]
        if self.is_drawn(0.4):
            sizes[1 - along] = shape[1 - along]
        return self.draw("s", sizes[0], sizes[1], "f32")

    def product(self, current: Matrix) -> Matrix:
        """out = current @ w, or with the transposed of each, in tiles on all blocks."""
        left = Operand(current, self.is_drawn(0.3))
        m, k = (current.columns, current.rows) if left.is_turned else (current.rows, current.columns)
        right = self.weight(k, current.kind, self.is_drawn(0.5))
        n = right.matrix.rows if right.is_turned else right.matrix.columns
        if current.kind in F8 and self.is_drawn(0.7):
            left.scales, right.scales = self.scales_of(left, True), self.scales_of(right, False)
        out = self.declare("y", m, n, self.lots.choice(["f32", "f32", "bf16", "f16"]))
        kinds = ["f32", "bf16", "f16"]
        addends = [self.draw("d", m, n, self.lots.choice(kinds)) for _ in range(self.lots.choice([0, 0, 1, 2, 12]))]
        # Terms are added in two parts; scales of 128 terms begin with 128.
        cut = self.lots.choice([0, 0, 0, k // 2]) // (128 if left.scales else 1) * (128 if left.scales else 1)
        is_named = not left.scales and self.is_drawn(0.3)
        self.emit_product(left, right, out, addends, [*filter(None, [cut]), k], is_named)

        def wanted(arrays: Arrays) -> Wanted:
            for rank in range(self.ranks):
                a = left.value(arrays[current.name][rank], self.given, rank)
                b = right.value(self.given[right.matrix.name][rank], self.given, rank)
                extra = [wide(self.given[d.name][rank]) for d in addends]
                total = a @ b + sum(extra)
                size = np.abs(a) @ np.abs(b) + sum(map(np.abs, extra))
                terms = k + 1 + len(addends) + (2 * -(-k // 128) + 2 if left.scales else 0)
                rounding = stored(out.kind, np.abs(total)) + (stored(out.kind, size) if cut and not is_named else 0)
                yield np.maximum(total, 0) if is_named else total, bound(terms, size) + rounding

        self.steps.append((out, wanted))
        return out

    def emit_product(
        self, left: Operand, right: Operand, out: Matrix, addends: list[Matrix], ends: list[int], is_named: bool
    ) -> None:
        m, n = out.rows, out.columns
        tall, broad = min(self.tile(m), 16) if is_named else self.tile(m), n if is_named else self.tile(n)
        rows, columns = f"i : min(i + {tall}, {m})", f"j : min(j + {broad}, {n})"
        self.emit(f"for i in range(block_id() * {tall}, {m}, num_blocks() * {tall}):")
        depth = 2
        if broad < n:
            self.emit(f"for j in range(0, {n}, {broad}):", depth)
            depth += 1
        else:
            columns = ":"
        place = "p" if is_named else f"{out.name}[{rows}, {columns}]"
        for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
            terms = f"{begin}:{end}" if len(ends) > 1 or self.is_drawn(0.3) else ":"
            a, b = left.text(rows, terms, True), right.text(columns, terms, False)
            is_last = end == ends[-1] and not is_named
            added = [f"{d.name}[{rows}, {columns}]" for d in addends if is_last]
            scales = f", scales=({left.scales.name}, {right.scales.name})" if left.scales and right.scales else ""
            if scales or (self.is_drawn(0.2) and (number or not is_named)):
                plus = f", plus=({', '.join(added)},)" if added else ""
                self.emit(f"contract({a}, {b}, {place}{plus}, accumulate={bool(number)}{scales})", depth)
            else:
                self.emit(f"{place} {'+=' if number else '='} {' + '.join([f'{a} @ {b}', *added])}", depth)
        if is_named:
            self.emit(f"for r in range(min({tall}, {m} - i)):", depth)
            said = " + ".join(["p[r]", *(f"{d.name}[i + r]" for d in addends)])
            self.emit(f"{out.name}[i + r] = maximum({said}, 0.0)", depth + 1)

    def pair(self, current: Matrix) -> Matrix:
        """Two products of the same rows, one after the other in a loop, or each by blocks of its own."""
        left = Operand(current, self.is_drawn(0.3))
        m, k = (current.columns, current.rows) if left.is_turned else (current.rows, current.columns)
        rights = [self.weight(k, current.kind, self.is_drawn(0.5)) for _ in range(2)]
        widths = [one.matrix.rows if one.is_turned else one.matrix.columns for one in rights]
        outs = [self.declare("y", m, n, self.lots.choice(["f32", "bf16"])) for n in widths]
        addends = [self.draw("d", m, n, "bf16") if self.is_drawn(0.4) else None for n in widths]
        half = self.blocks // 2 if self.is_drawn(0.5) else 0
        tile = self.tile(m)
        said = []
        for right, out, added in zip(rights, outs, addends, strict=True):
            rows = f"i : min(i + {tile}, {m})"
            plus = f" + {added.name}[{rows}, :]" if added else ""
            said.append(f"{out.name}[{rows}, :] = {left.text(rows, ':', True)} @ {right.text(':', ':', False)}{plus}")
        if half:
            for name, first, last, line in (("one", 0, half, said[0]), ("two", half, self.blocks, said[1])):
                depth = self.role(name, first, last)
                begin = f"(block_id() - {first}) * {tile}"
                self.emit(f"for i in range({begin}, {m}, {(last - first) * tile}):", depth)
                self.emit(line, depth + 1)
        else:
            self.emit(f"for i in range(block_id() * {tile}, {m}, num_blocks() * {tile}):")
            for line in said:
                self.emit(line, 2)
        for right, out, added in zip(rights, outs, addends, strict=True):
            self.steps.append((out, self.wanted_product(left, right, out, added)))
        return self.lots.choice(outs)

    def wanted_product(
        self, left: Operand, right: Operand, out: Matrix, added: Matrix | None
    ) -> Callable[[Arrays], Wanted]:
        def wanted(arrays: Arrays) -> Wanted:
            for rank in range(self.ranks):
                a = left.value(arrays[left.matrix.name][rank], self.given, rank)
                b = right.value(self.given[right.matrix.name][rank], self.given, rank)
                total, size = a @ b, np.abs(a) @ np.abs(b)
                if added:
                    extra = wide(self.given[added.name][rank])
                    total, size = total + extra, size + np.abs(extra)
                yield total, bound(a.shape[1] + 2, size) + stored(out.kind, np.abs(total))

        return wanted

    def chain(self, current: Matrix) -> Matrix:
        """A product in scratch memory, which another multiplies."""
        left = Operand(current, self.is_drawn(0.3))
        m, k = (current.columns, current.rows) if left.is_turned else (current.rows, current.columns)
        right = self.weight(k, current.kind, self.is_drawn(0.5))
        n = right.matrix.rows if right.is_turned else right.matrix.columns
        inner = self.lots.choice(["f32", "bf16", "f16"])
        second = self.weight(n, inner, self.is_drawn(0.5))
        out = self.declare(
            "y", m, second.matrix.rows if second.is_turned else second.matrix.columns, self.lots.choice(["f32", "bf16"])
        )
        tile = min(self.tile(m), 16)
        rows = f"i : min(i + {tile}, {m})"
        part = f"0 : min({tile}, {m} - i)"
        if inner != "f32":
            self.emit(f"s = scratch({inner}, {tile}, {n})")
        self.emit(f"for i in range(block_id() * {tile}, {m}, num_blocks() * {tile}):")
        product = f"{left.text(rows, ':', True)} @ {right.text(':', ':', False)}"
        self.emit(f"p = {product}" if inner == "f32" else f"s[{part}, :] = {product}", 2)
        made = "p" if inner == "f32" else f"s[{part}, :]"
        self.emit(f"{out.name}[{rows}, :] = {made} @ {second.text(':', ':', False)}", 2)

        def wanted(arrays: Arrays) -> Wanted:
            for rank in range(self.ranks):
                a = left.value(arrays[current.name][rank], self.given, rank)
                b = right.value(self.given[right.matrix.name][rank], self.given, rank)
                c = second.value(self.given[second.matrix.name][rank], self.given, rank)
                middle = a @ b
                error = bound(k + 1, np.abs(a) @ np.abs(b))
                error = error + stored(inner, np.abs(middle) + error)
                total = middle @ c
                most = error @ np.abs(c) + bound(n + 1, (np.abs(middle) + error) @ np.abs(c))
                yield total, most + stored(out.kind, np.abs(total) + most)

        self.steps.append((out, wanted))
        return out

    # Collectives.

    def collective(self, current: Matrix) -> Matrix:
        """What ranks get of one another, perhaps with a region and in another type."""
        ranks, rows = self.ranks, current.rows
        ops = ["broadcast"]
        ops += ["all_gather"] if rows * ranks <= 300 else []
        ops += ["all_to_all"] if rows % ranks == 0 else []
        if current.kind not in F8:
            ops += ["all_reduce", "reduce_scatter"] if rows % ranks == 0 else ["all_reduce"]
        op = self.lots.choice(ops)
        got = {"all_gather": rows * ranks, "reduce_scatter": rows // ranks}.get(op, rows)
        root = self.lots.randrange(ranks)
        region = self.lots.choice(REGIONS) if self.is_drawn(0.6) else None
        produced = self.produced(current) if self.is_drawn(0.4) else None
        sent = produced.kind if produced else current.kind
        kind = self.lots.choice(list(TYPES)) if region else sent
        options = f", root={root}" if op == "broadcast" else ""
        argument: Matrix | None = None
        if region:
            body, shape, _ = region
            if shape:
                argument = self.draw("d", got if shape[0] else 1, current.columns if shape[1] else 1, "f32")
                options += f", args=({argument.name},)"
            function = self.name("f")
            self.emit(f"def {function}({'t, d' if argument else 't'}):")
            self.emit("t = t.astype(f32)", 2)
            self.emit(f"return {body}", 2)
            options += f", consume={function}"
        out = self.declare("z", got, current.columns, kind)
        given = f"({produced.given},)" if produced else current.name
        options += f", produce={produced.function}" if produced else ""
        self.emit(f"{op}({given}, outs=({out.name},){options})")

        def wanted(arrays: Arrays) -> Wanted:
            made_here = arrays[current.name]
            off = [np.zeros(array.shape) for array in made_here]
            if produced:
                pairs = [produced.value(array, self.given, number) for number, array in enumerate(made_here)]
                made_here, off = [one for one, _ in pairs], [one for _, one in pairs]
            for rank in range(ranks):
                value, error = self.arrived(op, sent, made_here, rank, root)
                error = error + self.arrived(op, sent, off, rank, root)[0]
                if region is None:
                    rounds = op in ("all_reduce", "reduce_scatter")
                    yield value, error + (stored(kind, np.abs(value)) if rounds else 0)
                    continue
                extra = [wide(self.given[argument.name][rank])] if argument else []
                made = region[2](value, *extra)
                scale = 1 + sum(np.abs(d) for d in extra)
                error = 2 * scale * (error.max(initial=0) + 2.0**-22 * np.abs(value).max(initial=1))
                yield made, error + stored(kind, np.abs(made) + error)

        self.steps.append((out, wanted))
        return out

    def produced(self, current: Matrix) -> "Produced":
        """Defines a region on what is sent."""
        body, shape, make = self.lots.choice(PRODUCED)
        kind = self.lots.choice(["f32", "bf16", "f16"])
        other: Matrix | None = None
        if shape:
            other = self.draw("d", current.rows, 1, "f32") if shape[0] else self.draw_row(current.columns)
        function = self.name("f")
        self.emit(f"def {function}({'x, d' if other else 'x'}):")
        self.emit("x = x.astype(f32)", 2)
        self.emit(f"return ({body}).astype({kind})", 2)
        return Produced(function, f"{current.name}, {other.name}" if other else current.name, kind, other, make)

    def exchange(self, current: Matrix) -> Matrix:
        """all_to_all_v: as many rows for each pair of ranks as are drawn."""
        ranks = self.ranks
        counts = np.zeros((ranks, ranks), np.int32)
        for source in range(ranks):
            left = current.rows
            for place in self.lots.sample(range(ranks), ranks):
                counts[source, place] = self.lots.choice([0, left, self.lots.randrange(left + 1)])
                left -= int(counts[source, place])
        rows = max(1, int(counts.sum(0).max()) + self.lots.choice([0, 0, 3]))
        send = Matrix(self.name("send", f"i32[Array, {ranks}]"), ranks, 1, "i32")
        received = Matrix(self.name("received", f"i32[Array, {ranks}]"), ranks, 1, "i32")
        self.counts += [send.name, received.name]
        self.given[send.name], self.given[received.name] = list(counts), list(np.ascontiguousarray(counts.T))
        out = self.declare("z", rows, current.columns, current.kind)
        self.emit(f"all_to_all_v({current.name}, send_rows={send.name}, recv_rows={received.name}, outs={out.name})")

        def wanted(arrays: Arrays) -> Wanted:
            sent = [wide(array) for array in arrays[current.name]]
            for rank in range(ranks):
                begins = counts[:, :rank].sum(1)
                parts = [
                    part[first : first + count]
                    for part, first, count in zip(sent, begins, counts[:, rank], strict=True)
                ]
                value, error = np.zeros((rows, current.columns)), np.full((rows, current.columns), np.inf)
                whole = np.concatenate(parts)
                value[: len(whole)], error[: len(whole)] = whole, 0
                yield value, error

        self.steps.append((out, wanted))
        return out

    def arrived(self, op: str, kind: str, sent: list[Array], rank: int, root: int) -> tuple[Array, Array]:
        """What a collective brings to a rank, before it is stored, and the error of its sums."""
        parts = [wide(array) for array in sent]
        if op == "all_gather":
            whole = np.concatenate(parts)
        elif op == "broadcast":
            whole = parts[root]
        elif op == "all_to_all":
            whole = np.concatenate([np.split(part, self.ranks)[rank] for part in parts])
        else:
            total, size = np.sum(parts, axis=0), np.sum(np.abs(parts), axis=0)
            # A ring may round each partial sum to the type that travels.
            error = bound(self.ranks, size) + self.ranks * stored(kind, size)
            if op == "all_reduce":
                return total, error
            return np.split(total, self.ranks)[rank], np.split(error, self.ranks)[rank]
        return whole, np.zeros_like(whole)

    # Exchanges tile by tile, between roles if there are blocks for both.

    def tile_of(self, rows: int) -> int:
        return self.lots.choice([n for n in (1, 3, 4, 8, 16, 64, 128) if rows % n == 0 and rows // n <= 8] or [rows])

    def begin_exchange(self, rows: int, columns: int, kind: str, tiles: int) -> tuple[str, str, bool]:
        """Declares a window of each rank's rows, one or two of it in turns, and a signal for each tile."""
        has_halves = self.is_drawn(0.5)
        box = self.name("box", f"{kind}[Window, {(1 + has_halves) * self.ranks}, {rows}, {columns}]")
        come = self.name("come", f"i64[Signal, {self.ranks * tiles}]")
        self.emit("world = team()")
        self.emit(f"half = {'epoch() % 2 * world.size' if has_halves else '0'}")
        return box, come, has_halves

    def role(self, name: str, first: int, last: int) -> int:
        """Begins what some blocks do; returns the depth of its lines."""
        if self.blocks == 1:
            return 1
        self.emit(f'with role("{name}", {first}, {last}):')
        return 2

    def end_exchange(self, has_halves: bool) -> None:
        if not has_halves:  # The next launch writes where this one reads.
            self.emit('barrier(team(), "grid")' + SYNC)

    def gather(self, current: Matrix) -> Matrix:
        """Tiles of all ranks' rows are sent by one block, each with a signal, and multiplied by the others."""
        rows, ranks, workers = current.rows, self.ranks, max(self.blocks - 1, 1)
        right = self.weight(current.columns, current.kind, self.is_drawn(0.5))
        n = right.matrix.rows if right.is_turned else right.matrix.columns
        tile = self.tile_of(rows)
        tiles = rows // tile
        out = self.declare("y", rows * ranks, n, self.lots.choice(["f32", "bf16"]))
        box, come, has_halves = self.begin_exchange(rows, current.columns, current.kind, tiles)
        at = f"first : first + {tile}"
        depth = self.role("send", 0, 1)
        self.emit(f"for t in range({tiles}):", depth)
        self.emit(f"first = t * {tile}", depth + 1)
        self.emit("for peer in world.peers():", depth + 1)
        sent, cell = f"{current.name}[{at}], {box}[half + world.rank, {at}], peer", f"{come}[world.rank * {tiles} + t]"
        if self.is_drawn(0.5):
            self.emit(f"put_signal({sent}, {cell})", depth + 2)
        else:
            self.emit(f"put({sent})", depth + 2)
            self.emit(f"signal({cell}, peer)", depth + 2)
        depth = self.role("multiply", 1, self.blocks)
        first = "block_id() - 1" if self.blocks > 1 else "0"
        self.emit(f"for i in range({first}, {ranks * tiles}, {workers}):", depth)
        self.emit(f"source = (world.rank + i // {tiles}) % world.size", depth + 1)
        self.emit(f"first = i % {tiles} * {tile}", depth + 1)
        self.emit(f"row = source * {rows} + first", depth + 1)
        place, b = f"{out.name}[row : row + {tile}, :]", right.text(":", ":", False)
        self.emit("if source == world.rank:", depth + 1)
        self.emit(f"{place} = {current.name}[{at}] @ {b}", depth + 2)
        self.emit("else:", depth + 1)
        self.emit(f"wait_signal_from({come}[source * {tiles} + i % {tiles}], source, ge=epoch()){SYNC}", depth + 2)
        self.emit(f"{place} = {box}[half + source, {at}] @ {b}", depth + 2)
        self.end_exchange(has_halves)

        def wanted(arrays: Arrays) -> Wanted:
            a = np.concatenate([wide(array) for array in arrays[current.name]])
            for rank in range(ranks):
                b = right.value(self.given[right.matrix.name][rank], self.given, rank)
                total = a @ b
                yield total, bound(a.shape[1], np.abs(a) @ np.abs(b)) + stored(out.kind, np.abs(total))

        self.steps.append((out, wanted))
        return out

    def scatter(self, current: Matrix) -> Matrix:
        """Each tile of a product is stored at the rank that owns it, which adds the tiles of all ranks."""
        rows, ranks, workers = current.rows // self.ranks, self.ranks, max(self.blocks - 1, 1)
        right = self.weight(current.columns, current.kind, False)
        n, wire = right.matrix.columns, self.lots.choice(["f32", "f32", "bf16"])
        tile = self.tile_of(rows)
        tiles = rows // tile
        out = self.declare("y", rows, n, self.lots.choice(["f32", "bf16", "f16"]))
        box, come, has_halves = self.begin_exchange(rows, n, wire, tiles)
        depth = self.role("multiply", 0, workers)
        first = "block_id()" if self.blocks > 1 else "0"
        self.emit(f"for i in range({first}, {ranks * tiles}, {workers}):", depth)
        self.emit(f"owner = (world.rank + 1 + i // {tiles}) % world.size", depth + 1)
        self.emit(f"first = i % {tiles} * {tile}", depth + 1)
        self.emit(f"row = owner * {rows} + first", depth + 1)
        product = f"{current.name}[row : row + {tile}] @ {right.matrix.name}"
        self.emit(f"{box}.peer(owner)[half + world.rank, first : first + {tile}] = {product}", depth + 1)
        self.emit(f"signal({come}[world.rank * {tiles} + i % {tiles}], owner)", depth + 1)
        depth = self.role("add", workers, self.blocks)
        self.emit(f"for t in range({tiles}):", depth)
        self.emit("for source in range(world.size):", depth + 1)
        self.emit(f"wait_signal_from({come}[source * {tiles} + t], source, ge=epoch()){SYNC}", depth + 2)
        self.emit(f"for r in range({tile}):", depth + 1)
        self.emit(f"total = zeros({n})", depth + 2)
        self.emit("for source in range(world.size):", depth + 2)
        self.emit(f"total += {box}[half + source, t * {tile} + r].astype(f32)", depth + 3)
        self.emit(f"{out.name}[t * {tile} + r] = total", depth + 2)
        self.end_exchange(has_halves)

        def wanted(arrays: Arrays) -> Wanted:
            total = np.zeros((current.rows, n))
            error = np.zeros((current.rows, n))
            size = np.zeros((current.rows, n))
            for rank in range(ranks):
                a = wide(arrays[current.name][rank])
                b = right.value(self.given[right.matrix.name][rank], self.given, rank)
                part = a @ b
                total, size = total + part, size + np.abs(part)
                error += bound(a.shape[1], np.abs(a) @ np.abs(b)) + stored(wire, np.abs(part))
            error += bound(ranks, size)
            for mine, most in zip(np.split(total, ranks), np.split(error, ranks), strict=True):
                yield mine, most + stored(out.kind, np.abs(mine))

        self.steps.append((out, wanted))
        return out

    # What has come out.

    def differences(self, arrays: Arrays) -> str:
        """Empty, or where an array is not what NumPy makes of the others."""
        for matrix, make in self.steps:
            highest = ROUNDING[matrix.kind][2]
            for rank, (want, error) in enumerate(make(arrays)):
                got = wide(arrays[matrix.name][rank])
                near = np.abs(got - want) <= error
                near |= (np.abs(want) + error >= highest) & (np.abs(got) >= highest)
                if not near.all():
                    at = tuple(int(i[0]) for i in np.nonzero(~near))
                    return f"{matrix.name} of rank {rank} at {at}: {got[at]}, NumPy says {want[at]} ± {error[at]}"
        return ""
