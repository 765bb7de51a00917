"""Runs that fail: exceptions, their fields, and the files that repeat the runs."""

import json
import pathlib
import pickle
import re
import stat
import time
import zipfile
from typing import Any

import commsir
import numpy as np
import pytest
from commsir import _native
from conftest import ADD, SUM

OUT_OF_BOUNDS = """
comms.kernel @far(%x: memref<8xf32>, %n: index) {
  %tile = comms.tile_load %x[%n] : memref<8xf32> -> tensor<4xf32>
  %c0 = arith.constant 0 : index
  comms.tile_store %tile, %x[%c0] : tensor<4xf32>, memref<8xf32>
  comms.return
}
"""

ENDLESS = """
comms.kernel @endless(%s: !comms.signal<1>) {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    %v = comms.read_signal %s[%c0] : !comms.signal<1>
    scf.yield
  }
  comms.return
}
"""


def test_deadlock_has_the_events(deadlock: str) -> None:
    with pytest.raises(commsir.DeadlockError) as caught:
        commsir.simulate(deadlock, ranks=4, check=False, file="mine.mlir")
    (wait,) = caught.value.waiting
    assert (wait.rank, wait.block, wait.op) == (0, 0, "comms.wait_signal")
    assert wait.location.startswith("mine.mlir:") and "expected >= 3" in wait.what
    assert str(wait) in str(caught.value) or "mine.mlir" in str(caught.value)


def test_out_of_bounds() -> None:
    x = [np.zeros(8, np.float32)]
    with pytest.raises(commsir.BoundsError) as caught:
        commsir.simulate(OUT_OF_BOUNDS, ranks=1, arrays={"x": x}, scalars={"n": 6}, check=False)
    assert "6" in str(caught.value) and isinstance(caught.value, IndexError)
    assert caught.value.line and caught.value.diagnostics[0].file


def test_limit_on_steps(deadlock: str) -> None:
    x, y = [np.ones(64, np.float32)] * 8, [np.zeros(64, np.float32) for _ in range(8)]
    with pytest.raises(commsir.LimitError):
        commsir.simulate(SUM, ranks=8, arrays={"x": x, "y": y}, max_steps=2)
    assert not y[0].any(), "a run that failed writes nothing back"


def test_a_saved_run_fails_again(deadlock: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(commsir.DeadlockError) as caught:
        commsir.simulate(deadlock, ranks=4, check=False, seed=11)
    path = caught.value.save(tmp_path / "run.commsir")
    with pytest.raises(commsir.DeadlockError) as again:
        commsir.replay(path)
    assert again.value.waiting == caught.value.waiting
    assert again.value.run is not None and again.value.run.request["seed"] == 11


def test_a_saved_run_has_the_inputs(tmp_path: pathlib.Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = SUM.replace("f32", "bf16")
    x = [np.arange(8).astype(ml_dtypes.bfloat16) for _ in range(2)]
    y = [np.zeros(8, ml_dtypes.bfloat16) for _ in range(2)]
    with pytest.raises(commsir.LimitError) as caught:
        commsir.simulate(source, ranks=2, arrays={"x": x, "y": y}, max_steps=1)
    x[0][:] = 0  # What is saved is what the run saw.
    path = caught.value.save(tmp_path / "run.commsir")
    with zipfile.ZipFile(path) as file:
        assert file.read("arrays/x/0") == np.arange(8).astype(ml_dtypes.bfloat16).tobytes()
        assert file.read("kernel.mlir").decode() == source
    with pytest.raises(commsir.LimitError):
        commsir.replay(path)


RACE = """
comms.kernel @race(%x: !comms.window<4xf32>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %team = comms.team world
  %me = comms.rank %team
  %peer = arith.subi %c1, %me : index
  %own = comms.local %x : !comms.window<4xf32> -> memref<4xf32>
  %old = comms.tile_load %own[%c0] : memref<4xf32> -> tensor<4xf32>
  %new = arith.addf %old, %one : tensor<4xf32>
  comms.tile_store %new, %own[%c0] : tensor<4xf32>, memref<4xf32>
  %there = comms.peer %x at %peer of %team : !comms.window<4xf32> -> memref<4xf32>
  %seen = comms.tile_load %there[%c0] : memref<4xf32> -> tensor<4xf32>
  comms.tile_store %seen, %y[%c0] : tensor<4xf32>, memref<4xf32>
  comms.return
}
"""


def test_a_saved_race_begins_with_the_inputs(tmp_path: pathlib.Path) -> None:
    """The kernel writes its input in place."""
    x = [np.zeros(4, np.float32) for _ in range(2)]
    y = [np.zeros(4, np.float32) for _ in range(2)]
    with pytest.raises(commsir.MismatchError) as caught:
        commsir.simulate(RACE, ranks=2, arrays={"x": x, "y": y}, check=False, seed=1, fuzz=30)
    assert not np.any(x), "what depends on the schedule is no result"
    with pytest.raises(commsir.MismatchError) as again:
        commsir.replay(caught.value.save(tmp_path / "run.commsir"))
    assert str(again.value) == str(caught.value)


def test_files_that_are_no_runs(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "run.commsir"
    with pytest.raises(commsir.UsageError, match="not a saved run"):
        commsir.replay(path)
    path.write_bytes(b"PK\x03\x04 nonsense")
    with pytest.raises(commsir.UsageError, match="not a saved run"):
        commsir.replay(path)
    for text in ("[]", "{}", '{"format": "other"}', '{"format": "commsir-run-1", "request": {}, "arrays": {"x": 1}}'):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("run.json", text)
            file.writestr("kernel.mlir", SUM)
        with pytest.raises(commsir.UsageError):
            commsir.replay(path)


def test_damaged_runs_are_said(tmp_path: pathlib.Path) -> None:
    x = [np.zeros(8, np.float32)] * 2
    with pytest.raises(commsir.CommsError) as caught:
        commsir.simulate(ADD, ranks=2, arrays={"x": x}, scalars={"n": 1}, time_limit=1, max_steps=1)
    data = caught.value.save(tmp_path / "run").read_bytes()
    for at in range(0, len(data), 7):
        (tmp_path / "damaged").write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        try:  # Not every byte counts; whatever comes of it is an error of ours or a run.
            commsir.replay(tmp_path / "damaged")
        except commsir.CommsError as error:
            assert str(error)


def test_exceptions_travel_between_processes(deadlock: str) -> None:
    with pytest.raises(commsir.CheckError) as caught:
        commsir.check(deadlock, ranks=4)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is commsir.CheckError and str(copy) == str(caught.value) and copy.line == caught.value.line


def test_only_simulations_can_be_saved(tmp_path: pathlib.Path) -> None:
    with pytest.raises(commsir.CheckError) as caught:
        commsir.check(FOREVER, ranks=2)
    with pytest.raises(ValueError, match="did not come from a simulation"):
        caught.value.save(tmp_path / "run")


#: A wait that nobody ends.
FOREVER = """
comms.kernel @forever(%s: !comms.signal<1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : i64
  %t = comms.wait_signal %s[%c0] ge %c1 : !comms.signal<1>
  comms.return
}
"""


def test_a_saved_run_needs_no_other_file(deadlock: str, tmp_path: pathlib.Path) -> None:
    """What it would need is told while it is there."""
    np.save(tmp_path / "x.npy", np.zeros(1, np.float32))
    source = deadlock.replace("(%arrived: !comms.signal<1>", "(%arrived: !comms.signal<1>, %extra: memref<1xf32>", 1)
    for value, is_held in ((str(tmp_path / "x.npy"), False), ("random:3", True)):
        with pytest.raises(commsir.DeadlockError) as caught:
            commsir.simulate(source, ranks=4, check=False, inputs={"extra": value})
        if is_held:
            caught.value.save(tmp_path / "run.zip")
        else:
            with pytest.raises(commsir.UsageError, match=r"input 'extra' of this run is the file .*x\.npy"):
                caught.value.save(tmp_path / "run.zip")


#: A loop without waits: it takes no steps.
LOOP = """
comms.kernel @loop(%x: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant 1000000000000000 : index
  scf.for %i = %c0 to %end step %c1 {
    %old = memref.load %x[%c0] : memref<4xi32>
    %new = arith.addi %old, %old : i32
    memref.store %new, %x[%c0] : memref<4xi32>
  }
  comms.return
}
"""
ONE = LOOP.replace("1000000000000000", "1")


def write_run(path: pathlib.Path, source: str = ONE, arrays: object = None, **request: Any) -> pathlib.Path:
    """A run of one rank, as a stranger may write it."""
    base = {"ranks": 1, "target": "cpu", "check": False, "types": {"x": "i32"}, "shapes": {"x": [4]}}
    head = {"format": "commsir-run-1", "request": base | request, "arrays": {"x": 1} if arrays is None else arrays}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("run.json", json.dumps(head))
        file.writestr("kernel.mlir", source)
        if head["arrays"]:
            file.writestr("arrays/x/0", np.zeros(4, np.int32).tobytes())
    return path


def test_a_file_takes_no_limit_away(tmp_path: pathlib.Path) -> None:
    assert commsir.replay(write_run(tmp_path / "run"))
    for request in ({}, {"time_limit": 0}, {"time_limit": 1e9}, {"max_steps": 10}, {"max_steps": 0}):
        began = time.monotonic()
        with pytest.raises(commsir.LimitError):
            commsir.replay(write_run(tmp_path / "run", LOOP, **request), time_limit=0.3)
        assert time.monotonic() - began < 20
    with pytest.raises(commsir.LimitError):  # Each schedule is short.
        commsir.replay(write_run(tmp_path / "run", fuzz=1 << 40), time_limit=0.3)
    with pytest.raises(commsir.LimitError):
        commsir.replay(write_run(tmp_path / "run", ENDLESS, arrays={}, types={}, shapes={}), max_steps=10)
    # Its own lower limits stay.
    with pytest.raises(commsir.LimitError, match="the limit of 0.2 s"):
        commsir.replay(write_run(tmp_path / "run", LOOP, time_limit=0.2))


def test_a_limit_of_steps_is_no_limit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "TIME_LIMIT", 0.3)
    with pytest.raises(commsir.LimitError):
        commsir.simulate(LOOP, ranks=1, arrays={"x": [np.zeros(4, np.int32)]}, max_steps=1000, check=False)


@pytest.mark.parametrize(
    "request_",
    [
        {"shapes": {"x": [-1]}},
        {"shapes": {"x": [-2, -2]}},
        {"shapes": {"x": [1 << 62, 1 << 62]}},
        {"shapes": {"x": [True, 4]}},
        {"shapes": {"x": 4}},
        {"shapes": {"x": [[4]]}},
        {"shapes": []},
        {"types": {"x": "nonsense"}},
        {"types": {"x": None}},
        {"types": {"x": {}}},
        {"types": 1},
        {"time_limit": "long"},
        {"max_steps": []},
        {"inputs": {"x": "/etc/passwd"}},
        {"inputs": {"x": "../x.npy"}},
        {"inputs": ["x"]},
        {"arrays": {"x": -1}},
        {"arrays": {"x": 2**70}},
        {"arrays": {"x": True}},
        {"arrays": {"../x": 1}},
        {"arrays": ["x"]},
    ],
)
def test_reports_of_runs_are_checked(tmp_path: pathlib.Path, request_: dict[str, Any]) -> None:
    with pytest.raises(commsir.UsageError, match="run|option"):
        commsir.replay(write_run(tmp_path / "run", **request_))


@pytest.mark.parametrize("text", ["\x1b[31mred\x07", "x" * 1_000_000], ids=["control", "long"])
@pytest.mark.parametrize(
    "where", ["types", "shapes", "time_limit", "kernel", "algorithm", "protocol", "format", "name"]
)
def test_what_errors_show_of_a_file(tmp_path: pathlib.Path, where: str, text: str) -> None:
    """No control characters, which the terminal would obey; of what the file alone holds, the beginning."""
    if where in ("kernel", "algorithm", "protocol") and len(text) > 1000:
        pytest.skip("named whole, as every kernel's")
    path = write_run(tmp_path / "run", **({where: {"x": text}} if where in ("types", "shapes") else {where: text}))
    if where in ("format", "name"):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("run.json", json.dumps({"format": text}) if where == "format" else "{}")
            if where == "name":
                file.writestr(text[:60000], b"")
    with pytest.raises(commsir.CommsError) as caught:
        commsir.replay(path)
    said = str(caught.value)
    assert len(said) < 2500 and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", said), said[:3000]


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "arrays/../x", "arrays/../0", "arrays/x/-1", "arrays/x\\y/0", "other"]
)
def test_files_that_lead_out_of_a_run_are_refused(tmp_path: pathlib.Path, name: str) -> None:
    path = write_run(tmp_path / "run")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(name, b"")
    with pytest.raises(commsir.UsageError, match="not a part of a run"):
        commsir.replay(path)


def test_links_bombs_and_doubles_are_refused(tmp_path: pathlib.Path) -> None:
    def refuse(match: str, info: zipfile.ZipInfo, data: bytes, way: int = zipfile.ZIP_DEFLATED) -> None:
        path = write_run(tmp_path / "run")
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(info, data, way)
        with pytest.raises(commsir.UsageError, match=match):
            commsir.replay(path)

    link = zipfile.ZipInfo("arrays/y/0")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    refuse("not a part of a run", link, b"/etc/passwd")
    refuse("is not compressed as in", zipfile.ZipInfo("arrays/y/0"), bytes(1 << 20), zipfile.ZIP_BZIP2)
    with pytest.warns(UserWarning, match="Duplicate"):
        refuse("a part twice", zipfile.ZipInfo("kernel.mlir"), b"")
    # A header that says more than there can be.
    path = write_run(tmp_path / "run")
    data = bytearray(path.read_bytes())
    at = data.index(b"arrays/x/0", data.index(b"PK\x01\x02")) - 46
    data[at + 24 : at + 28] = (1 << 31).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(commsir.UsageError, match="declares a size that it cannot have"):
        commsir.replay(path)
    # Zeros pack well: they are no bomb.
    zeros = np.zeros(1 << 20, np.int32)
    with pytest.raises(commsir.LimitError) as caught:
        commsir.simulate(
            LOOP.replace("4xi32", "1048576xi32"), ranks=1, arrays={"x": [zeros]}, check=False, time_limit=0.2
        )
    with pytest.raises(commsir.LimitError):
        commsir.replay(caught.value.save(path))
