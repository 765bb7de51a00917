"""Tensor-parallel decoder layers by torch.compile, over NCCL and with CommsIR's passes, on the GPUs of this machine.

torchrun --nproc-per-node 4 test/gpu/decoder.py [--parts decode,prefill] [--rows 1,8,32,128,512] [--tokens 4096]
                                                [--context 256] [--layers 2] [--rounds 9] [--json FILE]

The layer is that of a 70B model: hidden size 8192, 64 heads of 128, 8 of them for keys and values, a feed-forward
width of 28672; bf16, random weights, sharded over all ranks. Each contender compiles the same functions and runs in a
CUDA graph of `--layers` layers.

decode   `--rows` sequences get one token each: norm, attention over a cache of `--context` tokens, all_reduce,
         residual, norm, feed-forward, all_reduce, residual. Compares Inductor with NCCL, and CommsIR.
prefill  `--tokens` tokens of one sequence, sequence parallel: all_gather before a matmul, reduce_scatter after one,
         norms on a rank's own tokens. Compares Inductor with NCCL, Inductor with torch's fused matmuls
         (_micro_pipeline_tp, over symmetric memory), and CommsIR.

Results are compared with the uncompiled layer. Prints µs per layer on the slowest rank: the median, minimum and maximum
of rounds in which contenders take turns. Ends with status 1 if a result is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")

import commsir.torch
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
import torch.distributed._symmetric_memory as symmetric_memory
from torch.nn import functional

dist: Any = torch.distributed
cuda: Any = torch.cuda
collectives: Any = funcol
HIDDEN, HEADS, SHARED_HEADS, HEAD, WIDE = 8192, 64, 8, 128, 28672
EPSILON = 1e-5
#: Of results against the uncompiled layer, which rounds to bf16 in more places.
TOLERANCE = 0.05


@dataclass
class Layer:
    """A rank's part of one layer's weights, and of its cache."""

    norms: tuple[Any, Any]
    qkv: Any
    output: Any
    up: Any
    down: Any
    keys: Any
    values: Any


def random(*shape: int, seed: int, scale: float = 1.0) -> Any:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda", generator=generator) * scale


def layer(seed: int, rows: int, context: int) -> Layer:
    ranks, seed = dist.get_world_size(), 100 * seed + dist.get_rank()
    heads, shared, wide = HEADS // ranks, max(SHARED_HEADS // ranks, 1), WIDE // ranks
    return Layer(
        (random(HIDDEN, seed=7).abs(), random(HIDDEN, seed=8).abs()),
        random(HIDDEN, (heads + 2 * shared) * HEAD, seed=seed, scale=0.02),
        random(heads * HEAD, HIDDEN, seed=seed + 1, scale=0.02),
        random(HIDDEN, 2 * wide, seed=seed + 2, scale=0.02),
        random(wide, HIDDEN, seed=seed + 3, scale=0.02),
        random(rows, shared, context, HEAD, seed=seed + 4),
        random(rows, shared, context, HEAD, seed=seed + 5),
    )


def norm(x: Any, weight: Any) -> Any:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)).to(x.dtype) * weight


def attend(one: Layer, qkv: Any, causal: bool) -> Any:
    """[tokens, own heads x 128], of the queries, keys and values of one row; decoding, over the cache."""
    shared = one.keys.shape[1]
    heads = qkv.shape[1] // HEAD - 2 * shared
    q, k, v = qkv.split([heads * HEAD, shared * HEAD, shared * HEAD], 1)
    if causal:
        q, k, v = (part.view(1, -1, part.shape[1] // HEAD, HEAD).transpose(1, 2) for part in (q, k, v))
    else:
        q, k, v = q.view(-1, heads, 1, HEAD), one.keys, one.values
    seen = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    return seen.transpose(1, 2).reshape(qkv.shape[0], heads * HEAD)


def feed(one: Layer, x: Any) -> Any:
    gate, up = (x @ one.up).chunk(2, 1)
    return (functional.silu(gate) * up) @ one.down


def decode(layers: list[Layer], x: Any) -> Any:
    world = dist.group.WORLD
    for one in layers:
        seen = attend(one, norm(x, one.norms[0]) @ one.qkv, causal=False)
        x = x + collectives.all_reduce(seen @ one.output, "sum", world)
        x = x + collectives.all_reduce(feed(one, norm(x, one.norms[1])), "sum", world)
    return x


def prefill(layers: list[Layer], x: Any) -> Any:
    """`x` is [tokens / ranks, hidden]."""
    world = dist.group.WORLD
    for one in layers:
        whole = collectives.all_gather_tensor(norm(x, one.norms[0]), 0, world)
        seen = attend(one, whole @ one.qkv, causal=True)
        x = x + collectives.reduce_scatter_tensor(seen @ one.output, "sum", 0, world)
        whole = collectives.all_gather_tensor(norm(x, one.norms[1]), 0, world)
        x = x + collectives.reduce_scatter_tensor(feed(one, whole), "sum", 0, world)
    return x


# ---------------------------------------------------------------------------------------------------------------------
# Contenders
# ---------------------------------------------------------------------------------------------------------------------


def compiled(run: Callable[..., Any], way: str) -> Callable[..., Any]:
    """`run` by torch.compile: "nccl", "micro_pipeline", or "commsir"."""
    torch._dynamo.reset()
    config: Any = torch._inductor.config
    config.force_disable_caches = True
    config._micro_pipeline_tp = way == "micro_pipeline"
    return torch.compile(run, options=commsir.torch.compile_options() if way == "commsir" else {})


def captured(call: Callable[[], Any]) -> tuple[Callable[[], Any], Any]:
    for _ in range(3):
        call()
    cuda.synchronize()
    dist.barrier()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        out = call()
    return graph.replay, out


def once(run: Callable[[], Any], layers: int) -> float:
    """µs a layer, of the slowest rank."""
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    cuda.synchronize()
    dist.barrier()
    cuda._sleep(2_000_000)  # Ranks begin together.
    start.record()
    for _ in range(5):
        run()
    end.record()
    cuda.synchronize()
    slowest = torch.tensor([start.elapsed_time(end) / 5 / layers * 1e3])
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return float(slowest)


def say(*text: object) -> None:
    if dist.get_rank() == 0:
        print(*text, flush=True)


def compare(name: str, run: Callable[..., Any], layers: list[Layer], x: Any, ways: list[str], rounds: int) -> Any:
    """Prints and returns the times of all ways; None: a result is wrong."""
    want = run(layers, x).float()
    runs, right = {}, True
    for way in ways:
        made = compiled(run, way)
        runs[way], out = captured(lambda made=made: made(layers, x))  # type: ignore[misc]
        runs[way]()
        off = float((out.float() - want).abs().max() / want.abs().max())
        if not off <= TOLERANCE:
            print(f"{name}, {way}, rank {dist.get_rank()}: wrong, {off:.3f} off", flush=True)
            right = False
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, replay in runs.items():
            times[way].append(once(replay, len(layers)))
    medians = {way: statistics.median(of) for way, of in times.items()}
    told = ", ".join(f"{way} {medians[way]:.1f} [{min(of):.1f} {max(of):.1f}]" for way, of in times.items())
    gains = ", ".join(f"{medians[way] / medians['commsir']:.2f}x {way}" for way in ways if way != "commsir")
    say(f"{name}: {told}; {gains}")
    return {"us": times, "right": right}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="decode,prefill")
    parser.add_argument("--rows", default="1,8,32,128,512")
    parser.add_argument("--tokens", default="4096")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json")
    options = parser.parse_args()
    cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    results: dict[str, Any] = {}
    ranks, rank = dist.get_world_size(), dist.get_rank()
    with torch.no_grad():
        for rows in map(int, options.rows.split(",")) if "decode" in options.parts else ():
            layers = [layer(one, rows, options.context) for one in range(options.layers)]
            x = random(rows, HIDDEN, seed=3)
            results[f"decode {rows}"] = compare(
                f"decode, {rows} rows", decode, layers, x, ["nccl", "commsir"], options.rounds
            )
        if "prefill" in options.parts:
            # For _micro_pipeline_tp. Not before: Inductor then takes symmetric memory for decoding, too, and cannot
            # change its size from one compilation to the next.
            enable: Any = symmetric_memory.enable_symm_mem_for_group
            enable(str(dist.group.WORLD.group_name))
        for tokens in map(int, options.tokens.split(",")) if "prefill" in options.parts else ():
            layers = [layer(one, 1, 1) for one in range(options.layers)]
            x = random(tokens // ranks, HIDDEN, seed=3 + rank)
            ways = ["nccl", "micro_pipeline", "commsir"]
            results[f"prefill {tokens}"] = compare(
                f"prefill, {tokens} tokens", prefill, layers, x, ways, options.rounds
            )
    if options.json and rank == 0:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    wrong = not all(one["right"] for one in results.values())
    cuda.synchronize()
    dist.barrier()
    dist.destroy_process_group()
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
