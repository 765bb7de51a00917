"""Random calls of the backend and the same calls of NCCL: every result is compared, and both are timed.

torchrun --nproc-per-node 4 test/gpu/soak.py [--seconds 120] [--calls N] [--seed 1] [--most 67108864]
                                             [--kinds N] [--warm] [--cpu] [--json FILE]

Calls are drawn in batches, the same on all ranks: operation, type, reduction, root, size from one element to `--most`
bytes, uneven parts, coalesced, asynchronous, a matmul in a side stream. In one batch of eight, each rank is also late
by a random time of up to 10 ms; the other batches count for the rates. The backends take turns, and both run a batch
from the same inputs, which are slices of random numbers that each rank draws once.

Each combination of operation, type, reduction and class of sizes needs a kernel. `--kinds` first draws so many
combinations of operation, type, reduction and root, and then draws calls only from these. `--warm` calls each of them
with a size of each class before the clock starts. A long run then compiles little, and its rates are those of a job in
its steady state.

`--cpu` compares CPU tensors with Gloo.

Prints the calls per second of both, the number of compiled kernels, and the memory in use at the start, after half of
the time, and at the end: the device's memory, or with `--cpu` the process's. Prints a line per minute to standard
error. Ends with status 1 if a result is wrong, if CommsIR takes more than twice as long as NCCL, or if memory grows by
more than 64 MiB in the second half.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import itertools
import json
import math
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import commsir.torch  # noqa: F401  (registers the backend)
import torch
import torch.distributed

dist: Any = torch.distributed
cuda: Any = torch.cuda
CALLS, BATCH_BYTES, GROWTH = 400, 1 << 30, 64 << 20
#: One batch of so many has ranks that come late.
LATE_BATCHES = 8
#: Results of at most so many elements are compared together.
SMALL = 1 << 16
#: Random numbers beyond those of the largest call, so that calls differ.
SLACK = 4096
#: Cycles of about 10 ms.
LATE = 18_000_000
FLOATS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
TYPES = [*FLOATS, torch.int32, torch.int64, torch.uint8, torch.int8]
REDUCES = {"all_reduce", "reduce", "reduce_scatter", "async", "coalesced"}
OPERATIONS = [
    *["all_reduce"] * 3,
    "all_gather",
    "all_gather_uneven",
    "reduce_scatter",
    "all_to_all",
    "all_to_all_uneven",
    "broadcast",
    "reduce",
    "coalesced",
    "async",
]


@dataclass(frozen=True)
class Kind:
    """What calls that differ in size alone have in common."""

    op: str
    dtype: torch.dtype
    reduce: Any
    root: int


@dataclass
class Drawn:
    """A call, alike on all ranks except for `late`."""

    op: str
    dtype: torch.dtype
    reduce: Any
    root: int
    #: Elements of a part.
    count: int
    #: [from][to] elements that ranks exchange.
    split: list[list[int]]
    matmul: bool
    #: Cycles that this rank comes late.
    late: int = 0
    source: torch.Tensor = field(default_factory=lambda: torch.empty(0))

    def __str__(self) -> str:
        return f"{self.op} of {self.count} {self.dtype}, {self.reduce}, root {self.root}, {self.split}"


class Numbers:
    """Random numbers of each type, drawn once: calls take parts of them."""

    def __init__(self, own: random.Random, most: int, size: int, device: str) -> None:
        self.own, self.most, self.size, self.device = own, most, size, device
        self.drawn: dict[torch.dtype, torch.Tensor] = {}

    def __call__(self, dtype: torch.dtype, elements: int) -> torch.Tensor:
        if dtype not in self.drawn:
            every = self.most // dtype.itemsize + self.size + SLACK
            floats = dtype.is_floating_point
            made = (
                torch.randn(every, device=self.device) if floats else torch.randint(-8, 8, (every,), device=self.device)
            )
            self.drawn[dtype] = made.to(dtype)
        first = self.own.randrange(len(self.drawn[dtype]) - elements + 1)
        return self.drawn[dtype][first : first + elements]


def draw_kind(numbers: random.Random, size: int) -> Kind:
    reductions = [dist.ReduceOp.SUM, dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN]
    return Kind(numbers.choice(OPERATIONS), numbers.choice(TYPES), numbers.choice(reductions), numbers.randrange(size))


def largest_of(kind: Kind, size: int, most: int) -> int:
    """Elements of a part of the largest message."""
    several = kind.op in ("all_gather", "reduce_scatter", "all_to_all")
    return max(1, most // kind.dtype.itemsize // (size if several else 1))


def draw(
    numbers: random.Random,
    own: random.Random,
    rank: int,
    size: int,
    most: int,
    late: bool,
    kinds: Sequence[Kind] = (),
    *,
    numbers_of: Numbers,
) -> Drawn:
    kind = numbers.choice(kinds) if kinds else draw_kind(numbers, size)
    largest = largest_of(kind, size, most)
    # Powers of two, and what lies between: as many small ones as large ones.
    count = min(largest, int(math.exp(numbers.uniform(0, math.log(largest + 1)))))
    drawn = make(kind, count, numbers, rank, size, numbers_of)
    drawn.matmul = numbers.random() < 0.1
    drawn.late = own.randint(1, LATE) if late and own.random() < 0.1 else 0
    return drawn


def make(kind: Kind, count: int, numbers: random.Random, rank: int, size: int, numbers_of: Numbers) -> Drawn:
    """A call of `count` elements a part, with what this rank gives."""
    op, dtype = kind.op, kind.dtype
    split = [[numbers.randint(0, max(1, count // size)) for _ in range(size)] for _ in range(size)]
    elements = {
        "reduce_scatter": count * size,
        "all_to_all": count * size,
        "all_to_all_uneven": sum(split[rank]),
        "all_gather_uneven": split[rank][0] + 1,
    }.get(op, count)
    return Drawn(
        op=op,
        dtype=dtype,
        reduce=kind.reduce,
        root=kind.root,
        count=count,
        split=split,
        matmul=False,
        source=numbers_of(dtype, elements),
    )


def looseness(one: Drawn) -> float:
    """How much sums may differ, since their orders do."""
    return FLOATS.get(one.dtype, 0.0) if one.op in REDUCES and one.reduce == dist.ReduceOp.SUM else 0.0


def alike(ours: torch.Tensor, theirs: torch.Tensor, loose: float) -> torch.Tensor:
    """A flag: whether each element differs by at most `loose` of its size (at least 4). Not-a-number never is."""
    if loose == 0:
        return (ours == theirs).all()
    a, b = ours.double(), theirs.double()
    return ((a - b).abs() <= loose * (4 + b.abs())).all()


def is_gloo(x: torch.Tensor, group: Any) -> bool:
    """It takes no parts of different sizes, and coalesces nothing."""
    return not x.is_cuda and group is dist.group.WORLD


def gather(parts: list[torch.Tensor], x: torch.Tensor, group: Any, rank: int) -> None:
    """Parts of different sizes."""
    if not is_gloo(x, group):
        dist.all_gather(parts, x, group=group)
        return
    parts[rank].copy_(x)
    for peer, part in enumerate(parts):
        dist.broadcast(part, peer, group=group)


def run(drawn: Drawn, x: torch.Tensor, group: Any, rank: int, size: int) -> torch.Tensor:
    """The call, of memory of its own; what this rank has then."""
    op, split = drawn.op, drawn.split
    if op == "all_reduce":
        dist.all_reduce(x, drawn.reduce, group=group)
    elif op == "async":
        dist.all_reduce(x, drawn.reduce, group=group, async_op=True).wait()
    elif op == "coalesced":
        together = dist._coalescing_manager(group=group, device=x.device)
        with contextlib.nullcontext() if is_gloo(x, group) else together:
            for part in torch.split(x, max(1, drawn.count // 3)):
                dist.all_reduce(part, drawn.reduce, group=group)
    elif op == "broadcast":
        dist.broadcast(x, drawn.root, group=group)
    elif op == "reduce":
        dist.reduce(x, drawn.root, drawn.reduce, group=group)
        return x if rank == drawn.root else drawn.source
    elif op == "all_gather":
        out = x.new_empty(drawn.count * size)
        dist.all_gather_into_tensor(out, x, group=group)
        return out
    elif op == "all_gather_uneven":
        parts = [x.new_empty(split[peer][0] + 1) for peer in range(size)]
        gather(parts, x, group, rank)
        return torch.cat(parts)
    elif op == "reduce_scatter":
        out = x.new_empty(drawn.count)
        dist.reduce_scatter_tensor(out, x, drawn.reduce, group=group)
        return out
    elif op == "all_to_all":
        out = torch.empty_like(x)
        dist.all_to_all_single(out, x, group=group)
        return out
    elif op == "all_to_all_uneven":
        taken = [split[peer][rank] for peer in range(size)]
        out = x.new_empty(sum(taken))
        dist.all_to_all_single(out, x, taken, split[rank], group=group)
        return out
    return x


class Soak:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.rank, self.size = options, dist.get_rank(), dist.get_world_size()
        self.device, self.theirs = ("cpu", "gloo") if options.cpu else ("cuda", "nccl")
        self.numbers = random.Random(options.seed)
        self.own = random.Random(1000 * options.seed + self.rank + 1)
        self.groups = {self.theirs: dist.group.WORLD, "commsir": dist.new_group(backend="commsir")}
        self.numbers_of = Numbers(self.own, options.most, self.size, self.device)
        self.kinds = [draw_kind(self.numbers, self.size) for _ in range(options.kinds)]
        if not options.cpu:
            self.side, self.matrix = cuda.Stream(), torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
        self.seconds = {(name, late): 0.0 for name in self.groups for late in (False, True)}
        self.calls = {late: 0 for late in (False, True)}
        self.hosts = collections.defaultdict[tuple[str, str], float](float)
        self.timed: collections.Counter[str] = collections.Counter()
        self.counts: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.batches = 0

    def warm(self) -> float:
        """Calls each kind with a size of each class, by CommsIR alone; the seconds that took."""
        start = time.perf_counter()
        every = [Kind(op, dtype, reduce, root) for op in dict.fromkeys(OPERATIONS) for dtype in TYPES
                 for reduce in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN)
                 for root in range(self.size)]  # fmt: skip
        for kind in self.kinds or [kind for kind in every if counts_for(kind)]:
            largest = largest_of(kind, self.size, self.options.most)
            # Copies move words of one, two or four bytes. An odd number of them: kernels for it take every other.
            width = 4 if kind.op in REDUCES else kind.dtype.itemsize
            words = [low for low in (1, 2, 4) if low == 1 or low * width <= 4]
            for power, low in itertools.product(range(largest.bit_length()), words):
                one = make(kind, min(largest, (1 << power) | low), self.numbers, self.rank, self.size, self.numbers_of)
                run(one, one.source.clone(), self.groups["commsir"], self.rank, self.size)
        self.wait()
        return time.perf_counter() - start

    def batch(self) -> None:
        late = self.batches % LATE_BATCHES == LATE_BATCHES - 1
        drawn, taken = list[Drawn](), 0
        while len(drawn) < CALLS and taken < BATCH_BYTES:
            options = self.options
            one = draw(
                self.numbers, self.own, self.rank, self.size, options.most, late, self.kinds, numbers_of=self.numbers_of
            )
            # Not what this rank has of it: batches are alike on all ranks.
            taken += 4 * one.count * one.dtype.itemsize * self.size
            drawn.append(one)
        names = list(self.groups) if self.batches % 2 else list(self.groups)[::-1]
        made = {name: self.run_all(name, drawn, late) for name in names}
        self.compare(drawn, made)
        self.batches += 1
        self.calls[late] += len(drawn)
        self.counts.update(one.op for one in drawn)
        if not late:
            self.timed.update(one.op for one in drawn)

    def wait(self) -> None:
        if not self.options.cpu:
            cuda.synchronize()

    def come_late(self, cycles: int) -> None:
        if self.options.cpu:
            time.sleep(cycles / LATE / 100)
        else:
            cuda._sleep(cycles)

    def run_all(self, name: str, drawn: list[Drawn], late: bool) -> list[torch.Tensor]:
        inputs, made = [one.source.clone() for one in drawn], list[torch.Tensor]()
        dist.barrier()
        self.wait()
        start = time.perf_counter()
        for one, x in zip(drawn, inputs, strict=True):
            if one.late:
                self.come_late(one.late)
            if one.matmul and not self.options.cpu:
                self.side.wait_stream(cuda.current_stream())
                with cuda.stream(self.side):
                    self.matrix @ self.matrix
            begun = time.perf_counter()
            made.append(run(one, x, self.groups[name], self.rank, self.size))
            if not late:
                self.hosts[one.op, name] += time.perf_counter() - begun
        self.wait()
        self.seconds[name, late] += time.perf_counter() - start
        return made

    def compare(self, drawn: list[Drawn], made: dict[str, list[torch.Tensor]]) -> None:
        pairs = list(zip(drawn, made["commsir"], made[self.theirs], strict=True))
        together = collections.defaultdict[tuple[torch.dtype, float], list[Any]](list)
        flags = []
        for one, ours, theirs in pairs:
            if ours.numel() <= SMALL and ours.shape == theirs.shape:
                together[one.dtype, looseness(one)].append((ours, theirs))
            else:
                flags.append(alike(ours, theirs, looseness(one)))
        for (_, loose), several in together.items():
            flags.append(alike(torch.cat([one for one, _ in several]), torch.cat([one for _, one in several]), loose))
        if bool(torch.stack(flags).all()):
            return
        self.wrong += [str(one) for one, ours, theirs in pairs if not bool(alike(ours, theirs, looseness(one)))]

    def taken(self) -> int:
        """Bytes that the device has less of, or that this process has."""
        if self.options.cpu:
            with open("/proc/self/statm") as file:
                pages = file.read().split()
            # Not files: pages of libraries come as they are used.
            return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE")
        cuda.synchronize()
        cuda.empty_cache()
        free, total = cuda.mem_get_info()
        return int(total - free)

    def kernels(self) -> dict[str, int]:
        """Kernels of all groups so far, by where they came from."""
        groups: dict[str, Any] = dict(commsir.torch.stats(self.groups["commsir"])["groups"])
        found = [group for group in groups.values() if isinstance(group, dict)]
        return {name: sum(int(group.get(name, 0)) for group in found) for name in ("compiled", "from_cache")}

    def everyone(self, wish: bool) -> bool:
        """Whether all ranks do."""
        flag = torch.tensor([int(wish)], device=self.device)
        dist.all_reduce(flag, dist.ReduceOp.MIN)
        return bool(flag.item())

    def rates(self) -> dict[str, float]:
        return {name: self.calls[False] / max(self.seconds[name, False], 1e-9) for name in self.groups}

    def say(self, seconds: float) -> None:
        """To standard error, for what is stopped from without."""
        if self.rank == 0:
            rates = ", ".join(f"{name} {rate:.0f}" for name, rate in self.rates().items())
            done = f"{sum(self.calls.values())} calls, {rates} a second, {len(self.wrong)} wrong"
            print(f"soak: {seconds:.0f} s, {done}, {self.taken() / 2**20:.0f} MiB", file=sys.stderr, flush=True)

    def run(self) -> bool:
        warmed = self.warm() if self.options.warm else 0.0
        first = self.kernels()
        memory = [self.taken()]
        start, minutes = time.perf_counter(), 0
        limit = self.options.calls or math.inf

        def part() -> float:
            """Of the run."""
            passed = (time.perf_counter() - start) / self.options.seconds
            return float(max(passed, sum(self.calls.values()) / limit))

        while self.everyone(part() < 1 and not self.wrong):
            self.batch()
            if len(memory) == 1 and self.everyone(part() > 0.5):
                memory.append(self.taken())
            if (time.perf_counter() - start) // 60 > minutes:
                minutes += 1
                self.say(time.perf_counter() - start)
        memory.append(self.taken())
        grown, rates, last = memory[-1] - memory[-2], self.rates(), self.kernels()
        if self.rank == 0:
            print(f"soak: {sum(self.calls.values())} calls of each, seed {self.options.seed}: {dict(self.counts)}")
            print("calls a second:", ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))
            for op, count in self.timed.items():
                spent = ", ".join(f"{name} {self.hosts[op, name] / count * 1e6:.0f}" for name in self.groups)
                print(f"the caller's time, µs a call: {op}: {spent}")
            if not self.options.cpu:
                print(f"kernels: {first} in {warmed:.0f} s of warm-up, {last} at the end")
            print(f"memory: {', '.join(f'{one / 2**20:.0f}' for one in memory)} MiB at the start, "
                  f"after half, at the end; wrong: {len(self.wrong)}", flush=True)  # fmt: skip
            if self.options.json:
                with open(self.options.json, "w") as out:
                    found = {"calls": sum(self.calls.values()), "rates": rates, "memory": memory, "wrong": self.wrong}
                    json.dump(found | {"warm": first, "kernels": last, "warm seconds": warmed}, out, indent=1)
        for one in self.wrong[:5]:
            print(f"rank {self.rank}: wrong: {one}", flush=True)
        # On the CPU ranks that wait take each other's cores.
        slow = not self.options.cpu and rates["commsir"] * 2 < rates[self.theirs]
        return self.everyone(not self.wrong and not slow and grown <= GROWTH)


def counts_for(kind: Kind) -> bool:
    """Whether kernels depend on the kind's reduction and root."""
    reduction = kind.op in REDUCES or kind.reduce == dist.ReduceOp.SUM
    return reduction and (kind.op in ("broadcast", "reduce") or kind.root == 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--calls", type=int, default=0, help="end after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=64 << 20, help="bytes of the largest message")
    parser.add_argument("--kinds", type=int, default=0, help="kinds of calls that are drawn first; 0: all")
    parser.add_argument("--warm", action="store_true", help="compile before the clock starts")
    parser.add_argument("--cpu", action="store_true", help="CPU tensors, in parallel with Gloo")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    # A warm-up of all kinds compiles some hundred kernels.
    faulthandler.dump_traceback_later(options.seconds + (1800 if options.warm else 120), exit=True)
    if not options.cpu:
        cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("gloo" if options.cpu else "nccl")
    torch.manual_seed(options.seed + dist.get_rank())
    right = Soak(options).run()
    dist.destroy_process_group()
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
