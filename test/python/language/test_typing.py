"""Static type checkers on kernels."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import tempfile
from collections.abc import Callable
from pathlib import Path

import commsir
import pytest


def test_static_types(tmp_path: Path) -> None:
    """mypy --strict takes an example as it is, and finds a wrong argument."""
    program = tmp_path / "typed.py"
    good = Path(importlib.import_module("commsir.examples.one_shot").__file__ or "").read_text()
    program.write_text(good + "\n\ndef wrong(x: f32[Window, 8]) -> None:\n    x.peer(0, 3)\n    x.locall()\n")
    out = _mypy(program)
    assert 'incompatible type "int"; expected "Team | None"' in out and 'no attribute "locall"' in out, out
    assert out.count("error:") == 2, out


def test_all_that_a_program_writes() -> None:
    """Values of every type, with their methods and operators, and all that is done with a kernel."""
    out = _mypy(Path(__file__).with_name("typed_program.py"))
    assert out.startswith("Success"), out


def test_help() -> None:
    """What editors show is there for `help` as well."""
    text = pydoc.plain(pydoc.render_doc(commsir.Window))
    assert "peer(self, peer: 'Index'" in text and "The part of rank `peer`" in text
    for name in commsir.__all__:
        assert inspect.getdoc(getattr(commsir, name)), name


def _mypy(program: Path) -> str:
    pytest.importorskip("mypy")
    api = pytest.importorskip("mypy.api")
    others = "".join(
        f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("numpy", "tvm_ffi", "torch", "matplotlib")
    )
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "mypy.ini"
        settings.write_text(f"[mypy]\nstrict = true\nfollow_imports = silent\nincremental = false\n{others}")
        out, _, _ = api.run(["--config-file", str(settings), str(program)])
    return str(out)


def test_unsupported_arithmetic_of_dimensions() -> None:
    n = commsir.dims("n")
    wrongs: list[Callable[[], object]] = [lambda: n / 2, lambda: -n, lambda: n % 2, lambda: n**2, lambda: n * 0.5]
    for wrong in wrongs:
        with pytest.raises(TypeError, match=r"annotations calculate dimensions with \+, -, \* and //"):
            wrong()
