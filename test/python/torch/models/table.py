"""Writes the table of docs/TorchModels.md: the collectives of transformers' models that are fused, and those left.

python test/python/torch/models/table.py [--ranks 2] [--model Llama ...] [--plan own ...] [--write docs/TorchModels.md]

All models by their own plan on two ranks, and some on four. plans.py has the plans "module" and "sequence".
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "c10d"), str(Path(__file__).resolve().parent)]
os.environ["CHECK_PATH"] = os.pathsep.join(sys.path[:2])

import model_checks  # noqa: E402
from harness import World  # noqa: E402

#: Models that have heads for so many ranks.
_MORE_RANKS = {4: ("GPT-NeoX", "DeepSeek-V3")}
_STEPS = ["forward", "training", "decoding"]
#: Autograd refuses what transformers does in their experts: eager training fails, too.
_NOT_TRAINED = ("Llama 4",)
_HEAD = "| model | types | step | collectives | kernels | left, and why |\n|---|---|---|---|---|---|\n"
_BEGIN, _END = "<!-- models -->\n", "<!-- end of models -->\n"


#: How a plan is called in the table; the model's own is not.
_PLANS = {"own": "", "experts": ", a rank's experts whole", "module": " by module", "sequence": " by sequence"}


def _steps(name: str, plan: str) -> list[str]:
    """One token is not shared out. The plan of some models cannot train."""
    made = _STEPS if plan != "sequence" else _STEPS[:2]
    return [step for step in made if step != "training" or name not in _NOT_TRAINED]


def _lines(world: World, name: str, dtypes: list[str], ranks: int, plan: str) -> list[str]:
    """One a graph, or one for each type where they differ: of those that the model was compiled in."""
    said = {
        dtype: world.run(
            model_checks.check,
            "commsir",
            name=name,
            dtype=dtype,
            steps=_steps(name, plan),
            plan=plan,
            timeout=600,
            patience=3600,
        )[0]
        for dtype in dtypes
    }
    lines: dict[str, list[str]] = {}
    for dtype, rows in said.items():
        for step, collectives, kernels, left in rows:
            whys = "; ".join(dict.fromkeys(left)) or "-"
            lines.setdefault(f"| {step} | {collectives} | {kernels} | {whys} |", []).append(dtype)
    return [f"| {', '.join(types)} {line}" for line, types in lines.items()]


def _title(name: str, ranks: int, plan: str) -> str:
    return f"{name}{_PLANS[plan]}" + ("" if ranks == 2 else f" on {ranks} ranks")


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
    parser.add_argument("--ranks", type=int, nargs="*", default=[2, *_MORE_RANKS])
    parser.add_argument("--model", nargs="*", default=list(model_checks.MODELS))
    parser.add_argument("--plan", nargs="*", default=["own"], choices=list(_PLANS))
    parser.add_argument("--dtype", nargs="*", default=list(model_checks.DTYPES))
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    options = parser.parse_args()
    found = dict[str, list[str]]()
    cases = [
        (ranks, name, plan)
        for ranks in options.ranks
        for name in _MORE_RANKS.get(ranks, options.model)
        for plan in options.plan
        if name in options.model
    ]
    for ranks, name, plan in cases:
        # A process keeps what it has compiled: each model has its own.
        world = World(ranks, ("torch._dynamo", "torch._inductor.compile_fx"))
        try:
            lines = _lines(world, name, options.dtype, ranks, plan)
        finally:
            world.stop()
        found[_title(name, ranks, plan)] = lines
        print(table_of({_title(name, ranks, plan): lines}).removeprefix(_HEAD), flush=True)
    if options.write:
        page, table = options.write.read_text(), table_of(found)
        made = re.sub(f"{_BEGIN}.*{_END}", lambda _: f"{_BEGIN}\n{table}\n{_END}", page, flags=re.DOTALL)
        options.write.write_text(made)


if __name__ == "__main__":
    main()
