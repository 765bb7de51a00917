"""The kernels that run.py makes: collectives of all kinds, special values, and kernels that must be refused.

shipped.py has the kernels that are files.
"""

import dataclasses
import pathlib
from typing import Any

import numpy as np
from floats import BYTES, Array, is_float, narrow, save, word
from judges import Judge

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Case:
    """One kernel with its flags, what is expected of it, and what came of it."""

    name: str
    group: str
    source: pathlib.Path
    ranks: int
    inputs: list[str] = dataclasses.field(default_factory=list)
    #: Arguments whose bits the targets have to agree in.
    outputs: list[str] = dataclasses.field(default_factory=list)
    common: list[str] = dataclasses.field(default_factory=list)
    cuda: list[str] = dataclasses.field(default_factory=list)
    #: --expect of the reference, with the flags of that comparison.
    expects: list[str] = dataclasses.field(default_factory=list)
    tolerance: list[str] = dataclasses.field(default_factory=list)
    #: What NumPy says of the results.
    judges: list[Judge] = dataclasses.field(default_factory=list)
    #: The order of its sums depends on tiles, which depend on the target. NumPy judges the GPUs' results instead, and
    #: a second run has to have their bits.
    own_order: bool = False
    #: Words of the error with which every target has to refuse the kernel.
    refusal: str = ""
    #: The same on GPUs alone, with that exit status.
    gpu_status: int = 0
    error_says: str = ""
    cpu: bool = True
    #: Its inputs are random for want of ml_dtypes, and nothing is expected but what the CPU world has.
    at_random: bool = False
    #: What makes its files: shipped.Script.
    script: Any = None
    folder: pathlib.Path = pathlib.Path()
    # Results
    state: str = "not run"
    text: str = ""
    microseconds: float = 0.0


# ---------------------------------------------------------------------------------------------------
# Kernels
# ---------------------------------------------------------------------------------------------------

OPS = [
    "all_reduce",
    "reduce_scatter",
    "all_gather",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all_v",
    "send_recv",
]
ALGORITHMS = {
    "all_reduce": ["one_shot", "two_shot", "ring", "permutation"],
    "reduce_scatter": ["one_shot", "ring", "permutation"],
    "all_gather": ["one_shot", "ring", "permutation"],
    "all_to_all": ["one_shot", "permutation"],
    "broadcast": ["one_shot", "two_shot", "ring", "permutation"],
    "norm": ["one_shot", "two_shot", "ring", "permutation"],
}
PROTOCOLS = ["pull", "push", "ll", "ll128", "lamport"]
ELEMENTS = ["f32", "bf16", "f16", "i32", "i8", "f8E4M3FN", "f8E5M2", "i64"]
#: Those of the full level too.
EVERY_ELEMENT = [*ELEMENTS, "f64", "i16"]
REDUCING = ("all_reduce", "reduce_scatter", "reduce", "norm")
#: Rows that a rank sends another at most, in an all_to_all_v.
MOST_ROWS = 3


@dataclasses.dataclass(frozen=True)
class Operand:
    """One collective of a kernel. `rows` 0 makes arrays of rank 1."""

    op: str
    element: str
    columns: int
    rows: int = 0
    #: What is memory of the rank alone, and no window: "", "output" or "both".
    memory: str = ""
    in_place: bool = False

    def root(self, ranks: int) -> int:
        return {"broadcast": ranks - 1, "reduce": 1, "gather": 1, "send_recv": ranks - 1}.get(self.op, 0)

    def has_rows(self) -> bool:
        """Whether a tile is a row."""
        return self.op in ("norm", "all_to_all_v")

    def types(self, ranks: int) -> tuple[str, str]:
        """Types of input and output."""
        left = ranks if self.op in ("reduce_scatter", "all_to_all", "scatter") else 1
        right = ranks if self.op in ("all_gather", "all_to_all", "gather") else 1
        rows = self.rows
        if self.op == "all_to_all_v":
            left = right = ranks
            rows = MOST_ROWS

        def array(factor: int, is_memory: bool) -> str:
            shape = f"{rows * factor}x{self.columns}" if rows else f"{self.columns * factor}"
            return f"{'memref' if is_memory else '!comms.window'}<{shape}x{self.element}>"

        return array(left, self.memory == "both"), array(right, self.memory != "")

    def text(self, ranks: int, suffix: str) -> tuple[str, str]:
        """The arguments and the op."""
        left, right = self.types(ranks)
        x = f"%x{suffix}"
        y = x if self.in_place else f"%y{suffix}"
        arguments = f"{x}: {left}" + ("" if self.in_place else f", {y}: {right}")
        root = self.root(ranks)
        words = {
            "all_reduce": "all_reduce sum %team",
            "norm": "all_reduce sum %team",
            "reduce_scatter": "reduce_scatter sum %team",
            "reduce": f"reduce max root {root} %team",
            "send_recv": f"send_recv %team from {root} to {(root + 1) % ranks}",
        }.get(self.op, f"{self.op}{f' root {root}' if self.op in ('broadcast', 'gather', 'scatter') else ''} %team")
        text = f"  comms.{words} ins({x} : {left}) outs({y} : {right})"
        if self.op == "all_to_all_v":
            table = f"memref<{ranks}xi32>"
            arguments += f", %send{suffix}: {table}, %recv{suffix}: {table}"
            text += f"\n    send_rows(%send{suffix} : {table}) recv_rows(%recv{suffix} : {table}) max_rows {MOST_ROWS}"
        return arguments, text + (self.norm() if self.op == "norm" else "")

    def norm(self) -> str:
        """Rows over their length; every step is one rounding."""
        row = f"tensor<{self.columns}xf32>"
        narrow = f"tensor<{self.columns}x{self.element}>"
        cut = f"    %z = arith.truncf %n : {row} to {narrow}\n" if self.element != "f32" else ""
        return (
            f"\n  consume(%h: {row}) {{\n"
            f"    %s = arith.mulf %h, %h : {row}\n"
            f"    %t = comms.row_reduce sum %s : {row} -> tensor<1xf32>\n"
            f"    %e = arith.constant dense<9.5367431640625e-07> : tensor<1xf32>\n"
            f"    %u = arith.addf %t, %e : tensor<1xf32>\n"
            f"    %r = math.sqrt %u : tensor<1xf32>\n"
            f"    %a = comms.broadcast_row %r : tensor<1xf32> -> {row}\n"
            f"    %n = arith.divf %h, %a : {row}\n{cut}"
            f"    comms.yield {'%z' if cut else '%n'} : {narrow}\n  }}"
        )


def suffixes(operands: list[Operand]) -> list[str]:
    """Behind the names of the arguments of each collective."""
    return [""] if len(operands) == 1 else [str(number) for number in range(len(operands))]


def kernel(operands: list[Operand], ranks: int, numbers: dict[str, int] | None = None) -> str:
    """Source of a kernel with these collectives, one after the other; `numbers`: its attributes."""
    texts = [operand.text(ranks, suffix) for operand, suffix in zip(operands, suffixes(operands), strict=True)]
    listed = ", ".join(f"comms.{name} = {value} : i64" for name, value in (numbers or {}).items())
    return (
        f"comms.kernel @{operands[0].op}({', '.join(arguments for arguments, _ in texts)})"
        f"{f' attributes {{{listed}}}' if listed else ''} {{\n  %team = comms.team world\n"
        + "\n".join(text for _, text in texts)
        + "\n  comms.return\n}\n"
    )


def refusal(operands: list[Operand], protocol: str) -> str:
    """Words with which the compiler has to refuse this; "" where it has to take it.

    These are all refusals that there are among the collectives here. No data may be what empty memory is to Lamport's
    protocol; a line of 128 bytes holds elements of one row.
    """
    for operand in operands:
        if protocol == "lamport" and operand.element not in ("f32", "f16", "bf16"):
            return "it marks empty memory by a NaN of f32, f16 or bf16"
        if protocol == "lamport" and operand.op not in REDUCING:
            return "it makes every NaN canonical, and a copy has to keep all bits"
        if protocol == "ll128" and operand.has_rows() and operand.columns * BYTES[operand.element] % 128:
            return f"rows of {operand.columns} elements are no multiple of the"
    return ""


# Every block of a rank writes its cell of the window; after a barrier, in one piece and in halves, the next rank reads
# it. Before the next launch all have read.
RING = """
comms.kernel @ring(%x: !comms.window<3x256xf32>, %y: memref<3x256xf32>) {
  %team = comms.team world
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %me = comms.rank %team
  %n = comms.size %team
  %block = comms.block_id
  %up = arith.addi %me, %c1 : index
  %next = arith.remui %up, %n : index
  %at = arith.muli %block, %c256 : index
  %own = comms.local %x : !comms.window<3x256xf32> -> memref<3x256xf32>
  %old = comms.tile_load %own[%at] : memref<3x256xf32> -> tensor<256xf32>
  %two = arith.constant dense<2.0> : tensor<256xf32>
  %new = arith.divf %old, %two : tensor<256xf32>
  comms.tile_store %new, %own[%at] : tensor<256xf32>, memref<3x256xf32>
  comms.barrier %team block
  %view = comms.peer %x at %next of %team : !comms.window<3x256xf32> -> memref<3x256xf32>
  %seen = comms.tile_load %view[%at] : memref<3x256xf32> -> tensor<256xf32>
  comms.tile_store %seen, %y[%at] : tensor<256xf32>, memref<3x256xf32>
  %arrived = comms.barrier_arrive %team block
  %all = comms.barrier_wait %arrived
  comms.return
}
"""
MULTIMEM = """
comms.kernel @all(%x: !comms.window<64xbf16>) {
  %zero = arith.constant 0 : index
  %team = comms.team world
  %all = comms.multimem %x of %team : !comms.window<64xbf16> -> memref<64xbf16, #comms.space<multimem>>
  %sum = comms.multimem_load_reduce sum %all[%zero] : memref<64xbf16, #comms.space<multimem>> -> tensor<8xbf16>
  comms.multimem_store %sum, %all[%zero] : tensor<8xbf16>, memref<64xbf16, #comms.space<multimem>>
  comms.return
}
"""


# ---------------------------------------------------------------------------------------------------
# Values
# ---------------------------------------------------------------------------------------------------

#: NaN of every kind, infinities, zeros of both signs, subnormal and the greatest numbers; what marks empty memory,
#: whole and in one half; of integers that too, and the numbers of launches, which packets carry as flags.
SPECIAL: dict[str, list[int]] = {
    "f32": [0x7FC00000, 0xFFFAFFFA, 0x7F800001, 0xFF800000, 0x7F800000, 0x80000000, 1, 0x3F800000, 0, 0xFFFA0000]
    + [0x0000FFFA, 0x3F80FFFA, 0x7FFAFFFA, 0x80000001, 0x7F7FFFFF, 0xFF7FFFFF, 0xFFFFFFFF],
    "f64": [0x7FF8 << 48, 0xFFFAFFFAFFFAFFFA, 0x7FF0 << 48 | 1, 0xFFF0 << 48, 0x7FF0 << 48, 1 << 63, 1, 0x3FF0 << 48]
    + [0, 0xFFFAFFFA, 0x3FF0FFFAFFFAFFFA, (0x7FF0 << 48) - 1, (1 << 64) - 1],
    "bf16": [0x7FC0, 0xFFFA, 0x7F81, 0xFF80, 0x7F80, 0x8000, 1, 0x3F80, 0, 0x7FFA, 0x8001, 0x7F7F, 0xFF7F, 0xFFFF],
    "f16": [0x7E00, 0xFFFA, 0x7C01, 0xFC00, 0x7C00, 0x8000, 1, 0x3C00, 0, 0x7FFA, 0x8001, 0x7BFF, 0xFBFF, 0xFFFF],
    "f8E4M3FN": [0x7F, 0xFF, 0xFA, 0x80, 0, 1, 0x81, 0x38, 0x7E, 0xFE, 0x08],
    "f8E5M2": [0x7E, 0x7D, 0xFF, 0xFA, 0x7C, 0xFC, 0x80, 0, 1, 0x81, 0x3C, 0x7B, 0xFB],
    "i8": [0xFA, 0xFF, 0x80, 0x7F, 0, 1, 2, 3, 4, 5],
    "i16": [0xFFFA, 0xFFFF, 0x8000, 0x7FFF, 0, 1, 2, 3, 4, 5],
    "i32": [0xFFFAFFFA, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0xFFFA0000, 0x0000FFFA, 0, 1, 2, 3, 4, 5],
    "i64": [
        0xFFFAFFFAFFFAFFFA,
        0xFFFAFFFA,
        0xFFFAFFFA << 32,
        1 << 63,
        (1 << 63) - 1,
        0,
        1,
        2,
        1 << 32 | 1,
        2 << 32 | 2,
    ],
}


def special(element: str, rank: int, count: int) -> Array:
    """Every special value, on this rank and next to every other on the others; and runs in which all have the same."""
    raw = np.array(SPECIAL[element], np.uint64).astype(f"<u{word(element).itemsize}").view(word(element))
    values = np.resize(np.roll(raw, rank * (1 + rank)), count)
    values[: count // 2] = np.resize(np.repeat(raw, 7), count // 2)
    return values


def special_rows(element: str, rank: int, rows: int, columns: int) -> Array:
    """Rows of numbers, some of which have one special value, or zeros of one sign, or numbers that are very small."""
    random = np.random.default_rng(rank)
    values = narrow(random.standard_normal((rows, columns)).astype(np.float32), element)
    raw = np.array(SPECIAL[element], np.uint64).astype(word(element))
    for row in range(min(rows, raw.size)):
        values[row, (rank + row) % columns] = raw[row]
    values[-1] = raw[SPECIAL[element].index(1 << 8 * word(element).itemsize - 1)]
    values[-2] = narrow((random.standard_normal(columns) * 1e-30).astype(np.float32), element)
    return values


def random_numbers(element: str, seed: int, count: int) -> Array:
    """As comms-run's random:SEED."""
    random = np.random.default_rng(seed)
    if not is_float(element):
        return random.integers(-100, 100, count).astype(word(element))
    return narrow(random.uniform(-1, 1, count).astype(np.float64 if element == "f64" else np.float32), element)


# ---------------------------------------------------------------------------------------------------
# Cases
# ---------------------------------------------------------------------------------------------------


#: Threads of a CTA where tiles have to be whole.
WHOLE_THREADS = 128


@dataclasses.dataclass(frozen=True)
class Way:
    """How an exchange in permutations goes: attributes of the kernel, and for which collectives."""

    name: str
    numbers: dict[str, int]
    ops: tuple[str, ...] = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")
    memory: str = ""
    in_place: bool = False
    #: Tiles that are whole on every target, as many for each block.
    whole: bool = False

    def operand(self, op: str, element: str, ranks: int) -> Operand:
        # Parts of more than 8 rounds; a broadcast above 256 KiB goes in pieces.
        columns = {"broadcast": 280_037, "all_reduce": 40_022}.get(op, 20_011)
        if self.whole:
            # Four tiles of each block, of 16 elements a thread or fewer.
            columns = 4 * WHOLE_THREADS * 16 * (ranks if op == "all_reduce" else 1)
        return Operand(op, element, columns, memory=self.memory, in_place=self.in_place)


COPIED_LATE = {"round_bytes": 8192, "step_bytes": 0, "step_fence": 0}
WAYS = (
    Way("relaxed steps", {"step_bytes": 2048, "step_fence": 0}),
    Way("fenced steps", {"step_bytes": 2048, "step_fence": 1}),
    Way("rounds", {"round_bytes": 8192}, ("all_reduce", "reduce_scatter", "broadcast")),
    # What goes straight into windows has no rounds.
    Way("rounds of copies", {"round_bytes": 8192}, ("all_gather", "all_to_all"), "output"),
    Way("steps in rounds", {"round_bytes": 8192, "step_bytes": 2048}, ("all_reduce", "reduce_scatter")),
    Way("copied late", {**COPIED_LATE, "late_copies": 1}, ("all_reduce", "all_gather", "all_to_all"), "output"),
    Way("not copied late", {**COPIED_LATE, "late_copies": 0}, ("all_reduce", "all_gather", "all_to_all"), "output"),
    Way("plain memory", {"step_bytes": 2048}, memory="both"),
    Way("held tiles", {"step_bytes": 0, "held_tiles": 16}, ("all_reduce", "all_gather"), whole=True),
    Way("batches of three", {"step_bytes": 0, "round_bytes": 65536, "batch_loads": 3}, memory="both"),
    Way("in place", {"step_bytes": 2048}, ("all_reduce", "all_to_all", "broadcast"), in_place=True),
    Way("in place, rounds", COPIED_LATE, ("all_reduce", "all_to_all"), "both", in_place=True),
)


class Cases:
    def __init__(self, folder: pathlib.Path, level: str, ranks: list[int]) -> None:
        self.folder, self.full, self.ranks = folder, level == "full", ranks
        self.all: list[Case] = []
        self.sources: dict[str, pathlib.Path] = {}
        #: Names of cases that need more GPUs.
        self.left_out: list[str] = []

    def source(self, text: str) -> pathlib.Path:
        if text not in self.sources:
            path = self.folder / f"k{len(self.sources)}.mlir"
            path.write_text(text)
            self.sources[text] = path
        return self.sources[text]

    def add(self, **fields: Any) -> Case:
        case = Case(**fields)
        case.folder = self.folder / f"c{len(self.all)}"
        self.all.append(case)
        return case

    def make(
        self, operands: list[Operand], algorithm: str, protocol: str, ranks: int, seed: int, **fields: Any
    ) -> Case:
        """A case of these collectives, with what NumPy says of it. Inputs are random numbers, or the files `given`."""
        attributes: dict[str, int] = fields.pop("attributes", {})
        given: list[str] = fields.pop("given", [""] * len(operands))
        launches: int = fields.pop("launches", 1 + seed % 4)
        inputs: list[str] = []
        outputs: list[str] = []
        judges: list[Judge] = []
        for operand, suffix, files in zip(operands, suffixes(operands), given, strict=True):
            x, y = f"x{suffix}", f"{'x' if operand.in_place else 'y'}{suffix}"
            inputs.append(f"{x}={files or f'random:{seed}'}")
            outputs += dict.fromkeys([x, y])
            rows: tuple[tuple[int, ...], ...] = ()
            if operand.op == "all_to_all_v":
                rows = self.rows(ranks, seed)
                inputs += [f"{name}{suffix}={self.table(rows, name, seed)}" for name in ("send", "recv")]
            judges.append(
                Judge(
                    *(operand.op, operand.element, ranks, algorithm, x, y, operand.root(ranks)),
                    in_place=launches if operand.in_place else 0,
                    given=files if operand.in_place else "",
                    rows=rows,
                )
            )
        return self.add(
            source=self.source(kernel(operands, ranks, attributes)),
            ranks=ranks,
            inputs=inputs,
            outputs=outputs,
            common=[*fields.pop("flags", []), "--algorithm", algorithm, "--protocol", protocol]
            + ["--launches", str(launches)],
            judges=judges,
            own_order=algorithm == "ring" and any(operand.op in ("all_reduce", "norm") for operand in operands),
            refusal=refusal(operands, protocol),
            **fields,
        )

    def rows(self, ranks: int, seed: int) -> tuple[tuple[int, ...], ...]:
        """Rows by sender and receiver: all numbers up to the most, zero too."""
        count = MOST_ROWS + 1
        return tuple(tuple((3 * r + p * p + seed) % count for p in range(ranks)) for r in range(ranks))

    def table(self, rows: tuple[tuple[int, ...], ...], name: str, seed: int) -> str:
        """Files of what each rank sends, or receives."""
        path = self.folder / f"{name}-{len(rows)}-{seed}"
        array = np.array(rows, np.int32)
        for rank, row in enumerate(array if name == "send" else array.T):
            save(f"{path}-{rank}.npy", row, "i32")
        return f"{path}-%r.npy"

    def files(self, name: str, element: str, arrays: list[Array]) -> str:
        """Files of one array a rank."""
        for rank, words in enumerate(arrays):
            save(f"{self.folder}/{name}-{rank}.npy", words, element)
        return f"{self.folder}/{name}-%r.npy"

    def elements(self) -> list[str]:
        return EVERY_ELEMENT if self.full else ELEMENTS

    def collectives(self) -> None:
        """Operation x algorithm x protocol x type, each with a small odd and a larger size."""
        small, large = [1, 7, 33, 129, 1000, 513], [4097, 65536, 20011, 131072 + 8, 262144]
        number = 0
        for ranks in self.ranks:
            for op in OPS:
                types = self.elements() if self.full or op == "all_reduce" else ["f32", "bf16", "i32"]
                few = op in ("all_to_all_v", "send_recv") and not self.full
                for algorithm in ALGORITHMS.get(op, ["one_shot"]):
                    for protocol in PROTOCOLS:
                        for element in types:
                            for sizes in (small, large):
                                number += 1
                                operand = self.operand(op, element, protocol, sizes[number % len(sizes)], number)
                                if not refusal([operand], protocol) and not (few and number % 2):
                                    blocks = [[], ["--blocks", "4"], ["--blocks", "16"]][number % 3]
                                    self.one(operand, algorithm, protocol, ranks, blocks, number)

    @staticmethod
    def operand(op: str, element: str, protocol: str, columns: int, number: int) -> Operand:
        if op != "all_to_all_v":
            return Operand(op, element, columns, [0, 0, 3][number % 3] if columns < 20000 else 0)
        # Each rank has several of its rows; lines hold elements of one row.
        line = 128 // BYTES[element] if protocol == "ll128" else 1
        columns = min(columns, 20011)
        return Operand(op, element, columns + -columns % line)

    def refusals(self) -> None:
        """Each collective with what no protocol can do for it, on the CPU world and on GPUs."""
        for ranks in self.ranks:
            for op in OPS:
                for algorithm in ALGORITHMS.get(op, ["one_shot"]):
                    for protocol, element in (("lamport", "i32"), ("lamport", "f32"), ("ll128", "bf16")):
                        operand = Operand(op, element, 129)
                        if refusal([operand], protocol):
                            case = self.one(operand, algorithm, protocol, ranks, ["--blocks", "4"], 1)
                            case.group = "refusals"

    def one(self, operand: Operand, algorithm: str, protocol: str, ranks: int, blocks: list[str], number: int) -> Case:
        shape = f"{operand.columns}{f'x{operand.rows}' if operand.rows else ''}"
        return self.make(
            *([operand], algorithm, protocol, ranks, number),
            name=f"{operand.op} {algorithm} {protocol} {shape} {operand.element} r{ranks}",
            group=f"{operand.op} {algorithm} {protocol}",
            flags=blocks,
            cuda=["--graph"] if number % 5 == 0 else [],
        )

    def permutations(self) -> None:
        """All ways in which exchanges in permutations go, with arrays of many steps, rounds and pieces."""
        number = 0
        for ranks in self.ranks:
            for way in WAYS:
                for op in way.ops:
                    for protocol, element in self.pairs(way, op, number):
                        number += 1
                        self.permutation(way, op, element, protocol, ranks, number)
            if ranks > 2:
                # A broadcast of 12 MiB is cut into chunks.
                operand = Operand("broadcast", "bf16", (6 << 20) + 5)
                case = self.one(operand, "permutation", "push", ranks, ["--blocks", "16"], 2)
                case.group = "permutations"

    def pairs(self, way: Way, op: str, number: int) -> list[tuple[str, str]]:
        """Protocols and types of a way: at the full level every protocol with two types."""
        if self.full:
            chosen = [(protocol, 2, ELEMENTS) for protocol in PROTOCOLS]
        elif "round_bytes" in way.numbers:
            # Slots are used again by pull and push alone.
            chosen = [("push", 1, ["f32", "bf16", "i32"]), ("pull", 1, ["i32", "f32", "bf16"])]
        else:
            # Of copies there is no other protocol where Lamport's has its turn.
            protocol = PROTOCOLS[number % 5] if op in REDUCING or number % 5 < 4 else "push"
            chosen = [(protocol, 1, ["f32", "bf16", "i32"])]
        pairs: list[tuple[str, str]] = []
        for protocol, count, elements in chosen:
            turned = elements[number % len(elements) :] + elements[: number % len(elements)]
            legal = [element for element in turned if not refusal([Operand(op, element, 1)], protocol)]
            pairs += [(protocol, element) for element in legal[:count]]
        return pairs

    def permutation(self, way: Way, op: str, element: str, protocol: str, ranks: int, number: int) -> None:
        operand = way.operand(op, element, ranks)
        columns = operand.columns
        cuda = ["--graph"] if number % 3 == 0 else []
        cuda += ["--threads", str(WHOLE_THREADS)] if way.whole else []
        given = ""
        if way.in_place:
            count = columns * (ranks if op == "all_to_all" else 1)
            arrays = [random_numbers(element, number * 100 + rank, count) for rank in range(ranks)]
            given = self.files(f"given-{op}-{element}-{ranks}-{number}", element, arrays)
        self.make(
            *([operand], "permutation", protocol, ranks, number),
            name=f"{op} permutation {protocol}, {way.name}, {element} r{ranks}",
            group="permutations",
            flags=["--blocks", "4" if way.whole else str(3 + number % 3)],
            cuda=cuda,
            attributes=way.numbers,
            given=[given],
        )

    def specials(self) -> None:
        """NaN of every kind, infinities, -0.0 and denormals, the poison patterns, numbers of launches."""
        number = 0
        for ranks in self.ranks:
            files = {
                (element, factor): self.files(
                    f"special-{element}-{ranks}-{factor}",
                    element,
                    [special(element, rank, 1021 * factor) for rank in range(ranks)],
                )
                for element in self.elements()
                for factor in (1, ranks)
            }
            for op in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"):
                for algorithm in ALGORITHMS[op]:
                    number += 1
                    protocols = PROTOCOLS[: 5 if op in REDUCING else 4]
                    if not self.full and op != "all_reduce":
                        protocols = [protocols[(number + 2 * i) % len(protocols)] for i in range(2)]
                    for turn, protocol in enumerate(protocols):
                        for elements in self.special_types(op, protocol, number + turn):
                            self.special_kernel(op, elements, algorithm, protocol, ranks, files)
            # Rows: of 192 elements, of which lines hold a multiple.
            rows = self.files(f"rows-{ranks}", "bf16", [special_rows("bf16", rank, 20, 192) for rank in range(ranks)])
            for turn, algorithm in enumerate(ALGORITHMS["norm"]):
                for protocol in PROTOCOLS if self.full else [PROTOCOLS[turn], PROTOCOLS[turn + 1]]:
                    self.make(
                        *([Operand("norm", "bf16", 192, 20)], algorithm, protocol, ranks, 3),
                        name=f"rows {algorithm} {protocol} special values bf16 r{ranks}",
                        group="special values",
                        flags=["--blocks", "3"],
                        given=[rows],
                    )

    def special_types(self, op: str, protocol: str, turn: int) -> list[list[str]]:
        """Types that share a kernel: to compile takes most of the time, of sums the more."""
        every = [element for element in self.elements() if not refusal([Operand(op, element, 1)], protocol)]
        size = 4 if self.full or op not in REDUCING else 2
        groups = [every[first : first + size] for first in range(0, len(every), size)]
        return groups if self.full else [groups[turn % len(groups)]]

    def special_kernel(
        self,
        op: str,
        elements: list[str],
        algorithm: str,
        protocol: str,
        ranks: int,
        files: dict[tuple[str, int], str],
    ) -> None:
        factor = ranks if op in ("reduce_scatter", "all_to_all") else 1
        self.make(
            *([Operand(op, element, 1021) for element in elements], algorithm, protocol, ranks, 3),
            name=f"{op} {algorithm} {protocol} special values {' '.join(elements)} r{ranks}",
            group="special values",
            given=[files[element, factor] for element in elements],
        )

    def windows(self) -> None:
        """The same over NCCL's windows, and repeated in a graph."""
        for ranks in self.ranks:
            for protocol in PROTOCOLS:
                for extra in ([], ["--graph"]):
                    self.make(
                        *([Operand("all_reduce", "bf16", 12345)], "one_shot", protocol, ranks, 5),
                        name=f"all_reduce {protocol} over NCCL windows {' '.join(extra)} r{ranks}",
                        group="NCCL windows",
                        launches=50,
                        cuda=["--windows", "nccl", *extra],
                    )

    def many_launches(self) -> None:
        """Launches past 2^32, in place: what a launch finds of the one before would be wrong."""
        source = ROOT / "test/exec/first-launch.mlir"
        for ranks in self.ranks:
            arrays = [narrow((np.arange(1000) % 7 + rank).astype(np.float32), "f32") for rank in range(ranks)]
            given = self.files(f"grow-{ranks}", "f32", arrays)
            for algorithm in ("one_shot", "two_shot"):
                for protocol in PROTOCOLS:
                    for extra in ([], ["--graph"], ["--one-process"]):
                        flags = ["--algorithm", algorithm, "--protocol", protocol, "--blocks", "3"]
                        self.add(
                            name=f"launches past 2^32, {algorithm} {protocol} {' '.join(extra)} r{ranks}",
                            group="launches past 2^32",
                            source=source,
                            ranks=ranks,
                            inputs=[f"x={given}"],
                            outputs=["x", "n"],
                            common=[*flags, "--launches", "20", "--first-launch", str(2**32 - 9)],
                            cuda=extra,
                            judges=[Judge("all_reduce", "f32", ranks, algorithm, "x", "x", in_place=20, given=given)],
                        )

    def nccl(self) -> None:
        """Kernels that call NCCL's device library for teams, windows and barriers."""
        flags = ["--impl", "nccl", "--windows", "nccl"]
        number = 0
        for ranks in self.ranks:
            for op in ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"]:
                for algorithm in ALGORITHMS[op]:
                    # Barriers; what has none differs in the windows alone.
                    every = self.full or (op == "all_reduce" and algorithm == "one_shot")
                    for protocol in PROTOCOLS if every else ["pull"]:
                        number += 1
                        element = ["f32", "bf16", "i32"][number % 3]
                        columns = [129, 4097, 65536, 20011][number % 4]
                        operand = Operand(op, element, columns)
                        case = self.one(operand, algorithm, protocol, ranks, ["--blocks", "4"], number)
                        case.name = f"NCCL's device library: {case.name}"
                        case.group = "NCCL's device library"
                        case.cuda = [*case.cuda, *flags]
            self.add(
                name=f"NCCL's device library: windows and barriers r{ranks}",
                group="NCCL's device library",
                source=self.source(RING),
                ranks=ranks,
                inputs=["x=random:3"],
                outputs=["x", "y"],
                common=["--blocks", "3", "--launches", "20"],
                cuda=[*flags, "--graph"],
                # Launch after launch x is halved; y is the next rank's.
                judges=[Judge("next", "f32", ranks)],
            )
        for name, source, extra, says in (
            ("a barrier of the grid", RING.replace("%team block", "%team grid"), flags, "barrier of the whole grid"),
            ("multicast, which is off", MULTIMEM, flags, "multicast is off here"),
            ("plain windows", RING, ["--impl", "nccl", "--windows", "plain"], "leave out --windows plain"),
        ):
            self.add(
                name=f"NCCL's device library: {name} is refused",
                group="NCCL's device library",
                source=self.source(source),
                ranks=self.ranks[0],
                inputs=["x=1"],
                common=["--blocks", "3"],
                cuda=[*extra, "--no-check"],
                gpu_status=3 if "grid" in name else 2,
                error_says=says,
                cpu=False,
            )

    def gin(self, reach: int) -> None:
        """Kernels that put and signal by GIN, among teams of `reach` ranks."""
        every = ["--windows", "nccl"]
        for ranks in self.ranks:
            if ranks % reach:
                continue
            called = [*every, "--impl", "nccl"]
            for name, file, blocks, outputs, flags, expect in (
                ("puts and signals", "pass", 3, ["x", "in", "y"], every, "pass"),
                ("puts and signals, NCCL's windows", "pass", 3, ["x", "in", "y"], called, "pass"),
                ("counters", "counted", 1, ["x", "in", "y", "n"], every, "triple"),
                ("barriers between teams", "teams", 2, ["x", "far", "y", "z", "n"], called, "beside"),
            ):
                text = (ROOT / "test/gpu/gin" / f"{file}.mlir").read_text()
                text = text.replace("lsa_size = 2", f"lsa_size = {reach}")
                element = "i32" if expect == "triple" else "f32"
                for extra in ([], ["--graph"]):
                    self.add(
                        name=f"GIN: {name} {' '.join(extra)} r{ranks}",
                        group="GIN",
                        source=self.source(text),
                        ranks=ranks,
                        inputs=["x=random:7"],
                        outputs=outputs,
                        common=["--blocks", str(blocks), "--launches", "10"],
                        cuda=[*flags, *extra],
                        judges=[Judge(expect, element, ranks, reach=reach)],
                    )

    def failures(self, gpus: int) -> None:
        """What has to fail, with which status and words; gpus 0: where ranks share one."""
        ranks = self.ranks[0]
        stuck = self.source(
            "comms.kernel @stuck(%x: !comms.window<8xf32>, %s: !comms.signal<2>) {\n"
            "  %zero = arith.constant 0 : index\n  %one = arith.constant 1 : i64\n"
            "  %token = comms.wait_signal %s[%zero] ge %one : !comms.signal<2>\n  comms.return\n}\n"
        )
        self.add(
            name="a wait that no signal ends",
            group="failures",
            source=stuck,
            ranks=ranks,
            inputs=["x=1"],
            cuda=["--no-check", "--timeout", "2"],
            gpu_status=5,
            error_says="comms.wait_signal",
            cpu=False,
        )
        plain = self.source(kernel([Operand("all_reduce", "f32", 64)], 2))
        wrong: list[tuple[str, int, list[str], str]] = [("a GPU that is not there", 2, ["--devices", "0,999"], "999")]
        if gpus:
            wrong.append(("more ranks than GPUs", gpus + 1, [], "cannot be two ranks"))
            wrong.append(("a GPU named twice", 2, ["--devices", "0,0"], "named twice"))
        for name, ranks, flags, says in wrong:
            self.add(
                name=name,
                group="failures",
                source=plain,
                ranks=ranks,
                inputs=["x=1"],
                cuda=flags,
                gpu_status=2,
                error_says=says,
                cpu=False,
            )
