"""Statements: one method for each kind of node that has no value."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn

from .. import functions
from ..dtypes import INDEX, as_dtype
from . import analysis, registry
from .calls import Calls
from .emitter import Line, quote
from .numbers import SYMBOLS
from .region_values import CONTINUE, RESULT, RETURN
from .values import (
    UNNAMED,
    Cell,
    Channel,
    Const,
    Memory,
    Product,
    Scalar,
    Seq,
    Team,
    Tile,
    Token,
    Undefined,
    Value,
    View,
    Window,
)


def _text(message: ast.expr | None) -> str:
    """The message of an assertion. Kernels cannot format f-strings; their expressions are shown as written."""
    if isinstance(message, ast.JoinedStr):
        return "".join(_text(part) for part in message.values)
    if isinstance(message, ast.FormattedValue):
        return f"{{{ast.unparse(message.value)}}}"
    return message.value if isinstance(message, ast.Constant) and isinstance(message.value, str) else ""


class Statements(Calls):
    """The layer that knows statements."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        for i, statement in enumerate(body):
            self.place = self.at(statement)
            self.visit(statement)
            rest = body[i + 1 :]
            left = self.has_left()
            if left is None and rest:
                self.unless_left(partial(self.block, rest), self.frame.live.after[id(body[-1])])
            if left is not False:
                return

    def visit_Pass(self, s: ast.Pass) -> None:
        pass

    def visit_Expr(self, s: ast.Expr) -> None:
        if not (isinstance(s.value, ast.Constant) and isinstance(s.value.value, str | type(...))):
            value = self.expression(s.value)
            if isinstance(s.value, ast.Compare | ast.BinOp) and not isinstance(value, Token):
                self.fail("this value is not used", "assign it, or leave the line out", s)

    def _refuse_lost(self, s: ast.Assign | ast.AnnAssign, targets: Sequence[ast.expr]) -> None:
        """`y = tile` of an array `y` that is not read behind it: to store there was meant."""
        for name in sorted(analysis.assigned(targets) - self.frame.live.after[id(s)]):
            if isinstance(self.frame.variables.get(name), Memory | Window):
                self.fail(
                    f"'{name}' is an array, of which this stores nothing: it gives the name to another value",
                    f"store in it: {name}[:] = …, or {name}[i] = … for an element or a row",
                    s,
                )

    def visit_Assign(self, s: ast.Assign) -> None:
        self._refuse_lost(s, s.targets)
        value = self.expression(s.value)
        stored = isinstance(value, Product) and isinstance(s.targets[0], ast.Subscript)  # Read where it is stored.
        if len(s.targets) > 1 or any(map(analysis.calls, s.targets)) and not stored:
            value = self.snapshot(value)  # Of before a target's subscript, or an earlier target, stores there.
        for target in s.targets:
            self.place = self.at(s)
            self.assign(target, value)

    def visit_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is None:
            return
        self._refuse_lost(s, [s.target])
        value = self.expression(s.value)
        dtype = as_dtype(self.annotated(s.annotation))
        if dtype is not None:
            n = self.number(value)
            value = self.tile(n, n.length, dtype) if isinstance(n, Tile) else self.scalar(n, dtype)
        self.assign(s.target, value)

    def visit_AugAssign(self, s: ast.AugAssign) -> None:
        if isinstance(s.target, ast.Name):
            old = self.expression(ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target))
            if isinstance(old, Seq) and old.is_list:
                longer = f"{s.target.id} = {s.target.id} {SYMBOLS[type(s.op)]} …"
                self.fail("lists do not change in a kernel", f"make a new one: {longer}", s)
            if isinstance(old, Memory) and analysis.adds_product(s):
                product = self.expression(s.value)
                assert isinstance(product, Product)
                self.add_product(old, product)
                return None
            if isinstance(old, Memory | Window):
                changed = f"{s.target.id}[:] {SYMBOLS[type(s.op)]}= …"
                self.fail(f"'{s.target.id}' is an array, which is not a number", f"change what is in it: {changed}", s)
            self.assign(s.target, self.binary(s.op, old, self.expression(s.value)))
        elif isinstance(s.target, ast.Subscript):
            place = self._stored_to(s.target)
            self.place = self.at(s)
            if analysis.adds_product(s):
                product = self.expression(s.value)
                assert isinstance(product, Product)
                return self.store_product(place, product, accumulate=True)
            if analysis.is_product(s.value):
                self.fail(
                    f"'{SYMBOLS[type(s.op)]}=' of a product of matrices, which is stored by '=' or added by '+='",
                    "name it, and work on its rows: p = a @ b, then p[r]",
                )
            self.store(place, self.binary(s.op, self.load_view(place), self.expression(s.value)))
        else:
            self.fail("only variables and elements of memory can be assigned to", node=s)

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            value = self.snapshot(value)
            if isinstance(value, Memory) and value.label == UNNAMED:
                value = replace(value, label=target.id)
            if isinstance(value, Scalar | Tile | Token | Team | Memory | Channel):
                self.emitter.hint(value.name, target.id)
            self.frame.variables[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, value)
        elif isinstance(target, ast.Subscript):
            place = self._stored_to(target)
            self.place = self.at(target)
            self.store(place, value)
        else:
            self.fail("attributes cannot be assigned to", "use a variable", target)

    def _stored_to(self, target: ast.Subscript) -> View:
        base = self.expression(target.value)
        if isinstance(base, Seq):
            self.fail(f"{base.describe()} does not change in a kernel", "store in an array, or make a new one", target)
        if isinstance(base, Tile):
            self._refuse_store(base, target)
        place = self.subscript(base, target.slice, target)
        if isinstance(place, Cell):
            cell = ast.unparse(target)
            set_or_reset = f"signal({cell}, rank(), set=value) sets it, reset_signal({cell}) sets it to 0"
            hint = set_or_reset if place.cells.kind == "signal" else f"reset_counter({cell}) sets it to 0"
            self.fail(f"{place.describe()} cannot be assigned to", hint, target)
        if not isinstance(place, View):
            self.fail(f"{place.describe()} cannot be assigned to", "only elements of memory can", target)
        return place

    def _refuse_store(self, base: Tile, target: ast.Subscript) -> NoReturn:
        """Reports a store to a tile; its name may have been that of an array."""
        name = target.value.id if isinstance(target.value, ast.Name) else ""
        if name in self.parameters:
            self.fail(
                f"'{name}' names {base.describe()} here: a line before gives it that name",
                f"to store in the array, that line is {name}[:] = …",
                target,
            )
        self.fail(
            f"{base.describe()} is a value, which no store changes",
            "store in an array, or choose: t = where(iota(len(t)) == i, value, t)",
            target,
        )

    def _unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        items = self.items_if_known(value)
        if items is None:
            hint = "take an element for each name: a, b = x[0], x[1]" if isinstance(value, Memory | View) else ""
            self.fail(f"{value.describe()} cannot be unpacked", hint, target)
        if any(isinstance(element, ast.Starred) for element in target.elts):
            self.fail("a name with a star cannot be compiled", "give each value a name of its own", target)
        if len(items) != len(target.elts):
            self.fail(f"{len(items)} values for {len(target.elts)} names", node=target)
        for element, item in zip(target.elts, items, strict=True):
            self.assign(element, item)

    def visit_If(self, s: ast.If) -> None:
        condition = self.test(s.test)
        self.region_guard(condition, "if", "choose with where(condition, a, b)")
        self.branch(condition, partial(self.block, s.body), partial(self.block, s.orelse), self.frame.live.after[id(s)])

    def visit_For(self, s: ast.For) -> None:
        if self.in_region and not isinstance(self.expression(s.iter), Seq):
            self.fail("no loops in the function of a collective", "work on the whole tile, or loop over a tuple")
        self.for_loop(s)

    def visit_While(self, s: ast.While) -> None:
        if self.in_region:
            self.fail("no loops in the function of a collective", "work on the whole tile")
        self.while_loop(s)

    def visit_Break(self, s: ast.Break) -> None:
        self.frame.variables[self.frame.loops[-1]] = Const(True)

    def visit_Continue(self, s: ast.Continue) -> None:
        self.frame.variables[CONTINUE] = Const(True)

    def visit_Return(self, s: ast.Return) -> None:
        value = self.expression(s.value) if s.value else Const(None)
        self.frame.variables[RESULT] = self.snapshot(value)
        self.frame.variables[RETURN] = Const(True)

    def visit_FunctionDef(self, s: ast.FunctionDef) -> None:
        value: Value = self.function(s, s.name)
        for decorator in reversed(s.decorator_list):
            value = self.call(self.expression(decorator), [value], {})
        self.frame.variables[s.name] = value

    def visit_Assert(self, s: ast.Assert) -> None:
        test, said = ast.unparse(s.test), _text(s.msg)
        if self._assert_range(s.test, said or f"assert {test}"):
            return
        text = f"{said}: {test}" if said else f"assert {test}"
        condition = self.condition(self.test(s.test))
        if condition == Const(True):
            return
        if isinstance(condition, Const) and not self.emitter.is_nested:
            self.fail(f"this does not hold: {text}")
        zero = self.constant(0, INDEX)
        off = self.select(condition, zero, self.constant(1, INDEX))
        self.check_bounds(text, self.scalar(off), zero, zero)

    def _assert_range(self, test: ast.expr, text: str) -> bool:
        """Translates `assert 0 <= i < n` to a bounds check, whose report shows the numbers."""
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Constant) and test.left.value == 0):
            return False
        if [type(op) for op in test.ops] != [ast.LtE, ast.Lt]:
            return False
        before, channels, lines = dict(self.frame.variables), self.channels, list[Line]()
        with self.emitter.into(lines):
            value, limit = (self.number(self.expression(c)) for c in test.comparators)
        numbers = [v for v in (value, limit) if not isinstance(v, Const)]
        if not numbers or not all(isinstance(v, Scalar) and v.dtype.is_integer for v in numbers):
            self.frame.variables, self.channels = before, channels  # The caller computes it once more.
            return False
        self.emitter.splice(lines)
        self.place = self.at(test)
        count = self.constant(1, INDEX)
        self.check_bounds(text, self.index(value, "the value"), count, self.index(limit, "the limit"))
        return True

    def visit_With(self, s: ast.With) -> None:
        name, first, last = self._role(s)
        before, lines = dict(self.frame.variables), list[Line]()
        place = self.at(s)
        with self.emitter.into(lines, 1):
            self.block(s.body)
        for flag in self._flags():
            if self.frame.variables.get(flag, Const(False)) != before.get(flag, Const(False)):
                leaves = {RETURN: "return", CONTINUE: "continue"}.get(flag, "break out")
                self.fail(f"a role cannot {leaves}: other blocks continue after it", "put the rest under an if", s)
        for changed in analysis.assigned(s.body):
            before[changed] = Undefined(
                f"'{changed}' gets its value in the role at line {s.lineno}, which other blocks do not run"
            )
        self.frame.variables = before
        self.emitter.emit(f"comms.role {quote(name)} blocks {first} to {last} {{", None)
        self.emitter.splice(lines)
        self.emitter.emit("}", place)

    def _role(self, s: ast.With) -> tuple[str, int, int]:
        """Returns the name and the blocks of the role that a `with` statement selects."""
        call = s.items[0].context_expr
        role = self.expression(call.func) if len(s.items) == 1 and isinstance(call, ast.Call) else None
        if not isinstance(call, ast.Call) or not isinstance(role, Const) or role.py is not functions.role:
            self.fail("with cannot be compiled", 'the one form is: with role("name", first, last): …', s)
        keywords = {str(k.arg): self.expression(k.value) for k in call.keywords}
        parts = self.bind_call(registry.FUNCTIONS[role.py][0], "role", self.elements(call.args), keywords)
        name, first, last = (v.py if isinstance(v, Const) else None for v in parts.values())
        if not isinstance(name, str) or not isinstance(first, int) or not isinstance(last, int):
            self.fail(
                "a role has a name and two numbers of blocks that are known", 'as in: with role("send", 0, 2):', s
            )
        if s.items[0].optional_vars:
            self.fail("a role has no value", "leave 'as …' out", s)
        return name, first, last
