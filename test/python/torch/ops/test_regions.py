"""torch.compile: contents of regions."""

from __future__ import annotations

import pytest
import regions_checks
import torch
from commsir.torch.regions import Region, Tile, Unsupported
from harness import World
from reporting_checks import without_numbers

#: The rest is done in float32.
_IN_BFLOAT16 = {"masked", "overwritten", "norm_over_heads", "over_the_batch", "running_sums"}


@pytest.mark.parametrize("name", list(regions_checks.FUSED))
def test_holds(pair: World, name: str) -> None:
    dtype = torch.bfloat16 if name in _IN_BFLOAT16 else torch.float32
    outside = regions_checks.FUSED[name][1]
    for fused, because in pair.run(regions_checks.fuses, "gloo", name=name, dtype=dtype):
        assert fused and len(because) == len(outside), (fused, because)
        assert not any("<" in one for one in fused), fused
        assert all(part in why for part, why in zip(outside, because, strict=True)), because


@pytest.mark.parametrize(
    "name",
    [
        "masked",
        "overwritten",
        "norm_over_heads",
        "group_quantized",
        "over_the_batch",
        "of_heads_and_rows",
        "largest",
        "sorted_rows",
    ],
)
def test_holds_rows_of_any_number(pair: World, name: str) -> None:
    for fused, because in pair.run(regions_checks.fuses, "gloo", name=name, dtype=torch.float32, dynamic=True):
        assert fused and not because, (fused, because)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", list(regions_checks.STORED))
def test_reads_what_it_stores(pair: World, name: str, dtype: torch.dtype) -> None:
    """Gradients of a softmax are those of the rows that the backward pass reads."""
    assert max(pair.run(regions_checks.stores, "gloo", name=name, dtype=dtype)) < 1e-5


@pytest.mark.parametrize("name", list(regions_checks.GATHERED))
def test_gathered_along_another_dimension(pair: World, name: str) -> None:
    for fused, because in pair.run(regions_checks.gathers, "gloo", name=name):
        assert regions_checks.GATHERED[name][1] in fused, (fused, because)


@pytest.mark.parametrize("name", ["logits", "of_flat_rows", "softmax_of_all", "loss_of_all", "norm_of_all"])
def test_gathers_batches_of_any_size(pair: World, name: str) -> None:
    for fused, because in pair.run(regions_checks.gathers, "gloo", name=name, dynamic=True):
        assert regions_checks.GATHERED[name][1] in fused, (fused, because)


@pytest.mark.parametrize("name", list(regions_checks.KEPT))
def test_reports_the_reason_for_a_concatenation(pair: World, name: str) -> None:
    for because in pair.run(regions_checks.says_why, "gloo", name=name):
        assert tuple(map(without_numbers, because)) == (regions_checks.KEPT[name][1],)


@pytest.mark.parametrize(
    ("most", "sizes", "option"),
    [(1 << 20, [3072, 2048], True), (3000 * 4, [3000], True), (4000 * 4, [3072, 928], True), (1 << 20, [], False)],
)
def test_prefetches_weights(pair: World, most: int, sizes: list[int], option: bool) -> None:
    """Weights that lie in one piece, in the order in which matmuls read them, and a part where not all fits."""
    for taken in pair.run(regions_checks.prefetches, "gloo", most=most, option=option):
        assert taken == [f"%n{i}: tensor<{size}xf32>" for i, size in enumerate(sizes)]


def test_parts_that_do_not_fit() -> None:
    """A row of 80,000 bytes, and what is joined of it, are more than a block has on every GPU."""
    region = Region(20000, 4, ["f32"], device=torch.device("cuda"))
    row = Tile("%w0", 20000)
    parts = [region.part(row, 8, 12000), region.part(row, 0, 8)]
    with pytest.raises(Unsupported, match="pass through 128032 bytes of shared memory, more than 98304"):
        region.joined(parts)
    region.device = torch.device("cpu")
    assert region.joined(parts).width == 12008
