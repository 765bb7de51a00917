"""docs/PythonKernels.md: its code runs from top to bottom and prints what it says."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "PythonKernels.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= 8
    for i, (code, printed) in enumerate(blocks):
        file = tmp_path / f"block{i}.py"
        file.write_text(code)
        linecache.checkcache(str(file))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(file), "exec"), names)
        if printed:
            pattern = re.escape(printed).replace("…", ".*?")
            assert re.fullmatch(pattern, out.getvalue(), re.DOTALL), out.getvalue()
