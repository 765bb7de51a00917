"""The syntax tree of a Python function, with the lines and columns of its file."""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import inspect
import linecache
import operator
import os
import threading
import time
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from .. import errors

Place = tuple[str, int, int]  # file, line, column from 1


@dataclass(frozen=True)
class Source:
    """Location of a function: its file, and its node in the file's syntax tree."""

    file: str
    node: ast.FunctionDef | ast.Lambda
    function: FunctionType


_texts: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()
_texts_lock = threading.RLock()
_began = time.time()
_FUTURE = functools.reduce(operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


def find(function: FunctionType) -> Source:
    """The source of `function`; CompileError where there is none to be had."""
    code = function.__code__
    tree = _tree(function)
    found: list[Any] = [n for n in ast.walk(tree) if _matches(n, code)]
    if len(found) > 1 and (columns := _columns(code)) is not None:
        narrowed = [n for n in found if (n.lineno, n.col_offset) <= columns[0] and columns[1] <= _end(n)]
        found = sorted(narrowed, key=lambda n: (n.lineno, n.col_offset))[-1:] or found
    if len(found) > 1:
        # Lambdas that do the same may stand for each other.
        found = [n for n in found if isinstance(n, ast.Lambda) and _does(n) == _steps(code)][:1] or found
    if not found:
        raise errors.CompileError(
            f"the source of '{function.__name__}' is not in {code.co_filename}, line {code.co_firstlineno}: "
            "the file has changed since it was imported; import it again"
        )
    if len(found) > 1:
        raise errors.CompileError(
            f"{code.co_filename}, line {code.co_firstlineno}, holds several lambdas with the same parameters; "
            "put them on lines of their own, or give them names with def"
        )
    node = found[0]
    if isinstance(node, ast.AsyncFunctionDef):
        raise errors.CompileError(
            f"{code.co_filename}, line {code.co_firstlineno}: '{node.name}' is an async def; "
            "a kernel is a plain def, whose ranks wait by themselves"
        )
    assert isinstance(node, ast.FunctionDef | ast.Lambda)
    return Source(code.co_filename, node, function)


def remember(function: FunctionType) -> None:
    """Keeps the text of the function's file as it is when the function is made: the file may change after that."""
    file = function.__code__.co_filename
    if text := _read(file):
        # Kernels of one file share its text.
        _keep(function, next((t for t in _remembered(file) if t == text), text))


def _keep(function: FunctionType, text: str) -> None:
    with _texts_lock:
        _texts[function] = text


def _remembered(file: str) -> list[str]:
    """Returns the texts that `file` had when its kernels were defined, newest first."""
    with _texts_lock:
        return [text for function, text in _texts.items() if function.__code__.co_filename == file][::-1]


def _read(file: str) -> str:
    linecache.checkcache(file)
    return "".join(linecache.getlines(file))


def _tree(function: FunctionType) -> ast.Module:
    text = _texts.get(function) or _text_of_helper(function)
    if not text and (text := "".join(_typed(function))):
        _keep(function, text)
    if not text:
        raise errors.CompileError(
            f"the source of '{function.__name__}' is not available: it was defined in {function.__code__.co_filename}, "
            "which is not a file (exec, python -c, or an interactive prompt); "
            "save it as a .py file, or run it in a notebook cell"
        )
    return _parse(text)


def _text_of_helper(function: FunctionType) -> str:
    """The text that the code of a function without a decorator was made of, as far as it can be told."""
    code = function.__code__
    remembered, now = _remembered(code.co_filename), _read(code.co_filename)
    for text in [*remembered, now]:
        if code in _codes(text, code.co_filename, code.co_flags & _FUTURE):
            return text
    if remembered:
        return remembered[0]
    # Code of other bytes alone proves nothing: pytest, for one, rewrites what it imports.
    if now and _changed(code.co_filename):
        raise errors.CompileError(
            f"the source of '{function.__name__}' is not in {code.co_filename}, line {code.co_firstlineno}: "
            "the file has changed since it was imported; import it again"
        )
    return now


def _changed(file: str) -> bool:
    """Whether `file` was written after this process began to use kernels."""
    try:
        return os.stat(file).st_mtime > _began
    except OSError:
        return False


@functools.lru_cache(maxsize=64)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@functools.lru_cache(maxsize=64)
def _codes(text: str, file: str, features: int) -> frozenset[CodeType]:
    """The code of each function in `text`, compiled with those __future__ features: exec hands on its caller's."""
    try:
        todo = [compile(text, file, "exec", flags=features, dont_inherit=True)]
    except (SyntaxError, ValueError):
        return frozenset()
    found: set[CodeType] = set()
    while todo:
        inner = [c for c in todo.pop().co_consts if isinstance(c, CodeType)]
        found.update(inner)
        todo += inner
    return frozenset(found)


def _typed(function: FunctionType) -> list[str]:
    """Source that was typed at a prompt, which newer Pythons store by code object rather than by file name."""
    try:
        return inspect.findsource(function)[0]
    except (OSError, TypeError):
        return []


def _matches(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno and _parameters(node) == _names(code)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno] + [d.lineno for d in node.decorator_list])
        return node.name == code.co_name and first == code.co_firstlineno
    return False


def _names(code: CodeType) -> list[str]:
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _parameters(node: ast.Lambda) -> list[str]:
    return [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]


def _columns(code: CodeType) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Returns the first and last position of the code, if this Python keeps them (3.11 and newer)."""
    positions: Any = getattr(code, "co_positions", None)
    if positions is None:
        return None
    known = [p for p in positions() if None not in p and p[0] and (p[0], p[2]) != (p[1], p[3])]
    if not known:
        return None
    return min((p[0], p[2]) for p in known), max((p[1], p[3]) for p in known)


def _does(node: ast.Lambda) -> list[tuple[str, Any]]:
    made = compile(ast.Expression(node), "", "eval")
    return next(_steps(c) for c in made.co_consts if isinstance(c, CodeType) and c.co_name == "<lambda>")


def _steps(code: CodeType) -> list[tuple[str, Any]]:
    """The instructions of a code object, with names of outer functions and modules made equal, because a lambda by
    itself has no outer function."""
    steps = [(i.opname, _exact(i.argval)) for i in dis.get_instructions(code) if i.opname not in _ENTRY]
    return [("LOAD" if name in ("LOAD_GLOBAL", "LOAD_DEREF") else name, value) for name, value in steps]


def _exact(value: Any) -> Any:
    """A constant that 1, 1.0 and True, or 0.0 and -0.0, are not the same of."""
    return (type(value).__name__, repr(value)) if isinstance(value, int | float | complex | tuple) else value


_ENTRY = ("COPY_FREE_VARS", "RESUME", "PUSH_NULL")


def _end(node: Any) -> tuple[int, int]:
    return (node.end_lineno, node.end_col_offset)


def line_of(file: str, line: int, *, reads: bool = True) -> str:
    """A line of a file, as it was when its kernels were defined, or else, if it `reads` files, as it is now."""
    text = next(iter(_remembered(file)), None)
    lines = ("".join(linecache.getlines(file)) if text is None and reads else text or "").splitlines()
    return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else ""
