"""Control flow: `if`, `for`, `while` and early exits become scf with the values that they change."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import control
from .arithmetic import Arithmetic, literal
from .dtypes import BOOL, F32, I64, INDEX, DType, promote
from .emit import Line
from .values import Const, Memory, Peers, Range, Scalar, Seq, Team, Tile, Token, Undefined, Value, View

Thunk = Callable[[], None]
# The type of a value that control flow carries: an element type, and a length for tiles.
Leaf = tuple[DType, int | None]

RETURN, RESULT, BREAK, CONTINUE = "$return", "$result", "$break", "$continue"


@dataclass
class Frame:
    """The names of one function while it is translated."""

    name: str
    variables: dict[str, Value]
    outer: Any  # a Frame, or a mapping of Python's names to objects
    file: str
    live: control.Liveness
    # Number of loops around, which tells their flags apart.
    loops: list[str] = field(default_factory=list)
    caller: tuple[Frame, ast.AST] | None = None


def leaf_text(leaf: Leaf) -> str:
    dtype, length = leaf
    return dtype.mlir if length is None else f"tensor<{length}x{dtype.mlir}>"


def describe_leaf(leaf: Leaf) -> str:
    dtype, length = leaf
    return dtype.name if length is None else f"tile of {length} {dtype.name}"


def _wider(a: Leaf, b: Leaf) -> Leaf:
    return promote(a[0], b[0]), a[1] if b[1] is None else b[1]


def flatten(value: Value) -> list[Value]:
    return [leaf for item in value.items for leaf in flatten(item)] if isinstance(value, Seq) else [value]


def rebuild(like: Value, leaves: list[Value]) -> Value:
    """`like` with its leaves replaced, in order; they are taken out of the list."""
    if isinstance(like, Seq):
        return Seq(tuple(rebuild(item, leaves) for item in like.items))
    return leaves.pop(0)


def is_carried(value: Value) -> bool:
    """Whether each part of the value can be passed between regions."""
    return all(isinstance(v, Scalar | Tile) or isinstance(v, Const) and v.is_number for v in flatten(value))


def same_structure(a: Value, b: Value) -> bool:
    if isinstance(a, Seq) or isinstance(b, Seq):
        return (
            isinstance(a, Seq)
            and isinstance(b, Seq)
            and len(a.items) == len(b.items)
            and all(map(same_structure, a.items, b.items))
        )
    return True


@dataclass
class Carried:
    """A variable that a loop changes: its value before, and the type that it has all the while."""

    name: str
    before: Value
    leaves: list[Leaf | None]
    # Which leaves are Python numbers before the loop, so that their type may still follow from the loop.
    weak: list[bool]


class Flow(Arithmetic):
    """The part of the compiler that knows branches and loops."""

    frame: Frame
    # Above 0 while types of a loop around are being found: what does not agree yet may agree with the next guess.
    guessing = 0

    def block(self, body: Sequence[ast.stmt]) -> None:
        raise NotImplementedError

    def expression(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value) -> None:
        raise NotImplementedError

    # Exits.

    def _flags(self) -> list[str]:
        """The flags that say whether control has left the statements that come."""
        return [RETURN, *self.frame.loops[-1:], CONTINUE] if self.frame.loops else [RETURN]

    def exits(self) -> Value:
        """Whether control has left: false, true, or a value of the IR."""
        result: Value = Const(False)
        for name in self._flags():
            flag = self.frame.variables.get(name, Const(False))
            if isinstance(flag, Const):
                if flag.py:
                    return Const(True)
            else:
                result = flag if isinstance(result, Const) else self.binary(ast.BitOr(), result, flag)
        return result

    def has_left(self) -> bool | None:
        """Whether control has left, where that is known."""
        flags = [self.frame.variables.get(name, Const(False)) for name in self._flags()]
        if any(flag == Const(True) for flag in flags):
            return True
        return False if all(isinstance(flag, Const) for flag in flags) else None

    def unless_left(self, rest: Thunk, live: set[str]) -> None:
        """Runs `rest` where control has not left."""
        left = self.exits()
        if isinstance(left, Const):
            if not left.py:
                rest()
        else:
            self.branch(self.logical_not(left), rest, self._has_left, live)

    def _has_left(self) -> None:
        """The other side: control has left, by the one flag that may say so."""
        variables = self.frame.variables
        open_ = [name for name in self._flags() if not isinstance(variables.get(name, Const(False)), Const)]
        if len(open_) == 1:
            variables[open_[0]] = Const(True)

    # Branches.

    def branch(self, condition: Value, then: Thunk, other: Thunk, live: set[str]) -> None:
        """`if`: only the branch that is meant when the condition is known, else both and what they change."""
        c = self.condition(condition)
        if isinstance(c, Const):
            return then() if c.py else other()
        place, before = self.place, self.frame.variables
        sides: list[tuple[list[Line], dict[str, Value]]] = []
        for thunk in (then, other):
            lines: list[Line] = []
            self.frame.variables = dict(before)
            with self.emitter.into(lines, 1):
                thunk()
            sides.append((lines, self.frame.variables))
        self.frame.variables, self.place = before, place
        self._merge(c, sides, live)
        return None

    def _merge(self, c: Scalar, sides: list[tuple[list[Line], dict[str, Value]]], live: set[str]) -> None:
        (then_lines, then), (else_lines, other) = sides
        yields: list[tuple[str, list[Leaf], Value]] = []
        before = dict(self.frame.variables)
        _forget_returned(then, other, before)
        for name in sorted(then.keys() | other.keys()):
            a, b = (side.get(name, _unset(name, side)) for side in (then, other))
            if a is not None and a == b:
                self.frame.variables[name] = a
            elif not name.startswith("$") and name not in live:
                self.frame.variables[name] = _NEVER_READ
            elif isinstance(a, Const) and isinstance(b, Const) and a.py is True and b.py is False:
                self.frame.variables[name] = c
            elif isinstance(a, Const) and isinstance(b, Const) and a.py is False and b.py is True:
                self.frame.variables[name] = self.logical_not(c)
            else:
                merged = self._common(name, a, b)
                if isinstance(merged, Undefined) and _NEVER_READ in (a, b):
                    merged = self._of_one_side(a if b is _NEVER_READ else b) or merged
                if isinstance(merged, Undefined):
                    self.frame.variables[name] = merged
                else:
                    yields.append((name, merged, a if _is_defined(a) else b))  # type: ignore[arg-type]
        leaves = [leaf for _, ls, _ in yields for leaf in ls]
        for lines, variables in sides:
            with self.emitter.into(lines, 1):
                self._yield([(variables.get(n), ls) for n, ls, _ in yields], "scf.yield")
        self._emit_if(c, then_lines, else_lines, leaves, yields)

    def _of_one_side(self, value: Value | None) -> list[Leaf] | None:
        """The types of a variable that counts on one side alone, for the other has returned."""
        if not _is_defined(value) or value is None or not is_carried(value):
            return None
        return [self.leaf_of(v) for v in flatten(value)]

    def _emit_if(
        self,
        c: Scalar,
        then: list[Line],
        other: list[Line],
        leaves: list[Leaf],
        yields: list[tuple[str, list[Leaf], Value]],
    ) -> None:
        if not (then or other):
            return
        name = self.emitter.fresh() if leaves else ""
        head, types = self._results(name, leaves)
        e = self.emitter
        e.emit(f"{head}scf.if {c.name}{f' -> ({types})' if leaves else ''} {{", None)
        e.splice(then)
        if other:
            e.emit("} else {", None)
            e.splice(other)
        e.emit("}", self.place)
        self._bind_results(name, [(n, like, ls) for n, ls, like in yields], len(leaves))

    def _results(self, name: str, leaves: list[Leaf]) -> tuple[str, str]:
        types = ", ".join(map(leaf_text, leaves))
        count = f":{len(leaves)}" if len(leaves) > 1 else ""
        return (f"{name}{count} = " if leaves else "", types)

    def _bind_results(self, name: str, groups: list[tuple[str, Value, list[Leaf]]], total: int) -> None:
        at = 0
        for variable, like, leaves in groups:
            values: list[Value] = []
            for leaf in leaves:
                values.append(_value_of(leaf, name if total == 1 else f"{name}#{at}"))
                at += 1
            self.frame.variables[variable] = rebuild(like, values)
        if len(groups) == 1 and total == 1 and not groups[0][0].startswith("$"):
            self.emitter.hint(name, groups[0][0])

    def _yield(self, values: list[tuple[Value | None, list[Leaf]]], op: str) -> None:
        """Converts and yields; a result that a branch does not have is yielded as zeros that nobody reads."""
        names, types = [], []
        for value, leaves in values:
            parts = flatten(value) if _is_defined(value) else [Const(0)] * len(leaves)  # type: ignore[arg-type]
            for part, leaf in zip(parts, leaves, strict=True):
                names.append(self.as_leaf(part, leaf).name)
                types.append(leaf_text(leaf))
        if names:
            self.emitter.emit(f"{op} {', '.join(names)} : {', '.join(types)}", self.place)

    def as_leaf(self, value: Value, leaf: Leaf) -> Scalar | Tile:
        dtype, length = leaf
        if length is not None:
            return self.tile(value, length, dtype)
        if isinstance(value, Const) and not isinstance(value.py, bool) and dtype is BOOL:
            value = Const(bool(value.py))
        return self.scalar(value, dtype)

    def _common(self, name: str, a: Value | None, b: Value | None) -> Any:
        """The types of a variable that two branches have given values to; Undefined where there are none."""
        if not (_is_defined(a) and _is_defined(b)):
            if name == RESULT and (_is_defined(a) or _is_defined(b)):
                value = a if _is_defined(a) else b
                assert value is not None
                if is_carried(value):
                    return [self.leaf_of(v) for v in flatten(value)]
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
        assert a is not None and b is not None
        if not (is_carried(a) and is_carried(b)):
            if isinstance(a, Token) and isinstance(b, Token):
                return Undefined(f"'{name}' is a token of one branch of the if at line {self.place[1]}")
            return Undefined(
                f"'{name}' is {a.describe()} or {b.describe()}, decided at run time by the if at line {self.place[1]}; "
                "only numbers and tiles may depend on a run-time condition: "
                + ("let a number such as -1 stand for None" if Const(None) in (a, b) else "use each in its own branch")
            )
        if not same_structure(a, b):
            self.fail(f"'{name}' is {a.describe()} in one branch and {b.describe()} in the other")
        return [
            self._join(name, x, y, "in one branch", "in the other") for x, y in zip(flatten(a), flatten(b), strict=True)
        ]

    def leaf_of(self, value: Value) -> Leaf:
        if isinstance(value, Tile):
            return value.dtype, value.length
        if isinstance(value, Scalar):
            return value.dtype, None
        assert isinstance(value, Const)
        return self.default_dtype(value), None

    def _join(self, name: str, a: Value, b: Value, where_a: str, where_b: str) -> Leaf:
        """One type for two values of a variable. Python numbers follow; what has a type keeps it."""
        weak_a, weak_b = isinstance(a, Const), isinstance(b, Const)
        x, y = self.leaf_of(a), self.leaf_of(b)
        if x == y:
            return x
        if weak_a and weak_b:
            return promote(x[0], y[0]), None
        if weak_a or weak_b:
            weak, strong = (a, y) if weak_a else (b, x)
            assert isinstance(weak, Const)
            fits = (
                strong[0].is_float or isinstance(weak.py, int) and (strong[0].is_integer or isinstance(weak.py, bool))
            )
            if fits:
                return strong
        elif {x, y} == {(INDEX, None), (I64, None)}:
            return INDEX, None
        if self.guessing:
            return _wider(x, y)
        self.fail(
            f"'{name}' is {describe_leaf(x)} {where_a} and {describe_leaf(y)} {where_b}: a variable has one type",
            "convert one of them, as with f32(…) or .astype(f32), or use two variables",
        )

    # Loops.

    def carried_by(self, node: ast.For | ast.While) -> list[Carried]:
        """The variables that the loop changes and somebody reads afterwards."""
        names = control.assigned(node.body) | (control.assigned([node.target]) if isinstance(node, ast.For) else set())
        wanted = names & (self.frame.live.head[id(node)] | self.frame.live.after[id(node)])
        result = []
        for name in sorted(wanted):
            value = self.frame.variables.get(name)
            if not _is_defined(value):
                continue
            assert value is not None
            if not is_carried(value):
                self.frame.variables[name] = Undefined(
                    f"'{name}' is {value.describe()} before the loop at line {node.lineno} and another in it; "
                    "only numbers and tiles may change in a loop"
                )
                continue
            result.append(self._carried(name, value))
        if control.returns(node.body):
            result.append(self._carried(RETURN, Const(False)))
            if not isinstance(self.frame.variables.get(RESULT), Const):
                result.append(Carried(RESULT, Undefined(""), [], []))
        return result

    def _carried(self, name: str, value: Value) -> Carried:
        leaves = flatten(value)
        return Carried(name, value, [self.leaf_of(v) for v in leaves], [isinstance(v, Const) for v in leaves])

    def settle(
        self, node: ast.stmt, carried: list[Carried], attempt: Callable[[list[Carried]], dict[str, Value]]
    ) -> list[Carried]:
        """Translates the body until the types of what it changes agree with what it was given.

        `attempt` binds each variable to an argument of its type, translates the body and returns the variables at its
        end. What was emitted is dropped; the caller emits it again with the types found.
        """
        for _ in range(8):
            saved, lines, place = dict(self.frame.variables), self.emitter.lines, self.place
            self.guessing += 1
            with self.emitter.into([]):
                after = attempt(carried)
            self.guessing -= 1
            self.frame.variables, self.emitter.lines, self.place = saved, lines, self.at(node)
            settled = True
            kept = []
            for c in carried:
                verdict = self._settle_one(c, after.get(c.name), node)
                settled &= verdict is c
                if verdict is not None:
                    kept.append(verdict)
            self.place = place
            if settled:
                return carried
            carried = kept
        self.fail("the types of what the loop changes do not settle", "give the variables their types before the loop")

    def _settle_one(self, c: Carried, after: Value | None, node: ast.stmt) -> Carried | None:
        """The variable as the body leaves it: unchanged `c`, of another type, or None when it need not be carried."""
        if c.name == RESULT and not _is_defined(c.before):
            if not _is_defined(after) or after == Const(None):
                return c if c.leaves or not _is_defined(after) and c.leaves else None
            assert after is not None
            if not is_carried(after):
                self.fail(f"what is returned in the loop is {after.describe()}", "return numbers or tiles")
            leaves: list[Leaf | None] = [self.leaf_of(v) for v in flatten(after)]
            return c if leaves == c.leaves else Carried(RESULT, rebuild_undefined(after), leaves, [False] * len(leaves))
        if after is _NEVER_READ:
            return c
        if not _is_defined(after):
            why = (
                after.why
                if isinstance(after, Undefined)
                else f"'{c.name}' has no value at the end of the loop at line {node.lineno}"
            )
            self.fail(why)
        assert after is not None
        if not is_carried(after) or not same_structure(c.before, after):
            self.fail(f"'{c.name}' is {c.before.describe()} before the loop and {after.describe()} after it", node=node)
        leaves = [
            self._settle_leaf(c.name, leaf, weak, v)
            for leaf, weak, v in zip(c.leaves, c.weak, flatten(after), strict=True)
        ]
        return c if leaves == c.leaves else Carried(c.name, c.before, leaves, c.weak)

    def _settle_leaf(self, name: str, leaf: Leaf | None, weak: bool, after: Value) -> Leaf:
        assert leaf is not None
        found = self.leaf_of(after)
        if found == leaf:
            return leaf
        if isinstance(after, Const):
            if leaf[0].is_float or leaf[0].is_integer and isinstance(after.py, int):
                return leaf
            if weak:
                return promote(leaf[0], found[0]), leaf[1]
        elif weak and not (leaf[0] is F32 and not found[0].is_float):
            return found
        elif {leaf, found} == {(INDEX, None), (I64, None)}:
            return leaf
        if self.guessing:
            return _wider(leaf, found)
        self.fail(
            f"'{name}' is {describe_leaf(leaf)} before the loop and {describe_leaf(found)} after its body: "
            "a variable has one type",
            f"begin with {found[0].name}(…), or convert at the end of the body",
        )

    def bind(self, carried: list[Carried], name: Callable[[], str]) -> list[tuple[str, Leaf]]:
        """Gives each carried variable a new name of the IR; returns names and types in order."""
        made: list[tuple[str, Leaf]] = []
        for c in carried:
            values: list[Value] = []
            for leaf in c.leaves:
                assert leaf is not None
                made.append((name(), leaf))
                values.append(_value_of(leaf, made[-1][0]))
                if not c.name.startswith("$"):
                    self.emitter.hint(made[-1][0], c.name)
            if c.name == RESULT and not values:
                continue
            self.frame.variables[c.name] = rebuild(c.before, values)
        return made

    def _initial(self, carried: list[Carried]) -> list[str]:
        names = []
        for c in carried:
            values = flatten(c.before) if _is_defined(c.before) else [Const(0)] * len(c.leaves)
            for value, leaf in zip(values, c.leaves, strict=True):
                assert leaf is not None
                value = Const(0) if isinstance(value, Undefined) else value
                names.append(self.as_leaf(value, leaf).name)
        return names

    def _after(self, carried: list[Carried], name: str) -> None:
        total = sum(len(c.leaves) for c in carried)
        groups = [(c.name, c.before, [leaf for leaf in c.leaves if leaf]) for c in carried if c.leaves]
        self._bind_results(name, groups, total)

    def loop_body(self, node: ast.For | ast.While, flag: str, start: Thunk) -> None:
        """One round: `continue` and `break` set their flags for what follows them."""
        frame = self.frame
        saved = frame.variables.get(CONTINUE)
        frame.variables[CONTINUE] = Const(False)
        frame.loops.append(flag)
        start()
        self.block(node.body)
        frame.loops.pop()
        frame.variables.pop(CONTINUE, None)
        if saved is not None:
            frame.variables[CONTINUE] = saved

    def forget(self, node: ast.For | ast.While, carried: list[Carried]) -> None:
        """What the loop gives a value to without carrying it has none behind it: the loop may not run."""
        kept = {c.name for c in carried}
        names = control.assigned(node.body) | (control.assigned([node.target]) if isinstance(node, ast.For) else set())
        live = self.frame.live.after[id(node)] | self.frame.live.head[id(node)]
        for name in names - kept:
            if name not in live:
                self.frame.variables[name] = _NEVER_READ
            elif not isinstance(self.frame.variables.get(name), Undefined):
                self.frame.variables[name] = Undefined(
                    f"'{name}' gets its value inside the loop at line {node.lineno}, which may not run; "
                    "give it one before the loop"
                )

    def while_loop(self, node: ast.While) -> None:
        if isinstance(test := self._constant_test(node.test), Const) and not test.py:
            return self.block(node.orelse)

        def test_condition() -> Value:
            return self.expression(node.test)

        self._general_loop(node, test_condition, lambda: None, lambda: [], [])
        return None

    def _constant_test(self, node: ast.expr) -> Value | None:
        return Const(node.value) if isinstance(node, ast.Constant) else None

    def _general_loop(
        self,
        node: ast.For | ast.While,
        test: Callable[[], Value],
        start: Thunk,
        step: Callable[[], list[Value]],
        extra: list[Carried],
    ) -> None:
        """scf.while: carried variables, and flags for `break` and `return` that its condition looks at."""
        flag = f"{BREAK}{len(self.frame.loops)}"
        carried = extra + self.carried_by(node)
        if control.leaves_loop(node.body, ast.Break):
            carried.append(self._carried(flag, Const(False)))

        def enter() -> None:
            for name in (flag, RETURN):  # not left: the condition has looked
                if any(c.name == name for c in carried):
                    self.frame.variables[name] = Const(False)

        def attempt(given: list[Carried]) -> dict[str, Value]:
            self.bind(given, self.emitter.fresh)
            self.condition(test(), "the condition of while")
            enter()
            self.loop_body(node, flag, start)
            self._step(extra, step)
            return dict(self.frame.variables)

        before = dict(self.frame.variables)
        carried = self.settle(node, carried, attempt)
        shelf = self._shelve(carried)
        inits = [n for n, (_, memory) in zip(self._initial(carried), shelf, strict=True) if memory is None]
        leaves = [leaf for leaf, memory in shelf if memory is None]
        types = ", ".join(map(leaf_text, leaves))
        name = self.emitter.fresh() if leaves else ""
        head, _ = self._results(name, leaves)
        lines: list[Line] = []
        with self.emitter.into(lines, 1):
            made = self._bind_shelved(carried, shelf)
            self._test(test, carried, made, types)
        inner: list[Line] = []
        with self.emitter.into(inner, 1):
            arguments = self._bind_shelved(carried, shelf)
            enter()
            self.loop_body(node, flag, start)
            self._step(extra, step)
            self._yield_shelved(carried, shelf)
        self.place = self.at(node)
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(made, inits, strict=True))
        signature = f" : ({types}) -> ({types})"
        self.emitter.emit(f"{head}scf.while{f' ({pairs})' if pairs else ''}{signature} {{", None)
        self.emitter.splice(lines)
        self.emitter.emit("} do {", None)
        if arguments:
            typed = zip(arguments, leaves, strict=True)
            self.emitter.emit("^bb0(" + ", ".join(f"{n}: {leaf_text(leaf)}" for n, leaf in typed) + "):", None)
        self.emitter.splice(inner)
        self.emitter.emit("}", self.place)
        self.frame.variables = before
        results = iter([name] if len(leaves) == 1 else [f"{name}#{i}" for i in range(len(leaves))])
        self.bind(carried, self._namer(shelf, lambda: next(results)))
        for c in extra:
            self.frame.variables.pop(c.name, None)
        self.forget(node, carried)
        self._otherwise(node, flag)

    # scf.while carries no tiles: they lie in scratch memory from round to round.

    def _shelve(self, carried: list[Carried]) -> list[tuple[Leaf, Memory | None]]:
        """For each leaf the memory it lies in, if it is a tile; the tile before the loop is put there."""
        shelf: list[tuple[Leaf, Memory | None]] = []
        owners = [(c, leaf) for c in carried for leaf in c.leaves]
        for name, (owner, leaf) in zip(self._initial(carried), owners, strict=True):
            assert leaf is not None
            if leaf[1] is None:
                shelf.append((leaf, None))
                continue
            if leaf[0] is BOOL:
                self.fail(
                    f"'{owner.name}' is a tile of bool, which a loop with break, or while, cannot carry",
                    "keep it as i8",
                )
            memory = Memory(self.emitter.fresh(), (leaf[1],), leaf[0], owner.name)
            self.emitter.hint(memory.name, f"{owner.name.strip('$')}_shelf")
            self.emitter.prologue.append(Line(f"{memory.name} = comms.scratch : {memory.type}", 2, self.place))
            self._put(memory, name, leaf)
            shelf.append((leaf, memory))
        return shelf

    def _put(self, memory: Memory, name: str, leaf: Leaf) -> None:
        zero = self.constant(0, INDEX).name
        self.emitter.emit(
            f"comms.tile_store {name}, {memory.name}[{zero}] : {leaf_text(leaf)}, {memory.type}", self.place
        )

    def _namer(self, shelf: list[tuple[Leaf, Memory | None]], fresh: Callable[[], str]) -> Callable[[], str]:
        """Names for leaves in order: a load for those that lie in memory."""
        places = iter(shelf)

        def name() -> str:
            leaf, memory = next(places)
            if memory is None:
                return fresh()
            zero = self.constant(0, INDEX).name
            return self.result(f"comms.tile_load {memory.name}[{zero}] : {memory.type} -> {leaf_text(leaf)}", "")

        return name

    def _bind_shelved(self, carried: list[Carried], shelf: list[tuple[Leaf, Memory | None]]) -> list[str]:
        made = self.bind(carried, self._namer(shelf, self.emitter.fresh))
        return [name for (name, _), (_, memory) in zip(made, shelf, strict=True) if memory is None]

    def _yield_shelved(self, carried: list[Carried], shelf: list[tuple[Leaf, Memory | None]]) -> None:
        names, types = [], []
        parts: list[Value] = []
        for c in carried:
            end = self.frame.variables.get(c.name)
            parts += flatten(end) if _is_defined(end) else [Const(0)] * len(c.leaves)  # type: ignore[arg-type]
        for part, (leaf, memory) in zip(parts, shelf, strict=True):
            name = self.as_leaf(part, leaf).name
            if memory is not None:
                self._put(memory, name, leaf)
            else:
                names.append(name)
                types.append(leaf_text(leaf))
        self.emitter.emit(f"scf.yield {', '.join(names)} : {', '.join(types)}" if names else "scf.yield", self.place)

    def at(self, node: ast.AST) -> Any:
        raise NotImplementedError

    def _test(self, test: Callable[[], Value], carried: list[Carried], names: list[str], types: str) -> None:
        """The condition: not left, and then what the programmer wrote."""
        left: Value = Const(False)
        for c in carried:
            if c.name.startswith(BREAK) or c.name == RETURN:
                flag = self.frame.variables[c.name]
                left = flag if isinstance(left, Const) else self.binary(ast.BitOr(), left, flag)
        if isinstance(left, Const):
            go = self.truth(test())
        else:
            go = self.truth(self.short_circuit(True, self.logical_not(left), lambda: self.truth(test())))
        operands = f" {', '.join(names)} : {types}" if names else ""
        self.emitter.emit(f"scf.condition({go.name}){operands}", self.place)

    def short_circuit(self, conjunction: bool, left: Scalar | Value, right: Callable[[], Value]) -> Value:
        raise NotImplementedError

    def _step(self, extra: list[Carried], step: Callable[[], list[Value]]) -> None:
        for c, value in zip(extra, step(), strict=True):
            self.frame.variables[c.name] = value

    def _otherwise(self, node: ast.For | ast.While, flag: str) -> None:
        broken = self.frame.variables.pop(flag, Const(False))
        if node.orelse:
            body = node.orelse
            live = self.frame.live.after[id(node)]
            self.unless_left(lambda: self.branch(broken, lambda: None, lambda: self.block(body), live), live)

    def for_loop(self, node: ast.For) -> None:
        iterable = self.expression(node.iter)
        if isinstance(iterable, Range):
            self._for_range(node, iterable)
        elif isinstance(iterable, Peers):
            self._for_peers(node, iterable)
        elif isinstance(iterable, Seq) or isinstance(iterable, Const) and isinstance(iterable.py, list | tuple | range):
            items = iterable.items if isinstance(iterable, Seq) else tuple(Const(x) for x in iterable.py)
            self._unrolled(node, list(items))
        else:
            self.fail(
                f"a for runs over range(…), the peers of a team or a tuple, not over {iterable.describe()}",
                "write for i in range(len(…)) and index",
            )

    def _unrolled(self, node: ast.For, items: list[Value]) -> None:
        flag = f"{BREAK}{len(self.frame.loops)}"
        live = self.frame.live.head[id(node)]
        self.frame.variables[flag] = Const(False)

        def run(k: int) -> None:
            if k == len(items):
                return
            self.loop_body(node, flag, lambda: self.assign(node.target, items[k]))
            broken = self.frame.variables[flag]
            self.unless_left(lambda: self.branch(broken, lambda: None, lambda: run(k + 1), live), live)

        run(0)
        self._otherwise(node, flag)

    def _for_range(self, node: ast.For, r: Range) -> None:
        start, stop, step = (self.number(v, "an argument of range") for v in (r.start, r.stop, r.step))
        lower, upper = self.index(start, "the start of range"), self.index(stop, "the end of range")
        down = isinstance(step, Const) and step.py < 0
        if isinstance(step, Const) and step.py == 0:
            self.fail("the step of range is 0")
        if not isinstance(step, Const) and not getattr(step, "nonneg", False):
            self.fail(
                "the step of range is not known to be positive", "use a constant step, and multiply inside the loop"
            )
        size = self.index(Const(abs(step.py)) if isinstance(step, Const) else step, "the step of range")
        if not isinstance(step, Const):
            self.check_step(size)
        if down:  # count upwards, and number downwards
            span = self.binary(ast.Sub(), lower, upper)
            rounds = self.binary(ast.FloorDiv(), self.binary(ast.Add(), span, Const(abs(step.py) - 1)), size)  # type: ignore[union-attr]
            first, zero = lower, self.constant(0, INDEX)

            def number(k: Scalar) -> Value:
                return self.binary(ast.Sub(), first, self.binary(ast.Mult(), k, size))

            return self._for_count(node, zero, self.index(rounds, "range"), self.constant(1, INDEX), number)
        return self._for_count(node, lower, upper, size, lambda i: i)

    def check_step(self, step: Scalar) -> None:
        one, zero = self.constant(1, INDEX), self.constant(0, INDEX)
        self.emitter.emit(f'comms.check_bounds "step of range" {one.name}, {zero.name} in {step.name}', self.place)

    def _for_count(
        self, node: ast.For, lower: Scalar, upper: Scalar, step: Scalar, number: Callable[[Scalar], Value]
    ) -> None:
        if control.leaves_loop(node.body, ast.Break) or control.returns(node.body):
            return self._leavable_for(node, lower, upper, step, number)
        carried = self.carried_by(node)

        def body(given: list[Carried]) -> tuple[str, list[tuple[str, Leaf]]]:
            iv = self.emitter.fresh()
            made = self.bind(given, self.emitter.fresh)
            variable = Scalar(iv, INDEX, lower.nonneg)
            self.loop_body(node, "", lambda: self.assign(node.target, number(variable)))
            return iv, made

        def attempt(given: list[Carried]) -> dict[str, Value]:
            body(given)
            return dict(self.frame.variables)

        before = dict(self.frame.variables)
        carried = self.settle(node, carried, attempt)
        inits = self._initial(carried)
        lines: list[Line] = []
        with self.emitter.into(lines, 1):
            iv, made = body(carried)
            self._yield([(self.frame.variables.get(c.name), [x for x in c.leaves if x]) for c in carried], "scf.yield")
        if isinstance(node.target, ast.Name):
            self.emitter.hint(iv, node.target.id)
        leaves = [leaf for c in carried for leaf in c.leaves if leaf]
        name = self.emitter.fresh() if leaves else ""
        head, types = self._results(name, leaves)
        pairs = ", ".join(f"{a} = {b}" for (a, _), b in zip(made, inits, strict=True))
        tail = f" iter_args({pairs}) -> ({types})" if pairs else ""
        self.place = self.at(node)
        self.emitter.emit(f"{head}scf.for {iv} = {lower.name} to {upper.name} step {step.name}{tail} {{", None)
        self.emitter.splice(lines)
        self.emitter.emit("}", self.place)
        self.frame.variables = before
        self._after(carried, name)
        self.forget(node, carried)
        self._otherwise(node, "")
        return None

    def _leavable_for(
        self, node: ast.For, lower: Scalar, upper: Scalar, step: Scalar, number: Callable[[Scalar], Value]
    ) -> None:
        counter = f"$i{len(self.frame.loops)}"
        extra = [Carried(counter, lower, [(INDEX, None)], [False])]

        def current() -> Scalar:
            value = self.frame.variables[counter]
            assert isinstance(value, Scalar)
            return Scalar(value.name, INDEX, lower.nonneg)

        self._general_loop(
            node,
            lambda: self.compare(ast.Lt(), current(), upper),
            lambda: self.assign(node.target, number(current())),
            lambda: [self.binary(ast.Add(), current(), step)],
            extra,
        )

    def _for_peers(self, node: ast.For, peers: Peers) -> None:
        leaves = control.leaves_loop(node.body, ast.Break) or control.returns(node.body)
        if not leaves and not self.carried_by(node):
            return self._visit_peers(node, peers)
        me, size = self.team_number("rank", peers.team), self.team_number("size", peers.team)

        def number(k: Scalar) -> Value:
            k = Scalar(k.name, INDEX, True)
            away = self.binary(ast.Sub(), size, k) if peers.reversed else k
            away = Scalar(self.index(away, "a rank").name, INDEX, True)
            return self.binary(ast.Mod(), self.binary(ast.Add(), me, away), size)

        one = self.constant(1, INDEX)
        return self._for_count(node, one, self.index(size, "the size"), one, number)

    def team_number(self, which: str, team: Team) -> Value:
        raise NotImplementedError

    def _visit_peers(self, node: ast.For, peers: Peers) -> None:
        if not isinstance(node.target, ast.Name):
            self.fail("the variable of a loop over peers is one name", node=node.target)
        name = self.emitter.fresh()
        self.emitter.hint(name, node.target.id)
        before = dict(self.frame.variables)
        lines: list[Line] = []
        with self.emitter.into(lines, 1):
            self.loop_body(node, "", lambda: self.assign(node.target, Scalar(name, INDEX, True)))
        self.frame.variables = before
        self.place = self.at(node)
        backwards = " reversed" if peers.reversed else ""
        self.emitter.emit(f"comms.for_peers {peers.team.name}{backwards} as {name} {{", None)
        self.emitter.splice(lines)
        self.emitter.emit("}", self.place)
        self.forget(node, [])
        self._otherwise(node, "")


# What a variable is where nothing that may follow reads it.
_NEVER_READ = Undefined("it has no value here")


def _unset(name: str, side: dict[str, Value]) -> Value | None:
    """What a variable is that a branch does not have."""
    if name.startswith((RETURN, BREAK, CONTINUE)):
        return Const(False)
    return _NEVER_READ if _left(side) else None


def _left(side: dict[str, Value]) -> bool:
    """Whether control has left for sure."""
    return any(v == Const(True) for name, v in side.items() if name.startswith((RETURN, BREAK, CONTINUE)))


def _forget_returned(then: dict[str, Value], other: dict[str, Value], before: dict[str, Value]) -> None:
    """Where one branch has returned, the other one's values count."""
    gone = [side.get(RETURN) == Const(True) for side in (then, other)]
    if gone[0] == gone[1]:
        return
    left, stays = (then, other) if gone[0] else (other, then)
    for name, value in stays.items():
        if not name.startswith("$"):
            left[name] = value if before.get(name) == value else _NEVER_READ


def _is_defined(value: Value | None) -> bool:
    if value is None or isinstance(value, Undefined):
        return False
    return not isinstance(value, Seq) or not any(isinstance(v, Undefined) for v in flatten(value))


def _value_of(leaf: Leaf, name: str) -> Scalar | Tile:
    dtype, length = leaf
    return Scalar(name, dtype) if length is None else Tile(name, dtype, length)


def rebuild_undefined(value: Value) -> Value:
    """The shape of a result that is not there yet."""
    return rebuild(value, [Undefined("") for _ in flatten(value)])


__all__ = ["BREAK", "CONTINUE", "RESULT", "RETURN", "Flow", "Frame", "View", "literal"]
