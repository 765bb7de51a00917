"""From the syntax tree of a Python function to the text of a comms.kernel."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, NoReturn

from . import control, diagnostics, source
from .arithmetic import SYMBOLS
from .dtypes import BOOL, F32, I64, INDEX, DType, as_dtype
from .emit import Emitter, Line, Place, quote
from .flow import RESULT, RETURN, Flow, Frame, flatten, is_carried
from .parameters import Dim, Parameter
from .values import (
    Cell,
    Cells,
    Channel,
    Const,
    Function,
    Memory,
    Method,
    Peers,
    Range,
    Scalar,
    Seq,
    Slot,
    Team,
    Tile,
    Token,
    Undefined,
    Value,
    View,
    Window,
)

Handler = Callable[..., Value | None]
# Functions of the language and of Python's libraries, and methods, by what implements them; lower.py fills these.
FUNCTIONS: dict[Any, tuple[inspect.Signature, Handler]] = {}
METHODS: dict[tuple[type[Value], str], tuple[inspect.Signature, Handler]] = {}
ATTRIBUTES: dict[tuple[type[Value], str], Callable[[Compiler, Any], Value]] = {}

_INSTEAD: dict[type[ast.AST], tuple[str, str]] = {
    ast.ListComp: ("a list comprehension", "write a for loop, or a tuple (a, b, c) for what is known"),
    ast.SetComp: ("a set comprehension", "write a for loop"),
    ast.DictComp: ("a dict comprehension", "write a for loop"),
    ast.GeneratorExp: ("a generator expression", "write a for loop"),
    ast.Dict: ("a dict", "build it outside the kernel: kernels see constants of the functions and modules around them"),
    ast.Set: ("a set", "write a tuple"),
    ast.Try: ("try", "kernels raise nothing: test for the case with if"),
    ast.Raise: ("raise", "write assert condition, which ends the run with an error"),
    ast.Global: ("global", "pass an array or a scalar as an argument"),
    ast.Nonlocal: ("nonlocal", "return the value from the function"),
    ast.ClassDef: ("a class", "define it outside the kernel"),
    ast.Import: ("import", "import outside the kernel"),
    ast.ImportFrom: ("import", "import outside the kernel"),
    ast.Delete: ("del", "leave it out: values need no freeing"),
    ast.Await: ("await", "wait for a signal: wait_signal(s[i], ge=value)"),
    ast.Yield: ("yield", "return the value"),
    ast.YieldFrom: ("yield", "return the value"),
    ast.JoinedStr: ("an f-string", "text belongs outside the kernel"),
    ast.AsyncFor: ("async for", "write for"),
    ast.AsyncWith: ("async with", "write with role(…)"),
    ast.AsyncFunctionDef: ("async def", "write def"),
    ast.Match: ("match", "write if and elif"),
}
_BUILTINS_INSTEAD = {
    "print": "store the value in an array, or look at the run with report.trace()",
    "list": "write a tuple",
    "dict": "build it outside the kernel",
    "set": "write a tuple",
    "str": "kernels know no text",
    "map": "write a for loop",
    "filter": "write a for loop",
    "open": "read the file outside and pass an array",
    "sorted": "kernels do not sort; do it outside",
    "sum": "write t.sum() of a tile, or a for loop",
}
# Libraries whose functions are not compiled from their source: they are about their own arrays.
_LIBRARIES = ("numpy", "torch", "scipy", "jax", "cupy")
# Attributes of arrays, and functions, elsewhere, by what tiles have for them.
_ATTRIBUTES_INSTEAD = {
    "to": "write t.astype(bf16), or bf16(t)",
    "type": "write t.astype(bf16), or bf16(t)",
    "float": "write t.astype(f32), or f32(t)",
    "half": "write t.astype(f16), or f16(t)",
    "bfloat16": "write t.astype(bf16), or bf16(t)",
    "int": "write t.astype(i32), or i32(t)",
    "view": "write bitcast(t, i32)",
    "copy": "leave it out: a tile is a value, which no store changes",
    "clone": "leave it out: a tile is a value, which no store changes",
    "detach": "leave it out: nothing is recorded here",
    "reshape": "a tile has one dimension; subscripts of the array choose what is loaded",
    "flatten": "a tile has one dimension",
    "T": "a tile has one dimension; subscripts of the array choose what is loaded",
    "softmax": "write e = exp(t - t.max()), then e / e.sum()",
    "std": "write sqrt(((t - t.mean()) * (t - t.mean())).mean())",
    "var": "write ((t - t.mean()) * (t - t.mean())).mean()",
    "norm": "write sqrt((t * t).sum())",
    "relu": "write maximum(t, 0.0)",
    "sigmoid": "write 1.0 / (1.0 + exp(-t))",
    "argmax": "write where(t == t.max(), iota(len(t)), len(t)).min()",
    "argmin": "write where(t == t.min(), iota(len(t)), len(t)).min()",
    "dot": "write (a * b).sum()",
}


class Compiler(Flow):
    """Translates one kernel. Its methods are what handlers in lower.py work with."""

    def __init__(self, ranks: int | None = None) -> None:
        self.emitter = Emitter()
        self.ranks = ranks
        self.place: Place = ("", 0, 0)
        self.teams: dict[str, Team] = {}
        self.team_numbers: dict[tuple[str, str], Value] = {}
        self.locals: dict[str, Memory] = {}
        self.channels = 0
        self.in_region = False
        self.calls: list[tuple[Any, Place]] = []
        self.parameters: Mapping[str, Parameter] = {}
        self.arguments: dict[str, Value] = {}

    # Errors and places.

    def at(self, node: ast.AST) -> Place:
        return (self.frame.file, getattr(node, "lineno", self.place[1]), getattr(node, "col_offset", 0) + 1)

    def fail(self, message: str, hint: str = "", node: ast.AST | None = None) -> NoReturn:
        notes = [(f"called here, as '{_name_of(f)}'", place) for f, place in reversed(self.calls)]
        raise diagnostics.compile_error(message, self.at(node) if node else self.place, hint, notes)

    # The kernel.

    def kernel(
        self,
        found: source.Source,
        parameters: Mapping[str, Parameter],
        name: str,
        attributes: Mapping[str, int],
        dims: Mapping[str, int],
        locations: bool,
    ) -> str:
        node = found.node
        assert isinstance(node, ast.FunctionDef)
        variables: dict[str, Value] = {}
        declared = []
        for parameter, spec in parameters.items():
            value = argument(parameter, spec, dims)
            variables[parameter] = value
            type_ = value.type  # type: ignore[attr-defined]
            declared.append(f"%{parameter}: {type_}")
        self.parameters, self.arguments = parameters, dict(variables)
        body = control.straighten(_without_docstring(node.body))
        self.frame = Frame(name, variables, _Names(found.function), found.file, control.Liveness(body))
        self.place = self.at(node)
        start = self.place
        self.calls = []
        self._run(body)
        extra = ", ".join(f"{k} = {v}" for k, v in attributes.items())
        header = f"comms.kernel @{name}({', '.join(declared)})" + (f" attributes {{{extra}}}" if extra else "")
        return self.emitter.render(header, start, set(parameters), locations)

    def _run(self, body: Sequence[ast.stmt]) -> None:
        self.block(body)
        value = self.frame.variables.get(RESULT)
        if value is not None and not isinstance(value, Undefined) and value != Const(None):
            self.fail(
                f"a kernel returns nothing, and this one returns {value.describe()}", "store results: y[:] = tile"
            )

    # Statements.

    def block(self, body: Sequence[ast.stmt]) -> None:
        for i, statement in enumerate(body):
            self.place = self.at(statement)
            self.statement(statement)
            rest = body[i + 1 :]
            left = self.has_left()
            if left is None and rest:
                self.unless_left(partial(self.block, rest), self.frame.live.after[id(body[-1])])
            if left is not False:
                return

    def statement(self, s: ast.stmt) -> None:
        method = getattr(self, "_" + type(s).__name__, None)
        if method is None:
            what, instead = _INSTEAD.get(type(s), (type(s).__name__, "see docs/PythonKernels.md for what kernels hold"))
            self.fail(f"{what} cannot be compiled", instead, s)
        method(s)

    def _Pass(self, s: ast.Pass) -> None:
        pass

    def _Expr(self, s: ast.Expr) -> None:
        if not (isinstance(s.value, ast.Constant) and isinstance(s.value.value, str | type(...))):
            value = self.expression(s.value)
            if isinstance(s.value, ast.Compare | ast.BinOp) and not isinstance(value, Token):
                self.fail("this value goes nowhere", "assign it, or leave the line out", s)

    def _Assign(self, s: ast.Assign) -> None:
        value = self.expression(s.value)
        for target in s.targets:
            self.place = self.at(s)
            self.assign(target, value)

    def _AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is None:
            return
        value = self.expression(s.value)
        wanted = self.expression(s.annotation)
        dtype = as_dtype(wanted.py) if isinstance(wanted, Const) else None
        if dtype is not None:
            n = self.number(value)
            value = self.tile(n, n.length, dtype) if isinstance(n, Tile) else self.scalar(n, dtype)
        self.assign(s.target, value)

    def _AugAssign(self, s: ast.AugAssign) -> None:
        if isinstance(s.target, ast.Name):
            old = self.expression(ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target))
        elif isinstance(s.target, ast.Subscript):
            base, key = self.expression(s.target.value), s.target.slice
            place = self._subscript(base, key, s.target)
            if not isinstance(place, View):
                self.fail("only elements of memory can be assigned to", node=s)
            self.place = self.at(s)
            self.store(place, self.binary(s.op, self.load_view(place), self.expression(s.value)))
            return
        else:
            self.fail("only variables and elements of memory can be assigned to", node=s)
        value = self.expression(s.value)
        self.place = self.at(s)
        self.assign(s.target, self.binary(s.op, old, value))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, View) and not (isinstance(value.count, Scalar) or self.in_region):
                value = self.load_view(value)
            if isinstance(value, Scalar | Tile | Token | Team | Memory | Channel):
                self.emitter.hint(value.name, target.id)
            self.frame.variables[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value)
        elif isinstance(target, ast.Subscript):
            place = self._subscript(self.expression(target.value), target.slice, target)
            if not isinstance(place, View):
                self.fail(f"{place.describe()} cannot be assigned to", node=target)
            self.place = self.at(target)
            self.store(place, value)
        else:
            self.fail("attributes cannot be assigned to", "use a variable", target)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        if isinstance(value, Const) and isinstance(value.py, tuple | list):
            value = Seq(tuple(map(Const, value.py)))
        if not isinstance(value, Seq):
            self.fail(f"{value.describe()} cannot be unpacked", node=target)
        if any(isinstance(element, ast.Starred) for element in target.elts):
            self.fail("a name with a star cannot be compiled", "give each value a name of its own", target)
        if len(value.items) != len(target.elts):
            self.fail(f"{len(value.items)} values for {len(target.elts)} names", node=target)
        for element, item in zip(target.elts, value.items, strict=True):
            self.assign(element, item)

    def _If(self, s: ast.If) -> None:
        condition = self.expression(s.test)
        self.place = self.at(s)
        live = self.frame.live.after[id(s)]
        self._region_guard(condition, "if", "choose with where(condition, a, b)")
        self.branch(condition, lambda: self.block(s.body), lambda: self.block(s.orelse), live)

    def _region_guard(self, condition: Value, what: str, instead: str) -> None:
        if self.in_region and not isinstance(self.condition(condition), Const):
            self.fail(f"no {what} that depends on data in the function of a collective", instead)

    def _For(self, s: ast.For) -> None:
        if self.in_region and not isinstance(self.expression(s.iter), Seq):
            self.fail("no loops in the function of a collective", "work on the whole tile, or loop over a tuple")
        self.for_loop(s)

    def _While(self, s: ast.While) -> None:
        if self.in_region:
            self.fail("no loops in the function of a collective", "work on the whole tile")
        self.while_loop(s)

    def _Break(self, s: ast.Break) -> None:
        self.frame.variables[self.frame.loops[-1]] = Const(True)

    def _Continue(self, s: ast.Continue) -> None:
        from .flow import CONTINUE

        self.frame.variables[CONTINUE] = Const(True)

    def _Return(self, s: ast.Return) -> None:
        value = self.expression(s.value) if s.value else Const(None)
        self.frame.variables[RESULT] = self._materialise(value)
        self.frame.variables[RETURN] = Const(True)

    def _materialise(self, value: Value) -> Value:
        if isinstance(value, Seq):
            return Seq(tuple(map(self._materialise, value.items)))
        return self.load_view(value) if isinstance(value, View) and not isinstance(value.count, Scalar) else value

    def _FunctionDef(self, s: ast.FunctionDef) -> None:
        self.frame.variables[s.name] = Function(s, self.frame, s.name)

    def _Assert(self, s: ast.Assert) -> None:
        what = s.msg.value if isinstance(s.msg, ast.Constant) else None
        text = what if isinstance(what, str) else f"assert {ast.unparse(s.test)}"
        if self._assert_range(s.test, text):
            return
        condition = self.condition(self.expression(s.test))
        self.place = self.at(s)
        if isinstance(condition, Const):
            if not condition.py:
                self.fail(f"this does not hold: {text}")
            return
        zero = self.constant(0, INDEX)
        off = self.select(condition, zero, self.constant(1, INDEX))
        self._check(text, off, zero, zero)

    def _assert_range(self, test: ast.expr, text: str) -> bool:
        """`0 <= i < n` is a check of bounds, whose report names the numbers."""
        if not (isinstance(test, ast.Compare) and len(test.ops) == 2 and isinstance(test.left, ast.Constant)):
            return False
        if test.left.value != 0 or not isinstance(test.ops[0], ast.LtE) or not isinstance(test.ops[1], ast.Lt):
            return False
        value, limit = (self.number(self.expression(c)) for c in test.comparators)
        if (
            isinstance(value, Const)
            and isinstance(limit, Const)
            or any(not isinstance(v, Const) and (isinstance(v, Tile) or not v.dtype.is_integer) for v in (value, limit))
        ):
            return False
        self.place = self.at(test)
        self._check(text, self.index(value, "the value"), self.constant(1, INDEX), self.index(limit, "the limit"))
        return True

    def _check(self, text: str, offset: Value, count: Scalar, limit: Scalar) -> None:
        self.emitter.emit(f"comms.check_bounds {quote(text)} {offset.name}, {count.name} in {limit.name}", self.place)  # type: ignore[attr-defined]

    def _With(self, s: ast.With) -> None:
        call = s.items[0].context_expr
        role = self.expression(call.func) if len(s.items) == 1 and isinstance(call, ast.Call) else None
        if not (isinstance(role, Const) and getattr(role.py, "__name__", "") == "role" and role.py in FUNCTIONS):
            self.fail("with cannot be compiled", 'the one form is: with role("name", first, last): …', s)
        assert isinstance(call, ast.Call)
        parts = self._bind_call(FUNCTIONS[role.py][0], "role", call)
        name, first, last = (v.py if isinstance(v, Const) else None for v in parts.values())
        if not isinstance(name, str) or not isinstance(first, int) or not isinstance(last, int):
            self.fail(
                "a role has a name and two numbers of blocks that are known", 'as in: with role("send", 0, 2):', s
            )
        if s.items[0].optional_vars:
            self.fail("a role has no value", "leave 'as …' out", s)
        before, lines = dict(self.frame.variables), list[Line]()
        place = self.at(s)
        with self.emitter.into(lines, 1):
            self.block(s.body)
        if self.frame.variables.get(RETURN) not in (None, Const(False)):
            self.fail("a role cannot return: other blocks go on behind it", "put the rest under an if", s)
        for name_ in control.assigned(s.body):
            before[name_] = Undefined(
                f"'{name_}' gets its value in the role at line {s.lineno}, which other blocks do not run"
            )
        self.frame.variables = before
        self.emitter.emit(f"comms.role {quote(name)} blocks {first} to {last} {{", None)
        self.emitter.splice(lines)
        self.emitter.emit("}", place)

    # Expressions.

    def expression(self, node: ast.expr) -> Value:
        outer = self.place
        self.place = self.at(node)
        method = getattr(self, "_" + type(node).__name__, None)
        if method is None or isinstance(node, ast.stmt):
            what, instead = _INSTEAD.get(
                type(node), (type(node).__name__, "see docs/PythonKernels.md for what kernels hold")
            )
            self.fail(f"{what} cannot be compiled", instead, node)
        value: Value = method(node)
        self.place = outer
        return value

    def _Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, complex | bytes):
            self.fail(f"{type(node.value).__name__} cannot be compiled", "kernels know bool, int and float", node)
        return Const(node.value)

    def _Name(self, node: ast.Name) -> Value:
        frame: Any = self.frame
        while isinstance(frame, Frame):
            if node.id in frame.variables:
                value = frame.variables[node.id]
                if isinstance(value, Undefined):
                    self.fail(value.why or f"'{node.id}' has no value here", node=node)
                return value
            frame = frame.outer
        found = frame.find(node.id)
        if found is not _MISSING:
            return self._python(found, node)
        known = [*self.frame.variables, *FUNCTION_NAMES]
        self.fail(f"'{node.id}' has no value", diagnostics.did_you_mean(node.id, known), node)

    def _python(self, found: Any, node: ast.AST) -> Value:
        """A Python object that a kernel refers to, as a constant."""
        if isinstance(found, Value):
            return found
        if isinstance(found, Dim):
            return self._dimension(found, node)
        if type(found).__module__ == "numpy" and hasattr(found, "item") and getattr(found, "shape", None) == ():
            return Const(found.item())
        if hasattr(found, "__dlpack__") or type(found).__name__ == "ndarray":
            self.fail("an array from outside cannot be used in a kernel", "pass it as an argument", node)
        return Const(found)

    def _dimension(self, name: Dim, node: ast.AST) -> Value:
        """The number that a named dimension has: of the first parameter with it."""
        for parameter, spec in self.parameters.items():
            if name in spec.shape and isinstance(base := self.arguments[parameter], Memory | Window):
                return self.extent(base, spec.shape.index(name))
        self.fail(f"the dimension '{name}' is not one of this kernel's parameters", node=node)

    def _Tuple(self, node: ast.Tuple) -> Value:
        items: list[Value] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                items.extend(self._items(self.expression(element.value), element))
            else:
                items.append(self._materialise(self.expression(element)))
        return Seq(tuple(items))

    def _List(self, node: ast.List) -> Value:
        return self._Tuple(ast.copy_location(ast.Tuple(node.elts, ast.Load()), node))

    def _items(self, value: Value, node: ast.AST) -> tuple[Value, ...]:
        if isinstance(value, Seq):
            return value.items
        if isinstance(value, Const) and isinstance(value.py, tuple | list | range):
            return tuple(map(Const, value.py))
        if isinstance(value, Range):
            bounds = [v.py for v in (value.start, value.stop, value.step) if isinstance(v, Const)]
            if len(bounds) == 3 and all(isinstance(b, int) for b in bounds):
                return tuple(map(Const, range(*bounds)))
        loops = isinstance(value, Range | Peers)
        self.fail(
            f"{value.describe()} has no elements that are known",
            "loop over it alone, and count in a variable: i = 0 before the loop, i += 1 in it"
            if loops
            else "write a tuple",
            node if hasattr(node, "lineno") else None,
        )

    def _NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.expression(node.value)
        self.assign(node.target, value)
        return self.frame.variables[node.target.id]

    def _BinOp(self, node: ast.BinOp) -> Value:
        a, b = self.expression(node.left), self.expression(node.right)
        self.place = self.at(node)
        return self.binary(node.op, a, b)

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(value, View):
                value = self.load_view(value)
            if isinstance(value, Tile) and value.length != 1:
                self.fail("'not' of a tile", "write ~mask", node)
            return self.logical_not(value)
        if isinstance(node.op, ast.USub):
            return self.negate(value)
        return self.invert(value) if isinstance(node.op, ast.Invert) else self.number(value)

    def _Compare(self, node: ast.Compare) -> Value:
        left = self._computed(self.expression(node.left))
        result: Value | None = None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._computed(self.expression(comparator))
            self.place = self.at(node)
            part = self._membership(op, left, right) or self.compare(op, left, right)
            if result is None:
                result = part
            elif isinstance(result, Const) or isinstance(part, Const):
                other, known = (part, result) if isinstance(result, Const) else (result, part)
                result = other if known == Const(True) else Const(False)
            else:
                result = self.binary(ast.BitAnd(), result, part)
            left = right
        assert result is not None
        return result

    def _computed(self, value: Value) -> Value:
        return self.load_view(value) if isinstance(value, View) else value

    def _membership(self, op: ast.cmpop, left: Value, right: Value) -> Value | None:
        if isinstance(op, ast.Is | ast.IsNot):
            if not (isinstance(left, Const) and isinstance(right, Const)):
                same = left is right or left == right
                if right == Const(None):
                    same = False
                return Const(same if isinstance(op, ast.Is) else not same)
            return Const((left.py is right.py) == isinstance(op, ast.Is))
        if isinstance(op, ast.In | ast.NotIn):
            if (
                isinstance(left, Const)
                and isinstance(right, Const)
                and isinstance(right.py, tuple | list | dict | set | str | range)
            ):
                return Const((left.py in right.py) == isinstance(op, ast.In))
            items = self._items(right, ast.Pass())
            found: Value = Const(False)
            for item in items:
                equal = self.compare(ast.Eq(), left, item)
                if isinstance(equal, Const) or isinstance(found, Const):
                    known, other = (equal, found) if isinstance(equal, Const) else (found, equal)
                    found = Const(True) if known == Const(True) else other
                else:
                    found = self.binary(ast.BitOr(), found, equal)
            return found if isinstance(op, ast.In) else self.logical_not(found)
        return None

    def _BoolOp(self, node: ast.BoolOp) -> Value:
        conjunction = isinstance(node.op, ast.And)
        result = self._operand(node.values[0])
        for operand in node.values[1:]:
            if isinstance(result, Const):
                if bool(result.py) != conjunction:
                    return result
                result = self._operand(operand)
                continue
            self.place = self.at(node)
            result = self.short_circuit(conjunction, result, lambda o=operand: self._operand(o))  # type: ignore[misc]
        return result

    def _operand(self, node: ast.expr) -> Value:
        value = self.expression(node)
        if isinstance(value, Tile) and value.length != 1:
            self.fail("'and' and 'or' of tiles", "write a & b, a | b, with parentheses around comparisons", node)
        return value if isinstance(value, Const) else self.condition(value)

    def short_circuit(self, conjunction: bool, left: Value, right: Callable[[], Value]) -> Value:
        """The right side is computed only where the left one leaves it open; at once where it cannot do harm."""
        lines: list[Line] = []
        with self.emitter.into(lines, 1):
            value = right()
            if isinstance(value, Const):
                value = Const(bool(value.py))
        if isinstance(value, Const):
            return left if value.py == conjunction else value
        if all(_is_harmless(line.text) for line in lines):
            for line in lines:
                line.depth -= 1
            self.emitter.splice(lines)
            return self.binary(ast.BitAnd() if conjunction else ast.BitOr(), left, value)
        if self.in_region:
            self.fail("'and' and 'or' of what is not computed yet", "compute both sides first")
        name, known = self.emitter.fresh(), self.constant(not conjunction, BOOL).name
        other: list[Line] = []
        for side, result in ((lines, value), (other, None)):
            with self.emitter.into(side, 1):
                self.emitter.emit(f"scf.yield {result.name if isinstance(result, Scalar) else known} : i1", self.place)
        first, second = (lines, other) if conjunction else (other, lines)
        assert isinstance(left, Scalar)
        self.emitter.emit(f"{name} = scf.if {left.name} -> (i1) {{", None)
        self.emitter.splice(first)
        self.emitter.emit("} else {", None)
        self.emitter.splice(second)
        self.emitter.emit("}", self.place)
        return Scalar(name, BOOL)

    def _IfExp(self, node: ast.IfExp) -> Value:
        condition = self.condition(self.expression(node.test))
        if isinstance(condition, Const):
            return self.expression(node.body if condition.py else node.orelse)
        self._region_guard(condition, "conditional expression", "choose with where(condition, a, b)")
        self.place = self.at(node)
        saved = self.frame.variables.get("$choice")

        def choose(branch: ast.expr) -> Callable[[], None]:
            def run() -> None:
                self.frame.variables["$choice"] = self._materialise(self.expression(branch))

            return run

        self.branch(condition, choose(node.body), choose(node.orelse), set(self.frame.variables))
        value = self.frame.variables.pop("$choice")
        if saved is not None:
            self.frame.variables["$choice"] = saved
        if isinstance(value, Undefined):
            self.fail(value.why.replace("'$choice'", "the value").replace(" by the if", ""), node=node)
        return value

    def _Lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.frame, "lambda")

    def _Attribute(self, node: ast.Attribute) -> Value:
        value = self.expression(node.value)
        self.place = self.at(node)
        if isinstance(value, View):
            value = self.load_view(value)
        if isinstance(value, Const):
            return self._python_attribute(value, node)
        kinds = [k for k in type(value).__mro__ if issubclass(k, Value)]
        for kind in kinds:
            if (kind, node.attr) in ATTRIBUTES:
                return ATTRIBUTES[kind, node.attr](self, value)
            if (kind, node.attr) in METHODS:
                return Method(value, node.attr)
        known = [name for kind, name in [*ATTRIBUTES, *METHODS] if kind in kinds]
        instead = _ATTRIBUTES_INSTEAD.get(node.attr, "") if isinstance(value, Tile | Scalar | Memory | Window) else ""
        hint = (
            instead
            or diagnostics.did_you_mean(node.attr, known)
            or (f"it has {', '.join(sorted(known))}" if known else "")
        )
        if isinstance(value, Seq):
            hint = "tuples and lists do not change: sum up in a variable, or store in an array"
        self.fail(f"{value.describe()} has no attribute '{node.attr}'", hint, node)

    def _python_attribute(self, value: Const, node: ast.Attribute) -> Value:
        if isinstance(value.py, str | list | dict | set):
            self.fail(f"{value.describe()} has no methods in a kernel", "compute it outside the kernel", node)
        if not hasattr(value.py, node.attr):
            name = getattr(value.py, "__name__", value.describe())
            self.fail(
                f"'{name}' has no attribute '{node.attr}'", diagnostics.did_you_mean(node.attr, dir(value.py)), node
            )
        return self._python(getattr(value.py, node.attr), node)

    # Subscripts.

    def _Subscript(self, node: ast.Subscript) -> Value:
        base = self.expression(node.value)
        return self._subscript(base, node.slice, node)

    def _subscript(self, base: Value, key: ast.expr, node: ast.Subscript) -> Value:
        self.place = self.at(node)
        if isinstance(base, Memory | Window):
            return self._view(base, key)
        if isinstance(base, View):
            base = self.load_view(base)
        if isinstance(base, Seq) or isinstance(base, Const) and hasattr(base.py, "__getitem__"):
            return self._static_item(base, key)
        index = self.expression(key) if not isinstance(key, ast.Slice | ast.Tuple) else None
        if isinstance(base, Cells) and index is not None:
            self._known_cell(base, index)
            return Cell(base, self.index(index, f"the cell of '{base.label}'"))
        if isinstance(base, Channel) and index is not None:
            return Slot(base, self.index(index, "the slot"))
        if isinstance(base, Tile):
            if base.length == 1 and index == Const(0):
                return self.scalar(base)
            self.fail(
                "a tile has no subscripts", "load a part of the array, or reduce the tile: t.sum(), t.max()", node
            )
        self.fail(f"{base.describe()} has no subscripts", node=node)

    def _known_cell(self, cells: Cells, index: Value) -> None:
        if isinstance(index, Const) and isinstance(index.py, int) and not 0 <= index.py < cells.count:
            self.fail(
                f"cell {index.py} of {cells.describe()}, which has {cells.count}",
                f"annotate it as {cells.kind.capitalize()}[{index.py + 1}]",
            )

    def _static_item(self, base: Value, key: ast.expr) -> Value:
        if isinstance(key, ast.Slice):
            parts = [self.expression(p) if p else Const(None) for p in (key.lower, key.upper, key.step)]
            if not all(isinstance(p, Const) for p in parts):
                self.fail("a slice of a tuple needs numbers that are known", node=key)
            items = self._items(base, key)
            return Seq(items[slice(*(p.py for p in parts if isinstance(p, Const)))])
        index = self.expression(key)
        if not isinstance(index, Const):
            self.fail(
                "which element it is has to be known when the kernel is compiled",
                "put the values in an array and pass it",
                key,
            )
        try:
            if isinstance(base, Seq):
                item: Value = base.items[index.py]
                return item
            assert isinstance(base, Const)
            return self._python(base.py[index.py], key)
        except (LookupError, TypeError) as error:
            self.fail(f"no element {index.py!r}: {error}", node=key)

    def _view(self, base: Memory | Window, key: ast.expr) -> View:
        keys = list(key.elts) if isinstance(key, ast.Tuple) else [key]
        rank = len(base.shape)
        if len(keys) > rank:
            self.fail(
                f"{len(keys)} subscripts for {base.describe()}, which has {rank} dimension{'s' * (rank != 1)}", node=key
            )
        if len(keys) == rank and not any(isinstance(k, ast.Slice) for k in keys):
            indices = tuple(self._one(base, axis, k) for axis, k in enumerate(keys))
            return View(base, Const(0), Const(-1), indices)
        if any(isinstance(k, ast.Slice) for k in keys[:-1]):
            self.fail("only the last subscript may be a slice: a tile is contiguous", "load row by row", key)
        last = keys[-1]
        if not isinstance(last, ast.Slice):
            indices = tuple(self._one(base, axis, k) for axis, k in enumerate(keys))
            return View(base, self._offset(base, indices), self.stride(base, len(keys) - 1))
        indices = tuple(self._one(base, axis, k) for axis, k in enumerate(keys[:-1]))
        start, count = self._slice(base, len(keys) - 1, last)
        count = self.binary(ast.Mult(), count, self.stride(base, len(keys) - 1))
        return View(base, self._offset(base, (*indices, start)), count)

    def _offset(self, base: Memory | Window, indices: Sequence[Value]) -> Value:
        """The number of elements before the one that the subscripts name."""
        offset: Value = Const(0)
        for axis, index in enumerate(indices):
            offset = self.binary(ast.Add(), offset, self.binary(ast.Mult(), index, self.stride(base, axis)))
        return offset

    def _one(self, base: Memory | Window, axis: int, key: ast.expr) -> Value:
        """A single subscript; a negative number counts from the end."""
        index = self.number(self.expression(key), "a subscript")
        if isinstance(index, Tile):
            if index.length != 1:
                self.fail(
                    f"a subscript is {index.describe()}",
                    "a subscript names one place; choose elements with where(condition, a, b)",
                    key,
                )
            index = self.scalar(index)
        if not isinstance(index, Const):
            return self.index(index, "a subscript")
        if not isinstance(index.py, int):
            self.fail(f"a subscript is {index.describe()}, not an integer", "convert it: int(…)", key)
        size = self.extent(base, axis)
        if isinstance(size, Const) and not -size.py <= index.py < size.py:
            self.fail(f"{index.py} is out of bounds: {base.describe()} has {size.py} along dimension {axis}", node=key)
        return self.binary(ast.Add(), size, index) if index.py < 0 else index

    def _slice(self, base: Memory | Window, axis: int, key: ast.Slice) -> tuple[Value, Value]:
        """Start and count. The count is known for constants and for `i:i + n`."""
        if key.step is not None:
            self.fail("a slice has no step: a tile is contiguous", node=key)
        start = self.expression(key.lower) if key.lower else Const(0)
        size = self.extent(base, axis)
        if key.upper is None:
            stop: Value = size
        elif (count := self._distance(key)) is not None:
            return start, self._known_slice(base, axis, start, count, size, key)
        else:
            stop = self.expression(key.upper)
        start, stop = self._from_end(start, size), self._from_end(stop, size)
        count_ = self.binary(ast.Sub(), stop, start)
        if isinstance(count_, Const):
            self._known_slice(base, axis, start, count_, size, key)
        elif isinstance(count_, Scalar):
            count_ = Scalar(count_.name, count_.dtype, True)
        return start, count_

    def _known_slice(
        self, base: Memory | Window, axis: int, start: Value, count: Const, size: Value, key: ast.AST
    ) -> Const:
        if not isinstance(count.py, int) or count.py <= 0:
            self.fail(f"a slice of {count.py} elements", "a slice has at least one element", key)
        end = start.py + count.py if isinstance(start, Const) else count.py
        if isinstance(size, Const) and end > size.py:
            self.fail(
                f"a slice that ends at {end} of {base.describe()}, which has {size.py} along dimension {axis}", node=key
            )
        return count

    def _from_end(self, value: Value, size: Value) -> Value:
        negative = isinstance(value, Const) and isinstance(value.py, int) and value.py < 0
        return self.binary(ast.Add(), size, value) if negative else value

    def _distance(self, key: ast.Slice) -> Const | None:
        """n of `i:i + n`, `i * n:(i + 1) * n` and `i * n:i * n + n`, where it is a constant."""
        lower, upper = key.lower, key.upper
        if lower is None or upper is None or not isinstance(upper, ast.BinOp):
            return None
        if isinstance(upper.op, ast.Add):
            for start, more in ((upper.left, upper.right), (upper.right, upper.left)):
                if ast.dump(start) == ast.dump(lower):
                    return self._if_constant(more)
        if isinstance(upper.op, ast.Mult) and isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Mult):
            plus = upper.left
            same = ast.dump(lower.right) == ast.dump(upper.right)
            if (
                same
                and isinstance(plus, ast.BinOp)
                and isinstance(plus.op, ast.Add)
                and ast.dump(plus.left) == ast.dump(lower.left)
            ):
                one = self._if_constant(plus.right)
                return self._if_constant(upper.right) if one == Const(1) else None
        return None

    def _if_constant(self, node: ast.expr) -> Const | None:
        lines: list[Line] = []
        with self.emitter.into(lines):
            value = self.expression(node)
        return value if isinstance(value, Const) and not lines else None

    # Memory.

    def extent(self, base: Memory | Window, axis: int) -> Value:
        size = base.shape[axis]
        if size is not None:
            return Const(size)
        memory = self.memory(base)
        at = self.constant(axis, INDEX).name
        return Scalar(self.result(f"memref.dim {memory.name}, {at} : {memory.type}", ""), INDEX, True)

    def stride(self, base: Memory | Window, axis: int) -> Value:
        """Elements from one to the next along that dimension."""
        result: Value = Const(1)
        for inner in range(axis + 1, len(base.shape)):
            result = self.binary(ast.Mult(), result, self.extent(base, inner))
        return result

    def size(self, base: Memory | Window) -> Value:
        return self.binary(ast.Mult(), self.extent(base, 0), self.stride(base, 0))

    def memory(self, value: Value, what: str = "this") -> Memory:
        """Memory that loads and stores reach; of a window, this rank's part."""
        if isinstance(value, Memory):
            return value
        if not isinstance(value, Window):
            self.fail(f"{what} is {value.describe()}, where memory is needed", "pass an array or a window")
        if self.in_region:
            self.fail(
                f"the function of a collective cannot use {value.describe()}",
                "pass it by args=(…), and take its tile as a parameter",
            )
        if value.name not in self.locals:
            memory = Memory(self.emitter.fresh(), value.shape, value.dtype, value.label, shared=True)
            self.emitter.hint(memory.name, f"{value.label}_local")
            self.emitter.prologue.append(
                Line(f"{memory.name} = comms.local {value.name} : {value.type} -> {memory.type}", 2, self.place)
            )
            self.locals[value.name] = memory
        return self.locals[value.name]

    def load_view(self, value: Value) -> Value:
        if not isinstance(value, View):
            return value
        if self.in_region:
            self.fail(
                f"the function of a collective cannot read {value.base.describe()}",
                "pass it by args=(…), and take its tile as a parameter",
            )
        if value.count == Const(-1):
            return self._load_element(self.memory(value.base), value)
        if not isinstance(value.count, Const):
            self.fail(
                f"how long this part of {value.base.describe()} is has to be known when the kernel is compiled",
                f"write {_label(value)}.load(offset, length, valid=count), or a slice i:i + 64",
            )
        return self.load(value.base, value.offset, value.count.py)

    def _load_element(self, memory: Memory, place: View) -> Scalar:
        if memory.shared:
            return self.scalar(self.load(memory, self._offset(memory, place.indices), 1))
        at = self._indices(memory, place)
        return Scalar(self.result(f"memref.load {memory.name}[{at}] : {memory.type}", ""), memory.dtype)

    def _store_element(self, memory: Memory, place: View, value: Scalar) -> None:
        # A block is many threads on a GPU, of which one stores a tile of one element.
        for axis, index in enumerate(place.indices[1:], 1):
            if not isinstance(index, Const):
                what = f"dimension {axis} of {memory.label}"
                limit = self.index(self.extent(memory, axis), "the limit")
                self._check(what, self.index(index, "a subscript"), self.constant(1, INDEX), limit)
        self.store_tile(memory, self._offset(memory, place.indices), self.tile(value, 1), None)

    def _indices(self, memory: Memory, view: View) -> str:
        """The subscripts of one element."""
        return ", ".join(self.index(i, "a subscript").name for i in view.indices)

    def load(
        self, base: Value, offset: Value, length: int, valid: Value | None = None, after: Token | None = None
    ) -> Tile:
        memory = self.memory(base)
        if length < 1:
            self.fail(f"a tile of {length} elements", "a tile has at least one element")
        at = self.index(offset, "the offset")
        clauses = f" valid {self.index(valid, 'valid').name}" if valid is not None else ""
        clauses += f" after {after.name}" if after is not None else ""
        type_ = f"tensor<{length}x{memory.dtype.mlir}>"
        return Tile(
            self.result(f"comms.tile_load {memory.name}[{at.name}]{clauses} : {memory.type} -> {type_}", ""),
            memory.dtype,
            length,
        )

    def store(self, place: View, value: Value, valid: Value | None = None) -> None:
        if self.in_region:
            self.fail(
                f"the function of a collective cannot write {place.base.describe()}",
                "return the tile, and name the array in outs=(…)",
            )
        value = self._computed(value)
        memory = self.memory(place.base)
        if place.count == Const(-1):
            return self._store_element(memory, place, self.scalar(value, memory.dtype, "what is stored"))
        n = self.number(value, "what is stored")
        if not isinstance(place.count, Const):
            self.fail(
                f"how long this part of {memory.describe()} is has to be known when the kernel is compiled",
                f"write {_label(place)}.store(tile, offset, valid=count)",
            )
        if isinstance(n, Tile) and n.length not in (1, place.count.py):
            self.fail(
                f"a tile of {n.length} elements does not fit {place.count.py} of {memory.describe()}",
                "lengths must agree",
            )
        self.store_tile(memory, place.offset, self.tile(n, place.count.py, memory.dtype), valid)

    def store_tile(self, memory: Memory, offset: Value, tile: Tile, valid: Value | None) -> None:
        at = self.index(offset, "the offset")
        clause = f" valid {self.index(valid, 'valid').name}" if valid is not None else ""
        self.emitter.emit(
            f"comms.tile_store {tile.name}, {memory.name}[{at.name}]{clause} : {tile.type}, {memory.type}", self.place
        )

    # Teams.

    def team(self, kind: str) -> Team:
        if kind not in self.teams:
            name = self.emitter.fresh()
            self.emitter.hint(name, kind)
            self.emitter.prologue.append(Line(f"{name} = comms.team {kind}", 2, self.place))
            self.teams[kind] = Team(name, self.ranks if kind == "world" else None)
        return self.teams[kind]

    def team_number(self, which: str, team: Team) -> Value:
        if which == "size" and team.size is not None:
            return Const(team.size)
        key = (which, team.name)
        if key not in self.team_numbers:
            name = self.emitter.fresh()
            self.emitter.hint(name, "rank" if which == "rank" else "ranks")
            line = f"{name} = comms.{which} {team.name}"
            if any(t.name == team.name for t in self.teams.values()):
                self.emitter.prologue.append(Line(line, 2, self.place))
            else:
                self.emitter.emit(line, self.place)
                return Scalar(name, INDEX, True)
            self.team_numbers[key] = Scalar(name, INDEX, True)
        return self.team_numbers[key]

    # Calls.

    def _Call(self, node: ast.Call) -> Value:
        callee = self.expression(node.func)
        self.place = self.at(node)
        if isinstance(callee, Method):
            key = next((k, callee.name) for k in type(callee.owner).__mro__ if (k, callee.name) in METHODS)
            signature, handler = METHODS[key]
            bound = self._bind_call(signature, callee.name, node)
            self.place = self.at(node)
            return handler(self, callee.owner, **bound) or Const(None)
        if isinstance(callee, Function):
            return self.inline(callee, *self._arguments(node))
        if not isinstance(callee, Const):
            self.fail(f"{callee.describe()} cannot be called", node=node)
        return self._call_python(callee.py, node)

    def _call_python(self, function: Any, node: ast.Call) -> Value:
        try:
            entry = FUNCTIONS.get(function)
        except TypeError:
            entry = None
        if entry is not None:
            bound = self._bind_call(entry[0], _name_of(function), node)
            self.place = self.at(node)
            return entry[1](self, **bound) or Const(None)
        dtype = as_dtype(function) if isinstance(function, DType | type) else None
        if dtype is not None:
            return self._cast_call(dtype, function, node)
        function = getattr(function, "__commsir_function__", function)
        if isinstance(function, FunctionType) and (function.__module__ or "").partition(".")[0] not in _LIBRARIES:
            return self.inline(function, *self._arguments(node))
        return self._fold_call(function, node)

    def _cast_call(self, dtype: DType, function: Any, node: ast.Call) -> Value:
        if len(node.args) != 1 or node.keywords:
            self.fail(f"{dtype.name}(…) takes one value", node=node)
        value = self.expression(node.args[0])
        if function in (int, float) and isinstance(value, Const) and isinstance(value.py, str):
            return self._fold_call(function, node)
        n = self.number(value, "what is converted")
        if isinstance(n, Const) and function in (int, float, bool):
            return Const(function(n.py))
        if isinstance(n, Const) and dtype.is_integer:
            n = Const(int(n.py))
        return self.tile(n, n.length, dtype) if isinstance(n, Tile) else self.scalar(n, dtype)

    def _fold_call(self, function: Any, node: ast.Call) -> Value:
        """A function of Python's on constants is called now."""
        name = _name_of(function)
        if name in _BUILTINS_INSTEAD and getattr(builtins, name, None) is function:
            self.fail(f"{name} cannot be compiled", _BUILTINS_INSTEAD[name], node)
        args, keywords = self._arguments(node)
        values = [*args, *keywords.values()]
        if isinstance(function, BuiltinFunctionType | type) and all(isinstance(v, Const) for v in values):
            try:
                return Const(function(*(v.py for v in args), **{k: v.py for k, v in keywords.items()}))  # type: ignore[attr-defined]
            except Exception as error:
                self.fail(f"{name}: {error}", node=node)
        self.fail(
            f"'{name}' is not known to kernels",
            _ATTRIBUTES_INSTEAD.get(name)
            or (diagnostics.did_you_mean(name, FUNCTION_NAMES) if isinstance(function, FunctionType) else "")
            or "functions of your own can be called, and those that docs/PythonKernels.md lists",
            node,
        )

    def _arguments(self, node: ast.Call) -> tuple[list[Value], dict[str, Value]]:
        args: list[Value] = []
        for a in node.args:
            if isinstance(a, ast.Starred):
                args.extend(self._items(self.expression(a.value), a))
            else:
                args.append(self.expression(a))
        keywords = {}
        for k in node.keywords:
            if k.arg is None:
                self.fail("** in a call cannot be compiled", "write the keywords out", node)
            keywords[k.arg] = self.expression(k.value)
        return args, keywords

    def _bind_call(self, signature: inspect.Signature, name: str, node: ast.Call) -> dict[str, Value]:
        args, keywords = self._arguments(node)
        self.place = self.at(node)
        return self._bind(signature, name, args, keywords)

    def _bind(
        self, signature: inspect.Signature, name: str, args: list[Value], keywords: dict[str, Value]
    ) -> dict[str, Value]:
        unknown = [k for k in keywords if k not in signature.parameters]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
        if unknown and not takes_any:
            hint = diagnostics.did_you_mean(unknown[0], signature.parameters)
            self.fail(f"{name} has no argument '{unknown[0]}'", hint or f"it is {name}{signature}")
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            self.fail(f"{name}: {error}", f"it is {name}{signature}")
        bound.apply_defaults()
        result: dict[str, Value] = {}
        for key, value in bound.arguments.items():
            if signature.parameters[key].kind is inspect.Parameter.VAR_POSITIONAL:
                result[key] = Seq(tuple(value))
            else:
                result[key] = value if isinstance(value, Value) else Const(value)
        return result

    def inline(self, function: FunctionType | Function, args: list[Value], keywords: dict[str, Value]) -> Value:
        """The body of a Python function in place of its call."""
        if isinstance(function, Function):
            node, outer, file, key = function.node, function.frame, function.frame.file, function.node
        else:
            found = source.find(function)
            node, outer, file, key = found.node, _Names(function), found.file, function.__code__  # type: ignore[assignment]
        if any(k is key for k, _ in self.calls):
            self.fail("a function that calls itself cannot be compiled", "write a loop")
        name = getattr(node, "name", "lambda")
        bound = self._bind_function(node.args, name, args, keywords, function, outer)
        body = _body_of(node)
        frame = Frame(name, bound, outer, file, control.Liveness(body))
        saved, place = self.frame, self.place
        self.calls.append((key, place))
        self.frame = frame
        self.block(body)
        result = frame.variables.get(RESULT, Undefined(""))
        sure = frame.variables.get(RETURN, Const(False))
        if isinstance(result, Undefined):
            if result.why:
                self.fail(result.why)
            result = Const(None)
        elif not (isinstance(sure, Const) and sure.py) and result != Const(None):
            self.place = self.at(node)
            self.fail(f"'{name}' does not return a value on every path", "add a return at its end")
        self.calls.pop()
        self.frame, self.place = saved, place
        return result

    def _bind_function(
        self, spec: ast.arguments, name: str, args: list[Value], keywords: dict[str, Value], function: Any, outer: Any
    ) -> dict[str, Value]:
        kind = inspect.Parameter
        plain = [*spec.posonlyargs, *spec.args]
        missing = len(plain) - len(spec.defaults)
        parameters = [
            kind(a.arg, kind.POSITIONAL_OR_KEYWORD, default=spec.defaults[i - missing] if i >= missing else kind.empty)
            for i, a in enumerate(plain)
        ]
        if spec.vararg:
            parameters.append(kind(spec.vararg.arg, kind.VAR_POSITIONAL))
        for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            parameters.append(kind(a.arg, kind.KEYWORD_ONLY, default=default if default is not None else kind.empty))
        shown = inspect.Signature(
            [p.replace(default=kind.empty) if p.default is kind.empty else p.replace(default=...) for p in parameters]
        )
        unknown = [k for k in keywords if k not in shown.parameters]
        if unknown:
            hint = diagnostics.did_you_mean(unknown[0], shown.parameters) or f"it takes ({', '.join(shown.parameters)})"
            self.fail(f"{name} has no parameter '{unknown[0]}'", hint)
        try:
            bound = inspect.Signature(parameters).bind(*args, **keywords)
        except TypeError as error:
            self.fail(f"{name}: {error}", f"it takes ({', '.join(shown.parameters)})")
        result: dict[str, Value] = {}
        for p in parameters:
            if p.kind is kind.VAR_POSITIONAL:
                result[p.name] = Seq(tuple(bound.arguments.get(p.name, ())))
            elif p.name in bound.arguments:
                result[p.name] = self._materialise(bound.arguments[p.name])
            else:
                result[p.name] = self._default(p, function, outer)
        return result

    def _default(self, p: inspect.Parameter, function: Any, outer: Any) -> Value:
        """A default value: of a Python function the object, of one in the kernel the expression."""
        if isinstance(function, FunctionType):
            value = inspect.signature(function).parameters[p.name].default
            return self._python(value, ast.Pass())
        saved = self.frame
        self.frame = outer
        value = self.expression(p.default)
        self.frame = saved
        return value

    # What handlers ask for.

    def known(self, value: Value, what: str, kind: type | tuple[type, ...], hint: str = "") -> Any:
        """A constant of a Python type."""
        if isinstance(value, Const) and isinstance(value.py, kind) and not (isinstance(value.py, bool) and kind is int):
            return value.py
        names = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
        wanted = f"a Python {names}" if isinstance(value, Const) else "known when the kernel is compiled"
        self.fail(f"{what} is {value.describe()}; it has to be {wanted}", hint)

    def choice(self, value: Value, what: str, known: Sequence[str], hint: str = "") -> str:
        """A constant string that is one of those known; `hint` is added where it is not."""
        text = value.py if isinstance(value, Const) else None
        if text not in known:
            close = diagnostics.did_you_mean(str(text), known, 0.75)
            names = ", ".join(name or '""' for name in known)
            self.fail(f"{what} is {value.describe()}", f"{close} it is one of {names}{hint}".strip())
        return str(text)

    def element_type(self, value: Value, what: str = "the type of the elements") -> DType:
        dtype = as_dtype(value.py) if isinstance(value, Const) else None
        if dtype is None:
            self.fail(f"{what} is {value.describe()}", "write f32, bf16, i32, …")
        return dtype

    def region_of(self, function: Value, arguments: list[Value]) -> Value:
        """The result of a function of a collective, on tiles."""
        saved = self.in_region
        self.in_region = True
        try:
            if isinstance(function, Function):
                return self.inline(function, list(arguments), {})
            if isinstance(function, Const):
                python = getattr(function.py, "__commsir_function__", function.py)
                if isinstance(python, FunctionType) and python not in FUNCTIONS:
                    return self.inline(python, list(arguments), {})
                if python in FUNCTIONS:
                    signature, handler = FUNCTIONS[python]
                    return handler(self, **self._bind(signature, _name_of(python), list(arguments), {})) or Const(None)
            self.fail(f"{function.describe()} is no function of tiles", "write a lambda or name a function")
        finally:
            self.in_region = saved


class _Names:
    """The names that a Python function sees: of the functions around it, its module, and Python's own."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))

    def find(self, name: str) -> Any:
        if name in self.cells:
            try:
                return self.cells[name].cell_contents
            except ValueError:
                return _MISSING
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        return getattr(builtins, name, _MISSING)


_MISSING = object()
FUNCTION_NAMES: list[str] = []


def _body_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.stmt]:
    if isinstance(node, ast.Lambda):
        return [ast.copy_location(ast.Return(node.body), node.body)]
    return control.straighten(_without_docstring(node.body))


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if docstring and len(body) > 1 else body


def argument(name: str, spec: Parameter, dims: Mapping[str, int]) -> Value:
    """The value of a parameter inside the kernel."""
    if spec.kind == "scalar":
        return Scalar(f"%{name}", spec.dtype)
    shape = tuple(d if isinstance(d, int) else dims.get(d) for d in spec.shape)
    if spec.kind == "window":
        return Window(f"%{name}", shape, spec.dtype, name)
    if spec.kind == "array":
        return Memory(f"%{name}", shape, spec.dtype, name)
    return Cells(f"%{name}", spec.kind, shape[0] or 1, name)


def _is_harmless(line: str) -> bool:
    """An op without effects that cannot fail."""
    op = line.split(" = ", 1)[-1].split(" ", 1)[0]
    return op.startswith(("arith.", "math.")) and "div" not in op and "rem" not in op


def _name_of(function: Any) -> str:
    return str(
        getattr(function, "co_name", None) or getattr(function, "name", None) or getattr(function, "__name__", "lambda")
    )


def _label(view: View) -> str:
    return view.base.label


__all__ = [
    "ATTRIBUTES",
    "FUNCTIONS",
    "METHODS",
    "SYMBOLS",
    "Compiler",
    "flatten",
    "is_carried",
    "math",
    "ModuleType",
    "Peers",
    "Range",
    "F32",
    "I64",
]
