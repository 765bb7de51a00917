"""torch.compile: what regions hold."""

from __future__ import annotations

import pytest
import regions_checks
import torch
from harness import World

#: The rest is done in float32.
_IN_BFLOAT16 = {"masked", "norm_over_heads", "over_the_batch"}


@pytest.mark.parametrize("name", list(regions_checks.FUSED))
def test_holds(pair: World, name: str) -> None:
    dtype = torch.bfloat16 if name in _IN_BFLOAT16 else torch.float32
    outside = regions_checks.FUSED[name][1]
    for fused, because in pair.run(regions_checks.fuses, "gloo", name=name, dtype=dtype):
        assert fused and len(because) == len(outside), (fused, because)
        assert all(part in why for part, why in zip(outside, because, strict=True)), because


@pytest.mark.parametrize(
    "name", ["masked", "norm_over_heads", "group_quantized", "over_the_batch", "of_heads_and_rows"]
)
def test_holds_rows_of_any_number(pair: World, name: str) -> None:
    for fused, because in pair.run(regions_checks.fuses, "gloo", name=name, dtype=torch.float32, dynamic=True):
        assert fused and not because, (fused, because)


@pytest.mark.parametrize("name", list(regions_checks.GATHERED))
def test_gathered_along_another_dimension(pair: World, name: str) -> None:
    for fused, because in pair.run(regions_checks.gathers, "gloo", name=name):
        assert regions_checks.GATHERED[name][1] in fused, (fused, because)


@pytest.mark.parametrize("name", list(regions_checks.KEPT))
def test_says_what_keeps_a_concatenation(pair: World, name: str) -> None:
    for because in pair.run(regions_checks.says_why, "gloo", name=name):
        assert because == (regions_checks.KEPT[name][1],)


@pytest.mark.parametrize(
    ("most", "sizes", "option"),
    [(1 << 20, [3072, 2048], True), (3000 * 4, [3000], True), (4000 * 4, [3072, 928], True), (1 << 20, [], False)],
)
def test_prefetches_weights(pair: World, most: int, sizes: list[int], option: bool) -> None:
    """Weights that lie in one piece, in the order in which matmuls read them, and a part where not all fits."""
    for taken in pair.run(regions_checks.prefetches, "gloo", most=most, option=option):
        assert taken == [f"%n{i}: tensor<{size}xf32>" for i, size in enumerate(sizes)]
