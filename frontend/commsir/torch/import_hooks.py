"""Calls functions when a module is imported, so that programs that do not import it pay nothing."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["accept_in_accelerate", "when_imported"]


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, callback: Callable[[Any], None]) -> None:
        self._name, self._callback = name, callback

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == self._name else None
        loader: Any = spec.loader if spec else None
        if loader is None:
            return None
        run = loader.exec_module

        def run_with_hook(module: ModuleType) -> None:
            run(module)
            self._callback(module)

        loader.exec_module = run_with_hook
        return spec


def when_imported(name: str, callback: Callable[[Any], None]) -> None:
    """Calls `callback` with the module `name`: now if it is imported already, otherwise after its first import."""
    if name in sys.modules:
        callback(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, callback))


def accept_in_accelerate(name: str) -> None:
    """Makes Accelerate, and therefore Hugging Face's Trainer, accept the backend `name` for CPU tensors.

    Accelerate knows only Gloo and MPI for CPU tensors and rejects other backends as not available.
    """

    def callback(module: Any) -> None:
        original = module.PartialState._prepare_backend

        def _prepare_backend(self: Any, cpu: bool = False, sagemaker_dp: bool = False, backend: Any = None) -> Any:
            chosen, kind = original(self, cpu, sagemaker_dp, backend)
            return (name if backend == name else chosen), kind

        module.PartialState._prepare_backend = _prepare_backend

    when_imported("accelerate.state", callback)
