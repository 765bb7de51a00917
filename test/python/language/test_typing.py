"""What static checkers see of kernels."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


def test_static_types(tmp_path: Path) -> None:
    """mypy --strict takes an example as it is, and finds a wrong argument."""
    pytest.importorskip("mypy")
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "typed.py"
    good = Path(importlib.import_module("commsir.examples.one_shot").__file__ or "").read_text()
    program.write_text(good + "\n\ndef wrong(x: f32[Window, 8]) -> None:\n    x.peer(0, 3)\n    x.locall()\n")
    others = "".join(
        f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("numpy", "tvm_ffi", "torch", "matplotlib")
    )
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\nfollow_imports = silent\nincremental = false\n{others}")
    out, _, _ = api.run(["--config-file", str(tmp_path / "mypy.ini"), str(program)])
    assert 'incompatible type "int"; expected "Team | None"' in out and 'no attribute "locall"' in out, out
    assert out.count("error:") == 2, out
