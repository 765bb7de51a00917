"""Programs for Accelerate and Hugging Face's Trainer, if they are installed: the test installs nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("package", ["accelerate", "transformers"])
def test_trains(package: str) -> None:
    if importlib.util.find_spec("accelerate") is None or importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    program = {"accelerate": "with_accelerate.py", "transformers": "with_trainer.py"}[package]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ran = subprocess.run(
        [*command, str(Path(__file__).with_name(program))], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0 and "trained over commsir" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize(("asked", "got"), [("commsir", "commsir"), ("gloo", "gloo"), ("none such", "gloo")])
def test_name_is_taken(monkeypatch: pytest.MonkeyPatch, asked: str, got: str) -> None:
    """As Accelerate does it, without Accelerate: a module that is imported later."""
    from types import ModuleType

    from commsir.torch import import_hooks

    class PartialState:
        def _prepare_backend(self, cpu: bool = False, sagemaker_dp: bool = False, backend: str | None = None) -> object:
            return "gloo", "MULTI_CPU"

    module = ModuleType("accelerate.state")
    module.PartialState = PartialState  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "accelerate.state", module)
    import_hooks.accept_in_accelerate("commsir")
    assert PartialState()._prepare_backend(True, backend=asked) == (got, "MULTI_CPU")
