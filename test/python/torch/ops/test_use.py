"""torch.compile: odd use of collectives and matmuls gives what it gives without."""

from __future__ import annotations

import pytest
import use_checks
from harness import World

_NAMES = list(use_checks.USES)
#: torch multiplies no whole numbers there, and Inductor makes whole numbers of masks that are gathered and inverted.
_NOT_ON_GPUS = ("whole numbers", "masks")


@pytest.mark.parametrize("how", list(use_checks.CIRCUMSTANCES))
@pytest.mark.parametrize("layer", list(use_checks.LAYERS))
def test_circumstances(pair: World, layer: str, how: str) -> None:
    assert all(pair.run(use_checks.is_called, "gloo", layer=layer, how=how))


def test_dynamic_rows(pair: World) -> None:
    assert all(pair.run(use_checks.is_called, "gloo", layer="a layer", how="rows that change", dynamic=True))


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
@pytest.mark.parametrize("names", [_NAMES[::2], _NAMES[1::2]], ids=["even", "odd"])
def test_uses(pair: World, names: list[str], backend: str) -> None:
    if pair.tensors == "cuda":
        names = [name for name in names if name not in _NOT_ON_GPUS]
    for met in pair.run(use_checks.are_used, backend, names=names):
        assert met >= len(names) - 1


@pytest.mark.parametrize("trains", [False, True])
def test_redistributes(pair: World, trains: bool) -> None:
    for met in pair.run(use_checks.redistributes, "commsir", trains=trains):
        assert met >= len(use_checks.REDISTRIBUTED)


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_groups_of_some_ranks(world: World, backend: str) -> None:
    for rank, met in enumerate(world.run(use_checks.in_groups, backend)):
        assert met >= 4 + rank % 2


@pytest.mark.parametrize("keeps", [True, False])
def test_goes_back_twice(pair: World, keeps: bool) -> None:
    assert all(met >= 3 for met in pair.run(use_checks.goes_back_twice, "gloo", keeps=keeps))


def test_nodes_out_of_order(pair: World) -> None:
    assert pair.run(use_checks.follows_a_pass, "gloo") == [["all_reduce"]] * 2


def test_ddp(pair: World) -> None:
    assert all("all_reduce" in met for met in pair.run(use_checks.learns_with_ddp, "gloo"))


@pytest.mark.parametrize("name", list(use_checks.EXTREMES))
def test_gradients_of_extremes(pair: World, name: str) -> None:
    """An extreme is saved for a backward graph only if other kernels compute its elements with the same bits."""
    for ((fused, because),) in pair.run(use_checks.extremes_learn, "commsir", name=name):
        assert "aten.sin" not in fused
        assert ("aten.amax" in fused) == (name == "exact"), (fused, because)
        wanted = [] if name == "exact" else [why for why in because if "which needs the same bits" in why]
        assert bool(wanted) == (name != "exact"), because
