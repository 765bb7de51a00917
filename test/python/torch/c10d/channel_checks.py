"""Channel memory of an engine's calls in graphs, over a driver without GPUs; run by test_gpu.py."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import commsir.torch.ops as ops
import torch
import torch.distributed

dist: Any = torch.distributed
cuda: Any = torch.cuda

HIDDEN = 8192
#: A sum of squares of a row, as norms take it.
_TEXT = f"""(%sum: tensor<{HIDDEN}xf32>) {{
    %s = arith.mulf %sum, %sum : tensor<{HIDDEN}xf32>
    %t = comms.row_reduce sum %s : tensor<{HIDDEN}xf32> -> tensor<1xf32>
    %b = comms.broadcast_row %t : tensor<1xf32> -> tensor<{HIDDEN}xf32>
    %m = arith.mulf %sum, %b : tensor<{HIDDEN}xf32>
    %y = arith.truncf %m : tensor<{HIDDEN}xf32> to tensor<{HIDDEN}xbf16>
    comms.yield %y : tensor<{HIDDEN}xbf16>
}}"""

_graphs: list[Any] = []


def _capture(call: Callable[[], Any]) -> None:
    """Calls, and captures the call in a graph that stays."""
    call()
    cuda.synchronize()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        call()
    _graphs.append(graph)


def _bytes() -> int:
    return int(ops.counts_of(dist.group.WORLD)["cuda.ops"]["channel_bytes"])


def _made(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, dtype=torch.bfloat16, device="cuda")


def graphs_of_67_batches() -> int:
    """Bytes of channels that captures of 512 rows and of all smaller batches take."""
    ops.all_reduce(_made(8, HIDDEN), "sum", dist.group.WORLD)
    for rows in reversed([1, 2, 4, *range(8, 513, 8)]):
        x = _made(rows, HIDDEN)
        outputs = [(torch.bfloat16, HIDDEN)]
        _capture(partial(ops.fused_collective, "all_reduce", x, [], _TEXT, outputs, group=dist.group.WORLD))
    return _bytes()


def five_operations() -> int:
    """And captures of all_gather, reduce_scatter, all_to_all, and all_reduce of 1 KiB to 8 MiB."""
    world, ranks = dist.group.WORLD, dist.get_world_size()
    for power in range(9, 23):
        x, part = _made(1 << power), _made((1 << power) // ranks)
        for call in (
            partial(ops.all_reduce, x, "sum", world),
            partial(ops.all_gather, part, world),
            partial(ops.reduce_scatter, x, "sum", world),
            partial(ops.all_to_all, x, world),
        ):
            _capture(call)
    return _bytes()


def broadcasts() -> int:
    """And captures of broadcast of 1 KiB to 8 MiB."""
    for power in range(9, 23):
        _capture(partial(ops.broadcast, _made(1 << power), 0, dist.group.WORLD))
    return _bytes()


CHECKS = [graphs_of_67_batches, five_operations, broadcasts]


def main(folder: str, rank: int, size: int) -> None:
    """Prints the bytes of each check, as JSON."""
    cuda.set_device(rank)
    dist.init_process_group("commsir", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    print(json.dumps({check.__name__: check() for check in CHECKS}), flush=True)
    os._exit(0)  # Graphs of a driver without GPUs are not worth their end.


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
