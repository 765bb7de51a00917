"""Kernels that share one channel memory in turn, in the PTX emulator, compared with the CPU world.

emulate_shared.py [--seed S] [--count N] [--fault FAULT] [--show]

Each program is a handful of collectives, of random operations, types, sizes, algorithms, protocols and grids, over one
channel memory. Some get the number of elements at launch, a different one each time; those with a root get it at
launch. Ranks launch them in a random order, the same on all ranks, over memory that is as late and as out of order as
PTX allows. A rank begins its next launch as soon as its last one has ended, regardless of its peers, so one rank may
write to channels for launch k + 1 while another still reads the data of launch k. `--fault` shows that the
comparison finds faults of each kind.
"""

import argparse
import pathlib
import random
import subprocess
import tempfile
from typing import Any

import emulator
import numpy as np
import weak_memory
from emulate import BLOCK_BYTES, KINDS, STATE_BYTES, describe, tool
from memory import SLOT, Fault

ALIGNMENT, WINDOW_ALIGNMENT = 256, 2048
BARRIER_ROWS, LINE_UNITS, REST_UNITS = 2, 16, 2
TURNS = {"data": 2, "packets": 2, "lines": 2, "poison": 3}
LAUNCH_BYTES, POISON = 48, b"\xfa\xff"
# A launch leaves the states of blocks that it does not have; rests lie behind the kernel's own lines; the buffers of a
# kernel are as far apart as it needs.
FAULTS = ["states", "rests", "buffers"]
ROOTED = ("broadcast", "reduce", "gather", "scatter")


def align(size: int, to: int) -> int:
    return -(-size // to) * to


class Kernel:
    """A collective, compiled."""

    def __init__(
        self, folder: pathlib.Path, number: int, ranks: int, lots: random.Random, roots: random.Random
    ) -> None:
        op = lots.choice(["all_reduce", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"])
        reduces = op in ("all_reduce", "reduce_scatter")
        self.kind = lots.choice(["f32", "bf16", "i32"])
        protocols = ["ll", "ll128", "push", "pull"] + ["lamport"] * 3 * (reduces and self.kind != "i32")
        protocol = lots.choice(protocols)
        algorithms = ["one_shot"] + ["two_shot"] * (op in ("all_reduce", "broadcast"))
        if op == "broadcast":
            op = roots.choice(ROOTED)
            if op == "reduce" and self.kind != "i32":
                protocol = roots.choice([protocol, "lamport"])
        self.op, self.ranks, self.folder = op, ranks, folder
        self.part = 16 * lots.choice([1, 2, 5, 8, 16, 33])
        self.step = lots.choice([0, 0, 1, 16, 64])  # 0: the size is the kernel's.
        if self.step:
            self.part = max(self.part, self.step) // self.step * self.step
        self.path = self.write(f"k{number}", self.part, self.step)
        blocks = lots.choice([1, 2, 3])
        algorithm = lots.choice(algorithms)
        if op in ROOTED and op != "broadcast":
            algorithm = "one_shot"
        self.choice: dict[str, Any] = {"algorithm": algorithm, "protocol": protocol, "blocks": blocks}
        options = " ".join(f"{name}={value}" for name, value in self.choice.items())
        self.options = f"ranks={ranks} {options} threads=32 chip=sm_90 shared-channels=true"
        self.facts = describe(str(self.path), self.options)
        ptx = tool("comms-translate", "--comms-to-ptx", str(self.path), f"--gpu={self.options}")
        self.module = emulator.parse(ptx)
        self.text = f"{op} of {self.part} {self.kind}, step {self.step}, {options}"

    def sizes(self, part: int) -> dict[str, int]:
        whole = part * self.ranks
        size = whole if self.op in ("reduce_scatter", "all_to_all", "scatter") else part
        return {"x": size, "y": {"all_to_all": whole, "all_gather": whole, "gather": whole}.get(self.op, part)}

    def write(self, name: str, part: int, step: int, root: int | None = None) -> pathlib.Path:
        """A root of None: launches give it."""
        x, y = (f"memref<{size}x{self.kind}>" for size in self.sizes(part).values())
        rooted = self.op in ROOTED
        team = f"root {root or 0} %team" if rooted else "%team"
        reduction = "sum " if "reduce" in self.op else ""
        argument = ", %root: index {comms.run_time_root}" if rooted and root is None else ""
        path = self.folder / f"{name}.mlir"
        path.write_text(
            f"comms.kernel @{self.op}(%x: {x}, %y: {y}{argument})"
            f"{f' attributes {{comms.run_time_extent = {step} : i64}}' if step else ''} {{\n"
            "  %team = comms.team world\n"
            f"  comms.{self.op} {reduction}{team} ins(%x : {x}) outs(%y : {y})\n"
            "  comms.return\n}\n"
        )
        return path

    def draw(self, lots: random.Random) -> int:
        """Elements of a part in a launch."""
        return lots.randint(1, self.part // self.step) * self.step if self.step else self.part

    def windows(self) -> list[tuple[dict[str, Any], int]]:
        """Windows in shared memory, and the bytes that each takes of a buffer."""
        found = []
        for argument in self.facts["arguments"]:
            if argument.get("slots", "barrier") != "barrier":
                size = argument["bytes"] * int(np.prod(argument["shape"]))
                if argument["slots"] == "lines":
                    size = size // (LINE_UNITS + REST_UNITS) * LINE_UNITS
                found.append((argument, align(size, WINDOW_ALIGNMENT)))
        return found

    def wanted(self, arrays: list[Any], part: int, root: int) -> list[Any]:
        ranks, path = self.ranks, self.write("wanted", part, 0, root)
        flags = [f"--{name}={value}" for name, value in self.choice.items()]
        with tempfile.TemporaryDirectory() as folder:
            for rank, array in enumerate(arrays):
                np.save(pathlib.Path(folder) / f"x-{rank}.npy", array)
            flags += ["--input", f"x={folder}/x-%r.npy", "--output", f"y={folder}/y-%r.npy"]
            tool("comms-run", str(path), "--ranks", str(ranks), "--quiet", *flags)
            return [np.load(pathlib.Path(folder) / f"y-{rank}.npy") for rank in range(ranks)]


class Shared:
    """Channel memory of all ranks, as runtime/group/cuda/SharedChannels.cpp lays it out."""

    def __init__(self, kernels: list[Kernel], ranks: int, memory: weak_memory.WeakMemory, fault: str) -> None:
        self.ranks, self.memory, self.fault = ranks, memory, fault
        self.blocks = max(kernel.choice["blocks"] for kernel in kernels) + 1
        self.bytes = dict.fromkeys(TURNS, WINDOW_ALIGNMENT)
        for kernel in kernels:
            taken = dict.fromkeys(TURNS, 0)
            for argument, size in kernel.windows():
                taken[argument["slots"]] += size
            self.bytes = {kind: max(self.bytes[kind], taken[kind]) for kind in TURNS}
        self.offsets, end = {}, align(STATE_BYTES + self.blocks * BLOCK_BYTES, ALIGNMENT)
        self.offsets["barrier"], end = end, end + align((BARRIER_ROWS + self.blocks) * ranks * 4, ALIGNMENT)
        for kind, turns in TURNS.items():
            self.offsets[kind], end = end, end + align(self.stride(kind) * turns, ALIGNMENT)
        self.parts = [memory.take(end) for _ in range(ranks)]
        for part in self.parts:
            memory.store(part + 16, 4, [1 << 30])  # Polls spin and look at no clock.
            first, size = self.offsets["poison"], self.stride("poison") * TURNS["poison"]
            memory.parts[part >> SLOT][first : first + size] = POISON * (size // 2)

    def write(self, address: int, size: int, values: list[int]) -> None:
        for number, value in enumerate(values):
            self.memory.store(address + number * size, size, [value])

    def stride(self, kind: str) -> int:
        return self.bytes[kind] + (self.bytes[kind] // 8 if kind == "lines" else 0)

    def pack(self, kernel: Kernel, rank: int, values: dict[str, int], extent: int) -> int:
        """Parameters of a launch."""
        address = self.memory.take(kernel.facts["bytes"])
        self.write(address, 4, [rank, self.ranks, self.ranks, 0 if self.fault == "states" else self.blocks])
        self.write(address + 16, 8, [self.parts[rank], 0, 1234, extent])
        at, taken = address + LAUNCH_BYTES, dict.fromkeys(TURNS, 0)
        sizes = {id(argument): size for argument, size in kernel.windows()}
        for argument in kernel.facts["arguments"]:
            kind = argument.get("slots")
            if not kind:
                self.write(at, 8, [values[argument["name"]]])
                at += 8
                continue
            offset = self.offsets[kind] + taken.get(kind, 0)
            self.write(at, 8, [part + offset for part in self.parts])
            at += 8 * self.ranks
            if kind != "barrier":
                size, stride = sizes[id(argument)], self.stride(kind)
                rests = self.bytes[kind] + taken[kind] // 8 - taken[kind]
                if self.fault == "rests":
                    rests = size
                if self.fault == "buffers":
                    stride = size + size // 8
                self.write(at, 8, [stride, rests if kind == "lines" else 0])
                at += 16
                taken[kind] += size
        return address


class Sequence(emulator.Run):
    """Launches of all ranks, each rank at its own pace."""

    def __init__(self, memory: weak_memory.WeakMemory, ranks: int, seed: int) -> None:
        super().__init__(emulator.parse(""), "", memory, seed)
        self.weak = memory
        self.queues: list[list[tuple[Kernel, int]]] = [[] for _ in range(ranks)]

    def begin(self, rank: int) -> None:
        """The rank's next launch; what it has stored before has come to all."""
        for store in [one for waits in self.weak.waiting.values() for one in waits]:
            if store.place[4] == ("gpu", rank) and store in self.weak.waiting.get(store.granule, ()):
                self.weak.drain(store)
        if not self.queues[rank]:
            return
        kernel, params = self.queues[rank].pop(0)
        self.module, self.name, shape = kernel.module, kernel.facts["name"], kernel.facts["launch"]
        before = len(self.ctas)
        self.add(rank, params, shape["blocks"], shape["threads"], 1, shape["dynamic_shared"])
        for cta in self.ctas[before:]:
            for fiber in cta.fibers:
                fiber.context.who.floor = self.weak.version

    def meet(self, cta: Any) -> bool:
        moved = super().meet(cta)
        if all(fiber.over for fiber in cta.fibers) and cta in self.ctas:
            self.ctas.remove(cta)
            if not any(other.rank == cta.rank for other in self.ctas):
                self.begin(cta.rank)
            return True
        return moved

    def all(self) -> None:
        for rank in range(len(self.queues)):
            self.begin(rank)
        self.run()


def check(seed: int, show: bool, fault: str) -> int:
    lots, roots = random.Random(seed), random.Random(f"roots of {seed}")
    ranks = lots.choice([2, 2, 3])
    with tempfile.TemporaryDirectory() as name:
        kernels = [Kernel(pathlib.Path(name), i, ranks, lots, roots) for i in range(lots.choice([2, 3, 4]))]
        memory = weak_memory.WeakMemory(seed, whole_lines=True)
        shared = Shared(kernels, ranks, memory, fault)
        numbers = np.random.default_rng(seed)
        sequence = Sequence(memory, ranks, seed)
        launches = []
        for _ in range(lots.choice([4, 7, 10])):
            kernel = lots.choice(kernels)
            kind, part, root = KINDS[kernel.kind], kernel.draw(lots), roots.randrange(ranks)
            sizes = kernel.sizes(part)
            arrays = [numbers.integers(-9, 9, sizes["x"]).astype(kind) for _ in range(ranks)]
            places = []
            for rank, array in enumerate(arrays):
                place = {key: memory.take(size * array.itemsize) for key, size in sizes.items()}
                memory.parts[place["x"] >> SLOT][:] = array.tobytes()
                values = {**place, "root": root}
                sequence.queues[rank].append((kernel, shared.pack(kernel, rank, values, part if kernel.step else 0)))
                places.append(place["y"])
            launches.append((kernel, part, root, arrays, places))
        if show:
            print(*(f"{part} of {kernel.text}, root {root}" for kernel, part, root, _, _ in launches), sep="\n")
        sequence.all()
        for number, (kernel, part, root, arrays, places) in enumerate(launches):
            for rank, want in enumerate(kernel.wanted(arrays, part, root)):
                if bytes(memory.parts[places[rank] >> SLOT]) != want.tobytes():
                    what = f"launch {number} ({part} of {kernel.text}, root {root}), rank {rank}"
                    raise Fault(f"{what}: other bits than on the CPU")
        return len(launches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--fault", choices=FAULTS, default="", help="lay the memory out wrongly, in one way")
    parser.add_argument("--show", action="store_true", help="print the launches of each program")
    options = parser.parse_args()
    total = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            total += check(seed, options.show, options.fault)
        except (Fault, subprocess.SubprocessError) as fault:
            raise SystemExit(f"seed {seed}: {fault}") from fault
    print(f"{options.count} programs, {total} launches on shared channels: the same bits as on the CPU")


if __name__ == "__main__":
    main()
