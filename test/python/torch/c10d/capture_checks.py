"""Mistakes of engines with CUDA graphs, over a driver without GPUs; run by test_gpu.py.

In each case there is a clear error or the correct result, and the group stays usable.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commsir.torch
import commsir.torch.ops as ops
import torch
import torch.distributed
from expected import error_of
from gpu_checks import _counted, calls_of

dist: Any = torch.distributed
cuda: Any = torch.cuda


def _fused(rows: int, columns: int = 64) -> torch.Tensor:
    text = f"""(%sum: tensor<{columns}xf32>) {{
    %y = arith.addf %sum, %sum : tensor<{columns}xf32>
    comms.yield %y : tensor<{columns}xf32>
}}"""
    x = torch.empty(rows, columns, device="cuda")
    made = ops.fused_collective(
        "all_reduce", x, [], text, [(torch.float32, columns)], reduce_op="sum", group=dist.group.WORLD
    )
    return made[0]


def _works() -> None:
    """A call, and a call in a graph."""
    x = torch.empty(64, device="cuda")
    assert calls_of(lambda: dist.all_reduce(x))["LaunchKernelEx"] == 1
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        dist.all_reduce(x)
    assert calls_of(graph.replay)["GraphLaunch"] == 1


def a_capture_is_abandoned(folder: Path, rank: int) -> None:
    """By an exception behind some calls, three times."""
    _fused(4)
    for _ in range(3):
        graph = cuda.CUDAGraph()

        def body(graph: Any = graph) -> None:
            with cuda.graph(graph):
                _fused(4)
                raise ValueError("not captured")

        assert "not captured" in error_of(body)
        _works()


def a_row_length_was_never_seen(folder: Path, rank: int) -> None:
    """Nothing compiles while a stream is captured."""
    graph = cuda.CUDAGraph()

    def body() -> None:
        with cuda.graph(graph):
            _fused(4, columns=96)

    said = error_of(body)
    assert "before capturing" in said and "all_reduce" in said, said
    _works()
    _fused(4, columns=96)
    _works()


def there_are_no_rows(folder: Path, rank: int) -> None:
    """Also in a graph, and of a row length that was never seen."""
    size, group = dist.get_world_size(), dist.group.WORLD
    x = torch.empty(0, 48, device="cuda")

    def every() -> list[tuple[int, ...]]:
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        made = [
            ops.all_reduce(x, "sum", group),
            ops.all_gather(x, group),
            ops.reduce_scatter(x, "sum", group),
            ops.all_to_all(x, group),
            _fused(0, columns=80),
        ]
        return [tuple(one.shape) for one in made]

    want = [(0, 48), (0, 48), (0, 48), (0, 48), (0, 80)]
    assert every() == want, every()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        _fused(4)
        shapes = every()
    assert shapes == want and size > 1, shapes
    graph.replay()
    _works()


def one_rank_has_compiled_before(folder: Path, rank: int) -> None:
    """Each rank has a cache of its own, and one rank's is empty."""
    before = os.environ.get("COMMSIR_CACHE_DIR")
    try:
        for turn in range(2):
            os.environ["COMMSIR_CACHE_DIR"] = str(folder / f"cache-{rank}")
            group = dist.new_group(backend="commsir")
            x = torch.empty(1000 + 8 * turn, device="cuda", dtype=torch.float64)
            dist.all_reduce(x, group=group)
            if turn == 0 and rank == 1:
                shutil.rmtree(folder / "cache-1", ignore_errors=True)
            dist.destroy_process_group(group)
    finally:
        os.environ.pop("COMMSIR_CACHE_DIR", None)
        if before is not None:
            os.environ["COMMSIR_CACHE_DIR"] = before
    _works()


def no_channel_memory_is_left(folder: Path, rank: int) -> None:
    """For a captured call that was not made before: the limit is told, or it goes in pieces."""
    group = dist.new_group(backend="commsir")
    os.environ["COMMSIR_CHANNEL_BYTES"] = "262144"
    try:
        small = torch.empty(64, device="cuda")
        dist.all_reduce(small, group=group)
    finally:
        del os.environ["COMMSIR_CHANNEL_BYTES"]
    large = torch.empty(1 << 20, device="cuda")
    graph = cuda.CUDAGraph()

    def body() -> None:
        with cuda.graph(graph):
            dist.all_reduce(large, group=group)

    said = error_of(body)
    assert not said or "before capturing" in said or "COMMSIR_CHANNEL_BYTES" in said, said
    assert calls_of(lambda: dist.all_reduce(small, group=group))["LaunchKernelEx"] == 1
    dist.all_reduce(large, group=group)
    again = cuda.CUDAGraph()
    with cuda.graph(again):
        dist.all_reduce(large, group=group)
    again.replay()
    _works()


def a_graph_outlives_its_group(folder: Path, rank: int) -> None:
    """What it launches stays."""
    group = dist.new_group(backend="commsir")
    x = torch.empty(64, device="cuda")
    dist.all_reduce(x, group=group)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        dist.all_reduce(x, group=group)
    names, before = ("ModuleUnload", "LibraryUnload", "MemUnmap", "EventDestroy"), _counted()
    dist.destroy_process_group(group)
    after = _counted()
    assert all(after.get(name, 0) == before.get(name, 0) for name in names), (before, after)
    assert calls_of(graph.replay)["GraphLaunch"] == 1
    _works()


def the_gpu_has_no_memory_left(folder: Path, rank: int) -> None:
    """For the copy that a captured call needs of a tensor that begins anywhere."""
    x = torch.empty(65, device="cuda")
    odd = torch.empty(200_000, device="cuda")[1:]
    dist.all_reduce(odd)
    graph = cuda.CUDAGraph()

    def body() -> None:
        with cuda.graph(graph):
            dist.all_reduce(x[:64])
            os.environ["COMMSIR_FAKE_FAIL"] = "MemAlloc"
            try:
                dist.all_reduce(odd)
            finally:
                del os.environ["COMMSIR_FAKE_FAIL"]

    said = error_of(body)
    assert "left for copies of arrays" in said, said
    _works()
    with cuda.graph(cuda.CUDAGraph()):
        dist.all_reduce(odd)


def two_groups_are_in_a_graph(folder: Path, rank: int) -> None:
    """Their calls keep their order, also after one of them has ended."""
    first, second = dist.new_group(backend="commsir"), dist.new_group(backend="commsir")
    x = torch.empty(64, device="cuda")
    for group in (first, second):
        dist.all_reduce(x, group=group)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        for group in (first, second, first):
            dist.all_reduce(x, group=group)
    assert calls_of(graph.replay)["GraphLaunch"] == 1
    dist.destroy_process_group(first)
    assert calls_of(graph.replay)["GraphLaunch"] == 1
    assert calls_of(lambda: dist.all_reduce(x, group=second))["LaunchKernelEx"] == 1
    dist.destroy_process_group(second)
    assert calls_of(graph.replay)["GraphLaunch"] == 1
    _works()


def a_group_ends_within_a_capture(folder: Path, rank: int) -> None:
    """Its captured calls stay, and later ones are refused."""
    group = dist.new_group(backend="commsir")
    x = torch.empty(64, device="cuda")
    dist.all_reduce(x, group=group)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        dist.all_reduce(x, group=group)
        dist.destroy_process_group(group)
    assert calls_of(graph.replay)["GraphLaunch"] == 1
    assert error_of(lambda: dist.all_reduce(x, group=group))
    _works()


def ranks_warm_up_differently(folder: Path, rank: int) -> None:
    """The ranks are told what each of them prepares, and nobody waits for the other."""

    def call(rows: int) -> None:
        dist.all_reduce(torch.empty(rows, 4096, device="cuda", dtype=torch.float16))

    said = error_of(lambda: commsir.torch.warm_up(call, rows=[4] if rank else [512]))
    assert "ranks disagree" in said, said
    commsir.torch.warm_up(call, rows=[4, 512])
    _works()


def ranks_have_other_shapes(folder: Path, rank: int) -> None:
    """Of a kernel that is new to all of them: each hears what the other has."""
    said = error_of(lambda: _fused(5 if rank else 4, columns=40))
    assert "ranks disagree" in said and "_x 8x40 f32" in said and "_x 4x40 f32" in said, said
    _works()
    _fused(4, columns=40)


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    """What is written to the standard error goes to a file."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def a_group_that_cannot_be_made_is_told(folder: Path, rank: int) -> None:
    """NCCL takes its calls (which this driver cannot), and the first rank says why."""
    group = dist.new_group(backend="commsir")
    os.environ["COMMSIR_CHANNEL_BYTES"] = "a lot"
    x = torch.empty(64, device="cuda")
    try:
        with _written(folder / f"told-{rank}"):
            assert "NCCL" in error_of(lambda: dist.all_reduce(x, group=group))
            assert "NCCL" in error_of(lambda: dist.all_reduce(x, group=group))
    finally:
        del os.environ["COMMSIR_CHANNEL_BYTES"]
    said = (folder / f"told-{rank}").read_text()
    assert said.count("so NCCL carries its calls: ") == (rank == 0), said
    assert rank or "COMMSIR_CHANNEL_BYTES: 'a lot'" in said, said
    _works()


CHECKS = [
    a_capture_is_abandoned,
    a_row_length_was_never_seen,
    there_are_no_rows,
    one_rank_has_compiled_before,
    no_channel_memory_is_left,
    a_graph_outlives_its_group,
    the_gpu_has_no_memory_left,
    two_groups_are_in_a_graph,
    a_group_ends_within_a_capture,
    ranks_warm_up_differently,
    ranks_have_other_shapes,
    a_group_that_cannot_be_made_is_told,
]


def main(folder: str, rank: int, size: int) -> None:
    """Prints what went wrong in each check, as JSON."""
    cuda.set_device(rank)
    dist.init_process_group("commsir", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    x = torch.empty(64, device="cuda")
    dist.all_reduce(x)
    outcomes = {check.__name__: error_of(lambda check=check: check(Path(folder), rank)) for check in CHECKS}
    print(json.dumps(outcomes), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
