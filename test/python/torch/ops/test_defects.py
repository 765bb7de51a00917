"""torch.compile: the effect of a defect in the pass, or in one of its kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import defects_checks
import injected_checks
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


@pytest.mark.parametrize("alone", [False, True])
def test_each_function_raises_once(pair: World, alone: bool) -> None:
    for done, wrong in pair.run(injected_checks.raises_once, "commsir", alone=alone):
        assert len(done) > (30 if alone else 200) and not wrong, wrong


def test_programs_repeat_defects(pair: World) -> None:
    said = pair.run(injected_checks.writes_programs, "commsir")
    for name, path in zip(injected_checks.REPEATED, said[0], strict=True):
        code = f"import injected_checks; injected_checks.repeat({name!r}, {path!r})"
        paths = os.pathsep.join(one for one in sys.path if one)
        ran = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert ran.returncode and "_Injected: none of these" in ran.stderr, ran.stderr
    for path in (one for paths in said for one in paths):
        assert "CollectivePass(None, True, True)" in Path(path).read_text()
        shutil.rmtree(Path(path).parent)


@pytest.mark.parametrize(
    ("module", "name", "fused"),
    [("lowerings", "lower", 0), ("gather_layouts", "let_trace", 1), ("compile", "_sources", 1)],
)
def test_what_prepares_has_a_defect(pair: World, module: str, name: str, fused: int) -> None:
    for texts, kernels in pair.run(injected_checks.prepares, "commsir", module=module, name=name):
        assert len(texts) == 1 and "_Injected: none of these" in texts[0] and kernels == fused, (texts, kernels)
