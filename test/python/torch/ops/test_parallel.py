"""torch.compile on modules that parallelize_module parallelizes along the sequence, forward and backward."""

from __future__ import annotations

import parallel_checks
import pytest
import torch
from harness import World

#: What may stand behind an all_gather that is left: a matmul, a matmul's operand, or nothing.
_LEFT = (
    *("aten.mm at ", "aten.permute at ", "nothing follows", "no arithmetic follows"),
    "matmuls of torch.float32 are not overlapped",  # On GPUs alone.
)


@pytest.mark.parametrize("mode", ["plain", "pipelined", "reduce-overhead", "dynamic"])
@pytest.mark.parametrize("batch", [1, 2])
def test_trains(pair: World, mode: str, batch: int) -> None:
    first, second = pair.run(parallel_checks.trains, "commsir", mode=mode, batch=batch, dtype=torch.float32)
    assert first == second, "ranks have fused different things"
    sums = [(kind, fused) for kind, name, fused, _ in first if name == "reduce_scatter"]
    # Two blocks, forward and backward: each sum takes along the residual, or the gradient of the norm.
    assert len(sums) >= 4 and {kind for kind, _ in sums} == {"forward", "backward"}
    assert all("aten.mul.Tensor" in fused and "aten.add.Tensor" in fused for _, fused in sums), sums
    assert any("aten.rsqrt" in fused for kind, fused in sums if kind == "forward"), sums
    left = [because for _, name, fused, because in first if name == "all_gather" and not fused]
    assert left and all(why.startswith(_LEFT) for because in left for why in because), left


def test_trains_in_bfloat16(pair: World) -> None:
    first, second = pair.run(parallel_checks.trains, "commsir", mode="plain", batch=2, dtype=torch.bfloat16)
    assert first == second and all(fused for _, name, fused, _ in first if name == "reduce_scatter"), first
