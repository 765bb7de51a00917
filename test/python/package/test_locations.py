"""A location in a text may name any file. No path by which a text enters opens that file."""

import os
import pathlib

import commsir
import pytest
from test_hostile import WAYS, kernel

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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", WRONG)
def test_opens_no_file(what: str, way: str, tmp_path: pathlib.Path) -> None:
    secret, pipe, path = tmp_path / "secret", tmp_path / "pipe", tmp_path / "kernel.mlir"
    secret.write_text(SECRET + "\n")
    os.mkfifo(pipe)
    for file in (secret, pipe):
        path.write_text(kernel(WRONG[what].format(file=file)))
        status, said = WAYS[way](path)
        assert SECRET not in said, said
        assert status >= 0, said


def test_a_python_kernel_shows_its_lines() -> None:
    """Those were written by who runs the kernel."""

    @commsir.kernel(ranks=1, blocks=1)
    def wrong(x: "commsir.f32[commsir.Array, 8]", y: "commsir.f32[commsir.Array, 8]") -> None:
        y[8] = x[0]  # Out of bounds.

    with pytest.raises(commsir.CommsError, match="Out of bounds"):
        wrong.check()
