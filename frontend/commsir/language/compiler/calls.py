"""Calls: handlers of what kernels know, constants folded by Python, and other functions inlined."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from .. import diagnostics, functions, source
from ..dtypes import DType, as_dtype
from . import analysis, hints, registry
from .expressions import Expressions
from .region_values import RESULT, RETURN
from .scope import Frame, PythonScope
from .values import Const, Function, Method, Scalar, Seq, Tile, Undefined, Value

# Libraries whose functions are not compiled from their source: they are about their own arrays.
_LIBRARIES = ("numpy", "torch", "scipy", "jax", "cupy")
# How many calls are inlined into each other.
_DEEPEST = 24


@dataclass
class Callee:
    """A function to inline: its syntax tree, and the scope of its names."""

    node: ast.FunctionDef | ast.Lambda
    scope: Frame | PythonScope
    file: str
    # Of parameters that need not be given: values, or objects of Python.
    defaults: Mapping[str, Any]

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "lambda")


class Calls(Expressions):
    """The layer that knows calls."""

    def visit_Call(self, node: ast.Call) -> Value:
        callee = self.expression(node.func)
        if isinstance(callee, Const):
            self._refuse_builtin(callee.py)
        if any(k.arg is None for k in node.keywords):
            self.fail("** in a call cannot be compiled", "write the keywords out", node)
        given: list[tuple[int | str, ast.expr]] = [*enumerate(node.args)]
        given += [(str(k.arg), k.value) for k in node.keywords]
        args, keywords = list[Value](), dict[str, Value]()
        for number, (name, argument) in enumerate(given):
            # What is given is what it was before a later argument stores there.
            stores = any(analysis.calls(later) for _, later in given[number + 1 :])
            keeps = self._is_inlined(callee) or stores and not _is_memory(callee, name)
            kept = self.snapshot if keeps else lambda value: value
            if isinstance(name, int):
                args += self.elements([argument], kept)
            else:
                keywords[name] = kept(self.expression(argument))
        return self.call(callee, args, keywords)

    @staticmethod
    def _is_inlined(callee: Value) -> bool:
        function = _python_function(callee.py) if isinstance(callee, Const) else None
        return isinstance(callee, Function) or isinstance(function, FunctionType) and not registry.function(function)

    def call(self, callee: Value, args: list[Value], keywords: dict[str, Value]) -> Value:
        if isinstance(callee, Method):
            signature, handler = registry.METHODS[type(callee.owner), callee.name]
            return handler(self, callee.owner, **self.bind_call(signature, callee.name, args, keywords)) or Const(None)
        if isinstance(callee, Function):
            return self.inline(callee, args, keywords)
        if not isinstance(callee, Const):
            self.fail(f"{callee.describe()} cannot be called")
        return self._call_python(callee.py, args, keywords)

    def _call_python(self, function: Any, args: list[Value], keywords: dict[str, Value]) -> Value:
        if (known := registry.function(function) or registry.function_of_torch(function)) is not None:
            signature, handler = known
            return handler(self, **self.bind_call(signature, _name_of(function), args, keywords)) or Const(None)
        dtype = as_dtype(function) if isinstance(function, DType | type) else None
        if dtype is not None:
            return self._convert_call(dtype, function, args, keywords)
        if isinstance(function, functools.partial):
            named = {k: self.python(v) for k, v in function.keywords.items()} | keywords
            return self._call_python(function.func, [*map(self.python, function.args), *args], named)
        if isinstance(function, MethodType):
            return self._call_python(function.__func__, [self.python(function.__self__), *args], keywords)
        function = _python_function(function)
        if isinstance(function, FunctionType) and (function.__module__ or "").partition(".")[0] not in _LIBRARIES:
            return self.inline(function, args, keywords)
        return self._fold_call(function, args, keywords)

    def _convert_call(self, dtype: DType, function: Any, args: list[Value], keywords: dict[str, Value]) -> Value:
        if len(args) != 1 or keywords:
            self.fail(f"{_name_of(function)}(…) takes one value")
        if function in (int, float) and isinstance(args[0], Const) and isinstance(args[0].py, str):
            return self._fold_call(function, args, keywords)
        n = self.number(args[0], "what is converted")
        if isinstance(n, Const) and function in (float, bool):
            return Const(function(n.py))
        if isinstance(n, Const) and dtype.is_integer:
            n = self.whole(n, int, _name_of(function))
            if function is int:
                return n
        return self.tile(n, n.length, dtype) if isinstance(n, Tile) else self.scalar(n, dtype)

    def _refuse_builtin(self, function: Any) -> None:
        """Rejects a builtin before its arguments are evaluated, because kernels may not support them either."""
        name = _name_of(function)
        if name in hints.BUILTINS and getattr(builtins, name, None) is function:
            self.fail(f"{name} cannot be compiled", hints.BUILTINS[name])

    def _fold_call(self, function: Any, args: list[Value], keywords: dict[str, Value]) -> Value:
        """Calls a Python function of constants at compile time."""
        name = _name_of(function)
        if instead := hints.CHANGING.get(_module_of(function)):
            self.fail(f"'{name}' would be computed once, when the kernel is compiled", instead)
        if isinstance(function, BuiltinFunctionType | type):
            given = [v.py for v in args if isinstance(v, Const)]
            named = {k: v.py for k, v in keywords.items() if isinstance(v, Const)}
            if len(given) == len(args) and len(named) == len(keywords):
                try:
                    return Const(function(*given, **named))
                except Exception as error:
                    self.fail(f"{name}: {str(error) or type(error).__name__}")
        if getattr(builtins, name, None) is function and name in hints.OF_CONSTANTS:
            self.fail(
                f"{name} works only on values that are known when the kernel is compiled", hints.OF_CONSTANTS[name]
            )
        self.fail(
            f"'{name}' is not known to kernels",
            hints.INSTEAD.get(name)
            or hints.INSTEAD.get(name.lower())
            or (diagnostics.did_you_mean(name, registry.names()) if isinstance(function, FunctionType) else "")
            or "functions of your own can be called, and those that docs/PythonKernels.md lists",
        )

    # Arguments.

    def bind_call(
        self, signature: inspect.Signature, name: str, args: list[Value], keywords: dict[str, Value]
    ) -> dict[str, Value]:
        """Binds the arguments of a call to a handler's parameters."""
        bound = self._bind(signature, name, args, keywords)
        bound.apply_defaults()
        result: dict[str, Value] = {}
        for key, value in bound.arguments.items():
            if signature.parameters[key].kind is inspect.Parameter.VAR_POSITIONAL:
                result[key] = Seq(tuple(value))
            else:
                result[key] = value if isinstance(value, Value) else Const(value)
        return result

    def _bind(
        self, signature: inspect.Signature, name: str, args: list[Value], keywords: dict[str, Value]
    ) -> inspect.BoundArguments:
        unknown = [k for k in keywords if k not in signature.parameters]
        if unknown:
            here = hints.KEYWORDS.get(unknown[0])
            renamed = f"it is called '{here}'" if here in signature.parameters else ""
            hint = renamed or diagnostics.did_you_mean(unknown[0], signature.parameters)
            self.fail(f"{name} has no parameter '{unknown[0]}'", hint or f"it is {name}{signature}")
        try:
            return signature.bind(*args, **keywords)
        except TypeError as error:
            self.fail(f"{name}: {error}", f"it is {name}{signature}")

    @staticmethod
    def parameters_of(function: Value) -> inspect.Signature | None:
        """Returns the parameters of a function that is inlined; None for others."""
        if isinstance(function, Function):
            return _signature_of(function.node.args)
        found = _python_function(function.py) if isinstance(function, Const) else None
        if not isinstance(found, FunctionType) or registry.function(found):
            return None
        return functions.plain(inspect.signature(found))

    # Inlining.

    def inline(self, function: FunctionType | Function, args: list[Value], keywords: dict[str, Value]) -> Value:
        """Replaces a call by the body of the function."""
        callee = self._callee(function)
        if len(self.calls) == _DEEPEST:
            self.fail(
                f"functions call each other {_DEEPEST} deep",
                "one that calls itself has to end by what is known when the kernel is compiled; else write a loop",
            )
        variables = self._parameters(callee, args, keywords)
        body = analysis.body_of(callee.node)
        live, own = analysis.Liveness(body), analysis.assigned(body)
        frame = Frame(variables, callee.scope, callee.file, live, own, self.in_region)
        with self._inside(callee, frame):
            self._check_annotations(callee, variables)
            self.block(body)
            result = self._returned(callee, frame)
            if isinstance(callee.node, ast.FunctionDef) and callee.node.returns:
                what = f"'{callee.name}' is annotated to return {{}}, and returns {{}}"
                self._check_annotation(callee.node.returns, result, what)
            return result

    def _check_annotations(self, callee: Callee, given: dict[str, Value]) -> None:
        spec = callee.node.args
        for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if parameter.annotation:
                what = f"the parameter '{parameter.arg}' of '{callee.name}' is annotated {{}}, and gets {{}}"
                self._check_annotation(parameter.annotation, given[parameter.arg], what)

    def _check_annotation(self, node: ast.expr, value: Value, what: str) -> None:
        """Refuses a value of another type than a function's annotation names: annotations convert nothing."""
        dtype = self.annotated(node)
        if isinstance(dtype, DType) and isinstance(value, Scalar | Tile) and value.dtype is not dtype:
            self.place = self.at(node)
            self.fail(
                what.format(dtype.name, value.describe()),
                f"convert the value, {dtype.name}(…) or .astype({dtype.name}), or leave the annotation out",
            )

    def annotated(self, node: ast.expr) -> Any:
        """The name of an annotation. Annotations of variables are never evaluated, so that it may be undefined."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Attribute):
            return getattr(self.annotated(node.value), node.attr, None)
        found = self.frame.find(node.id) if isinstance(node, ast.Name) else None
        return found.py if isinstance(found, Const) else found

    def _callee(self, function: FunctionType | Function) -> Callee:
        if isinstance(function, Function):
            return Callee(function.node, function.frame, function.frame.file, function.defaults)
        found = source.find(function)
        code, values = function.__code__, function.__defaults__ or ()
        names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
        defaults = {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}
        return Callee(found.node, PythonScope(function), found.file, defaults)

    @contextmanager
    def _inside(self, callee: Callee, frame: Frame) -> Iterator[None]:
        saved, place = self.frame, self.place
        self.calls.append((callee.name, place))
        self.frame = frame
        try:
            yield
        finally:
            self.calls.pop()
            self.frame, self.place = saved, place

    def _returned(self, callee: Callee, frame: Frame) -> Value:
        result = frame.variables.get(RESULT, Undefined(""))
        if isinstance(result, Undefined):
            if result.why:
                self.fail(result.why)
            return Const(None)
        if frame.variables.get(RETURN) != Const(True) and result != Const(None):
            self.place = self.at(callee.node)
            self.fail(f"'{callee.name}' does not return a value on every path", "add a return at its end")
        return result

    def _parameters(self, callee: Callee, args: list[Value], keywords: dict[str, Value]) -> dict[str, Value]:
        signature = _signature_of(callee.node.args)
        bound = self._bind(signature, callee.name, args, keywords)
        result: dict[str, Value] = {}
        for p in signature.parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                result[p.name] = Seq(tuple(bound.arguments.get(p.name, ())))
            elif p.name in bound.arguments:
                result[p.name] = self.snapshot(bound.arguments[p.name])
            else:
                result[p.name] = self.python(callee.defaults[p.name])
        return result


def _is_memory(callee: Value, parameter: int | str) -> bool:
    """Whether a parameter, by number or name, is memory rather than its contents."""
    known = registry.function(callee.py) if isinstance(callee, Const) else None
    if not isinstance(callee, Const) or known is None:
        return False
    names = list(known[0].parameters)
    name = parameter if isinstance(parameter, str) else names[parameter] if parameter < len(names) else ""
    return name in registry.MEMORY_PARAMETERS[callee.py]


@dataclass
class _Default:
    """Stands for a default value in signatures, which errors show."""

    node: ast.expr

    def __repr__(self) -> str:
        return ast.unparse(self.node)


def _signature_of(spec: ast.arguments) -> inspect.Signature:
    kind = inspect.Parameter
    plain = [(a, kind.POSITIONAL_ONLY) for a in spec.posonlyargs] + [(a, kind.POSITIONAL_OR_KEYWORD) for a in spec.args]
    first = len(plain) - len(spec.defaults)
    parameters = [
        kind(a.arg, how, default=_Default(spec.defaults[i - first]) if i >= first else kind.empty)
        for i, (a, how) in enumerate(plain)
    ]
    if spec.vararg:
        parameters.append(kind(spec.vararg.arg, kind.VAR_POSITIONAL))
    for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        parameters.append(kind(a.arg, kind.KEYWORD_ONLY, default=_Default(default) if default else kind.empty))
    return inspect.Signature(parameters)


def _python_function(function: Any) -> Any:
    """The Python function behind a kernel or a `functools.cache` wrapper."""
    if isinstance(function, functools._lru_cache_wrapper):
        return function.__wrapped__
    return getattr(function, "__commsir_function__", function)


def _module_of(function: Any) -> str:
    """Returns the module that defines a function, or the object of a method. For a package, returns its first name."""
    owner = type(getattr(function, "__self__", None))
    module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or ""
    return str(module).partition(".")[0]


def _name_of(function: Any) -> str:
    return str(getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__))
