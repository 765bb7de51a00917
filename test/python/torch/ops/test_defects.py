"""torch.compile: the effect of a defect in the pass, or in one of its kernels."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import defects_checks
import pytest
from harness import World

#: What a kernel that cannot be made is told with; all others raise this error.
_TEXTS = {"kernel": "no kernel can be made of a"}
_ERROR = "IndexError: none of these"


@pytest.mark.parametrize("stage", list(defects_checks.STAGES))
def test_results_are_right(pair: World, stage: str) -> None:
    for texts in pair.run(defects_checks.contained, "commsir", stage=stage):
        assert texts and all(_TEXTS.get(stage, _ERROR) in text for text in texts), texts
        assert len(texts) == len(set(texts)) and all("results are right" in text for text in texts)
        for text in texts:
            if stage != "code":
                shutil.rmtree(Path(_program(text)).parent)


def _program(text: str) -> str:
    """The file that a warning names."""
    return text.split("/repeat.py`")[0].split(" ")[-1] + "/repeat.py"


@pytest.mark.parametrize("stage", list(defects_checks.STAGES))
def test_fails_our_tests(pair: World, stage: str) -> None:
    said = _ERROR.partition(": ")[2] if stage != "kernel" else "relu"
    assert all(said in one for one in pair.run(defects_checks.strict, "commsir", stage=stage))


def test_a_kernel_that_cannot_be_made_is_repeated(pair: World) -> None:
    for texts in pair.run(defects_checks.contained, "commsir", stage="kernel"):
        assert any("`torchrun --nproc-per-node 2 " in text for text in texts)
        for text in texts:
            ran = subprocess.run([sys.executable, _program(text)], capture_output=True, text=True, timeout=600)
            assert ran.returncode and "math.relu" in ran.stderr, ran.stderr
            shutil.rmtree(Path(_program(text)).parent)


@pytest.mark.parametrize("prepared", [False, True])
def test_after_ranks_have_agreed(pair: World, prepared: bool) -> None:
    """Other shapes come to a kernel that cannot be made: the process group's collective runs from then on."""
    for texts, begun in pair.run(defects_checks.after_agreement, "commsir", prepared=prepared):
        assert texts and all("no kernel can be made of a" in text for text in texts) and begun == 1, (texts, begun)


@pytest.mark.parametrize("kind", list(defects_checks.KINDS))
def test_regions_by_torch(pair: World, kind: str) -> None:
    # Gloo takes no fp8.
    for count in pair.run(defects_checks.by_torch, "commsir", kind=kind):
        assert count >= 2
