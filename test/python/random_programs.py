"""Random fused collectives, compared with NumPy and with one another.

Each program is a collective with random `produce` and `consume` regions: elementwise
arithmetic, up to two row reductions, mixed types, odd sizes. It runs in the CPU world with every
algorithm and protocol that supports it. Checked are:
  - every output against NumPy in float64, within the precision of the types;
  - for one algorithm, the same bits from every protocol and from a shuffled schedule;
  - for all-reduce, the same bits on every rank, if all ranks have the same extra arguments.

Usage: random_programs.py --comms-run PATH [--seed S] [--programs N] [--keep FOLDER]
A failure prints the seed and keeps the kernel and its arrays in FOLDER.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

TYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
}
# Absolute and relative tolerance of a value that has been rounded to the type a few times.
TOLERANCE = {"f32": 2e-4, "f16": 2e-2, "bf16": 1.5e-1}
ALGORITHMS = {
    "all_reduce": ["one_shot", "two_shot", "ring"],
    "reduce_scatter": ["one_shot", "ring"],
    "all_gather": ["one_shot", "ring"],
    "all_to_all": ["one_shot"],
    "broadcast": ["one_shot", "two_shot", "ring"],
}
PROTOCOLS = ["pull", "ll", "lamport"]
REDUCING = ("all_reduce", "reduce_scatter")  # Lamport makes NaN canonical: it cannot copy


@dataclasses.dataclass
class Tile:
    """A value inside a region: its SSA name, its value for all rows, one wide or a row wide."""

    name: str
    value: Array
    narrow: bool = False


class Region:
    """Writes a region's text and evaluates it in float64 at the same time."""

    def __init__(self, random: np.random.Generator, length: int) -> None:
        self.random = random
        self.length = length
        self.lines: list[str] = []
        self.count = 0

    def type_of(self, element: str, narrow: bool = False) -> str:
        return f"tensor<{1 if narrow else self.length}x{element}>"

    def emit(self, text: str, value: Array, narrow: bool = False) -> Tile:
        """Adds `%vN = text` and returns its value."""
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"    {name} = {text}")
        return Tile(name, value, narrow)

    def widen(self, name: str, element: str, value: Array) -> Tile:
        """An argument of the region as f32."""
        wide = value.astype(np.float64)
        if element == "f32":
            return Tile(name, wide)
        return self.emit(f"arith.extf {name} : {self.type_of(element)} to {self.type_of('f32')}", wide)

    def constant(self, value: float, narrow: bool = False) -> Tile:
        shape = self.type_of("f32", narrow)
        return self.emit(f"arith.constant dense<{value:.6e}> : {shape}", np.float64(value) * np.ones(1), narrow)

    def binary(self, op: str, a: Tile, b: Tile, value: Array) -> Tile:
        kind = self.type_of("f32", a.narrow)
        return self.emit(f"{op} {a.name}, {b.name} : {kind}", value, a.narrow)

    def unary(self, op: str, a: Tile, value: Array) -> Tile:
        return self.emit(f"{op} {a.name} : {self.type_of('f32', a.narrow)}", value, a.narrow)

    def row_reduce(self, kind: str, a: Tile) -> Tile:
        """A reduction along the row, spread over the row again."""
        combine: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "min": np.min}
        spread = np.broadcast_to(a.value, a.value.shape[:-1] + (self.length,))
        value = combine[kind](spread, axis=-1, keepdims=True)
        wide, one = self.type_of("f32"), self.type_of("f32", True)
        reduced = self.emit(f"comms.row_reduce {kind} {a.name} : {wide} -> {one}", value, True)
        if kind == "sum":  # keep values near one, whatever the length
            scale = self.constant(1.0 / self.length, True)
            reduced = self.binary("arith.mulf", reduced, scale, value / self.length)
        if self.random.random() < 0.5:
            positive = self.unary("math.absf", reduced, np.abs(reduced.value))
            shifted = self.binary("arith.addf", positive, self.constant(0.5, True), positive.value + 0.5)
            reduced = self.unary("math.rsqrt", shifted, 1 / np.sqrt(shifted.value))
        return self.emit(
            f"comms.broadcast_row {reduced.name} : {one} -> {wide}",
            np.broadcast_to(reduced.value, reduced.value.shape[:-1] + (self.length,)),
        )

    def step(self, tiles: list[Tile]) -> Tile:
        """One random op over the values so far; results stay of the order of one."""
        a, b = (tiles[self.random.integers(len(tiles))] for _ in range(2))
        match self.random.integers(8):
            case 0:
                return self.binary("arith.addf", a, b, a.value + b.value)
            case 1:
                return self.binary("arith.subf", a, b, a.value - b.value)
            case 2:
                bounded = self.unary("math.tanh", a, np.tanh(a.value))
                return self.binary("arith.mulf", bounded, b, bounded.value * b.value)
            case 3:
                return self.binary("arith.maximumf", a, b, np.maximum(a.value, b.value))
            case 4:
                return self.binary("arith.minimumf", a, b, np.minimum(a.value, b.value))
            case 5:
                size = self.unary("math.absf", b, np.abs(b.value))
                below = self.binary("arith.addf", size, self.constant(1.0), size.value + 1)
                return self.binary("arith.divf", a, below, a.value / below.value)
            case 6:
                size = self.unary("math.absf", a, np.abs(a.value))
                minus = self.unary("arith.negf", size, -size.value)
                return self.unary("math.exp", minus, np.exp(minus.value))
            case _:
                half = self.constant(0.5)
                return self.binary("arith.mulf", a, half, a.value * 0.5)

    def narrow_to(self, tile: Tile, element: str) -> Tile:
        if element == "f32":
            return tile
        return self.emit(
            f"arith.truncf {tile.name} : {self.type_of('f32')} to {self.type_of(element)}",
            tile.value,
        )


def rounded(value: Array, element: str) -> Array:
    """float64 values after they have been stored as `element`."""
    return value.astype(np.float32).astype(TYPES[element]).astype(np.float64)


@dataclasses.dataclass
class Program:
    """A kernel, its inputs for each rank, and what each rank's outputs must be."""

    text: str
    collective: str
    ranks: int
    inputs: dict[str, list[Array]]
    expected: dict[str, list[Array]]
    tolerance: float
    wire: str


def exchange(collective: str, wires: list[Array], ranks: int, root: int) -> list[Array]:
    """What arrives on each rank, as rows, before `consume`."""
    if collective == "all_reduce":
        return [np.sum(wires, axis=0)] * ranks
    if collective == "reduce_scatter":
        return list(np.split(np.sum(wires, axis=0), ranks))
    if collective == "all_gather":
        return [np.concatenate(wires)] * ranks
    if collective == "broadcast":
        return [wires[root]] * ranks
    parts = [np.split(wire, ranks) for wire in wires]
    return [np.concatenate([parts[source][rank] for source in range(ranks)]) for rank in range(ranks)]


def make(seed: int) -> Program:
    """The program of a seed."""
    random = np.random.default_rng(seed)
    collective = str(random.choice(list(ALGORITHMS), p=[0.5, 0.125, 0.125, 0.125, 0.125]))
    ranks = int(random.choice([2, 3, 4, 5, 8]))
    length = int(random.choice([1, 3, 8, 16, 17, 33, 64, 100, 257]))
    rows = int(random.integers(1, 8)) + 1
    if collective in ("reduce_scatter", "all_to_all"):
        rows *= ranks
    result_rows = {"reduce_scatter": rows // ranks, "all_gather": rows * ranks}.get(collective, rows)
    in_type, wire, out_type, arg_type = (str(random.choice(list(TYPES))) for _ in range(4))
    root = int(random.integers(ranks))

    xs = [random.uniform(-1, 1, (rows, length)).astype(np.float32).astype(TYPES[in_type]) for _ in range(ranks)]
    residual = random.uniform(-1, 1, (result_rows, length)).astype(np.float32).astype(TYPES[arg_type])
    weight = random.uniform(0.5, 1.5, length).astype(np.float32).astype(TYPES[arg_type])

    produce = Region(random, length)
    wide = produce.widen("%in", in_type, np.stack(xs))
    for _ in range(random.integers(3)):
        wide = produce.step([wide])
    sent = produce.narrow_to(wide, wire)
    arrived = exchange(collective, list(rounded(wide.value, wire)), ranks, root)

    consume = Region(random, length)
    reducing = collective in REDUCING
    acc_type = "f32" if reducing else wire
    first = consume.widen("%a", acc_type, np.stack(arrived))
    tiles = [
        first,
        consume.widen("%r", arg_type, residual[None]),
        consume.widen("%w", arg_type, weight[None, None]),
    ]
    reductions = int(random.integers(3))
    for at in range(random.integers(2, 7) + reductions):
        if at < reductions:
            kind = str(random.choice(["sum", "max", "min"]))
            tiles.append(consume.row_reduce(kind, tiles[-1] if at else first))
        tiles.append(consume.step(tiles))
    last = consume.binary("arith.addf", tiles[-1], first, tiles[-1].value + first.value)
    out = consume.narrow_to(last, out_type)
    second = consume.narrow_to(tiles[len(tiles) // 2], out_type)

    def memory(n: int, element: str) -> str:
        return f"memref<{n}x{length}x{element}>"

    head = {"broadcast": f"root {root} "}.get(collective, "sum " if reducing else "")
    x_type = f"!comms.window<{rows}x{length}x{in_type}>"
    arg = memory(result_rows, arg_type)
    result = memory(result_rows, out_type)
    weights = f"memref<{length}x{arg_type}>"
    text = (
        f"comms.kernel @program(%x: {x_type}, %residual: {arg}, %weight: {weights},"
        f" %y: {result}, %z: {result}) {{\n"
        "  %team = comms.team world\n"
        f"  comms.{collective} {head}%team ins(%x : {x_type}) outs(%y, %z : {result}, {result})\n"
        f"      args(%residual, %weight : {arg}, {weights})\n"
        f"  produce (%in: {produce.type_of(in_type)}) {{\n" + "\n".join(produce.lines) + "\n"
        f"    comms.yield {sent.name} : {produce.type_of(wire)}\n  }}\n"
        f"  consume (%a: {consume.type_of(acc_type)}, %r: {consume.type_of(arg_type)},"
        f" %w: {consume.type_of(arg_type)}) {{\n" + "\n".join(consume.lines) + "\n"
        f"    comms.yield {out.name}, {second.name} :"
        f" {consume.type_of(out_type)}, {consume.type_of(out_type)}\n  }}\n"
        "  comms.return\n}\n"
    )
    shape = (ranks, result_rows, length)
    return Program(
        text,
        collective,
        ranks,
        {"x": xs, "residual": [residual] * ranks, "weight": [weight] * ranks},
        {
            "y": list(np.broadcast_to(last.value, shape)),
            "z": list(np.broadcast_to(second.value, shape)),
        },
        max(TOLERANCE[wire], TOLERANCE[out_type]) * 2,
        wire,
    )


def run(comms_run: str, program: Program, folder: pathlib.Path, options: list[str]) -> dict[str, list[Array]] | str:
    """The outputs of one run, or its error text."""
    arguments = [comms_run, str(folder / "program.mlir"), f"--ranks={program.ranks}", "--quiet"]
    arguments += [f"--input={name}={folder}/{name}-%r.npy" for name in program.inputs]
    arguments += [f"--output={name}={folder}/out-{name}-%r.npy" for name in program.expected]
    done = subprocess.run([*arguments, *options], capture_output=True, text=True, timeout=120)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    return {
        name: [np.load(folder / f"out-{name}-{rank}.npy") for rank in range(program.ranks)] for name in program.expected
    }


def differences(program: Program, outputs: dict[str, list[Array]]) -> str:
    """Empty, or where an output is not what NumPy says."""
    for name, wanted in program.expected.items():
        for rank, (got, want) in enumerate(zip(outputs[name], wanted, strict=True)):
            if got.dtype.kind == "V":
                got = got.view(ml_dtypes.bfloat16)
            error = np.abs(got.astype(np.float64) - want)
            if not np.all(error <= program.tolerance * (1 + np.abs(want))):
                at = np.unravel_index(np.nanargmax(error), error.shape)
                return f"{name} of rank {rank} at {at}: {got[at]}, NumPy says {want[at]}"
    return ""


def bits(outputs: dict[str, list[Array]]) -> bytes:
    return b"".join(array.tobytes() for name in sorted(outputs) for array in outputs[name])


def check(comms_run: str, seed: int, folder: pathlib.Path) -> str:
    """Empty, or what is wrong with the program of `seed`."""
    program = make(seed)
    (folder / "program.mlir").write_text(program.text, encoding="utf-8")
    for name, arrays in program.inputs.items():
        for rank, array in enumerate(arrays):
            np.save(folder / f"{name}-{rank}.npy", array)
    random = np.random.default_rng(seed)
    for algorithm in ALGORITHMS[program.collective]:
        first: bytes | None = None
        # The same for all protocols: a ring's order of summation depends on it.
        blocks = int(random.choice([1, 2, 3, 7]))
        for protocol in PROTOCOLS if program.collective in REDUCING else PROTOCOLS[:2]:
            options = [f"--algorithm={algorithm}", f"--protocol={protocol}", f"--blocks={blocks}"]
            options += ["--launches=3", f"--seed={seed}", "--fuzz-schedules=2"]
            outputs = run(comms_run, program, folder, options)
            where = f"seed {seed}, {program.collective}, {' '.join(options)}"
            if isinstance(outputs, str):
                return f"{where}: {outputs}"
            if wrong := differences(program, outputs):
                return f"{where}: {wrong}"
            if first is None:
                first = bits(outputs)
            elif bits(outputs) != first:
                return f"{where}: not the bits of {PROTOCOLS[0]}"
            if program.collective == "all_reduce":
                for name, arrays in outputs.items():
                    if any(array.tobytes() != arrays[0].tobytes() for array in arrays):
                        return f"{where}: {name} has not the same bits on every rank"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--comms-run", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for a program that fails")
    options = parser.parse_args()

    def one(seed: int) -> str:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            wrong = check(options.comms_run, seed, folder)
            if wrong and options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                for path in folder.iterdir():
                    (options.keep / f"seed{seed}-{path.name}").write_bytes(path.read_bytes())
            return wrong

    seeds = range(options.seed, options.seed + options.programs)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [line for line in pool.map(one, seeds) if line]
    print("\n".join(wrong))
    print(json.dumps({"programs": len(seeds), "wrong": len(wrong)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
