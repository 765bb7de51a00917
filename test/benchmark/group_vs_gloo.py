#!/usr/bin/env python3
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures collectives of a CPU group against torch's Gloo.

Each rank is a process. The two take turns, so that a busy machine slows both down. The figure of a call is the slowest
rank's mean over a run of calls; the table shows the median over the runs.

    group_vs_gloo.py --ranks 4
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import torch
import torch.distributed as dist
from commsir.torch import capi
from torch.multiprocessing.spawn import start_processes

OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")


def ours(group: capi.Group, op: str, source: torch.Tensor, target: torch.Tensor, algorithm: str) -> Callable[[], None]:
    """The call alone: what it is made of is made before."""
    reduces = op in ("all_reduce", "reduce_scatter")
    arrays = (source.data_ptr(), source.numel()), (target.data_ptr(), target.numel())
    call = capi.Collective(op, "sum" if reduces else "", "f32", *arrays, algorithm=algorithm)
    return partial(group.collective, call)


def gloo(op: str, source: torch.Tensor, target: torch.Tensor) -> Callable[[], None]:
    ranks = dist.get_world_size()
    if op == "all_reduce":
        return lambda: dist.all_reduce(target)
    if op == "broadcast":
        return lambda: dist.broadcast(target, 0)
    if op == "all_gather":
        parts = list(target.chunk(ranks))
        return lambda: dist.all_gather(parts, source)
    return lambda: dist.reduce_scatter_tensor(target, source)


def measure(call: Callable[[], None], calls: int) -> float:
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    taken = torch.tensor([(time.perf_counter() - begun) / calls * 1e6])
    dist.all_reduce(taken, op=dist.ReduceOp.MAX)
    return float(taken)


def work(rank: int, arguments: argparse.Namespace, folder: str) -> None:
    torch.set_num_threads(1)
    ranks = arguments.ranks
    dist.init_process_group("gloo", init_method=f"file://{folder}/gloo", rank=rank, world_size=ranks)
    store = torch._C._distributed_c10d.FileStore(f"{folder}/commsir", ranks)
    group = capi.Group(store, rank, ranks, name="benchmark", timeout=timedelta(minutes=1))
    rows = []
    for op in arguments.ops:
        for size in arguments.sizes:
            count = size // 4
            inputs = count * (1 if op != "reduce_scatter" else ranks)
            outputs = count * (ranks if op == "all_gather" else 1)
            source = torch.rand(inputs)
            target = torch.rand(outputs)
            own_call = ours(group, op, source, target, arguments.algorithm)
            theirs = gloo(op, source, target)
            calls = max(2, min(200, int(arguments.budget / max(measure(theirs, 2), measure(own_call, 6)) * 1e6)))
            calls = int(broadcast(calls))
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(arguments.runs):
                times[0].append(measure(own_call, calls))
                times[1].append(measure(theirs, calls))
            own, other = (statistics.median(run) for run in times)
            row = {"op": op, "bytes": size, "commsir": own, "gloo": other}
            rows.append(row)
            if rank == 0 and not arguments.json:
                times_text = f"commsir {own:10.1f} µs  gloo {other:10.1f} µs"
                print(f"{op:15} {size:9} B  {times_text}  {other / own:6.2f} ×", flush=True)
    if rank == 0 and arguments.json:
        print(json.dumps(rows))
    dist.barrier()
    group.destroy()
    dist.destroy_process_group()


def broadcast(value: int) -> int:
    tensor = torch.tensor([value])
    dist.broadcast(tensor, 0)
    return int(tensor)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5, help="runs of calls of each, in turns")
    parser.add_argument("--budget", type=float, default=0.15, help="seconds of one run")
    parser.add_argument("--ops", nargs="+", default=list(OPS), choices=OPS)
    parser.add_argument("--algorithm", default="", help="of ours; default: chosen")
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[1 << bits for bits in range(10, 27, 2)], help="bytes of one part"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start_processes(  # type: ignore[no-untyped-call]
            work, (arguments, folder), nprocs=arguments.ranks, start_method="fork"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
