"""Random kernels that compute indices, and the same as steps of a model."""

import random
from collections.abc import Callable

import numpy as np
from index_arithmetic import (
    INDEX_CONSTANTS,
    INDEX_OPS,
    PREDICATES,
    affine_ceil,
    affine_floor,
    affine_mod,
    compare,
    compute,
    signed,
    unsigned,
)

DATA = 111
SIZE = 16
RANKS = 2
MOST_STEPS = 3000
CONSTANTS = [0, 0, 1, 1, 2, 3, -1, -2, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 63, 64, 255, 1 << 31, (1 << 31) - 1]
CONSTANTS += [-(1 << 31), 1 << 32, 1 << 61, 1 << 62, (1 << 63) - 1, -(1 << 63), 100000, -16]
INPUTS = [0, 1, 3, 15, 16, -1, 100, 7, 1 << 40, -(1 << 62), 4, 8, 12]
FLAGS = ["", "", " overflow<nsw>", " overflow<nuw>", " overflow<nsw, nuw>"]

Values = dict[str, int]
Step = Callable[[Values], None]


class LeftBoundsError(Exception):
    """The model's access out of bounds."""


class TooLongError(Exception):
    """The model follows no further: the program makes too many steps, or what it does is open."""


class Indices:
    """Lines of a kernel that compute indices, and what they compute; a subclass adds accesses."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)
        self.count = 0
        self.ranks = self.rnd.choice([1, RANKS])
        self.steps = 0
        self.depth = 0
        # Basic blocks, between which tiles do not pass and which the checker does not follow.
        self.has_blocks = False

    def access(self, lines: list[str], body: list[Step], names: list[str]) -> None:
        """Writes an access by some of the indices."""
        raise NotImplementedError

    def constant(self, lines: list[str], body: list[Step], name: str, value: int) -> None:
        lines.append(f"{name} = arith.constant {value} : index")
        body.append(lambda v: v.__setitem__(name, value))

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
