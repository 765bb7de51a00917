"""docs/PythonKernels.md covers the whole language."""

# ruff: noqa: E501 (tables)
from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import commsir
import function_tables
import pytest
from commsir.language import collectives, communication, functions

Load = Callable[[str], ModuleType]


def test_tables_of_functions() -> None:
    page = function_tables.PAGE.read_text()
    told = page.partition(function_tables.BEGIN)[2].partition(function_tables.END)[0]
    assert told == function_tables.text(), "run test/python/language/function_tables.py"
    for module in (functions, communication, collectives):
        for name in module.__all__:
            assert f"| `{name}(" in told, name


#: A row of the table of collectives: the call, x, outs, what a region gets.
_ROW = re.compile(r"^\| `(\w+)\((.*)\)` \| `(\[.*\])` \| `(\[.*\])` \| (.*) \|$", re.MULTILINE)


def _rows() -> list[tuple[str, ...]]:
    return [match.groups() for match in _ROW.finditer(function_tables.PAGE.read_text())]


def test_all_ten_collectives_are_in_the_table() -> None:
    assert sorted({row[0] for row in _rows()}) == sorted(collectives.__all__)


@pytest.mark.parametrize("row", _rows(), ids=lambda row: f"{row[0]} {row[2]}")
def test_shapes_of_collectives(load: Load, row: tuple[str, ...]) -> None:
    """The shapes are what the collective takes and gives on 4 ranks."""
    name, call, x, outs, _ = row
    sizes = "send: i32[Array, ranks], received: i32[Array, ranks], " if name == "all_to_all_v" else ""
    module = load(
        'rows, n, more = dims("rows n more")\n@kernel\n'
        f"def k(x: f32[Window, {x[1:-1]}], {sizes}y: f32[Array, {outs[1:-1]}]) -> None:\n    {name}({call})\n"
    )
    fixed = {key: size for key, size in {"rows": 8, "n": 16, "more": 20}.items() if key in module.k.symbols}
    assert module.k.specialize(**fixed).check(ranks=4)
    wrong = load(
        'rows, n, more = dims("rows n more")\n@kernel\n'
        f"def k(x: f32[Window, {x[1:-1]}], {sizes}y: f32[Array, {outs[1:-1]}, 3]) -> None:\n    {name}({call})\n"
    )
    with pytest.raises(commsir.CommsError):
        wrong.k.specialize(**fixed).check(ranks=4)
