"""Simulation: reports, traces, plots, schedules, tuning, and the examples."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import commsir
import numpy as np
import pytest
from commsir import _plot

Load = Callable[[str], ModuleType]

KERNEL = """
rows, n = dims("rows n")
@kernel
def k(x: f32[Window, rows, n], y: f32[Array, rows, n], factor: f32):
    barrier()
    for r in range(block_id(), rows, num_blocks()):
        total = zeros(n)
        for p in range(size()):
            total += x.peer(p)[r]
        y[r] = total * factor
    barrier()
"""


@pytest.fixture(scope="module")
def kernel(load: Load) -> commsir.Kernel:
    module = load(KERNEL)
    assert isinstance(module.k, commsir.Kernel)
    return module.k


X = np.arange(3 * 2 * 8, dtype=np.float32).reshape(3, 2, 8)


def test_outputs(kernel: commsir.Kernel) -> None:
    report = kernel.simulate(3, {"x": X, "factor": 2})
    for y in report["y"]:
        np.testing.assert_array_equal(y, X.sum(axis=0) * 2)
    with pytest.raises(KeyError, match="no array 'z'"):
        _ = report["z"]


def test_inputs_are_not_written(load: Load) -> None:
    module = load("@kernel\ndef k(y: f32[Array, 4]):\n    y[:] = 1.0\n")
    y = np.zeros(4, np.float32)
    assert module.k.simulate(2, {"y": y})["y"][1].sum() == 4
    assert y.sum() == 0


def test_ways_to_give_inputs(kernel: commsir.Kernel) -> None:
    """One array for all ranks, one a rank in a list or along the first dimension, other types that convert."""
    one = kernel.simulate(3, {"x": X[0], "factor": 1})["y"][0]
    np.testing.assert_array_equal(one, 3 * X[0])
    several = kernel.simulate(None, {"x": list(X.astype(np.float64)), "factor": [1, 2, 3]})["y"]
    for rank, y in enumerate(several):
        np.testing.assert_array_equal(y, X.sum(axis=0) * (rank + 1))


def test_schedules(kernel: commsir.Kernel) -> None:
    inputs = {"x": X, "factor": 1}
    assert kernel.simulate(3, inputs, fuzz=10).stats["fuzz"]["schedules"] == 10
    first, second = (kernel.simulate(3, inputs, seed=4, trace=True) for _ in range(2))
    order = [[(e["name"], e["pid"]) for e in report.events] for report in (first, second)]
    assert order[0] == order[1]


RACE = """
@kernel(blocks=1)
def k(x: f32[Window, 1], y: f32[Array, 1], s: Signal[1]):
    for p in for_peers():
        x.peer(p)[0] = f32(rank())
        signal(s[0], p)
    wait_signal(s[0], ge=epoch() * (size() - 1))
    y[0] = x[0]
    barrier()
"""


def test_schedules_that_differ(load: Load) -> None:
    """Two ranks write one element: the checker refuses it, and schedules show it."""
    k = load(RACE).k
    with pytest.raises(commsir.CheckError, match="no order between"):
        k.check(ranks=3)
    with pytest.raises(commsir.MismatchError, match=r"; simulate\(…, seed=(\d+)\) repeats it") as caught:
        k.simulate(3, fuzz=40, check=False)
    name, rank, at, there, here = re.findall(
        r"(\w+), rank (\d+), element \[(\d+)\]: (\S+) in the first schedule, (\S+) in this one", str(caught.value)
    )[0]
    again = k.simulate(3, check=False, seed=caught.value.details["seed"])
    assert float(again[name][int(rank)].flat[int(at)]) == float(here) != float(there)


def test_report_prints(kernel: commsir.Kernel) -> None:
    report = kernel.simulate(3, {"x": X, "factor": 1})
    text = repr(report)
    assert text.startswith("k: 3 ranks, 1 block each\n  compiled in ")
    assert "y: f32 array [2, 8], rank 0: [48, 51, 54, …]" in text
    assert "y" in report and "z" not in report and list(report) == list(dict(report)) and len(report) == 2
    with pytest.raises(KeyError, match="found by name, not by 0"):
        report[0]  # type: ignore[index]
    page = report._repr_html_()
    assert "<table>" in page and "48, 51, 54" in page and page.count("<table>") == page.count("</table>")


IN_ASCII = """
import sys
import commsir, numpy
sys.path.insert(0, sys.argv[1])
import program
report = program.k.simulate(2, {"x": numpy.ones((2, 8), numpy.float32), "factor": 1})
print(report, program.k.specialize(rows=2, n=8).explain(ranks=2))
try:
    program.wrong.text()
except commsir.CompileError as error:
    print(error)
"""


def test_terminals_of_ascii(tmp_path: Path) -> None:
    """What is printed has characters that standard output can encode."""
    wrong = "@kernel\ndef wrong(y: f32[Array, 4]):\n    y = 1.0\n"
    (tmp_path / "program.py").write_text("from commsir import *\n" + KERNEL + wrong)
    for encoding, unit in (("ascii", "us, steps"), ("latin-1", "us, steps"), ("utf-8", "µs, steps")):
        done = subprocess.run(
            [sys.executable, "-c", IN_ASCII, str(tmp_path)],
            env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        assert unit in done.stdout.decode(encoding)


def test_trace(kernel: commsir.Kernel, tmp_path: Path) -> None:
    """A trace is written at once, or by running again; waits name the line of Python."""
    report = kernel.simulate(3, {"x": X, "factor": 1}, trace=tmp_path / "now.json")
    later = kernel.simulate(3, {"x": X, "factor": 1}).trace(tmp_path / "later.json")
    for path in (tmp_path / "now.json", later):
        events = json.loads(path.read_text())["traceEvents"]
        assert {e["pid"] for e in events} == {0, 1, 2}
        waits = [e for e in events if e.get("cat") == "wait"]
        assert waits and all(re.search(r"program\d+\.py:\d+", e["args"]["source"]) for e in waits)
    assert report.events


def test_files_that_cannot_be_written(kernel: commsir.Kernel, tmp_path: Path) -> None:
    """Before anything is run."""
    report, far = kernel.simulate(3, {"x": X, "factor": 1}), tmp_path / "none" / "run.json"
    for write in (
        lambda: kernel.simulate(3, {"x": X, "factor": 1}, trace=far),
        lambda: report.trace(far),
        lambda: report.plot(far),
        lambda: commsir.Table("k", 3, "cpu", []).save(far),
    ):
        with pytest.raises(commsir.UsageError, match=r"cannot write '.*run\.json': .*create the folder '.*none' first"):
            write()
    with pytest.raises(commsir.UsageError, match="Is a directory"):
        report.trace(tmp_path)
    with pytest.raises(commsir.UsageError, match="trace is 3: give the path of a file"):
        kernel.simulate(3, {"x": X, "factor": 1}, trace=3)  # type: ignore[arg-type]


def test_numbers_of_numpy(kernel: commsir.Kernel) -> None:
    numbers = {"seed": np.int64(3), "blocks": np.int64(1), "launches": np.int32(1), "check": np.bool_(False)}
    report = kernel.simulate(np.int64(3), {"x": X, "factor": 1}, **numbers)  # type: ignore[arg-type]
    assert repr(report).startswith("k: 3 ranks, 1 block each")


def test_traces_are_of_the_run(load: Load, tmp_path: Path) -> None:
    """Also where the caller's arrays hold something else by then."""
    made = load(
        """
n = dims("n")
@kernel
def k(x: f32[Array, n], s: i64[Signal, 1]):
    if x[0] > 0.0:
        wait_signal(s[0], ge=1)
"""
    ).k
    x, several = np.zeros(4, np.float32), [np.zeros(4, np.float32)]
    reports = [made.simulate(1, {"x": given}, check=False) for given in (x, several)]
    x[:] = several[0][:] = 1
    for report in reports:
        assert report.trace(tmp_path / "trace.json").exists()


def test_a_run_that_fails_has_a_trace(load: Load, tmp_path: Path) -> None:
    """It shows what the blocks came to; a kernel that was not run has none."""
    stuck = load("@kernel\ndef stuck(s: i64[Signal, 1]) -> None:\n    wait_signal(s[0], ge=1)\n").stuck
    path = tmp_path / "run.json"
    with pytest.raises(commsir.CheckError):
        stuck.simulate(2, trace=path)
    assert not path.exists()
    with pytest.raises(commsir.DeadlockError):
        stuck.simulate(2, trace=path, check=False)
    events = json.loads(path.read_text())["traceEvents"]
    waits = [event for event in events if event.get("name") == "comms.wait_signal"]
    assert {event["pid"] for event in waits} == {0, 1}


def test_plot(kernel: commsir.Kernel, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = kernel.simulate(3, {"x": X, "factor": 1}, blocks=2).plot(tmp_path / "run.png")
    axes = figure.axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()][:2] == ["rank 0 block 0", "rank 0 block 1"]
    assert axes.get_xlabel().startswith("steps of the scheduler") and axes.collections
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    steps = axes.get_xticks()
    assert len(steps) > 1 and all(step == int(step) for step in steps), steps
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_explain_and_targets(kernel: commsir.Kernel) -> None:
    fixed = kernel.specialize(rows=2, n=8, ranks=2)
    assert fixed.explain()["arguments"]
    assert "llvm.func" in fixed.lowered and "define" in fixed.llvm and ".visible .entry" in fixed.ptx
    assert fixed.check().ranks == 2
    with pytest.raises(commsir.UsageError, match=r"k.specialize\(ranks=8\).ptx"):
        _ = kernel.ptx


def test_tune(load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = load("@kernel\ndef k(x: f64[Window, 4, 64], y: f64[Array, 4, 64]):\n    all_reduce(x, outs=y)\n")
    table = commsir.tune(
        module.k,
        2,
        algorithms=["one_shot", "two_shot"],
        protocols=["pull", "lamport"],
        blocks=[1, 2],
        repetitions=2,
        progress=True,
    )
    assert len(table.entries) == 8
    assert table.best["algorithm"] in ("one_shot", "two_shot") and table.best["protocol"] == "pull"
    refused = [e for e in table.entries if e.refused]
    assert len(refused) == 4 and "lamport" in refused[0].refused
    assert "100 %" in capsys.readouterr().err
    again = commsir.Table.load(table.save(tmp_path / "table.json"))
    assert again == table and repr(again) == repr(table)
    module.k.simulate(2, **again.best)
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(commsir.UsageError, match="is not a table"):
        commsir.Table.load(tmp_path / "bad.json")
    every = commsir.tune(module.k, 2, algorithms=[], protocols=[], blocks=[1], repetitions=1)
    assert {e.algorithm for e in every.entries} >= {"one_shot", "two_shot", "ring"}
    assert {e.protocol for e in every.entries} >= {"pull", "ll", "lamport"}
    with pytest.raises(commsir.UsageError, match="tune takes a kernel"):
        commsir.tune(3)  # type: ignore[arg-type]


def test_what_tune_takes(load: Load, tmp_path: Path) -> None:
    """One name or number, too; what cannot be is said before anything is measured."""
    module = load(
        """
n = dims("n")
@kernel
def k(x: f32[Window, n], y: f32[Array, n]):
    assert num_blocks() < 3
    all_reduce(x, outs=y)
"""
    )
    given: dict[str, Any] = {"algorithms": "one_shot", "protocols": "pull", "blocks": 1, "repetitions": 1}

    def tuned(size: int = 64, **options: Any) -> commsir.Table:
        return commsir.tune(module.k, 2, {"x": np.ones(size)}, **{**given, **options})

    assert [e.blocks for e in tuned(check=False).entries] == [1]
    failed = tuned(blocks=[4, 2]).entries
    assert [e.blocks for e in failed] == [2, 4] and "num_blocks() < 3" in failed[1].refused
    for wrong, said in (
        ({"repetitions": "2"}, "repetitions is '2'"),
        ({"blocks": "a"}, "a number of blocks is 'a'"),
        ({"algorithms": 3}, "algorithms is 3: give names"),
        ({"algorithm": "ring"}, r"write algorithms=\['ring'\]"),
        ({"path": tmp_path / "none" / "table.json"}, "cannot write '.*table.json': .*create the folder"),
    ):
        with pytest.raises(commsir.UsageError, match=said):
            tuned(**wrong)
    # A table is of its kernel, its sizes and its ways.
    path = tmp_path / "table.json"
    first = tuned(path=path, blocks=[1, 4])
    assert "Infinity" not in path.read_text()
    assert tuned(path=path, blocks=[1, 4]) == first
    assert tuned(4096, path=path, blocks=[1, 4]).digest != first.digest
    assert [e.blocks for e in tuned(4096, path=path).entries] == [1]


@pytest.mark.parametrize("name", ["one_shot", "ring", "quantized", "largest", "pipeline", "deadlock"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_examples(name: str, ranks: int, capsys: pytest.CaptureFixture[str]) -> None:
    importlib.import_module(f"commsir.examples.{name}").main(ranks)
    text = capsys.readouterr().out
    assert (
        "error" not in text
        if name in ("one_shot", "ring", "largest", "pipeline")
        else ("refused" in text or "largest error" in text)
    )


def test_own_collective_is_short() -> None:
    """The researcher's own all-reduce is at most 20 lines."""
    from commsir.examples import one_shot
    from commsir.language import source

    node = source.find(one_shot.one_shot.__commsir_function__).node
    assert node.end_lineno is not None and node.end_lineno - node.lineno < 20


def test_import_is_light() -> None:
    """`import commsir` brings neither NumPy nor the compiler of kernels; they come with the first kernel."""
    code = "import sys, commsir; print([m for m in ('numpy', 'torch', 'commsir.language') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


LATE = """
@kernel
def k(s: i64[Signal, 2]) -> None:
    signal(s[0], (rank() + 1) % size())
    wait_signal(s[0], ge=epoch())
    if epoch() == 60:
        wait_signal(s[1], ge=1)
    barrier()
"""


def test_more_launches_are_checked(load: Load) -> None:
    """The sixtieth waits forever."""
    k = load(LATE).k
    assert k.check(ranks=2, launches=59).ranks == 2
    with pytest.raises(commsir.CheckError, match=r"\(launch 60\)"):
        k.check(ranks=2, launches=60)
    with pytest.raises(commsir.CommsError, match="cannot follow 65 launches"):
        k.check(ranks=2, launches=65)


def test_the_launches_of_a_run_are_checked(load: Load) -> None:
    """As many as it makes; where that is too much, the report says how many."""
    k = load(LATE).k
    with pytest.raises(commsir.CheckError, match=r"\(launch 60\)"):
        k.simulate(2, launches=61)
    one = load(MEETS_ALL).meets_all
    few, many = one.simulate(4, {"x": np.ones(4)}), one.simulate(4, {"x": np.ones(4)}, launches=100)
    assert few.stats["checked_launches"] == 3 and "proven" not in str(few)
    assert many.stats["checked_launches"] == 64 and "proven 64 of 100 launches" in str(many)
    short = one.simulate(4, {"x": np.ones(4)}, launches=50, check_events=1500)
    assert short.stats["checked_launches"] == 3 and "proven 3 of 50 launches" in str(short)
    assert "checked_launches" not in one.simulate(4, {"x": np.ones(4)}, check=False).stats


MEETS_ALL = """
@kernel(blocks=1)
def meets_all(x: f32[Array, 4], s: i64[Signal, 1], y: f32[Array, 4]):
    for p in for_peers():
        signal(s[0], p)
    wait_signal(s[0], ge=epoch() * (size() - 1))
    y[:] = x[:]
"""


def test_kernels_beyond_the_budget_are_not_called_proven(load: Load) -> None:
    kernel = load(MEETS_ALL).meets_all
    few, many = kernel.check(ranks=4), kernel.check(ranks=500, check_events=1_000_000)
    assert few.proven and few.launches == 3 and "4 ranks: proven: neither hangs nor races" in str(few)
    unchecked = kernel.check(ranks=4, check=False)
    assert not unchecked.warnings and not unchecked.proven and "4 ranks: not checked" in str(unchecked)
    assert not many.proven and "500 ranks: not decided" in str(many) and "check_events=" in many.proof.reasons[0]
    report = kernel.simulate(500, {"x": np.ones(4)}, check_events=1_000_000)
    (warning,) = report.stats["warnings"]
    assert "did not check this kernel" in warning and warning in str(report) and "check_events=" in warning
    assert "warnings" not in kernel.simulate(4, {"x": np.ones(4)}).stats


def test_attributes_in_a_source_are_no_proof() -> None:
    hangs = """comms.kernel @hangs(%s: !comms.signal<1>)
        attributes {comms.proof = {verdict = "proven", launches = 3 : i64}} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : i64
      %token = comms.wait_signal %s[%c0] ge %c1 : !comms.signal<1>
      comms.return
    }"""
    report = commsir.check(hangs, ranks=2, check=False)
    assert not report.proven and "not checked" in str(report)


TELLS_TOO_EARLY = """
@kernel(blocks=1)
def tells_too_early(x: f32[Array, 64], w: f32[Window, 64], s: i64[Signal, 1], y: f32[Array, 64]):
    after = (rank() + 1) % size()
    signal(s[0], after)
    w.peer(after)[:] = x[:]
    wait_signal(s[0], ge=epoch())
    y[:] = w[:]
"""


def test_schedules_show_a_signal_that_comes_before_its_data(load: Load) -> None:
    kernel = load(TELLS_TOO_EARLY).tells_too_early
    with pytest.raises(commsir.CheckError):
        kernel.check(ranks=3)
    with pytest.raises(commsir.MismatchError):
        kernel.simulate(3, {"x": np.ones(64)}, check=False, fuzz=100)


def _slice(track: tuple[int, int], begin: int, end: int, wait: str = "") -> dict[str, object]:
    event = {"ph": "X", "pid": track[0], "tid": track[1], "ts": begin, "dur": end - begin, "args": {}}
    if not wait:
        return {**event, "name": "k", "cat": "run"}
    return {**event, "name": f"comms.{wait}", "cat": "wait", "args": {"source": "/home/me/k.py:7:5"}}


def test_plots_are_of_steps() -> None:
    """The axis is the order of runs, however long each took, and an arrow begins at the run that woke the block."""
    first, second = (0, 0), (1, 0)
    events = [
        _slice(first, 0, 900),
        _slice(first, 900, 1400, "wait_signal"),
        _slice(second, 1000, 1300),
        {"ph": "i", "cat": "wake", "name": "woken", "pid": 0, "tid": 0, "ts": 1200},
        _slice(first, 1400, 1401),
        _slice(second, 1300, 1500, "barrier"),
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "rank 0"}},
    ]
    made = [(s.track, s.kind, s.begin, s.end, s.line) for s in _plot.spans(events)]
    assert made == [
        (first, "runs", 0, 1, ""),
        (second, "runs", 1, 2, ""),
        (first, "runs", 2, 3, ""),
        (first, "wait_signal", 1, 2, "7"),
        (second, "barrier", 2, 3, "7"),
    ]
    assert _plot.arrows(events) == [_plot.Arrow(second, 1, first)]


def test_plots_of_one_step_and_long_names(load: Load) -> None:
    pytest.importorskip("matplotlib")
    name = "k" * 250
    figure = load(f"@kernel\ndef {name}(y: f32[Array, 8]):\n    y[:] = 1.0\n{'k = ' + name}\n").k.simulate(1).plot()
    figure.canvas.draw()
    (axes,) = figure.axes
    assert all(step == int(step) for step in axes.get_xticks()), axes.get_xticks()
    assert axes.title.get_window_extent().x1 <= figure.bbox.x1


def test_plots_have_one_color_for_a_kind(load: Load) -> None:
    pytest.importorskip("matplotlib")
    figure = load(LATE_BARRIER).k.simulate(8, blocks=4, check=False).plot()
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {
        "runs",
        "waits in wait_signal (line 9)",
        "waits in barrier (line 10)",
        "wakes (by a signal, a barrier, …)",
    } <= labels
    (axes,) = figure.axes
    assert "steps" in axes.get_xlabel() and "µs" not in axes.get_xlabel()
    assert [label.get_text() for label in axes.get_yticklabels()][-1] == "rank 7 block 3"
    colors = {c.get_label(): c.get_facecolor()[0] for c in axes.collections if not c.get_label().startswith("_")}
    wanted = {"waits in wait_signal (line 9)": "#D55E00", "waits in barrier (line 10)": "#0072B2"}
    for label, color in wanted.items():
        assert tuple(round(255 * part) for part in colors[label][:3]) == tuple(bytes.fromhex(color[1:]))


LATE_BARRIER = """
@kernel
def k(s: Signal[4]) -> None:
    signal(s[block_id()], (rank() + 1) % size())
    wait_signal(s[block_id()], ge=epoch())
    barrier()
"""


def test_one_number_of_blocks(load: Load, tmp_path: Path) -> None:
    """Where nobody says how many blocks there are, a run, the checker and a group mean the same number."""
    k = load("@kernel\ndef k(y: f32[Array, 8]) -> None:\n    y[:] = full(8, f32(block_id()))\n").k
    assert k.simulate(2).stats["blocks"] == 1 and k.check(2).proven and k.explain(2).refusal is None
    with commsir.Group(0, 1, folder=str(tmp_path)) as group:
        y = np.ones(8, np.float32)
        group.kernel(k)(y)
        assert not y.any()
    for ask in (k.simulate, k.check):
        with pytest.raises(commsir.CheckError, match="block 1"):
            ask(2, blocks=2)
    assert "block 1" in str(k.explain(2, blocks=2).refusal)


def test_explanations_print(load: Load) -> None:
    """A table of arguments and choices, with the reasons; of what the checker refuses as well."""
    k = load("@kernel\ndef k(x: bf16[Window, 8, 64], y: f32[Array, 8, 64]):\n    all_reduce(x, outs=y)\n").k
    made = k.explain(ranks=4)
    assert made["choices"][0]["op"] == "all_reduce" and made.refusal is None
    text = str(made)
    assert repr(made) == text and "neither hangs nor races" in text
    assert re.search(r"x +window +bf16 +8 x 64 +1,024", text) and re.search(r"all_reduce +\w+ +\w+", text)
    assert "why: all_reduce: " in text and "comms-" not in text
    hangs = load("@kernel\ndef k(x: f32[Array, 8], s: Signal[1]):\n    wait_signal(s[0], ge=1)\n").k.explain(ranks=2)
    assert isinstance(hangs.refusal, commsir.CheckError)
    assert "deadlock: rank" in str(hangs) and re.search(r"x +memory +f32 +8 +32", str(hangs))
