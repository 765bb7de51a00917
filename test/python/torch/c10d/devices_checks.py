"""Ranks whose GPU numbers differ from their ranks, in torch's symmetric memory; run by test_gpu.py."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import commsir
import commsir.torch
import commsir.torch.matmul.ops as matmuls
import commsir.torch.op_groups as op_groups
import commsir.torch.ops as ops
import commsir.torch.region_values as region_values
import commsir.torch.sites as sites
import torch
import torch.distributed
from commsir.torch.matmul import model, overlapped
from commsir.torch.matmul.factor import Factor
from expected import error_of
from gpu_checks import Calls, calls_of

dist: Any = torch.distributed
cuda: Any = torch.cuda

_TEXT = """(%sum: tensor<64xf32>) {
    %y = arith.addf %sum, %sum : tensor<64xf32>
    comms.yield %y : tensor<64xf32>
}"""


_numbers = itertools.count()
#: Symmetric memory lives as long as the process: the next check's tensor must not get the same address.
_kept: list[torch.Tensor] = []


def _fused(x: torch.Tensor, symmetric: bool, group: Any = None) -> None:
    ops.fused_collective("all_reduce", x, [], _TEXT, [(torch.float32, 64)], symmetric=symmetric, group=group)


def symmetric_memory_is_used_in_place(rank: int, size: int) -> Calls:
    """Inductor gives ops such memory; no rank knows the numbers of the others' GPUs."""
    x = torch.ones(8, 64, device="cuda")
    _kept.append(x)

    def reached(name: str, device: int, data: int, length: int) -> list[int]:
        assert device == x.get_device() == cuda.current_device()
        return [data] * size

    with mock.patch.object(op_groups, "_symmetric", reached):
        _fused(x, True)
        asked = calls_of(lambda: _fused(x, True))
    group = ops.group_of(dist.group.WORLD.group_name, x.get_device())
    assert group.contains(x.data_ptr(), x.nbytes)
    counts = group.counts()
    assert counts["staged"] == 0 and counts["launches"] >= 3, counts
    return asked


def one_rank_does_not_reach_it(rank: int, size: int) -> None:
    """Nobody uses it in place then."""
    x = torch.ones(8, 64, device="cuda")

    def reached(name: str, device: int, data: int, length: int) -> list[int]:
        if rank == size - 1:
            raise RuntimeError("no way")
        return [data] * size

    with mock.patch.object(op_groups, "_symmetric", reached), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _fused(x, True)
    assert any(f"rank {size - 1}: no way" in str(one.message) for one in said), said
    assert not ops.group_of(dist.group.WORLD.group_name, x.get_device()).contains(x.data_ptr(), x.nbytes)


def who_is_missing_is_named(rank: int, size: int) -> None:
    """Within the process group's timeout, and not torch's default of half an hour."""
    group = dist.new_group(backend="commsir", timeout=timedelta(seconds=8))
    x = torch.ones(8, 64, device="cuda")
    _fused(x, False, group)
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["told"], timedelta(seconds=100))
        return
    before, asked = store.timeout, time.monotonic()
    said = error_of(lambda: _fused(x, True, group))
    assert time.monotonic() - asked < 30, "it has waited too long"
    assert "Timed out waiting 8000ms" in said and "rank 1 of" in said and "symmetric memory" in said, said
    assert store.timeout == before
    store.set("told", "")


@contextlib.contextmanager
def _ending_together(size: int) -> Iterator[None]:
    """No rank has a collective's result before all have begun it, as where kernels do something."""
    store, real = dist.distributed_c10d._get_default_store(), sites.run_collective

    def run(*given: Any) -> torch.Tensor:
        made, key = real(*given), f"ended/{next(_numbers)}"
        store.add(key, 1)
        while store.add(key, 0) < size:
            time.sleep(0.001)
        return made

    with mock.patch.object(sites, "run_collective", run):
        yield


def no_kernel_can_be_made(rank: int, size: int) -> None:
    """All ranks run the process group's collective, from the first call on or after a kernel of the place."""
    x = torch.ones(8, 64, device="cuda")
    right, wrong = (_TEXT, _TEXT.replace("arith.addf %sum, %sum", "math.nothing %sum"))
    region_values._BY_NAME["math.nothing"] = torch.neg
    os.environ.pop("COMMSIR_TORCH_STRICT", None)
    for site, texts in (("a place", [wrong] * 4), ("another place", [right] * 4 + [wrong] * 2)):
        with warnings.catch_warnings(record=True) as told, _ending_together(size):
            warnings.simplefilter("always")
            for text in texts:
                torch.ops.commsir.fused_collective(
                    "all_reduce", x, [], "sum", text, "f32", [64], False, dist.group.WORLD.group_name, site
                )
        said = [str(one.message) for one in told]
        assert site != "a place" or any("no kernel can be made of an all_reduce" in text for text in said), said
    del region_values._BY_NAME["math.nothing"]


@contextlib.contextmanager
def _without_matmuls() -> Iterator[mock.Mock]:
    """No GPU multiplies here. Whatever is not float64 overlaps; the mock is called for that."""

    def choose(op: str, ranks: int, rows: int, columns: int, k: int, dtype: torch.dtype, *others: Any) -> model.Choice:
        return model.Choice(0 if dtype is torch.float64 else 2, 2.0, 1.0)

    def product(factor: Factor, a: torch.Tensor, first: int) -> torch.Tensor:
        return a.new_empty(a.shape[0], factor.columns)

    def overlap(space: Any, shard: torch.Tensor, factors: list[Factor], whole: Any) -> list[torch.Tensor]:
        return [product(one, shard.repeat(2, 1), 0) for one in factors]

    with (
        mock.patch.object(Factor, "multiply", product),
        mock.patch.object(model, "choose", choose),
        mock.patch.object(overlapped, "all_gather_matmul", side_effect=overlap) as overlaps,
    ):
        yield overlaps


def shapes_are_compared(rank: int, size: int) -> None:
    """What ranks send must be alike; where the rest is not alike they overlap nothing."""
    shard, other = torch.ones(4, 6, device="cuda"), torch.ones(2, 12, device="cuda")
    world = dist.new_group(list(range(size)))

    def call(given: torch.Tensor, columns: int) -> int:
        """How often it overlaps in two calls."""
        before = overlaps.call_count
        for _ in range(2):
            (made,) = matmuls.all_gather_matmul(given, [given.new_ones(given.shape[1], columns)], group=world)
            assert made.shape == (given.shape[0] * size, columns)
        return int(overlaps.call_count - before)

    with _without_matmuls() as overlaps:
        for _ in range(2):
            said = error_of(lambda: call(other if rank else shard, 5))
            assert "all_gather_matmul of 4 x 6 float32" in said and "of 2 x 12 float32" in said, said
        group = ops.group_of(world.group_name, shard.get_device())
        with mock.patch.object(group, "compare", wraps=group.compare) as compared:
            # The first call that sends this, another weight, one that is not alike, the first one again.
            counts = [(call(shard, columns), compared.call_count) for columns in (5, 7, 9 + rank, 5)]
            assert counts == [(2, 2), (2, 3), (0, 4), (2, 4)], counts
            # Never alike; without a gain nothing but what is sent has to be.
            counts = [(call(one, 9 + rank), compared.call_count) for one in (other, shard.double())]
            assert counts == [(0, 6), (0, 8)], counts
            assert call(shard.double(), 5) == call(shard.double(), 5 + rank) == 0 and compared.call_count == 8


CHECKS = [
    symmetric_memory_is_used_in_place,
    one_rank_does_not_reach_it,
    who_is_missing_is_named,
    no_kernel_can_be_made,
    shapes_are_compared,
]


def main(folder: str, rank: int, devices: list[int]) -> None:
    """Prints what went wrong in each check, as JSON."""
    cuda.set_device(devices[rank])
    commsir.torch.register()
    size = len(devices)
    dist.init_process_group("commsir", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    outcomes = {check.__name__: error_of(lambda check=check: check(rank, size)) for check in CHECKS}
    dist.destroy_process_group()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), [int(device) for device in sys.argv[3].split(",")])
