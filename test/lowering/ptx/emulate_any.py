"""Emulates the PTX of random collectives and compares every bit with the CPU world.

emulate_any.py [--seed S] [--count N]

Draws the operation, shapes, elements, team, algorithm, protocol, regions and launch shape. If the lowering refuses a
combination (for example a protocol that cannot carry a type), it draws another.
"""

import argparse
import collections
import pathlib
import random
import subprocess
import sys
import tempfile

import emulate
import emulator
import memory

TYPES = ["f32", "f32", "f16", "bf16", "i32", "i8", "i64", "f64"]


def region(lots: random.Random, kind: str, length: int) -> str:
    """A consume region of a reduction: nothing, arithmetic, or a norm over the row."""
    wide = {"f16": "f32", "bf16": "f32", "i8": "i32"}.get(kind, kind)
    choice = lots.choice(["", "", "plain", "row"])
    if not choice or wide == "f64":
        return ""
    tile, one = f"tensor<{length}x{wide}>", f"tensor<1x{wide}>"
    float_ = wide[0] == "f"
    suffix = "f" if float_ else "i"
    text = f"  consume (%a: {tile}) {{\n"
    if choice == "plain":
        text += f"    %o = arith.add{suffix} %a, %a : {tile}\n"
    else:
        text += f"    %s = comms.row_reduce {lots.choice(['sum', 'max', 'min'])} %a : {tile} -> {one}\n"
        text += f"    %b = comms.broadcast_row %s : {one} -> {tile}\n"
        text += f"    %o = arith.sub{suffix} %a, %b : {tile}\n"
    if wide == kind:
        return text + f"    comms.yield %o : {tile}\n  }}\n"
    cut = "arith.truncf" if float_ else "arith.trunci"
    return (
        text
        + f"    %n = {cut} %o : {tile} to tensor<{length}x{kind}>\n    comms.yield %n : tensor<{length}x{kind}>\n  }}\n"
    )


def kernel(lots: random.Random, ranks: int) -> str:
    kind = lots.choice(TYPES)
    splits = [n for n in range(1, ranks + 1) if ranks % n == 0]
    factor = lots.choice(splits)
    split = lots.choice(["", "", f"inner {factor}", f"outer {factor}"])
    members = ranks if not split else factor if split[0] == "i" else ranks // factor
    op = lots.choice(
        ["all_reduce"] * 4 + ["reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce", "gather", "scatter"]
    )
    length, rows = lots.choice([1, 3, 8, 16, 33, 64, 100, 257]), lots.choice([1, 1, 2, 3, 5])
    cut = op in ("reduce_scatter", "all_to_all", "scatter")
    ins = rows * members if cut else rows
    outs = {"all_gather": rows * members, "gather": rows * members, "all_to_all": ins}.get(op, rows)
    what = {"all_reduce": "sum", "reduce_scatter": "sum", "reduce": "max"}.get(op, "")
    if what and lots.random() < 0.3:
        what = lots.choice(["sum", "max", "min", "avg"] + (["and", "xor"] if kind[0] == "i" else []))
    rooted = op in ("broadcast", "reduce", "gather", "scatter")
    head = f"{what} {f'root {lots.randrange(members)}' if rooted else ''} %team"
    source = f"!comms.window<{ins}x{length}x{kind}>" if lots.random() < 0.6 else f"memref<{ins}x{length}x{kind}>"
    target = f"!comms.window<{outs}x{length}x{kind}>" if lots.random() < 0.4 else f"memref<{outs}x{length}x{kind}>"
    team = f"  %team = comms.team_split %world {split}\n" if split else "  %team = comms.team world\n"
    consume = region(lots, kind, length) if what and op != "reduce" else ""
    in_place = ins == outs and source == target and lots.random() < 0.5
    arguments = f"%x: {source}" + ("" if in_place else f", %y: {target}")
    call = f"  comms.{op} {head} ins(%x : {source}) outs(%{'x' if in_place else 'y'} : {target})\n{consume}"
    if lots.random() < 0.15 and not in_place and outs == ins:
        call += f"  comms.{op} {head} ins(%x : {source}) outs(%y : {target})\n"
    return f"comms.kernel @any({arguments}) {{\n  %world = comms.team world\n{team}{call}  comms.return\n}}\n"


def draw(lots: random.Random) -> tuple[str, int, str, int]:
    ranks = lots.choice([1, 2, 3, 4, 4, 5, 6, 8])
    cluster = lots.choice([1, 1, 1, 2, 4])
    threads = lots.choice([1, 2, 16, 32, 64, 128])
    chip, blocks = lots.choice(["sm_90", "sm_100"]), lots.choice([1, 1, 2, 3])
    options = f"blocks={blocks} threads={threads} cluster={cluster} chip={chip}"
    if lots.random() < 0.9:
        options += f" algorithm={lots.choice(['one_shot', 'two_shot', 'ring', 'permutation'])}"
    if lots.random() < 0.9:
        options += f" protocol={lots.choice(['pull', 'push', 'll', 'll128', 'lamport'])}"
    return kernel(lots, ranks), ranks, options, lots.choice([1, 2, 4])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--weak", action="store_true", help="memory as late and out of order as PTX allows")
    arguments = parser.parse_args()
    done, refused = 0, collections.Counter[str]()
    number = arguments.seed * 1_000_003
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "any.mlir"
        while done < arguments.count:
            number += 1
            text, ranks, options, launches = draw(random.Random(number))
            path.write_text(text)
            lowered = f"--pass-pipeline=builtin.module(comms-to-nvvm{{ranks={ranks} {options}}})"
            tried = subprocess.run(["comms-opt", str(path), lowered, "-o", "/dev/null"], capture_output=True, text=True)
            if tried.returncode:
                refused[next(line for line in tried.stderr.splitlines() if "error" in line)[-90:]] += 1
                if tried.returncode != 1 or refused.total() > 50 * arguments.count:
                    sys.exit(f"{text}{options}\n{tried.stderr}")
                continue
            try:
                pair = emulate.Comparison(str(path), ranks, options, number, arguments.weak)
                pair.run(emulator.parse(pair.ptx), launches, False)
            except (memory.Fault, SystemExit, NotImplementedError) as fault:
                print(f"number {number}, {ranks} ranks, {options}, {launches} launches: {fault!r}\n{text}")
                return 1
            done += 1
    print(f"{done} kernels: the same bits as on the CPU; {refused.total()} others cannot be made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
