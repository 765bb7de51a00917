"""Matmuls beside collectives: the ops, and where torch.compile takes them. GPUs: test/gpu/matmul.py."""

from __future__ import annotations

import matmul_checks
import pytest
import torch
from commsir.torch.matmul import model
from harness import World

_MM, _ADDMM, _BMM = "aten.mm", "aten.addmm", "aten.bmm"
#: What goes into an op with each collective of a function, in order.
_INTO: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "column_parallel": [("all_gather", (_MM,))],
    "three_readers": [("all_gather", (_MM, _ADDMM, _MM))],
    "rows_are_kept": [("all_gather", (_MM,))],
    "of_three_dimensions": [("all_gather", (_MM,))],
    "row_parallel": [("reduce_scatter", (_MM,))],
    "all_rows": [("all_reduce", (_MM,))],
    "batches": [("all_reduce", (_BMM,))],
    "gathered_batches": [("all_gather", (_BMM,))],
    "scattered_batches": [("reduce_scatter", (_BMM,))],
    "a_layer": [("all_gather", (_MM,)), ("reduce_scatter", (_MM,))],
}


@pytest.mark.parametrize("shape", [(8, 32), (4, 3, 16), (5, 24), (4, 0), (0, 16)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products(world: World, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    world.run(matmul_checks.products, "gloo", dtype=dtype, shape=shape, columns=24)


def test_mistakes(pair: World) -> None:
    for said in pair.run(matmul_checks.mistakes, "gloo"):
        transposed, flat, types, rows, gradient, scales, bias, biases = said
        assert "(6, 8) by (4, 8)" in transposed and "the first of the second" in transposed
        assert "(8,) by (8, 4)" in flat and "two dimensions or more" in flat
        assert "torch.float32" in types and "torch.float64" in types
        assert "3 rows cannot be shared out to 2 ranks" in rows
        assert "matmul_all_reduce has no derivative" in gradient
        assert "float8_e4m3fn has scales" in scales and "torch._scaled_mm" in scales
        assert "a bias of (8,) for a weight of (8, 4)" in bias
        assert "1 weights have 2 biases" in biases


@pytest.mark.parametrize("name", list(matmul_checks.TAKEN))
def test_takes(pair: World, name: str) -> None:
    said: list[tuple[str, tuple[str, ...]]]
    for said in pair.run(matmul_checks.compiles, "gloo", name=name):
        assert [(op, sorted(into)) for op, into in said] == [(op, sorted(into)) for op, into in _INTO[name]]


@pytest.mark.parametrize("name", list(matmul_checks.LEFT))
def test_leaves(pair: World, name: str) -> None:
    for said in pair.run(matmul_checks.compiles, "gloo", name=name):
        assert len(said) == 1 and not {_MM, _BMM} & {*said[0][1]}


@pytest.mark.parametrize("name", ["experts", "gathered_experts", "batches_elsewhere"])
def test_says_which_matmuls_are_left(pair: World, name: str) -> None:
    assert all("aten.bmm.default beside it" in said for said in pair.run(matmul_checks.says, "gloo", name=name))


@pytest.mark.parametrize(
    ("dtype", "n", "said"),
    [(torch.float32, 16, "torch.float32 are not"), (torch.bfloat16, 12, "[16, 12]"), (torch.bfloat16, 16, "9.0")],
)
def test_model_says_why_not(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, n: int, said: str) -> None:
    monkeypatch.setattr(model, "_processors", lambda device: 0)
    choice = model.choose("all_reduce", 2, 64, n, 16, dtype, torch.device("cuda", 0))
    assert not choice.blocks and said in str(choice)


def test_sums_stay_where_they_overlap(pair: World) -> None:
    for said in pair.run(matmul_checks.sums_overlap, "gloo"):
        assert [(joined, fused) for joined, fused, _ in said] == [(1, (_MM,))] * 2
        assert all("overlap with their matmuls" in why for _, _, why in said)


def test_trains(pair: World) -> None:
    for said in pair.run(matmul_checks.trains, "gloo"):
        # Backward, the gradient of what was scattered is gathered for two matmuls, one of which has it as its weight.
        assert [name for name, _ in said] == ["all_gather", "reduce_scatter", "all_gather", "reduce_scatter"]
        assert all(fused for _, fused in (said[0], said[1], said[3]))


def test_ranks_differ(pair: World) -> None:
    there, left = pair.run(matmul_checks.ranks_differ, "gloo")
    assert there == _INTO["a_layer"]
    assert all(_MM not in fused for _, fused in left)


def test_no_choice_on_the_cpu(pair: World) -> None:
    for said in pair.run(matmul_checks.chooses, "gloo"):
        assert said == [0, 0, 0, 0]


def test_model_never_takes_what_it_says_is_slower() -> None:
    """Of a chip with 132 processors, over sizes that a model has and some that it has not."""
    for op in ("all_gather", "reduce_scatter", "all_reduce"):
        taken = 0
        for ranks in (2, 4, 8):
            for rows in (ranks, 8 * ranks, 1000, 1024, 4096, 8192):
                for n, k in ((1024, 8192), (8192, 1024), (8192, 4096), (28672, 8192)):
                    choice = model._best(op, model._Sizes(ranks, rows, n, k, 2, 132))
                    assert not choice.blocks or choice.overlapped < choice.plain
                    assert op == "all_gather" or not choice.blocks or rows % (ranks * choice.blocks) == 0
                    taken += choice.blocks > 0
        assert taken > 10
