"""Arguments of a launch that share memory: two arguments of a kernel are two arrays (docs/Spec.md).

LAYOUTS has one row per way to cut three arguments out of one buffer. Each goes to `simulate`, to a group on the CPU
and to a group on a GPU over a fake driver: all report the same error before anything runs.
"""

import pathlib
import re
import subprocess
import sys
from typing import Any

import commsir
import numpy as np
import pytest
from conftest import fake_gpus

N = 64
#: y = x + b.
ADD = f"""
comms.kernel @add(%x: memref<{N}xf32>, %b: memref<{N}xf32>, %y: memref<{N}xf32>) attributes {{blocks = 1}} {{
  %c0 = arith.constant 0 : index
  %s = comms.tile_load %x[%c0] : memref<{N}xf32> -> tensor<{N}xf32>
  %t = comms.tile_load %b[%c0] : memref<{N}xf32> -> tensor<{N}xf32>
  %u = arith.addf %s, %t : tensor<{N}xf32>
  comms.tile_store %u, %y[%c0] : tensor<{N}xf32>, memref<{N}xf32>
  comms.return
}}
"""
#: Where x, b and y begin in a buffer, in elements, and which two share memory that is written; "": none.
LAYOUTS = {
    "apart": ((0, 128, 256), ""),
    "side by side": ((0, 64, 128), ""),
    "the other way round": ((128, 64, 0), ""),
    "one input twice": ((0, 0, 128), ""),
    "inputs that overlap": ((0, 32, 128), ""),
    "in place": ((0, 128, 0), "x y"),
    "in place of the other": ((0, 128, 128), "b y"),
    "the end of an input": ((0, 256, 64 - 16), "x y"),
    "the begin of an input": ((128, 256, 128 - 48), "x y"),
    "all three": ((0, 0, 0), "[xb] y"),
    "between two inputs": ((0, 96, 48), "[xb] y"),
}
#: What else writes memory: text in place of the store, and whether y counts as written.
WRITES = {
    "nothing": "memref.store %e, %m[%c0] : memref<1xf32>",
    "element": "memref.store %e, %y[%c0] : memref<64xf32>",
    "vector": "vector.store %v, %y[%c0] : memref<64xf32>, vector<4xf32>",
    "mask": "vector.maskedstore %y[%c0], %ones, %v : memref<64xf32>, vector<4xi1>, vector<4xf32>",
    "copy": "memref.copy %x, %y : memref<64xf32> to memref<64xf32>",
    "view": "%w = memref.subview %y[8] [8] [1] : memref<64xf32> to memref<8xf32, strided<[1], offset: 8>>\n"
    "  memref.store %e, %w[%c0] : memref<8xf32, strided<[1], offset: 8>>",
    "branch": "scf.if %true {\n    memref.store %e, %y[%c0] : memref<64xf32>\n  }",
    "reshaped": "%w = memref.expand_shape %y [[0, 1]] output_shape [8, 8] : memref<64xf32> into memref<8x8xf32>\n"
    "  memref.store %e, %w[%c0, %c0] : memref<8x8xf32>",
    "collective": "comms.all_reduce sum %team ins(%z : !comms.window<64xf32>) outs(%y : memref<64xf32>)",
    "get": "comms.get %z[%c0] to %y[%c0] count %c1 at %c0 of %team : !comms.window<64xf32>, memref<64xf32>",
}


def pattern(pair: str) -> str:
    first, second = pair.split()
    return f"'{first}'.* and .*'{second}'.* share memory, and the kernel writes the latter"


def cut(buffer: Any, starts: tuple[int, int, int]) -> list[Any]:
    return [buffer[start : start + N] for start in starts]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_simulate(layout: str) -> None:
    starts, pair = LAYOUTS[layout]
    buffer = np.arange(320, dtype=np.float32)
    before = buffer.copy()
    arrays = {name: [one] for name, one in zip("xby", cut(buffer, starts), strict=True)}
    if pair:
        with pytest.raises(commsir.UsageError, match=pattern(pair)):
            commsir.simulate(ADD, ranks=1, arrays=arrays)
        assert (buffer == before).all()
    else:
        commsir.simulate(ADD, ranks=1, arrays=arrays)
        x, b, _ = cut(before, starts)
        assert (arrays["y"][0] == x + b).all()


def test_arrays_of_several_ranks() -> None:
    """Ranks may read one array, and not write one."""
    x, y = np.ones(N, np.float32), np.zeros(2 * N, np.float32)
    commsir.simulate(ADD, ranks=2, arrays={"x": [x, x], "b": [x, x], "y": [y[:N], y[N:]]})
    assert (y == 2).all()
    for second in (y[:N], y[N // 2 : N + N // 2]):
        with pytest.raises(commsir.UsageError, match=r"'y' of rank 0 and of 'y' of rank 1 share memory"):
            commsir.simulate(ADD, ranks=2, arrays={"x": [x, x], "b": [x, x], "y": [y[:N], second]})


@pytest.mark.parametrize("layout", LAYOUTS)
def test_group(layout: str, tmp_path: pathlib.Path) -> None:
    starts, pair = LAYOUTS[layout]
    buffer = np.arange(320, dtype=np.float32)
    before = buffer.copy()
    with commsir.Group(0, 1, folder=tmp_path) as group:
        kernel = group.kernel(ADD)
        if pair:
            with pytest.raises(commsir.UsageError, match=pattern(pair)):
                kernel(*cut(buffer, starts))
            assert (buffer == before).all()
        # The group goes on.
        kernel(*cut(buffer, (0, 64, 128)))
        assert (buffer[128:192] == before[:64] + before[64:128]).all()


@pytest.mark.parametrize("what", WRITES)
def test_written_arguments(what: str, tmp_path: pathlib.Path) -> None:
    text = f"""
comms.kernel @k(%x: memref<64xf32>, %z: !comms.window<64xf32>, %y: memref<64xf32>) attributes {{blocks = 1}} {{
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %ones = arith.constant dense<true> : vector<4xi1>
  %m = memref.alloca() : memref<1xf32>
  %e = memref.load %x[%c0] : memref<64xf32>
  %v = vector.broadcast %e : f32 to vector<4xf32>
  {WRITES[what]}
  comms.return
}}
"""
    with commsir.Group(0, 1, folder=tmp_path) as group:
        kernel = group.kernel(text)
        window = group.allocate(3 * 64)
        own = np.ones(64, np.float32)
        kernel(own, window[:64], np.ones(64, np.float32))
        if what == "nothing":
            kernel(own, window[:64], own)
        else:
            with pytest.raises(commsir.UsageError, match=pattern("x y")):
                kernel(own, window[:64], own)
        # Memory of a window as an array.
        y = window[32:96]
        if what == "nothing":
            kernel(own, window[:64], y)
        else:
            with pytest.raises(commsir.UsageError, match=pattern("z y")):
                kernel(own, window[:64], y)


PUT = """
comms.kernel @k(%x: memref<64xf32>, %w: !comms.window<64xf32>, %v: !comms.window<64xf32>) attributes {blocks = 1} {
  %team = comms.team world
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  comms.put %x[%c0] to %w[%c0] count %c1 at %c0 of %team : memref<64xf32>, !comms.window<64xf32>
  %p = comms.peer %v at %c0 of %team : !comms.window<64xf32> -> memref<64xf32>
  %e = memref.load %p[%c0] : memref<64xf32>
  memref.store %e, %p[%c1] : memref<64xf32>
  comms.return
}
"""


def test_windows(tmp_path: pathlib.Path) -> None:
    """What peers write counts: a put, and a store to the part of a peer."""
    with commsir.Group(0, 1, folder=tmp_path) as group:
        kernel = group.kernel(PUT, check=False)
        window = group.allocate(256)
        kernel(np.ones(64, np.float32), window[:64], window[64:128])
        for places, pair in (
            ((0, 64, 64), "w v"),
            ((0, 128, 0), "x v"),
            ((0, 0, 128), "x w"),
            ((0, 64, 96), "[wv] [wv]"),
        ):
            with pytest.raises(commsir.UsageError, match=pattern(pair)):
                kernel(*[window[at : at + 64] for at in places])


ON_A_GPU = """
import sys
import commsir

with commsir.Group(0, 1, folder=sys.argv[1], device=0) as group:
    kernel = group.kernel(sys.argv[2])
    x, b, y = (group.allocate(64) for _ in range(3))
    for given in ((x, b, y), (x, x, y), (x, b, x), (x, b, b)):
        try:
            kernel(*given)
            print("ran")
        except commsir.UsageError as error:
            print(error)
    print(group.stats()["launches"])
"""


def test_on_a_gpu(tmp_path: pathlib.Path) -> None:
    """One that a library in place of the driver pretends."""
    command = [sys.executable, "-c", ON_A_GPU, str(tmp_path), ADD]
    ran = subprocess.run(command, env=fake_gpus(1), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    first, second, third, fourth, launches = ran.stdout.splitlines()
    assert (first, second, launches) == ("ran", "ran", "2")
    assert re.search(pattern("x y"), third) and re.search(pattern("b y"), fourth), ran.stdout
