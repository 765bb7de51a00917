"""cmake/wording.py finds its phrases in comments, texts and over line ends, and nothing in names of code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_PATH = Path(__file__).parents[2] / "cmake" / "wording.py"
_SPEC = importlib.util.spec_from_file_location("wording", _PATH)
assert _SPEC and _SPEC.loader
wording = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(wording)


@pytest.mark.parametrize(
    ("text", "line", "phrase"),
    [
        ("// The words but for the last.", 1, "but for"),
        ("x\n/// all of it, but\n/// for the last", 2, "but for"),
        ("x\n\n# lies beside\n  # the library", 3, "beside"),
        ('fail(f"{name} is missing beside {here}")', 1, "beside"),
        ("Nobody answers, and it hangs for ever.", 1, "for ever"),
        ("how long the process who waits has left", 1, "who waits"),
    ],
)
def test_a_phrase_is_found(text: str, line: int, phrase: str) -> None:
    assert [(at, what) for at, what, _ in wording.find(text)] == [(line, phrase)]


@pytest.mark.parametrize(
    "text",
    [
        "beside = ranks_of(group)",
        "if beside is not None and beside.names:",
        "for one in beside:\n    print(one)",
        "std::thread beside([&] { run(); });",
        "It sends nothing, but\n\nfor i in range(3):",
        "Besides, it is slow. Not but forward.",
    ],
)
def test_names_and_other_words_are_none(text: str) -> None:
    assert wording.find(text) == []
