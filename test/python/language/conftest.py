"""Fixtures that the tests of the kernel language share."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

_numbers = itertools.count()


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModuleType]:
    """A module of the text given, in a file of its own: kernels are compiled from their source."""
    folder = tmp_path_factory.mktemp("programs")

    def make(text: str) -> ModuleType:
        path = Path(folder) / f"program{next(_numbers)}.py"
        path.write_text("from commsir import *\nimport commsir\nimport numpy as np\nimport math\n" + text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make
