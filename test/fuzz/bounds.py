"""Random kernels whose accesses may leave their arrays, compared with a model of every access.

A program computes indices by all integer ops that kernels may contain, in loops, branches and blocks, and uses them
in every op that reaches memory, a cell or a peer. The model computes with Python's integers. It knows the first access
that is out of bounds, or that there is none. All data is one number, which never changes; canaries surround the arrays.
  - If an access of the model leaves its bounds, the run must end with an error that says so.
  - If none does, the run must succeed, unless compilation refuses an access that is never executed.
  - In both cases the canaries must not change, and the process must not crash.
Every access has an effect that can be observed: the compiler may omit others, and then does not report them
(docs/Spec.md).

Before the random programs, each kind of access runs with constants out of bounds: REFUSAL must know every text of
refusal, including those that random programs rarely cause.

Usage: bounds.py [--programs N] [--seed S] [--seconds T] [--jobs J] [--keep FOLDER]
A failure prints the seed and keeps the kernel in FOLDER: `bounds.py --seed SEED --programs 1` runs it again.
"""

import argparse
import collections
import concurrent.futures
import itertools
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import commsir
import numpy as np

DATA = 111
CANARY = 0x5EED
SIZE = 16
RANKS = 2
MOST_STEPS = 3000
CONSTANTS = [0, 0, 1, 1, 2, 3, -1, -2, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 63, 64, 255, 1 << 31, (1 << 31) - 1]
CONSTANTS += [-(1 << 31), 1 << 32, 1 << 61, 1 << 62, (1 << 63) - 1, -(1 << 63), 100000, -16]
INPUTS = [0, 1, 3, 15, 16, -1, 100, 7, 1 << 40, -(1 << 62), 4, 8, 12]
PREDICATES = ["slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "eq", "ne"]
FLAGS = ["", "", " overflow<nsw>", " overflow<nuw>", " overflow<nsw, nuw>"]

# What the verifiers, the bounds pass and the checker say of an access that is known to leave bounds.
REFUSAL = re.compile(
    r"out.of.bounds|leaves? the (packet )?(memory|source|window|dest|(left|right) operand|product)"
    r"|addresses rank|not a rank of the team"
    r"|valid elements of a tile|there is no (signal|counter) cell|(reads|writes) elements \[|negative|below 0"
    r"|uses cell|of a tile that has|has a step of|has bounds that are 2|it must be at least 0"
)

Array = np.ndarray[Any, Any]
Values = dict[str, int]
Step = Callable[[Values], None]


class LeftBoundsError(Exception):
    """The model's access out of bounds."""


class TooLongError(Exception):
    """The model follows no further: the program makes too many steps, or what it does is open."""


# --- Arithmetic, as docs/Spec.md defines it ---------------------------------------------------------------------------


def signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int = 64) -> int:
    return value & ((1 << bits) - 1)


def divide(a: int, b: int, bits: int) -> int:
    """Towards zero; by zero: all ones."""
    if b == 0:
        return -1
    return signed(-(-a // b) if (a < 0) != (b < 0) and a % b else a // b, bits)


def remainder(a: int, b: int) -> int:
    return a if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b))


def expand_ceil_signed(a: int, b: int, bits: int) -> int:
    """arith.ceildivsi as it is expanded: by the quotient towards zero."""
    q = divide(a, b, bits)
    exact = signed(q * b, bits) == a
    return q if exact or (a < 0) != (b < 0) else signed(q + 1, bits)


def expand_floor_signed(a: int, b: int, bits: int) -> int:
    q = divide(a, b, bits)
    exact = signed(q * b, bits) == a
    return signed(q - 1, bits) if not exact and (a < 0) != (b < 0) else q


def expand_ceil_unsigned(a: int, b: int, bits: int) -> int:
    """(a - 1) / b + 1, or 0 of 0."""
    if unsigned(a, bits) == 0:
        return 0
    q = (1 << bits) - 1 if b == 0 else unsigned(a - 1, bits) // unsigned(b, bits)
    return signed(q + 1, bits)


def shift(op: str, a: int, b: int, bits: int) -> int:
    count = unsigned(b, bits)
    if op == "shrsi":
        return a >> min(count, bits - 1)
    if count >= bits:
        return 0
    return signed(a << count, bits) if op == "shli" else signed(unsigned(a, bits) >> count, bits)


def compute(op: str, a: int, b: int, bits: int = 64) -> int:
    """The op of arith `op` on signed numbers of so many bits."""
    ua, ub = unsigned(a, bits), unsigned(b, bits)
    table: dict[str, Callable[[], int]] = {
        "addi": lambda: a + b,
        "subi": lambda: a - b,
        "muli": lambda: a * b,
        "minsi": lambda: min(a, b),
        "maxsi": lambda: max(a, b),
        "minui": lambda: min(ua, ub),
        "maxui": lambda: max(ua, ub),
        "andi": lambda: a & b,
        "ori": lambda: a | b,
        "xori": lambda: a ^ b,
        "divsi": lambda: divide(a, b, bits),
        "divui": lambda: -1 if ub == 0 else ua // ub,
        "remsi": lambda: remainder(a, b),
        "remui": lambda: a if ub == 0 else ua % ub,
        "ceildivsi": lambda: expand_ceil_signed(a, b, bits),
        "floordivsi": lambda: expand_floor_signed(a, b, bits),
        "ceildivui": lambda: expand_ceil_unsigned(a, b, bits),
    }
    if op in ("shli", "shrsi", "shrui"):
        return shift(op, a, b, bits)
    return signed(table[op](), bits)


def compare(predicate: str, a: int, b: int) -> bool:
    if predicate in ("eq", "ne"):
        return (a == b) == (predicate == "eq")
    if predicate[0] == "u":
        a, b = unsigned(a), unsigned(b)
    return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[predicate[1:]]


# The index dialect's ops that use no value, and what {a} is then.
INDEX_CONSTANTS = [
    (["{a} = index.constant 5"], 5),
    (["{a} = index.constant -1"], -1),
    (["{a} = index.sizeof"], 64),
    (["{a}c = index.bool.constant true", "{a} = index.castu {a}c : i1 to index"], 1),
]
# The index dialect's names of the ops above.
INDEX_OPS = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "divs": "divsi",
    "divu": "divui",
    "ceildivs": "ceildivsi",
    "ceildivu": "ceildivui",
    "floordivs": "floordivsi",
    "rems": "remsi",
    "remu": "remui",
    "maxs": "maxsi",
    "maxu": "maxui",
    "mins": "minsi",
    "minu": "minui",
    "shl": "shli",
    "shrs": "shrsi",
    "shru": "shrui",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
}


def affine_mod(a: int, m: int) -> int:
    return a % m


def affine_floor(a: int, m: int) -> int:
    return a // m


def affine_ceil(a: int, m: int) -> int:
    return -(-a // m)


# --- Programs ---------------------------------------------------------------------------------------------------------


class Program:
    """A kernel's text, and the same as steps of the model."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)
        self.count = 0
        self.sites = 0
        self.reached: set[int] = set()
        self.ranks = self.rnd.choice([1, RANKS])
        self.inputs = [self.rnd.choice([*INPUTS, self.rnd.getrandbits(62)]) for _ in range(4)]
        self.check = self.ranks == 1 and self.rnd.random() < 0.3
        self.steps = 0
        self.depth = 0
        # Basic blocks, between which tiles do not pass and which the checker does not follow.
        self.has_blocks = self.rnd.random() < 0.15
        lines: list[str] = []
        body: list[Step] = []
        for value in [0, 1, 2, 3, SIZE]:
            self.constant(lines, body, f"%k{value}", value)
        self.draw(lines, body)
        self.body = body
        self.source = self.frame(lines)

    def constant(self, lines: list[str], body: list[Step], name: str, value: int) -> None:
        lines.append(f"{name} = arith.constant {value} : index")
        body.append(lambda v: v.__setitem__(name, value))

    def draw(self, lines: list[str], body: list[Step]) -> None:
        """Random steps, and an access."""
        names: list[str] = []
        for k in range(4):
            a = self.name()
            lines.append(f"{a}l = memref.load %in[%k{k}] : memref<4xi64>")
            lines.append(f"{a} = arith.index_cast {a}l : i64 to index")
            body.append(lambda v, n=a, x=self.inputs[k]: v.__setitem__(n, x))  # type: ignore[misc]
            names.append(a)
        for _ in range(6):
            names.append(self.name())
            self.constant(lines, body, names[-1], self.rnd.choice(CONSTANTS))
        for _ in range(self.rnd.randint(2, 9)):
            self.step(lines, body, names, 0)
        self.access(lines, body, names)

    def frame(self, lines: list[str]) -> str:
        arguments = (
            "%in: memref<4xi64>, %x: memref<16xi64>, %m: memref<16x2xi64>, %f: memref<16xf32>, %y: memref<2xi64>, "
            "%w: !comms.window<16xi64>, %s: !comms.signal<16>, %c: !comms.counter<16>"
        )
        head = [
            "%team = comms.team world",
            "%near = comms.team lsa",
            f"%data = arith.constant {DATA} : i64",
            f"%single = arith.constant {DATA}.0 : f32",
            f"%vector = arith.constant dense<{DATA}> : vector<4xi64>",
            "%open = memref.cast %x : memref<16xi64> to memref<?xi64>",
            "%own = comms.local %w : !comms.window<16xi64> -> memref<16xi64>",
        ]
        text = "\n  ".join(head + lines)
        return (
            f"comms.kernel @k({arguments}) attributes {{ranks = {self.ranks}, blocks = 1}} {{\n  {text}\n"
            "  comms.return\n}\n"
        )

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def pick(self, names: list[str]) -> str:
        return self.rnd.choice(names[-6:] if self.rnd.random() < 0.6 else names)

    def limit(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLongError

    def step(self, lines: list[str], body: list[Step], names: list[str], depth: int) -> None:
        kinds: list[Callable[[list[str], list[Step], list[str]], None]] = [
            self.arithmetic,
            self.arithmetic,
            self.arithmetic,
            self.index_arithmetic,
            self.narrow,
            self.narrow_arithmetic,
            self.choose,
            self.affine,
            self.extended,
            self.count_bits,
            self.by_float,
            self.of_team,
        ]
        if depth < 2 and self.rnd.random() < 0.25:
            flows = [self.branch, self.loop, self.loop, self.repeat, self.switch]
            flow = self.rnd.choice(flows)
            if self.has_blocks and self.rnd.random() < 0.6:
                flow = self.rnd.choice([self.blocks, self.jump])
            flow(lines, body, names, depth)
        else:
            self.rnd.choice(kinds)(lines, body, names)

    # --- Values

    def arithmetic(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        op = self.rnd.choice(
            ["addi", "subi", "muli"] * 3
            + ["minsi", "maxsi", "minui", "maxui", "andi", "ori", "xori"]
            + ["divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi"]
            + ["shli", "shrsi", "shrui"]
        )
        a, p, q = self.name(), self.pick(names), self.pick(names)
        flags = self.rnd.choice(FLAGS) if op in ("addi", "subi", "muli", "shli") else ""
        if op in ("divsi", "divui", "shrsi", "shrui"):
            flags = self.rnd.choice(["", " exact"])
        extra = self.rnd.choice(["", "", " {isDisjoint, nonNeg}"]) if not flags else ""
        if flags == " exact":
            lines.append(f"{a} = arith.{op} {p}, {q} exact : index")
        else:
            lines.append(f"{a} = arith.{op} {p}, {q}{flags}{extra} : index")
        body.append(lambda v: v.__setitem__(a, compute(op, v[p], v[q])))
        names.append(a)

    def index_arithmetic(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        a, p, q = self.name(), self.pick(names), self.pick(names)
        drawn = self.rnd.random()
        if drawn < 0.15:
            predicate = self.rnd.choice(PREDICATES)
            cast, one = self.rnd.choice([("castu", 1), ("casts", -1)])
            lines.append(f"{a}c = index.cmp {predicate}({p}, {q})")
            lines.append(f"{a} = index.{cast} {a}c : i1 to index")
            body.append(lambda v: v.__setitem__(a, one * int(compare(predicate, v[p], v[q]))))
        elif drawn < 0.2:
            text, value = self.rnd.choice(INDEX_CONSTANTS)
            lines.extend(line.format(a=a) for line in text)
            body.append(lambda v: v.__setitem__(a, value))
        else:
            op = self.rnd.choice(list(INDEX_OPS))
            lines.append(f"{a} = index.{op} {p}, {q}")
            body.append(lambda v: v.__setitem__(a, compute(INDEX_OPS[op], v[p], v[q])))
        names.append(a)

    def narrow(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        a, p = self.name(), self.pick(names)
        bits = self.rnd.choice([1, 8, 16, 32])
        there, back = (self.rnd.choice(["index_cast", "index_castui"]) for _ in range(2))
        if self.rnd.random() < 0.3:
            lines.append(f"{a}w = arith.{there} {p} : index to i64")
            lines.append(f"{a}t = arith.trunci {a}w : i64 to i{bits}")
        else:
            lines.append(f"{a}t = arith.{there} {p} : index to i{bits}")
        wide = 32 if bits < 32 and self.rnd.random() < 0.4 else bits
        extend = self.rnd.choice(["extui", "extsi"])
        if wide != bits:
            lines.append(f"{a}u = arith.{extend} {a}t : i{bits} to i{wide}")
        lines.append(f"{a} = arith.{back} {a}{'u' if wide != bits else 't'} : i{wide} to index")

        def run(v: Values) -> None:
            value = signed(v[p], bits)
            if wide != bits and extend == "extui":
                value = signed(unsigned(value, bits), wide)
            v[a] = unsigned(value, wide) if back == "index_castui" else value

        body.append(run)
        names.append(a)

    def narrow_arithmetic(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        a, p, q = self.name(), self.pick(names), self.pick(names)
        bits = self.rnd.choice([8, 16, 32, 64])
        op = self.rnd.choice(
            ["addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "shli", "shrsi", "shrui", "minsi", "maxui"]
            + ["ceildivsi", "ceildivui", "floordivsi"]
        )
        for end, value in (("p", p), ("q", q)):
            lines.append(f"{a}{end} = arith.index_cast {value} : index to i{bits}")
        lines.append(f"{a}r = arith.{op} {a}p, {a}q : i{bits}")
        lines.append(f"{a} = arith.index_cast {a}r : i{bits} to index")
        body.append(lambda v: v.__setitem__(a, compute(op, signed(v[p], bits), signed(v[q], bits), bits)))
        names.append(a)

    def of_team(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        """A rank of one team as that of another, or the size of an array."""
        a, p = self.name(), self.pick(names)
        if self.rnd.random() < 0.4:
            memory, kind = self.rnd.choice([("%x", "memref<16xi64>"), ("%open", "memref<?xi64>")])
            lines.append(f"{a} = memref.dim {memory}, %k0 : {kind}")
            body.append(lambda v: v.__setitem__(a, SIZE))
        else:
            there, back = self.rnd.sample(["%team", "%near"], 2)
            lines.append(f"{a} = comms.translate_rank {p} from {there} to {back}")
            body.append(lambda v: v.__setitem__(a, v[p]))  # Both are all ranks.
        names.append(a)

    def choose(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        a, p, q, r, s = (self.name(), *(self.pick(names) for _ in range(4)))
        predicate = self.rnd.choice(PREDICATES)
        lines.append(f"{a}c = arith.cmpi {predicate}, {p}, {q} : index")
        lines.append(f"{a} = arith.select {a}c, {r}, {s} : index")
        body.append(lambda v: v.__setitem__(a, v[r] if compare(predicate, v[p], v[q]) else v[s]))
        names.append(a)

    def affine(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        a, d0, d1, s0 = (self.name(), *(self.pick(names) for _ in range(3)))
        k, m = self.rnd.choice([2, 3, 16, -3, 1 << 40]), self.rnd.choice([1, 2, 16, 17])
        # Of numbers near the ends of 64 bits the expansions of MLIR give others than mathematics: those are left out.
        bound = 1 << 61
        expressions: list[tuple[str, Callable[[int, int, int], int]]] = [
            (f"d0 * {k} + d1", lambda x, y, z: x * k + y),
            (f"d0 mod {m} + s0", lambda x, y, z: affine_mod(x, m) + z),
            (f"(d0 + d1) floordiv {m}", lambda x, y, z: affine_floor(signed(x + y), m)),
            (f"d0 ceildiv {m} - d1", lambda x, y, z: affine_ceil(x, m) - y),
            ("-d0 + s0", lambda x, y, z: z - x),
        ]
        text, evaluate = self.rnd.choice(expressions)
        op = self.rnd.choice(["apply", "min", "max"])
        end = self.rnd.choice([0, 15, 16])
        results = text if op == "apply" else f"{text}, s0, {end}"
        lines.append(f"{a} = affine.{op} affine_map<(d0, d1)[s0] -> ({results})>({d0}, {d1})[{s0}]")

        def run(v: Values) -> None:
            if "div" in text and any(abs(v[n]) >= bound for n in (d0, d1)):
                raise TooLongError
            value = signed(evaluate(v[d0], v[d1], v[s0]))
            v[a] = value if op == "apply" else {"min": min, "max": max}[op](value, v[s0], end)

        body.append(run)
        names.append(a)

    def extended(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        a, p, q = self.name(), self.pick(names), self.pick(names)
        op = self.rnd.choice(["mulsi_extended", "mului_extended", "addui_extended"])
        if op == "addui_extended":
            lines.append(f"{a}p = arith.index_cast {p} : index to i64")
            lines.append(f"{a}q = arith.index_cast {q} : index to i64")
            lines.append(f"{a}l, {a}h = arith.{op} {a}p, {a}q : i64, i1")
            lines.append(f"{a} = arith.index_castui {a}h : i1 to index")
            body.append(lambda v: v.__setitem__(a, int(unsigned(v[p]) + unsigned(v[q]) >= 1 << 64)))
        else:
            lines.append(f"{a}p = arith.index_cast {p} : index to i64")
            lines.append(f"{a}q = arith.index_cast {q} : index to i64")
            lines.append(f"{a}l, {a}h = arith.{op} {a}p, {a}q : i64")
            lines.append(f"{a} = arith.index_cast {a}h : i64 to index")
            pick = signed if op == "mulsi_extended" else unsigned
            body.append(lambda v: v.__setitem__(a, signed((pick(v[p]) * pick(v[q])) >> 64)))
        names.append(a)

    def count_bits(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        a, p = self.name(), self.pick(names)
        op = self.rnd.choice(["ctlz", "cttz", "ctpop", "absi"])
        lines.append(f"{a}p = arith.index_cast {p} : index to i64")
        lines.append(f"{a}r = math.{op} {a}p : i64")
        lines.append(f"{a} = arith.index_cast {a}r : i64 to index")
        table: dict[str, Callable[[int], int]] = {
            "ctlz": lambda x: 64 - unsigned(x).bit_length(),
            "cttz": lambda x: 64 if x == 0 else (unsigned(x) & -unsigned(x)).bit_length() - 1,
            "ctpop": lambda x: unsigned(x).bit_count(),
            "absi": lambda x: signed(abs(x)),
        }
        body.append(lambda v: v.__setitem__(a, table[op](v[p])))
        names.append(a)

    def by_float(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        """To a float and back, saturating; or the bits of the float."""
        a, p = self.name(), self.pick(names)
        bits = self.rnd.choice([8, 16, 32, 64])
        op = self.rnd.choice(["fptosi", "fptoui", "bitcast"])
        lines.append(f"{a}p = arith.index_cast {p} : index to i64")
        lines.append(f"{a}f = arith.sitofp {a}p : i64 to f64")
        bits = 64 if op == "bitcast" else bits
        lines.append(f"{a}r = arith.{op} {a}f : f64 to i{bits}")
        lines.append(f"{a} = arith.index_cast {a}r : i{bits} to index")
        low = 0 if op == "fptoui" else -(1 << (bits - 1))
        high = (1 << bits) - 1 if op == "fptoui" else (1 << (bits - 1)) - 1

        def run(v: Values) -> None:
            value = float(v[p])
            bits_of = int(np.float64(value).view(np.int64))
            v[a] = bits_of if op == "bitcast" else signed(min(max(int(value), low), high), bits)

        body.append(run)
        names.append(a)

    # --- Flow

    def inner(self, names: list[str], depth: int, more: list[str] | None = None) -> tuple[list[str], list[Step]]:
        """A region of a few steps and an access."""
        lines: list[str] = []
        body: list[Step] = []
        known = names + (more or []) * 3
        self.depth += 1
        for _ in range(self.rnd.randint(0, 2)):
            self.step(lines, body, known, depth + 1)
        self.access(lines, body, known)
        self.depth -= 1
        return lines, body

    def run_all(self, body: list[Step], values: Values) -> None:
        for step in body:
            self.limit()
            step(values)

    def branch(self, lines: list[str], body: list[Step], names: list[str], depth: int) -> None:
        a, p, q = self.name(), self.pick(names), self.pick(names)
        predicate = self.rnd.choice(PREDICATES)
        first, then = self.inner(names, depth)
        second, otherwise = self.inner(names, depth)
        lines.append(f"{a}c = arith.cmpi {predicate}, {p}, {q} : index")
        lines += [f"scf.if {a}c {{", *first, "} else {", *second, "}"]
        body.append(lambda v: self.run_all(then if compare(predicate, v[p], v[q]) else otherwise, v))

    def loop(self, lines: list[str], body: list[Step], names: list[str], depth: int) -> None:
        a, low, high = self.name(), self.pick(names), self.pick(names)
        step = self.rnd.choice(["%k1", "%k1", self.pick(names)])
        sign = self.rnd.choice(["", "", " unsigned"])
        inside, steps = self.inner(names, depth, [f"{a}i"])
        lines += [f"scf.for{sign} {a}i = {low} to {high} step {step} {{", *inside, "}"]

        def run(v: Values) -> None:
            pick = unsigned if sign else signed
            i = pick(v[low])
            # A step that is not positive or leaves 64 bits is an error, or the loop is folded, as one of 2^63 turns is.
            if (
                v[step] <= 0
                or pick(v[high]) - i >= 1 << 63
                or pick(v[high]) - 1 + v[step] >= (1 << 64 if sign else 1 << 63)
            ):
                raise TooLongError
            while i < pick(v[high]):
                self.limit()
                self.run_all(steps, {**v, f"{a}i": signed(i)})
                i += v[step]

        body.append(run)

    def repeat(self, lines: list[str], body: list[Step], names: list[str], depth: int) -> None:
        """scf.while: a value that grows until it is past another."""
        a, low, high, by = self.name(), self.pick(names), self.pick(names), self.pick(names)
        op = self.rnd.choice(["addi", "subi", "muli", "shrui"])
        predicate = self.rnd.choice(PREDICATES)
        inside, steps = self.inner(names, depth, [f"{a}i"])
        lines += [
            f"{a} = scf.while ({a}b = {low}) : (index) -> index {{",
            f"{a}c = arith.cmpi {predicate}, {a}b, {high} : index",
            f"scf.condition({a}c) {a}b : index",
            "} do {",
            f"^bb0({a}i: index):",
            *inside,
            f"{a}n = arith.{op} {a}i, {by} : index",
            f"scf.yield {a}n : index",
            "}",
        ]

        def run(v: Values) -> None:
            i = v[low]
            while compare(predicate, i, v[high]):
                self.limit()
                self.run_all(steps, {**v, f"{a}i": i})
                i = compute(op, i, v[by])
            v[a] = i

        body.append(run)
        names.append(a)

    def switch(self, lines: list[str], body: list[Step], names: list[str], depth: int) -> None:
        p = self.pick(names)
        cases = self.rnd.sample([0, 1, 2, 7, -1, 16, 1 << 32], 2)
        regions = [self.inner(names, depth) for _ in range(3)]
        lines.append(f"scf.index_switch {p}")
        for case, (text, _) in zip(cases, regions, strict=False):
            lines += [f"case {case} {{", *text, "scf.yield", "}"]
        lines += ["default {", *regions[2][0], "}"]

        def run(v: Values) -> None:
            at = cases.index(v[p]) if v[p] in cases else 2
            self.run_all(regions[at][1], v)

        body.append(run)

    def blocks(self, lines: list[str], body: list[Step], names: list[str], depth: int) -> None:
        """A loop of basic blocks."""
        a, low, high = self.name(), self.pick(names), self.pick(names)
        predicate = self.rnd.choice(PREDICATES)
        inside, steps = self.inner(names, depth, [f"{a}i"])
        lines += [
            "scf.execute_region {",
            f"cf.br ^head({low} : index)",
            f"^head({a}i: index):",
            f"{a}c = arith.cmpi {predicate}, {a}i, {high} : index",
            f"cf.cond_br {a}c, ^body, ^end",
            "^body:",
            *inside,
            f"{a}n = arith.addi {a}i, %k1 : index",
            f"cf.br ^head({a}n : index)",
            "^end:",
            "scf.yield",
            "}",
        ]

        def run(v: Values) -> None:
            i = v[low]
            while compare(predicate, i, v[high]):
                self.limit()
                self.run_all(steps, {**v, f"{a}i": i})
                i = signed(i + 1)

        body.append(run)

    def jump(self, lines: list[str], body: list[Step], names: list[str], depth: int) -> None:
        """A switch between basic blocks."""
        a, p = self.name(), self.pick(names)
        bits = self.rnd.choice([8, 32, 64])
        cases = self.rnd.sample([0, 1, 2, 7, -1, 16], 2)
        regions = [self.inner(names, depth) for _ in range(3)]
        targets = ", ".join(f"{case}: ^case{at}" for at, case in enumerate(cases))
        lines += ["scf.execute_region {", f"{a} = arith.index_cast {p} : index to i{bits}"]
        lines += [f"cf.switch {a} : i{bits}, [default: ^case2, {targets}]"]
        for at, (text, _) in enumerate(regions):
            lines += [f"^case{at}:", *text, "cf.br ^end"]
        lines += ["^end:", "scf.yield", "}"]

        def run(v: Values) -> None:
            value = signed(v[p], bits)
            self.run_all(regions[cases.index(value) if value in cases else 2][1], v)

        body.append(run)

    # --- Accesses

    Checked = tuple[list[str], Callable[[Values], list[tuple[int, int, int]]]]
    #: An access from its offset, count and peer.
    Access = Callable[[str, str, str], Checked]

    def access(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        at = self.rnd.choice(names[-3:])
        count = self.rnd.choice([*names[-4:], "%k1", "%k2", "%k3"])
        peer = self.rnd.choice([*names[-4:], "%k0", "%k0", "%k1"])
        self.write(lines, body, self.rnd.choice(self.accesses()), (at, count, peer))

    def accesses(self) -> list[Access]:
        choices: list[Program.Access] = [
            self.element,
            self.view,
            self.of_rows,
            self.of_vector,
            self.transfer,
            self.cell,
            self.copy,
            self.bounds,
        ]
        if not self.has_blocks:
            choices += [self.of_tile, self.of_tile, self.of_scratch, self.of_peer, self.of_packets, self.of_product]
        return choices

    def write(self, lines: list[str], body: list[Step], access: Access, operands: tuple[str, str, str]) -> None:
        site = self.sites
        self.sites += 1
        text, limits = access(*operands)
        # Tiles do not pass from one basic block to another.
        tiles = [f"%tile{site} = arith.constant dense<{DATA}> : tensor<4xi64>"]
        tiles += [f"%floats{site} = arith.constant dense<{DATA}.0> : tensor<4xf32>"]
        lines += tiles + [
            line.replace("%tile,", f"%tile{site},").replace("%floats,", f"%floats{site},") for line in text
        ]

        def run(v: Values) -> None:
            self.reached.add(site)
            for offset, length, limit in limits(v):
                if not (length >= 0 and offset >= 0 and offset + length <= limit):
                    raise LeftBoundsError(f"site {site}: [{offset}, + {length}) of {limit}")

        body.append(run)

    def element(self, at: str, count: str, peer: str) -> Checked:
        a, memory, kind = self.name(), self.rnd.choice(["%x", "%open", "%own"]), "memref<16xi64>"
        kind = "memref<?xi64>" if memory == "%open" else kind
        hint = self.rnd.choice(["", " {alignment = 64 : i64}", " {nontemporal = true}"])
        text = [f"{a} = memref.load {memory}[{at}]{hint} : {kind}", f"memref.store {a}, %y[%k0] : memref<2xi64>"]
        if self.rnd.random() < 0.5:
            text = [f"memref.store %data, {memory}[{at}] : {kind}"]
        return text, lambda v: [(v[at], 1, SIZE)]

    def view(self, at: str, count: str, peer: str) -> Checked:
        """A view by constants, of memory whose size a cast may hide."""
        a = self.name()
        first, size, stride = (
            self.rnd.choice([0, 1, 8, 15, 16]),
            self.rnd.choice([0, 1, 4, 16]),
            self.rnd.choice([1, 2]),
        )
        memory, kind = self.rnd.choice([("%x", "memref<16xi64>"), ("%open", "memref<?xi64>")])
        last = (size - 1) * stride + 1 if size else 0
        if memory == "%x" and first + last > SIZE:  # The parser refuses it.
            memory, kind = "%open", "memref<?xi64>"
        type_ = f"memref<{size}xi64, strided<[{stride}], offset: {first}>>"
        text = [
            f"{a} = memref.subview {memory}[{first}] [{size}] [{stride}] : {kind} to {type_}",
            f"{a}q = memref.load {a}[{at}] : {type_}",
            f"memref.store {a}q, %y[%k1] : memref<2xi64>",
            f"memref.store %data, {a}[{at}] : {type_}",
        ]
        return text, lambda v: [(first, last, SIZE), (v[at], 1, size)]

    def of_rows(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        if self.rnd.random() < 0.5:
            text = [f"{a} = memref.load %m[{at}, {count}] : memref<16x2xi64>"]
            text.append(f"memref.store {a}, %y[%k0] : memref<2xi64>")
            text.append(f"memref.store %data, %m[{at}, {count}] : memref<16x2xi64>")
            return text, lambda v: [(v[at], 1, SIZE), (v[count], 1, 2)]
        if self.rnd.random() < 0.5:
            text = [f"{a} = memref.collapse_shape %m [[0, 1]] : memref<16x2xi64> into memref<32xi64>"]
            size, kind = 32, "memref<32xi64>"
        else:
            text = [
                f"{a}e = memref.expand_shape %x [[0, 1]] output_shape [4, 4] : memref<16xi64> into memref<4x4xi64>",
                f"{a} = memref.collapse_shape {a}e [[0, 1]] : memref<4x4xi64> into memref<16xi64>",
            ]
            size, kind = 16, "memref<16xi64>"
        text.append(f"memref.store %data, {a}[{at}] : {kind}")
        return text, lambda v: [(v[at], 1, size)]

    def of_vector(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        hint = self.rnd.choice(["", " {alignment = 64 : i64}", " {nontemporal = true}"])
        if self.rnd.random() < 0.5:
            text = [
                f"{a} = vector.load %x[{at}]{hint} : memref<16xi64>, vector<4xi64>",
                f"vector.store {a}, %x[{at}]{hint} : memref<16xi64>, vector<4xi64>",
            ]
            return text, lambda v: [(v[at], 4, SIZE)]

        def limits(v: Values) -> list[tuple[int, int, int]]:
            if v[count] <= 0 and not 0 <= v[at] <= SIZE - 4:
                raise TooLongError  # Folders leave out what accesses nothing.
            return [(v[at], 4, SIZE)]

        mask = [f"{a}m = vector.create_mask {count} : vector<4xi1>"]
        mask += [
            f"{a} = vector.maskedload %x[{at}], {a}m, %vector "
            ": memref<16xi64>, vector<4xi1>, vector<4xi64> into vector<4xi64>"
        ]
        mask += [f"vector.maskedstore %x[{at}], {a}m, {a} : memref<16xi64>, vector<4xi1>, vector<4xi64>"]
        return mask, limits

    def of_tile(self, at: str, count: str, peer: str) -> Checked:
        a, valid = self.name(), self.rnd.choice(["", f" valid {count}"])
        memory, kind, size = self.rnd.choice(
            [("%x", "memref<16xi64>", 16), ("%m", "memref<16x2xi64>", 32), ("%own", "memref<16xi64>", 16)]
        )
        text = [
            f"{a} = comms.tile_load {memory}[{at}]{valid} : {kind} -> tensor<4xi64>",
            f"comms.tile_store %tile, {memory}[{at}]{valid} : tensor<4xi64>, {kind}",
        ]
        if not valid:
            return text, lambda v: [(v[at], 4, size)]
        return text, lambda v: [(0, v[count], 4), (v[at], v[count], size)]

    def of_scratch(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        made = self.rnd.choice(["comms.scratch : memref<16xi64>", "memref.alloca() : memref<16xi64>"])
        text = [
            f"{a} = {made}",
            f"comms.tile_store %tile, {a}[{at}] : tensor<4xi64>, memref<16xi64>",
            f"{a}q = memref.load {a}[{at}] : memref<16xi64>",
        ]
        return text, lambda v: [(v[at], 4, SIZE)]

    def of_peer(self, at: str, count: str, peer: str) -> Checked:
        a = self.name()
        text = [
            f"{a} = comms.peer %w at {peer} of %team : !comms.window<16xi64> -> memref<16xi64>",
            f"{a}q = comms.tile_load {a}[{at}] : memref<16xi64> -> tensor<4xi64>",
            f"comms.tile_store %tile, {a}[{at}] : tensor<4xi64>, memref<16xi64>",
        ]
        return text, lambda v: [(v[peer], 1, self.ranks), (v[at], 4, SIZE)]

    def transfer(self, at: str, count: str, peer: str) -> Checked:
        a, kind = self.name(), self.rnd.choice(["put", "get", "put_signal", "engine_copy", "bulk_copy"])
        if kind == "engine_copy" and self.depth:  # A step of the host.
            kind = "put"
        there = self.rnd.choice([at, "%k0", "%k3"])
        sides = "memref<16xi64>, !comms.window<16xi64>"
        end = f"count {count} at {peer} of %team"
        texts = {
            "put": f"comms.put %x[{at}] to %w[{there}] {end} : {sides}",
            "get": f"comms.get %w[{there}] to %x[{at}] {end} : !comms.window<16xi64>, memref<16xi64>",
            "put_signal": f"comms.put_signal %x[{at}] to %w[{there}] {end} then inc %s[%k1] "
            f": {sides}, !comms.signal<16>",
            "engine_copy": f"comms.engine_copy %x[{at}] to %w[{there}] {end} : {sides}",
            "bulk_copy": "",
        }
        text = [texts[kind]]
        if kind == "bulk_copy":
            # Of 16 bytes, where offset and count are whole multiples.
            text = [
                f"{a}{end} = arith.muli {name}, %k2 : index"
                for end, name in zip("atc", (at, there, count), strict=True)
            ]
            text.append(
                f"{a} = comms.bulk_copy %x[{a}a] to %own[{a}t] count {a}c : memref<16xi64>, memref<16xi64>",
            )
            text.append(f"{a}w = comms.bulk_wait {a}")
            return text, lambda v: [
                (signed(2 * v[at]), signed(2 * v[count]), SIZE),
                (signed(2 * v[there]), signed(2 * v[count]), SIZE),
            ]
        return text, lambda v: [(v[at], v[count], SIZE), (v[there], v[count], SIZE), (v[peer], 1, self.ranks)]

    def cell(self, at: str, count: str, peer: str) -> Checked:
        kinds = ["read", "reset", "signal", "counter", "wait", "wait_from", "wait_counter", "reset_counter"]
        a, kind = self.name(), self.rnd.choice(kinds)
        zero = f"{a}z = arith.constant 0 : i64"
        texts = {
            "read": [f"{a} = comms.read_signal %s[{at}] : !comms.signal<16>"],
            "reset": [f"comms.reset_signal %s[{at}] : !comms.signal<16>"],
            "signal": [f"comms.signal inc %s[{at}] at {peer} of %team : !comms.signal<16>"],
            "counter": [f"{a} = comms.read_counter %c[{at}] : !comms.counter<16>"],
            "wait": [zero, f"{a} = comms.wait_signal %s[{at}] ge {a}z : !comms.signal<16>"],
            "wait_from": [
                zero,
                f"{a} = comms.wait_signal_from %s[{at}] ge {a}z from %k0 of %team : !comms.signal<16>",
            ],
            "wait_counter": [zero, f"{a} = comms.wait_counter %c[{at}] ge {a}z : !comms.counter<16>"],
            "reset_counter": [f"comms.reset_counter %c[{at}] : !comms.counter<16>"],
        }
        # The peer of `wait_from` is only named in reports, and refused where it is a constant and no rank.
        if kind == "signal":
            return texts[kind], lambda v: [(v[at], 1, SIZE), (v[peer], 1, self.ranks)]
        return texts[kind], lambda v: [(v[at], 1, SIZE)]

    def copy(self, at: str, count: str, peer: str) -> Checked:
        """A copy between arrays whose sizes casts hide."""
        a, size = self.name(), self.rnd.choice([8, 16, 32])
        text = [
            f"{a} = memref.alloca() : memref<{size}xi64>",
            f"{a}c = memref.cast {a} : memref<{size}xi64> to memref<?xi64>",
            f"memref.copy %open, {a}c : memref<?xi64> to memref<?xi64>",
        ]
        return text, lambda v: [(0, SIZE, size), (0, size, SIZE)]

    def bounds(self, at: str, count: str, peer: str) -> Checked:
        text = [f'comms.check_bounds "a check" {at}, {count} in %k16']
        return text, lambda v: [(v[at], v[count], SIZE)]

    def of_packets(self, at: str, count: str, peer: str) -> Checked:
        a, valid = self.name(), self.rnd.choice(["", f" valid {count}"])
        text = [f"{a}s = comms.scratch : memref<16xi64>", f"{a}f = arith.constant 7 : i32"]
        kind = self.rnd.choice(["packet", "poison", "fill"])
        if kind == "fill":
            text = [f"{a}s = comms.scratch : memref<16xf32>"]
            text += [f"comms.poison_fill {a}s[{at}] count {count} : memref<16xf32>"]
            return text, lambda v: [(v[at], v[count], SIZE)]
        if kind == "poison":
            text = [f"comms.poison_store %floats, %f[{at}]{valid} : tensor<4xf32>, memref<16xf32>"]
            text += [f"{a} = comms.poison_load %f[{at}]{valid} : memref<16xf32> -> tensor<4xf32>"]
        else:
            text += [f"comms.packet_store %floats, {a}s[{at}] flag {a}f{valid} : tensor<4xf32>, memref<16xi64>"]
            text += [f"{a} = comms.packet_load {a}s[{at}] flag {a}f{valid} : memref<16xi64> -> tensor<4xf32>"]
        if not valid:
            return text, lambda v: [(v[at], 4, SIZE)]
        return text, lambda v: [(0, v[count], 4), (v[at], v[count], SIZE)]

    def of_product(self, at: str, count: str, peer: str) -> Checked:
        """A product of parts of two matrices."""
        a = self.name()
        row, column = at, self.rnd.choice([peer, "%k0", "%k3"])
        depth, rows = self.rnd.choice([(count, "%k2"), ("%k2", count), (count, "")])
        text = [f"{a}{end} = comms.scratch : memref<16x16xbf16>" for end in "lr"]
        text += [
            f"{a} = comms.scratch : memref<16x16xf32>",
            f"comms.contract {a}l[{row}, %k0], {a}r[%k0, {column}] to {a}[{row}, {column}] tile [4, 4] depth {depth}"
            f"{' rows ' + rows if rows else ''} : memref<16x16xbf16>, memref<16x16xbf16>, memref<16x16xf32>",
        ]

        def limits(v: Values) -> list[tuple[int, int, int]]:
            high, deep = v[rows] if rows else 4, v[depth]
            places = [(0, high, 4), (v[row], high, 16), (v[column], 4, 16), (0, deep, 16)]
            if 0 in (high, deep) and not all(first >= 0 and first + size <= most for first, size, most in places):
                raise TooLongError  # Of nothing, a place may be anywhere.
            return places

        return text, limits

    # --- The verdict

    def predict(self) -> str:
        """ "good", "bounds" or "long"."""
        try:
            self.run_all(self.body, {})
        except LeftBoundsError:
            return "bounds"
        except TooLongError:
            return "long"
        return "good"


class OfConstants(Program):
    """One access, by constants of which one is out of bounds."""

    def __init__(self, variant: int, access: str, operand: int, value: int) -> None:
        self.choice = access, operand, value
        super().__init__(variant)

    def draw(self, lines: list[str], body: list[Step]) -> None:
        access, operand, value = self.choice
        self.check = False
        self.constant(lines, body, "%wrong", value)
        operands = ["%k2", "%k2", "%k0"]
        operands[operand] = "%wrong"
        self.write(lines, body, getattr(self, access), (operands[0], operands[1], operands[2]))


def list_refusals() -> Iterator[OfConstants]:
    """Every kind of access in each of its forms, with constants that no form of it takes."""
    seen: set[str] = set()
    any_program = Program(0)
    any_program.has_blocks = False
    accesses = [access.__name__ for access in any_program.accesses()]
    for access, variant, operand, value in itertools.product(accesses, range(12), range(3), (-1, 17)):
        program = OfConstants(variant, access, operand, value)
        if program.source not in seen:
            seen.add(program.source)
            yield program


def judge_refusals() -> int:
    """How many of them have an end that is wrong."""
    counts: collections.Counter[str] = collections.Counter()
    for program in list_refusals():
        said, wrong = judge(program)
        counts[said] += 1
        counts["wrong"] += bool(wrong)
        if wrong:
            print(f"WRONG {' '.join(map(str, program.choice))}: {wrong}\n{program.source}", flush=True)
    print("constants: " + ", ".join(f"{name}: {number}" for name, number in sorted(counts.items())), flush=True)
    return counts["wrong"]


def canaried(size: int, value: int, kind: type) -> tuple[Array, Array]:
    """An array between canaries, and all of them."""
    whole: Array = np.full(size + 512, CANARY, kind)
    part = whole[256 : 256 + size]
    part[:] = value
    return part, whole


def simulate(program: Program, arrays: dict[str, list[Array]], check: bool) -> tuple[str, str]:
    """How a run ends, and its message."""
    try:
        commsir.simulate(program.source, ranks=program.ranks, arrays=arrays, time_limit=5, check=check)
    except commsir.BoundsError as error:
        return "bounds", str(error)
    except commsir.LimitError as error:
        return "long", str(error)
    except commsir.CompileError as error:
        if REFUSAL.search(str(error)):
            return "refused", str(error)
        return "unproven" if isinstance(error, commsir.CheckError) else "other", str(error)
    except commsir.DeadlockError as error:
        # A loop without an end that reads a cell polls.
        return "long" if "blocks poll" in str(error) else "other", str(error)
    except commsir.CommsError as error:
        return "other", str(error)
    return "good", ""


def judge(program: Program) -> tuple[str, str]:
    """What has happened, and what is wrong with it; empty: nothing."""
    expected = program.predict()
    ranks = program.ranks
    wholes: list[Array] = []
    arrays: dict[str, list[Array]] = {"in": [np.array(program.inputs, np.int64)] * ranks}
    kinds = {"x": (16, np.int64), "m": (32, np.int64), "f": (16, np.float32), "y": (2, np.int64), "w": (16, np.int64)}
    for name, (size, kind) in kinds.items():
        arrays[name] = []
        for _ in range(ranks):
            part, whole = canaried(size, DATA, kind)
            arrays[name].append(part.reshape(16, 2) if name == "m" else part)
            wholes.append(whole)
    said, message = simulate(program, arrays, program.check)
    if said == "unproven":
        said, message = simulate(program, arrays, False)
    for whole in wholes:
        data = whole[256:-256]
        if (whole[:256] != CANARY).any() or (whole[-256:] != CANARY).any() or (data != DATA).any():
            return said, "memory was written that the program does not write"
    allowed = {
        "good": {"good", "long"},
        "bounds": {"bounds", "refused", "long"},
        "long": {"good", "bounds", "refused", "long"},
    }[expected]
    # An access that is never made may be refused.
    if said == "refused" and expected == "good" and len(program.reached) < program.sites:
        return said, ""
    if said in allowed:
        return said, ""
    return said, f"expected {expected}, got {said}: {message[:600]}"


# --- Processes --------------------------------------------------------------------------------------------------------


def work(seed: int, programs: int, deadline: float, keep: pathlib.Path) -> None:
    """Judges programs one by one; a line of output before each says which."""
    counts: collections.Counter[str] = collections.Counter()
    for number in range(seed, seed + programs):
        if time.time() > deadline:
            break
        print(number, flush=True)
        program = Program(number)
        said, wrong = judge(program)
        counts[said] += 1
        if wrong:
            counts["wrong"] += 1
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{number}.mlir").write_text(program.source)
            print(f"WRONG seed {number}: {wrong}\n  in={program.inputs}, {keep}/{number}.mlir", flush=True)
    print("COUNTS " + json.dumps(counts), flush=True)


def supervise(seed: int, programs: int, deadline: float, keep: pathlib.Path) -> collections.Counter[str]:
    """A worker, started again behind a program that has ended it."""
    counts: collections.Counter[str] = collections.Counter()
    end = seed + programs
    while seed < end and time.time() < deadline:
        command = [sys.executable, __file__, "--work", "--seed", str(seed), "--programs", str(end - seed)]
        command += ["--seconds", str(max(deadline - time.time(), 1)), "--keep", str(keep)]
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        lines = process.stdout.splitlines()
        counts.update(json.loads(next((one[7:] for one in lines if one.startswith("COUNTS ")), "{}")))
        print(
            "\n".join(one for one in lines if not one.isdigit() and not one.startswith("COUNTS ")), end="", flush=True
        )
        if process.returncode == 0:
            break
        last = next((int(one) for one in reversed(lines) if one.isdigit()), end)
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{last}.mlir").write_text(Program(last).source)
        print(f"WRONG seed {last}: the process ended with {process.returncode}: {keep}/{last}.mlir", flush=True)
        counts["wrong"] += 1
        seed = last + 1
    return counts


def share(seed: int, programs: int, jobs: int) -> list[tuple[int, int]]:
    """First seed and number of programs of each job."""
    cuts = [seed + programs * job // jobs for job in range(jobs + 1)]
    return [(first, end - first) for first, end in itertools.pairwise(cuts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "commsir-bounds")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    deadline = time.time() + options.seconds
    if options.work:
        return work(options.seed, options.programs, deadline, options.keep)
    begun, counts = time.time(), collections.Counter[str]()
    if judge_refusals():
        sys.exit(1)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = share(options.seed, options.programs, options.jobs)
        for part in pool.map(lambda one: supervise(one[0], one[1], deadline, options.keep), parts):
            counts.update(part)
    total = sum(number for name, number in counts.items() if name != "wrong")
    hours = (time.time() - begun) * options.jobs / 3600
    print(", ".join(f"{name}: {number}" for name, number in sorted(counts.items())))
    print(f"{total} programs from seed {options.seed}, {counts['wrong']} wrong, {hours:.2f} job hours")
    # Fewer would be a test of nothing.
    sys.exit(1 if counts["wrong"] or counts["good"] < 5 or counts["bounds"] < 5 else 0)


if __name__ == "__main__":
    main()
