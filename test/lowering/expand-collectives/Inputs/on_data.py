# ===- on_data.py - Expanded collectives against NumPy ---------------------===#
#
# Part of CommsIR, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===-----------------------------------------------------------------------===#
"""Runs every algorithm with every protocol that supports it on the collectives
that it supports, and compares each rank's result with NumPy.

    on_data.py FOLDER [SEED [ROUNDS]]

Shapes, ranks, blocks, launches and element types are drawn from SEED; each
round visits all combinations once. Exits with 1 after a difference.
"""

import pathlib
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Collective: what stands before its team, and the algorithms that carry it.
COLLECTIVES = {
    "all_reduce": ("{reduction}", ["one_shot", "two_shot", "ring"]),
    "reduce_scatter": ("{reduction}", ["one_shot", "ring"]),
    "all_gather": ("", ["one_shot", "ring"]),
    "all_to_all": ("", ["one_shot"]),
    "all_to_all_v": ("", ["one_shot"]),
    "broadcast": ("root 1", ["one_shot", "two_shot", "ring"]),
    "reduce": ("{reduction} root 1", ["one_shot"]),
    "gather": ("root 1", ["one_shot"]),
    "scatter": ("root 1", ["one_shot"]),
    "send_recv": ("", ["one_shot"]),
}
PROTOCOLS = ["ll", "pull", "lamport", "ll128"]
DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i8": np.int8}
TOLERANCE: dict[str, float] = {"f32": 2e-5, "f16": 1e-2, "i32": 0, "i8": 0}
REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "sum": lambda values: values.sum(0),
    "avg": lambda values: values.mean(0),
    "max": lambda values: values.max(0),
    "min": lambda values: values.min(0),
}
MAX_ROWS = 3


class Case:
    """One kernel, its inputs, and what each rank has to hold after it."""

    def __init__(self, draw: random.Random, collective: str, algorithm: str, protocol: str) -> None:
        self.collective, self.algorithm, self.protocol = collective, algorithm, protocol
        rooted = collective in ("broadcast", "reduce", "gather", "scatter", "send_recv")
        self.ranks = n = draw.choice([3, 4, 5, 9] if rooted else [1, 2, 3, 4, 9])
        self.dtype = draw.choice(["f32", "f16"] if protocol == "lamport" else list(DTYPES))
        self.shape: tuple[int, ...] = draw.choice(
            [(n,), (n * 7,), (n * 333,), (n * 2, 33), (n, 1), (n * 3, 257), (n * 1025,)]
        )
        if collective == "all_to_all_v":
            self.shape = draw.choice([(MAX_ROWS * n, 17), (MAX_ROWS * n, 1)])
            if protocol == "ll128":  # A row is whole lines.
                self.shape = (MAX_ROWS * n, draw.choice([128, 384]))
        self.reduction = draw.choice(list(REDUCTIONS))
        self.blocks, self.launches = draw.choice([1, 2, 3]), draw.choice([1, 3, 4])
        self.seed = draw.randrange(1000)
        rng = np.random.default_rng(self.seed)
        values = (
            rng.uniform(-1, 1, (n, *self.shape))
            if self.dtype.startswith("f")
            else rng.integers(-5, 6, (n, *self.shape))
        )
        self.inputs = values.astype(DTYPES[self.dtype])
        self.rows = rng.integers(0, MAX_ROWS + 1, (n, n)).astype(np.int32)

    def __str__(self) -> str:
        return (
            f"{self.collective} {self.algorithm} {self.protocol} {self.dtype} {self.shape} "
            f"{self.reduction} ranks={self.ranks} blocks={self.blocks} "
            f"launches={self.launches} seed={self.seed}"
        )

    def kernel(self) -> str:
        def memory(shape: list[int], element: str) -> str:
            return f"memref<{'x'.join(map(str, shape))}x{element}>"

        rows = list(self.shape)
        if self.collective in ("reduce_scatter", "scatter"):
            rows[0] //= self.ranks
        if self.collective in ("all_gather", "gather"):
            rows[0] *= self.ranks
        x, y = memory(list(self.shape), self.dtype), memory(rows, self.dtype)
        counts = memory([self.ranks], "i32")
        name, arrays = f"comms.{self.collective}", f"ins(%x : {x}) outs(%y : {y})"
        arguments = f"%x: {x}, %y: {y}"
        if self.collective == "send_recv":
            body = f"{name} %team from 1 to 2 {arrays}"
        elif self.collective == "all_to_all_v":
            arguments += f", %s: {counts}, %r: {counts}"
            body = f"{name} %team {arrays} send_rows(%s : {counts}) recv_rows(%r : {counts}) max_rows {MAX_ROWS}"
        else:
            lead = COLLECTIVES[self.collective][0].format(reduction=self.reduction)
            body = f"{name} {lead} %team {arrays}"
        return f"comms.kernel @k({arguments}) {{\n  %team = comms.team world\n  {body}\n  comms.return\n}}\n"

    def expected(self) -> list[Array] | list[Array | None]:
        """What rank r holds, by rank; None: nothing was written."""
        x, n = self.inputs.astype(np.float64), self.ranks
        reduced = REDUCTIONS[self.reduction](x)
        if self.dtype.startswith("i"):
            reduced = np.trunc(reduced)

        def at(rank: int, value: Array) -> list[Array | None]:
            return [value if r == rank else None for r in range(n)]

        if self.collective == "all_to_all_v":
            starts = np.concatenate([np.zeros((n, 1), int), self.rows.cumsum(1)], 1)
            return [np.concatenate([x[s][starts[s, r] : starts[s, r + 1]] for s in range(n)]) for r in range(n)]
        by_name: dict[str, Callable[[], list[Array] | list[Array | None]]] = {
            "all_reduce": lambda: [reduced] * n,
            "reduce_scatter": lambda: np.split(reduced, n),
            "all_gather": lambda: [np.concatenate(list(x))] * n,
            "all_to_all": lambda: [np.concatenate([np.split(x[s], n)[r] for s in range(n)]) for r in range(n)],
            "broadcast": lambda: [x[1]] * n,
            "reduce": lambda: at(1, reduced),
            "gather": lambda: at(1, np.concatenate(list(x))),
            "scatter": lambda: np.split(x[1], n),
            "send_recv": lambda: at(2, x[1]),
        }
        return by_name[self.collective]()

    def run(self, folder: pathlib.Path) -> str | None:
        """Returns what is wrong, or nothing."""
        (folder / "k.mlir").write_text(self.kernel())
        command = ["comms-run", str(folder / "k.mlir"), "--quiet"]
        per_rank: dict[str, Array] = {"x": self.inputs}
        if self.collective == "all_to_all_v":
            per_rank |= {"s": self.rows, "r": self.rows.T.copy()}
        for name, arrays in per_rank.items():
            for rank, array in enumerate(arrays):
                np.save(folder / f"{name}{rank}.npy", array)
            command += ["--input", f"{name}={folder}/{name}%r.npy"]
        for option in ("ranks", "blocks", "launches", "algorithm", "protocol", "seed"):
            command += [f"--{option}", str(getattr(self, option))]
        command += ["--output", f"y={folder}/y%r.npy"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"exit status {done.returncode}\n{done.stderr}"
        results = [np.load(folder / f"y{rank}.npy") for rank in range(self.ranks)]
        return self.compare(results)

    def compare(self, results: list[Array]) -> str | None:
        tolerance = TOLERANCE[self.dtype]
        for rank, (result, want) in enumerate(zip(results, self.expected(), strict=True)):
            if want is None:
                want = np.zeros(result.shape)
            if self.collective == "all_to_all_v":
                result = result[: len(want)]
            if not np.allclose(result.astype(np.float64), want, rtol=tolerance, atol=tolerance):
                return f"rank {rank} holds\n{result}\nand not\n{want}"
            if self.collective == "all_reduce" and result.tobytes() != results[0].tobytes():
                return f"ranks 0 and {rank} differ in bits"
        return None


def combinations() -> Iterator[tuple[str, str, str]]:
    for collective, (lead, algorithms) in COLLECTIVES.items():
        for algorithm in algorithms:
            for protocol in PROTOCOLS:
                # Lamport carries reductions only.
                if protocol != "lamport" or "reduction" in lead:
                    yield collective, algorithm, protocol


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    count = wrong = 0
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1):
        for combination in combinations():
            case = Case(draw, *combination)
            problem = case.run(folder)
            count += 1
            if problem:
                wrong += 1
                print(f"{case}: {problem}", file=sys.stderr)
    print(f"{count} cases, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
