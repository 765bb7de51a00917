"""torch.compile: what becomes one kernel, what does not, and why."""

from __future__ import annotations

import compile_checks
import pytest
import torch
from harness import World

#: The rest is done in float32.
_IN_BFLOAT16 = {"residual_rms_norm", "torch_rms_norm", "silu_only", "gathered", "quantised"}


@pytest.mark.parametrize("name", list(compile_checks.FUSED))
def test_fuses(pair: World, name: str) -> None:
    dtype = torch.bfloat16 if name in _IN_BFLOAT16 else torch.float32
    said = pair.run(compile_checks.fuses, "gloo", name=name, dtype=dtype)
    assert len(set(map(str, said))) == 1, "ranks have fused different things"
    assert len(said[0]) == 1 and ": fused with " in said[0][0], said[0]
    if name == "followed_by_matmul":
        assert "aten.mm.default is not among the operations" in said[0][0]
        assert "aten.rsqrt" in said[0][0]


def test_dynamic_rows(pair: World) -> None:
    said = pair.run(compile_checks.fuses, "gloo", name="residual_rms_norm", dtype=torch.bfloat16, dynamic=True)
    assert ": fused with " in said[0][0]


def test_traced(pair: World) -> None:
    pair.run(compile_checks.traced, "gloo")


def test_one_kernel(pair: World) -> None:
    counts = pair.run(compile_checks.kernels, "gloo")[0]
    assert counts.get("commsir::fused_collective") == 1
    assert not [name for name in counts if "_c10d_functional" in name or "graph_0_cpp_fused" in name], counts
