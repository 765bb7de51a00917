"""Writes the table of docs/TorchModels.md: the collectives of transformers' models that are fused, and those left.

python test/python/torch/models/table.py [--ranks 2] [--model Llama ...] [--plan own ...] [--jobs 1]
                                         [--write docs/TorchModels.md]

All models by their own plan, on two ranks in float32 and bfloat16, and on four in float32. plans.py has the plans
"module" and "sequence".
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "c10d"), str(Path(__file__).resolve().parent)]
os.environ["CHECK_PATH"] = os.pathsep.join(sys.path[:2])

import model_checks  # noqa: E402
from harness import World  # noqa: E402

#: The types that models run in, by the number of ranks.
_RUNS = {2: ("f32", "bf16"), 4: ("f32",)}
_TYPES = list(model_checks.DTYPES)
_STEPS = ["forward", "training", "decoding"]
#: Autograd refuses what transformers does in their experts: eager training fails, too.
_NOT_TRAINED = ("Llama 4",)
_HEAD = "| model | types on ranks | step | collectives | kernels | left, and why |\n|---|---|---|---|---|---|\n"
_BEGIN, _END = "<!-- models -->\n", "<!-- end of models -->\n"


#: How a plan is called in the table; the model's own is not.
_PLANS = {"own": "", "experts": ", a rank's experts whole", "module": " by module", "sequence": " by sequence"}


def _steps(name: str, plan: str) -> list[str]:
    """One token is not shared out. The plan of some models cannot train."""
    made = _STEPS if plan != "sequence" else _STEPS[:2]
    return [step for step in made if step != "training" or name not in _NOT_TRAINED]


#: Of a model, in a type, on so many ranks.
_Said = dict[tuple[str, int], list[model_checks.Row]]


def _rows(name: str, ranks: int, dtype: str, plan: str) -> list[model_checks.Row]:
    """What a model says. Raises AssertionError where it is compiled to something else than it is."""
    # A process keeps what it has compiled: each model has its own.
    world = World(ranks, ("torch._dynamo", "torch._inductor.compile_fx"))
    call = {"name": name, "dtype": dtype, "steps": _steps(name, plan), "plan": plan}
    try:
        made: list[model_checks.Row] = world.run(model_checks.check, "commsir", timeout=600, patience=3600, **call)[0]
        return made
    finally:
        world.stop()


def _outcome(run: tuple[tuple[int, str], str, str]) -> list[model_checks.Row] | AssertionError:
    (ranks, dtype), name, plan = run
    try:
        return _rows(name, ranks, dtype, plan)
    except AssertionError as error:
        return error


def _lines(said: _Said) -> list[str]:
    """One a graph, or several where types or numbers of ranks differ."""
    lines: dict[str, list[tuple[str, int]]] = {}
    for run, rows in said.items():
        for step, collectives, kernels, left in rows:
            whys = "; ".join(dict.fromkeys(left)) or "-"
            lines.setdefault(f"| {step} | {collectives} | {kernels} | {whys} |", []).append(run)
    return [f"| {_runs(runs)} {line}" for line, runs in lines.items()]


def _runs(runs: list[tuple[str, int]]) -> str:
    """The types and numbers of ranks, as in "f32, bf16 on 2; f32 on 4"."""
    types: dict[int, list[str]] = {}
    for dtype, ranks in runs:
        types.setdefault(ranks, []).append(dtype)
    return "; ".join(f"{', '.join(some)} on {ranks}" for ranks, some in types.items())


def table_of(found: dict[str, list[str]]) -> str:
    """The table of the lines of each model; those with the same lines stand together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for title, lines in found.items():
        alike.setdefault(tuple(lines), []).append(title)
    rows = [
        f"| {', '.join(titles) if number == 0 else ''} {line}\n"
        for lines, titles in alike.items()
        for number, line in enumerate(lines)
    ]
    return _HEAD + "".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="*", default=list(_RUNS))
    parser.add_argument("--model", nargs="*", default=list(model_checks.MODELS))
    parser.add_argument("--plan", nargs="*", default=["own"], choices=list(_PLANS))
    parser.add_argument("--dtype", nargs="*", default=_TYPES)
    parser.add_argument("--jobs", type=int, default=1, help="models at once, each with its ranks")
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    options = parser.parse_args()
    found, failed = dict[str, _Said](), list[str]()
    types = [(ranks, dtype) for ranks in options.ranks for dtype in options.dtype if dtype in _RUNS.get(ranks, _TYPES)]
    runs = list(itertools.product(types, options.model, options.plan))
    with ThreadPoolExecutor(options.jobs) as pool:
        for ((ranks, dtype), name, plan), outcome in zip(runs, pool.map(_outcome, runs), strict=True):
            title = f"{name}{_PLANS[plan]}"
            if isinstance(outcome, AssertionError):
                failed.append(f"{title}, {dtype}, {ranks} ranks: {outcome}")
                print(failed[-1], flush=True)
                continue
            said = {(dtype, ranks): outcome}
            found.setdefault(title, {}).update(said)
            print(table_of({title: _lines(said)}).removeprefix(_HEAD), flush=True)
    if options.write:
        page = options.write.read_text()
        table = table_of({title: _lines(said) for title, said in found.items()})
        made = re.sub(f"{_BEGIN}.*{_END}", lambda _: f"{_BEGIN}\n{table}\n{_END}", page, flags=re.DOTALL)
        options.write.write_text(made)
    if failed:
        raise SystemExit("\n".join(["these are not in the table:", *failed]))


if __name__ == "__main__":
    main()
