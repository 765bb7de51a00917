"""Texts of kernels are checked on every path by which they enter: no unchecked part reaches the process."""

import pathlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from typing import Any

import commsir
import numpy as np
import pytest

# The C library's memcpy, as code of the kernel's file, runs a shell that makes a file.
SHELL = """
module {
  llvm.func @system(!llvm.ptr) -> i32
  llvm.mlir.global internal constant @s("touch MARK\\00")
  llvm.func @memcpy(%a: !llvm.ptr, %b: !llvm.ptr, %c: i64) -> !llvm.ptr {
    %p = llvm.mlir.addressof @s : !llvm.ptr
    %r = llvm.call @system(%p) : (!llvm.ptr) -> i32
    llvm.return %a : !llvm.ptr
  }
  comms.kernel @k(%x: memref<4096xf32>, %y: memref<4096xf32>) attributes {ranks = 1, blocks = 1} {
    memref.copy %x, %y : memref<4096xf32> to memref<4096xf32>
    comms.return
  }
}
"""

FAILS = """
comms.kernel @k(%x: memref<4096xf32>, %y: memref<4096xf32>) attributes {ranks = 1, blocks = 1} {
  %c1 = arith.constant 1 : index
  %v = memref.load %x[%c1] : memref<4096xf32>
  %f = arith.fptosi %v : f32 to i64
  %i = arith.index_cast %f : i64 to index
  %w = memref.load %y[%i] : memref<4096xf32>
  memref.store %w, %y[%c1] : memref<4096xf32>
  comms.return
}
"""


def by_simulate(source: str, folder: pathlib.Path) -> None:
    parts = [np.zeros(4096, np.float32)]
    commsir.simulate(source, ranks=1, arrays={"x": parts, "y": [parts[0].copy()]})


def by_group(source: str, folder: pathlib.Path) -> None:
    group = commsir.Group(0, 1, folder=str(folder), name="guarded")
    x = np.zeros(4096, np.float32)
    group.kernel(source)(x, x.copy())


def by_replay(source: str, folder: pathlib.Path) -> None:
    """A run that has failed, saved, with another kernel in the file."""
    with pytest.raises(commsir.BoundsError) as caught:
        full = np.full(4096, 1e9, np.float32)
        commsir.simulate(FAILS, ranks=1, arrays={"x": [full], "y": [full.copy()]})
    saved, changed = folder / "saved.zip", folder / "changed.zip"
    caught.value.save(saved)
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, source if name == "kernel.mlir" else old.read(name))
    commsir.replay(changed)


WAYS = [by_simulate, by_group, by_replay]


@pytest.mark.parametrize("run", WAYS)
def test_functions_outside_of_a_kernel_are_not_compiled(
    run: Callable[[str, pathlib.Path], None], tmp_path: pathlib.Path
) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(commsir.CommsError, match="is not allowed next to a kernel"):
        run(SHELL.replace("MARK", str(mark)), tmp_path)
    assert not mark.exists()


@pytest.mark.parametrize("run", WAYS)
def test_kernels_are_not_called_for_functions_of_c(
    run: Callable[[str, pathlib.Path], None], tmp_path: pathlib.Path
) -> None:
    text = """
    comms.kernel @memcpy(%x: memref<4096xf32>, %y: memref<4096xf32>) attributes {ranks = 1, blocks = 1} {
      memref.copy %x, %y : memref<4096xf32> to memref<4096xf32>
      comms.return
    }
    """
    run(text if run is not by_replay else text.replace("@memcpy", "@k"), tmp_path)


# A process of its own: an overflow of the stack would end it.
DEEP = """
import sys
import commsir
text = {
    "operators": "#m = affine_map<(d0) -> (" + "-" * 100000 + "d0)>",
    "brackets": "!a = " + "tuple<" * 100000,
    "aliases": "!a0 = tuple<i1>" + "".join(f"\\n!a{i} = tuple<!a{i - 1}>" for i in range(1, 100000)),
}[sys.argv[1]]
try:
    KIND
except commsir.CommsError as error:
    print(str(error)[:300])
"""
KINDS = {
    "simulate": "commsir.simulate(text, ranks=1)",
    "compile_ir": "commsir.compile_ir(text, ranks=1, produce='ir')",
    "group": "commsir.Group(0, 1, folder=sys.argv[2], name='deep').kernel(text)",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("operators", "more than 256 operators"),
        ("brackets", "nested more than 256 deep"),
        ("aliases", "name each other more than 256 deep"),
    ],
)
def test_deep_text_is_an_error(kind: str, what: str, message: str, tmp_path: pathlib.Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", DEEP.replace("KIND", KINDS[kind]), what, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-500:]
    assert message in ran.stdout


UNDEFINED = """
comms.kernel @k(%x: memref<4xi64>) attributes {ranks = 1, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %al = memref.load %x[%c0] : memref<4xi64>
  %a = arith.index_cast %al : i64 to index
  %bl = memref.load %x[%c1] : memref<4xi64>
  %b = arith.index_cast %bl : i64 to index
  %q = index.divu %a, %b
  %r = index.rems %a, %b
  %w = arith.index_cast %q : index to i64
  memref.store %w, %x[%c2] : memref<4xi64>
  %v = arith.index_cast %r : index to i64
  memref.store %v, %x[%c3] : memref<4xi64>
  comms.return
}
"""


def test_index_arithmetic_is_defined() -> None:
    """As that of arith: x / 0 = -1, x rem 0 = x."""
    x = np.array([7, 0, 5, 5], np.int64)
    commsir.simulate(UNDEFINED, ranks=1, arrays={"x": [x]})
    assert x.tolist() == [7, 0, -1, 7]


UNSIGNED = """
comms.kernel @k(%n: index, %x: memref<4xi64>) attributes {ranks = 1, blocks = 1} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i64
  %m4 = arith.constant -4 : index
  scf.for unsigned %i = %m4 to %n step %c1 {
    %at = arith.subi %i, %m4 : index
    memref.store %one, %x[%at] : memref<4xi64>
  }
  comms.return
}
"""


def test_unsigned_loops_count_unsigned() -> None:
    x = np.zeros(4, np.int64)
    commsir.simulate(UNSIGNED, ranks=1, arrays={"x": [x]}, scalars={"n": -2})
    assert x.tolist() == [1, 1, 0, 0]
    commsir.simulate(UNSIGNED, ranks=1, arrays={"x": [x]}, scalars={"n": 2})
    assert x.tolist() == [1, 1, 0, 0]


STEP = """
comms.kernel @k(%n: index, %x: memref<4xi64>) attributes {ranks = 1, blocks = 1} {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1 : i64
  scf.for %i = %c1 to %c4 step %n {
    memref.store %one, %x[%i] : memref<4xi64>
  }
  comms.return
}
"""


@pytest.mark.parametrize("step", [0, -1, -(2**63), 2**63 - 1])
def test_steps_neither_go_back_nor_wrap_around(step: int) -> None:
    x = np.zeros(4, np.int64)
    with pytest.raises(commsir.BoundsError, match="step of a loop"):
        commsir.simulate(STEP, ranks=1, arrays={"x": [x]}, scalars={"n": step})
    assert not x.any()
    commsir.simulate(STEP, ranks=1, arrays={"x": [x]}, scalars={"n": 2})
    assert x.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("way", ["lsa to world", "world to lsa"])
@pytest.mark.parametrize(
    "use", ["memref.store %s, %y[%r] : memref<16xf32>", "comms.poison_fill %y[%r] count %c4 : memref<16xf32>"]
)
def test_a_number_that_is_no_rank_is_not_taken_for_one(way: str, use: str) -> None:
    source, dest = way.split(" to ")
    text = f"""
    comms.kernel @k(%x: memref<1xi64>, %y: memref<16xf32>) attributes {{ranks = 2, blocks = 1}} {{
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : index
      %s = arith.constant 1.0 : f32
      %world = comms.team world
      %lsa = comms.team lsa
      %v = memref.load %x[%c0] : memref<1xi64>
      %i = arith.index_cast %v : i64 to index
      %r = comms.translate_rank %i from %{source} to %{dest}
      {use}
      comms.return
    }}"""
    for number in (1 << 40, -(1 << 20), 100000, -1):
        arrays: dict[str, list[Any]] = {
            "x": [np.full(1, number, np.int64)] * 2,
            "y": [np.zeros(16, np.float32) for _ in range(2)],
        }
        with pytest.raises(commsir.BoundsError):
            commsir.simulate(text, ranks=2, arrays=arrays)
    arrays = {"x": [np.full(1, 1, np.int64)] * 2, "y": [np.zeros(16, np.float32) for _ in range(2)]}
    commsir.simulate(text, ranks=2, arrays=arrays)
