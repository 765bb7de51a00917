"""Tells when somebody imports a module, which programs that do not need it are spared."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["accept_in_accelerate", "when_imported"]


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, teach: Callable[[Any], None]) -> None:
        self._name, self._teach = name, teach

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == self._name else None
        loader: Any = spec.loader if spec else None
        if loader is None:
            return None
        run = loader.exec_module

        def run_and_teach(module: ModuleType) -> None:
            run(module)
            self._teach(module)

        loader.exec_module = run_and_teach
        return spec


def when_imported(name: str, teach: Callable[[Any], None]) -> None:
    """Calls `teach` with the module of that name: now if it was imported before, else once somebody has imported it."""
    if name in sys.modules:
        teach(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, teach))


def accept_in_accelerate(name: str) -> None:
    """Makes Accelerate, and therefore Hugging Face's Trainer, accept the backend `name` for CPU tensors.

    It knows Gloo and MPI there, and says of all others that they are not available.
    """

    def teach(module: Any) -> None:
        original = module.PartialState._prepare_backend

        def _prepare_backend(self: Any, cpu: bool = False, sagemaker_dp: bool = False, backend: Any = None) -> Any:
            chosen, kind = original(self, cpu, sagemaker_dp, backend)
            return (name if backend == name else chosen), kind

        module.PartialState._prepare_backend = _prepare_backend

    when_imported("accelerate.state", teach)
