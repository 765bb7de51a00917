"""CommsIR: collective kernels that are checked, run on N ranks without a GPU, and compiled for GPUs.

>>> import commsir
>>> commsir.simulate(source, ranks=8, arrays={"x": shards, "y": results})
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 10):  # noqa: UP036 (a checkout or a folder on PYTHONPATH; pip refuses the wheel)
    raise ImportError("commsir needs Python 3.10 or newer; this is Python " + sys.version.split()[0])

from commsir import errors
from commsir._native import CheckReport, load_tables, simulate, version
from commsir._native import compile as compile_ir
from commsir.errors import (
    AbortedError,
    BoundsError,
    CheckError,
    CommsError,
    CompileError,
    DeadlockError,
    DisagreementError,
    LimitError,
    MismatchError,
    UsageError,
)

if TYPE_CHECKING:
    from commsir._explain import explain
    from commsir._kernel import Kernel, kernel
    from commsir._replay import replay
    from commsir._sequence import check, host_read, host_write
    from commsir._simulate import Report
    from commsir._tune import Table, tune
    from commsir.doctor import doctor
    from commsir.group import Group
    from commsir.language.collectives import (
        all_gather,
        all_reduce,
        all_to_all,
        all_to_all_v,
        broadcast,
        gather,
        reduce,
        reduce_scatter,
        scatter,
        send_recv,
    )
    from commsir.language.communication import (
        barrier,
        barrier_arrive,
        barrier_wait,
        bulk_copy,
        bulk_wait,
        channel,
        channel_barrier,
        engine_copy,
        fence,
        flush,
        get,
        multimem_load_reduce,
        multimem_reduce,
        multimem_store,
        packet_load,
        packet_store,
        poison_fill,
        poison_load,
        poison_store,
        put,
        put_signal,
        read_counter,
        read_signal,
        recv,
        reset_counter,
        reset_signal,
        send,
        signal,
        wait_counter,
        wait_signal,
        wait_signal_from,
    )
    from commsir.language.functions import (
        acos,
        asin,
        atan,
        bitcast,
        block_id,
        broadcast_row,
        cast,
        cbrt,
        ceil,
        check_bounds,
        clip,
        concatenate,
        contract,
        cos,
        cosh,
        epoch,
        erf,
        erfc,
        exp,
        exp2,
        expm1,
        floor,
        fma,
        for_peers,
        full,
        iota,
        isfinite,
        isinf,
        isnan,
        local,
        log,
        log1p,
        log2,
        maximum,
        minimum,
        multimem,
        num_blocks,
        peer,
        rank,
        rint,
        role,
        row_reduce,
        rsqrt,
        scratch,
        sin,
        sinh,
        size,
        splat,
        sqrt,
        static_range,
        tan,
        tanh,
        team,
        team_split,
        tile_load,
        tile_store,
        translate_rank,
        trunc,
        where,
        zeros,
    )
    from commsir.language.parameters import (
        Array,
        Cell,
        Channel,
        Counter,
        Dim,
        HostWindow,
        Index,
        Memory,
        Signal,
        Slot,
        Team,
        Tile,
        Token,
        Window,
        bf16,
        dims,
        f8,
        f8e5m2,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        index,
        ranks,
    )
    from commsir.torch.call_counts import stats

__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "Array",
    "BoundsError",
    "Cell",
    "Channel",
    "CheckError",
    "CheckReport",
    "CommsError",
    "CompileError",
    "Counter",
    "DeadlockError",
    "Dim",
    "DisagreementError",
    "Group",
    "HostWindow",
    "Index",
    "Kernel",
    "LimitError",
    "Memory",
    "MismatchError",
    "Report",
    "Signal",
    "Slot",
    "Table",
    "Team",
    "Tile",
    "Token",
    "UsageError",
    "Window",
    "acos",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "asin",
    "atan",
    "barrier",
    "barrier_arrive",
    "barrier_wait",
    "bf16",
    "bitcast",
    "block_id",
    "broadcast",
    "broadcast_row",
    "bulk_copy",
    "bulk_wait",
    "cast",
    "cbrt",
    "ceil",
    "channel",
    "channel_barrier",
    "check",
    "check_bounds",
    "clip",
    "compile_ir",
    "concatenate",
    "contract",
    "cos",
    "cosh",
    "dims",
    "doctor",
    "engine_copy",
    "epoch",
    "erf",
    "erfc",
    "errors",
    "exp",
    "exp2",
    "explain",
    "expm1",
    "f16",
    "f32",
    "f64",
    "f8",
    "f8e5m2",
    "fence",
    "floor",
    "flush",
    "fma",
    "for_peers",
    "full",
    "gather",
    "get",
    "host_read",
    "host_write",
    "i16",
    "i32",
    "i64",
    "i8",
    "index",
    "iota",
    "isfinite",
    "isinf",
    "isnan",
    "kernel",
    "local",
    "load_tables",
    "log",
    "log1p",
    "log2",
    "maximum",
    "minimum",
    "multimem",
    "multimem_load_reduce",
    "multimem_reduce",
    "multimem_store",
    "num_blocks",
    "packet_load",
    "packet_store",
    "peer",
    "poison_fill",
    "poison_load",
    "poison_store",
    "put",
    "put_signal",
    "rank",
    "ranks",
    "read_counter",
    "read_signal",
    "recv",
    "reduce",
    "reduce_scatter",
    "replay",
    "reset_counter",
    "reset_signal",
    "rint",
    "role",
    "row_reduce",
    "rsqrt",
    "scatter",
    "scratch",
    "send",
    "send_recv",
    "signal",
    "simulate",
    "sin",
    "sinh",
    "size",
    "splat",
    "sqrt",
    "static_range",
    "stats",
    "tan",
    "tanh",
    "team",
    "team_split",
    "tile_load",
    "tile_store",
    "translate_rank",
    "trunc",
    "tune",
    "version",
    "wait_counter",
    "wait_signal",
    "wait_signal_from",
    "where",
    "zeros",
]

#: Names whose modules are imported when they are first used, so that `import commsir` stays quick.
_LAZY = {
    "explain": "commsir._explain",
    "replay": "commsir._replay",
    "doctor": "commsir.doctor",
    "Group": "commsir.group",
    "check": "commsir._sequence",
    "host_read": "commsir._sequence",
    "host_write": "commsir._sequence",
    "Kernel": "commsir._kernel",
    "kernel": "commsir._kernel",
    "Report": "commsir._simulate",
    "Table": "commsir._tune",
    "tune": "commsir._tune",
    "stats": "commsir.torch.call_counts",
}


def _on_arrays(name: str, arguments: dict[str, Any]) -> Any:
    """Runs a collective on arrays, outside a kernel."""
    from commsir import _host

    return _host.collective(name, arguments)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    if name in __all__:
        # What is left is the kernel language, all of it at once.
        from commsir.language import collectives, communication, functions, parameters

        for module in (parameters, functions, communication, collectives):
            globals().update({known: getattr(module, known) for known in module.__all__})
        collectives.outside = _on_arrays
        return globals()[name]
    # With name and obj, Python's traceback suggests the closest name.
    raise AttributeError(f"module 'commsir' has no attribute '{name}'", name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
