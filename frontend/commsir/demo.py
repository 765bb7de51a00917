"""The main job of CommsIR on what this machine has: `python -m commsir.demo`.

1. All-reduce + residual + RMSNorm as one kernel, compared with NumPy in float64: simulated on 8 ranks, and on this
   machine's GPUs where there are at least 2.
2. A kernel with a missing signal: refused by the checker; run without it, reported as a deadlock.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import commsir

if TYPE_CHECKING:
    import numpy as np

__all__ = ["main"]

ROWS, COLUMNS = 192, 64
#: Distance to float64 that the rounding of the results explains, by type.
_EPSILON = {"bf16": 2.0**-8, "f16": 2.0**-11}


def _source(name: str) -> str:
    """Reads a kernel of the demo: next to this file in a wheel, from the tests in a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "_demo", here.parents[1] / "test" / "demo"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise commsir.UsageError(f"{name} is missing next to {here}: install the wheel again")


def _heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


def _element() -> str:
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        return "f16"  # NumPy's own.
    return "bf16"


class Problem:
    """Inputs of the fused kernel on `ranks` ranks, and the expected outputs."""

    def __init__(self, ranks: int, element: str) -> None:
        import numpy as np

        from commsir._arrays import numpy_type

        self.ranks, self.element = ranks, element
        dtype = numpy_type(element)
        random = np.random.default_rng(1)
        self.x = [random.standard_normal((ROWS, COLUMNS)).astype(dtype) for _ in range(ranks)]
        self.residual = random.standard_normal((ROWS, COLUMNS)).astype(dtype)
        self.weight = random.uniform(0.5, 1.5, COLUMNS).astype(dtype)
        self.y = [np.zeros_like(self.residual) for _ in range(ranks)]
        self.next = [np.zeros_like(self.residual) for _ in range(ranks)]

    def arrays(self) -> dict[str, list[Any]]:
        both = {"residual": [self.residual] * self.ranks, "weight": [self.weight] * self.ranks}
        return {"x": self.x, **both, "y": self.y, "next": self.next}

    def expected(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Returns the normalized rows and the sum, in float64."""
        import numpy as np

        added = self.residual.astype(np.float64)
        for part in self.x:
            added = added + part.astype(np.float64)
        scale = np.sqrt(np.mean(added**2, axis=-1, keepdims=True) + 1e-6)
        return added / scale * self.weight.astype(np.float64), added

    def worst(self) -> float:
        """Returns the largest error over all ranks, relative to the expected rounding error."""
        import numpy as np

        worst = 0.0
        for got, wanted in zip((self.y, self.next), self.expected(), strict=True):
            allowed = _EPSILON[self.element] * (np.abs(wanted) + 1)
            for part in got:
                worst = max(worst, float(np.max(np.abs(part.astype(np.float64) - wanted) / allowed)))
        return worst


def _fused(target: str, ranks: int) -> bool:
    """Runs the fused kernel. Returns whether every rank has NumPy's result."""
    element = _element()
    where = "simulated on the CPU" if target == "cpu" else "one GPU a rank"
    _heading(f"All-reduce + residual + RMSNorm, one kernel, {ranks} ranks, {element}: {where}")
    problem = Problem(ranks, element)
    options: dict[str, Any] = {"blocks": 2} if target == "cpu" else {"launches": 3}
    source = _source("rmsnorm.mlir").replace("bf16", element)
    report = commsir.simulate(
        source, ranks=ranks, arrays=problem.arrays(), target=target, file="rmsnorm.mlir", **options
    )
    for choice in report["choices"]:
        print(f"   {choice['op']}: {choice['algorithm']} over {choice['protocol']}")
    times = f"   compiled in {report['compile_milliseconds']:.0f} ms, ran in {report['microseconds']:.0f} µs"
    print(commsir.errors.printable(times))
    if note := report.get("note"):
        print(f"   {note}")
    worst = problem.worst()
    alike = all((part == problem.y[0]).all() for part in problem.y)
    print(f"   largest error {worst:.2f} of what rounding explains; {'alike' if alike else 'NOT alike'} on all ranks")
    return worst <= 1 and alike


def _deadlock() -> bool:
    """Returns whether both the checker and the simulation find the missing signal."""
    source = _source("deadlock.mlir")
    _heading("A kernel with a missing signal: refused before it runs")
    try:
        commsir.check(source, ranks=4, file="deadlock.mlir")
    except commsir.CheckError as error:
        print(f"   {error}".replace("\n", "\n   "))
    else:
        print("   UNEXPECTED: the checker let it through")
        return False
    _heading("The same kernel, run without the checker: a report, not a hang")
    try:
        commsir.simulate(source, ranks=4, check=False, file="deadlock.mlir")
    except commsir.DeadlockError as error:
        for one in error.waiting:
            print(f"   {one}")
        return bool(error.waiting)
    print("   UNEXPECTED: it ended")
    return False


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m commsir.demo", description=__doc__)
    parser.add_argument("--target", choices=["auto", "cpu", "cuda"], default="auto", help="auto: also GPUs if there")
    parser.add_argument("--ranks", type=int, default=8, help="of the simulation")
    options = parser.parse_args(arguments)
    gpus = 0 if options.target == "cpu" else commsir.doctor().gpus
    good = options.target == "cuda" or _fused("cpu", options.ranks)
    if options.target == "cuda" or gpus >= 2:
        good = _fused("cuda", max(gpus, 1)) and good
    good = _deadlock() and good
    print("\nAll as expected." if good else "\nSomething is not as expected; see above.")
    return not good


if __name__ == "__main__":
    try:
        sys.exit(main())
    except commsir.CommsError as error:
        sys.exit(f"commsir.demo: error: {error}")
