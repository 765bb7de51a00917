"""Matmuls overlapped with collectives on the GPUs of this machine, compared with NCCL and torch's own fused operations.

torchrun --nproc-per-node 4 test/gpu/matmul.py [--parts checks,compiled,speed,model] [--json FILE] [--rounds 9]
                                                  [--rows 1024,8192] [--only overlapped]

checks    The ops, overlapped in every number of blocks, against float64.
compiled  A tensor-parallel feed-forward layer by torch.compile, overlapped after all ranks agreed, in a graph.
speed     bf16, [rows, 8192] and 8192 columns over all ranks, in CUDA graphs: the matmul alone; with its collective by
          NCCL, by CommsIR, and by torch's fused operations (enable_symm_mem_for_group); and CommsIR's fused ops.
          Every result is first checked. Times: the slowest rank, the median of rounds in which contenders take turns.
          --rows lists the row counts, --only the first letters of the contenders' names.
model     The model's predictions for the same calls, for every number of blocks, next to the measured times.

With COMMSIR_SHARE_GPU=1 the checks may run with more ranks than GPUs. Ends with status 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
os.environ["CHECK_DEVICE"] = "cuda"

import commsir.torch
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from commsir.torch.matmul import model, overlapped
from commsir.torch.matmul.factor import Factor
from switches import SHARES

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "python" / "torch" / part) for part in ("ops", "c10d")]

dist: Any = torch.distributed
cuda: Any = torch.cuda
WIDTH = 8192
CALLS = 10

failures: list[str] = []
results: dict[str, Any] = {}


def say(*text: object) -> None:
    if dist.get_rank() == 0:
        print(*text, flush=True)


def attempt(name: str, check: Callable[[], Any]) -> None:
    """Runs a check on all ranks; all learn whether it held on every one."""
    wrong = 0
    try:
        check()
    except Exception:
        wrong = 1
        print(f"FAILED {name} on rank {dist.get_rank()}\n{traceback.format_exc()}", flush=True)
    cuda.synchronize()
    count = torch.tensor([wrong])
    dist.all_reduce(count)
    if int(count):
        failures.append(name)
    say(f"{'failed' if int(count) else 'ok':6} {name}")


def name() -> str:
    return str(dist.group.WORLD.group_name)


def space(size: int) -> overlapped.Workspace:
    made = overlapped.workspace(name(), torch.device("cuda", cuda.current_device()))
    assert made is not None and made.reserve(size)
    return made


# ---------------------------------------------------------------------------------------------------------------------
# Calls
# ---------------------------------------------------------------------------------------------------------------------


def gather_matmul(shard: Any, weight: Any) -> Any:
    ranks = dist.get_world_size()
    return overlapped.all_gather_matmul(space(ranks * shard.nbytes), shard, [Factor(weight)], None)[0]


def matmul_reduce(op: str, blocks: int, a: Any, b: Any) -> Any:
    way = overlapped.matmul_reduce_scatter if op == "reduce_scatter" else overlapped.matmul_all_reduce
    return way(space(2 * a.shape[0] * b.shape[1] * a.element_size()), a, Factor(b), blocks)


def collective(op: str, x: Any, ours: bool) -> Any:
    ranks = dist.get_world_size()
    if ours:
        calls = torch.ops.commsir
        return calls.all_gather(x, name()) if op == "all_gather" else getattr(calls, op)(x, "sum", name())
    functional = torch.ops._c10d_functional
    if op == "all_gather":
        return functional.wait_tensor(functional.all_gather_into_tensor(x, ranks, name()))
    if op == "reduce_scatter":
        return functional.wait_tensor(functional.reduce_scatter_tensor(x, "sum", ranks, name()))
    return functional.wait_tensor(functional.all_reduce(x, "sum", name()))


def made(*shape: int, seed: int, dtype: torch.dtype = torch.bfloat16) -> Any:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, dtype=dtype, device="cuda", generator=generator)


def exact(op: str, a: Any, b: Any) -> Any:
    """In float64 where it is small, else in float32."""
    wide = torch.float64 if a.numel() * b.shape[1] < 1 << 32 else torch.float32
    ranks = dist.get_world_size()
    if op == "all_gather":
        return collective(op, a, ours=False).to(wide) @ b.to(wide)
    total = a.to(wide) @ b.to(wide)
    dist.all_reduce(total)
    return total if op == "all_reduce" else total.chunk(ranks)[dist.get_rank()]


def check(op: str, got: Any, want: Any) -> None:
    """Each rank rounds its part, and those who add up round again."""
    eps = torch.finfo(got.dtype).eps
    worst = float((got.to(want.dtype) - want).abs().max())
    bound = 2 * eps * dist.get_world_size() * float(want.abs().max())
    assert got.shape == want.shape and worst <= bound, f"{op}: {worst} off, {bound} allowed"


# ---------------------------------------------------------------------------------------------------------------------
# Checks
# ---------------------------------------------------------------------------------------------------------------------


def one_shape(dtype: torch.dtype, rows: int, n: int, k: int) -> None:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shard, weight = made(rows, k, seed=rank, dtype=dtype), made(n, k, seed=50, dtype=dtype).t()
    for _ in range(3):
        check("all_gather", gather_matmul(shard, weight), exact("all_gather", shard, weight))
        shard = shard + 1
    a, b = made(ranks * rows, k, seed=100 + rank, dtype=dtype), made(k, n, seed=200 + rank, dtype=dtype)
    for op in ("reduce_scatter", "all_reduce"):
        want = exact(op, a, b)
        for blocks in (1, 2, 4, 8):
            if rows % blocks:
                continue
            for _ in range(2):
                got = matmul_reduce(op, blocks, a, b)
                check(f"{op} in {blocks} blocks", got, want)
            if op == "all_reduce":
                first = got.clone()
                dist.broadcast(first, 0)
                assert torch.equal(first, got), "ranks have other bits"


def quantized(x: Any, rows: int) -> tuple[Any, Any, Any]:
    """A matrix in fp8, its scales for every `rows` x 128 elements, and what they stand for in float32."""
    parts = x.float().view(x.shape[0] // rows, rows, -1, 128)
    scale = parts.abs().amax((1, 3)) / 448
    narrow = (parts / scale[:, None, :, None]).to(torch.float8_e4m3fn)
    return narrow.view(x.shape), scale, (narrow.float() * scale[:, None, :, None]).view(x.shape)


def in_blocks(rows: int, n: int, k: int) -> None:
    """fp8 with scales of 1 x 128 for rows and 128 x 128 for the weight."""
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def factor(scale: Any, weight: Any, of_weight: Any) -> Factor:
        return Factor(weight.t(), row_scale=scale, scale=of_weight.t(), dtype=torch.bfloat16)

    shard, scale, wide = quantized(made(rows, k, seed=rank), 1)
    weight, of_weight, wide_weight = quantized(made(n, k, seed=50), 128)
    whole = factor(collective("all_gather", scale, ours=False), weight, of_weight)
    got = overlapped.all_gather_matmul(space(ranks * shard.nbytes), shard, [whole], None)[0]
    check("all_gather of fp8", got, exact("all_gather", wide, wide_weight.t()))
    a, scale, wide = quantized(made(ranks * rows, k, seed=100 + rank), 1)
    weight, of_weight, wide_weight = quantized(made(n, k, seed=200 + rank), 128)
    for op in ("reduce_scatter", "all_reduce"):
        way = overlapped.matmul_reduce_scatter if op == "reduce_scatter" else overlapped.matmul_all_reduce
        got = way(space(4 * a.shape[0] * n), a, factor(scale, weight, of_weight), 2)
        check(f"{op} of fp8", got, exact(op, wide, wide_weight.t()))


def by_the_ops(failed: list[str] | None = None) -> None:
    import matmul_checks

    rank, size = dist.get_rank(), dist.get_world_size()
    matmul_checks.mistakes(rank, size)
    for shape in ((8 * size, 64), (2 * size, 3, 128)):
        matmul_checks.products(rank, size, torch.bfloat16, shape, 64)


def checks() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        for rows, n, k in ((4, 8, 16), (64, 256, 128), (100, 520, 72), (512, 1024, 2048)):
            attempt(f"{dtype} {rows} rows a rank, {n} x {k}", partial(one_shape, dtype, rows, n, k))
    for rows, n, k in ((64, 256, 512), (512, 1024, 2048)):
        attempt(f"fp8 in blocks, {rows} rows a rank, {n} x {k}", partial(in_blocks, rows, n, k))
    attempt("the ops, small", by_the_ops)


# ---------------------------------------------------------------------------------------------------------------------
# Compiled
# ---------------------------------------------------------------------------------------------------------------------


def layer(x: Any, up: Any, down: Any) -> Any:
    """A feed-forward layer, sequence parallel."""
    h = torch.relu(funcol.all_gather_tensor(x, 0, dist.group.WORLD) @ up)
    return funcol.reduce_scatter_tensor(h @ down, "sum", 0, dist.group.WORLD) + x


def compiled_layer(rows: int) -> None:
    from commsir.torch import compile as fusing

    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = made(rows, WIDTH, seed=rank)
    up, down = made(WIDTH, WIDTH // ranks, seed=10 + rank) * 0.02, made(WIDTH // ranks, WIDTH, seed=20 + rank) * 0.02
    torch._dynamo.reset()
    torch._inductor.config.force_disable_caches = True
    fusing.clear_fusions()
    run = torch.compile(layer, options=commsir.torch.compile_options())
    want = layer(x, up, down).float()
    for _ in range(4):
        got = run(x, up, down).float()
        assert float((got - want).abs().max()) <= 0.03 * float(want.abs().max())
    said = fusing.fusions()
    assert [one.fused for one in said] == [("aten.mm",), ("aten.mm",)], [str(one) for one in said]
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = run(x, up, down)
    for turn in range(20):
        x.copy_(made(rows, WIDTH, seed=1000 * turn + rank))
        graph.replay()
        want = layer(x, up, down).float()
        assert float((out.float() - want).abs().max()) <= 0.03 * float(want.abs().max()), turn
    times = timed({"eager": partial(layer, x, up, down), "compiled": partial(run, x, up, down)}, 5)
    results["layer"] = times
    say(f"       a layer of {rows} rows a rank: {times['compiled']:.1f} us, with NCCL {times['eager']:.1f} us")


def compiled() -> None:
    attempt("a compiled layer", partial(compiled_layer, 4096 // dist.get_world_size() * 2))


# ---------------------------------------------------------------------------------------------------------------------
# Speed
# ---------------------------------------------------------------------------------------------------------------------


def captured(call: Callable[[], Any]) -> Callable[[], Any]:
    """`CALLS` calls in a graph; called one by one where they cannot be captured."""
    for _ in range(3):
        call()
    cuda.synchronize()
    dist.barrier()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        for _ in range(CALLS):
            call()
    return graph.replay  # type: ignore[no-any-return]


def timed(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """us a call."""
    runs = {one: captured(call) for one, call in calls.items()}
    times: dict[str, list[float]] = {one: [] for one in runs}
    for _ in range(rounds):
        for one, run in runs.items():
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            cuda.synchronize()
            dist.barrier()
            cuda._sleep(2_000_000)  # Ranks begin together.
            start.record()
            run()
            end.record()
            cuda.synchronize()
            slowest = torch.tensor([start.elapsed_time(end) / CALLS * 1e3])
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            times[one].append(float(slowest))
    return {one: statistics.median(of) for one, of in times.items()}


def with_vendors_sums(call: Callable[[], Any]) -> Any:
    """A call whose products with what others have sent are the vendor's, whatever the model says."""
    chooses, model.adds_in_product = model.adds_in_product, lambda *sizes: False
    try:
        return call()
    finally:
        model.adds_in_product = chooses


def contenders(op: str, rows: int) -> dict[str, Callable[[], Any]]:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    symmetric = torch.ops.symm_mem
    if op == "all_gather":
        shard, weight = made(rows // ranks, WIDTH, seed=rank), made(WIDTH, WIDTH // ranks, seed=50) * 0.02
        whole = made(rows, WIDTH, seed=3)
        check(op, gather_matmul(shard, weight), exact(op, shard, weight))
        return {
            "matmul alone": lambda: whole @ weight,
            "NCCL": lambda: collective(op, shard, ours=False) @ weight,
            "our collective": lambda: collective(op, shard, ours=True) @ weight,
            "torch fused": lambda: symmetric.fused_all_gather_matmul(shard, [weight], 0, name()),
            "overlapped": lambda: gather_matmul(shard, weight),
        }
    a, b = made(rows, WIDTH // ranks, seed=rank), made(WIDTH // ranks, WIDTH, seed=50 + rank) * 0.02
    want = exact(op, a, b)
    found: dict[str, Callable[[], Any]] = {
        "matmul alone": lambda: a @ b,
        "NCCL": lambda: collective(op, a @ b, ours=False),
        "our collective": lambda: collective(op, a @ b, ours=True),
    }
    if op == "reduce_scatter":
        found["torch fused"] = lambda: symmetric.fused_matmul_reduce_scatter(a, b, "sum", 0, name())
    for blocks in (1, 2, 4):
        check(f"{op} in {blocks}", matmul_reduce(op, blocks, a, b), want)
        call = partial(matmul_reduce, op, blocks, a, b)
        found[f"overlapped in {blocks}"] = call
        found[f"{blocks}, vendor's sums"] = partial(with_vendors_sums, call)
    return found


def speed_of_some(rounds: int, all_rows: list[int], only: str) -> None:
    """Of contenders whose names begin with `only`, as twins.py asks for."""
    for op in ("all_gather", "reduce_scatter", "all_reduce"):
        for rows in all_rows:
            calls = {one: call for one, call in contenders(op, rows).items() if one.startswith(only)}
            times = results[f"{op} {rows}"] = timed(calls, rounds)
            say(f"## {op} {rows} rows: {', '.join(f'{one} {of:.1f}' for one, of in times.items())}")


def speed(rounds: int, all_rows: list[int], models: bool) -> None:
    import torch.distributed._symmetric_memory as symmetric_memory

    enable: Any = symmetric_memory.enable_symm_mem_for_group
    enable(name())
    ranks = dist.get_world_size()
    for op in ("all_gather", "reduce_scatter", "all_reduce"):
        for rows in all_rows:
            times = timed(contenders(op, rows), rounds)
            own_rows, n, k = (
                (rows // ranks, WIDTH // ranks, WIDTH) if op == "all_gather" else (rows, WIDTH, WIDTH // ranks)
            )
            device = torch.device("cuda", cuda.current_device())
            choice = model.choose(op, ranks, own_rows, n, k, torch.bfloat16, device)
            ours = "overlapped" if op == "all_gather" else f"overlapped in {choice.blocks}"
            taken = times[ours if choice.blocks else "our collective"]
            best = min(of for one, of in times.items() if one in ("NCCL", "our collective", "torch fused"))
            results[f"{op} {rows}"] = {**times, "taken": taken, "best other": best}
            told = ", ".join(f"{one} {of:.1f}" for one, of in times.items())
            say(f"## {op} {rows} rows: {told}; taken {taken:.1f}, {best / taken:.2f}x the best other")
            if models:
                say(f"   predicted: {choice.plain:.0f} one after the other, {choice.overlapped:.0f} overlapped")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="checks" if SHARES else "checks,compiled,speed,model")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rows", default="1024,2048,4096,8192,16384")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    parts = options.parts.split(",")
    rank = int(os.environ["RANK"])
    cuda.set_device(rank % cuda.device_count())
    dist.init_process_group("cpu:gloo,cuda:commsir" if SHARES else "cpu:gloo,cuda:nccl")
    if "checks" in parts:
        checks()
    if "compiled" in parts:
        compiled()
    all_rows = [int(rows) for rows in options.rows.split(",")]
    if "speed" in parts and options.only:
        speed_of_some(options.rounds, all_rows, options.only)
    elif "speed" in parts:
        speed(options.rounds, all_rows, "model" in parts)
    cuda.synchronize()
    dist.barrier()
    if options.json and dist.get_rank() == 0:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    say(f"{len(failures)} failed: {failures}" if failures else "all right")
    status = 1 if failures else 0
    dist.destroy_process_group()
    return status


if __name__ == "__main__":
    sys.exit(main())
