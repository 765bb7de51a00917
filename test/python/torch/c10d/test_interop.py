"""Uses of process groups with other code: your own kernels, and foreign memory."""

from __future__ import annotations

import interop_checks
import pytest
from harness import World


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
@pytest.mark.parametrize("check", ["kernels", "pools"])
def test_interop(world: World, check: str, backend: str) -> None:
    world.run(getattr(interop_checks, check), backend)
