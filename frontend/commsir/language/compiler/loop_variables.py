"""Variables that loops change: which ones are carried between iterations, and their types."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..dtypes import BOOL, F32, I64, INDEX, promote
from . import analysis
from .branches import Branches, Result, Thunk
from .region_values import (
    CONTINUE,
    NEVER_READ,
    RESULT,
    RETURN,
    Leaf,
    LoopVariable,
    describe_leaf,
    flatten,
    is_carried,
    is_defined,
    parts,
    rebuild,
    same_structure,
    value_of,
    wider,
)
from .values import Const, Undefined, Value

Loop = ast.For | ast.While


def _changed(node: Loop) -> set[str]:
    return analysis.assigned([*node.body, node.target] if isinstance(node, ast.For) else node.body)


class LoopVariables(Branches):
    """The layer that knows what loops carry."""

    def carried_by(self, node: Loop) -> list[LoopVariable]:
        """The variables that the loop changes and somebody reads afterwards."""
        wanted = _changed(node) & (self.frame.live.head[id(node)] | self.frame.live.after[id(node)])
        result = []
        for name in sorted(wanted):
            value = self.frame.variables.get(name)
            if value is None or not is_defined(value):
                continue
            if is_carried(value):
                result.append(self.carried(name, value))
            else:
                self.frame.variables[name] = Undefined(
                    f"'{name}' is {value.describe()} before the loop at line {node.lineno} and another in it; "
                    "only numbers and tiles may change in a loop"
                )
        if analysis.returns(node.body):
            result.append(self.carried(RETURN, Const(False)))
            if not isinstance(self.frame.variables.get(RESULT), Const):
                result.append(LoopVariable(RESULT, Undefined(""), [], []))
        return result

    def carried(self, name: str, value: Value) -> LoopVariable:
        return LoopVariable(name, value, self.leaves_of(value), [isinstance(v, Const) for v in flatten(value)])

    # Types.

    def infer_carried_types(
        self, node: ast.stmt, carried: list[LoopVariable], attempt: Callable[[list[LoopVariable]], object]
    ) -> list[LoopVariable]:
        """Translates the body until the types of what it changes agree with what it was given.

        `attempt` binds each variable to an argument of its type and translates the body. What it emits is dropped; the
        caller emits it again with the types found.
        """
        for _ in range(8):
            saved, place, channels = dict(self.frame.variables), self.place, self.channels
            self.guessing += 1
            with self.emitter.into([]):
                attempt(carried)
            self.guessing -= 1
            self.channels = channels
            after, self.frame.variables = self.frame.variables, saved
            self.place = self.at(node)
            found = [self._infer_variable(c, after.get(c.name), node) for c in carried]
            self.place = place
            if all(new is old for new, old in zip(found, carried, strict=True)):
                return carried
            carried = [c for c in found if c is not None]
        self.fail(
            "the types of the variables that the loop changes do not converge",
            "give the variables their types before the loop",
        )

    def _infer_variable(self, c: LoopVariable, after: Value | None, node: ast.stmt) -> LoopVariable | None:
        """Returns the variable after the body: unchanged, of another type, or None if it need not be carried."""
        if c.name == RESULT and not is_defined(c.before):
            return self._infer_result(c, after)
        if after is NEVER_READ:
            return c
        if after is None or not is_defined(after):
            nothing = f"'{c.name}' has no value at the end of the loop at line {node.lineno}"
            self.fail(after.why if isinstance(after, Undefined) else nothing)
        if not is_carried(after) or not same_structure(c.before, after):
            self.fail(f"'{c.name}' is {c.before.describe()} before the loop and {after.describe()} after it", node=node)
        leaves = [
            self._infer_leaf(c.name, leaf, weak, v)
            for leaf, weak, v in zip(c.leaves, c.weak, flatten(after), strict=True)
        ]
        return c if leaves == c.leaves else LoopVariable(c.name, c.before, leaves, c.weak)

    def _infer_result(self, c: LoopVariable, after: Value | None) -> LoopVariable | None:
        """Gives a value returned inside a loop a placeholder, once the body has shown its type."""
        if after is None or not is_defined(after) or after == Const(None):
            return c if c.leaves else None
        if not is_carried(after):
            self.fail(f"what is returned in the loop is {after.describe()}", "return numbers or tiles")
        leaves = self.leaves_of(after)
        shape = rebuild(after, [Undefined("") for _ in leaves])
        return c if leaves == c.leaves else LoopVariable(RESULT, shape, leaves, [False] * len(leaves))

    def _infer_leaf(self, name: str, leaf: Leaf, weak: bool, after: Value) -> Leaf:
        found = self.leaf_of(after)
        if found == leaf:
            return leaf
        if isinstance(after, Const):
            if leaf[0].is_float or leaf[0].is_integer and isinstance(after.py, int):
                return leaf
            if weak:
                return promote(leaf[0], found[0]), leaf[1]
        elif weak and not (leaf[0] is F32 and not found[0].is_float) and found[0] is not BOOL:
            return found
        elif {leaf, found} == {(INDEX, None), (I64, None)}:
            return leaf
        if self.guessing:
            return wider(leaf, found)
        what = f"'{name}' is {describe_leaf(leaf)} before the loop and {describe_leaf(found)} after its body: "
        if leaf[1] != found[1]:
            begin = f"a {describe_leaf(found)}, as commsir.full({found[1]}, …)" if found[1] else f"{found[0].name}(…)"
            self.fail(
                what + "a variable has one length, too", f"begin with {begin}, or use a name of its own in the body"
            )
        self.fail(what + "a variable has one type", f"begin with {found[0].name}(…), or convert at the end of the body")

    # Values.

    def bind(self, carried: list[LoopVariable], name: Callable[[], str]) -> list[str]:
        """Gives each carried variable new IR names, and returns these in order."""
        made: list[str] = []
        for c in carried:
            values: list[Value] = []
            for leaf in c.leaves:
                made.append(name())
                values.append(value_of(leaf, made[-1]))
                if not c.name.startswith("$"):
                    self.emitter.hint(made[-1], c.name)
            if values or c.name != RESULT:
                self.frame.variables[c.name] = rebuild(c.before, values)
        return made

    def initial(self, carried: list[LoopVariable]) -> list[str]:
        """Returns the values before the loop, converted to the types that they have in the loop."""
        return [
            self.as_leaf(value, leaf).name
            for c in carried
            for value, leaf in zip(parts(c.before, len(c.leaves)), c.leaves, strict=True)
        ]

    def at_end(self, carried: list[LoopVariable]) -> list[tuple[Value | None, list[Leaf]]]:
        """Returns the values at the end of an iteration, with their types."""
        return [(self.frame.variables.get(c.name), c.leaves) for c in carried]

    def bind_after(self, carried: list[LoopVariable], name: str) -> None:
        self.bind_results(name, [Result(c.name, c.leaves, c.before) for c in carried if c.leaves])

    def loop_body(self, node: Loop, flag: str, start: Thunk) -> None:
        """Translates one iteration. `continue` and `break` set their flags for the statements that follow."""
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

    def forget(self, node: Loop, carried: list[LoopVariable]) -> None:
        """Marks names undefined that the loop assigns without carrying them, because the loop may not run."""
        live = self.frame.live.after[id(node)] | self.frame.live.head[id(node)]
        for name in _changed(node) - {c.name for c in carried}:
            if name not in live:
                self.frame.variables[name] = NEVER_READ
            elif not isinstance(self.frame.variables.get(name), Undefined):
                self.frame.variables[name] = Undefined(
                    f"'{name}' gets its value inside the loop at line {node.lineno}, which may not run; "
                    "give it one before the loop"
                )

    def otherwise(self, node: Loop, flag: str) -> None:
        """Translates the `else` of a loop, which runs unless `break` has ended the loop."""
        broken = self.frame.variables.pop(flag, Const(False))
        if node.orelse:
            live = self.frame.live.after[id(node)]
            self.unless_left(lambda: self.branch(broken, lambda: None, lambda: self.block(node.orelse), live), live)
