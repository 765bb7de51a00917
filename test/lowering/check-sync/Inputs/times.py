"""Prints how long the checker takes for three symmetric kernels in worlds of several sizes.

Usage: times.py [--comms-opt PROGRAM] [--limit SECONDS]

The first gathers by hand: each block stores its stripe, meets the blocks of its number on the other
ranks in a barrier, reads all ranks' stripes, and counts a signal from each rank. The others put a part
to each rank with a signal, and end in a barrier of the blocks of one number, or of all blocks; the
checker cannot follow the latter as one. Ends with an error if a kernel is not proven on all ranks and
blocks, or takes longer than the limit.
"""

import argparse
import re
import subprocess
import sys

WORLDS = [(8, 1), (8, 32), (8, 128), (64, 128), (512, 32), (512, 128)]
#: Of the kernel that joins all blocks: more than 2,048 are not followed together.
JOINED = [(8, 1), (8, 32), (8, 128), (16, 128)]
GATHER = """
comms.kernel @gather(%x: memref<8192xf32>, %w: !comms.window<8192xf32>, %y: memref<8192xf32>,
                     %s: !comms.signal<128>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %world = comms.team world
  %n = comms.size %world
  %block = comms.block_id
  %at = arith.muli %block, %c64 : index
  %own = comms.local %w : !comms.window<8192xf32> -> memref<8192xf32>
  %mine = comms.tile_load %x[%at] : memref<8192xf32> -> tensor<64xf32>
  comms.tile_store %mine, %own[%at] : tensor<64xf32>, memref<8192xf32>
  comms.barrier %world block
  comms.for_peers %world as %p {
    %part = comms.peer %w at %p of %world : !comms.window<8192xf32> -> memref<8192xf32>
    %tile = comms.tile_load %part[%at] : memref<8192xf32> -> tensor<64xf32>
    comms.tile_store %tile, %y[%at] : tensor<64xf32>, memref<8192xf32>
  }
  comms.for_peers %world as %p {
    comms.signal inc %s[%block] at %p of %world : !comms.signal<128>
  }
  %epoch = comms.epoch
  %peers = arith.subi %n, %c1 : index
  %count = arith.muli %epoch, %peers : index
  %want = arith.index_cast %count : index to i64
  %t = comms.wait_signal %s[%block] ge %want : !comms.signal<128>
  comms.return
}
"""

PUTS = """
comms.kernel @puts(%x: memref<8192xf32>, %w: !comms.window<{elements}xf32>, %s: !comms.signal<128>) {{
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %world = comms.team world
  %n = comms.size %world
  %me = comms.rank %world
  %block = comms.block_id
  %blocks = comms.num_blocks
  %row = arith.muli %me, %blocks : index
  %mine = arith.addi %row, %block : index
  %to = arith.muli %mine, %c8 : index
  %from = arith.muli %block, %c8 : index
  comms.for_peers %world as %p {{
    comms.put %x[%from] to %w[%to] count %c8 at %p of %world : memref<8192xf32>, !comms.window<{elements}xf32>
    comms.signal inc %s[%block] at %p of %world : !comms.signal<128>
  }}
  comms.flush %world
  %epoch = comms.epoch
  %peers = arith.subi %n, %c1 : index
  %count = arith.muli %epoch, %peers : index
  %want = arith.index_cast %count : index to i64
  %t = comms.wait_signal %s[%block] ge %want : !comms.signal<128>
  comms.barrier %world {extent}
  comms.return
}}
"""


def text(kernel: str, ranks: int, blocks: int) -> str:
    """The kernel for that world."""
    if kernel == "gather":
        return GATHER
    return PUTS.format(elements=8 * ranks * blocks, extent="grid" if kernel == "joined" else "block")


def measure(opt: str, kernel: str, ranks: int, blocks: int) -> float:
    """Seconds that the pass takes; the kernel must be proven in this world."""
    source = text(kernel, ranks, blocks)
    options = f"-comms-check-sync=ranks={ranks} blocks={blocks} require-proof"
    done = subprocess.run([opt, options, "-mlir-timing"], input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{ranks} x {blocks}: {done.stderr}")
    proof = re.search(r'followed_ranks = (\d+).*verdict = "(\w+)"', done.stdout)
    if proof is None or (int(proof[1]), proof[2]) != (ranks, "proven"):
        sys.exit(f"{ranks} x {blocks}: not proven on all ranks\n{done.stdout}")
    spent = re.search(r"([\d.]+) \([^)]*\) +CheckSync", done.stderr)
    assert spent is not None, done.stderr
    return float(spent[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comms-opt", default="comms-opt")
    parser.add_argument("--limit", type=float, default=30)
    options = parser.parse_args()
    for kernel, worlds in (("gather", WORLDS), ("puts", WORLDS[1:4:2] + WORLDS[-1:]), ("joined", JOINED)):
        for ranks, blocks in worlds:
            seconds = measure(options.comms_opt, kernel, ranks, blocks)
            print(f"{kernel}, {ranks} x {blocks}: {1000 * seconds:.1f} ms")
            if seconds > options.limit:
                sys.exit(f"{kernel}, {ranks} x {blocks}: more than {options.limit} s")
    print("all proven")


if __name__ == "__main__":
    main()
