"""Runs matrix products in a PTX emulator, one for each way in which they are lowered, and compares with the CPU world.

products.py [--only TEXT]

The operands are whole numbers, whose sums are exact in any order: every bit has to be the same. Each product is made in
tiles by two blocks, and the last tiles are shorter.
"""

import argparse
import dataclasses
import pathlib
import sys
import tempfile

import emulate
import emulator
from memory import Fault

NAMES = {"f8": "f8E4M3FN", "f8e5m2": "f8E5M2"}


@dataclasses.dataclass
class Product:
    """c[m, n] = a b, or + what is there, or + addends, in tiles. Memory is larger than the parts by `more` columns."""

    m: int
    k: int
    n: int
    tile: tuple[int, int]
    kinds: tuple[str, str, str] = ("bf16", "bf16", "f32")
    turned: tuple[bool, bool] = (False, False)
    accumulate: bool = False
    addends: tuple[str, ...] = ()
    #: The shapes of the scales of both operands.
    scales: tuple[tuple[int, int], ...] = ()
    first: tuple[int, int] = (0, 0)
    more: int = 0
    #: Tiles are known to be whole.
    is_whole: bool = False
    threads: int = 128
    chip: str = "sm_90"
    #: An instruction that the code has, and one that it lacks.
    way: tuple[str, str] = ("wgmma", "tensormap")

    def memory(self, rows: int, columns: int, kind: str) -> str:
        row, column = self.first
        return f"memref<{rows + row}x{columns + column + self.more}x{NAMES.get(kind, kind)}>"

    def text(self) -> str:
        m, k, n, (tall, broad), (row, column) = self.m, self.k, self.n, self.tile, self.first
        shapes = [(k, m) if self.turned[0] else (m, k), (n, k) if self.turned[1] else (k, n), (m, n)]
        types = [self.memory(*shape, kind) for shape, kind in zip(shapes, self.kinds, strict=True)]
        added = [self.memory(m, n, kind) for kind in self.addends]
        scaled = [f"memref<{rows}x{columns}xf32>" for rows, columns in self.scales]
        names = [*"abc", *(f"d{i}" for i in range(len(added))), *"pq"[: len(scaled)]]
        head = ", ".join(f"%{name}: {kind}" for name, kind in zip(names, types + added + scaled, strict=True))
        sizes = sorted({0, m, k, n, tall, broad, row, column})
        left = f"%c{row}, %ic" if self.turned[0] else f"%ir, %c{column}"
        right = f"%jr, %c{column}" if self.turned[1] else f"%c{row}, %jc"
        flags = (self.accumulate, *self.turned)
        said = [
            flag for flag, is_set in zip(("accumulate", "transpose_lhs", "transpose_rhs"), flags, strict=True) if is_set
        ]
        return "\n".join(
            [
                f"comms.kernel @product({head}) {{",
                *(f"  %c{size} = arith.constant {size} : index" for size in sizes),
                "  %block = comms.block_id",
                "  %blocks = comms.num_blocks",
                f"  %begin = arith.muli %block, %c{tall} : index",
                f"  %step = arith.muli %blocks, %c{tall} : index",
                f"  scf.for %i = %begin to %c{m} step %step {{",
                f"    %down = arith.subi %c{m}, %i : index",
                f"    %rows = arith.minsi %down, %c{tall} : index",
                f"    %ir = arith.addi %i, %c{row} : index",
                f"    %ic = arith.addi %i, %c{column} : index",
                f"    scf.for %j = %c0 to %c{n} step %c{broad} {{",
                f"      %rest = arith.subi %c{n}, %j : index",
                f"      %columns = arith.minsi %rest, %c{broad} : index",
                f"      %jr = arith.addi %j, %c{row} : index",
                f"      %jc = arith.addi %j, %c{column} : index",
                f"      comms.contract %a[{left}], %b[{right}] to %c[%ir, %jc] tile [{tall}, {broad}] depth %c{k}"
                + ("" if self.is_whole else " rows %rows columns %columns")
                + (" scaled by %p, %q" if scaled else "")
                + (" plus " + ", ".join(f"%d{i}[%ir, %jc]" for i in range(len(added))) if added else "")
                + (f" {{{', '.join(said)}}}" if said else "")
                + f" : {', '.join(types)}"
                + (f" scaled by {', '.join(scaled)}" if scaled else "")
                + (f" plus {', '.join(added)}" if added else ""),
                "    }",
                "  }",
                "  comms.return",
                "}",
            ]
        )


BOTH, LEFT, RIGHT = (True, True), (True, False), (False, True)
F8 = ("f8", "f8e5m2", "f32")
BF16 = ("bf16", "bf16", "bf16")
MAPS, WARPS = ("cp.async.bulk.tensor", "cp.async.cg"), ("ldmatrix", "wgmma")
PRODUCTS = {
    "maps": Product(70, 128, 72, (64, 64), way=MAPS),
    "maps, left turned": Product(64, 64, 40, (64, 40), ("f16", "f16", "bf16"), LEFT, way=MAPS),
    "maps, right turned": Product(65, 192, 136, (64, 136), turned=RIGHT, way=MAPS),
    "maps, both turned": Product(128, 64, 72, (128, 72), turned=BOTH, first=(3, 8), way=MAPS),
    "maps, two groups": Product(130, 64, 200, (128, 104), threads=256, way=MAPS),
    "maps, four groups": Product(128, 64, 256, (128, 256), threads=512, turned=RIGHT, way=MAPS),
    "maps, added to": Product(72, 64, 72, (64, 72), ("bf16", "bf16", "f16"), accumulate=True, way=MAPS),
    "addends by maps": Product(72, 64, 72, (64, 72), ("bf16", "bf16", "bf16"), addends=("bf16", "f16"), way=MAPS),
    "addends of f32": Product(64, 64, 72, (64, 72), ("bf16", "bf16", "bf16"), addends=("f32",), way=MAPS),
    "bytes": Product(65, 256, 144, (64, 96), F8, RIGHT, way=MAPS),
    "bytes, 1x128": Product(65, 256, 144, (64, 96), F8, RIGHT, scales=((65, 2), (144, 2)), way=MAPS),
    "bytes, 128x128": Product(64, 256, 192, (64, 192), F8, RIGHT, scales=((1, 2), (2, 2)), way=MAPS),
    "bytes, one": Product(64, 128, 48, (64, 48), F8, RIGHT, accumulate=True, scales=((1, 1), (1, 1)), way=MAPS),
    "groups, odd": Product(65, 63, 65, (64, 64), turned=LEFT, first=(1, 5), more=1),
    "groups, fp8": Product(65, 130, 33, (64, 33), F8, scales=((1, 2), (2, 1))),
    "groups, 1024 threads": Product(256, 64, 64, (256, 64), turned=RIGHT, threads=1024),
    "warps, both turned": Product(
        40, 72, 24, (40, 24), ("f16", "f16", "bf16"), BOTH, True, ("bf16", "f16", "f32"), chip="sm_80", way=WARPS
    ),
    "warps, left turned": Product(33, 63, 40, (32, 40), BF16, LEFT, False, ("bf16",), more=3, chip="sm_86", way=WARPS),
    "warps, fp8": Product(17, 130, 24, (16, 24), F8, scales=((17, 2), (2, 1)), chip="sm_89", way=("mma.sync", "wgmma")),
    "warps, fp8 turned": Product(
        16,
        256,
        130,
        (16, 65),
        F8,
        RIGHT,
        scales=((1, 2), (130, 2)),
        threads=64,
        chip="sm_120",
        way=("mma.sync", "wgmma"),
    ),
    "lanes, f32": Product(
        9, 33, 20, (8, 16), ("f32", "f32", "bf16"), LEFT, threads=32, chip="sm_80", way=("mul.rn.f32", "mma.sync")
    ),
    "warps": Product(33, 65, 17, (32, 16), addends=("bf16",), chip="sm_80", way=WARPS),
}


def run(name: str, product: Product) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "product.mlir"
        path.write_text(product.text(), encoding="utf-8")
        options = f"blocks=2 threads={product.threads} chip={product.chip}"
        pair = emulate.Comparison(str(path), 1, options, seed=1, weak=False, whole=True)
        present, absent = product.way
        if present not in pair.ptx or absent in pair.ptx:
            sys.exit(f"{name}: not with {present} and without {absent}")
        try:
            pair.run(emulator.parse(pair.ptx), launches=1, continues=False)
        except Fault as fault:
            sys.exit(f"{name}: {fault}\n{product.text()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="text in the names of those to run")
    chosen = {name: product for name, product in PRODUCTS.items() if parser.parse_args().only in name}
    for name, product in chosen.items():
        run(name, product)
    print(f"{len(chosen)} products: the same bits as on the CPU")


if __name__ == "__main__":
    main()
