"""Runs everything that is shipped on the GPUs of this machine and compares it with the CPU world.

Usage: run.py [--bin FOLDER] [--ranks 2,4,8] [--level quick|full] [--only TEXT] [--json FILE]

Every case is one kernel. The CPU world runs it first, and NumPy checks what it computed; then the
GPUs run it, and every output has to agree bit for bit. Cases run in batches (comms-run --batch), so
that GPUs are opened once; each case has a time limit, and a batch that dies or hangs costs one case.
A combination that the compiler refuses on the CPU has to be refused on the GPU too.

Prints a table and every failure, writes JSON, and ends with status 1 if any case failed. Needs NumPy.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ROOT = pathlib.Path(__file__).resolve().parents[2]
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "f64": 8, "f8E4M3FN": 1, "f8E5M2": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
NUMPY = {"f32": "<f4", "f16": "<f2", "f64": "<f8", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}
TOLERANCE = {"f32": 1e-5, "f16": 4e-3, "bf16": 3.2e-2, "f64": 1e-12, "f8E4M3FN": 0.25, "f8E5M2": 0.5}


# ---------------------------------------------------------------------------------------------------
# Cases
# ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Case:
    """One kernel with its flags; `expect` computes each rank's output from all ranks' inputs."""

    name: str
    group: str
    source: pathlib.Path
    ranks: int
    inputs: list[str] = dataclasses.field(default_factory=list)
    outputs: list[str] = dataclasses.field(default_factory=list)
    common: list[str] = dataclasses.field(default_factory=list)
    cuda: list[str] = dataclasses.field(default_factory=list)
    element: str = ""
    # Allowed difference between the targets; 0: the same bits.
    tolerance: float = 0
    expect: str = ""
    gpu_status: int = 0
    error_says: str = ""
    cpu: bool = True
    folder: pathlib.Path = pathlib.Path()
    # Results
    state: str = "not run"
    text: str = ""
    microseconds: float = 0.0


Answer = Callable[[Case, dict[str, Any]], None]


def collective(op: str, element: str, columns: int, ranks: int, rows: int = 0) -> str:
    """Source of a kernel with one collective; `rows` 0 makes arrays of rank 1."""

    def window(factor: int) -> str:
        if rows:
            return f"!comms.window<{rows * factor}x{columns}x{element}>"
        return f"!comms.window<{columns * factor}x{element}>"

    shapes = {
        "all_reduce": ("sum ", window(1), window(1)),
        "reduce_scatter": ("sum ", window(ranks), window(1)),
        "all_gather": ("", window(1), window(ranks)),
        "all_to_all": ("", window(ranks), window(ranks)),
        "broadcast": (f"root {ranks - 1} ", window(1), window(1)),
        "reduce": ("max root 1 ", window(1), window(1)),
        "gather": ("root 1 ", window(1), window(ranks)),
        "scatter": ("root 0 ", window(ranks), window(1)),
    }
    words, left, right = shapes[op]
    return (
        f"comms.kernel @{op}(%x: {left}, %y: {right}) {{\n  %team = comms.team world\n"
        f"  comms.{op} {words}%team ins(%x : {left}) outs(%y : {right})\n  comms.return\n}}\n"
    )


def expected(op: str, xs: list[Array], rank: int) -> Array | None:
    """What `rank` has to have, or None where it keeps what it had."""
    ranks = len(xs)
    wide = [x.astype(np.float64) if x.dtype.kind == "f" else x for x in xs]

    def part(x: Array) -> Array:
        return np.split(x, ranks)[rank]

    if op == "all_reduce":
        return np.asarray(sum(wide))
    if op == "reduce_scatter":
        return np.asarray(sum(part(x) for x in wide))
    if op == "all_gather":
        return np.concatenate(xs)
    if op == "all_to_all":
        return np.concatenate([part(x) for x in xs])
    if op == "broadcast":
        return xs[-1]
    if op == "reduce":
        return np.maximum.reduce(xs) if rank == 1 else None
    if op == "gather":
        return np.concatenate(xs) if rank == 1 else None
    if op == "pass":
        return xs[rank - 1]
    if op == "triple":
        return np.asarray(xs[rank - 1] * np.uint32(0xAAAAAAAB).astype(np.int32))
    if op.startswith("beside "):
        reach = int(op.split()[1])
        return xs[rank - rank % reach + (rank + 1) % reach]
    return part(xs[0])


OPS = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "gather", "scatter"]
ALGORITHMS = {
    "all_reduce": ["one_shot", "two_shot", "ring", "permutation"],
    "reduce_scatter": ["one_shot", "ring", "permutation"],
    "all_gather": ["one_shot", "ring", "permutation"],
    "all_to_all": ["one_shot", "permutation"],
    "broadcast": ["one_shot", "two_shot", "ring", "permutation"],
}
SUMS = ("all_reduce", "reduce_scatter")
PROTOCOLS = ["pull", "push", "ll", "ll128", "lamport"]


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


class Cases:
    def __init__(self, folder: pathlib.Path, level: str, ranks: list[int]) -> None:
        self.folder, self.full, self.ranks = folder, level == "full", ranks
        self.all: list[Case] = []
        self.sources: dict[str, pathlib.Path] = {}

    def source(self, text: str) -> pathlib.Path:
        if text not in self.sources:
            path = self.folder / f"k{len(self.sources)}.mlir"
            path.write_text(text)
            self.sources[text] = path
        return self.sources[text]

    def add(self, **fields: Any) -> None:
        case = Case(**fields)
        case.folder = self.folder / f"c{len(self.all)}"
        self.all.append(case)

    def collectives(self) -> None:
        """Operation x algorithm x protocol x type, each with a small odd and a larger size."""
        small, large = [1, 7, 33, 129, 1000, 513], [4097, 65536, 20011, 131072 + 8, 262144]
        every = ["f32", "bf16", "f16", "i32", "i8", "f8E4M3FN", "f8E5M2", "i64"]
        elements = {True: every, False: ["f32", "bf16", "i32"]}
        number = 0
        for ranks in self.ranks:
            for op in OPS:
                types = elements[op == "all_reduce" or self.full]
                for algorithm in ALGORITHMS.get(op, ["one_shot"]):
                    for protocol in PROTOCOLS:
                        for element in types:
                            for sizes in (small, large):
                                number += 1
                                columns = sizes[number % len(sizes)]
                                rows = [0, 0, 3][number % 3] if columns < 20000 else 0
                                blocks = [[], ["--blocks", "4"], ["--blocks", "16"]][number % 3]
                                self.one(op, algorithm, protocol, element, columns, rows, ranks, blocks, number)

    def one(
        self,
        op: str,
        algorithm: str,
        protocol: str,
        element: str,
        columns: int,
        rows: int,
        ranks: int,
        blocks: list[str],
        number: int,
    ) -> None:
        name = f"{op} {algorithm} {protocol} {columns}{'x' + str(rows) if rows else ''} {element} r{ranks}"
        self.add(
            name=name,
            group=f"{op} {algorithm} {protocol}",
            source=self.source(collective(op, element, columns, ranks, rows)),
            ranks=ranks,
            inputs=[f"x=random:{number}"],
            outputs=["x", "y"],
            common=[*blocks, "--algorithm", algorithm, "--protocol", protocol, "--launches", str(1 + number % 4)],
            cuda=["--graph"] if number % 5 == 0 else [],
            element=element,
            expect=op,
            # The order of a ring's sum depends on the tiles, which depend on the target.
            tolerance=ranks * TOLERANCE.get(element, 0) if algorithm == "ring" and op in SUMS else 0,
        )

    def specials(self) -> None:
        """NaN of every kind, infinities, -0.0 and denormals, the poison pattern among them."""
        bits = {
            "f32": ("<u4", [0x7FC00000, 0xFFFAFFFA, 0x7F800001, 0xFF800000, 0x7F800000, 0x80000000, 1, 0x3F800000, 0]),
            "bf16": ("<u2", [0x7FC0, 0xFFFA, 0x7F81, 0xFF80, 0x7F80, 0x8000, 1, 0x3F80, 0]),
            "f16": ("<u2", [0x7E00, 0xFFFA, 0x7C01, 0xFC00, 0x7C00, 0x8000, 1, 0x3C00, 0]),
        }
        for ranks in self.ranks:
            for element, (word, patterns) in bits.items():
                count = 1021
                raw = np.array(patterns, word)
                path = self.folder / f"special-{element}-{ranks}"
                for rank in range(ranks):
                    values = np.resize(np.roll(raw, rank), count)
                    # Runs in which all ranks have the same, too.
                    values[: count // 2] = np.resize(np.repeat(raw, 7), count // 2)
                    save(f"{path}-{rank}.npy", values.tobytes(), element, (count,))
                for op in ("all_reduce", "all_gather"):
                    for protocol in PROTOCOLS:
                        self.add(
                            name=f"{op} {protocol} special values {element} r{ranks}",
                            group="special values",
                            source=self.source(collective(op, element, count, ranks)),
                            ranks=ranks,
                            inputs=[f"x={path}-%r.npy"],
                            outputs=["y"],
                            common=["--algorithm", "one_shot", "--protocol", protocol, "--launches", "4"],
                        )

    def shipped(self) -> None:
        """The kernels of test/examples and test/exec, with random arguments."""
        for path in sorted([*(ROOT / "test/examples").glob("*.mlir"), *(ROOT / "test/exec").glob("*.mlir")]):
            text = path.read_text()
            kernels = re.findall(
                r"comms\.kernel\s+@(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*(attributes\s*\{[^}]*\})?", text
            )
            found = re.search(r"--ranks[= ](\d+)", text)
            for kernel, arguments, attributes in kernels:
                own = re.search(r"ranks\s*=\s*(\d+)", attributes)
                match = own or found
                ranks = int(match.group(1)) if match else 4
                blocks = [] if "blocks" in attributes else ["--blocks", "1"]
                inputs, outputs = [], []
                for number, (name, kind) in enumerate(re.findall(r"%(\w+)\s*:\s*([^,%]+(?:<[^>]*>)?)", arguments)):
                    if "signal" in kind or "counter" in kind:
                        continue
                    if "window" in kind or "memref" in kind:
                        inputs.append(f"{name}=random:{number + 1}")
                        outputs.append(name)
                    else:
                        inputs.append(f"{name}=1")
                if ranks > max(self.ranks, default=0) or not outputs:
                    continue
                self.add(
                    name=f"{path.parent.name}/{path.name} @{kernel} r{ranks}",
                    group=path.parent.name,
                    source=path,
                    ranks=ranks,
                    inputs=inputs,
                    outputs=outputs,
                    # Multicast is off unless asked for.
                    gpu_status=2 if "multimem" in text else 0,
                    error_says="multicast" if "multimem" in text else "",
                    common=["--kernel", kernel, "--launches", "2", *blocks],
                )

    def windows(self) -> None:
        """The same over NCCL's windows, and repeated in a graph."""
        for ranks in self.ranks:
            for protocol in PROTOCOLS:
                for extra in ([], ["--graph"]):
                    self.add(
                        name=f"all_reduce {protocol} over NCCL windows {' '.join(extra)} r{ranks}",
                        group="NCCL windows",
                        source=self.source(collective("all_reduce", "bf16", 12345, ranks)),
                        ranks=ranks,
                        inputs=["x=random:5"],
                        outputs=["y"],
                        common=["--algorithm", "one_shot", "--protocol", protocol, "--launches", "50"],
                        cuda=["--windows", "nccl", *extra],
                    )

    def many_launches(self) -> None:
        """Launches past 2^32, in place: what a launch finds of the one before would be wrong."""
        source = ROOT / "test/exec/first-launch.mlir"
        for ranks in self.ranks:
            for algorithm in ("one_shot", "two_shot"):
                for protocol in PROTOCOLS:
                    for extra in ([], ["--graph"], ["--one-process"]):
                        flags = ["--algorithm", algorithm, "--protocol", protocol, "--blocks", "3"]
                        self.add(
                            name=f"launches past 2^32, {algorithm} {protocol} {' '.join(extra)} r{ranks}",
                            group="launches past 2^32",
                            source=source,
                            ranks=ranks,
                            inputs=["x=iota"],
                            outputs=["x", "n"],
                            common=[*flags, "--launches", "20", "--first-launch", str(2**32 - 9)],
                            cuda=extra,
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
                        self.one(op, algorithm, protocol, element, columns, 0, ranks, ["--blocks", "4"], number)
                        case = self.all[-1]
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
            beside, called = f"beside {reach}", [*every, "--impl", "nccl"]
            for name, file, blocks, outputs, flags, expect in (
                ("puts and signals", "pass", 3, ["x", "in", "y"], every, "pass"),
                ("puts and signals, NCCL's windows", "pass", 3, ["x", "in", "y"], called, "pass"),
                ("counters", "counted", 1, ["x", "in", "y", "n"], every, "triple"),
                ("barriers between teams", "teams", 2, ["x", "far", "y", "z", "n"], called, beside),
            ):
                text = (ROOT / "test/gpu/gin" / f"{file}.mlir").read_text()
                text = text.replace("lsa_size = 2", f"lsa_size = {reach}")
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
                        element="i32" if expect == "triple" else "f32",
                        expect=expect,
                    )

    def failures(self, gpus: int) -> None:
        """What has to fail, with which status and words."""
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
        plain = self.source(collective("all_reduce", "f32", 64, 2))
        for name, ranks, flags, says in (
            ("more ranks than GPUs", gpus + 1, [], "cannot be two ranks"),
            ("a GPU named twice", 2, ["--devices", "0,0"], "named twice"),
            ("a GPU that is not there", 2, ["--devices", "0,999"], "999"),
        ):
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


# ---------------------------------------------------------------------------------------------------
# Arrays
# ---------------------------------------------------------------------------------------------------


def save(path: str, data: bytes, element: str, shape: tuple[int, ...]) -> None:
    """Writes a .npy file; types that NumPy lacks as raw bytes."""
    kind = NUMPY.get(element, f"|V{BYTES[element]}")
    np.save(path, np.frombuffer(data, np.dtype(kind)).reshape(shape))


def load(path: pathlib.Path, element: str) -> Array:
    array: Array = np.load(path)
    if element == "bf16":
        return (array.view("<u2").astype("<u4") << 16).view("<f4")
    return array


def check_cpu(case: Case) -> str:
    """Compares the CPU world's results with NumPy's; returns what is wrong, or ""."""
    if not case.expect or case.element.startswith("f8"):
        return ""
    xs = [load(case.folder / f"x-{rank}.npy", case.element) for rank in range(case.ranks)]
    for rank in range(case.ranks):
        want = expected(case.expect, xs, rank)
        if want is None:
            continue
        got = load(case.folder / f"y-{rank}.npy", case.element)
        if case.element.startswith("i"):
            same = np.array_equal(got, want.astype(got.dtype))
        else:
            size = sum(np.abs(x.astype(np.float64)).max(initial=0) for x in xs)
            same = np.allclose(got.astype(np.float64), want, rtol=0, atol=TOLERANCE[case.element] * size)
        if not same:
            return f"the CPU world's result of rank {rank} differs from NumPy's"
    return ""


# ---------------------------------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------------------------------


def quote(words: list[Any]) -> str:
    return " ".join("'" + str(word) + "'" if " " in str(word) else str(word) for word in words)


def line(case: Case, target: str) -> str:
    words: list[Any] = [case.source, "--ranks", case.ranks, "--target", target, *case.common]
    for binding in case.inputs:
        words += ["--input", binding]
    if target == "cpu":
        for name in case.outputs:
            words += ["--output", f"{name}={case.folder}/{name}-%r.npy"]
        words += ["--time-limit", "120"]
    else:
        # NCCL takes seconds to start; only its own cases wait for it.
        words += case.cuda if "--windows" in case.cuda else [*case.cuda, "--windows", "plain"]
        for name in case.outputs if case.cpu else []:
            words += ["--expect", f"{name}={case.folder}/{name}-%r.npy"]
        if case.outputs and case.cpu:
            words += ["--rtol", 0, "--atol", case.tolerance] if case.tolerance else ["--bitwise"]
    return quote(words)


class Batch:
    """comms-run --batch with a time limit for each line; starts anew after a line that kills it."""

    def __init__(self, program: str, env: dict[str, str], limit: float) -> None:
        self.program, self.env, self.limit = program, env, limit

    def run(self, cases: list[Case], target: str, answer: Answer) -> None:
        """Calls answer(case, object) for every case; the object of a dead line has status None."""
        left = list(cases)
        while left:
            left = left[self.start(left, target, answer) :]

    def start(self, cases: list[Case], target: str, answer: Answer) -> int:
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                [self.program, "--batch", "-"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self.env,
            )
            lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
            reader = threading.Thread(target=self.read, args=(process, lines), daemon=True)
            reader.start()
            assert process.stdin
            try:
                process.stdin.write("".join(line(case, target) + "\n" for case in cases))
                process.stdin.close()
            except OSError:
                pass
            done = 0
            got: dict[str, Any] | None = {}
            try:
                for case in cases:
                    # The first one opens the GPUs.
                    got = lines.get(timeout=self.limit + (60 if done == 0 else 0))
                    if got is None:
                        break
                    answer(case, got)
                    done += 1
            except queue.Empty:
                self.fail(cases[done], f"no answer after {self.limit} s", errors, answer)
                done += 1
            finally:
                if got is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=30)
                process.kill()
                status = process.wait()
            # A program that left by itself did so between two lines: it starts anew for the rest.
            if done < len(cases) and got is None and (status < 0 or done == 0):
                self.fail(cases[done], f"the program ended with status {status}", errors, answer)
                done += 1
            return done

    def fail(self, case: Case, why: str, errors: IO[str], answer: Answer) -> None:
        errors.seek(0)
        answer(case, {"exit_code": None, "error": f"{why}; standard error ends: {errors.read()[-1500:]}"})

    @staticmethod
    def read(process: subprocess.Popen[str], lines: "queue.Queue[dict[str, Any] | None]") -> None:
        assert process.stdout
        for text in process.stdout:
            try:
                lines.put(json.loads(text))
            except ValueError:
                print("  said:", text.rstrip(), file=sys.stderr)
        lines.put(None)


class Runner:
    def __init__(self, program: str, gpus: int, limit: float) -> None:
        self.program, self.gpus, self.limit = program, gpus, limit
        self.lock = threading.Lock()
        self.done = 0

    def cpu(self, cases: list[Case]) -> None:
        """Fills the folders of references. Several processes; each gets a share."""
        for case in cases:
            case.folder.mkdir(exist_ok=True)
        workers = max(1, (os.cpu_count() or 2) - 1)
        shares = [cases[i::workers] for i in range(workers)]
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(self.cpu_share, shares))

    def cpu_share(self, cases: list[Case]) -> None:
        Batch(self.program, dict(os.environ), 180).run(cases, "cpu", self.cpu_answer)

    def cpu_answer(self, case: Case, got: dict[str, Any]) -> None:
        if got["exit_code"] == 0:
            wrong = check_cpu(case)
            case.state, case.text = ("failed", wrong) if wrong else ("reference", "")
        elif got["exit_code"] in (3, 4):
            # Not a combination that exists; the GPU has to say the same.
            case.state, case.text, case.gpu_status = "refused", got.get("error", ""), got["exit_code"]
            case.cpu = False
        else:
            case.state = "skipped"
            case.text = f"the CPU world ends with {got['exit_code']}: {got.get('error', '')}"

    def gpu(self, cases: list[Case]) -> None:
        """Runs groups of GPUs side by side: on 8 GPUs, four cases of 2 ranks at a time."""
        for ranks in sorted({case.ranks for case in cases}):
            mine = [case for case in cases if case.ranks == ranks]
            lanes = max(1, self.gpus // max(ranks, 1))
            if any(case.group == "failures" for case in mine) or lanes == 1:
                self.gpu_share(mine, None)
                continue
            with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
                starts = [lane * ranks for lane in range(lanes)]
                visible = [",".join(str(start + i) for i in range(ranks)) for start in starts]
                list(pool.map(self.gpu_share, [mine[lane::lanes] for lane in range(lanes)], visible))

    def gpu_share(self, cases: list[Case], visible: str | None) -> None:
        env = environment()
        if visible is not None and "CUDA_VISIBLE_DEVICES" not in env:
            env["CUDA_VISIBLE_DEVICES"] = visible
        Batch(self.program, env, self.limit).run(cases, "cuda", self.gpu_answer)

    def gpu_answer(self, case: Case, got: dict[str, Any]) -> None:
        status = got["exit_code"]
        words = json.dumps(got)
        if status == case.gpu_status and case.error_says in words:
            case.state = "ok" if case.gpu_status == 0 or not case.cpu and case.error_says else "refused"
            case.microseconds = max((rank["microseconds"] for rank in got.get("per_rank", [])), default=0.0)
            shutil.rmtree(case.folder, ignore_errors=True)
        else:
            case.state = "failed"
            detail = got.get("run_error", {}).get("waiting", [])
            case.text = f"status {status}, expected {case.gpu_status}: {got.get('error', '')}"
            case.text += "".join(f"\n      {w}" for w in got.get("diagnostics", [])[:3])
            case.text += "".join(f"\n      rank {w['rank']}: {w['what']} at {w['location']}" for w in detail[:4])
        with self.lock:
            self.done += 1
            if case.state == "failed" or self.done % 100 == 0:
                print(f"  [{self.done}] {case.state}: {case.name}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------------------
# Telling
# ---------------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """This process's environment, with NCCL and nvJitLink of the Python packages where there are any."""
    env = dict(os.environ)
    env.setdefault("NCCL_NVLS_ENABLE", "0")
    for folder in map(pathlib.Path, sys.path):
        nccl = folder / "nvidia/nccl/lib/libnccl.so.2"
        if nccl.exists():
            env.setdefault("COMMSIR_NCCL_LIBRARY", str(nccl))
        for library in sorted(folder.glob("nvidia/*/lib/libnvJitLink.so.*")):
            env.setdefault("COMMSIR_NVJITLINK_LIBRARY", str(library))
    return env


def count_gpus() -> int:
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return sum(text.startswith("GPU ") for text in done.stdout.splitlines())


def print_table(cases: list[Case]) -> None:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    states = ["ok", "refused", "skipped", "failed"]
    width = max(len(group) for group in groups)
    print(f"{'':{width}}" + "".join(f"{state:>9}" for state in states))
    for group, members in groups.items():
        counts = [sum(case.state == state for case in members) for state in states]
        print(f"{group:{width}}" + "".join(f"{count or '-':>9}" for count in counts))
    for state in ("failed", "skipped"):
        chosen = [case for case in cases if case.state == state]
        if chosen:
            print(f"\n{state}:")
        for case in chosen[:60]:
            print(f"  {case.name}\n    {case.text}")
        if len(chosen) > 60:
            print(f"  ... and {len(chosen) - 60} more")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin"), help="folder of comms-run")
    parser.add_argument("--ranks", default="2,4,8", help="rank counts; those above the number of GPUs are left out")
    parser.add_argument("--level", choices=["quick", "full"], default="quick")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--sample", type=int, default=1, help="run every Nth case")
    parser.add_argument("--limit", type=float, default=60, help="seconds a case may take")
    parser.add_argument("--json", default="", help="file to write")
    parser.add_argument(
        "--gin",
        type=int,
        default=0,
        metavar="N",
        help="run the kernels over GIN alone, with NCCL's teams of load/store reach cut down to N ranks; needs an"
        " adapter, or NCCL_RMA_PLUGIN=…/libnccl-rma-loopback.so and NCCL 2.30 or newer",
    )
    parser.add_argument("--cpu-only", action="store_true", help="make and check the references, use no GPU")
    options = parser.parse_args()
    program = str(pathlib.Path(options.bin) / "comms-run")
    gpus = 8 if options.cpu_only else count_gpus()
    ranks = [int(text) for text in options.ranks.split(",") if int(text) <= gpus]
    if not ranks:
        print(
            f"run.py: error: {gpus} GPUs are too few for any of --ranks {options.ranks}; nvidia-smi -L lists"
            " what there is, and without any `make test` runs everything on the CPU world",
            file=sys.stderr,
        )
        return 2
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="commsir-gpu-") as folder:
        made = Cases(pathlib.Path(folder), options.level, ranks)
        if options.gin:
            os.environ["NCCL_LSA_TEAM_SIZE"] = str(options.gin)
            made.gin(options.gin)
        else:
            made.windows()
            made.many_launches()
            made.nccl()
            made.shipped()
            made.specials()
            made.failures(gpus)
            made.collectives()
        cases = [case for case in made.all if options.only in case.name][:: options.sample]
        if not cases:
            print(f"run.py: error: no case has '{options.only}' in its name", file=sys.stderr)
            return 2
        print(f"{len(cases)} cases on {gpus} GPUs", file=sys.stderr, flush=True)
        runner = Runner(program, gpus, options.limit)
        runner.cpu([case for case in cases if case.cpu])
        referenced = time.monotonic()
        print(f"references took {referenced - start:.0f} s", file=sys.stderr, flush=True)
        if not options.cpu_only:
            runner.gpu([case for case in cases if case.state in ("reference", "refused", "not run")])
    print_table(cases)
    failed = sum(case.state in ("failed", "not run") for case in cases)
    print(f"\n{len(cases)} cases, {failed} failed, {time.monotonic() - start:.0f} s")
    if options.json:
        rows = [
            {"name": c.name, "group": c.group, "ranks": c.ranks, "state": c.state, "text": c.text, "us": c.microseconds}
            for c in cases
        ]
        pathlib.Path(options.json).write_text(json.dumps({"gpus": gpus, "cases": rows}, indent=1) + "\n")
    if options.gin and any(case.state in ("refused", "skipped") for case in cases):
        return 1
    return 1 if failed and not options.cpu_only or any(c.state == "failed" for c in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
