"""Compiles the tiles that products are fast in for each chip, and compares what they take with a table.

budgets.py PTXAS [--write]

No product may need more shared memory than the table says, or than a CTA of its chip has. By the ptxas that the table
names, none may need more registers, or spill more. `--write` replaces the table (Inputs/budgets.txt): chip, product,
registers per thread, bytes that a thread spills, bytes of shared memory per CTA.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from products import BF16, F8, LEFT, RIGHT, Product

TABLE = pathlib.Path(__file__).parent / "Inputs" / "budgets.txt"
#: KiB of shared memory that a CTA may have, by CUDA's technical specifications.
SHARED = {"sm_80": 163, "sm_86": 99, "sm_89": 99, "sm_90": 227, "sm_100": 227, "sm_120": 99}
BYTES = ("f8", "f8", "bf16")
NAME = 28


def whole(
    m: int, n: int, tile: tuple[int, int], kinds: tuple[str, str, str], *turned: tuple[bool, bool], **more: Any
) -> Product:
    """A product of 512 terms in whole tiles."""
    return Product(m, 512, n, tile, kinds, *turned, is_whole=True, **more)


PRODUCTS = {
    "bf16": whole(512, 512, (128, 256), BF16),
    "bf16, right turned": whole(512, 512, (128, 256), BF16, RIGHT),
    "bf16, left turned": whole(512, 512, (128, 256), BF16, LEFT),
    "bf16, 1 addend": whole(512, 512, (128, 256), BF16, addends=("bf16",)),
    "bf16, 7 addends": whole(512, 512, (128, 256), BF16, RIGHT, addends=("bf16",) * 7),
    "bf16, added to f32": whole(512, 512, (128, 128), ("bf16", "bf16", "f32"), accumulate=True),
    "bf16, 16 rows": whole(16, 512, (16, 128), BF16, RIGHT),
    "bf16, odd": Product(511, 509, 507, (128, 128), BF16),
    "fp8": whole(512, 576, (128, 192), BYTES, RIGHT),
    "fp8, 1x128 and 128x128": whole(512, 576, (128, 192), BYTES, RIGHT, scales=((512, 4), (5, 4))),
    "fp8, 1x128 and 1x128": whole(512, 512, (128, 128), F8, RIGHT, scales=((512, 4), (512, 4))),
    "fp8, by columns": whole(512, 512, (128, 128), F8),
}
#: Those that are compiled for each chip: all, or these where only the memory differs from another's.
FEW = ("bf16, 1 addend", "bf16, odd", "fp8, 1x128 and 128x128")
CHOSEN = {chip: tuple(PRODUCTS) if chip in ("sm_80", "sm_90", "sm_100") else FEW for chip in SHARED}
#: Registers per thread, bytes that are spilled, and bytes of shared memory per CTA.
Taken = tuple[int, int, int]


def run(*command: str) -> str:
    """What a program writes."""
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        sys.exit(f"{' '.join(command)}\n{made.stderr[:4000]}")
    return made.stdout + made.stderr


def measure(ptxas: str, folder: str, chip: str) -> dict[str, Taken]:
    """What each product takes."""
    names = {f"product{number}": name for number, name in enumerate(CHOSEN[chip])}
    source, ptx = f"{folder}/{chip}.mlir", f"{folder}/{chip}.ptx"
    kernels = [PRODUCTS[name].text().replace("@product(", f"@{entry}(") for entry, name in names.items()]
    pathlib.Path(source).write_text("\n".join(kernels), encoding="utf-8")
    options = f"ranks=1 blocks=8 threads=256 chip={chip}"
    run("comms-translate", "--comms-to-ptx", source, f"--gpu={options} check=false", "-o", ptx)
    # The size of dynamic shared memory is only in the launch attribute.
    lowered = run("comms-opt", source, f"--pass-pipeline=builtin.module(comms-to-nvvm{{{options} check=false}})")
    heads = [line for line in lowered.splitlines() if "llvm.func @product" in line]
    found = [(re.search(r"@(\w+)", line), re.search(r"dynamic_shared = (\d+)", line)) for line in heads]
    dynamic = {entry[1]: int(size[1]) if size else 0 for entry, size in found if entry}
    arch = "sm_90a" if chip == "sm_90" else chip
    told = run(ptxas, f"-arch={arch}", "-v", ptx, "-o", f"{folder}/{chip}.cubin")
    taken: dict[str, Taken] = {}
    for part in told.split("Compiling entry function")[1:]:
        said = [
            re.search(at, part) for at in (r"'(\w+)'", r"Used (\d+)", r"(\d+) bytes spill st", r", (\d+) bytes smem")
        ]
        entry, registers, spilled, static = (one[1] if one else "0" for one in said)
        taken[names[entry]] = (int(registers), int(spilled), max(dynamic[entry], int(static)))
    return taken


def judge(chip: str, taken: dict[str, Taken], allowed: dict[str, list[int]], is_same: bool) -> list[str]:
    """What is wrong with the products of a chip."""
    wrong = [f"{chip} {name}: not assembled" for name in CHOSEN[chip] if name not in taken]
    for name, numbers in taken.items():
        most = allowed.get(f"{chip:8}{name:{NAME}}", [0, 0, 0])
        grown = numbers[2] > most[2] or (is_same and (numbers[0] > most[0] or numbers[1] > most[1]))
        if grown or numbers[2] > SHARED[chip] << 10:
            wrong.append(f"{chip} {name}: takes {numbers}; the table has {most}, the chip {SHARED[chip]} KiB")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptxas")
    parser.add_argument("--write", action="store_true", help="replace the table")
    options = parser.parse_args()
    release = re.search(r"V([\d.]+)", run(options.ptxas, "--version"))
    own = f"ptxas {release[1] if release else 'unknown'}"
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda chip: measure(options.ptxas, folder, chip), SHARED))
    taken = dict(zip(SHARED, made, strict=True))
    if options.write:
        rows = [
            f"{chip:8}{name:{NAME}}" + "".join(f"{number:8}" for number in taken[chip][name])
            for chip, names in CHOSEN.items()
            for name in names
        ]
        TABLE.write_text("\n".join([own, *rows, ""]), encoding="utf-8")
    first, *rows = TABLE.read_text(encoding="utf-8").splitlines()
    allowed = {row[: 8 + NAME]: [int(number) for number in row[8 + NAME :].split()] for row in rows}
    wrong = [text for chip in SHARED for text in judge(chip, taken[chip], allowed, first == own)]
    if wrong:
        sys.exit("(registers, bytes spilled, bytes of shared memory) by Inputs/budgets.txt:\n" + "\n".join(wrong))
    print(f"{sum(map(len, taken.values()))} products within their budgets")


if __name__ == "__main__":
    main()
