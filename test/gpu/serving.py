"""The life of a serving engine on the GPUs of this machine, against NCCL: captures of many sizes, changing row counts.

torchrun --nproc-per-node 4 test/gpu/serving.py [--parts captures,rows,eager,sizes,streams,limits] [--json FILE]
                                                [--captures 67] [--calls 160] [--rows 200] [--seed 1]

captures  One group captures a graph for each batch size, of `--calls` fused calls (all-reduce, residual, RMSNorm) on
          rows of 8192 bf16; NCCL does the same with torch's own norm. The graphs are replayed in a random order,
          between eager calls of other sizes. Every result is compared with NCCL's and with float64.
rows      Eager calls with row counts that are new to the process: the time of the first call of each, and of later
          calls.
eager     The caller's time per call: CommsIR, NCCL, and an op of torch that launches one kernel.
sizes     all_reduce in graphs, 1 KiB to 1 GiB, all captured in one process: CommsIR and NCCL.
streams   Two graphs of one group are replayed at once in two streams, with eager calls in a third.
limits    Mistakes of engines: an abandoned capture, a new row count in a capture, a call without rows.

Prints a table; memory is the decrease of the device's free memory. Ends with status 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import commsir
import commsir.torch
import torch
import torch.distributed
from commsir.torch import ops

dist: Any = torch.distributed
cuda: Any = torch.cuda
HIDDEN, TYPE = 8192, torch.bfloat16
EPSILON = 1e-5
CONSUME = f"""(%sum: tensor<{HIDDEN}xf32>, %res: tensor<{HIDDEN}xbf16>, %w: tensor<{HIDDEN}xbf16>) {{
  %r = arith.extf %res : tensor<{HIDDEN}xbf16> to tensor<{HIDDEN}xf32>
  %v0 = arith.addf %sum, %r : tensor<{HIDDEN}xf32>
  %v1 = arith.mulf %v0, %v0 : tensor<{HIDDEN}xf32>
  %v2 = comms.row_reduce sum %v1 : tensor<{HIDDEN}xf32> -> tensor<1xf32>
  %c = arith.constant dense<{HIDDEN}.0> : tensor<1xf32>
  %v4 = arith.divf %v2, %c : tensor<1xf32>
  %e = arith.constant dense<1.0e-5> : tensor<1xf32>
  %v6 = arith.addf %v4, %e : tensor<1xf32>
  %v7 = math.rsqrt %v6 : tensor<1xf32>
  %v8 = comms.broadcast_row %v7 : tensor<1xf32> -> tensor<{HIDDEN}xf32>
  %v9 = arith.mulf %v0, %v8 : tensor<{HIDDEN}xf32>
  %g = arith.extf %w : tensor<{HIDDEN}xbf16> to tensor<{HIDDEN}xf32>
  %v10 = arith.mulf %v9, %g : tensor<{HIDDEN}xf32>
  %y = arith.truncf %v10 : tensor<{HIDDEN}xf32> to tensor<{HIDDEN}xbf16>
  %k = arith.truncf %v0 : tensor<{HIDDEN}xf32> to tensor<{HIDDEN}xbf16>
  comms.yield %y, %k : tensor<{HIDDEN}xbf16>, tensor<{HIDDEN}xbf16>
}}"""

failures: list[str] = []
results: dict[str, Any] = {}


def say(*text: object) -> None:
    if dist.get_rank() == 0:
        print(*text, flush=True)


def free() -> int:
    """Bytes that the device has left, caches of torch emptied."""
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    return int(cuda.mem_get_info()[0])


def meet() -> None:
    cuda.synchronize()
    dist.barrier()
    cuda.synchronize()


def fail(text: str) -> None:
    failures.append(text)
    print(f"FAILED on rank {dist.get_rank()}: {text}", flush=True)


class Batch:
    """Inputs of a fused call, what it gives, and what it should."""

    def __init__(self, rows: int, weight: torch.Tensor, seed: int) -> None:
        numbers = torch.Generator("cuda").manual_seed(seed * 64 + dist.get_rank())
        self.rows, self.weight = rows, weight
        self.x = torch.randn(rows, HIDDEN, device="cuda", generator=numbers).to(TYPE)
        same = torch.Generator("cuda").manual_seed(seed)
        self.residual = torch.randn(rows, HIDDEN, device="cuda", generator=same).to(TYPE)

    def ours(self) -> tuple[torch.Tensor, ...]:
        outputs = [(TYPE, HIDDEN), (TYPE, HIDDEN)]
        return tuple(
            ops.fused_collective(
                "all_reduce",
                self.x,
                [self.residual, self.weight],
                CONSUME,
                outputs,
                reduce_op="sum",
                group=dist.group.WORLD,
            )
        )

    def theirs(self) -> tuple[torch.Tensor, ...]:
        total = self.x.clone()
        dist.all_reduce(total)
        h = total + self.residual
        return torch.nn.functional.rms_norm(h, (HIDDEN,), self.weight, EPSILON), h

    def wanted(self) -> tuple[torch.Tensor, torch.Tensor]:
        total = self.x.double()
        dist.all_reduce(total)
        h = total + self.residual.double()
        y = h * torch.rsqrt((h * h).mean(1, keepdim=True) + EPSILON) * self.weight.double()
        return y, h

    def check(self, got: tuple[torch.Tensor, ...], what: str) -> None:
        for name, have, want in zip(("norm", "sum"), got, self.wanted(), strict=True):
            apart = float((have.double() - want).norm() / want.norm())
            if not apart < 1e-2:
                fail(f"{what}: {name} of {self.rows} rows is {apart:.2g} apart")


def capture(body: Callable[[], Any], pool: Any) -> tuple[Any, Any]:
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, pool=pool):
        made = body()
    return graph, made


def repeat(body: Callable[[], Any], times: int) -> Any:
    """What the last of `times` calls gives."""
    for _ in range(times):
        made = body()
    return made


def timed(body: Callable[[], Any], times: int = 5, inner: int = 1) -> float:
    """Microseconds of the stream for one of `inner` calls, the slowest rank, the median of some."""
    found = []
    for _ in range(times):
        begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
        meet()
        body()
        begin.record()
        for _ in range(inner):
            body()
        end.record()
        cuda.synchronize()
        slowest = torch.tensor([begin.elapsed_time(end) * 1e3 / inner], device="cuda")
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        found.append(float(slowest))
    return statistics.median(found)


def capture_all(options: argparse.Namespace, weight: torch.Tensor, ours: bool) -> dict[str, Any]:
    sizes = ([1, 2, 4] + list(range(8, 513, 8)))[: options.captures]
    batches = [Batch(rows, weight, rows) for rows in reversed(sizes)]
    if not ours:
        batches[0].theirs()
    before, start = free(), time.perf_counter()
    pool, graphs = cuda.graph_pool_handle(), []
    for batch in batches:
        call = batch.ours if ours else batch.theirs
        call()  # As engines do, to warm up.
        cuda.synchronize()
        graphs.append((batch, *capture(partial(repeat, call, options.calls), pool)))
    cuda.synchronize()
    seconds, taken = time.perf_counter() - start, before - free()
    name = "commsir" if ours else "nccl"
    by_rows = {batch.rows: timed(graph.replay, 3) / options.calls for batch, graph, _ in graphs[:: len(graphs) // 8]}
    order = random.Random(options.seed)
    for turn in range(len(graphs)):
        batch, graph, made = order.choice(graphs)
        for tensor in made:
            tensor.fill_(float("nan"))
        graph.replay()
        batch.check(made, f"{name}, replay {turn}")
        if ours and turn % 3 == 0:
            other = Batch(order.choice([3, 7, 65, 300]), weight, 1000 + turn)
            other.check(other.ours(), f"eager call behind replay {turn}")
    found = {"graphs": len(graphs), "seconds": seconds, "MiB": taken / 2**20, "us a call": by_rows}
    say(f"captures, {name}: {len(graphs)} graphs of {options.calls} calls in {seconds:.1f} s, {taken / 2**20:.0f} MiB")
    if name == "commsir":
        found["channels MiB"] = ops.counts_of(dist.group.WORLD)["cuda.ops"]["channel_bytes"] / 2**20
        say(f"captures, {name}: {found['channels MiB']:.0f} MiB of that are channels")
    say("   µs a call in a graph:", ", ".join(f"{rows} rows {us:.2f}" for rows, us in sorted(by_rows.items())))
    return found


def captures(options: argparse.Namespace) -> None:
    weight = torch.randn(HIDDEN, device="cuda", generator=torch.Generator("cuda").manual_seed(0)).to(TYPE)
    theirs = capture_all(options, weight, ours=False)
    gc.collect()
    ours = capture_all(options, weight, ours=True)
    say("   ", str(commsir.stats()["groups"])[:400])
    results["captures"] = {"nccl": theirs, "commsir": ours}


def rows(options: argparse.Namespace) -> None:
    weight = torch.ones(HIDDEN, device="cuda", dtype=TYPE)
    numbers = random.Random(options.seed)
    counts = sorted(numbers.sample(range(1, 8193), options.rows), key=lambda _: numbers.random())
    kinds: dict[str, Callable[[Batch], Any]] = {
        "all_reduce": lambda batch: ops.all_reduce(batch.x, "sum", dist.group.WORLD),
        "fused": lambda batch: batch.ours(),
    }

    def warm(count: int) -> None:
        batch = Batch(count, weight, 1)
        for kind in kinds.values():
            kind(batch)

    say(f"rows: warm_up took {commsir.torch.warm_up(warm, rows=8192):.1f} s")
    for name, call in kinds.items():
        over, steady = [], []
        for count in counts:
            batch = Batch(count, weight, count)
            meet()
            start = time.perf_counter()
            call(batch)
            cuda.synchronize()
            first = time.perf_counter() - start
            later = []
            for _ in range(3):
                start = time.perf_counter()
                made = call(batch)
                cuda.synchronize()
                later.append(time.perf_counter() - start)
            over.append((first - min(later)) * 1e3)
            steady.append(min(later) * 1e6)
            if name == "fused":
                batch.check(made, "rows")
            else:
                want = batch.x.double()
                dist.all_reduce(want)
                if not torch.allclose(made.double(), want, rtol=2e-2, atol=5e-2):
                    fail(f"all_reduce of {count} rows")
        slow = sum(ms > 2 for ms in over)
        results[f"rows {name}"] = {"median over ms": statistics.median(over), "most ms": max(over), "over 2 ms": slow}
        say(
            f"rows, {name}: the first call of {len(counts)} counts takes {statistics.median(over):.2f} ms more"
            f" (median), {max(over):.1f} at the most, {slow} over 2 ms;"
            f" steady {statistics.median(steady):.0f} µs (median)"
        )


def eager(options: argparse.Namespace) -> None:
    weight = torch.ones(HIDDEN, device="cuda", dtype=TYPE)
    small, out = torch.ones(512, device="cuda", dtype=TYPE), torch.empty(512, device="cuda", dtype=TYPE)
    batch = Batch(1, weight, 1)
    contenders: dict[str, Callable[[], Any]] = {
        "relu (out)": lambda: torch.clamp(small, min=0, out=out),
        "commsir all_reduce.out": lambda: torch.ops.commsir.all_reduce.out(
            small, "sum", dist.group.WORLD.group_name, out=out
        ),
        "commsir all_reduce": lambda: ops.all_reduce(small, "sum", dist.group.WORLD),
        "commsir fused": batch.ours,
        "nccl all_reduce": lambda: dist.all_reduce(small),
    }
    found = {}
    for name, call in contenders.items():
        try:
            call()
        except Exception as error:
            say(f"eager, {name}: {error!r}"[:200])
            continue
        host, stream = [], []
        for _ in range(9):
            meet()
            start = time.perf_counter()
            for _ in range(100):
                call()
            host.append((time.perf_counter() - start) * 1e4)
            stream.append(timed(partial(repeat, call, 100), 1) / 100)
        found[name] = [statistics.median(host), statistics.median(stream)]
        say(f"eager, {name}: {found[name][0]:.2f} µs of the caller, {found[name][1]:.2f} µs of the stream")
    results["eager"] = found


def sizes(options: argparse.Namespace) -> None:
    found, kept = {}, []
    before = free()
    for power in (10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30):
        count = (1 << power) // 2
        x = torch.randint(-4, 5, (count,), device="cuda").to(TYPE)
        want = x.float() if power < 29 else None
        if want is not None:
            dist.all_reduce(want)
        calls = 20 if power < 24 else 3
        line = {}
        contenders: dict[str, Callable[[], Any]] = {
            "commsir": partial(ops.all_reduce, x, "sum", dist.group.WORLD),
            "nccl": partial(dist.all_reduce, x),
        }
        for name, call in contenders.items():
            try:
                first = call()
                if name == "commsir" and want is not None and not torch.equal(first.float(), want.to(TYPE).float()):
                    fail(f"all_reduce of {1 << power} bytes")
                del first
                graph, _ = capture(partial(repeat, call, calls), None)
                line[name] = timed(graph.replay, 5, inner=5) / calls
                if name == "commsir" and power < 26:
                    kept.append(graph)
            except Exception as error:
                fail(f"sizes: {name}, {1 << power} bytes: {str(error)[:300]}")
        found[1 << power] = line
        say(f"sizes, {1 << power} bytes: " + ", ".join(f"{name} {us:.2f} µs" for name, us in line.items()))
        del x
    say(f"sizes: {(before - free()) / 2**20:.0f} MiB are taken")
    results["sizes"] = found


def streams(options: argparse.Namespace) -> None:
    weight = torch.ones(HIDDEN, device="cuda", dtype=TYPE)
    batches = [Batch(rows, weight, rows) for rows in (16, 5)]
    graphs = []
    for batch in batches:
        batch.ours()
        cuda.synchronize()
        graphs.append(capture(partial(repeat, batch.ours, 30), None))
    sides = [cuda.Stream(), cuda.Stream()]
    numbers = random.Random(dist.get_rank())
    for turn in range(60):
        for tensor in graphs[0][1] + graphs[1][1]:
            tensor.fill_(float("nan"))
        cuda.synchronize()
        if numbers.random() < 0.3:  # A straggler.
            cuda._sleep(numbers.randint(1, 3_000_000))
        for side, (graph, _) in zip(sides, graphs, strict=True):
            if numbers.random() < 0.3:
                with cuda.stream(side):
                    cuda._sleep(numbers.randint(1, 1_000_000))
            with cuda.stream(side):
                graph.replay()
        other = Batch(9, weight, 2000 + turn)
        made = other.ours()
        cuda.synchronize()
        other.check(made, f"streams, turn {turn}, eager")
        for batch, (_, outputs) in zip(batches, graphs, strict=True):
            batch.check(outputs, f"streams, turn {turn}, graph")
    say("streams: 60 turns of two graphs at once and an eager call")


def limits(options: argparse.Namespace) -> None:
    weight = torch.ones(HIDDEN, device="cuda", dtype=TYPE)
    batch = Batch(6, weight, 6)
    batch.ours()
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    try:
        with cuda.graph(graph):
            batch.ours()
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    cuda.synchronize()
    batch.check(batch.ours(), "behind a capture that was abandoned")
    del graph
    unseen = Batch(11, weight, 11)
    graph = cuda.CUDAGraph()
    said = "captured"
    try:
        with cuda.graph(graph):
            made = unseen.ours()
    except Exception as error:
        said = str(error)[:200]
    cuda.synchronize()
    if said == "captured":
        graph.replay()
        unseen.check(made, "an unseen row count in a capture")
    say("limits: an unseen row count in a capture:", said)
    batch.check(batch.ours(), "behind it")
    empty = ops.all_reduce(torch.empty(0, HIDDEN, device="cuda", dtype=TYPE), "sum", dist.group.WORLD)
    if empty.shape != (0, HIDDEN):
        fail("no rows")
    say("limits: done")


PARTS = {part.__name__: part for part in (captures, rows, eager, sizes, streams, limits)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), metavar="LIST")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--captures", type=int, default=67)
    parser.add_argument("--calls", type=int, default=160)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    cuda.set_device(local)
    dist.init_process_group("nccl")
    say(f"{dist.get_world_size()} x {cuda.get_device_name()}, torch {torch.__version__}, {time.strftime('%F')}")
    x = torch.ones(8, HIDDEN, device="cuda", dtype=TYPE)
    before, start = free(), time.perf_counter()
    dist.all_reduce(x)
    cuda.synchronize()
    say(f"NCCL's first call: {time.perf_counter() - start:.2f} s, {(before - free()) / 2**20:.0f} MiB")
    before, start = free(), time.perf_counter()
    ops.all_reduce(x, "sum", dist.group.WORLD)
    cuda.synchronize()
    say(f"commsir's first call: {time.perf_counter() - start:.2f} s, {(before - free()) / 2**20:.0f} MiB")
    for name in options.parts.split(","):
        start = time.perf_counter()
        try:
            PARTS[name](options)
        except Exception as error:
            fail(f"{name}: {type(error).__name__}: {str(error)[:1500]}")
        say(f"-- {name}: {time.perf_counter() - start:.0f} s")
    count = torch.tensor([len(failures)], device="cuda")
    dist.all_reduce(count)
    say(f"serving: {'all results are right' if not int(count) else f'{int(count)} failures'}")
    if options.json and dist.get_rank() == 0:
        with open(options.json, "w") as out:
            json.dump(results, out, indent=1)
    os._exit(1 if int(count) else 0) if failures else dist.destroy_process_group()
    sys.exit(1 if int(count) else 0)


if __name__ == "__main__":
    main()
