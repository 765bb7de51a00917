"""torch.compile: arithmetic of today's models behind a collective goes into its kernel."""

from __future__ import annotations

import epilogues_checks
import pytest
import torch
from harness import World

_NAMES = list(epilogues_checks.EPILOGUES)
#: Functions in one graph.
_TOGETHER = 24
#: What is said of operations that stay outside; of the others nothing is.
_OUTSIDE = {
    "olmo2_qk_norm": "aten.permute at",
    "gptoss_router_topk_softmax": "other rows",
    "deepseek_group_topk": "aten.topk at",
    "deepseek_interleave": "aten.permute at",
    "t5_clamp_where_infinite": "aten.any at",
    "fp8_per_tensor_dynamic": "other rows",
    "z_loss": "other rows",
    "aux_mean": "other rows",
    "pooled": "other rows",
    "last_token": "other rows",
    "cls": "other rows",
    "mean_default": "other rows",
}
#: Of these nothing is fused.
_LEFT = ("deepseek_interleave", "last_token", "cls")


@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER))
def test_fuses(pair: World, first: int) -> None:
    names = _NAMES[first : first + _TOGETHER]
    for said in pair.run(epilogues_checks.fuses, "gloo", names=names, dtype=torch.float32):
        for name, (fused, because) in said.items():
            assert bool(fused) == (name not in _LEFT), (name, fused, because)
            outside = _OUTSIDE.get(name)
            assert outside in because if outside else not because, (name, fused, because)


def test_fuses_bfloat16(pair: World) -> None:
    names = [name for name in _NAMES if name.startswith(("llama4", "gemma", "olmo2", "granite", "cohere2", "nemotron"))]
    for said in pair.run(epilogues_checks.fuses, "gloo", names=names, dtype=torch.bfloat16):
        assert all(fused for fused, _ in said.values()), said
