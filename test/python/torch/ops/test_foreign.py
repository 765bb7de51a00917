"""torch.compile: operations of other libraries that are collectives."""

from __future__ import annotations

import foreign_checks
import pytest
from commsir.errors import UsageError
from commsir.torch import foreign_collectives
from harness import World


@pytest.mark.parametrize("name", list(foreign_checks.ALONG))
def test_along_any_dimension(pair: World, name: str) -> None:
    for fused, because, _ in pair.run(foreign_checks.along, "commsir", name=name):
        assert foreign_checks.ALONG[name][1] in fused, (fused, because)


@pytest.mark.parametrize("name", list(foreign_checks.ALONE))
def test_stays_where_nothing_is_fused(pair: World, name: str) -> None:
    for fused, _, left in pair.run(foreign_checks.along, "commsir", name=name):
        assert not fused
        assert any("checks.tp_" in one for one in left) and not any("_c10d_functional" in one for one in left), left


@pytest.mark.parametrize("in_place", [False, True])
def test_keeps_the_order_of_collectives(pair: World, in_place: bool) -> None:
    """One that is known only by its name does not move before another one."""
    because, _ = pair.run(foreign_checks.keeps_order, "commsir", in_place=in_place)
    assert any("once a later collective has begun" in one for one in because), because


#: Groups that operations run in: that of all ranks, one of some, and one that the registered group does not count.
_OF = ["world", "half", "own"]


def _check_engine(world: World, of: str) -> None:
    for ran in world.run(foreign_checks.engine, "commsir", names=list(foreign_checks.ENGINE), of=of, timeout=60):
        for name, (_, is_fused) in foreign_checks.ENGINE.items():
            assert (ran[name][-1] == 0) == is_fused, (name, ran[name])


@pytest.mark.parametrize("of", _OF)
def test_an_engine(pair: World, of: str) -> None:
    """Operations that write in place or into a result, return pieces, or take more than torch's collective."""
    _check_engine(pair, of)


@pytest.mark.parametrize("of", ["half", "own"])
def test_an_engine_of_four_ranks(world: World, of: str) -> None:
    _check_engine(world, of)


def _check_registrations(world: World, how: str, of: str) -> None:
    outcomes = world.run(foreign_checks.differ, "commsir", how=how, of=of, timeout=60)
    for ran in outcomes:
        assert (ran["norm"][-1] == 0) == foreign_checks.REGISTRATIONS[how][1], ran
        assert ran["norm again"][-1] == ran["norm"][-1] and all(ran["another"]), ran


@pytest.mark.parametrize("of", _OF)
@pytest.mark.parametrize("how", list(foreign_checks.REGISTRATIONS))
def test_registrations(pair: World, how: str, of: str) -> None:
    """Ranks that register different operations give the results of the operations."""
    _check_registrations(pair, how, of)


@pytest.mark.parametrize("how", ["same", "last rank not", "one each"])
def test_registrations_of_four_ranks(world: World, how: str) -> None:
    _check_registrations(world, how, "own")


@pytest.mark.cpu_alone("on GPUs a rank cannot leave what all have agreed on")
@pytest.mark.parametrize("of", _OF)
def test_one_rank_changes(pair: World, of: str) -> None:
    """After ranks have agreed, one has another graph in calls 2 and 5."""
    for ran in pair.run(foreign_checks.change, "commsir", of=of, timeout=60):
        assert ran == [1, 0, 1, 0, 0, 1, 0, 0], ran


@pytest.mark.parametrize("of", _OF)
def test_one_rank_does_not_compile(pair: World, of: str) -> None:
    for ran in pair.run(foreign_checks.not_compiled, "commsir", of=of, timeout=60):
        assert ran == [1] * foreign_checks.CALLS, ran


@pytest.mark.parametrize("of", _OF)
@pytest.mark.parametrize("how", ["same", "last rank not", "one each"])
def test_matmuls_before_them(pair: World, of: str, how: str) -> None:
    """On the CPU the operations run behind the matmuls that their op makes; so they do where ranks differ."""
    for fused, ran in pair.run(foreign_checks.multiplied, "commsir", of=of, how=how, timeout=60):
        assert ran == [2] * foreign_checks.CALLS, ran
        if how == "same":
            assert all("aten.mm" in names for names in fused) and len(fused) == 2, fused


@pytest.mark.parametrize("of", _OF)
def test_gradients(pair: World, of: str) -> None:
    for forward, backward in pair.run(foreign_checks.gradients, "commsir", of=of, timeout=60):
        assert "aten.rsqrt" in forward and backward, (forward, backward)


@pytest.mark.parametrize("name", list(foreign_checks.LEFT))
def test_says_why_one_stays(pair: World, name: str) -> None:
    for because in pair.run(foreign_checks.left, "commsir", name=name):
        assert any(foreign_checks.LEFT[name][2] in one for one in because), because


@pytest.mark.parametrize("name", list(foreign_checks.REFUSED))
def test_refuses(name: str) -> None:
    operation, said = foreign_checks.REFUSED[name]
    with pytest.raises(UsageError, match=said):
        foreign_collectives.register_collective(operation, "all_reduce")


def test_refuses_groups_of_nothing() -> None:
    with pytest.raises(UsageError, match="an argument group_name, group or process_group, but checks.* takes x, dim"):
        foreign_collectives.register_collective(foreign_checks._gather, "all_gather", groups={"tp": "0"})


def test_unknown_sizes(pair: World) -> None:
    for fused, ran in pair.run(foreign_checks.unknown_sizes, "commsir", timeout=60):
        assert "aten.rsqrt" in fused and ran == [1, 0, 0, 0, 1, 0], (fused, ran)
