"""CommsIR in PyTorch: the torch.distributed backend, its counters, and windows as tensors.

torch imports this module itself (its entry point is `autoload`), so it imports nothing that is slow.
"""

from __future__ import annotations

import atexit
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commsir.torch.backend import abort, recent_calls
    from commsir.torch.call_counts import clear_stats, stats
    from commsir.torch.compile import CollectivePass, compile_options
    from commsir.torch.flight import dump_flight_recorder, flight_recorder
    from commsir.torch.foreign_collectives import register_collective
    from commsir.torch.interop import adopt_symmetric_memory, nccl_communicator, share, unshare, window_tensor
    from commsir.torch.kernel_warmup import warm_up
    from commsir.torch.matmul.ops import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter
    from commsir.torch.ops import fused_collective
    from commsir.torch.process_group import ProcessGroup
    from commsir.torch.reporting import Report, fusions, report
    from commsir.torch.windows import window

__all__ = [
    "CollectivePass",
    "ProcessGroup",
    "Report",
    "abort",
    "adopt_symmetric_memory",
    "all_gather_matmul",
    "autoload",
    "clear_stats",
    "compile_options",
    "dump_flight_recorder",
    "flight_recorder",
    "fused_collective",
    "fusions",
    "matmul_all_reduce",
    "matmul_reduce_scatter",
    "nccl_communicator",
    "recent_calls",
    "register",
    "register_backend",
    "register_collective",
    "report",
    "share",
    "stats",
    "unshare",
    "warm_up",
    "window",
    "window_tensor",
]

#: Names whose modules are imported when they are first used.
_LAZY = {
    "ProcessGroup": "process_group",
    "CollectivePass": "compile",
    "abort": "backend",
    "adopt_symmetric_memory": "interop",
    "all_gather_matmul": "matmul.ops",
    "clear_stats": "call_counts",
    "compile_options": "compile",
    "dump_flight_recorder": "flight",
    "flight_recorder": "flight",
    "fused_collective": "ops",
    "fusions": "reporting",
    "matmul_all_reduce": "matmul.ops",
    "matmul_reduce_scatter": "matmul.ops",
    "nccl_communicator": "interop",
    "recent_calls": "backend",
    "register_collective": "foreign_collectives",
    "report": "reporting",
    "Report": "reporting",
    "share": "interop",
    "stats": "call_counts",
    "unshare": "interop",
    "warm_up": "kernel_warmup",
    "window": "windows",
    "window_tensor": "interop",
}
#: Modules that are imported when they are first used.
_LAZY_MODULES = ("compile",)


def __getattr__(name: str) -> Any:
    if name not in _LAZY and name not in _LAZY_MODULES:
        hint = f": write commsir.torch.compile.{name}" if name in ("disable", "enable") else ""
        # With name and obj, Python's traceback suggests the closest name.
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules[__name__]
        )
    import importlib

    if _LAZY.get(name) != "call_counts":  # Of which `commsir.stats` is, for programs without torch.
        importlib.import_module(f"{__name__}._needed")
    try:
        module = importlib.import_module(f"{__name__}.{_LAZY.get(name, name)}")
    except (ImportError, AttributeError) as error:
        from commsir.torch._needed import explain_old_torch

        explain_old_torch(error)
        raise
    return module if name in _LAZY_MODULES else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LAZY_MODULES})


def _create(options: Any, backend_options: Any) -> Any:
    from commsir.torch import backend

    return backend.create(options, backend_options)


def register_backend(name: str, group: type[Any]) -> None:
    """Makes `init_process_group(name)` use `group`, a subclass of ProcessGroup."""
    import commsir.torch._needed  # noqa: F401

    # isort: split
    import torch.distributed as dist

    from commsir.errors import UsageError
    from commsir.torch.process_group import ProcessGroup

    if not (isinstance(group, type) and issubclass(group, ProcessGroup)):
        raise UsageError(f"register_backend: {group!r} is not a subclass of commsir.torch.ProcessGroup")
    taken = {other for other in dist.Backend.backend_list if other.upper() not in dist.Backend._plugins}
    if name.lower() in taken | {"commsir"}:
        raise UsageError(f"register_backend: there is a backend '{name}' already; give another name")

    def create(options: Any, backend_options: Any) -> Any:
        from commsir.torch import backend

        return group(backend.settings(options))

    dist.Backend.register_backend(name, create, extended_api=True, devices=["cpu", "cuda"])


def register() -> None:
    """Makes `init_process_group("commsir")` work. Does nothing when it does already."""
    import commsir.torch._needed  # noqa: F401

    # isort: split
    import torch.distributed as dist

    if not dist.is_available() or "COMMSIR" in dist.Backend._plugins:
        return
    dist.Backend.register_backend("commsir", _create, extended_api=True, devices=["cpu", "cuda"])
    from commsir.torch import import_hooks, torch_patches

    torch_patches.install()
    import_hooks.accept_in_accelerate("commsir")


def _end() -> None:
    backend = sys.modules.get("commsir.torch.backend")
    if backend is not None:
        backend.end()


# As early as can be, so that it comes after what programs register.
atexit.register(_end)


def autoload() -> None:
    """Called by torch at the end of `import torch`, through the entry point torch.backends."""
    register()
