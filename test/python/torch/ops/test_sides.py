"""torch.compile: each kind of matmul on either side of each collective."""

from __future__ import annotations

import pytest
import sides_checks
from harness import World


@pytest.mark.parametrize("kind", list(sides_checks.KINDS))
def test_either_side(pair: World, kind: str) -> None:
    first, second = pair.run(sides_checks.compiles, "commsir", kind=kind)
    assert first == second, "ranks have fused different things"
    for collective, after, said in first:
        (one,) = said
        where = (kind, collective, after, one)
        assert one["collective"] == collective, where
        # On GPUs Inductor writes an addition before arithmetic as an operation of its own.
        kinds = {kind, "aten.mm"} if kind == "aten.addmm" and pair.tensors == "cuda" else {kind}
        assert bool(kinds & {*one["fused"]}) == sides_checks.taken(kind, collective, after), where
        # Arithmetic that no op takes along stays a kernel with its collective, or the report says why not.
        assert one["fused"] or one["produced"] or one["because"], where
