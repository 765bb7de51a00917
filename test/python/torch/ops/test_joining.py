"""torch.compile: collectives that a graph does not need."""

from __future__ import annotations

import joining_checks
import pytest
import torch
from commsir.torch.fusion_timing import Call
from commsir.torch.region_lines import in_one_line
from harness import World


@pytest.mark.parametrize("name", list(joining_checks.JOINED))
def test_joins(pair: World, name: str) -> None:
    dtype = torch.bfloat16 if name in ("three", "gathered_twice") else torch.float32
    for said in pair.run(joining_checks.joins, "gloo", name=name, dtype=dtype):
        assert [joined for joined, _ in said] == joining_checks.JOINED[name][1]


@pytest.mark.parametrize("name", [*joining_checks.SUMMED_FIRST, "other_sums"])
def test_sums_first(pair: World, name: str) -> None:
    for shapes in pair.run(joining_checks.shapes, "gloo", name=name):
        want = joining_checks.SUMMED_FIRST.get(name)
        assert shapes == ([(8, joining_checks.WIDTH)] * 4 if want is None else [want])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(joining_checks.OWN))
def test_own_parts_alone(pair: World, name: str, dtype: torch.dtype) -> None:
    for said, fused, calls in pair.run(joining_checks.own_parts, "gloo", name=name, dtype=dtype):
        assert said == [("all_reduce", joining_checks.OWN[name][1])] and calls == 0, (said, calls)
        assert fused[0][0] == "aten.slice.Tensor", fused


def test_one_rank_reads_another_part(pair: World) -> None:
    """Ranks do not want the same kernel: each runs the group's all_reduce."""
    call = {"name": "own_columns", "dtype": torch.float32, "some": True}
    assert [calls for _, _, calls in pair.run(joining_checks.own_parts, "gloo", timeout=30, **call)] == [1, 1]


@pytest.mark.parametrize("name", list(joining_checks.LEFT))
def test_leaves(pair: World, name: str) -> None:
    for said in pair.run(joining_checks.joins, "gloo", name=name, dtype=torch.float32):
        assert all(joined == 1 for joined, _ in said)
        whys = [why for _, because in said for why in because]
        assert any("but others begin between them: _c10d_functional.all_reduce at" in why for why in whys) == (
            name == "another_between"
        )


def test_can_be_turned_off(pair: World) -> None:
    for said in pair.run(joining_checks.joins, "gloo", name="two", dtype=torch.float32, join_sums=False):
        assert [joined for joined, _ in said] == [1, 1]


@pytest.mark.parametrize("name", ["two", "over_experts", "routed_and_shared"])
def test_one_rank_has_it_turned_off(pair: World, name: str) -> None:
    """Nobody waits for a collective that the others do not begin."""
    said = pair.run(joining_checks.joins_on_some, "gloo", name=name, timeout=30)
    (count,) = joining_checks.JOINED[name][1]
    assert said == [[count], [1] * count]


def test_four_ranks(world: World) -> None:
    for said in world.run(joining_checks.joins, "commsir", name="two", dtype=torch.float32):
        assert [joined for joined, _ in said] == [2]


def test_same_bits_on_all_ranks(world: World) -> None:
    assert len(set(world.run(joining_checks.same_bits, "gloo"))) == 1


@pytest.mark.parametrize("name", list(joining_checks.JOINED))
def test_no_collective_of_the_group_is_left(pair: World, name: str) -> None:
    assert pair.run(joining_checks.calls, "gloo", name=name) == [0, 0]


def test_measures_what_all_ranks_have(pair: World) -> None:
    for (joined, other), table in pair.run(joining_checks.measures, "gloo"):
        assert joined is not None and f"{joined:.1f}" in table
        assert other is None


def test_shows_nodes_in_one_line_each(pair: World) -> None:
    """Inductor's comments in generated code end with the line."""
    pair.run(joining_checks.in_lines, "commsir")


def test_a_region_in_one_line() -> None:
    text = '(%a: f32) {\n  // One "comment.\n  %0 = x.y "of // slashes" : f32 // Another.\n\n  comms.yield %0\n}'
    assert in_one_line(text) == '(%a: f32) { %0 = x.y "of // slashes" : f32 comms.yield %0 }'
    assert in_one_line(in_one_line(text)) == in_one_line(text)


def test_calls_of_two_gpus_are_the_same() -> None:
    """GPUs of ranks have other numbers."""

    def digest(device: str, rows: int = 4) -> str:
        rest = ("sum", "text", "f32", (16,), "group", ())
        like = ((rows, 16), torch.float32, device)
        return Call("all_reduce", like, (like,), *rest).digest

    assert digest("cuda:0") == digest("cuda:1") != digest("cuda:1", rows=8) != digest("cpu", rows=8)
