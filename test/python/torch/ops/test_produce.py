"""torch.compile: arithmetic before a collective."""

from __future__ import annotations

import produce_checks
import pytest
from harness import World
from reporting_checks import without_numbers

_IN_PASSING = "is made in passing by the kernel before it"
#: What is said of matmuls on GPUs alone.
_OF_GPUS = "matmuls of torch.float32 are not overlapped"


@pytest.mark.parametrize("name", list(produce_checks.PRODUCED))
def test_goes_into_the_kernel(pair: World, name: str) -> None:
    operation = produce_checks.PRODUCED[name][1]
    for said in pair.run(produce_checks.produces, "commsir", name=name):
        produced, _, _, text = said[-1]
        # On GPUs Inductor's kernel before it may make what is sent.
        passing = pair.tensors == "cuda" and _IN_PASSING in text
        assert passing or any(operation in one for one in produced), text
        assert "produce: " in text


@pytest.mark.parametrize("name", ["norm_before_gather", "fp8_of_tensor", "gelu_before_reduce"])
def test_takes_rows_of_any_number(pair: World, name: str) -> None:
    for ((produced, _, _, text),) in pair.run(produce_checks.produces, "commsir", name=name, dynamic=True):
        assert produced, text


@pytest.mark.parametrize("name", list(produce_checks.KEPT))
def test_gives_reasons(pair: World, name: str) -> None:
    for said in pair.run(produce_checks.produces, "commsir", name=name):
        produced, _, because, text = said[-1]
        said_here = tuple(without_numbers(one) for one in because)
        said_here = tuple(one for one in said_here if not one.startswith(_OF_GPUS))
        assert not produced and said_here == tuple(filter(None, [produce_checks.KEPT[name][1]])), text
