"""torch.compile on inputs with unusual layouts, odd sizes, or ranks that do not match."""

from __future__ import annotations

import awkward_checks
import pytest
from harness import World


@pytest.mark.parametrize("how", ["transposed", "every other", "repeated", "unaligned"])
@pytest.mark.parametrize("name", list(awkward_checks.WAYS))
def test_lies_elsewhere(pair: World, name: str, how: str) -> None:
    for said in pair.run(awkward_checks.runs, "gloo", name=name, how=how, rows=4, columns=16):
        assert said and all(fused for fused, _ in said), said


@pytest.mark.parametrize(("rows", "columns"), [(1, 17), (5, 33), (3, 2), (7, 1), (0, 16), (2, 0)])
@pytest.mark.parametrize("name", list(awkward_checks.WAYS))
def test_odd_sizes(pair: World, name: str, rows: int, columns: int) -> None:
    for said in pair.run(awkward_checks.runs, "gloo", name=name, how="", rows=rows, columns=columns):
        # On GPUs Inductor pads such a product, and takes a part of it.
        padded = pair.tensors == "cuda" and all("aten.slice" in " ".join(because) for _, because in said)
        assert said and (columns < 2 or padded or all(fused for fused, _ in said)), said


_NOT_COMPARED = pytest.mark.cpu_alone("GPUs compare no calls once ranks have agreed on them")
#: Behind or before a matmul, ranks run the process group's collective until they agree.
_PLAIN = pytest.mark.cpu_alone("GPUs compare the sizes of no plain collective: those that wait end at the timeout")


@pytest.mark.parametrize("agreed", [False, pytest.param(True, marks=_NOT_COMPARED)])
@pytest.mark.parametrize(
    "collective",
    [
        "all_reduce",
        "all_gather",
        pytest.param("matmul and all_reduce", marks=_PLAIN),
        pytest.param("all_gather and matmul", marks=_PLAIN),
    ],
)
def test_ranks_of_other_shapes(pair: World, collective: str, agreed: bool) -> None:
    for said in pair.run(awkward_checks.shapes_differ, "commsir", collective=collective, agreed=agreed):
        assert "differs between ranks" in said and "same collectives in the same order" in said, said


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
@pytest.mark.cpu_alone("on GPUs a rank cannot leave what all have agreed on")
def test_parts_of_another_size(pair: World, backend: str) -> None:
    whole = ("aten.relu", "aten.mul.Tensor")
    assert pair.run(awkward_checks.parts_change, backend) == [[whole], [whole, ()]]


def test_without_scales(pair: World) -> None:
    for said in pair.run(awkward_checks.without_scales, "gloo"):
        assert "scale" in said, said
