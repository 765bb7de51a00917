"""Takes a kind of synchronization of matrix products out of the PTX: the emulator must reveal it.

product_mutants.py [--only TEXT] [--each] [--seeds K]

The kinds are the barriers in shared memory between the thread that copies tiles and those that multiply, the barriers
of all threads and of a warp, the fences between what threads do and what copies and wgmma do, and the waits for copies
and for wgmma. A kind that no seed shows is a failure, except those in NEEDLESS. --each takes one instruction out at a
time and prints those that no seed shows: an instruction may be one of two that order the same.
"""

import argparse
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import emulate
import emulator
from memory import Fault

HERE = pathlib.Path(__file__).parent
SYNCHRONIZATIONS = [
    r"mbarrier\.init\.[^;]*;",
    r"fence\.mbarrier_init[^;]*;",
    r"mbarrier\.arrive\.shared[^;]*;",
    r"mbarrier\.arrive\.expect_tx[^;]*;",
    r"fence\.proxy\.async[^;]*;",
    r"fence\.proxy\.tensormap::generic\.acquire[^;]*;",
    r"tensormap\.cp_fenceproxy[^;]*;",
    r"bar\.sync\s+0;",
    r"bar\.sync\s+1,[^;]*;",
    r"bar\.warp\.sync[^;]*;",
    r"cp\.async\.wait_group[^;]*;",
    r"cp\.async\.commit_group;",
    r"wgmma\.fence[^;]*;",
    r"wgmma\.commit_group[^;]*;",
    r"wgmma\.wait_group[^;]*;",
]


#: Waits for barriers in shared memory: for a job, for a stage that is full, or empty. Each is taken out alone.
POLLS = [r"@q bra again;", r"@!p bra again;"]


class Case(NamedTuple):
    text: str
    ranks: int
    options: str


CHAIN = """
comms.kernel @chain(%x: memref<{rows}x{depth}xbf16>, %w: memref<{depth}x64xbf16>, %y: memref<{rows}x64xbf16>,
                    %v: memref<64x16xbf16>, %z: memref<{rows}x16xf32>) {{
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %depth = arith.constant {depth} : index
  %tile = arith.constant {tile} : index
  %rows = arith.constant {rows} : index
  scf.for %i = %c0 to %rows step %tile {{
    comms.contract %x[%i, %c0], %w[%c0, %c0] to %y[%i, %c0] tile [{tile}, 64] depth %depth
      : memref<{rows}x{depth}xbf16>, memref<{depth}x64xbf16>, memref<{rows}x64xbf16>
  }}
  scf.for %i = %c0 to %rows step %tile {{
    comms.contract %y[%i, %c0], %v[%c0, %c0] to %z[%i, %c0] tile [{tile}, 16] depth %c64
      : memref<{rows}x64xbf16>, memref<64x16xbf16>, memref<{rows}x16xf32>
  }}
  comms.return
}}
"""


def chain(rows: int, tile: int, depth: int, threads: int, chip: str) -> Case:
    """A product of the product of two matrices, in tiles."""
    text = CHAIN.format(rows=rows, tile=tile, depth=depth)
    return Case(text, 1, f"blocks=1 threads={threads} chip={chip}")


def cases() -> dict[str, Case]:
    signaled = (HERE / "Inputs" / "product-signaled.mlir").read_text(encoding="utf-8")
    return {
        "signaled": Case(signaled, 2, "blocks=1 threads=128 chip=sm_90"),
        "maps": chain(64, 64, 640, 128, "sm_90"),
        "groups": chain(256, 128, 392, 256, "sm_90"),
        "warps": chain(64, 32, 328, 128, "sm_80"),
    }


#: Of a case, what its kernel would not miss, and why.
NEEDLESS = {
    ("groups", "fence.proxy.async;"): "no copy of tiles reads the operands",
    # Waits of the copying thread for an empty stage.
    ("maps", "@!p bra again; (4)"): "all stages are empty when the second product begins, which has one",
    **{("signaled", f"@!p bra again; ({number})"): "there are as many stages as copies" for number in (2, 3, 4)},
}


def mutations(ptx: str, each: bool) -> Iterator[tuple[str, str]]:
    """What is taken out, and the text without it."""
    start = ptx.index(".entry")
    head, body = ptx[:start], ptx[start:]
    for pattern in SYNCHRONIZATIONS + POLLS:
        found = list(re.finditer(pattern, body))
        if not found:
            continue
        name = " ".join(found[0][0].split())[:60]
        if not each and pattern not in POLLS:
            yield name, head + re.sub(pattern, ";", body)
            continue
        for number, match in enumerate(found, 1):
            yield f"{name} ({number})", head + body[: match.start()] + ";" + body[match.end() :]


def shows(case: Case, path: str, ptx: str, seed: int) -> str:
    pair = emulate.Comparison(path, case.ranks, case.options, seed, weak=False, whole=True)
    try:
        pair.run(emulator.parse(ptx), launches=1, continues=False)
    except Fault as fault:
        return str(fault) or "fault"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="text in the names of the cases")
    parser.add_argument("--each", action="store_true", help="one instruction at a time")
    parser.add_argument("--seeds", type=int, default=12)
    options = parser.parse_args()
    shown, hidden = 0, list[str]()
    for name, case in cases().items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "product.mlir"
            path.write_text(case.text, encoding="utf-8")
            ptx = emulate.Comparison(str(path), case.ranks, case.options, 1, weak=False, whole=True).ptx
            for what, without in mutations(ptx, options.each):
                if (name, what) in NEEDLESS:
                    continue
                said = (shows(case, str(path), without, seed) for seed in range(1, options.seeds + 1))
                if fault := next(filter(None, said), ""):
                    shown += 1
                else:
                    hidden.append(f"{name}: {what}")
                print(f"{name}: {what}: {fault or 'not shown'}", flush=True)
    print(f"{shown} of {shown + len(hidden)} mutants are shown")
    if hidden and not options.each:
        sys.exit("not shown: " + ", ".join(hidden))


if __name__ == "__main__":
    main()
