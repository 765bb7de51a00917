"""Branches: `if`, what early exits skip, and the right sides of `and` and `or` become scf.if."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import partial

from ..dtypes import BOOL, I64, INDEX, promote
from .compile_time import CompileTimeValues
from .emitter import Line
from .region_values import (
    CHOICE,
    CONTINUE,
    NEVER_READ,
    RESULT,
    RETURN,
    Leaf,
    describe_leaf,
    flatten,
    forget_returned,
    is_carried,
    is_defined,
    label_of,
    leaf_text,
    parts,
    rebuild,
    same_structure,
    unset,
    value_of,
    wider,
)
from .values import Const, Number, Scalar, Tile, Token, Undefined, Value

Thunk = Callable[[], None]


class _EveryName(Container[str]):
    """A set that contains every name: all names may be read."""

    def __contains__(self, name: object) -> bool:
        return True


_EVERY_NAME = _EveryName()


@dataclass
class BranchResult:
    """A translated branch: its lines, and the variables at its end."""

    lines: list[Line]
    variables: dict[str, Value]


@dataclass
class Result:
    """A variable that an op with regions assigns: the types of its leaves, and a value of its structure."""

    name: str
    leaves: list[Leaf]
    like: Value


class Branches(CompileTimeValues):
    """The layer that knows branches."""

    # Above 0 while types of a loop around are being found: what does not agree yet may agree with the next guess.
    guessing = 0

    # Exits.

    def _flags(self) -> list[str]:
        """The flags that tell whether control has left the following statements."""
        return [RETURN, *self.frame.loops[-1:], CONTINUE] if self.frame.loops else [RETURN]

    def _flag(self, name: str) -> Value:
        return self.frame.variables.get(name, Const(False))

    def exits(self) -> Value:
        """Whether control has left: false, true, or a value of the IR."""
        result: Value = Const(False)
        for flag in map(self._flag, self._flags()):
            result = self.logical(False, result, flag)
        return result

    def has_left(self) -> bool | None:
        """Whether control has left, if that is known at compile time."""
        flags = list(map(self._flag, self._flags()))
        if any(flag == Const(True) for flag in flags):
            return True
        return False if all(isinstance(flag, Const) for flag in flags) else None

    def unless_left(self, rest: Thunk, live: Container[str]) -> None:
        """Runs `rest` only if control has not left."""
        left = self.exits()
        if isinstance(left, Const):
            if not left.py:
                rest()
        else:
            self.branch(self.logical_not(left), rest, self._set_open_flag, live)

    def _set_open_flag(self) -> None:
        """Sets the flag that records that control has left, if a single flag does."""
        open_ = [name for name in self._flags() if not isinstance(self._flag(name), Const)]
        if len(open_) == 1:
            self.frame.variables[open_[0]] = Const(True)

    # Branches.

    def branch(self, condition: Value, then: Thunk, other: Thunk, live: Container[str]) -> None:
        """Translates `if`: only the taken branch if the condition is known, else both and the variables they change."""
        c = self.condition(condition)
        if isinstance(c, Const):
            return then() if c.py else other()
        place, before = self.place, self.frame.variables
        sides = []
        for thunk in (then, other):
            lines: list[Line] = []
            self.frame.variables = dict(before)
            with self.emitter.into(lines, 1):
                thunk()
            sides.append(BranchResult(lines, self.frame.variables))
        self.frame.variables, self.place = before, place
        return self._merge(c, sides[0], sides[1], live)

    def _merge(self, c: Scalar, then: BranchResult, other: BranchResult, live: Container[str]) -> None:
        forget_returned(then.variables, other.variables, dict(self.frame.variables))
        results: list[Result] = []
        for name in sorted(then.variables.keys() | other.variables.keys()):
            a, b = (side.variables.get(name, unset(name, side.variables)) for side in (then, other))
            merged = self._merged(c, name, a, b, name.startswith("$") or name in live)
            if isinstance(merged, Result):
                results.append(merged)
            else:
                self.frame.variables[name] = merged
        for side in (then, other):
            with self.emitter.into(side.lines, 1):
                self.yield_results([(side.variables.get(r.name), r.leaves) for r in results])
        self._emit_if(c, then.lines, other.lines, results)

    def _merged(self, c: Scalar, name: str, a: Value | None, b: Value | None, is_read: bool) -> Value | Result:
        """Returns a variable's value after the branches, or the values that they yield."""
        if a is not None and a == b:
            return a
        if not is_read:
            return NEVER_READ
        if a == Const(True) and b == Const(False):
            return c
        if a == Const(False) and b == Const(True):
            return self.logical_not(c)
        leaves = self._common(name, a, b)
        if isinstance(leaves, Undefined) and NEVER_READ in (a, b):  # one side has left
            value = a if b is NEVER_READ else b
            if value is not None and is_defined(value) and is_carried(value):
                leaves = self.leaves_of(value)
        if isinstance(leaves, Undefined):
            return leaves
        like = a if is_defined(a) else b
        assert like is not None
        return Result(name, leaves, like)

    def _emit_if(self, c: Scalar, then: list[Line], other: list[Line], results: list[Result]) -> None:
        if not (then or other):
            return
        leaves = [leaf for r in results for leaf in r.leaves]
        name = self.emitter.fresh() if leaves else ""
        types = f" -> ({', '.join(map(leaf_text, leaves))})" if leaves else ""
        e = self.emitter
        e.emit(f"{self.results(name, leaves)}scf.if {c.name}{types} {{", None)
        e.splice(then)
        if other:
            e.emit("} else {", None)
            e.splice(other)
        e.emit("}", self.place)
        self.bind_results(name, results)

    def results(self, name: str, leaves: list[Leaf]) -> str:
        """Formats the left side of an op with these results."""
        count = f":{len(leaves)}" if len(leaves) > 1 else ""
        return f"{name}{count} = " if leaves else ""

    def bind_results(self, name: str, results: list[Result]) -> None:
        total, at = sum(len(r.leaves) for r in results), 0
        for r in results:
            values: list[Value] = []
            for leaf in r.leaves:
                values.append(value_of(leaf, name if total == 1 else f"{name}#{at}"))
                at += 1
            self.frame.variables[r.name] = rebuild(r.like, values)
        if len(results) == 1 and total == 1 and not results[0].name.startswith("$"):
            self.emitter.hint(name, results[0].name)

    def yield_results(self, values: list[tuple[Value | None, list[Leaf]]]) -> None:
        typed = [
            (self.as_leaf(part, leaf).name, leaf)
            for value, leaves in values
            for part, leaf in zip(parts(value, len(leaves)), leaves, strict=True)
        ]
        if typed:
            self.emit_yield(typed)

    def emit_yield(self, typed: list[tuple[str, Leaf]]) -> None:
        if not typed:
            return self.emit("scf.yield")
        names, types = ", ".join(n for n, _ in typed), ", ".join(leaf_text(leaf) for _, leaf in typed)
        return self.emit(f"scf.yield {names} : {types}")

    def as_leaf(self, value: Value, leaf: Leaf) -> Number:
        dtype, length = leaf
        if length is not None:
            return self.tile(value, length, dtype)
        if isinstance(value, Const) and not isinstance(value.py, bool) and dtype is BOOL:
            value = Const(bool(value.py))
        return self.scalar(value, dtype)

    # Types of what branches give values to.

    def leaf_of(self, value: Value) -> Leaf:
        if isinstance(value, Tile):
            return value.dtype, value.length
        if isinstance(value, Scalar):
            return value.dtype, None
        assert isinstance(value, Const)
        return self.default_dtype(value), None

    def leaves_of(self, value: Value) -> list[Leaf]:
        return [self.leaf_of(v) for v in flatten(value)]

    def _common(self, name: str, a: Value | None, b: Value | None) -> list[Leaf] | Undefined:
        """Returns the common types of a variable that both branches assign, or Undefined if there are none."""
        if a is None or b is None or not (is_defined(a) and is_defined(b)):
            return self._of_one_side(name, a, b)
        if not (is_carried(a) and is_carried(b)):
            line = self.place[1]
            if isinstance(a, Token) and isinstance(b, Token):
                return Undefined(f"'{name}' is a token of one branch of the if at line {line}")
            return Undefined(
                f"'{name}' is {a.describe()} or {b.describe()}, decided at run time by the if at line {line}; "
                "only numbers and tiles may depend on a run-time condition: "
                + ("let a number such as -1 stand for None" if Const(None) in (a, b) else "use each in its own branch")
            )
        if not same_structure(a, b):
            self.fail(f"{label_of(name)} is {a.describe()} in one branch and {b.describe()} in the other")
        return [self._join(name, x, y) for x, y in zip(flatten(a), flatten(b), strict=True)]

    def _of_one_side(self, name: str, a: Value | None, b: Value | None) -> list[Leaf] | Undefined:
        """A result is read where the function has returned, so one side's does; of other variables there is none."""
        value = a if is_defined(a) else b
        if name == RESULT and value is not None and is_defined(value):
            if is_carried(value):
                return self.leaves_of(value)
            if isinstance(value, Const) and value.py is None:
                return Undefined("")
            self.fail(
                f"what is returned is {value.describe()}, and whether it is returned is decided at run time",
                "return numbers or tiles, or decide by constants",
            )
        undefined = next((v for v in (a, b) if isinstance(v, Undefined) and v.why), None)
        return undefined or Undefined(
            f"'{name}' gets a value in only one branch of the if at line {self.place[1]}; give it one before the if"
        )

    def _join(self, name: str, a: Value, b: Value) -> Leaf:
        """Finds one type for two values of a variable. Python numbers adapt; typed values keep their type."""
        x, y = self.leaf_of(a), self.leaf_of(b)
        if x == y:
            return x
        if isinstance(a, Const) and isinstance(b, Const):
            return promote(x[0], y[0]), None
        if isinstance(a, Const) or isinstance(b, Const):
            weak, strong = (a, y) if isinstance(a, Const) else (b, x)
            assert isinstance(weak, Const)
            whole = isinstance(weak.py, int) and (strong[0].is_integer or isinstance(weak.py, bool))
            if strong[0].is_float or whole:
                return strong
        elif {x, y} == {(INDEX, None), (I64, None)}:
            return INDEX, None
        if self.guessing:
            return wider(x, y)
        self.fail(
            f"{label_of(name)} is {describe_leaf(x)} in one branch and {describe_leaf(y)} in the other: "
            + ("it has one type" if name == RESULT else "a variable has one type"),
            "convert one of them, as with f32(…) or .astype(f32), or use two variables",
        )

    # Values that a condition chooses.

    def chosen(self, condition: Value, then: Callable[[], Value], other: Callable[[], Value]) -> Value:
        """Selects the value of one of two branches."""

        def choose(value: Callable[[], Value]) -> None:
            self.frame.variables[CHOICE] = self.snapshot(value())

        saved = self.frame.variables.get(CHOICE)
        self.branch(condition, partial(choose, then), partial(choose, other), _EVERY_NAME)
        value = self.frame.variables.pop(CHOICE)
        if saved is not None:
            self.frame.variables[CHOICE] = saved
        if isinstance(value, Undefined):
            self.fail(value.why.replace(f"'{CHOICE}'", "the value").replace(" by the if", ""))
        return value

    def short_circuit(self, conjunction: bool, left: Value, right: Callable[[], Value]) -> Value:
        """Evaluates `left and right`, or `or`, where `left` is known only at run time, with Python's result.

        The right side is evaluated only if the left side does not decide, or unconditionally if that has no effects and
        cannot fail.
        """
        assert isinstance(left, Scalar)
        c, before, lines = self.condition(left), self.frame.variables, list[Line]()
        self.frame.variables = dict(before)
        with self.emitter.into(lines, 1):
            value = self.load_view(right())
        assigns = self.frame.variables != before
        self.frame.variables = before
        if assigns:
            then, other = (right, lambda: left) if conjunction else (lambda: left, right)
            return self.chosen(c, then, other)
        if not isinstance(value, Tile):
            self.number(value, f"an operand of '{'and' if conjunction else 'or'}'")
        is_test = left.dtype is BOOL and (self._is_bool(value) or isinstance(value, Tile))
        harmless = all(_is_speculatable(line.text) for line in lines)
        # A function may have had effects before it returned a constant or a tile; in a region nothing has.
        harmless |= self.in_region and isinstance(value, Const | Tile)
        if is_test and isinstance(value, Const) and harmless:
            return self.logical(conjunction, left, value)
        if harmless:
            for line in lines:
                line.depth -= 1
            self.emitter.splice(lines)
            if is_test:
                return self.logical(conjunction, left, value)
            return self.select(c, value, left) if conjunction else self.select(c, left, value)
        if self.in_region:
            self.fail("'and' and 'or' of what is not computed yet", "compute both sides first")
        known = self.constant(not conjunction, BOOL) if is_test else left
        return self._one_of(conjunction, c, known, value, lines)

    @staticmethod
    def _is_bool(value: Value) -> bool:
        return (
            isinstance(value, Scalar) and value.dtype is BOOL or isinstance(value, Const) and isinstance(value.py, bool)
        )

    def _one_of(self, conjunction: bool, c: Value, left: Value, right: Value, lines: list[Line]) -> Number:
        """Emits an scf.if for a right side that `lines` compute."""
        assert isinstance(c, Scalar)
        leaf = self.dtype_of_both(self.number(left), self.number(right)), self.leaf_of(right)[1]
        name, other = self.emitter.fresh(), list[Line]()
        for side, value in ((lines, right), (other, left)):
            with self.emitter.into(side, 1):
                self.emit_yield([(self.as_leaf(value, leaf).name, leaf)])
        then, otherwise = (lines, other) if conjunction else (other, lines)
        self.emitter.emit(f"{name} = scf.if {c.name} -> ({leaf_text(leaf)}) {{", None)
        self.emitter.splice(then)
        self.emitter.emit("} else {", None)
        self.emitter.splice(otherwise)
        self.emit("}")
        return value_of(leaf, name)


def _is_speculatable(line: str) -> bool:
    """Whether the op has no effects and cannot fail, so that it may run unconditionally."""
    op = line.split(" = ", 1)[-1].split(" ", 1)[0]
    return op.startswith(("arith.", "math.")) and "div" not in op and "rem" not in op
