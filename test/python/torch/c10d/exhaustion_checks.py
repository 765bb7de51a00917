"""A GPU that runs out of memory at any allocation of one rank, over a driver without GPUs; run by test_gpu.py.

Each rank gets the result, or an error that says what failed. Nobody waits for a rank that has failed, and other groups
stay usable.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import commsir.torch
import commsir.torch.ops as ops
import torch
import torch.distributed
from expected import error_of
from gpu_checks import calls_of

dist: Any = torch.distributed
cuda: Any = torch.cuda
#: Which rank runs out of memory, and seconds that a rank may wait for it.
POOR, PATIENCE = 1, 20
#: Of the driver that fails, of torch's allocator, and of NCCL, which takes the calls of a group without memory.
NAMED = ("Request less memory", "out of memory", "NCCL error")


def _exhaust(count: int) -> int:
    """Lets `count` allocations succeed and the next one fail. Returns what is left of the last count."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.fakeExhaust.restype = ctypes.c_long
    return int(driver.fakeExhaust(ctypes.c_long(count)))


def _fused(x: torch.Tensor, group: Any) -> Any:
    columns = x.shape[-1]
    text = f"""(%sum: tensor<{columns}xf32>) {{
    %y = arith.addf %sum, %sum : tensor<{columns}xf32>
    comms.yield %y : tensor<{columns}xf32>
}}"""
    return ops.fused_collective("all_reduce", x, [], text, [(torch.float32, columns)], reduce_op="sum", group=group)


def _every(group: Any, x: torch.Tensor) -> None:
    dist.all_reduce(x, group=group)
    dist.broadcast(x, 0, group=group)
    dist.all_gather_into_tensor(x.new_empty(2 * x.numel()), x, group=group)


def large_call(group: Any, x: torch.Tensor) -> None:
    dist.all_reduce(torch.empty(3 << 20, device="cuda"), group=group)


def operations(group: Any, x: torch.Tensor) -> None:
    ops.all_reduce(x, "sum", group)
    _fused(x.view(8, -1), group)


def asynchronous(group: Any, x: torch.Tensor) -> None:
    dist.all_reduce(x, group=group, async_op=True).wait()


def window(group: Any, x: torch.Tensor) -> None:
    made = commsir.torch.window((64,), torch.float32, group=group)
    made.release()


def captured(group: Any, x: torch.Tensor) -> None:
    _every(group, x)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        _every(group, x)
    graph.replay()


WORK: list[Callable[[Any, torch.Tensor], None]] = [large_call, operations, asynchronous, window, captured]
#: In groups that have been used.
WARM = (asynchronous,)


def _attempt(work: Callable[[Any, torch.Tensor], None], rank: int, count: int) -> bool:
    """Lets the `count`-th allocation of `work` fail in a new group. Returns whether there was one."""
    x = torch.empty(64, device="cuda")
    group = dist.new_group(backend="commsir")
    if work in WARM:
        dist.all_reduce(x, group=group)
    began = time.monotonic()
    if rank == POOR:
        _exhaust(count)
    said = error_of(lambda: work(group, x))
    failed = rank == POOR and _exhaust(-1) < 0
    store, key = dist.distributed_c10d._get_default_store(), f"{work.__name__}/{count}/"
    store.set(f"{key}{rank}", json.dumps([said, failed, time.monotonic() - began]))
    every = [json.loads(store.get(f"{key}{one}")) for one in range(dist.get_world_size())]
    (_, _, other_took), (poor_said, failed, took) = every
    assert max(took, other_took) < PATIENCE, (count, every)
    for text, _, _ in every:
        assert not text or any(word in text for word in NAMED), (count, every)
        assert "the group's limit" not in text, (count, every)
    assert failed or not poor_said, (count, every)
    dist.destroy_process_group(group)
    assert calls_of(lambda: dist.all_reduce(x))["LaunchKernelEx"] == 1
    return bool(failed)


def exhausted(work: Callable[[Any, torch.Tensor], None], rank: int) -> None:
    count = 0
    while _attempt(work, rank, count):
        count += 1
    assert count >= 3, count


def main(folder: str, rank: int, last: str) -> None:
    """Prints what went wrong for each kind of work, as JSON."""
    cuda.set_device(rank)
    dist.init_process_group("commsir", init_method=f"file://{folder}/store", rank=rank, world_size=int(last))
    dist.all_reduce(torch.empty(64, device="cuda"))
    outcomes = {work.__name__: error_of(lambda work=work: exhausted(work, rank)) for work in WORK}
    print(json.dumps(outcomes), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
