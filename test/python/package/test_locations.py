"""A location in a text may name any file. No path by which a text enters opens that file."""

import os
import pathlib

import commsir
import pytest
from conftest import ROOT
from test_hostile import WAYS, by_program, kernel

LIBRARY = ROOT / "build/lowering/nvvm/device/NcclDevice.bc"
#: Ways that run passes, or open a file of the caller's as well.
ALL_WAYS = WAYS | {
    "comms-opt, passes": by_program("comms-opt", "--comms-to-cpu", "-o", "/dev/null"),
    "comms-opt, a pass's option": by_program("comms-opt", "--comms-to-cpu=algorithm=profile-log-", "-o", "/dev/null"),
    "comms-translate, library": by_program(
        "comms-translate", "--comms-to-ptx", f"--device-library={LIBRARY}", "-o", "/dev/null"
    ),
    "comms-translate, no library": by_program(
        "comms-translate", "--comms-to-nvptx", "--device-library=/nonexistent", "-o", "/dev/null"
    ),
}
SECRET = "this line is of another file"
#: Errors of the parser's verifier, of a pass, and of the run.
WRONG = {
    "verifier": '  %w = "arith.addi"(%v, %v) : (f32, f32) -> f32 loc("{file}":1:1)',
    "pass": "  %c9 = arith.constant 9 : index\n"
    '  %w = memref.load %x[%c9] : memref<8xf32> loc("{file}":1:1)\n'
    '  memref.store %w, %x[%c9] : memref<8xf32> loc("{file}":1:1)',
    "nested": "  %c9 = arith.constant 9 : index\n"
    '  memref.store %v, %x[%c9] : memref<8xf32> loc(fused["a", callsite("b"("{file}":1:1) at "{file}":1:2)])',
    "unknown op": '  "foo.bar"() : () -> () loc("{file}":1:1)',
}


@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize("what", WRONG)
def test_opens_no_file(what: str, way: str, tmp_path: pathlib.Path) -> None:
    secret, pipe, path = tmp_path / "secret", tmp_path / "pipe", tmp_path / "kernel.mlir"
    secret.write_text(SECRET + "\n")
    os.mkfifo(pipe)
    for file in (secret, pipe):
        path.write_text(kernel(WRONG[what].format(file=file)))
        status, said = ALL_WAYS[way](path)
        assert SECRET not in said, said
        assert status >= 0, said


def test_a_python_kernel_shows_its_lines() -> None:
    """Those were written by who runs the kernel."""

    @commsir.kernel(ranks=1, blocks=1)
    def wrong(x: "commsir.f32[commsir.Array, 8]", y: "commsir.f32[commsir.Array, 8]") -> None:
        y[8] = x[0]  # Out of bounds.

    with pytest.raises(commsir.CommsError, match="Out of bounds"):
        wrong.check()
