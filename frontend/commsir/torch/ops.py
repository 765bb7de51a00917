"""torch.ops.commsir: collectives as torch ops, plain and with arithmetic, that torch.compile traces.

    y = torch.ops.commsir.all_reduce(x, "sum", group_name)
    y, kept = fused_collective("all_reduce", x, [residual, weight], consume=..., ...)

The group is any process group of torch.distributed, by its name (`group.group_name`): CommsIR makes a group of its own
for it, from its store, on the first call, which all ranks must make. An op runs on the current stream; for that
stream it is done when it returns.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import functools
import operator
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from math import prod
from typing import Any, cast

import commsir.torch._needed  # noqa: F401

# isort: split
import torch
import torch.autograd.forward_ad
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from commsir import _native
from commsir.errors import UsageError
from commsir.torch import _release, backend, capi, crossed_calls, defects, lazy_views, region_values
from commsir.torch.agreement import Agreement, digest_of
from commsir.torch.destroy_hooks import when_gone
from commsir.torch.foreign_calls import SEPARATOR, ForeignCall
from commsir.torch.region_lines import in_one_line
from commsir.torch.rendezvous import Rendezvous, store_of

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "fused_collective",
    "group_of",
    "prepare",
    "reduce_scatter",
]

_RESOLVE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32)
_SIZE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)
_ADOPT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p)


class _Callbacks(ctypes.Structure):
    _fields_ = [("resolve", _RESOLVE), ("size", _SIZE), ("rank", _SIZE), ("adopt", _ADOPT), ("error", _ERROR)]


# torch's own types say less than we know.
_OPS: Any = torch.ops
_C10D: Any = c10d
_DIST: Any = dist
_LIBRARY: Any = torch.library
_check: Any = torch._check

_groups: dict[tuple[str, int], tuple[Any, capi.Group]] = {}
_agreements: dict[tuple[str, int], tuple[Any, Agreement]] = {}
#: The name of a group of this rank alone.
_ALONE = "commsir/alone"
_making: dict[tuple[str, int], threading.Lock] = {}
#: Process groups without symmetric memory, of which was told.
_refused: set[str] = set()
_said = threading.local()


# ---------------------------------------------------------------------------------------------------------------------
# Groups
# ---------------------------------------------------------------------------------------------------------------------


def group_of(name: str, device: int = -1) -> capi.Group:
    """Returns the group that the ops use for a process group on the CPU (-1) or a GPU. Collective when it is new."""
    process_group = None if name == _ALONE else _C10D._resolve_process_group(name)
    # One of several threads makes it.
    with _making.setdefault((name, device), threading.Lock()):
        known = _groups.get((name, device))
        if known is None or known[0] is not process_group:
            if known is not None:  # Of an earlier process group of that name.
                _library.commsir_torch_forget(name.encode())
            known = _groups[(name, device)] = (process_group, _make_group(process_group, name, device))
        return known[1]


def abort(process_group: Any, reason: str) -> None:
    """Ends the waits of ops in a process group's groups. Any thread may call it."""
    for known, made in list(_groups.values()):
        if known is process_group:
            made.abort(reason)


def _make_group(process_group: Any, name: str, device: int) -> capi.Group:
    if not backend.library():
        raise RuntimeError("torch.ops.commsir: libcommsir.so was not found; set COMMSIR_LIBRARY to its folder")
    if process_group is None:
        return capi.Group(_DIST.HashStore(), 0, 1, name=name, timeout=c10d.default_pg_timeout, device=device)
    return capi.Group(
        _DIST.PrefixStore(f"commsir/ops/{device >= 0}", _C10D._get_process_group_store(process_group)),
        process_group.rank(),
        process_group.size(),
        name=f"{name}.ops",
        timeout=_timeout_of(process_group, device),
        device=device,
        shares_gpu=False,
    )


def _timeout_of(process_group: Any, device: int) -> timedelta:
    return backend.timeout_of(process_group, "cpu" if device < 0 else "cuda") or c10d.default_pg_timeout


def _guarded(call: Any, failed: Any) -> Any:
    """Keeps exceptions of a callback for `error`, because a callback must not raise."""

    def safe(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except BaseException as error:  # Of Ctrl-C, too, ctypes would make 0, which may mean that all went well.
            _said.text = ctypes.create_string_buffer((str(error) or type(error).__name__).encode())
            return failed

    return safe


def _resolve(name: bytes, device: int) -> int:
    return group_of(name.decode(), device).address


def _size(name: bytes) -> int:
    return 1 if name == _ALONE.encode() else int(_C10D._resolve_process_group(name.decode()).size())


def _rank(name: bytes) -> int:
    return int(_C10D._resolve_process_group(name.decode()).rank())


def _symmetric(name: str, device: int, data: int, size: int) -> list[int]:
    """Addresses of every rank's copy of torch's symmetric memory. Collective."""
    import torch.distributed._symmetric_memory as symm_mem

    rendezvous: Any = symm_mem.rendezvous
    handle = rendezvous(capi.memory(data, size, torch.device("cuda", device)), name)
    if handle is None:
        raise RuntimeError(f"the memory at {data:#x} is not symmetric memory of torch")
    offset = data - handle.buffer_ptrs[handle.rank]
    return [int(part) + offset for part in handle.buffer_ptrs]


@contextlib.contextmanager
def _bounded_store_timeout(process_group: Any, limit: timedelta) -> Iterator[None]:
    """Limits waits in the process group's store to `limit`."""
    store = _C10D._get_process_group_store(process_group)
    before = store.timeout
    store.set_timeout(min(limit, before))
    try:
        yield
    finally:
        store.set_timeout(before)


def _extents(process_group: Any, limit: timedelta, reached: Any) -> tuple[list[int], str]:
    """Addresses of every rank's copy as this rank reaches it, or the reason why no rank uses the memory in place."""
    # Nothing of this rank alone, such as the number of its GPU, may be in the name of the place.
    place = _DIST.PrefixStore("commsir/ops/adopt", store_of(process_group))
    rank, size = process_group.rank(), process_group.size()

    def meet(said: str) -> list[str]:
        met = Rendezvous(place, rank, size, limit).hold(said)
        if not met.epoch:
            raise RuntimeError(
                f"commsir: rank {rank}: Timed out waiting {round(limit.total_seconds() * 1000)}ms for all ranks to use "
                f"symmetric memory of process group {process_group.group_name}: {met.failure}"
            )
        return met.said

    # torch's own meeting would wait without a word for ranks that do not come.
    meet("")
    parts, why = list[int](), ""
    try:
        with _bounded_store_timeout(process_group, limit):
            parts = reached()
        why = "" if all(parts) else "it does not reach all ranks"
    except Exception as error:
        why = str(error) or type(error).__name__
    refused = next(((other, said) for other, said in enumerate(meet(why)) if said), None)
    return parts, f"rank {refused[0]}: {refused[1]}" if refused else ""


def _adopt(name: bytes, device: int, data: int, size: int) -> int:
    """1: on some rank torch's symmetric memory does not reach all others, as over several hosts; all ranks hear of it.

    A newer torch says of every group that it has symmetric memory.
    """
    group = name.decode()
    process_group = _C10D._resolve_process_group(group)
    parts, refused = _extents(
        process_group, _timeout_of(process_group, device), lambda: _symmetric(group, device, data, size)
    )
    if not refused:
        group_of(group, device).adopt(data, size, parts)
        return 0
    if group not in _refused:
        _refused.add(group)
        warnings.warn(
            f"commsir: symmetric memory of process group {group} is not used, inputs are staged: {refused}",
            stacklevel=2,
        )
    return 1


def _error() -> int:
    text = getattr(_said, "text", None)
    return ctypes.addressof(text) if text is not None else 0


def _load() -> tuple[Any, _Callbacks]:
    for folder in _release.folders():
        path = folder / "libcommsir_torch_ops.so"
        if path.is_file():
            _OPS.load_library(str(path))
            lazy_views.install_outputs()
            library = ctypes.CDLL(str(path))
            callbacks = _Callbacks(
                _RESOLVE(_guarded(_resolve, 0)),
                _SIZE(_guarded(_size, 0)),
                _SIZE(_guarded(_rank, 0)),
                _ADOPT(_guarded(_adopt, -1)),
                _ERROR(_error),
            )
            library.commsir_torch_set_callbacks(ctypes.byref(callbacks))
            library.commsir_torch_take_defect.restype = ctypes.c_char_p
            return library, callbacks
    raise RuntimeError(
        "torch.ops.commsir: libcommsir_torch_ops.so was not found; it lies next to libcommsir.so "
        "(COMMSIR_LIBRARY names the folder)"
    )


#: The callbacks live as long as the library may call them.
_library, _callbacks = _load()


def counts_of(process_group: Any) -> dict[str, Any]:
    """Counters of the groups that the ops made for a process group, by device type."""
    made = {device: group for (_, device), (known, group) in list(_groups.items()) if known is process_group}
    return {"cpu.ops" if device < 0 else "cuda.ops": group.counts() for device, group in made.items()}


def _forget(name: str | None) -> None:
    """The process group is gone (without a name: all are), and its name may be another's next."""
    _refused.difference_update(list(_refused) if name is None else [name])
    for key in [key for key in _agreements if name in (None, key[0])]:
        del _agreements[key]
    for key in [key for key in _groups if name in (None, key[0])]:
        _library.commsir_torch_forget(key[0].encode())
        _groups.pop(key)[1].destroy()


when_gone(_forget)


# ---------------------------------------------------------------------------------------------------------------------
# What torch.compile and autograd have to know
# ---------------------------------------------------------------------------------------------------------------------


def _rows(x: torch.Tensor, numerator: int, denominator: int) -> torch.Tensor:
    shape = list(x.shape) or [1]
    _check(
        shape[0] % denominator == 0,
        lambda: f"commsir: {shape[0]} rows cannot be shared out to {denominator} ranks",
    )
    shape[0] = shape[0] // denominator * numerator
    return x.new_empty(shape)


def _like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _fake_all_reduce(input: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:  # noqa: A002
    return _like(input)


def _fake_all_gather(input: torch.Tensor, group_name: str) -> torch.Tensor:  # noqa: A002
    return _rows(input, _size(group_name.encode()), 1)


def _fake_reduce_scatter(input: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:  # noqa: A002
    return _rows(input, 1, _size(group_name.encode()))


def _fake_all_to_all(input: torch.Tensor, group_name: str) -> torch.Tensor:  # noqa: A002
    _rows(input, 1, _size(group_name.encode()))
    return _like(input)


def _fake_broadcast(input: torch.Tensor, root: int, group_name: str) -> torch.Tensor:  # noqa: A002
    return _like(input)


_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


def _fake_fused_collective(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    consume: str,
    out_types: str,
    out_columns: list[int],
    symmetric: bool,
    group_name: str,
    site: str = "",
    parts: list[torch.Tensor] | None = None,
    produce: str = "",
    sources: int = 0,
) -> list[torch.Tensor]:
    ranks = _size(group_name.encode())
    for arg in args:
        _check_device("an argument", arg, input)
    shape = list(input.shape) if input.dim() > 1 else [1, *input.shape]
    if op == "all_gather":
        shape[0] *= ranks
    elif op == "reduce_scatter":
        shape[0] //= ranks
    return [
        input.new_empty([*shape[:-1], columns], dtype=_DTYPES[kind])
        for kind, columns in zip(out_types.split(","), out_columns, strict=True)
    ]


def _check_device(what: str, tensor: torch.Tensor, input: torch.Tensor) -> None:  # noqa: A002
    _check(
        tensor.device == input.device,
        lambda: f"commsir: {what} is on {tensor.device}, but the input on {input.device}; move them to one device",
    )


def _check_contiguous(out: torch.Tensor) -> None:
    _check(
        out.is_contiguous(),
        lambda: "commsir: an output must be contiguous: pass a contiguous tensor, and copy it from there",
    )


def _check_result(out: torch.Tensor, input: torch.Tensor, result: torch.Tensor) -> None:  # noqa: A002
    """As Ops.cpp has it: `out` is what `result` would be."""
    _check_device("the output", out, input)
    _check(
        out.dtype == input.dtype,
        lambda: f"commsir: the output is {out.dtype}, but the input {input.dtype}; give tensors of one type",
    )
    _check(
        out.shape == result.shape,
        lambda: (
            f"commsir: the output has the shape {tuple(out.shape)}, but the result of an input of shape "
            f"{tuple(input.shape)} has {tuple(result.shape)}"
        ),
    )
    _check_contiguous(out)


def _fake_out(fake: Any) -> Any:
    def call(input: torch.Tensor, *others: Any, out: torch.Tensor) -> None:  # noqa: A002
        _check_result(out, input, fake(input, *others))

    return call


def _fake_fused_collective_out(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    consume: str,
    symmetric: bool,
    group_name: str,
    *,
    outs: list[torch.Tensor],
) -> None:
    for arg in args:
        _check_device("an argument", arg, input)
    for out in outs:
        _check_device("an output", out, input)
        _check_contiguous(out)


_FAKES = {
    "all_reduce": _fake_all_reduce,
    "all_gather": _fake_all_gather,
    "reduce_scatter": _fake_reduce_scatter,
    "all_to_all": _fake_all_to_all,
    "broadcast": _fake_broadcast,
}
for _name, _fake in _FAKES.items():
    _LIBRARY.register_fake(f"commsir::{_name}", _fake)
    _LIBRARY.register_fake(f"commsir::{_name}.out", _fake_out(_fake))
_LIBRARY.register_fake("commsir::fused_collective", _fake_fused_collective)
_LIBRARY.register_fake("commsir::fused_collective.out", _fake_fused_collective_out)
_LIBRARY.register_fake("commsir::_unfused", lambda input, group_name, operation="": None)
#: By which compiled code keeps the order of calls, and those whose results nobody reads: other ranks wait for them.
#: It is torch's own, and not public yet: None where a torch has no such thing.
_ordered: Any = getattr(getattr(torch._library, "effects", None), "EffectType", None)
for _name in (*_FAKES, "fused_collective") if hasattr(_LIBRARY, "_register_effectful_op") and _ordered else ():
    _LIBRARY._register_effectful_op(f"commsir::{_name}", _ordered.ORDERED)


def _linear(name: str, op: str) -> None:
    if op not in ("sum", "avg"):
        raise RuntimeError(f'torch.ops.commsir.{name} has a derivative for "sum" and "avg", not for "{op}"')


def _all_reduce_backward(grad: torch.Tensor, op: str, group: str) -> torch.Tensor:
    _linear("all_reduce", op)
    return cast(torch.Tensor, _OPS.commsir.all_reduce(grad.contiguous(), op, group))


def _all_gather_backward(grad: torch.Tensor, group: str) -> torch.Tensor:
    return cast(torch.Tensor, _OPS.commsir.reduce_scatter(grad.contiguous(), "sum", group))


def _reduce_scatter_backward(grad: torch.Tensor, op: str, group: str) -> torch.Tensor:
    _linear("reduce_scatter", op)
    part = grad / _size(group.encode()) if op == "avg" else grad
    return cast(torch.Tensor, _OPS.commsir.all_gather(part.contiguous(), group))


def _all_to_all_backward(grad: torch.Tensor, group: str) -> torch.Tensor:
    return cast(torch.Tensor, _OPS.commsir.all_to_all(grad.contiguous(), group))


def _broadcast_backward(grad: torch.Tensor, root: int, group: str) -> torch.Tensor:
    # The root's input reaches every rank: its derivative is the sum of theirs.
    total = cast(torch.Tensor, _OPS.commsir.all_reduce(grad.contiguous(), "sum", group))
    rank = _C10D._resolve_process_group(group).rank()
    if rank == root:
        return total
    # Zeros that depend on the sum: a second derivative needs every rank in the collective again.
    return torch.where(torch.ones((), dtype=torch.bool, device=total.device), torch.zeros_like(total), total)


_implementations = _LIBRARY.Library("commsir", "FRAGMENT")
_below_autograd: Any = torch._C._AutoDispatchBelowAutograd
_after_autograd: Any = torch._C._after_autograd_keyset
_is_grad_enabled = torch.is_grad_enabled
_forward_ad: Any = torch.autograd.forward_ad


#: The stable ABI has no autograd, and no way to go on below it: the backend's extension has, and calls Python for
#: derivatives alone. None: Python is asked by each call.
_extension: Any = backend.module_at_hand()
_is_direct = _extension is not None


def _any_tensor(value: Any, holds: Callable[[torch.Tensor], bool]) -> bool:
    """Whether it holds for a tensor, or for one in a list."""
    if isinstance(value, list | tuple):
        return any(_any_tensor(one, holds) for one in value)
    return isinstance(value, torch.Tensor) and holds(value)


def _refuse_tangents(name: str, arguments: Any) -> None:
    """No op has a derivative in forward mode: it would drop the tangent."""
    if _forward_ad._current_level < 0:
        return
    if _any_tensor(arguments, lambda one: _forward_ad.unpack_dual(one).tangent is not None):
        raise RuntimeError(
            f"commsir::{name} has no derivative in forward mode, but an argument is a dual tensor: use torch.func.vjp"
            " or backward()"
        )


def _differentiate(name: str, backward: Any) -> None:
    """Gives an op of one tensor its derivative: `backward` gets the gradient and the op's other arguments.

    What torch.library.register_autograd does costs several times as much, since it is made for every kind of schema.
    """
    redispatch = getattr(_OPS.commsir, name).default.redispatch

    class Derivative(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, keys: Any, input: torch.Tensor, *others: Any) -> Any:  # noqa: A002
            ctx.others = others
            with _below_autograd():
                return redispatch(keys & _after_autograd, input, *others)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return (None, backward(grad, *ctx.others), *(None,) * len(ctx.others))

    apply: Any = Derivative.apply

    def call(keys: Any, input: torch.Tensor, *others: Any) -> Any:  # noqa: A002
        _refuse_tangents(name, [input])
        if input.requires_grad and _is_grad_enabled():
            return apply(keys, input, *others)
        with _below_autograd():
            return redispatch(keys & _after_autograd, input, *others)

    if _is_direct:
        _extension.differentiate(name, call)
    else:
        _implementations.impl(name, call, "Autograd", with_keyset=True)


_differentiate("all_reduce", _all_reduce_backward)
_differentiate("all_gather", _all_gather_backward)
_differentiate("reduce_scatter", _reduce_scatter_backward)
_differentiate("all_to_all", _all_to_all_backward)
_differentiate("broadcast", _broadcast_backward)


def _refuse_gradients(name: str, why: str) -> None:
    """Makes an op without a derivative raise an error if an argument requires a gradient."""
    if _is_direct:
        _extension.refuse_gradients(name, why)
        return
    base, _, overload = name.partition(".")
    redispatch = getattr(getattr(_OPS.commsir, base), overload or "default").redispatch

    def call(keys: Any, *given: Any, **named: Any) -> Any:
        arguments = [*given, *named.values()]
        _refuse_tangents(name, arguments)
        if _is_grad_enabled() and _any_tensor(arguments, lambda one: one.requires_grad):
            raise RuntimeError(why)
        with _below_autograd():
            return redispatch(keys & _after_autograd, *given, **named)

    _implementations.impl(name, call, "Autograd", with_keyset=True)


for _name in (*_FAKES, "fused_collective"):
    _refuse_gradients(
        f"{_name}.out",
        f"torch.ops.commsir.{_name}.out writes into memory and has no derivative, but an argument requires grad:"
        " call it under torch.no_grad(), or without an output",
    )
_refuse_gradients(
    "fused_collective",
    "torch.ops.commsir.fused_collective has no derivative, but an argument requires grad: call it under"
    " torch.no_grad(), or write the collective and the arithmetic one by one, which torch.compile fuses",
)


# ---------------------------------------------------------------------------------------------------------------------
# Where ranks may have compiled different arithmetic
# ---------------------------------------------------------------------------------------------------------------------


def _agreement(name: str, device: int) -> Agreement:
    process_group = _C10D._resolve_process_group(name)
    known = _agreements.get((name, device))
    if known is None or known[0] is not process_group:
        known = _agreements[(name, device)] = (process_group, Agreement(process_group, device))
    return known[1]


#: Between a place's name and how many equal collectives of the program it stands for.
_TIMES = "*"


def repeated(site: str, times: int) -> str:
    """The name of a place that stands for so many equal collectives."""
    place, between, call = site.partition(SEPARATOR)
    return f"{place}{_TIMES}{times}{between}{call}" if times > 1 else site


#: And before the dimension of which a rank gets its own part, where the program reads no more of an all_reduce.
_OWN = "@"


def own_part(site: str, dim: int) -> str:
    """The name of a place that stands for an all_reduce of which the own part along `dim` alone is read."""
    place, between, call = site.partition(SEPARATOR)
    return f"{place}{_OWN}{dim}{between}{call}"


def _own_dim(site: str) -> int | None:
    dim = site.partition(SEPARATOR)[0].partition(_OWN)[2]
    return int(dim) if dim else None


def _own_parts_of(parts: list[torch.Tensor], dim: int, reduce_op: str, group_name: str) -> list[torch.Tensor]:
    """Runs the program's all_reduces of `parts`. Returns the own part of each result."""
    ranks, rank = _size(group_name.encode()), _rank(group_name.encode())
    whole = _each_of("all_reduce", parts, reduce_op, group_name, None)
    return [one.chunk(ranks, dim)[rank].contiguous() for one in whole]


def _times(site: str) -> int:
    return int(site.partition(SEPARATOR)[0].partition(_TIMES)[2] or 1)


def _collective(
    op: str,
    input: torch.Tensor,  # noqa: A002
    reduce_op: str,
    group_name: str,
    foreign: ForeignCall | None = None,
) -> torch.Tensor:
    """The process group's own, or the operation of another library, as the program has it."""
    if foreign:
        return foreign.run(op, input, _size(group_name.encode()))
    functional, ranks, given = _OPS._c10d_functional, _size(group_name.encode()), input.contiguous()
    if op == "all_reduce":
        begun = functional.all_reduce(given, reduce_op, group_name)
    elif op == "reduce_scatter":
        begun = functional.reduce_scatter_tensor(given, reduce_op, ranks, group_name)
    elif op == "all_to_all":
        parts = [given.shape[0] // ranks] * ranks
        begun = functional.all_to_all_single(given, parts, parts, group_name)
    else:
        begun = functional.all_gather_into_tensor(given, ranks, group_name)
    return cast(torch.Tensor, functional.wait_tensor(begun))


def _each_of(
    op: str, parts: list[torch.Tensor], reduce_op: str, group_name: str, foreign: ForeignCall | None
) -> list[torch.Tensor]:
    """The program's collective of each part, as on ranks that run them one by one."""
    made = list[torch.Tensor]()
    for part in parts:
        if made:  # Each is a step of the group; the first has been one.
            _OPS.commsir._unfused(part, group_name, foreign.operation if foreign else "")
        made.append(_collective(op, part, reduce_op, group_name, foreign))
    return made


_YIELD = re.compile(r"comms\.yield\s[^:]*:(.*)")
_TILE = re.compile(r"tensor<(\d+)x(\w+)>")


def _yielded(region: str) -> tuple[str, list[int]]:
    """Types and widths of the tiles that a region's text yields, as `fused_collective` takes those of its outputs."""
    tiles = _TILE.findall(_YIELD.findall(region)[-1])
    return ",".join(kind for _, kind in tiles), [int(width) for width, _ in tiles]


#: Statuses of the library that say that no kernel can be made of a call.
_COMPILE, _CHECKER, _DISAGREE = 3, 4, 9
#: Regions that no kernel can be made of, on one device.
_defective: set[tuple[str, torch.device]] = set()


def _has_no_kernel() -> bool:
    """Whether this thread's last call failed because no kernel can be made of it."""
    return _library.commsir_torch_last_status() in (_COMPILE, _CHECKER)


def _computed(
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    region: str,
    out_types: str,
    out_columns: list[int],
) -> list[torch.Tensor]:
    """A region on this rank: by a kernel, or by torch if none can be made of it."""
    if (region, input.device) not in _defective:
        call = (_single_rank_result(reduce_op), input, args, reduce_op, region, out_types, out_columns, False)
        try:
            return cast("list[torch.Tensor]", _OPS.commsir.fused_collective(*call, _ALONE))
        except RuntimeError as error:
            if not _has_no_kernel():
                raise
            defects.report_kernel(error, call, 1)
            _defective.add((region, input.device))
    shape = list(input.shape) if input.dim() > 1 else [1, *input.shape]
    made = region_values.evaluate(region, [input, *args])
    return [one.reshape([*shape[:-1], columns]) for one, columns in zip(made, out_columns, strict=True)]


def _produced(input: torch.Tensor, sources: list[torch.Tensor], produce: str) -> list[torch.Tensor]:  # noqa: A002
    """Computes the data to send on this rank: one tensor for each tile that `produce` yields."""
    return _computed(input, sources, "", produce, *_yielded(produce))


def _cast(arrived: torch.Tensor, produce: str) -> torch.Tensor:
    """What has arrived in the type in which a kernel would have sent it."""
    return arrived.to(region_values.type_of(_yielded(produce)[0]))


def _sum_of(op: str, arrived: list[torch.Tensor], input: torch.Tensor, group_name: str) -> torch.Tensor:  # noqa: A002
    """Sums the results of several collectives, in the result shape of `input`. Of a larger result the rows are summed
    up."""
    shape = list(input.shape)
    if op == "reduce_scatter":
        shape[0] //= _size(group_name.encode())
    elif op != "all_reduce":
        return arrived[0]
    totals = [one.reshape(shape) if one.numel() == prod(shape) else one.reshape([-1, *shape]).sum(0) for one in arrived]
    return functools.reduce(operator.add, totals)


def _single_rank_result(reduce_op: str) -> str:
    """Returns the collective that leaves the data unchanged on one rank."""
    return "all_reduce" if reduce_op else "all_gather"


def _apart(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    reduce_op: str,
    consume: str,
    out_types: str,
    out_columns: list[int],
    symmetric: bool,
    group_name: str,
    site: str,
    parts: list[torch.Tensor] | None = None,
    produce: str = "",
    sources: int = 0,
) -> list[torch.Tensor]:
    """The collective of the process group, with the arithmetic before and after it on this rank; or all as one kernel,
    from this call on, if that is what all ranks want."""
    device = -1 if input.device.type == "cpu" else int(input.device.index)
    agreement = _agreement(group_name, device)
    if defect := _library.commsir_torch_take_defect():
        agreement.close(site)
        call = (op, input, args, reduce_op, consume, out_types, out_columns, symmetric)
        defects.report_kernel(RuntimeError(defect.decode()), call, _size(group_name.encode()), produce, sources)
    sent = _produced(input, args[:sources], produce) if produce and not parts else [input]

    foreign, own_dim = ForeignCall.of(site), _own_dim(site)

    def collective() -> list[torch.Tensor]:
        if own_dim is not None:
            return _own_parts_of(parts or [], own_dim, reduce_op, group_name)
        return _each_of(op, parts or sent * _times(site), reduce_op, group_name, foreign)

    def ended() -> list[torch.Tensor]:
        arrived = collective()
        if device >= 0:
            torch.cuda.current_stream(input.device).synchronize()
        return arrived

    captured = device >= 0 and torch.cuda.is_current_stream_capturing()
    if captured or input.numel() == 0 or not agreement.is_open(site):
        arrived = collective()
    else:
        shapes = [(tuple(one.shape), one.dtype) for one in (input, *args)]
        in_place = symmetric and input.is_contiguous()
        kernel = (
            site,
            op,
            reduce_op,
            consume,
            out_types,
            out_columns,
            in_place,
            produce,
            sources,
            shapes,
            _native.version(),
        )
        arrived, all_want = agreement.attempt(site, digest_of(*kernel), ended, is_counted=foreign is None)
        if all_want:
            call = (op, input, args, reduce_op, consume, out_types, out_columns, symmetric)
            made = _agreed(agreement, call, group_name, device, site, produce, sources)
            if made is not None:
                return made
    if _times(site) > 1:
        # Results of collectives that are the same here, and need not be the same elsewhere.
        return [one.reshape([-1, *input.shape[1:]] if input.dim() > 1 else [1, -1]) for one in arrived]
    if produce and parts:  # A cast, which is the same after the program's collective.
        total, args = _cast(arrived[0], produce), args[sources:]
    elif produce:
        total, args = arrived[0], [*arrived[1:], *args[sources:]]
    else:
        total = _sum_of(op, arrived, input, group_name)
    return _computed(total, args, reduce_op, consume, out_types, out_columns)


def _agreed(
    agreement: Agreement, call: tuple[Any, ...], group_name: str, device: int, site: str, produce: str, sources: int
) -> list[torch.Tensor] | None:
    """The kernel that all ranks want, also in later calls. None: no kernel can be made, which all ranks have heard."""
    group_of(group_name, device)
    try:
        made = _OPS.commsir.fused_collective(*call, group_name, "", None, produce, sources)
    except RuntimeError as error:
        status = _library.commsir_torch_last_status()
        if status not in (_COMPILE, _CHECKER, _DISAGREE):
            raise
        if status != _DISAGREE:
            agreement.close(site)
            defects.report_kernel(error, call, _size(group_name.encode()), produce, sources)
        return None
    if _library.commsir_torch_agree(group_name.encode(), device, site.encode()):
        raise RuntimeError(f"commsir: no group for process group {group_name} any more")
    if device < 0:
        _watch(group_name)
    return cast("list[torch.Tensor]", made)


def _watch(group_name: str) -> None:
    """From now on, ranks that wait for each other in different calls are found."""
    process_group, made = _C10D._resolve_process_group(group_name), group_of(group_name)
    crossed_calls.watch(
        process_group,
        lambda: int(made.counts()["launches"]),
        lambda reason: backend.abort(process_group, reason),
    )


def _capturing_error(call: Any) -> Any:
    """Keeps the exception for `error`, because the C++ code up to the caller can only return a status."""

    def said(*arguments: Any) -> Any:
        try:
            with torch.no_grad():
                return call(*arguments)
        except BaseException as error:
            _said.text = ctypes.create_string_buffer((str(error) or type(error).__name__).encode())
            if isinstance(error, KeyboardInterrupt):
                _thread.interrupt_main()
            raise

    return said


for _key in ("CPU", "CUDA"):
    _implementations.impl("_apart", _capturing_error(_apart), _key)


# ---------------------------------------------------------------------------------------------------------------------
# By group rather than by name
# ---------------------------------------------------------------------------------------------------------------------


def _named(group: Any) -> str:
    if isinstance(group, str):
        return group
    used = c10d._get_default_group() if group is None else group
    try:
        return str(used.group_name)
    except AttributeError:
        is_left_out = group == c10d.GroupMember.NON_GROUP_MEMBER
        what = "this rank is not in the group" if is_left_out else f"{type(group).__name__} is no process group"
        raise UsageError(f"{what}; give one that this rank is in, its name, or None for the default one") from None


def _ranks(group: Any) -> int:
    return _size(_named(group).encode()) if group is None or isinstance(group, str) else int(group.size())


#: Of an op: what is traced and differentiated, and the form that never has Python of autograd in its way.
_Forms = tuple[Any, Any]
_all_reduce: _Forms = (_OPS.commsir.all_reduce.default, _OPS.commsir.all_reduce.out)
_all_gather: _Forms = (_OPS.commsir.all_gather.default, _OPS.commsir.all_gather.out)
_reduce_scatter: _Forms = (_OPS.commsir.reduce_scatter.default, _OPS.commsir.reduce_scatter.out)
_all_to_all: _Forms = (_OPS.commsir.all_to_all.default, _OPS.commsir.all_to_all.out)
_broadcast: _Forms = (_OPS.commsir.broadcast.default, _OPS.commsir.broadcast.out)


def _call(forms: _Forms, input: torch.Tensor, *others: Any, rows: Any = None) -> torch.Tensor:  # noqa: A002
    """`rows` makes the result where it has not the shape of `input`."""
    out: torch.Tensor
    if _is_direct or torch.compiler.is_compiling() or (input.requires_grad and _is_grad_enabled()):
        out = forms[0](input, *others)
        return out
    out = rows() if rows is not None else _like(input)
    forms[1](input, *others, out=out)
    return out


def all_reduce(input: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:  # noqa: A002
    """Reduces all ranks' `input`. Every rank gets the result."""
    return _call(_all_reduce, input, op, _named(group))


def all_gather(input: torch.Tensor, group: Any = None) -> torch.Tensor:  # noqa: A002
    """Concatenates all ranks' `input` along dimension 0, in rank order."""
    return _call(_all_gather, input, _named(group), rows=lambda: _rows(input, _ranks(group), 1))


def reduce_scatter(input: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:  # noqa: A002
    """Returns this rank's part, along dimension 0, of the reduction of all ranks' `input`."""
    return _call(_reduce_scatter, input, op, _named(group), rows=lambda: _rows(input, 1, _ranks(group)))


def all_to_all(input: torch.Tensor, group: Any = None) -> torch.Tensor:  # noqa: A002
    """Sends part p of `input`, along dimension 0, to rank p. The result holds the received parts in rank order."""
    return _call(_all_to_all, input, _named(group))


def broadcast(input: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:  # noqa: A002
    """Returns the `input` of rank `root` of the group on every rank."""
    return _call(_broadcast, input, root, _named(group))


def fused_collective(
    op: str,
    input: torch.Tensor,  # noqa: A002
    args: list[torch.Tensor],
    consume: str,
    outputs: list[tuple[torch.dtype, int]],
    *,
    reduce_op: str = "sum",
    symmetric: bool = False,
    group: Any = None,
    produce: str = "",
    sources: int = 0,
) -> list[torch.Tensor]:
    """A collective with arithmetic on the received data, and on the data to send, in one kernel.

    `input` is rows of its last dimension. `args` are read by the arithmetic: a tensor of one dimension is one row for
    all rows, others have a row for each row of the result. `consume` is MLIR text, "(%sum: tensor<64xf32>, %r:
    tensor<64xbf16>) { … comms.yield … }"; it yields one tile for each of `outputs`, (dtype, columns). `symmetric` says
    that `input` lies in torch's symmetric memory and stays there as long as the process lives.

    `produce`, likewise, makes what is sent: it gets a row of `input` and of each of the first `sources` of `args`,
    which `consume` does not get. Empty: `input` is sent.
    """
    if torch.compiler.is_compiling():
        types, columns = _texts_of(outputs)
        consume, produce = in_one_line(consume), in_one_line(produce)
        call = (reduce_op, consume, types, columns, symmetric, _named(group), "", None, produce, sources)
        return list(_OPS.commsir.fused_collective(op, input, args, *call))
    key = (op, consume, tuple(outputs), reduce_op, symmetric, _named(group), produce, sources)
    prepared_call = _prepared_calls.get(key)
    if prepared_call is None:
        if len(_prepared_calls) >= _MOST_PREPARED:
            _prepared_calls.clear()
        prepared_call = _prepared_calls[key] = prepare(
            op,
            consume,
            outputs,
            reduce_op=reduce_op,
            symmetric=symmetric,
            group=group,
            produce=produce,
            sources=sources,
        )
    return prepared_call(input, args)


# ---------------------------------------------------------------------------------------------------------------------
# Prepared calls
# ---------------------------------------------------------------------------------------------------------------------

#: (input, args, parts=None, out=None) -> results: a call of `fused_collective`, without its tensors.
PreparedCall = Callable[..., "list[torch.Tensor]"]
_MOST_PREPARED = 1024
_prepared_calls: dict[tuple[Any, ...], PreparedCall] = {}


def _texts_of(outputs: Sequence[tuple[torch.dtype, int]]) -> tuple[str, list[int]]:
    if not outputs:
        raise UsageError("a fused collective has an output at least: give outputs=[(torch.float32, columns), …]")
    for output in outputs:
        if len(output) != 2 or not isinstance(output[0], torch.dtype):
            raise UsageError(f"outputs has {output!r}: an output is a torch.dtype and its columns, (torch.float32, 64)")
    return ",".join(capi.element_type(dtype) for dtype, _ in outputs), [columns for _, columns in outputs]


def _copy_results(made: Sequence[torch.Tensor], out: Sequence[torch.Tensor]) -> None:
    if len(made) != len(out):
        raise UsageError(f"the call has {len(made)} results, but `out` has {len(out)} tensors")
    for result, place in zip(made, out, strict=True):
        if (result.dtype, result.numel()) != (place.dtype, place.numel()):
            raise UsageError(
                f"a result is {list(result.shape)} of {result.dtype}, but its tensor in `out` is {list(place.shape)} "
                f"of {place.dtype}"
            )
        place.copy_(result.view(place.shape))


def prepared(
    op: str,
    reduce_op: str,
    consume: str,
    out_types: str,
    out_columns: list[int],
    symmetric: bool,
    group_name: str,
    site: str = "",
    produce: str = "",
    sources: int = 0,
) -> PreparedCall:
    """torch.ops.commsir.fused_collective without its tensors, as code that Inductor generates calls it."""

    texts = (reduce_op, consume, out_types, out_columns, symmetric, group_name, site)

    def call_op(input: Any, args: Any = (), parts: Any = None, out: Any = None) -> list[torch.Tensor]:  # noqa: A002
        if out is None:
            return list(_OPS.commsir.fused_collective(op, input, list(args), *texts, parts, produce, sources))
        outs = list(out)
        if not (site or produce or parts):
            _OPS.commsir.fused_collective.out(
                op, input, list(args), reduce_op, consume, symmetric, group_name, outs=outs
            )
            return outs
        _copy_results(call_op(input, args, parts), outs)
        return outs

    if not _is_direct:
        return call_op
    outputs = [(_DTYPES[kind], columns) for kind, columns in zip(out_types.split(","), out_columns, strict=True)]
    ranks, run = (
        ctypes.cast(function, ctypes.c_void_p).value
        for function in (_library.commsir_torch_prepared_ranks, _library.commsir_torch_run_prepared)
    )
    made: PreparedCall = _extension.prepare(
        op, reduce_op, consume, outputs, symmetric, group_name, site, produce, sources, ranks, run, call_op
    )
    return made


def prepare(
    op: str,
    consume: str,
    outputs: Sequence[tuple[torch.dtype, int]],
    *,
    reduce_op: str = "sum",
    symmetric: bool = False,
    group: Any = None,
    produce: str = "",
    sources: int = 0,
) -> PreparedCall:
    """`fused_collective` without its tensors: call the result as `call(input, args)`.

    `call(input, args, out=[…])` fills contiguous tensors of the results' types and sizes, in the order of `outputs`,
    and returns them. Two of them must not share memory.

    On plain GPU tensors such a call goes from Python to the launch without torch's dispatcher, and costs its caller
    about half of what the op costs. It may be kept as long as the process group; nothing meets, and nothing is
    compiled, before it is called.
    """
    types, columns = _texts_of(outputs)
    return prepared(op, reduce_op, consume, types, columns, symmetric, _named(group), produce=produce, sources=sources)
