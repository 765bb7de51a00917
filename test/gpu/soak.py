"""Random calls of the backend beside the same calls of NCCL: every result is compared, both are timed.

torchrun --nproc-per-node 4 test/gpu/soak.py [--seconds 120] [--seed 1] [--most 67108864] [--json FILE]

Calls are drawn in batches, alike on all ranks: operation, type, reduction, root, size from one element to `--most`
bytes, uneven parts, coalesced, asynchronous, a matmul in a side stream. In every other batch ranks also come late, by
up to 10 ms, each on its own; the others count for the rates. Both backends run a batch from the same inputs, in turns.

Prints the calls per second of both and the memory that the device has less of. Ends with status 1 if a result is
wrong, if CommsIR takes more than twice as long as NCCL, or if memory grows by more than 64 MiB after the first half.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import math
import os
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import commsir.torch  # noqa: F401  (registers the backend)
import torch
import torch.distributed

dist: Any = torch.distributed
cuda: Any = torch.cuda
CALLS, BATCH_BYTES, GROWTH = 200, 1 << 30, 64 << 20
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


@dataclass
class Drawn:
    """A call, alike on all ranks but for `late`."""

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


def draw(numbers: random.Random, own: random.Random, rank: int, size: int, most: int, late: bool) -> Drawn:
    op, dtype = numbers.choice(OPERATIONS), numbers.choice(TYPES)
    exact = not dtype.is_floating_point
    reduce = numbers.choice([dist.ReduceOp.SUM, dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN])
    several = op in ("all_gather", "reduce_scatter", "all_to_all")
    largest = max(1, most // dtype.itemsize // (size if several else 1))
    # Powers of two, and what lies between: as many small ones as large ones.
    count = min(largest, int(math.exp(numbers.uniform(0, math.log(largest + 1)))))
    split = [[numbers.randint(0, max(1, count // size)) for _ in range(size)] for _ in range(size)]
    elements = {
        "reduce_scatter": count * size,
        "all_to_all": count * size,
        "all_to_all_uneven": sum(split[rank]),
        "all_gather_uneven": split[rank][0] + 1,
    }.get(op, count)
    made = torch.randint(-8, 8, (elements,), device="cuda") if exact else torch.randn(elements, device="cuda")
    matmul, is_late = numbers.random() < 0.1, late and own.random() < 0.1
    return Drawn(
        op=op,
        dtype=dtype,
        reduce=reduce,
        root=numbers.randrange(size),
        count=count,
        split=split,
        matmul=matmul,
        late=own.randint(1, LATE) if is_late else 0,
        source=made.to(dtype),
    )


def run(drawn: Drawn, x: torch.Tensor, group: Any, rank: int, size: int) -> torch.Tensor:
    """The call, of memory of its own; what this rank has then."""
    op, split = drawn.op, drawn.split
    if op == "all_reduce":
        dist.all_reduce(x, drawn.reduce, group=group)
    elif op == "async":
        dist.all_reduce(x, drawn.reduce, group=group, async_op=True).wait()
    elif op == "coalesced":
        with dist._coalescing_manager(group=group, device=x.device):
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
        dist.all_gather(parts, x, group=group)
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
        self.numbers = random.Random(options.seed)
        self.own = random.Random(1000 * options.seed + self.rank + 1)
        self.groups = {"nccl": dist.group.WORLD, "commsir": dist.new_group(backend="commsir")}
        self.side, self.matrix = cuda.Stream(), torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
        self.seconds = {(name, late): 0.0 for name in self.groups for late in (False, True)}
        self.calls = {late: 0 for late in (False, True)}
        self.counts: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.batches = 0

    def batch(self) -> None:
        late = self.batches % 2 == 1
        drawn, taken = list[Drawn](), 0
        while len(drawn) < CALLS and taken < BATCH_BYTES:
            one = draw(self.numbers, self.own, self.rank, self.size, self.options.most, late)
            # Not what this rank has of it: batches are alike on all ranks.
            taken += 4 * one.count * one.dtype.itemsize * self.size
            drawn.append(one)
        names = list(self.groups) if self.batches % 4 < 2 else list(self.groups)[::-1]
        made = {name: self.run_all(name, drawn, late) for name in names}
        self.compare(drawn, made)
        self.batches += 1
        self.calls[late] += len(drawn)
        self.counts.update(one.op for one in drawn)

    def run_all(self, name: str, drawn: list[Drawn], late: bool) -> list[torch.Tensor]:
        inputs, made = [one.source.clone() for one in drawn], list[torch.Tensor]()
        dist.barrier()
        cuda.synchronize()
        start = time.perf_counter()
        for one, x in zip(drawn, inputs, strict=True):
            if one.late:
                cuda._sleep(one.late)
            if one.matmul:
                self.side.wait_stream(cuda.current_stream())
                with cuda.stream(self.side):
                    self.matrix @ self.matrix
            made.append(run(one, x, self.groups[name], self.rank, self.size))
        cuda.synchronize()
        self.seconds[name, late] += time.perf_counter() - start
        return made

    def compare(self, drawn: list[Drawn], made: dict[str, list[torch.Tensor]]) -> None:
        flags = []
        for one, ours, theirs in zip(drawn, made["commsir"], made["nccl"], strict=True):
            loose = FLOATS.get(one.dtype, 0.0) if one.op in REDUCES and one.reduce == dist.ReduceOp.SUM else 0.0
            a, b = ours.double(), theirs.double()
            # Not-a-number is not below any bound.
            flags.append(((a - b).abs() <= loose * (4 + b.abs())).all())
        if bool(torch.stack(flags).all()):
            return
        self.wrong += [str(one) for one, flag in zip(drawn, flags, strict=True) if not bool(flag)]

    def free(self) -> int:
        cuda.synchronize()
        cuda.empty_cache()
        return int(cuda.mem_get_info()[0])

    def everyone(self, wish: bool) -> bool:
        """Whether all ranks do."""
        flag = torch.tensor([int(wish)], device="cuda")
        dist.all_reduce(flag, dist.ReduceOp.MIN)
        return bool(flag.item())

    def run(self) -> bool:
        start, half = time.perf_counter(), 0
        while self.everyone(time.perf_counter() - start < self.options.seconds and not self.wrong):
            self.batch()
            if not half and self.everyone(time.perf_counter() - start > self.options.seconds / 2):
                half = self.free()
        grown = half - self.free() if half else 0
        rates = {name: self.calls[False] / max(self.seconds[name, False], 1e-9) for name in self.groups}
        if self.rank == 0:
            print(f"soak: {sum(self.calls.values())} calls of each, seed {self.options.seed}: {dict(self.counts)}")
            print("calls a second:", ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))
            print(f"memory: {grown / 2**20:.0f} MiB more in the second half; wrong: {len(self.wrong)}", flush=True)
            if self.options.json:
                with open(self.options.json, "w") as out:
                    found = {"calls": sum(self.calls.values()), "rates": rates, "grown": grown, "wrong": self.wrong}
                    json.dump(found, out, indent=1)
        for one in self.wrong[:5]:
            print(f"rank {self.rank}: wrong: {one}", flush=True)
        slow = rates["commsir"] * 2 < rates["nccl"]
        return self.everyone(not self.wrong and not slow and grown <= GROWTH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=64 << 20, help="bytes of the largest message")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds + 120, exit=True)
    cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl")
    torch.manual_seed(options.seed + dist.get_rank())
    right = Soak(options).run()
    dist.destroy_process_group()
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
