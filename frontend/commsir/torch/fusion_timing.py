"""Measures, on all ranks, what fused kernels gain over the collective followed by the arithmetic."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from commsir.torch import op_groups, reporting, sites
from commsir.torch.agreement import digest_of

__all__ = ["Call", "measure"]

_DIST: Any = dist
_C10D: Any = dist.distributed_c10d
_OPS: Any = torch.ops
_CUDA: Any = torch.cuda
#: A tensor without data: its shape, type and device.
Like = tuple[tuple[int, ...], torch.dtype, str]


@dataclass(frozen=True)
class Call:
    """A kernel's call, with the shapes and types of its tensors. All sizes are known."""

    op: str
    input: Like
    args: tuple[Like, ...]
    reduce_op: str
    consume: str
    types: str
    columns: tuple[int, ...]
    group: str
    #: The inputs of the collectives that it stands for.
    parts: tuple[Like, ...]
    #: What makes what is sent, and how many of the arguments it reads.
    produce: str = ""
    sources: int = 0

    @classmethod
    def of(cls, given: tuple[Any, ...]) -> Call | None:
        """The arguments of fused_collective in a graph; None: a size is unknown at compile time."""
        op, source, args, reduce_op, consume, types, columns, _, group, _, parts, produce, sources = given
        likes = [_like(node) for node in (source, *args, *(parts or ()))]
        known = [one for one in likes if one is not None]
        if len(known) < len(likes):
            return None
        own, more = known[1 : 1 + len(args)], known[1 + len(args) :]
        texts = (reduce_op, consume, types, tuple(columns), group)
        return cls(op, known[0], tuple(own), *texts, tuple(more), produce, sources)

    @property
    def digest(self) -> str:
        """The same on all ranks that have the call, whose GPUs have different numbers."""
        likes = ((self.input,), self.args, self.parts)
        kinds = [[(shape, dtype, device.partition(":")[0]) for shape, dtype, device in some] for some in likes]
        texts = (self.op, self.reduce_op, self.consume, self.types, self.columns, self.group)
        return digest_of(kinds, *texts, self.produce, self.sources)


def _like(node: Any) -> Like | None:
    value = node.meta["val"]
    shape = tuple(size for size in value.shape if isinstance(size, int))
    return (shape, value.dtype, str(value.device)) if len(shape) == value.dim() else None


def _made(like: Like) -> torch.Tensor:
    shape, dtype, device = like
    return torch.ones(shape, device=device).to(dtype)


def _variants(call: Call) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Returns the fused kernel, and the collective with the arithmetic in separate kernels of this rank."""
    x, args = _made(call.input), [_made(one) for one in call.args]
    parts = [_made(one) for one in call.parts] or [x]
    given = (call.reduce_op, call.consume, call.types, list(call.columns), False)
    alone = sites.single_rank_result(call.reduce_op)

    def apart() -> Any:
        is_cast = bool(call.produce and call.parts)
        sent = sites.produced_parts(x, args[: call.sources], call.produce) if call.produce and not is_cast else parts
        arrived = [sites.run_collective(call.op, one, call.reduce_op, call.group) for one in sent]
        if is_cast:
            total, beside = sites.cast_arrived(arrived[0], call.produce), args[call.sources :]
        elif call.produce:
            total, beside = arrived[0], [*arrived[1:], *args[call.sources :]]
        else:
            total, beside = sites.sum_of(call.op, arrived, x, call.group), args
        return _OPS.commsir.fused_collective(alone, total, beside, *given, op_groups.ALONE)

    call_of = _OPS.commsir.fused_collective
    return lambda: call_of(call.op, x, args, *given, call.group, "", None, call.produce, call.sources), apart


def _seconds(run: Callable[[], Any], on_gpu: bool, calls: int) -> float:
    """Returns the time of one call: the median of several rounds, after a call that compiles."""
    turns = []
    run()
    for _ in range(5):
        if on_gpu:
            _CUDA.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        if on_gpu:
            _CUDA.synchronize()
        turns.append((time.perf_counter() - start) / calls)
    return statistics.median(turns)


def _measure_group(name: str, calls: int) -> None:
    """Measures the kernels over a process group that all of its ranks have."""
    group = _C10D._resolve_process_group(name)
    entries = [(number, one.call) for number, one in enumerate(reporting.fusions()) if one.call is not None]
    numbers: dict[str, list[int]] = {}
    for number, call in entries:
        if call.group == name:
            numbers.setdefault(call.digest, []).append(number)
    for digest in _shared(list(numbers), group):
        call = reporting.fusions()[numbers[digest][0]].call
        with torch.no_grad():
            fused, apart = (_seconds(way, call.input[2] != "cpu", calls) for way in _variants(call))
        gain = statistics.fmean(_from_all(1e6 * (apart - fused), group))
        for number in numbers[digest]:
            reporting.set_measured(number, gain)


def _from_all(value: Any, group: Any) -> list[Any]:
    said = [None] * int(group.size())
    _DIST.all_gather_object(said, value, group=group)
    return said


def _shared(digests: list[str], group: Any) -> list[str]:
    """Returns the entries that all ranks have, in the first rank's order."""
    said = _from_all(digests, group)
    return [one for one in said[0] if all(one in some for some in said)]


def measure(calls: int = 20) -> reporting.Report:
    """Measures the gain of each kernel in the report, and returns the report with the results.

    All ranks call it, behind the same compiled graphs. Each kernel runs on ones, against the process group's collective
    and the arithmetic in a kernel of its own; `calls` of each, five times. A kernel that some rank has not is left out,
    and so are matmuls and sizes that are not known when it is compiled. The gain is the mean over the ranks.
    """
    for name in dict.fromkeys(one.call.group for one in reporting.fusions() if one.call is not None):
        _measure_group(name, calls)
    return reporting.report()
