"""Runs collectives by permutation over various shapes, outputs and rounds, and compares each with NumPy.

Usage: permutations.py FOLDER

comms-check-sync checks every kernel before it runs. The last line printed is the number of runs.
"""

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ELEMENTS = {"f32": np.float32, "i32": np.int32}
OPS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast")
#: Pairs of a variant and a collective that has none.
WITHOUT = (
    ("memory", "broadcast"),
    ("late", "broadcast"),
    ("batches-late", "broadcast"),
    ("in-place", "reduce_scatter"),
    ("in-place", "all_gather"),
)
#: Attributes of a variant: rounds of few bytes; steps that are copied late; tiles that stay in registers over steps;
#: tiles of several slots that are loaded together, of which three jobs in a slot leave one, and one job leaves five.
ATTRIBUTES = {
    "rounds": {"round_bytes": 4096},
    "late": {"round_bytes": 4096, "step_bytes": 0, "step_fence": 0, "late_copies": 1},
    "held": {"step_bytes": 0, "step_fence": 0, "held_tiles": 4},
    "batches": {"step_bytes": 0, "batch_loads": 5},
    "batches-late": {"round_bytes": 20480, "step_bytes": 0, "batch_loads": 5},
}


def expected(op: str, inputs: list[Array], rank: int, root: int) -> Array:
    """What `op` gives on one rank. Sums are exact: inputs are small whole numbers."""
    ranks = len(inputs)
    if op == "all_reduce":
        return np.asarray(np.sum(inputs, axis=0))
    if op == "broadcast":
        return inputs[root]
    if op == "all_gather":
        return np.concatenate(inputs)
    parts = [np.split(x, ranks) for x in inputs]
    if op == "reduce_scatter":
        return np.asarray(np.sum([p[rank] for p in parts], axis=0))
    return np.concatenate([p[rank] for p in parts])


def kernel(
    op: str, element: str, ins: int, outs: int, root: int, window: bool, in_place: bool, numbers: dict[str, int]
) -> str:
    """The text of one kernel."""
    source = f"!comms.window<{ins}x{element}>"
    target = f"!comms.window<{outs}x{element}>" if window else f"memref<{outs}x{element}>"
    what = {"all_reduce": " sum", "reduce_scatter": " sum", "broadcast": f" root {root}"}.get(op, "")
    output = "" if in_place else f", %y: {target}"
    name = "%x" if in_place else "%y"
    listed = ", ".join(f"comms.{name} = {value} : i64" for name, value in numbers.items())
    attributes = f" attributes {{{listed}}}" if listed else ""
    return (
        f"comms.kernel @run(%x: {source}{output}){attributes} {{\n  %team = comms.team world\n"
        f"  comms.{op}{what} %team ins(%x : {source}) outs({name} : {target})\n  comms.return\n}}\n"
    )


def run(folder: Path, op: str, ranks: int, part: int, blocks: int, protocol: str, variant: str) -> None:
    """One combination; raises where the run fails or the result differs."""
    element = "i32" if op == "all_to_all" else "f32"
    ins = part if op in ("all_reduce", "broadcast", "all_gather") else part * ranks
    outs = part * ranks if op in ("all_gather", "all_to_all") else part
    root = ranks // 2
    in_place = variant == "in-place"
    window = variant not in ("memory", "late", "batches-late")
    text = kernel(op, element, ins, outs, root, window, in_place, ATTRIBUTES.get(variant, {}))
    (folder / "kernel.mlir").write_text(text)
    random = np.random.default_rng(ranks * 1000 + part)
    inputs = [random.integers(-50, 50, ins).astype(ELEMENTS[element]) for _ in range(ranks)]
    for rank in range(ranks):
        np.save(folder / f"x-{rank}.npy", inputs[rank])
        np.save(folder / f"y-{rank}.npy", expected(op, inputs, rank, root).astype(ELEMENTS[element]))
    output = "x" if in_place else "y"
    # In place, the input of the second launch is the output of the first.
    launches = 1 if in_place else 3
    command = ["comms-run", str(folder / "kernel.mlir"), f"--ranks={ranks}", f"--blocks={blocks}"]
    command += [
        "--algorithm=permutation",
        f"--protocol={protocol}",
        f"--launches={launches}",
        f"--input=x={folder}/x-%r.npy",
    ]
    command += [f"--expect={output}={folder}/y-%r.npy", "--bitwise"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(" ".join(command), text, done.stdout, done.stderr, sep="\n")
        raise SystemExit(f"ended with status {done.returncode}")


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    variants = ("windows", "memory", "rounds", "in-place", "late", "batches", "batches-late")
    for op, variant in itertools.product(OPS, variants):
        if (variant, op) in WITHOUT:
            continue
        cases = [
            (4, 1000, 3, "push"),
            (3, 4099, 2, "pull"),
            (2, 17, 1, "ll"),
            (1, 300, 2, "push"),
            (9, 2048, 2, "push"),
        ]
        for ranks, part, blocks, protocol in cases:
            if variant in ATTRIBUTES and protocol == "ll":
                continue
            run(folder, op, ranks, part, blocks, protocol, variant)
            count += 1
    # A broadcast in pieces and one in chunks; the others large enough that the ranks go in step.
    large = (("broadcast", 100_003), ("broadcast", (1 << 22) + 5), ("all_reduce", 1 << 22))
    for op, part in (*large, ("reduce_scatter", 1 << 20), ("all_gather", 1 << 20), ("all_to_all", 1 << 20)):
        for ranks in (3, 4):
            run(folder, op, ranks, part, 2, "push", "windows")
            count += 1
    # Two, four and one tile a block; and a last tile that is not whole, which nobody holds.
    for op in ("all_reduce", "all_gather"):
        for ranks, part, blocks, protocol in (
            (4, 4096, 2, "push"),
            (3, 6144, 2, "ll"),
            (2, 512, 1, "pull"),
            (4, 1000, 3, "push"),
        ):
            run(folder, op, ranks, part, blocks, protocol, "held")
            count += 1
    print(f"{count} runs agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
