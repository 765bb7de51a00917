"""Odd operands of the matmuls with collectives: the right result, or an error that says what is wrong."""

from __future__ import annotations

import matmul_checks
import odd_checks
import pytest
from harness import World

_SHAPES, _FP8 = "the first of the second", "has scales; give row_scale and scale"
_TYPES, _PLACES, _SPARSE = "give tensors of one type", "move them to one device", "commsir::"
#: Operands that calls refuse, and what is said.
_REFUSED = {
    "bool": "'Bool'",
    "float8_e4m3fn": _FP8,
    "float8_e5m2": _FP8,
    "bfloat16 by float32": _TYPES,
    "float32 by bfloat16": _TYPES,
    "float32 by int32": _TYPES,
    "other terms": _SHAPES,
    "weight of one dimension": _SHAPES,
    "weight of three dimensions": _SHAPES,
    "weight without dimensions": _SHAPES,
    "rows of one dimension": _SHAPES,
    "rows without dimensions": _SHAPES,
    "rows elsewhere": _PLACES,
    "weight elsewhere": _PLACES,
    "sparse rows": _SPARSE,
    "sparse weight": _SPARSE,
    "compressed weight": _SPARSE,
}
_UNSHARED = {"rows that cannot be shared": "cannot be shared out"}


def _check(op: str, said: dict[str, str]) -> None:
    shares = op not in ("all_gather_matmul", "matmul_all_reduce")
    refused = {**_REFUSED, **(_UNSHARED if shares else {})}
    wrong = {
        name: what for name, what in said.items() if (refused[name] not in what if name in refused else what != "")
    }
    # GPUs multiply no integers.
    wrong = {name: what for name, what in wrong.items() if '_cuda" not implemented for' not in what}
    assert not wrong and refused.keys() <= said.keys()


@pytest.mark.parametrize("op", list(odd_checks.CALLS))
def test_operands(pair: World, op: str) -> None:
    for said in pair.run(odd_checks.outcomes, "commsir", op=op):
        _check(op, said)


@pytest.mark.parametrize("op", ["matmul_all_reduce", "all_to_all_matmul"])
def test_operands_of_four_ranks(world: World, op: str) -> None:
    for said in world.run(odd_checks.outcomes, "gloo", op=op):
        _check(op, said)


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_mistakes_are_named(pair: World, backend: str) -> None:
    for said in pair.run(odd_checks.mistakes, backend):
        wrong = {name: said[name] for name, (_, want) in odd_checks.MISTAKES.items() if want not in said[name]}
        assert not wrong


def test_equal_calls(pair: World) -> None:
    for said in pair.run(odd_checks.equals, "commsir"):
        assert not any(said.values()), said


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("op", ["all_gather", "all_to_all_before", "reduce_scatter", "all_reduce", "all_to_all"])
def test_operands_overlapped(monkeypatch: pytest.MonkeyPatch, op: str, blocks: int, ranks: int) -> None:
    """The ways of GPUs, with threads for ranks and their memory for symmetric memory."""
    with matmul_checks.threads_for_ranks(monkeypatch, ranks) as run:
        said = odd_checks.overlap(monkeypatch, run, ranks, op, blocks)
    wrong = {name: what for name, what in said.items() if (_REFUSED[name] not in what if name in _REFUSED else what)}
    assert not wrong and len(said) > 30
