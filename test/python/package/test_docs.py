"""Documentation of what programs call: each function of the C API has a comment, each public function of Python says
what its parameters mean, and docs/CApi.md lists all requests. test/scripts/run-doc.py runs the pages' code.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import commsir
import pytest
from conftest import ROOT

_HEADER = ROOT / "runtime" / "capi" / "commsir.h"
#: A declaration, and the comments directly above it.
_DECLARATION = re.compile(r"((?:/\*(?:[^*]|\*(?!/))*\*/\n)*)COMMSIR_API[^;]*?\b(commsir_\w+)\([^;]*\);", re.DOTALL)


def test_every_key_of_a_request_is_documented() -> None:
    keys = re.findall(r'^ +\{"(\w+)",', (ROOT / "runtime" / "capi" / "Request.cpp").read_text(), re.MULTILINE)
    page = (ROOT / "docs" / "CApi.md").read_text()
    assert len(keys) > 25 and not [key for key in keys if f"`{key}`" not in page]


def undocumented(header: str) -> list[str]:
    """The functions of a C header without a comment of their own, or one that they share with the function above."""
    found, end, explained = [], -1, False
    for declaration in _DECLARATION.finditer(header):
        follows = declaration.start() == end + 1  # Without an empty line between.
        explained = bool(declaration[1].strip()) or (follows and explained)
        found += [] if explained else [declaration[2]]
        end = declaration.end()
    return found


def test_every_function_of_the_c_api_has_a_comment() -> None:
    header = _HEADER.read_text()
    assert len(_DECLARATION.findall(header)) == header.count("COMMSIR_API ") - header.count("define COMMSIR_API ")
    assert not undocumented(header)
    planted = header + "\nCOMMSIR_API int commsir_one(void);\n/* Two. */\nCOMMSIR_API int commsir_two(void);\n"
    assert undocumented(planted) == ["commsir_one"]


def _functions(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What is called by `name`: a function, or the methods of a class that are its own."""
    if not inspect.isclass(value):
        yield name, value
        return
    for method, function in vars(value).items():
        if not method.startswith("_") and (callable(function) or isinstance(function, classmethod | staticmethod)):
            yield f"{name}.{method}", getattr(value, method)


def _unexplained(function: Any) -> list[str]:
    """The parameters that a function's documentation does not name; all, where there is none."""
    text = inspect.getdoc(function) or ""
    named = [one.name for one in inspect.signature(function).parameters.values() if one.kind is not one.VAR_POSITIONAL]
    return [name for name in named if name != "self" and not re.search(rf"\b{name}\b", text)] + ["text"] * (not text)


def _public() -> dict[str, Any]:
    values = {name: getattr(commsir, name) for name in commsir.__all__ if not name.startswith("_")}
    pairs = [pair for name, value in values.items() if callable(value) for pair in _functions(name, value)]
    return dict(pairs)


def test_every_public_function_explains_its_parameters() -> None:
    found = {name: missing for name, function in _public().items() if (missing := _unexplained(function))}
    assert len(_public()) > 150 and not found


@pytest.mark.parametrize(
    ("name", "words"), [("put", "gin: goes through"), ("gather", "root: a rank"), ("sqrt", "x: a tile")]
)
def test_help_adds_what_functions_share(name: str, words: str) -> None:
    text = inspect.getdoc(getattr(commsir, name)) or ""
    assert "Parameters:" in text and words in text


def test_an_unexplained_parameter_is_found() -> None:
    def function(first: int, second: int) -> None:
        """Takes the `first` of two."""

    assert _unexplained(function) == ["second"] and _unexplained(lambda x: x) == ["x", "text"]
