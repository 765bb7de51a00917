"""torch.compile: operations of other libraries that are collectives."""

from __future__ import annotations

import foreign_checks
import pytest
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
