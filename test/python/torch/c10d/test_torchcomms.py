"""The backend for torchcomms: in C++ if its headers are found, else in Python, and the warnings about it."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commsir.torch import backend, extension


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as torchcomms' package, installed from a checkout: it has headers in both cases of use."""
    folder = tmp_path / "site" / "torchcomms"
    folder.mkdir(parents=True)
    for name in ("TorchCommBackend.hpp", "_comms.pyi", "libtorchcomms.so"):
        (folder / name).write_text(name)
    stand_in = types.ModuleType("torchcomms")
    stand_in.__file__ = str(folder / "__init__.py")
    stand_in.registered = {}  # type: ignore[attr-defined]
    stand_in.TorchCommBackend = object  # type: ignore[attr-defined]
    stand_in.register_backend = stand_in.registered.__setitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchcomms", stand_in)
    monkeypatch.setenv("COMMSIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(backend, "load_module", lambda: "the C++ backend")
    yield folder
    sys.modules.pop("commsir.torch.torchcomms", None)


class Built:
    """In place of the extension."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: extension.Extension | None = None
        self.registered: tuple[Any, ...] = ()
        monkeypatch.setattr(extension.Extension, "build", lambda made: self.build(made))

    def build(self, made: extension.Extension) -> Built:
        self.made = made
        return self

    def register(self, *arguments: Any) -> None:
        self.registered = arguments

    def end(self) -> None:
        """At the program's end."""


def load() -> None:
    """As torchcomms does it at the first communicator."""
    sys.modules.pop("commsir.torch.torchcomms", None)
    importlib.import_module("commsir.torch.torchcomms")


def by_python() -> bool:
    return "commsir" in sys.modules["torchcomms"].registered


def test_with_headers_it_is_in_cpp(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = Built(monkeypatch)
    load()
    assert built.registered[0] == "commsir"
    assert not by_python()
    assert built.made
    assert list(built.made.libraries) == [package / "libtorchcomms.so"]
    (name, folder, pattern) = built.made.links[0]
    assert (name, folder) == ("comms/torchcomms", package)
    assert [path.name for path in folder.glob(pattern)] == ["TorchCommBackend.hpp"]


def test_of_another_torchcomms_it_is_compiled_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = Built(monkeypatch)
    names = []
    for text in ("", "a function more"):
        (package / "TorchCommBackend.hpp").write_text(text)
        load()
        root = extension.root_of_sources()
        assert built.made and root
        names.append(built.made.folder(root))
    assert len(set(names)) == 2


def test_headers_are_those_of_a_checkout(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout" / "comms" / "torchcomms"
    checkout.parent.mkdir(parents=True)
    (package / "TorchCommBackend.hpp").unlink()
    built = Built(monkeypatch)
    with pytest.warns(
        UserWarning, match="has no TorchCommBackend.hpp: let COMMSIR_TORCHCOMMS_SOURCE name the checkout"
    ):
        load()
    assert by_python()
    checkout.mkdir()
    for name in ("TorchCommBackend.hpp", "_comms.pyi"):
        (checkout / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMSIR_TORCHCOMMS_SOURCE", "checkout")
    load()
    assert built.made and built.made.links[0][1] == checkout
    (checkout / "_comms.pyi").write_text("newer")
    monkeypatch.setenv("COMMSIR_TORCHCOMMS", "cpp")
    with pytest.raises(RuntimeError, match="is of another torchcomms than the one that is installed in"):
        load()


def test_where_it_cannot_be_compiled_that_is_said(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(made: extension.Extension) -> Any:
        raise RuntimeError("there is no C++ compiler")

    monkeypatch.setattr(extension.Extension, "build", refuse)
    with pytest.warns(UserWarning, match=r"no C\+\+ compiler. The one in Python is used, without batches"):
        load()
    assert by_python()


def test_over_groups_in_python_it_is_in_python(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "load_module", lambda: None)
    with pytest.warns(UserWarning, match="this torch has no C.. backend of CommsIR"):
        load()
    assert by_python()


def test_it_is_chosen_by_name(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = Built(monkeypatch)
    monkeypatch.setenv("COMMSIR_TORCHCOMMS", "python")
    load()
    assert by_python() and built.made is None
    monkeypatch.setenv("COMMSIR_TORCHCOMMS", "rust")
    with pytest.raises(ValueError, match='COMMSIR_TORCHCOMMS is "rust"; say cpp, python or 0'):
        load()
