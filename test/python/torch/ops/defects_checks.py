"""Defects at each stage between a graph and a running kernel (test_defects.py)."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import compile_checks
import parts_checks
import produce_checks
import regions_checks
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from commsir.torch import (
    defects,
    fusion,
    kernel_calls,
    lowerings,
    ops,
    produce_regions,
    region_nodes,
    region_values,
    sites,
)
from commsir.torch.agreement import Agreement
from compile_checks import DEVICE, _compare, _compiled, _tensor

dist: Any = torch.distributed
SQUARE = 16
_RELU: Any = torch.ops.aten.relu.default


def _raises(*given: Any, **named: Any) -> Any:
    raise IndexError("none of these")


def _no_operation(region: Any, node: Any) -> Any:
    """A region whose text no kernel can be made of: MLIR has no such operation, but torch has."""
    return region.unary("math.relu", region.operand(node.args[0]))


#: Of a stage: the object that holds what is replaced, its name, and what is there instead.
STAGES: dict[str, tuple[Any, str, Any]] = {
    "find": (fusion, "collectives_of", _raises),
    "match": (region_nodes.RULES, _RELU, _raises),
    "before": (produce_regions, "_translated", _raises),
    "build": (kernel_calls, "_kernel_argument", _raises),
    "site": (kernel_calls, "site_of", _raises),
    "leave": (fusion, "_entry", _raises),
    "code": (lowerings, "_split", _raises),
    "kernel": (region_nodes.RULES, _RELU, _no_operation),
}


@contextlib.contextmanager
def _broken(stage: str) -> Iterator[None]:
    holder, name, instead = STAGES[stage]
    names = holder if isinstance(holder, dict) else vars(holder)
    kept, names[name] = names[name], instead
    try:
        yield
    finally:
        names[name] = kept


@contextlib.contextmanager
def _lenient() -> Iterator[list[str]]:
    """As for users; the texts of warnings of defects."""
    texts = list[str]()
    defects._told.clear()
    strict = os.environ.pop("COMMSIR_TORCH_STRICT", None)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            yield texts
        texts += [str(one.message) for one in told if "has a defect" in str(one.message)]
    finally:
        if strict is not None:
            os.environ["COMMSIR_TORCH_STRICT"] = strict


def _function(x: Any, y: Any, w: Any) -> Any:
    """Arithmetic before and after collectives, and a sum of two."""
    first = funcol.all_reduce(x * 2, "sum", dist.group.WORLD) + w
    both = funcol.all_reduce(x, "sum", dist.group.WORLD) + funcol.all_reduce(y, "sum", dist.group.WORLD)
    return first, torch.relu(both) @ w, torch.relu(funcol.all_gather_tensor(y.relu(), 0, dist.group.WORLD)) * 0.5


def _layer(x: Any, r: Any, w: Any) -> Any:
    """Nothing is left to Inductor, which writes code for the call alone."""
    return compile_checks.residual_rms_norm(x, r, w[0])


def _compiled_for(stage: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function that comes to this stage, as it is and compiled."""
    function = _layer if stage == "code" else _function
    return function, _compiled(function, leaves=stage != "code")


def contained(rank: int, size: int, stage: str) -> list[str]:
    """What is told; results are right."""
    given = [_tensor(rank, SQUARE, SQUARE, dtype=torch.float32, seed=seed) for seed in range(3)]
    with _lenient() as texts, _broken(stage):
        for _ in range(2):
            function, compiled = _compiled_for(stage)
            for _ in range(5):
                _compare(function(*given), compiled(*given), 2e-5)
    return texts


def strict(rank: int, size: int, stage: str) -> str:
    """As in our tests: what is raised."""
    given = [_tensor(rank, SQUARE, SQUARE, dtype=torch.float32, seed=seed) for seed in range(3)]
    with _broken(stage):
        try:
            _, compiled = _compiled_for(stage)
            for _ in range(5):
                compiled(*given)
        except Exception as error:
            return str(error)
    return ""


def after_agreement(rank: int, size: int, prepared: bool) -> tuple[list[str], int]:
    """No kernel can be made for other shapes of a site whose kernel has run: warnings, and collectives of the process
    group in each call from then on."""
    call_of: Callable[..., Any] = ops.prepared if prepared else _plain

    def call(text: str) -> Any:
        return call_of("all_reduce", "sum", text, "f32", [SQUARE], False, dist.group.WORLD.group_name, "a place")

    good, bad = (
        f"(%w0: tensor<16xf32>) {{\n    %v0 = {op} %w0 : tensor<16xf32>\n    comms.yield %v0 : tensor<16xf32>\n  }}"
        for op in ("math.absf", "math.nothing")
    )
    x = _tensor(rank, 4, SQUARE, dtype=torch.float32)
    want = x.clone()
    dist.all_reduce(want)
    for _ in range(4):
        _compare(want.abs(), call(good)(x, [])[0], 2e-5)
    region_values._BY_NAME["math.nothing"] = torch.neg
    backend = dist.group.WORLD._get_backend(torch.device(DEVICE))
    try:
        with _lenient() as texts:
            for _ in range(3):
                before = backend._get_sequence_number_for_group()
                _compare(-want, call(bad)(x, [])[0], 2e-5)
                begun = backend._get_sequence_number_for_group() - before
    finally:
        del region_values._BY_NAME["math.nothing"]
    return texts, int(begun)


def _plain(op: str, *texts: Any) -> Any:
    return lambda x, args: torch.ops.commsir.fused_collective(op, x, args, *texts)


# ---------------------------------------------------------------------------------------------------------------------
# Regions by torch
# ---------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _compared() -> Iterator[list[str]]:
    """Each region that runs on this rank alone runs as a kernel and by torch."""
    computed, texts = sites._computed, list[str]()

    def both(
        input: Any,  # noqa: A002
        args: Any,
        reduce_op: str,
        region: str,
        out_types: str,
        out_columns: list[int],
    ) -> Any:
        made = computed(input, args, reduce_op, region, out_types, out_columns)
        texts.append(region)
        for a, b in zip(made, region_values.evaluate(region, [input, *args]), strict=True):
            assert a.dtype == b.dtype
            exact = not a.dtype.is_floating_point
            loose = 0.0 if exact else {torch.float32: 2e-5, torch.bfloat16: 1.6e-2}.get(a.dtype, 0.13)
            torch.testing.assert_close(a.float(), b.float().view(a.shape), rtol=loose, atol=loose, equal_nan=True)
        return made

    is_open = Agreement.is_open
    # Ranks that never agree run every region alone.
    sites._computed, Agreement.is_open = both, lambda self, site: False  # type: ignore[method-assign]
    try:
        yield texts
    finally:
        sites._computed, Agreement.is_open = computed, is_open  # type: ignore[method-assign]


#: What compiles functions of a kind, and their names; of most kinds some, as regions have nearly all operations.
KINDS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "regions": (
        lambda rank, size, name: regions_checks.fuses(rank, size, name, torch.float32),
        list(regions_checks.FUSED),
    ),
    "gathered": (regions_checks.gathers, list(regions_checks.GATHERED)[::3]),
    "norms": (
        lambda rank, size, name: compile_checks.fuses(rank, size, name, torch.float32),
        list(compile_checks.FUSED)[::3],
    ),
    "produced": (produce_checks.produces, list(produce_checks.PRODUCED)[::3]),
    "parts": (lambda rank, size, name: parts_checks.gives_the_same(rank, size, [name]), list(parts_checks.PARTS)[::4]),
}


def by_torch(rank: int, size: int, kind: str) -> int:
    """Regions of a kind, by a kernel and by torch; how many there are."""
    check, names = KINDS[kind]
    with _compared() as texts:
        for name in names:
            check(rank, size, name)
    return len(set(texts))
