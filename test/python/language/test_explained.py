"""`explain` describes arrays as a simulation leaves them (test/corpus)."""

from __future__ import annotations

import importlib.util
import re
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
LINE = re.compile(r"(?P<name>\w+)\[(?P<begin>\d+), (?P<end>\d+)\) of ranks? (?P<ranks>[\d, to]+): (?P<value>.*)")
ELEMENT = re.compile(r"\b(?P<name>[a-z_]\w*)\((?P<rank>\d+)\)(?:\[(?P<place>[^\]]*)\])?")
FUNCTIONS = {
    "max": lambda *all: reduce(np.maximum, all),
    "min": lambda *all: reduce(np.minimum, all),
    "or_": lambda *all: reduce(np.bitwise_or, (np.asarray(one).astype(np.int64) for one in all)),
    "and_": lambda *all: reduce(np.bitwise_and, (np.asarray(one).astype(np.int64) for one in all)),
    "xor": lambda *all: reduce(np.bitwise_xor, (np.asarray(one).astype(np.int64) for one in all)),
    "where": np.where,
    "exp": np.exp,
    "sqrt": np.sqrt,
}


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", path.name), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ranks_of(text: str) -> list[int]:
    if " to " in text:
        first, last = map(int, text.split(" to "))
        return list(range(first, last + 1))
    return [int(part) for part in text.split(", ")]


def evaluate(text: str, begin: int, end: int, arrays: dict[str, list[Any]]) -> Any:
    """The elements that a told text stands for."""
    known: dict[str, Any] = dict(FUNCTIONS)

    def element(found: re.Match[str]) -> str:
        name, rank, place = found["name"], int(found["rank"]), found["place"]
        if name not in arrays:
            return found[0]
        flat = np.asarray(arrays[name][rank]).ravel().astype(np.float64)
        shift = int(place[1:].replace(" ", "")) if place and place.startswith("i") else 0
        chosen = flat[int(place)] if place and place.isdigit() else flat[begin + shift : end + shift]
        key = f"_{len(known)}"
        known[key] = chosen
        return key

    plain = text.replace(" as it was before the first launch", "")
    # Words of Python.
    plain = re.sub(r"\b(or|and)\(", r"\1_(", plain)
    known["i"] = np.arange(begin, end)
    known |= {name: parts[0] for name, parts in arrays.items() if np.ndim(parts[0]) == 0}
    return eval(ELEMENT.sub(element, plain), {"__builtins__": {}}, known)


KERNELS = [path for path in sorted(CORPUS.glob("*.good.py")) if "\nK = " in path.read_text()]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_explained_arrays_equal_simulated_ones(path: Path) -> None:
    module = load(path)
    ranks, options = getattr(module, "RANKS", 4), getattr(module, "KW", {})
    told = module.K.explain(ranks=ranks, **options)["proof"].get("computed", [])
    lines = [found for found in map(LINE.fullmatch, told) if found and "not followed" not in found["value"]]
    # Neither texts that are cut, nor rows, nor places that data decide, nor what holds for some scalars only.
    skipped = ("…", " from ", ", where ", "the row's ")
    lines = [found for found in lines if not any(part in found["value"] for part in skipped)]
    if not lines:
        pytest.skip("data decide what it computes")
    inputs = module.inputs() if hasattr(module, "inputs") else {}
    # An array that is no list is that of all ranks.
    given = {name: parts if isinstance(parts, list) else [parts] * ranks for name, parts in inputs.items()}
    report = module.K.simulate(ranks, inputs, **options)
    zeros = {name: [np.zeros_like(part) for part in parts] for name, parts in report.outputs.items()}
    for found in lines:
        begin, end = int(found["begin"]), int(found["end"])
        for rank in ranks_of(found["ranks"]) if found["name"] in report.outputs else []:
            wanted = evaluate(found["value"], begin, end, {**zeros, **given})
            held = np.asarray(report.outputs[found["name"]][rank]).ravel()[begin:end].astype(np.float64)
            np.testing.assert_allclose(held, wanted, rtol=1e-5, atol=1e-5)
