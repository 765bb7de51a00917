"""Measured tables that a program loads while it runs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import commsir
import numpy as np
import pytest
from conftest import sum_of


def write_table(path: Path, algorithm: str) -> Path:
    section = {"op": "all_reduce", "type": "f32", "columns": 0, "points": [[160, 0, 1.0]]}
    recipe = [algorithm, "pull", 0, 1, 1, 1]
    head = {"format": "commsir-table-1", "device": "", "chip": "cpu", "ranks": 3, "date": "2026-11-22"}
    path.write_text(json.dumps({**head, "recipes": [recipe], "sections": [section]}))
    return path


def chosen() -> str:
    x = [np.full(40, rank, np.float32) for rank in range(3)]
    y = [np.zeros_like(part) for part in x]
    report: dict[str, Any] = commsir.simulate(sum_of("f32"), ranks=3, arrays={"x": x, "y": y})
    for part in y:
        np.testing.assert_array_equal(part, np.full(40, 3, np.float32))
    return str(report["choices"][0]["algorithm"])


def test_later_choices_use_the_last_table(tmp_path: Path) -> None:
    before = chosen()
    for algorithm in ("two_shot", "ring", "one_shot"):
        commsir.load_tables(write_table(tmp_path / f"{algorithm}.json", algorithm))
        assert chosen() == algorithm
    commsir.load_tables(None)
    assert chosen() == before


def test_invalid_tables_change_nothing(tmp_path: Path) -> None:
    commsir.load_tables(write_table(tmp_path / "ring.json", "ring"))
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    try:
        for path, why in ((bad, "is not JSON"), (tmp_path / "none.json", "cannot read the table")):
            with pytest.raises(commsir.UsageError, match=why):
                commsir.load_tables(path)
            assert chosen() == "ring"
    finally:
        commsir.load_tables()


def test_a_folder_is_loaded_in_place_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    write_table(tmp_path / "tables" / "cpu-3.json", "two_shot")
    named = write_table(tmp_path / "ring.json", "ring")
    program = (
        "import commsir, sys; from test_tables import chosen; "
        "print(chosen()); commsir.load_tables(sys.argv[1]); print(chosen())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "tables")],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COMMSIR_TABLES": str(named)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["ring", "two_shot"]
