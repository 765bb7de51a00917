"""Each kind of matmul on either side of each collective (test_sides.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import _compare, _compiled, _tensor
from matmul_checks import OWN, WIDTH, _always, _ends, _experts, _fp8, _scaled

dist: Any = torch.distributed
ROWS = 24


def _bmm(rows: Any, w: Any) -> Any:
    return torch.bmm(rows.view(4, -1, WIDTH), _experts(w, 4)).view(-1, OWN)


def _grouped(rows: Any, w: Any) -> Any:
    return torch._grouped_mm(rows, _experts(w, 4), offs=_ends(rows, rows.shape[0]))


def _quantized(rows: Any, w: Any) -> Any:
    return _scaled(rows if rows.dtype is torch.float8_e4m3fn else _fp8(rows, 0.25), w)


#: Of rows by a weight: rows of the product.
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "aten.mm": lambda rows, w: rows @ w,
    "aten.addmm": lambda rows, w: torch.nn.functional.linear(rows, w.t(), w[0]),
    "aten.bmm": _bmm,
    "aten._scaled_mm": _quantized,
    "aten._grouped_mm": _grouped,
}
COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda x: funcol.all_reduce(x, "sum", dist.group.WORLD),
    "all_gather": lambda x: funcol.all_gather_tensor(x, 0, dist.group.WORLD),
    "reduce_scatter": lambda x: funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD),
    "all_to_all": lambda x: funcol.all_to_all_single(x, None, None, dist.group.WORLD),
}
#: Where a matmul goes into one op with the collective: whether it comes after it.
TAKES: dict[str, bool | None] = {"all_reduce": False, "all_gather": True, "reduce_scatter": False, "all_to_all": None}


def taken(kind: str, collective: str, after: bool) -> bool:
    """Whether one op does both, by the documentation."""
    if not after and kind == "aten.addmm":  # Each rank would add the bias.
        return False
    return TAKES[collective] in (None, after)


def _both(kind: str, collective: str, after: bool) -> Callable[[Any, Any], Any]:
    """Arithmetic on both sides of the two, as a layer has it."""
    multiply, exchange = KINDS[kind], COLLECTIVES[collective]
    travels_small = kind == "aten._scaled_mm" and collective in ("all_gather", "all_to_all")

    def function(x: Any, w: Any) -> Any:
        if not after:
            return torch.relu(exchange(multiply(x, w))) * 2
        return torch.relu(multiply(exchange(_fp8(x, 0.25) if travels_small else x), w)) * 2

    return function


def compiles(rank: int, size: int, kind: str) -> list[tuple[str, bool, list[Any]]]:
    """Compiled, it gives what it gives otherwise, with a model that says that the op is faster. Of each collective and
    side: what the report says."""
    made = []
    dtype = torch.bfloat16 if kind == "aten._grouped_mm" else torch.float32
    x, w = _tensor(rank, ROWS, WIDTH, dtype=dtype), _tensor(0, WIDTH, OWN, dtype=dtype, seed=3)
    for collective in COLLECTIVES:
        for after in (False, True):
            function = _both(kind, collective, after)
            with _always():
                compiled = _compiled(function, leaves=True)
                for _ in range(4):
                    _compare(function(x, w), compiled(x, w), 2e-5 if dtype is torch.float32 else 2e-2)
            made.append((collective, after, list(fusing.report().as_dicts())))
    return made
