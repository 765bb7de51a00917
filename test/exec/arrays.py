"""Makes the arrays of a test: one .npy file for each name and rank.

Usage: arrays.py FOLDER --ranks N 'x = EXPRESSION' 'y = EXPRESSION' ...

Each expression is evaluated for every rank with r (the rank), n (the number of ranks), np,
bf16, f8 (the types of ml_dtypes), random(shape) (normal numbers, seeded by name and rank) and the
names before it: x is this rank's array, xs the list of all ranks' arrays. The results
become FOLDER/x-0.npy, FOLDER/x-1.npy, ...
"""

import argparse
import importlib.util
import pathlib
import zlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def narrow_types() -> dict[str, Any]:
    """bf16 and f8; none where ml_dtypes is not installed, which is on hosts that only run GPUs."""
    if importlib.util.find_spec("ml_dtypes") is None:
        return {}
    import ml_dtypes

    return {"bf16": ml_dtypes.bfloat16, "f8": ml_dtypes.float8_e4m3fn}


def evaluate(name: str, expression: str, known: dict[str, list[Array]], ranks: int) -> list[Array]:
    arrays = []
    for rank in range(ranks):
        random = np.random.default_rng(zlib.crc32(f"{name}{rank}".encode()))
        scope: dict[str, Any] = {
            "np": np,
            **narrow_types(),
            "random": random.standard_normal,
            "r": rank,
            "n": ranks,
        }
        for other, values in known.items():
            scope[other] = values[rank]
            scope[other + "s"] = values
        arrays.append(np.asarray(eval(expression, scope)))
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("arrays", nargs="+")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    known: dict[str, list[Array]] = {}
    for assignment in options.arrays:
        name, expression = (part.strip() for part in assignment.split("=", 1))
        known[name] = evaluate(name, expression, known, options.ranks)
        for rank, array in enumerate(known[name]):
            np.save(options.folder / f"{name}-{rank}.npy", array)


if __name__ == "__main__":
    main()
