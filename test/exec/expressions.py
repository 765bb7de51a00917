"""Random arithmetic: each op of arith and math that kernels may contain, on tiles and on scalars, of every type.

expressions.py [--seed S] [--count N] [--show]

Runs programs on the CPU, each of which stores the operands and the result of every op. NumPy computes each op again
from these operands, and the stored result must have the bits of the Spec's chapter *Bits*. NumPy does not compute
sums of rows, or functions that are expanded in the IR (exp, sin, ...); tests of other targets compare them with the
CPU.
"""

import argparse
import functools
import pathlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

import reference  # noqa: E402

Array = np.ndarray[Any, Any]
Compute = Callable[..., Any]

TYPES: dict[str, Any] = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
TYPES |= {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
FLOATS = list(TYPES)
INTEGERS = ["i8", "i16", "i32", "i64"]
TYPES |= {name: np.dtype(f"int{name[1:]}") for name in INTEGERS}
TYPES["i1"] = np.dtype("int8")  # As it is stored.
NARROW = FLOATS[:4]
LENGTHS = [1, 2, 7, 16, 33, 70]
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
ORDERS = ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"]


class Value(NamedTuple):
    name: str
    type: str
    is_tile: bool
    slot: int  # Where it is stored, among those of its type: tiles in y, scalars in z; -1: in x, at `at`.
    at: int = 0


class Step(NamedTuple):
    """An op: its result is `compute` of its operands, where that is known."""

    op: str
    operands: list[Value]
    result: Value
    compute: Compute | None


def width(kind: str) -> int:
    return 1 if kind == "i1" else 8 * np.dtype(TYPES[kind]).itemsize


# What ops compute ---------------------------------------------------------------------------------------------------


def unsigned(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")


def wide(array: Array) -> Array:
    if array.dtype.itemsize >= 4:
        return array
    made: Array = array.astype(np.float32)
    return reference.canonical(made) if array.dtype == TYPES["f8E4M3FN"] else made


def floats(compute: Compute) -> Callable[[str], Compute]:
    """An op on floats of a type: narrow ones are computed in f32 and rounded once."""
    return lambda kind: lambda *given: reference.convert(compute(*map(wide, given)), TYPES[kind])


def numbers_first(choose: Compute) -> Compute:
    def compute(a: Array, b: Array) -> Array:
        made: Array = np.where(np.isnan(a), b, np.where(np.isnan(b), a, choose(a, b)))
        return made

    return compute


def divide(a: Array, b: Array) -> Array:
    """Integers, towards zero; by zero: all ones."""
    quotient = np.full_like(a, -1)
    for at, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if y:
            exact = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            limits = np.iinfo(a.dtype)
            quotient[at] = exact if exact <= limits.max else limits.min
    return quotient


def divide_unsigned(a: Array, b: Array) -> Array:
    given = zip(unsigned(a).tolist(), unsigned(b).tolist(), strict=True)
    most = (1 << 8 * a.itemsize) - 1
    return np.array([x // y if y else most for x, y in given], f"u{a.itemsize}").view(a.dtype)


def remainder(quotient: Compute) -> Compute:
    return lambda a, b: np.where(b == 0, a, a - quotient(a, b) * b).astype(a.dtype)


def rounded_division(up: bool, signed: bool = True) -> Compute:
    """Of numbers that have a quotient: not computed for others."""

    def compute(a: Array, b: Array) -> Array:
        given = zip((a if signed else unsigned(a)).tolist(), (b if signed else unsigned(b)).tolist(), strict=True)
        bits = 8 * a.itemsize
        made = [0 if not y else -(-x // y) if up else x // y for x, y in given]
        return np.array([n & (1 << bits) - 1 for n in made], f"u{a.itemsize}").view(a.dtype)

    return compute


def shift(how: str) -> Compute:
    def one(x: int, by: int, bits: int) -> int:
        x = x - (1 << bits) if how == "shrsi" and x >> (bits - 1) else x
        by = min(by, bits)
        return (x << by if how == "shli" else x >> by) & (1 << bits) - 1

    def compute(a: Array, b: Array) -> Array:
        given = zip(unsigned(a).tolist(), unsigned(b).tolist(), strict=True)
        return np.array([one(x, by, 8 * a.itemsize) for x, by in given], f"u{a.itemsize}").view(a.dtype)

    return compute


def per_bits(count: Callable[[str], int]) -> Compute:
    def compute(a: Array) -> Array:
        return np.array([count(f"{x:0{8 * a.itemsize}b}") for x in unsigned(a).tolist()]).astype(a.dtype)

    return compute


def compare_floats(how: str) -> Compute:
    plain = {"eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less}
    plain["le"] = np.less_equal

    def compute(a: Array, b: Array) -> Array:
        a, b = wide(a), wide(b)
        unordered: Array = np.isnan(a) | np.isnan(b)
        if how in ("ord", "uno"):
            return unordered if how == "uno" else ~unordered
        return np.where(unordered, how[0] == "u", plain[how[1:]](a, b))

    return compute


def compare_integers(how: str) -> Compute:
    plain = {"eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less}
    plain["le"] = np.less_equal
    return lambda a, b: plain[how[-2:]](*((unsigned(a), unsigned(b)) if how[0] == "u" else (a, b)))


def is_normal(a: Array) -> Array:
    least = ml_dtypes.finfo(a.dtype).smallest_normal  # type: ignore[no-untyped-call]
    made: Array = np.isfinite(wide(a)) & (np.abs(wide(a)) >= float(least))
    return made


FLOAT_OPS: dict[str, tuple[int, Compute]] = {
    "arith.addf": (2, np.add),
    "arith.subf": (2, np.subtract),
    "arith.mulf": (2, np.multiply),
    "arith.divf": (2, np.divide),
    "arith.maximumf": (2, reference.maximum),
    "arith.minimumf": (2, reference.minimum),
    "arith.maxnumf": (2, numbers_first(reference.maximum)),
    "arith.minnumf": (2, numbers_first(reference.minimum)),
    "arith.negf": (1, np.negative),
    "math.absf": (1, np.abs),
    "math.ceil": (1, np.ceil),
    "math.floor": (1, np.floor),
    "math.trunc": (1, np.trunc),
    "math.roundeven": (1, np.rint),
    "math.sqrt": (1, np.sqrt),
    "math.rsqrt": (1, lambda a: (1 / np.sqrt(a)).astype(a.dtype)),
    # A NaN that an op has made was stored as its type's own, and one that was moved as it is.
    "math.copysign": (2, np.copysign),
}
TESTS: dict[str, Compute] = {
    "math.isnan": lambda a: np.isnan(wide(a)),
    "math.isinf": lambda a: np.isinf(wide(a)),
    "math.isfinite": lambda a: np.isfinite(wide(a)),
    "math.isnormal": is_normal,
}
FUNCTIONS = [
    "acos",
    "asin",
    "atan",
    "cbrt",
    "cos",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "sin",
    "tanh",
]
FUNCTIONS += ["acosh", "asinh", "atanh", "cosh", "exp2", "round", "sinh", "tan"]
INTEGER_OPS: dict[str, tuple[int, Compute]] = {
    "arith.addi": (2, np.add),
    "arith.subi": (2, np.subtract),
    "arith.muli": (2, np.multiply),
    "arith.andi": (2, np.bitwise_and),
    "arith.ori": (2, np.bitwise_or),
    "arith.xori": (2, np.bitwise_xor),
    "arith.maxsi": (2, np.maximum),
    "arith.minsi": (2, np.minimum),
    "arith.maxui": (2, lambda a, b: np.maximum(unsigned(a), unsigned(b)).view(a.dtype)),
    "arith.minui": (2, lambda a, b: np.minimum(unsigned(a), unsigned(b)).view(a.dtype)),
    "arith.divsi": (2, divide),
    "arith.divui": (2, divide_unsigned),
    "arith.remsi": (2, remainder(divide)),
    "arith.remui": (2, remainder(divide_unsigned)),
    "arith.ceildivsi": (2, rounded_division(up=True)),
    "arith.ceildivui": (2, rounded_division(up=True, signed=False)),
    "arith.floordivsi": (2, rounded_division(up=False)),
    "arith.shli": (2, shift("shli")),
    "arith.shrsi": (2, shift("shrsi")),
    "arith.shrui": (2, shift("shrui")),
    "math.absi": (1, lambda a: np.where(a < 0, -a, a)),
    "math.ctlz": (1, per_bits(lambda text: len(text) - len(text.lstrip("0")))),
    "math.cttz": (1, per_bits(lambda text: len(text) - len(text.rstrip("0")))),
    "math.ctpop": (1, per_bits(lambda text: text.count("1"))),
}
QUOTIENTS = ("arith.ceildivsi", "arith.ceildivui", "arith.floordivsi")


def from_integer(kind: str, signed: bool) -> Compute:
    def compute(a: Array) -> Array:
        numbers = a if signed else unsigned(a)
        made: Array = reference.convert(numbers.astype(np.float64 if kind == "f64" else np.float32), TYPES[kind])
        return made

    return compute


def to_unsigned(kind: str) -> Compute:
    def compute(a: Array) -> Array:
        most = (1 << width(kind)) - 1
        exact = [0.0 if x != x else x for x in a.astype(np.float64).tolist()]
        made = [most if x >= most else int(max(x, 0.0)) for x in exact]
        return np.array(made, f"u{width(kind) // 8}").view(TYPES[kind])

    return compute


# Programs -------------------------------------------------------------------------------------------------------------


class Program:
    """A kernel of one block, and what its ops are."""

    def __init__(self, lots: random.Random, steps: int = 40) -> None:
        self.lots, self.length = lots, lots.choice(LENGTHS)
        self.kinds = lots.sample(FLOATS, lots.randint(1, 4)) + lots.sample(INTEGERS, lots.randint(1, 3))
        self.lines: list[str] = []
        self.names = 0
        self.slots: dict[tuple[str, bool], int] = {}
        self.values: list[Value] = []
        self.steps: list[Step] = []
        self.constants: dict[str, Array] = {}
        for kind in self.kinds:
            for _ in range(2):
                self.load(kind, is_tile=True)
                self.load(kind, is_tile=False)
        while len(self.steps) < steps:
            self.draw()

    def name(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def shaped(self, kind: str, is_tile: bool) -> str:
        return f"tensor<{self.length}x{kind}>" if is_tile else kind

    def constant(self, value: int) -> str:
        name = self.name()
        self.lines.append(f"{name} = arith.constant {value} : index")
        return name

    def literal(self, kind: str, is_tile: bool) -> Value:
        """A constant, which folders may compute with."""
        value = Value(self.name(), kind, is_tile, -1)
        number = literals(kind)[self.lots.randrange(len(literals(kind)))]
        bits = unsigned(np.array([number]))[0]
        text = f"0x{bits:0{width(kind) // 4}X}" if kind in FLOATS else f"{number}"
        text = f"dense<{text}>" if is_tile else text
        self.lines.append(f"{value.name} = arith.constant {text} : {self.shaped(kind, is_tile)}")
        self.constants[value.name] = np.array([number])
        self.values.append(value)
        return value

    def load(self, kind: str, is_tile: bool) -> Value:
        if self.lots.random() < 0.3:
            return self.literal(kind, is_tile)
        at = self.lots.randint(0, 63)
        where, name, memory = self.constant(at), self.name(), f"memref<{64 + self.length}x{kind}>"
        if is_tile:
            self.lines.append(f"{name} = comms.tile_load %x{kind}[{where}] : {memory} -> {self.shaped(kind, True)}")
        else:
            self.lines.append(f"{name} = memref.load %x{kind}[{where}] : {memory}")
        value = Value(name, kind, is_tile, -1, at)
        self.values.append(value)
        return value

    def pick(self, kind: str, is_tile: bool) -> Value:
        fit = [value for value in self.values if value.type == kind and value.is_tile == is_tile]
        if not fit or (kind != "i1" and self.lots.random() < 0.15):
            return self.load(kind, is_tile) if kind != "i1" else self.test(is_tile)
        return self.lots.choice(fit[-6:])

    def test(self, is_tile: bool) -> Value:
        kind = self.lots.choice(self.kinds)
        if kind in FLOATS:
            how = self.lots.choice(ORDERS)
            head, compute = f"arith.cmpf {how}, ", compare_floats(how)
        else:
            how = self.lots.choice(PREDICATES)
            head, compute = f"arith.cmpi {how}, ", compare_integers(how)
        return self.add(head, [self.pick(kind, is_tile), self.pick(kind, is_tile)], "i1", is_tile, compute)

    def add(
        self,
        op: str,
        operands: Sequence[Value],
        kind: str,
        is_tile: bool,
        compute: Compute | None,
        types: str = "",
    ) -> Value:
        """An op, whose result is stored."""
        slot = self.slots.get((kind, is_tile), 0)
        self.slots[kind, is_tile] = slot + 1
        value = Value(self.name(), kind, is_tile, slot)
        names = ", ".join(operand.name for operand in operands)
        types = types or self.shaped(operands[0].type, operands[0].is_tile)
        self.lines.append(f"{value.name} = {op}{names} : {types}")
        self.store(value)
        self.values.append(value)
        self.steps.append(Step(op.strip(), list(operands), value, compute))
        return value

    def store(self, value: Value) -> None:
        kind, stored = value.type, value.name
        if kind == "i1":
            stored = self.name()
            types = f"{self.shaped('i1', value.is_tile)} to {self.shaped('i8', value.is_tile)}"
            self.lines.append(f"{stored} = arith.extui {value.name} : {types}")
        element, at = "i8" if kind == "i1" else kind, self.constant(value.slot * (self.length if value.is_tile else 1))
        memory = f"memref<SIZE{'y' if value.is_tile else 'z'}{kind}x{element}>"
        if value.is_tile:
            self.lines.append(f"comms.tile_store {stored}, %y{kind}[{at}] : {self.shaped(element, True)}, {memory}")
        else:
            self.lines.append(f"memref.store {stored}, %z{kind}[{at}] : {memory}")

    # Ops --------------------------------------------------------------------------------------------------------------

    def draw(self) -> None:
        is_tile = self.lots.random() < 0.7
        kind = self.lots.choice(self.kinds)
        ways = [self.plain, self.plain, self.plain, self.converted, self.converted, self.chosen, self.spread]
        self.lots.choice(ways)(kind, is_tile)

    def plain(self, kind: str, is_tile: bool) -> None:
        if kind == "f32" and self.lots.random() < 0.3:
            function = self.lots.choice([*FUNCTIONS, "atan2", "powf"])
            operands = [self.pick(kind, is_tile) for _ in range(2 if function in ("atan2", "powf") else 1)]
            self.add(f"math.{function} ", operands, kind, is_tile, None)
        elif kind in FLOATS and self.lots.random() < 0.1:
            self.add("math.fma ", [self.pick(kind, is_tile) for _ in range(3)], kind, is_tile, None)
        elif kind in FLOATS and self.lots.random() < 0.15:
            op = self.lots.choice(list(TESTS))
            self.add(op + " ", [self.pick(kind, is_tile)], "i1", is_tile, TESTS[op])
        else:
            ops = FLOAT_OPS if kind in FLOATS else INTEGER_OPS
            op = self.lots.choice(list(ops))
            count, compute = ops[op]
            operands = [self.pick(kind, is_tile) for _ in range(count)]
            self.add(op + " ", operands, kind, is_tile, floats(compute)(kind) if kind in FLOATS else compute)

    def converted(self, kind: str, is_tile: bool) -> None:
        to = self.lots.choice(self.kinds)
        value = self.pick(kind, is_tile)
        a, b = width(kind), width(to)
        signed = self.lots.random() < 0.5
        if kind in FLOATS and to in FLOATS:
            if a == b or (kind == "f64" and b < 32):
                return
            op, compute = "arith.extf" if a < b else "arith.truncf", lambda x: reference.convert(x, TYPES[to])
        elif kind in FLOATS:
            if a == b and self.lots.random() < 0.5:
                op, compute = "arith.bitcast", lambda x: x.view(TYPES[to])
            else:
                op = "arith.fptosi" if signed else "arith.fptoui"
                compute = (lambda x: reference.to_integer(x, TYPES[to])) if signed else to_unsigned(to)
        elif to in FLOATS:
            if a == b and self.lots.random() < 0.5:
                op, compute = "arith.bitcast", lambda x: x.view(TYPES[to])
            else:
                op, compute = "arith.sitofp" if signed else "arith.uitofp", from_integer(to, signed)
        elif a == b:
            return
        elif a < b:
            op = "arith.extsi" if signed else "arith.extui"
            compute = (lambda x: x.astype(TYPES[to])) if signed else (lambda x: unsigned(x).astype(TYPES[to]))
        else:
            op, compute = "arith.trunci", lambda x: x.astype(TYPES[to])
        types = f"{self.shaped(kind, is_tile)} to {self.shaped(to, is_tile)}"
        self.add(op + " ", [value], to, is_tile, compute, types)

    def chosen(self, kind: str, is_tile: bool) -> None:
        condition, a, b = self.pick("i1", is_tile), self.pick(kind, is_tile), self.pick(kind, is_tile)
        types = f"{self.shaped('i1', is_tile)}, {self.shaped(kind, is_tile)}" if is_tile else kind
        self.add("arith.select ", [condition, a, b], kind, is_tile, lambda c, x, y: np.where(c != 0, x, y), types)

    def spread(self, kind: str, is_tile: bool) -> None:
        """Between scalars and tiles, and within a tile."""
        tile = self.shaped(kind, True)
        if not is_tile:
            types = f"{kind} -> {tile}"
            self.add("comms.splat ", [self.pick(kind, False)], kind, True, lambda x: np.repeat(x, self.length), types)
        elif self.length > 1:
            averages = ["avg"] * (kind in FLOATS or self.length < 1 << width(kind) - 1)
            how = self.lots.choice(["sum", "prod", "min", "max", *averages] + ["and", "or", "xor"] * (kind in INTEGERS))
            row, operand = self.name(), self.pick(kind, True)
            self.lines.append(f"{row} = comms.row_reduce {how} {operand.name} : {tile} -> tensor<1x{kind}>")
            self.add(
                "comms.broadcast_row ", [Value(row, kind, True, -2)], kind, True, None, f"tensor<1x{kind}> -> {tile}"
            )

    def sizes(self) -> dict[str, tuple[int, str]]:
        """Elements and type of each argument."""
        loaded = {f"x{kind}": (64 + self.length, kind) for kind in self.kinds}
        stored = {
            f"{'y' if is_tile else 'z'}{kind}": (
                count * (self.length if is_tile else 1),
                "i8" if kind == "i1" else kind,
            )
            for (kind, is_tile), count in self.slots.items()
        }
        return loaded | stored

    def text(self) -> str:
        sizes = self.sizes()
        arguments = ", ".join(f"%{name}: memref<{size}x{kind}>" for name, (size, kind) in sizes.items())
        text = f"comms.kernel @program({arguments}) attributes {{blocks = 1 : i64}} {{\n"
        text += "".join(f"  {line}\n" for line in self.lines) + "  comms.return\n}\n"
        for name, (size, _) in sizes.items():
            text = text.replace(f"memref<SIZE{name}x", f"memref<{size}x")
        return text

    # What came --------------------------------------------------------------------------------------------------------

    def inputs(self, lots: np.random.Generator) -> dict[str, Array]:
        return {f"x{kind}": make(kind, 64 + self.length, lots) for kind in self.kinds}

    def judge(self, inputs: dict[str, Array], outputs: dict[str, Array]) -> str:
        """What is wrong."""

        def given(value: Value) -> Array:
            if value.name in self.constants:
                return np.repeat(self.constants[value.name], self.length if value.is_tile else 1)
            if value.slot < 0:
                return inputs[f"x{value.type}"][value.at :][: self.length if value.is_tile else 1]
            length = self.length if value.is_tile else 1
            return outputs[f"{'y' if value.is_tile else 'z'}{value.type}"][value.slot * length :][:length]

        return self.compare(given)

    def compare(self, given: Callable[[Value], Array]) -> str:
        """What is wrong, where values are what is `given`."""
        for step in self.steps:
            if not step.compute:
                continue
            operands = [given(operand) for operand in step.operands]
            with np.errstate(all="ignore"):
                wanted = np.asarray(step.compute(*operands)).astype(TYPES[step.result.type])
            got = given(step.result)
            wrong = unsigned(wanted) != unsigned(got)
            if step.result.type in FLOATS:
                wrong &= ~(np.isnan(wide(wanted)) & np.isnan(wide(got)))  # Which NaN: other targets have the same.
            if step.op in QUOTIENTS:
                wrong &= operands[1] != 0
            if wrong.any():
                at = int(np.argmax(wrong))
                said = ", ".join(
                    f"{one.name} {one.type} {o[min(at, len(o) - 1)]}"
                    for one, o in zip(step.operands, operands, strict=True)
                )
                kind = step.result.type
                return f"{step.result.name} = {step.op} of {said}, element {at}: {got[at]}, not {wanted[at]} ({kind})"
        return ""


@functools.cache
def literals(kind: str) -> Array:
    """Numbers that are written into programs."""
    if kind in INTEGERS:
        limits = np.iinfo(TYPES[kind])
        return np.array([0, 1, -1, 2, 3, 7, width(kind), limits.min, limits.max], TYPES[kind])
    most = float(ml_dtypes.finfo(TYPES[kind]).max)  # type: ignore[no-untyped-call]
    numbers = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.0, 0.0703125, most, -most, np.inf, -np.inf, np.nan]
    return np.array(numbers).astype(TYPES[kind])


def make(kind: str, count: int, lots: np.random.Generator) -> Array:
    """Numbers of any size, small numbers, and what is special."""
    size = np.dtype(TYPES[kind]).itemsize
    made: Array = (
        lots.integers(0, 1 << 8 * size, count, np.uint64, endpoint=False).astype(f"u{size}")
        if size < 8
        else lots.integers(0, (1 << 64) - 1, count, np.uint64)
    )
    small = lots.random(count) < 0.5
    if kind in FLOATS:
        numbers = (lots.standard_normal(count) * 4).astype(TYPES[kind]).view(made.dtype)
        special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5], TYPES[kind]).view(made.dtype)
    else:
        limits = np.iinfo(TYPES[kind])
        numbers = lots.integers(-9, 10, count).astype(TYPES[kind]).view(made.dtype)
        special = np.array([0, 1, -1, limits.min, limits.max, 8 * size], TYPES[kind]).view(made.dtype)
    made[small] = numbers[small]
    at = lots.random(count) < 0.15
    made[at] = lots.choice(special, count)[at]
    return made.view(TYPES[kind])


def run(text: str, inputs: dict[str, Array], folder: pathlib.Path) -> dict[str, Array] | str:
    """All arrays after a run on the CPU, or what comms-run said."""
    path = folder / "program.mlir"
    path.write_text(text)
    head = text.partition("{")[0]
    names = [word.split(":")[0] for word in head.split("%")[1:]]
    flags: list[str] = []
    for name, array in inputs.items():
        np.save(folder / f"in-{name}-0.npy", array)
        flags += ["--input", f"{name}={folder}/in-{name}-%r.npy"]
    for name in names:
        flags += ["--output", f"{name}={folder}/out-{name}-%r.npy"]
    done = subprocess.run(
        ["comms-run", str(path), "--ranks", "1", "--launches", "1", "--quiet", *flags], capture_output=True, text=True
    )
    if done.returncode:
        return done.stderr
    kinds = dict(word.rstrip(", )>").split(": memref<") for word in head.split("(")[1].split("%")[1:] if ": " in word)
    arrays = {}
    for name in names:
        array = np.load(folder / f"out-{name}-0.npy")
        kind = kinds[name].split(">")[0].split("x", 1)[1]
        arrays[name] = array.view(TYPES[kind])
    return arrays


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--show", action="store_true", help="print the programs alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.seed * 1_000_003, arguments.seed * 1_000_003 + arguments.count):
            program = Program(random.Random(number))
            text, inputs = program.text(), program.inputs(np.random.default_rng(number))
            if arguments.show:
                print(f"// number {number}\n{text}")
                continue
            outputs = run(text, inputs, pathlib.Path(folder))
            wrong = outputs if isinstance(outputs, str) else program.judge(inputs, outputs)
            if wrong:
                print(f"number {number}: {wrong}\n{text}")
                return 1
    print(f"{arguments.count} programs: the Spec's bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
