"""Expressions: one method for each kind of node that has a value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from .. import diagnostics
from ..dtypes import BOOL
from . import analysis, hints, registry
from .matrices import Matrices
from .scope import MISSING
from .values import Const, Function, Memory, Method, Product, Scalar, Seq, Tile, Undefined, Value, Window, whole_tile


class Expressions(Matrices):
    """The layer that knows expressions."""

    def visit(self, node: ast.AST) -> Any:
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is None:
            kind = type(node).__name__
            what, instead = hints.SYNTAX.get(kind, (kind, "docs/PythonKernels.md lists what kernels may contain"))
            self.fail(f"{what} cannot be compiled", instead, node)
        return method(node)

    def expression(self, node: ast.expr) -> Value:
        outer = self.place
        self.place = self.at(node)
        value: Value = self.visit(node)
        self.place = outer
        return value

    def visit_Constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, complex | bytes):
            self.fail(f"{type(node.value).__name__} cannot be compiled", "kernels know bool, int and float", node)
        return Const(node.value)

    def visit_Name(self, node: ast.Name) -> Value:
        found = self.frame.find(node.id)
        if isinstance(found, Undefined):
            self.fail(found.why or f"'{node.id}' has no value here", node=node)
        if found is MISSING:
            self._refuse_name(node)
        if self.in_region and isinstance(found, Value) and not self.frame.comes_from_region(node.id):
            found = self.captured(found, node)
        return self.python(found, node)

    def _refuse_name(self, node: ast.Name) -> NoReturn:
        """Reports an undefined name; it may be a function of NumPy or torch."""
        if instead := hints.INSTEAD.get(node.id):
            self.fail(f"kernels have no '{node.id}'", instead, node)
        known = [*self.frame.variables, *registry.names()]
        self.fail(f"'{node.id}' has no value", diagnostics.did_you_mean(node.id, known), node)

    def captured(self, value: Value, node: ast.Name) -> Value:
        """Converts a number of the enclosing kernel for a collective's function: a tile, as for arrays in args."""
        if isinstance(value, Seq):
            return Seq(tuple(self.captured(item, node) for item in value.items))
        if not isinstance(value, Scalar | Tile):
            return value
        if value.dtype is BOOL:
            self.fail(
                f"'{node.id}' is {value.describe()} of the kernel around the function of a collective",
                f"pass it as a number: flag = i32({node.id}) before, and {node.id} = flag != 0 in the function",
                node,
            )
        return self.from_outside(value, node.id)

    def visit_Tuple(self, node: ast.Tuple) -> Value:
        return Seq(tuple(self.elements(node.elts, self.element)))

    def visit_List(self, node: ast.List) -> Value:
        return Seq(tuple(self.elements(node.elts, self.element)), is_list=True)

    def elements(self, nodes: Sequence[ast.expr], kept: Callable[[Value], Value] = lambda value: value) -> list[Value]:
        """Evaluates the elements of a tuple, or arguments. Each is `kept` before the next one is evaluated; `*v`
        expands.
        """
        values: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values.extend(self.items(self.expression(node.value), node))
            else:
                values.append(kept(self.expression(node)))
        return values

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.expression(node.value)
        self.assign(node.target, value)
        return self.frame.variables[node.target.id]

    def visit_BinOp(self, node: ast.BinOp) -> Value:
        a = self.expression(node.left)
        # The right may store to what has been named; a product is read where it is stored.
        if analysis.calls(node.right) and not isinstance(node.op, ast.MatMult):
            a = self.snapshot(a)
        return self.binary(node.op, a, self.expression(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            value = self.test(node.operand)
            if isinstance(value, Tile) and value.length != 1:
                self.fail("'not' of a tile", "write ~mask", node)
            return self.logical_not(value)
        value = self.load_view(self.expression(node.operand))
        if isinstance(node.op, ast.USub):
            return self.negate(value)
        return self.invert(value) if isinstance(node.op, ast.Invert) else self.number(value)

    def visit_Compare(self, node: ast.Compare) -> Value:
        left = self.load_view(self.expression(node.left))
        return self._compared_chain(left, list(zip(node.ops, node.comparators, strict=True)))

    def _compared_chain(self, left: Value, chain: list[tuple[ast.cmpop, ast.expr]]) -> Value:
        (op, node), *more = chain
        right = self.load_view(self.expression(node))
        first = self._compared(op, left, right)
        if not more or first == Const(False):
            return first
        if isinstance(first, Scalar) and not self.in_region:
            return self.short_circuit(True, first, partial(self._compared_chain, right, more))
        return self.logical(True, first, self._compared_chain(right, more))

    def _compared(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(op, ast.In | ast.NotIn):
            found = self._contains(right, left)
            return found if isinstance(op, ast.In) else self.logical_not(found)
        none = Const(None) in (left, right) and isinstance(op, ast.Eq | ast.NotEq)
        if none or isinstance(op, ast.Is | ast.IsNot):
            return Const(self._is_same(left, right) == isinstance(op, ast.Is | ast.Eq))
        if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(op, ast.Eq | ast.NotEq):
            equal = self._equal(left, right)
            return equal if isinstance(op, ast.Eq) else self.logical_not(equal)
        return self.compare(op, left, right)

    def _equal(self, left: Seq, right: Seq) -> Value:
        if len(left.items) != len(right.items):
            return Const(False)
        result: Value = Const(True)
        for a, b in zip(left.items, right.items, strict=True):
            result = self.logical(True, result, self._compared(ast.Eq(), a, b))
        return result

    def _is_same(self, left: Value, right: Value) -> bool:
        """Translates `is`. For run-time values it only tests for None."""
        if isinstance(left, Const) and isinstance(right, Const):
            return left.py is right.py
        if Const(None) not in (left, right) and any(isinstance(v, Scalar | Tile) for v in (left, right)):
            self.fail("'is' of numbers that are known at run time only", "compare with ==")
        return left == right

    def _contains(self, container: Value, value: Value) -> Value:
        known = isinstance(container, Const) and isinstance(container.py, tuple | list | dict | set | str | range)
        if known and isinstance(container, Const) and isinstance(value, Const):
            try:
                return Const(value.py in container.py)
            except TypeError as error:
                self.fail(f"{value.describe()} in {container.describe()}: {error}")
        found: Value = Const(False)
        for item in self.items(container):
            found = self.logical(False, found, self.compare(ast.Eq(), value, item))
        return found

    def visit_BoolOp(self, node: ast.BoolOp) -> Value:
        return self._bool_op(node, self._operand)

    def _bool_op(self, node: ast.BoolOp, operand: Callable[[ast.expr], Value]) -> Value:
        conjunction = isinstance(node.op, ast.And)
        result = operand(node.values[0])
        for value in node.values[1:]:
            if isinstance(result, Scalar):
                result = self.short_circuit(conjunction, result, partial(operand, value))
            elif self.condition(result) == Const(conjunction):
                result = operand(value)
            else:
                break
        return result

    def _operand(self, node: ast.expr) -> Value:
        """Evaluates an operand whose value may become the value of the whole expression."""
        value = self.load_view(self.expression(node))
        self._refuse_tile(value, node)
        return self.scalar(value) if isinstance(value, Tile) else value

    def _tested(self, node: ast.expr) -> Value:
        """Evaluates an operand of which only the truth value is used."""
        value = self.test(node)
        self._refuse_tile(value, node)
        return self.condition(value)

    def _refuse_tile(self, value: Value, node: ast.expr) -> None:
        if isinstance(value, Tile) and value.length != 1:
            self.fail("'and' and 'or' of tiles", "write a & b, a | b, with parentheses around comparisons", node)

    def test(self, node: ast.expr) -> Value:
        """The value of an expression of which only the truth counts: no operand of `and` and `or` is kept for it."""
        if not isinstance(node, ast.BoolOp):
            return self.load_view(self.expression(node))
        outer, self.place = self.place, self.at(node)
        result = self._bool_op(node, self._tested)
        self.place = outer
        return result

    def visit_IfExp(self, node: ast.IfExp) -> Value:
        condition = self.condition(self.test(node.test))
        if isinstance(condition, Const):
            return self.expression(node.body if condition.py else node.orelse)
        self.region_guard(condition, "conditional expression", "choose with where(condition, a, b)")
        return self.chosen(condition, partial(self.expression, node.body), partial(self.expression, node.orelse))

    def region_guard(self, condition: Value, what: str, instead: str) -> None:
        if self.in_region and not isinstance(self.condition(condition), Const):
            self.fail(f"no {what} that depends on data in the function of a collective", instead)

    def visit_Lambda(self, node: ast.Lambda) -> Value:
        return self.function(node, "lambda")

    def function(self, node: ast.Lambda | ast.FunctionDef, name: str) -> Function:
        """Converts a function that is defined in a kernel. Its default values are evaluated at the definition."""
        spec = node.args
        plain = [a.arg for a in [*spec.posonlyargs, *spec.args]]
        given = list(zip(plain[len(plain) - len(spec.defaults) :], spec.defaults, strict=True))
        given += [(a.arg, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
        defaults = {parameter: self.snapshot(self.expression(default)) for parameter, default in given}
        return Function(node, self.frame, name, defaults)

    def visit_Subscript(self, node: ast.Subscript) -> Value:
        return self.subscript(self.expression(node.value), node.slice, node)

    def visit_Attribute(self, node: ast.Attribute) -> Value:
        value = self.expression(node.value)
        if node.attr == "T" and (turned := self.transposed(value)) is not None:
            return turned
        value = self.load_view(value)
        if isinstance(value, Const):
            return self._python_attribute(value, node)
        key = (type(value), node.attr)
        if key in registry.ATTRIBUTES:
            return registry.ATTRIBUTES[key](self, value) or Const(None)
        if key in registry.METHODS:
            return Method(value, node.attr)
        return self.fail(f"{value.describe()} has no attribute '{node.attr}'", _attribute_hint(value, node.attr), node)

    def _python_attribute(self, value: Const, node: ast.Attribute) -> Value:
        if isinstance(value.py, str | list | dict | set):
            self.fail(f"{value.describe()} has no methods in a kernel", "compute it outside the kernel", node)
        if not hasattr(value.py, node.attr):
            name = getattr(value.py, "__name__", value.describe())
            instead = hints.INSTEAD.get(node.attr) or diagnostics.did_you_mean(node.attr, dir(value.py))
            self.fail(f"'{name}' has no attribute '{node.attr}'", instead, node)
        return self.python(getattr(value.py, node.attr), node)


def _attribute_hint(value: Value, name: str) -> str:
    if isinstance(value, Product):
        return hints.OF_PRODUCT if name != "T" else "swap the operands: b.T @ a.T"
    if isinstance(value, Seq):
        return "tuples and lists do not change: sum up in a variable, or store in an array"
    if isinstance(value, Memory | Window) and (Tile, name) in registry.METHODS:
        return f"tiles have it: {whole_tile(value)}.{name}()"
    if isinstance(value, Tile | Scalar | Memory | Window) and name in hints.INSTEAD:
        return hints.INSTEAD[name]
    if isinstance(value, Tile | Scalar) and registry.takes_one(name):
        return f"it is a function: {name}(t)"
    if isinstance(value, Memory) and not value.space and (Window, name) in registry.METHODS:
        return f"peers reach windows only: annotate '{value.label}' as {value.dtype.name}[Window, …]"
    known = [known for kind, known in [*registry.ATTRIBUTES, *registry.METHODS] if kind is type(value)]
    return diagnostics.did_you_mean(name, known) or (f"it has {', '.join(sorted(known))}" if known else "")
