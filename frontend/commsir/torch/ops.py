"""torch.ops.commsir: collectives as torch ops, plain and with arithmetic, that torch.compile traces.

    y = torch.ops.commsir.all_reduce(x, "sum", group_name)
    y, kept = fused_collective("all_reduce", x, [residual, weight], consume=..., ...)

The group is any process group of torch.distributed, by its name (`group.group_name`): CommsIR makes a group of its own
beside it, from its store, on the first call, which all ranks have to make. An op runs on the current stream; for that
stream it is done when it returns.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from commsir.torch import backend, capi

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast", "fused_collective", "group_of", "reduce_scatter"]

_RESOLVE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32)
_SIZE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)
_ADOPT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p)


class _Callbacks(ctypes.Structure):
    _fields_ = [("resolve", _RESOLVE), ("size", _SIZE), ("adopt", _ADOPT), ("error", _ERROR)]


# torch's own types say less than we know.
_OPS: Any = torch.ops
_C10D: Any = c10d
_DIST: Any = dist
_LIBRARY: Any = torch.library
_check: Any = torch._check

_groups: dict[tuple[str, int], tuple[Any, capi.Group]] = {}
_said = threading.local()


# ---------------------------------------------------------------------------------------------------------------------
# Groups
# ---------------------------------------------------------------------------------------------------------------------


def group_of(name: str, device: int = -1) -> capi.Group:
    """The group that the ops use for a process group on the CPU (-1) or a GPU: collective when it is new."""
    process_group = _C10D._resolve_process_group(name)
    known = _groups.get((name, device))
    if known is not None and known[0] is process_group:
        return known[1]
    path = backend.library()
    if not path:
        raise RuntimeError("torch.ops.commsir: libcommsir.so was not found; set COMMSIR_LIBRARY to its folder")
    store = _DIST.PrefixStore(f"commsir/ops/{device >= 0}", _C10D._get_process_group_store(process_group))
    made = capi.Group(
        path,
        store,
        process_group.rank(),
        process_group.size(),
        name=f"{name}.ops",
        timeout=c10d.default_pg_timeout,
        device=device,
    )
    _groups[(name, device)] = (process_group, made)
    return made


def _guarded(call: Any, failed: Any) -> Any:
    """A callback must not raise: what went wrong is kept for `error`."""

    def safe(*arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            _said.text = ctypes.create_string_buffer(str(error).encode())
            return failed

    return safe


def _resolve(name: bytes, device: int) -> int:
    return int(group_of(name.decode(), device).handle.value or 0)


def _size(name: bytes) -> int:
    return int(_C10D._resolve_process_group(name.decode()).size())


class _Memory:
    """Bytes of a GPU as torch wants to be shown them."""

    def __init__(self, data: int, size: int) -> None:
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (data, False), "version": 3}


def _adopt(name: bytes, device: int, data: int, size: int) -> int:
    import torch.distributed._symmetric_memory as symm_mem

    rendezvous: Any = symm_mem.rendezvous

    memory = torch.as_tensor(_Memory(data, size), device=f"cuda:{device}")
    handle = rendezvous(memory, name.decode())
    if handle is None:
        raise RuntimeError(f"the memory at {data:#x} is not symmetric memory of torch")
    offset = data - handle.buffer_ptrs[handle.rank]
    group_of(name.decode(), device).adopt(data, size, [part + offset for part in handle.buffer_ptrs])
    return 0


def _error() -> int:
    text = getattr(_said, "text", None)
    return ctypes.addressof(text) if text is not None else 0


def _load() -> tuple[Any, _Callbacks]:
    for folder in backend._folders():
        path = folder / "libcommsir_torch_ops.so"
        if path.is_file():
            _OPS.load_library(str(path))
            library = ctypes.CDLL(str(path))
            callbacks = _Callbacks(
                _RESOLVE(_guarded(_resolve, 0)), _SIZE(_guarded(_size, 0)), _ADOPT(_guarded(_adopt, 1)), _ERROR(_error)
            )
            library.commsir_torch_set_callbacks(ctypes.byref(callbacks))
            return library, callbacks
    raise RuntimeError(
        "torch.ops.commsir: libcommsir_torch_ops.so was not found; it lies beside libcommsir.so "
        "(COMMSIR_LIBRARY names the folder)"
    )


#: The callbacks live as long as the library may call them.
_library, _callbacks = _load()


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
) -> list[torch.Tensor]:
    ranks = _size(group_name.encode())
    shape = list(input.shape) if input.dim() > 1 else [1, *input.shape]
    if op == "all_gather":
        shape[0] *= ranks
    elif op == "reduce_scatter":
        shape[0] //= ranks
    return [
        input.new_empty([*shape[:-1], columns], dtype=_DTYPES[kind])
        for kind, columns in zip(out_types.split(","), out_columns, strict=True)
    ]


_FAKES = {
    "all_reduce": _fake_all_reduce,
    "all_gather": _fake_all_gather,
    "reduce_scatter": _fake_reduce_scatter,
    "all_to_all": _fake_all_to_all,
    "broadcast": _fake_broadcast,
    "fused_collective": _fake_fused_collective,
}
for _name, _fake in _FAKES.items():
    _LIBRARY.register_fake(f"commsir::{_name}", _fake)
    _LIBRARY.register_fake(f"commsir::{_name}.out", lambda *args, **kwargs: None)


def _save_group(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.group, ctx.op = inputs[-1], inputs[1]


def _all_reduce_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
    if ctx.op != "sum":
        raise RuntimeError(f'torch.ops.commsir.all_reduce has a derivative for "sum" alone, not for "{ctx.op}"')
    return _OPS.commsir.all_reduce(grad.contiguous(), "sum", ctx.group), None, None


def _all_gather_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
    return _OPS.commsir.reduce_scatter(grad.contiguous(), "sum", ctx.group), None


def _reduce_scatter_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
    if ctx.op != "sum":
        raise RuntimeError(f'torch.ops.commsir.reduce_scatter has a derivative for "sum" alone, not for "{ctx.op}"')
    return _OPS.commsir.all_gather(grad.contiguous(), ctx.group), None, None


def _all_to_all_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
    return _OPS.commsir.all_to_all(grad.contiguous(), ctx.group), None


def _broadcast_backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:
    # The root's input reaches every rank: its derivative is the sum of theirs.
    total = _OPS.commsir.all_reduce(grad.contiguous(), "sum", ctx.group)
    rank = _C10D._resolve_process_group(ctx.group).rank()
    return total if rank == ctx.op else torch.zeros_like(total), None, None


_LIBRARY.register_autograd("commsir::all_reduce", _all_reduce_backward, setup_context=_save_group)
_LIBRARY.register_autograd("commsir::all_gather", _all_gather_backward, setup_context=_save_group)
_LIBRARY.register_autograd("commsir::reduce_scatter", _reduce_scatter_backward, setup_context=_save_group)
_LIBRARY.register_autograd("commsir::all_to_all", _all_to_all_backward, setup_context=_save_group)
_LIBRARY.register_autograd("commsir::broadcast", _broadcast_backward, setup_context=_save_group)


# ---------------------------------------------------------------------------------------------------------------------
# By group rather than by name
# ---------------------------------------------------------------------------------------------------------------------


def _named(group: Any) -> str:
    if isinstance(group, str):
        return group
    used = c10d._get_default_group() if group is None else group
    return str(used.group_name)


def _ranks(group: Any) -> int:
    return _size(_named(group).encode()) if group is None or isinstance(group, str) else int(group.size())


def _is_eager(input: torch.Tensor) -> bool:  # noqa: A002
    """Nothing traces or differentiates the call: the out form will do, which has no Python of autograd in its way."""
    return not (torch.compiler.is_compiling() or (input.requires_grad and torch.is_grad_enabled()))


_all_reduce_out = _OPS.commsir.all_reduce.out
_all_gather_out = _OPS.commsir.all_gather.out
_reduce_scatter_out = _OPS.commsir.reduce_scatter.out
_all_to_all_out = _OPS.commsir.all_to_all.out
_broadcast_out = _OPS.commsir.broadcast.out


def all_reduce(input: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:  # noqa: A002
    """The reduction of all ranks' `input`, on every rank."""
    name = _named(group)
    if not _is_eager(input):
        return cast(torch.Tensor, _OPS.commsir.all_reduce(input, op, name))
    out = _like(input)
    _all_reduce_out(input, op, name, out=out)
    return out


def all_gather(input: torch.Tensor, group: Any = None) -> torch.Tensor:  # noqa: A002
    """All ranks' `input`, one after the other along dimension 0."""
    name = _named(group)
    if not _is_eager(input):
        return cast(torch.Tensor, _OPS.commsir.all_gather(input, name))
    out = _rows(input, _ranks(group), 1)
    _all_gather_out(input, name, out=out)
    return out


def reduce_scatter(input: torch.Tensor, op: str = "sum", group: Any = None) -> torch.Tensor:  # noqa: A002
    """This rank's part, along dimension 0, of the reduction of all ranks' `input`."""
    name = _named(group)
    if not _is_eager(input):
        return cast(torch.Tensor, _OPS.commsir.reduce_scatter(input, op, name))
    out = _rows(input, 1, _ranks(group))
    _reduce_scatter_out(input, op, name, out=out)
    return out


def all_to_all(input: torch.Tensor, group: Any = None) -> torch.Tensor:  # noqa: A002
    """Part p of `input`, along dimension 0, goes to rank p; what comes is in rank order."""
    name = _named(group)
    if not _is_eager(input):
        return cast(torch.Tensor, _OPS.commsir.all_to_all(input, name))
    out = _like(input)
    _all_to_all_out(input, name, out=out)
    return out


def broadcast(input: torch.Tensor, root: int = 0, group: Any = None) -> torch.Tensor:  # noqa: A002
    """The `input` of rank `root` of the group, on every rank."""
    name = _named(group)
    if not _is_eager(input):
        return cast(torch.Tensor, _OPS.commsir.broadcast(input, root, name))
    out = _like(input)
    _broadcast_out(input, root, name, out=out)
    return out


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
) -> list[torch.Tensor]:
    """A collective with arithmetic on what arrives, in one kernel.

    `input` is rows of its last dimension. `args` are read by the arithmetic: a tensor of one dimension is one row for
    all rows, others have a row for each row of the result. `consume` is MLIR text, "(%sum: tensor<64xf32>, %r:
    tensor<64xbf16>) { … comms.yield … }"; it yields one tile for each of `outputs`, (dtype, columns). `symmetric` says
    that `input` lies in torch's symmetric memory and stays there as long as the process lives.
    """
    types = ",".join(capi.element_type(dtype) for dtype, _ in outputs)
    return list(
        _OPS.commsir.fused_collective(
            op, input, args, reduce_op, consume, types, [columns for _, columns in outputs], symmetric, _named(group)
        )
    )
