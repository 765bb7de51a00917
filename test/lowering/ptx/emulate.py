"""Runs kernels in an emulator of PTX and compares every bit with the CPU world.

emulate.py KERNEL.mlir --ranks N [--gpu "blocks=2 threads=64 …"] [--launches K] [--seed S] [--show]

Both get the same random arrays. The arguments, channels and shape of the launch are what comms-to-nvvm says of the
kernel, so that what runs is what a GPU would be given: its PTX, with its parameters.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from typing import Any

import emulator
import ml_dtypes
import numpy as np

KINDS: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
KINDS |= {"bf16": ml_dtypes.bfloat16}
KINDS |= {f"i{width}": np.dtype(f"int{width}") for width in (8, 16, 32, 64)}
ARGUMENTS_OFFSET = 24
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
            key: m[1] for key in ("element", "kind", "name") if (m := re.search(rf'{key} = "([^"]*)"', text))
        }
        found["bytes"] = int(m[1]) if (m := re.search(r"bytes = (\d+)", text)) else 8
        found["shape"] = tuple(int(n) for n in shape[1].split(",")) if shape and shape[1] else ()
        found |= {key: bool(re.search(rf"\b{key}\b", text)) for key in ("hidden", "poisoned")}
        arguments.append(found)
    launch = re.search(r"comms\.launch = \{([^}]*)\}", line)
    assert launch
    numbers = {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", launch[1])}
    size = re.search(r"comms\.param_bytes = (\d+)", line)
    name = re.search(r"llvm\.func @(\w+)", line)
    assert size and name
    return {"arguments": arguments, "launch": numbers, "bytes": int(size[1]), "name": name[1]}


def make(argument: dict[str, Any], lots: np.random.Generator) -> Any:
    kind = KINDS[argument["element"]]
    if argument["element"][-3:] in ("f16", "f32", "f64"):
        return lots.uniform(-1, 1, argument["shape"]).astype(kind)
    return lots.integers(-100, 101, argument["shape"]).astype(kind)


class World:
    """Memory of all ranks, as the runtime makes it."""

    def __init__(self, kernel: dict[str, Any], ranks: int, arrays: dict[str, list[Any]]) -> None:
        self.kernel, self.ranks = kernel, ranks
        self.memory = emulator.Memory()
        self.parts: dict[str, list[int]] = {}
        for argument in kernel["arguments"]:
            self.parts[argument["name"]] = [self.place(argument, arrays.get(argument["name"]), r) for r in range(ranks)]
        blocks = kernel["launch"]["blocks"]
        self.states = [self.memory.take(STATE_BYTES + blocks * BLOCK_BYTES) for _ in range(ranks)]
        for state in self.states:
            self.memory.store(state + 16, 4, [1 << 30])  # Polls spin and look at no clock.
        self.params = [self.pack(rank) for rank in range(ranks)]

    def place(self, argument: dict[str, Any], given: list[Any] | None, rank: int) -> int:
        size = argument["bytes"] * int(np.prod(argument["shape"], dtype=np.int64))
        address: int = self.memory.take(size)
        data = given[rank].tobytes() if given else b"\xfa\xff" * (size // 2) if argument["poisoned"] else b""
        self.memory.parts[address >> emulator.SLOT][: len(data)] = data
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
                raise emulator.Fault(f"rank {rank} gave up")

    def read(self, argument: dict[str, Any], rank: int) -> bytes:
        return bytes(self.memory.parts[self.parts[argument["name"]][rank] >> emulator.SLOT])


def compare(path: str, ranks: int, options: str, launches: int, seed: int, show: bool) -> None:
    kernel = describe(path, f"ranks={ranks} {options}")
    lots = np.random.default_rng(seed)
    open_to_all = [a for a in kernel["arguments"] if not a["hidden"] and a["kind"] not in ("signal", "counter")]
    arrays = {a["name"]: [make(a, lots) for _ in range(ranks)] for a in open_to_all}
    ptx = tool("comms-translate", "--comms-to-ptx", path, f"--gpu=ranks={ranks} {options}")
    module = emulator.parse(ptx)
    if show:
        print(module.sources[kernel["name"]])
    world = World(kernel, ranks, arrays)
    for launch in range(launches):
        world.launch(module, seed + launch)
    chosen = [part for part in options.split() if part.split("=")[0] in ("algorithm", "protocol", "blocks")]
    flags = [f"--{part.split('=')[0]}={part.split('=')[1]}" for part in chosen]
    with tempfile.TemporaryDirectory() as folder:
        for name, parts in arrays.items():
            for rank, part in enumerate(parts):
                np.save(pathlib.Path(folder) / f"in-{name}-{rank}.npy", part)
            flags += ["--input", f"{name}={folder}/in-{name}-%r.npy", "--output", f"{name}={folder}/out-{name}-%r.npy"]
        tool("comms-run", path, "--ranks", str(ranks), "--launches", str(launches), "--quiet", *flags)
        for argument in open_to_all:
            for rank in range(ranks):
                wanted = np.load(pathlib.Path(folder) / f"out-{argument['name']}-{rank}.npy")
                got = np.frombuffer(world.read(argument, rank), wanted.dtype).reshape(wanted.shape)
                if got.tobytes() != wanted.tobytes():
                    at = tuple(
                        int(i[0]) for i in np.nonzero(got.view(f"u{got.itemsize}") != wanted.view(f"u{got.itemsize}"))
                    )
                    sys.exit(
                        f"{path} [{options}], seed {seed}: {argument['name']}, rank {rank}, element {at}:"
                        f" {got[at]} in PTX, {wanted[at]} on the CPU"
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--gpu", action="append", default=[], help="options of comms-to-nvvm")
    parser.add_argument("--launches", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what the PTX became")
    options = parser.parse_args()
    for gpu in options.gpu or ["blocks=1 threads=32 chip=sm_90"]:
        try:
            compare(options.kernel, options.ranks, gpu, options.launches, options.seed, options.show)
        except emulator.Fault as fault:
            sys.exit(f"{options.kernel} [{gpu}], {options.ranks} ranks: {fault}")
        print(f"{options.kernel} [{gpu}], {options.ranks} ranks, {options.launches} launches: the same bits")


if __name__ == "__main__":
    random.seed(0)
    main()
