"""Each function of the pass raises once: the graph is compiled unchanged, and ranks agree (test_defects.py).

A graph that comes to most of the pass is captured once. The pass then runs on copies of it, and torch's interpreter
runs what it gives, which takes no time of Inductor's.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import commsir.torch.compile as fusing
import foreign_checks
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from commsir.torch import defects, foreign_collectives, sites
from commsir.torch.collectives import collectives_of
from commsir.torch.region_nodes import RULES
from compile_checks import _compare, _compiled, _tensor
from defects_checks import _lenient

dist: Any = torch.distributed
_MODULES = (
    *("collectives", "compile", "elementwise_rules", "foreign_collectives", "fusion", "gather_layouts"),
    *("graph_preparation", "joined_collectives", "kernel_calls", "matmul.graph", "movable_nodes", "order_rules"),
    *("part_rules", "prefetched_weights", "produce_regions", "reduction_rules", "region_builder", "region_growth"),
    *("region_nodes", "reporting", "saved_extremes"),
)
#: What a graph does not go through, but the program, Inductor or the code that runs; and what contains a defect.
_OUTSIDE = ("CollectivePass.__call__", "_is_of_a_library", "drop", "note", "graph_name", "fusions")
_ROWS, _COLUMNS = 4, 32


class _Injected(Exception):
    """Stands for a defect."""


@dataclass
class Function:
    """A function of the pass: what holds it, and under which name."""

    holder: Any
    key: Any
    name: str

    def get(self) -> Any:
        return self.holder[self.key] if isinstance(self.holder, dict) else vars(self.holder)[self.key]

    def set(self, value: Any) -> None:
        if isinstance(self.holder, dict):
            self.holder[self.key] = value
        else:
            setattr(self.holder, self.key, value)


def _functions() -> Iterator[Function]:
    """All functions and methods of the pass, and the rules of regions by operation."""
    for name in _MODULES:
        module = importlib.import_module(f"commsir.torch.{name}")
        for key, value in list(vars(module).items()):
            if getattr(value, "__module__", "") != module.__name__:
                continue
            if inspect.isfunction(value):
                yield Function(module, key, f"{name}.{key}")
            elif inspect.isclass(value) and not issubclass(value, Exception):
                for method, one in list(vars(value).items()):
                    if inspect.isfunction(one) and (not method.startswith("__") or method == "__call__"):
                        yield Function(value, method, f"{name}.{key}.{method}")
    for target in RULES:
        yield Function(RULES, target, f"rule of {target}")


@contextlib.contextmanager
def _wrapped(function: Function, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """The function is another one in every module of the pass that has imported it."""
    kept = function.get()
    instead = wrap(kept)
    holders = [function]
    if inspect.ismodule(function.holder):
        modules = [importlib.import_module(f"commsir.torch.{name}") for name in (*_MODULES, "lowerings", "defects")]
        holders += [
            Function(module, key, "") for module in modules for key, value in vars(module).items() if value is kept
        ]
    for one in holders:
        one.set(instead)
    try:
        yield
    finally:
        for one in holders:
            one.set(kept)


def _norm(x: Any, w: Any) -> Any:
    return torch.nn.functional.rms_norm(x, w.shape, w)


def _foreign(x: Any, y: Any, w: Any, square: Any) -> Any:
    """The same with an operation of another library."""
    return *_program(x, y, w, square), foreign_checks._gather(x, 1) * 2


def _program(x: Any, y: Any, w: Any, square: Any) -> Any:
    """Arithmetic before and after collectives of all kinds, sums of several, and layouts that move."""
    group = dist.group.WORLD
    first = funcol.all_reduce(x * 2 + 1, "sum", group) + y
    normed = _norm(first, w)
    both = funcol.all_reduce(x, "sum", group) + funcol.all_reduce(y, "sum", group)
    twice = funcol.all_gather_tensor(y, 0, group).cos() + funcol.all_gather_tensor(y, 0, group)
    columns = torch.softmax(funcol.all_gather_tensor(x.relu(), 1, group), -1)
    rows = funcol.reduce_scatter_tensor(normed @ square, "sum", 0, group)
    heads = funcol.all_reduce(y @ square, "sum", group).view(_ROWS, 4, -1).transpose(0, 1)
    turned = torch.cat((-heads[..., 4:], heads[..., :4]), -1) * 0.5
    a, b = funcol.all_reduce(x - y, "sum", group).split(_COLUMNS // 2, -1)
    gated = torch.nn.functional.silu(a) * torch.where(b > 0, b, b.exp())
    plus = torch.addmm(funcol.all_reduce(x.cos(), "sum", group), y, square).clamp(-1, 1)
    best = funcol.all_reduce(y.sin(), "sum", group)
    dense = funcol.all_to_all_single(x, None, None, group).float().amax()
    return (
        *(first, normed @ square, both.relu(), twice, columns, rows.tanh(), turned, gated, plus, dense),
        *(best.amax(), best.max(-1).values, best[..., ::2].pow(2).mean(), best.var(-1, keepdim=True) + best),
    )


class _Captured(fusing._Pass):
    """The first graph that Inductor gives, and the values of its inputs."""

    graph: torch.fx.Graph | None = None

    def __call__(self, graph: torch.fx.Graph) -> None:
        self.graph = self.graph or _copied(graph)

    def uuid(self) -> Any:
        return None


def _copied(graph: torch.fx.Graph) -> torch.fx.Graph:
    made = torch.fx.Graph()
    made.output(made.graph_copy(graph, {})).meta = dict(graph.output_node().meta)
    return made


def _given(rank: int) -> list[torch.Tensor]:
    rows = [_tensor(rank, _ROWS, _COLUMNS, dtype=torch.float32, seed=seed) for seed in range(2)]
    weights = [_tensor(0, *shape, dtype=torch.float32, seed=9) for shape in ((_COLUMNS,), (_COLUMNS, _COLUMNS))]
    return [*rows, *weights]


def _capture(function: Callable[..., Any], given: list[torch.Tensor]) -> torch.fx.Graph:
    torch._inductor.config.force_disable_caches = True
    torch._dynamo.reset()
    fusing.CollectivePass()  # What Dynamo needs to trace collectives.
    captured = _Captured()
    options: dict[str, Any] = {
        "post_grad_custom_post_pass": captured,
        "fallback_by_default": True,
        "reorder_for_peak_memory": False,
    }
    torch.compile(function, fullgraph=True, options=options)(*given)
    assert captured.graph is not None
    return captured.graph


def _run(graph: torch.fx.Graph, given: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    return tuple(torch.fx.Interpreter(module).run(*given))


def _shown(graph: torch.fx.Graph) -> list[str]:
    """The graph's calls, without what tells other ranks that nothing is fused."""
    calls = [one for one in graph.nodes if "_unfused" not in str(one.target)]
    return [f"{one} = {one.target}{one.args}{one.kwargs}" for one in calls]


def _counting(counts: dict[str, int], name: str) -> Callable[[Any], Any]:
    def wrap(kept: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            counts[name] = counts.get(name, 0) + 1
            return kept(*given, **named)

        return call

    return wrap


def _counts(graph: torch.fx.Graph) -> dict[str, int]:
    """How often the pass calls each of its functions that it calls at all."""
    counts, change = dict[str, int](), fusing.CollectivePass()
    with contextlib.ExitStack() as stack:
        for function in _functions():
            stack.enter_context(_wrapped(function, _counting(counts, function.name)))
        change(_copied(graph))
    return counts


def _raising(at: int) -> Callable[[Any], Any]:
    """Has a function raise in its call of that number."""

    def wrap(kept: Any) -> Any:
        calls = itertools.count(1)

        def call(*given: Any, **named: Any) -> Any:
            if next(calls) == at:
                raise _Injected("none of these")
            return kept(*given, **named)

        return call

    return wrap


def _path(text: str) -> Path:
    """The program that a warning names."""
    return Path(text.partition("`python ")[2].partition("`")[0])


def _is_unchanged(made: torch.fx.Graph, graph: torch.fx.Graph, texts: list[str]) -> None:
    """Asserts what a defect leaves: the graph, its collectives in the report, one warning and a program."""
    for is_line, was_line in zip(_shown(made), _shown(graph), strict=True):
        assert is_line == was_line, (is_line, was_line)
    assert len(texts) == 1 and "_Injected: none of these" in texts[0], texts
    said, there = fusing.report(), list(collectives_of(graph))
    assert len(said) == len(there) and all("none of these" in one.because[0] for one in said), said
    path = _path(texts[0])
    assert path.read_text() == defects.program(graph, "None, True, False"), path
    path.unlink()
    path.parent.rmdir()


def _checked(function: Function, at: int, graph: torch.fx.Graph, has_defect: bool) -> torch.fx.Graph:
    """What the pass gives, and asserts that it is as it should be."""
    made, change = _copied(graph), fusing.CollectivePass()
    fusing.clear_fusions()
    with _lenient() as texts, _wrapped(function, _raising(at)) if has_defect else contextlib.nullcontext():
        change(made)
    if has_defect:
        _is_unchanged(made, graph, texts)
    else:
        assert not texts and any("fused_collective" in str(node.target) for node in made.nodes)
    return made


#: Where only one rank has a defect, one in so many functions has it: ranks have to agree in each case.
_ONE_IN = 6


def raises_once(rank: int, size: int, alone: bool) -> tuple[list[str], list[str]]:
    """Each function raises in its first call on all ranks, or (`alone`) in its last call on the last rank: then all
    ranks run the graph, until they would have agreed. Returns the functions, and what went wrong."""
    foreign_collectives.register_collective(foreign_checks._gather, "all_gather")
    given = _given(rank)
    # A rank that leaves such an operation runs that, and not a collective of the process group.
    graph = _capture(_program if alone else _foreign, given)
    want, counts = _run(graph, given), _counts(graph)
    done, wrong = list[str](), list[str]()
    reached = [one for one in _functions() if counts.get(one.name) and not one.name.endswith(_OUTSIDE)]
    for function in reached[:: _ONE_IN if alone else 1]:
        count = counts[function.name]
        done.append(function.name)
        made, at = graph, count if alone else 1
        try:
            made = _checked(function, at, graph, has_defect=not alone or rank == size - 1)
        except AssertionError as error:
            wrong.append(f"{function.name} in call {at} of {count}: {error}")
        if alone:
            sites._agreements.clear()
            for _ in range(2):
                _compare(want, _run(made, given), 2e-5)
    return done, wrong


#: Steps of which the program that repeats a defect is run.
REPEATED = ("region_growth._grow", "joined_collectives._join_sums")


def writes_programs(rank: int, size: int) -> list[str]:
    """The programs that repeat a defect in each of these steps."""
    foreign_collectives.register_collective(foreign_checks._gather, "all_gather")
    graph, paths = _capture(_foreign, _given(rank)), []
    for function in (one for one in _functions() if one.name in REPEATED):
        with _lenient() as texts, _wrapped(function, _raising(1)):
            fusing.CollectivePass(join_sums=True, prefetch_weights=True)(_copied(graph))
        paths.append(str(_path(texts[0])))
    return paths


def repeat(name: str, path: str) -> None:
    """Runs such a program where this step raises."""
    (function,) = (one for one in _functions() if one.name == name)
    with _wrapped(function, _raising(1)):
        runpy.run_path(path)


def prepares(rank: int, size: int, module: str, name: str) -> tuple[list[str], int]:
    """What prepares Inductor, Dynamo or the key of its cache has a defect: warnings, and kernels in the code."""
    x = _tensor(rank, _ROWS, _COLUMNS, dtype=torch.float32)

    def function(x: Any) -> Any:
        return funcol.all_reduce(x, "sum", dist.group.WORLD).relu() * 2

    holder = importlib.import_module(f"commsir.torch.{module}")
    with _lenient() as texts, _wrapped(Function(holder, name, name), lambda kept: _always):
        compiled = _compiled(function, leaves=True)
        for _ in range(3):
            _compare(function(x), compiled(x), 2e-5)
        fusing.CollectivePass().uuid()
    return texts, sum(bool(one.fused) for one in fusing.fusions())


def _always(*given: Any, **named: Any) -> Any:
    raise _Injected("none of these")
