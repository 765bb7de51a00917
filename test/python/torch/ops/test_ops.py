"""torch.ops.commsir on the CPU with four ranks."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import ops_checks
import pytest
import torch
from harness import World


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_plain(world: World, backend: str, dtype: torch.dtype) -> None:
    world.run(ops_checks.plain, backend, dtype=dtype, shape=(8, 33))


def test_strided(world: World) -> None:
    world.run(ops_checks.strided, "gloo")


def test_lazy_outputs(world: World) -> None:
    world.run(ops_checks.lazy_outputs, "gloo")


def test_gradients(world: World) -> None:
    world.run(ops_checks.gradients, "gloo")


def test_without_derivatives(world: World) -> None:
    world.run(ops_checks.without_derivatives, "gloo")


def test_other_types(world: World) -> None:
    world.run(ops_checks.other_types, "gloo")


def test_subgroups(world: World) -> None:
    world.run(ops_checks.subgroups, "gloo")


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_counts(world: World, backend: str) -> None:
    world.run(ops_checks.counted, backend)


def test_a_name_that_is_used_again(world: World) -> None:
    world.run(ops_checks.renamed, "")


def test_mistakes(world: World) -> None:
    world.run(ops_checks.mistakes, "gloo")


def test_ranks_that_disagree(world: World) -> None:
    world.run(ops_checks.disagreeing, "gloo")


@pytest.mark.parametrize("check", [ops_checks.wrong_results, ops_checks.wrong_operands], ids=lambda c: str(c.__name__))
def test_results_that_do_not_fit(world: World, check: Any) -> None:
    world.run(check, "gloo")


def test_memory_that_one_rank_does_not_reach(world: World) -> None:
    world.run(ops_checks.not_symmetric, "gloo")


def test_symmetric_memory_of_gpus_with_other_numbers(world: World) -> None:
    world.run(ops_checks.symmetric_on_other_gpus, "gloo")


def test_symmetric_memory_that_a_rank_does_not_ask_for(world: World) -> None:
    world.run(ops_checks.symmetric_without_a_rank, "gloo", timeout=8)


@pytest.mark.parametrize("backend", ["gloo", "commsir"])
def test_ctrl_c(world: World, backend: str) -> None:
    waiting, seconds, later = world.run(ops_checks.interrupted, backend)[0]
    assert "interrupted while it waited" in waiting, waiting
    assert float(seconds.split()[0]) < 10, seconds
    assert "interrupted while it waited" in later, later


def test_fused(world: World) -> None:
    world.run(ops_checks.fused, "gloo")


def test_shared_arguments(world: World) -> None:
    world.run(ops_checks.shared_arguments, "gloo")


def test_warm_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Powers of two first, and odd counts between them: c10d/gpu_checks.py tries that nothing else is compiled."""
    import commsir.torch

    counts: list[int] = []
    seconds = commsir.torch.warm_up(counts.append, rows=20, progress=True)
    assert counts == [16, 8, 4, 2, 1, 20, 19, 17, 9, 5, 3]
    assert seconds >= 0
    assert "11 of 11 row counts" in capsys.readouterr().err
    counts.clear()
    commsir.torch.warm_up(counts.append, rows=[3, 5, 5])
    assert counts == [5] * 5 + [3] * 5
    counts.clear()
    commsir.torch.warm_up(counts.append, rows=(count for count in (3, 5)))
    assert counts == [5] * 5 + [3] * 5
    counts.clear()
    commsir.torch.warm_up(counts.append, rows=np.int64(2))  # type: ignore[arg-type]
    assert counts == [2, 1]
    with pytest.raises(ValueError, match="at least 1"):
        commsir.torch.warm_up(counts.append, rows=0)
    for wrong, said in (("4", "rows has '4'"), ([2, -1], "rows has -1"), ([2.5], "rows has 2.5"), (2.5, "rows=2.5")):
        with pytest.raises(ValueError, match=said):
            commsir.torch.warm_up(counts.append, rows=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="20 is not a function"):
        commsir.torch.warm_up(20, rows=4)  # type: ignore[arg-type]


def test_first_mistakes() -> None:
    """Each is told in the words of the call, before anything is sent."""
    import commsir.torch

    x, text = torch.ones(2, 4), "(%a: tensor<4xf32>) {\n  comms.yield %a : tensor<4xf32>\n}"
    with pytest.raises(commsir.UsageError, match="has an output at least"):
        commsir.torch.ops.prepare("all_reduce", text, [])
    with pytest.raises(commsir.UsageError, match=r"outputs has \('f32', 4\): an output is a torch.dtype"):
        commsir.torch.ops.prepare("all_reduce", text, [("f32", 4)])  # type: ignore[list-item]
    with pytest.raises(commsir.UsageError, match=r"outputs has \(torch.float32,\): an output is a torch.dtype"):
        commsir.torch.ops.prepare("all_reduce", text, [(torch.float32,)])  # type: ignore[list-item]
    for wrong in (
        torch.float32,
        (torch.float32, 4.5),
        (torch.float32, -4),
        (torch.float32, "4"),
        (torch.float32, True),
    ):
        with pytest.raises(
            commsir.UsageError, match=f"{re.escape(f'outputs has {wrong!r}')}: an output is a torch.dtype"
        ):
            commsir.torch.ops.prepare("all_reduce", text, [wrong])  # type: ignore[list-item]
    for right in ((torch.float32, np.int64(4)), [torch.float32, 4]):
        assert commsir.torch.ops._texts_of([right]) == ("f32", [4])  # type: ignore[list-item]
    with pytest.raises(commsir.UsageError, match=r"outputs has \(torch.complex64, 4\): kernels write real numbers"):
        commsir.torch.ops.prepare("all_reduce", text, [(torch.complex64, 4)])
    with pytest.raises(commsir.UsageError, match=r"a list of weights, one for each weight, but got one tensor"):
        commsir.torch.all_gather_matmul(x, torch.ones(4, 3))  # type: ignore[arg-type]
    with pytest.raises(commsir.UsageError, match="is not a subclass of commsir.torch.ProcessGroup"):
        commsir.torch.register_backend("mine", int)
    for name in ("gloo", "commsir"):
        with pytest.raises(commsir.UsageError, match=f"there is a backend '{name}' already"):
            commsir.torch.register_backend(name, commsir.torch.ProcessGroup)
