"""torch.compile: slices of a collective's result, and rows concatenated from it, on two ranks and on three."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import parts_checks as checks
import pytest
from conftest import world_of
from harness import World
from reporting_checks import without_numbers

#: Where not all is fused: what is said of the first collective.
_LEFT = {
    "some_rows": "other rows than the collective's result",
    "some_of_the_others": "takes elements that do not lie side by side",
    "rows_joined": "other rows than the collective's result",
    "aligned_otherwise": "along other dimensions than rows",
    "before_a_matmul": "aten.mm at parts_checks.py is not among",
    "many_parts": "24 of its values are needed elsewhere, a kernel writes 16: it ends before",
    "written_later": "aten.copy at parts_checks.py is not among",
    "of_integers": "it is of torch.int64",
    "gathered": "needs what all ranks have sent, along dimension 1",
    "sent_joined": "nothing that aten.cat at parts_checks.py ",
    "no_rows": "cuts rows, or joins them",
    "no_columns": "has no elements",
    "of_several": "which is there once a later collective has begun",
    "rolled": "prims.rev at parts_checks.py is not among",
}
#: Those of them whose first collective stays as it is.
_WHOLE = {
    *(
        "some_rows",
        "some_of_the_others",
        "rows_joined",
        "aligned_otherwise",
        "of_integers",
        "gathered",
        "no_rows",
        "of_several",
    ),
    "rolled",
}


@pytest.fixture(scope="module")
def trio(request: pytest.FixtureRequest) -> Iterator[World]:
    yield from world_of(request, 3, "torch._dynamo", "torch._inductor.compile_fx")


@pytest.mark.parametrize("ranks", ["pair", "trio"])
@pytest.mark.parametrize("name", list(checks.PARTS))
def test_gives_the_same(request: Any, name: str, ranks: str) -> None:
    for said in request.getfixturevalue(ranks).run(checks.gives_the_same, "gloo", names=[name], timeout=60):
        fused, because = said[name][0]
        assert (fused == 0) == (name in _WHOLE), said
        if name == "sent" and request.config.getoption("--tensors") == "cuda":
            assert "is made in passing by the kernel before it" in because, said
        else:
            assert _LEFT[name] in without_numbers(because) if name in _LEFT else not because, said
