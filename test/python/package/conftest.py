"""Fixtures that the tests of the package share."""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
os.environ.setdefault("COMMSIR_LIBRARY", str(ROOT / "build" / "lib"))

SUM = """
comms.kernel @sum(%x: !comms.window<?xf32>, %y: memref<?xf32>) {
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : !comms.window<?xf32>) outs(%y : memref<?xf32>)
  comms.return
}
"""


def sum_of(element: str) -> str:
    """The same for elements of another type."""
    return SUM.replace("f32", element)


#: Adds a number of its own on each rank.
ADD = """
comms.kernel @add(%x: memref<8xf32>, %n: f32) {
  %c0 = arith.constant 0 : index
  %tile = comms.tile_load %x[%c0] : memref<8xf32> -> tensor<8xf32>
  %many = comms.splat %n : f32 -> tensor<8xf32>
  %sum = arith.addf %tile, %many : tensor<8xf32>
  comms.tile_store %sum, %x[%c0] : tensor<8xf32>, memref<8xf32>
  comms.return
}
"""


def fake_gpus(count: int, kernel: str = "") -> dict[str, str]:
    """The environment of a process whose GPUs a library in place of the driver pretends."""
    folder = pathlib.Path(os.environ["COMMSIR_LIBRARY"]).absolute()
    fake = (folder if folder.is_dir() else folder.parent) / "fake-cuda"
    if not fake.is_dir():
        pytest.skip("built without the GPU target")
    settings = {
        "COMMSIR_FAKE_GPUS": str(count),
        "COMMSIR_FAKE_KERNEL": kernel,
        "LD_LIBRARY_PATH": str(fake),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    return os.environ | settings


@pytest.fixture
def deadlock() -> str:
    return (ROOT / "test" / "demo" / "deadlock.mlir").read_text()


@pytest.fixture
def rmsnorm() -> str:
    return (ROOT / "test" / "demo" / "rmsnorm.mlir").read_text()
