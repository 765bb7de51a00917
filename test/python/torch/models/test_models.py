"""torch.compile on models of transformers, if it is installed. table.py has all models."""

from __future__ import annotations

import importlib.util

import model_checks
import pytest
from harness import World


def _needs_transformers() -> None:
    for package in ("transformers", "accelerate"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize(
    ("name", "dtype", "steps", "plan"),
    [
        ("Llama", "bf16", ["forward", "training", "decoding"], "own"),
        ("GPT-NeoX", "f32", ["training"], "own"),
        ("DeepSeek-V3", "f32", ["training"], "module"),
        ("GLM-4-MoE", "bf16", ["training"], "own"),
    ],
)
def test_model(pair: World, name: str, dtype: str, steps: list[str], plan: str) -> None:
    _needs_transformers()
    said = pair.run(model_checks.check, "commsir", name=name, dtype=dtype, steps=steps, plan=plan)
    assert said[0] == said[1], "ranks have fused different things"
    for step, collectives, kernels, left in said[0]:
        assert collectives and kernels, said
        assert step.startswith("training") or all(model_checks.NOTHING in why for why in left), (step, left)
        assert step == "decoding" or len(left) <= 1, (step, left)
    # The gradients of q, k and v, and of gate and up, or of both branches, are summed up once.
    backward = [row for row in said[0] if "backward" in row[0] or "training, forward" in row[0]]
    assert any(kernels < collectives for _, collectives, kernels, _ in backward), said


def test_generates(pair: World) -> None:
    _needs_transformers()
    how = {"do_sample": True, "cache_implementation": "static"}
    # A graph of the prompt, and one of each further token.
    assert pair.run(model_checks.generates, "commsir", name="Llama", **how) == [10, 10]


@pytest.mark.parametrize("how", list(model_checks.LOOPS))
def test_training_loops(pair: World, how: str) -> None:
    _needs_transformers()
    said = pair.run(model_checks.trains, "commsir", name="Llama", how=how)
    assert said[0] == said[1] and len(said[0]) >= 5, said
    narrowed = [one for one in said[0] if one[:2] == ["prims.convert_element_type"] * 2]
    assert len(narrowed) == (5 if how == "autocast" else 0), said
