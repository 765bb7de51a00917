"""Kernels are pickled by name, as functions are."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import commsir
import pytest
from commsir import Array, f32
from commsir.examples.one_shot import one_shot


def test_a_kernel_is_found_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(one_shot)) is one_shot


def test_specializations_are_pickled() -> None:
    fixed = one_shot.specialize(ranks=4, n=64)
    got = pickle.loads(pickle.dumps(fixed))
    assert repr(got) == repr(fixed) and got is not one_shot and "ranks" not in one_shot.attributes
    assert got.text(locations=False) == fixed.text(locations=False)


def test_copies_share_no_numbers() -> None:
    for made in (copy.copy(one_shot), copy.deepcopy(one_shot)):
        made.attributes["ranks"] = 2
        assert not one_shot.attributes and made.parameters == one_shot.parameters


def _tell(kernel: commsir.Kernel) -> str:
    return repr(kernel)


def test_another_process_has_it() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_tell, (one_shot.specialize(ranks=2),)) == repr(one_shot.specialize(ranks=2))


def test_a_kernel_within_a_function_is_refused() -> None:
    @commsir.kernel
    def inner(x: f32[Array, 8]) -> None:
        pass

    with pytest.raises(pickle.PicklingError, match=r"inner cannot be pickled.*<locals>.*at the top of a module"):
        pickle.dumps(inner)
    assert copy.deepcopy(inner).__name__ == "inner"
