"""Runs kernels in a PTX emulator and compares every bit with the CPU world.

emulate.py KERNEL.mlir --ranks N [--gpu "blocks=2 threads=64 …"] [--launches K] [--seed S] [--weak]
           [--continues] [--whole] [--show]

Both get the same random arrays, some of them with infinities, NaN and other special values. comms-to-nvvm defines the
arguments, the channels and the launch shape, so the emulator runs the same PTX with the same parameters as a GPU.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import emulator
import memory
import ml_dtypes
import numpy as np
import weak_memory

KINDS: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
KINDS |= {"bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
KINDS |= {"index": np.dtype("int64")}
KINDS |= {f"i{width}": np.dtype(f"int{width}") for width in (8, 16, 32, 64)}
ARGUMENTS_OFFSET = 48
STATE_BYTES, BLOCK_BYTES = 64, 32


def tool(*arguments: str) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}\n{done.stderr[:3000]}{done.stdout[-2000:]}")
    return done.stdout


def describe(path: str, options: str) -> dict[str, Any]:
    """What the lowering says of the kernel's function."""
    ir = tool("comms-opt", path, f"--pass-pipeline=builtin.module(comms-to-nvvm{{{options}}})")
    line = next(line for line in ir.splitlines() if "comms.param_bytes" in line)
    listed = re.search(r"comms\.args = \[(.*?)\], comms\.", line)
    arguments = []
    for text in re.findall(r"\{([^{}]*)\}", listed[1] if listed else ""):
        shape = re.search(r"shape = array<i64(?:: ([^>]*))?>", text)
        found: dict[str, Any] = {
            key: m[1] for key in ("element", "kind", "name", "slots") if (m := re.search(rf'{key} = "([^"]*)"', text))
        }
        found["bytes"] = int(m[1]) if (m := re.search(r"bytes = (\d+)", text)) else 8
        found["shape"] = tuple(int(n) for n in shape[1].split(",")) if shape and shape[1] else ()
        found |= {key: bool(re.search(rf"\b{key}\b", text)) for key in ("hidden", "poisoned", "multimem")}
        arguments.append(found)
    launch = re.search(r"comms\.launch = \{([^}]*)\}", line)
    assert launch
    numbers = {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", launch[1])}
    size = re.search(r"comms\.param_bytes = (\d+)", line)
    name = re.search(r"llvm\.func @(\w+)", line)
    assert size and name
    return {"arguments": arguments, "launch": numbers, "bytes": int(size[1]), "name": name[1]}


def make(argument: dict[str, Any], lots: np.random.Generator, whole: bool) -> Any:
    """Numbers of small size; where lots say so, some of an array are NaNs, infinities and zeros. Whole
    numbers have sums that are exact in any order."""
    kind = KINDS[argument["element"]]
    if whole:
        return lots.integers(-4, 5, argument["shape"]).astype(kind)
    if argument["element"][0] not in "fb":
        return lots.integers(-100, 101, argument["shape"]).astype(kind)
    made = lots.uniform(-1, 1, argument["shape"]).astype(kind)
    if made.itemsize > 1 and lots.random() < 0.3:
        # NaN with payloads, infinities, zeros, the least, and the pattern that stands for "nothing here".
        bits = made.view(f"u{made.itemsize}")
        some = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0], kind).view(bits.dtype)
        patterns = [int("FFFA" * (made.itemsize // 2), 16), 1, (1 << 8 * made.itemsize) - 2]
        at = lots.random(made.shape) < 0.1
        bits[at] = lots.choice(np.array([*some, *patterns], bits.dtype), made.shape)[at]
    return made


class World:
    """Memory of all ranks, as the runtime makes it."""

    def __init__(self, kernel: dict[str, Any], ranks: int, memory: memory.Memory) -> None:
        self.kernel, self.ranks, self.memory = kernel, ranks, memory
        self.parts: dict[str, list[int]] = {}
        for argument in kernel["arguments"]:
            self.parts[argument["name"]] = [self.place(argument) for _ in range(ranks)]
        self.multicast = {
            argument["name"]: self.memory.take_multicast(self.parts[argument["name"]])
            for argument in kernel["arguments"]
            if argument["multimem"]
        }
        blocks = kernel["launch"]["blocks"]
        self.states = [self.memory.take(STATE_BYTES + blocks * BLOCK_BYTES) for _ in range(ranks)]
        for state in self.states:
            self.memory.store(state + 16, 4, [1 << 30])  # Polls spin and look at no clock.
        self.params = [self.pack(rank) for rank in range(ranks)]

    def place(self, argument: dict[str, Any]) -> int:
        size = argument["bytes"] * int(np.prod(argument["shape"], dtype=np.int64))
        address: int = self.memory.take(size)
        if argument["poisoned"]:
            self.memory.parts[address >> memory.SLOT][:] = b"\xfa\xff" * (size // 2)
        return address

    def pack(self, rank: int) -> int:
        address: int = self.memory.take(self.kernel["bytes"])
        self.write(address, 4, [rank, self.ranks, self.ranks, 0])
        self.write(address + 16, 8, [self.states[rank]])
        at = address + ARGUMENTS_OFFSET
        for argument in self.kernel["arguments"]:
            parts = self.parts[argument["name"]]
            if argument["kind"] in ("window", "signal"):
                self.write(at, 8, parts)
                at += 8 * self.ranks
            elif argument["kind"] in ("memory", "memref", "counter"):
                self.write(at, 8, [parts[rank]])
                at += 8
            else:
                sys.exit(f"an argument of kind {argument['kind']} is not emulated")
        self.write(at, 8, list(self.multicast.values()))
        return address

    def write(self, address: int, size: int, values: list[int]) -> None:
        for number, value in enumerate(values):
            self.memory.store(address + number * size, size, [value])

    def launch(self, module: emulator.Module, seed: int) -> None:
        shape = self.kernel["launch"]
        run = emulator.Run(module, self.kernel["name"], self.memory, seed)
        ctas = shape["blocks"] * shape["cluster"]
        for rank in range(self.ranks):
            run.add(rank, self.params[rank], ctas, shape["threads"], shape["cluster"], shape["dynamic_shared"])
        run.run()
        for rank, state in enumerate(self.states):
            if self.memory.load(state, 8, 1) != [0]:
                raise memory.Fault(f"rank {rank} gave up")

    def read(self, argument: dict[str, Any], rank: int) -> bytes:
        return bytes(self.memory.parts[self.parts[argument["name"]][rank] >> memory.SLOT])


class Comparison:
    """A kernel in the emulator and on the CPU. `given`: arrays of each rank that are not drawn, by name."""

    def __init__(
        self,
        path: str,
        ranks: int,
        options: str,
        seed: int,
        weak: bool,
        whole: bool = False,
        given: Mapping[str, list[Any]] | None = None,
    ) -> None:
        self.given = given or {}
        self.path, self.ranks, self.options, self.seed, self.whole = path, ranks, options, seed, whole
        self.kernel = describe(path, f"ranks={ranks} {options}")
        self.lots = np.random.default_rng(seed)
        self.open = [a for a in self.kernel["arguments"] if not a["hidden"] and a["kind"] not in ("signal", "counter")]
        self.ptx = tool("comms-translate", "--comms-to-ptx", path, f"--gpu=ranks={ranks} {options}")
        has_lines = "ll128" in options + pathlib.Path(path).read_text()
        self.memory = weak_memory.WeakMemory(seed, has_lines) if weak else memory.Memory()
        self.world = World(self.kernel, ranks, self.memory)

    def fill(self) -> dict[str, list[Any]]:
        """Gives new values to all arrays."""
        arrays = {a["name"]: [make(a, self.lots, self.whole) for _ in range(self.ranks)] for a in self.open}
        arrays.update(self.given)
        for name, parts in arrays.items():
            for rank, part in enumerate(parts):
                self.memory.parts[self.world.parts[name][rank] >> memory.SLOT][:] = part.tobytes()
        return arrays

    def wanted(self, arrays: dict[str, list[Any]], launches: int) -> dict[str, list[Any]]:
        """What the CPU makes of the arrays."""
        chosen = [part.split("=") for part in self.options.split()]
        flags = [f"--{name}={value}" for name, value in chosen if name in ("algorithm", "protocol", "blocks")]
        with tempfile.TemporaryDirectory() as folder:
            for name, parts in arrays.items():
                for rank, part in enumerate(parts):
                    np.save(pathlib.Path(folder) / f"in-{name}-{rank}.npy", part)
                flags += ["--input", f"{name}={folder}/in-{name}-%r.npy"]
                flags += ["--output", f"{name}={folder}/out-{name}-%r.npy"]
            tool("comms-run", self.path, "--ranks", str(self.ranks), "--launches", str(launches), "--quiet", *flags)
            return {
                name: [np.load(pathlib.Path(folder) / f"out-{name}-{rank}.npy") for rank in range(self.ranks)]
                for name in arrays
            }

    def check(self, wanted: dict[str, list[Any]], launch: int) -> None:
        for argument in self.open:
            for rank, want in enumerate(wanted[argument["name"]]):
                got = np.frombuffer(self.world.read(argument, rank), want.dtype).reshape(want.shape)
                if got.tobytes() == want.tobytes():
                    continue
                differs = got.view(f"u{got.itemsize}") != want.view(f"u{got.itemsize}")
                at = tuple(int(i[0]) for i in np.nonzero(differs))
                raise memory.Fault(
                    f"seed {self.seed}, launch {launch}: {argument['name']}, rank {rank}, element {at}:"
                    f" {got[at]} in PTX, {want[at]} on the CPU"
                )

    def run(self, module: emulator.Module, launches: int, continues: bool) -> None:
        """Each launch has new arrays, or they are filled once and a launch continues with what the last one left."""
        arrays = self.fill()
        for launch in range(launches):
            if launch and not continues:
                arrays = self.fill()
            self.world.launch(module, self.seed + launch)
            if not continues:
                self.check(self.wanted(arrays, 1), launch)
        if continues:
            self.check(self.wanted(arrays, launches), launches - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--gpu", action="append", default=[], help="options of comms-to-nvvm")
    parser.add_argument("--launches", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--continues", action="store_true", help="arrays are filled before the first launch alone")
    parser.add_argument("--weak", action="store_true", help="memory as late and out of order as PTX allows")
    parser.add_argument("--whole", action="store_true", help="arrays of whole numbers, whose sums are exact")
    parser.add_argument("--show", action="store_true", help="print what the PTX became")
    options = parser.parse_args()
    for gpu in options.gpu or ["blocks=1 threads=32 chip=sm_90"]:
        try:
            pair = Comparison(options.kernel, options.ranks, gpu, options.seed, options.weak, options.whole)
            module = emulator.parse(pair.ptx)
            if options.show:
                print(module.sources[pair.kernel["name"]])
            pair.run(module, options.launches, options.continues)
        except memory.Fault as fault:
            sys.exit(f"{options.kernel} [{gpu}], {options.ranks} ranks: {fault}")
        print(f"{options.kernel} [{gpu}], {options.ranks} ranks, {options.launches} launches: the same bits")


if __name__ == "__main__":
    random.seed(0)
    main()
