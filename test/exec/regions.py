"""Random arithmetic in the regions of collectives: each op of arith and math, on tiles and scalars of every type.

regions.py [--seed S] [--count N] [--show]

Runs each collective on the CPU by several algorithms and protocols. The result of every op in a region is an output
(from `consume`) or is sent (from `produce`), so NumPy can compute each op again from its operands, as in
expressions.py. All runs must have the same bits where the Spec promises it.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import expressions
from expressions import FLOATS, INTEGERS, TYPES, Array, Step, Value

LENGTHS = [1, 2, 7, 16, 33, 64, 129, 1040]
REDUCING = ["all_reduce", "all_reduce", "reduce_scatter", "reduce"]
MOVING = ["all_gather", "broadcast", "all_to_all", "gather", "scatter"]
ALGORITHMS = {
    "all_reduce": ["one_shot", "two_shot", "ring", "permutation"],
    "reduce_scatter": ["one_shot", "ring", "permutation"],
    "all_gather": ["one_shot", "ring", "permutation"],
    "all_to_all": ["one_shot", "permutation"],
    "broadcast": ["one_shot", "two_shot", "ring", "permutation"],
}
PROTOCOLS = ["pull", "push", "ll", "ll128", "lamport"]


class Region(expressions.Program):  # type: ignore[misc]
    """A region, whose values except its arguments and constants are yielded."""

    def __init__(self, lots: random.Random, length: int, arguments: list[str], kinds: list[str], steps: int) -> None:
        self.lots, self.length, self.kinds = lots, length, kinds
        self.lines: list[str] = []
        self.names = 0
        self.steps: list[Step] = []
        self.slots: dict[tuple[str, bool], int] = {}
        self.constants: dict[str, Array] = {}
        self.yielded: list[tuple[str, str, int, Value]] = []  # Name, element, length, and what it is.
        self.arguments = [Value(f"%a{i}", kind, True, -1) for i, kind in enumerate(arguments)]
        self.values = list(self.arguments)
        self.flat = lots.random() < 0.4
        while len(self.steps) < steps:
            self.draw()

    def draw(self) -> None:
        is_tile = self.flat or self.lots.random() < 0.8
        ways = [self.plain, self.plain, self.plain, self.converted, self.converted, self.chosen]
        self.lots.choice(ways if self.flat else [*ways, self.spread])(self.lots.choice(self.kinds), is_tile)

    def load(self, kind: str, is_tile: bool) -> Value:
        """An argument, or a constant: regions load nothing."""
        fit = [value for value in self.arguments if value.type == kind and is_tile]
        if fit and self.lots.random() < 0.8:
            return self.lots.choice(fit)
        return self.literal(kind, is_tile)

    def store(self, value: Value) -> None:
        name, element, length = value.name, value.type, self.length if value.is_tile else 1
        if element == "i1":
            name, element = self.name(), "i8"
            types = f"{self.shaped('i1', value.is_tile)} to {self.shaped('i8', value.is_tile)}"
            self.lines.append(f"{name} = arith.extui {value.name} : {types}")
        if not value.is_tile:
            tile = self.name()
            self.lines.append(f"{tile} = comms.splat {name} : {element} -> tensor<1x{element}>")
            name = tile
        self.yielded.append((name, element, length, value))

    def block(self, title: str) -> str:
        arguments = ", ".join(f"{value.name}: tensor<{self.length}x{value.type}>" for value in self.arguments)
        names = ", ".join(name for name, *_ in self.yielded)
        types = ", ".join(f"tensor<{length}x{element}>" for _, element, length, _ in self.yielded)
        lines = "".join(f"    {line}\n" for line in self.lines)
        return f"  {title}({arguments}) {{\n{lines}    comms.yield {names} : {types}\n  }}\n"

    def check(self, rows: int, arguments: list[Array], outputs: list[Array]) -> str:
        """What is wrong with `outputs`, which come in the order of what is yielded, of `rows` rows."""
        known = {value.name: array.reshape(-1) for value, array in zip(self.arguments, arguments, strict=True)}
        known |= {value.name: array for (*_, value), array in zip(self.yielded, outputs, strict=True)}

        def given(value: Value) -> Array:
            if value.name in self.constants:
                return np.repeat(self.constants[value.name], rows * (self.length if value.is_tile else 1))
            return known[value.name]

        wrong: str = self.compare(given)
        return wrong


class Program:
    """A kernel of one collective with a region."""

    def __init__(self, lots: random.Random, ranks: int = 0) -> None:
        self.lots = lots
        self.ranks = ranks or lots.choice([1, 2, 3, 4])
        self.collective = lots.choice(REDUCING + MOVING)
        self.reduces = self.collective in REDUCING
        self.length = lots.choice(LENGTHS)
        self.rows = lots.randint(1, 4)
        if self.collective in ("reduce_scatter", "all_to_all", "scatter"):
            self.rows *= self.ranks
        self.root = lots.randrange(self.ranks)
        self.result_rows = self.rows
        if self.collective in ("reduce_scatter", "scatter"):
            self.result_rows //= self.ranks
        elif self.collective in ("all_gather", "gather"):
            self.result_rows *= self.ranks
        kinds = lots.sample(FLOATS, lots.randint(1, 3)) + lots.sample(INTEGERS, lots.randint(1, 2))
        self.ins = [lots.choice(kinds) for _ in range(lots.randint(1, 2))]
        # (Type, whether it is of all rows)
        self.args: list[tuple[str, bool]] = []
        self.kind = ""
        if not self.reduces:
            self.region = Region(lots, self.length, self.ins, kinds, lots.randint(3, 10))
            return
        every = ["sum", "sum", "min", "max", "avg", "prod"] + ["and", "or", "xor"] * all(
            k in INTEGERS for k in self.ins
        )
        self.kind = lots.choice(every)
        self.args = [(lots.choice(kinds), lots.random() < 0.4) for _ in range(lots.randint(0, 3))]
        arrived = [self.accumulated(kind) for kind in self.ins]
        kinds = list(dict.fromkeys(kinds + arrived))
        self.region = Region(lots, self.length, arrived + [kind for kind, _ in self.args], kinds, lots.randint(4, 12))
        # What has arrived is an output, too.
        for value in self.region.arguments[: len(arrived)]:
            self.region.store(value)

    @staticmethod
    def accumulated(kind: str) -> str:
        return {"i8": "i32", "f64": "f64"}.get(kind, "f32" if kind in FLOATS else kind)

    def shapes(self) -> dict[str, tuple[str, str]]:
        """Of each argument of the kernel: its type, and its element type."""
        shapes = {
            f"x{i}": (f"!comms.window<{self.rows}x{self.length}x{kind}>", kind) for i, kind in enumerate(self.ins)
        }
        for i, (kind, is_shared) in enumerate(self.args):
            rows = "" if is_shared else f"{self.result_rows}x"
            shapes[f"b{i}"] = (f"memref<{rows}{self.length}x{kind}>", kind)
        for i, (_, element, length, _) in enumerate(self.region.yielded):
            shapes[f"y{i}"] = (f"memref<{self.result_rows}x{length}x{element}>", element)
        return shapes

    def clause(self, word: str, letter: str) -> str:
        of = {name: kind for name, (kind, _) in self.shapes().items() if name[0] == letter}
        if not of:
            return ""
        return f" {word}({', '.join('%' + name for name in of)} : {', '.join(of.values())})"

    def text(self) -> str:
        arguments = ", ".join(f"%{name}: {kind}" for name, (kind, _) in self.shapes().items())
        rooted = self.collective in ("reduce", "broadcast", "gather", "scatter")
        head = f"{self.kind} " * self.reduces + f"root {self.root} " * rooted + "%team"
        clauses = self.clause("ins", "x") + self.clause("outs", "y") + self.clause("args", "b")
        block = self.region.block("consume" if self.reduces else "produce")
        return (
            f"comms.kernel @program({arguments}) attributes {{ranks = {self.ranks} : i64}} {{\n"
            f"  %team = comms.team world\n  comms.{self.collective} {head}{clauses}\n{block}  comms.return\n}}\n"
        )

    def inputs(self, lots: np.random.Generator) -> dict[str, list[Array]]:
        """Of each rank."""
        made = {}
        for name, (kind, element) in self.shapes().items():
            if name[0] != "y":
                shape = tuple(int(n) for n in kind.partition("<")[2].split("x")[:-1])
                count = int(np.prod(shape))
                made[name] = [expressions.make(element, count, lots).reshape(shape) for _ in range(self.ranks)]
        return made

    def ways(self) -> list[tuple[str, str]]:
        protocols = PROTOCOLS if self.reduces else PROTOCOLS[:4]
        return [(a, p) for a in ALGORITHMS.get(self.collective, [""]) for p in protocols]

    def safe_ways(self) -> list[tuple[str, str]]:
        """Those that any types and lengths take, and whose bits are the same on all targets, unlike a ring's sums."""
        algorithms = ["one_shot"] * (self.collective in ALGORITHMS)
        algorithms += ["two_shot"] * (self.collective in ("all_reduce", "broadcast"))
        return [(algorithm, protocol) for algorithm in algorithms or [""] for protocol in ("pull", "push", "ll")]

    def groups(self, algorithm: str, protocol: str) -> str:
        """Ways of one name have the same bits."""
        if not self.reduces:
            return "moved"
        return algorithm if algorithm != "ring" else f"ring {protocol}"

    def receives(self, rank: int) -> bool:
        return self.collective not in ("reduce", "gather") or rank == self.root

    def judge(self, inputs: dict[str, list[Array]], outputs: dict[str, list[Array]]) -> str:
        """What is wrong."""
        for rank in filter(self.receives, range(self.ranks)):
            got = [outputs[f"y{i}"][rank].reshape(-1) for i in range(len(self.region.yielded))]
            if self.reduces:
                arguments = got[-len(self.ins) :]
                for i, (_, is_shared) in enumerate(self.args):
                    array = inputs[f"b{i}"][rank]
                    arguments.append(np.tile(array, (self.result_rows, 1)) if is_shared else array)
                names = self.region.yielded[: -len(self.ins)]
                wrong = self.checked(arguments, got[: len(names)])
            else:
                wrong = self.checked([self.sent(inputs[f"x{i}"], rank) for i in range(len(self.ins))], got)
            if wrong:
                return f"rank {rank}: {wrong}"
        return ""

    def checked(self, arguments: list[Array], outputs: list[Array]) -> str:
        region = self.region
        whole, region.yielded = region.yielded, region.yielded[: len(outputs)]
        try:
            return region.check(self.result_rows, arguments, outputs)
        finally:
            region.yielded = whole

    def sent(self, parts: list[Array], rank: int) -> Array:
        """The rows whose tiles this rank gets."""
        if self.collective == "broadcast":
            return parts[self.root]
        if self.collective in ("all_gather", "gather"):
            return np.concatenate(parts)
        if self.collective == "scatter":
            return np.split(parts[self.root], self.ranks)[rank]
        return np.concatenate([np.split(part, self.ranks)[rank] for part in parts])


def run(program: Program, folder: pathlib.Path, flags: list[str]) -> dict[str, list[Array]] | str:
    """What was stored, or what comms-run said."""
    shapes = {name: element for name, (_, element) in program.shapes().items() if name[0] == "y"}
    paths = [word for name in shapes for word in ("--output", f"{name}={folder}/out-{name}-%r.npy")]
    done = subprocess.run(
        ["comms-run", f"{folder}/program.mlir", "--ranks", str(program.ranks), "--quiet", *flags, *paths],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return f"status {done.returncode}: {done.stderr}"
    return {
        name: [np.load(folder / f"out-{name}-{rank}.npy").view(TYPES[element]) for rank in range(program.ranks)]
        for name, element in shapes.items()
    }


def attempt(number: int, folder: pathlib.Path) -> tuple[int, str]:
    """How many ways one program took, and what is wrong."""
    lots = random.Random(number)
    program = Program(lots)
    inputs = program.inputs(np.random.default_rng(number))
    (folder / "program.mlir").write_text(program.text())
    given: list[str] = []
    for name, arrays in inputs.items():
        for rank, array in enumerate(arrays):
            np.save(folder / f"in-{name}-{rank}.npy", array)
        given += ["--input", f"{name}={folder}/in-{name}-%r.npy"]
    known: dict[str, dict[str, list[Array]]] = {}
    taken = 0
    ways = program.ways()
    for algorithm, protocol in [ways[0], *lots.sample(ways, min(3, len(ways)))]:
        blocks = 2 if algorithm == "ring" else lots.choice([1, 2, 5])
        flags = ["--algorithm", algorithm] * bool(algorithm) + ["--protocol", protocol, "--blocks", str(blocks)]
        outputs = run(program, folder, [*flags, "--launches", "2", *given])
        said = f"number {number}, {program.collective}, {' '.join(flags)}: "
        if isinstance(outputs, str):
            if "cannot be used" in outputs:
                continue
            return taken, said + outputs + program.text()
        taken += 1
        if wrong := program.judge(inputs, outputs):
            return taken, said + wrong + "\n" + program.text()
        first = known.setdefault(program.groups(algorithm, protocol), outputs)
        for name, arrays in outputs.items():
            for rank in filter(program.receives, range(program.ranks)):
                if arrays[rank].tobytes() != first[name][rank].tobytes():
                    return taken, f"{said}{name} of rank {rank} has other bits than in another way\n{program.text()}"
    return taken, "" if taken else said + "no way to run it\n" + program.text()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--show", action="store_true", help="print the programs alone")
    arguments = parser.parse_args()
    taken = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.seed * 1_000_003, arguments.seed * 1_000_003 + arguments.count):
            if arguments.show:
                print(f"// number {number}\n{Program(random.Random(number)).text()}")
                continue
            ways, wrong = attempt(number, pathlib.Path(folder))
            taken += ways
            if wrong:
                print(wrong)
                return 1
    print(f"{arguments.count} programs in {taken} ways: the Spec's bits")
    return 0


if __name__ == "__main__":
    sys.exit(main())
