"""Errors and reports about Python kernels use Python's terms: no operation or type of the dialect appears."""

# ruff: noqa: E501 (tables, and programs in strings)
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import commsir
import numpy as np
import pytest
from commsir.language import collectives, communication, functions
from commsir.language.python_terms import CONSTRUCTS, construct, in_python

Load = Callable[[str], ModuleType]
ROOT = Path(__file__).parents[3]

#: What no user of Python wrote.
FOREIGN = re.compile(
    r"\b(?:comms|arith|math|memref|scf|cf|tensor|affine|gpu)\.[a-z]\w+(?!\()|!comms|\w+<[\d?]*x?\w+>|comms-"
)


def _known() -> set[str]:
    """The operations of the dialect, and those of others that the compiler of the language writes."""
    described = "\n".join(file.read_text() for file in sorted((ROOT / "dialect").glob("*.td")))
    own = set(re.findall(r'^def Comms_\w+Op\s*:\s*\w+<"(\w+)"', described, re.MULTILINE))
    written = set[str]()
    for file in (ROOT / "frontend" / "commsir" / "language").rglob("*.py"):
        written |= set(re.findall(r"\b((?:arith|memref|scf|tensor)\.[a-z_]{2,})\b", file.read_text()))
    return {f"comms.{name}" for name in own} | written


def test_every_operation_has_a_word() -> None:
    known = _known()
    assert len(known) > 90
    named = {name for module in (functions, communication, collectives) for name in module.__all__}
    for op in known:
        assert op in CONSTRUCTS or op.partition(".")[2] in named, f"{op} has no word in Python: add it to CONSTRUCTS"
        for text in (f"'{op}' op does this", f"use {op} here", f"'{op}' op C3: this", f"give {op}: it"):
            assert not FOREIGN.search(in_python(text)), in_python(text)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("'comms.put_signal' op writes [0, 64) of 'x'", "put_signal writes [0, 64) of 'x'"),
        ("'comms.tile_store' op writes [0, 64)", "this store writes [0, 64)"),
        ("'comms.tile_load' op reads [0, 64)", "this line reads [0, 64)"),
        ("'memref.load' op reads [0, 1)", "this line reads [0, 1)"),
        ("wrap around with arith.remui, or guard the op", "wrap around with %, or guard the op"),
        ("let the value grow with comms.epoch", "let the value grow with epoch()"),
        ("bound it by comms.check_bounds before it", "bound it by assert 0 <= i < n before it"),
        ("by arith.minsi and arith.maxsi", "by minimum and maximum"),
        ("the input is 'memref<4x8xi1>'", "the input is 'bool[Array, 4, 8]'"),
        ("!comms.window<8x?xbf16> and tensor<64xf8E4M3FN>", "bf16[Window, 8, ?] and a tile of 64 f8"),
        ("memref<64xf32, #comms.space<shared>>", "f32[Array, 64]"),
        ("!comms.signal<4>", "Signal[4]"),
        ("run comms-check-sync", "run the checker"),
        ("'comms.tile_load' op read of x out of bounds", "this read of x out of bounds"),
        ("'comms.tile_store' op write of y out of bounds", "this write of y out of bounds"),
        (
            "'comms.kernel' op comms-check-sync cannot follow 65 (check=false; comms-run, comms-bench: --no-check)",
            "the checker cannot follow 65 (check=False)",
        ),
        ("at /home/me/tensor.py:3:4 and math.py:1", "at /home/me/tensor.py:3:4 and math.py:1"),
        ("assert x < math.inf: math.isfinite(x)", "assert x < math.inf: math.isfinite(x)"),
    ],
)
def test_sentences(said: str, wanted: str) -> None:
    assert in_python(said) == wanted


def test_names_of_functions_stay() -> None:
    assert construct("wait_signal") == "wait_signal"
    assert construct("comms.wait_signal") == "wait_signal"


PARAMETERS = (
    "x: f32[Window, 8, 64], b: f32[Window, 8, 64], y: f32[Array, 8, 64], i: i32[Array, 4], s: Signal[2], c: Counter[1]"
)
# Kernels that the verifier, the checker or a run refuses.
REFUSED = {
    "race": "put_signal(x[0], b[0], (rank() + 1) % size(), s[0])\nwait_signal(s[0], ge=epoch())\ny[0] = b[0]",
    "store-race": "b.peer((rank() + 1) % size())[0] = x[0]\nbarrier()\ny[0] = b[0]",
    "hang": "wait_signal(s[0], ge=epoch())",
    "barrier-of-some": "if rank() == 0:\n    barrier()",
    "peer-beyond": "put(x[0], b[0], rank() + 1)",
    "in-a-branch": "if rank() == 0:\n    all_reduce(x, outs=y)",
    "wrong-rows": "all_reduce(x, outs=y, args=i, consume=lambda t, i: t)\nall_gather(x, outs=y)",
    "place-by-data": "b.peer(1 - rank())[rank()] = x[0]\ny[0, 0] = b.load(rank() * 64 + i[0], 1)[0]\nbarrier()",
    "waits-by-data": "if i[0] > 0:\n    signal(s[0], 1 - rank())\nwait_signal(s[0], ge=1)",
    "spins": "while read_signal(s[0]) == 0:\n    pass",
    "set-and-reset": "signal(s[0], 1 - rank(), set=1)\nwait_signal(s[0], eq=1)\nreset_signal(s[0])",
    "unflushed": "put(x[0], b[0], 1 - rank())\nx[0] = y[0]",
    "counter": "put(x[0], b[0], 1 - rank(), counted=c[0])\nwait_counter(c[0], ge=2)",
    "poison": "poison_store(x[0], b.peer(1 - rank()), 0)\ny[0] = poison_load(b.local(), 0, 64)",
    "channel": "ch = channel(64, f32, pattern='pairwise', slots=1, protocol='ll')\nsend(x[0], ch[0], 1 - rank())",
    "protocol": "ch = channel(63, f32, pattern='single', slots=1, protocol='ll128')\nsend(y[0, 0:63], ch[0], 1 - rank())",
    "algorithm": "all_reduce(x, outs=y, algorithm='three_shot')",
    "multimem": "all_reduce(x.multimem(), outs=y)",
    "root": "broadcast(x, root=9, outs=y)",
    "bounds": "y[i[0] + 9] = x[0]",
    "factor": "t = team_split(team(), 'inner', 3)\nbarrier(t)",
    "after-the-loop": "t = barrier_arrive()",
}  # fmt: skip


def _indent(body: str) -> str:
    return "\n".join("    " + line for line in body.splitlines())


@pytest.mark.parametrize("check", [True, False], ids=["checked", "run"])
@pytest.mark.parametrize("name", REFUSED)
def test_errors(load: Load, name: str, check: bool) -> None:
    module = load(f"@kernel\ndef k({PARAMETERS}):\n{_indent(REFUSED[name])}\n")
    try:
        report = module.k.simulate(2, {"x": np.ones((8, 64))}, check=check, max_steps=100_000)
    except commsir.CommsError as error:
        said = [str(error), *map(str, error.waiting)]
        assert error.diagnostics or not check, said
        assert str(module.__file__) in said[0], said
    else:
        assert not check, f"{name} is not refused"
        said = [repr(report), report._repr_html_()]
    for text in said:
        assert not FOREIGN.search(text), text


def test_replayed_runs(load: Load, tmp_path: Path) -> None:
    module = load("@kernel\ndef k(s: Signal[1]):\n    wait_signal(s[0], ge=1)\n")
    with pytest.raises(commsir.DeadlockError) as caught:
        module.k.simulate(2, check=False)
    path = caught.value.save(tmp_path / "run.zip")
    with pytest.raises(commsir.DeadlockError) as again:
        commsir.replay(path)
    for error in (caught.value, again.value):
        assert [(w.op, w.written) for w in error.waiting] == [("comms.wait_signal", "wait_signal")] * 2
        assert not FOREIGN.search(str(error)), error


def test_kernels_of_a_group(load: Load, tmp_path: Path) -> None:
    module = load(
        "@kernel\ndef k(x: f32[Array, 8], b: f32[Window, 8], s: Signal[1]):\n"
        "    put_signal(x, b, rank() + 1, s[0])\n    wait_signal(s[0], ge=epoch())\n"
    )
    with commsir.Group(0, 1, folder=str(tmp_path)) as group:
        with pytest.raises(commsir.CommsError) as caught:
            group.kernel(module.k)
        assert "wrap around with %" in str(caught.value) and not FOREIGN.search(str(caught.value)), caught.value
        with pytest.raises(commsir.CommsError, match="comms.role"):
            group.kernel("comms.kernel @a() { comms.yield }")  # MLIR keeps its own.
