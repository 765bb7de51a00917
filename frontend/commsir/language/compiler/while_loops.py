"""scf.while: `while`, and every loop that can be left early. Its condition looks at the flags that leaving sets.

It carries no tiles: they lie in scratch memory from round to round.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import functions
from ..dtypes import BOOL, DType
from . import analysis
from .branches import Thunk
from .emitter import Line
from .loop_variables import Loop, LoopVariables
from .region_values import BREAK, RETURN, Leaf, LoopVariable, leaf_text, parts
from .values import Const, Memory, Scalar, Tile, Value, Window

# A leaf that the loop carries: its type, and the memory that it lies in if it is a tile.
Kept = tuple[Leaf, Memory | None]


@dataclass
class LoopFlow:
    """The control flow of a loop around its body."""

    # Whether there is another round.
    test: Callable[[], Value]
    # Before the body of each round.
    start: Thunk = lambda: None
    # Variables of the compiler's own that the loop carries, and their values for the next round.
    counters: list[LoopVariable] = field(default_factory=list)
    step: Callable[[], list[Value]] = list


class WhileLoops(LoopVariables):
    """The layer that knows scf.while."""

    def while_loop(self, node: ast.While) -> None:
        if isinstance(node.test, ast.Constant) and not node.test.value:
            return self.block(node.orelse)
        if self._only_waits(node):
            self.fail(
                "this loop waits for memory to change, which no memory model promises it to see",
                "wait for a signal: wait_signal(s[i], ge=1), which loads and stores are ordered by",
                node,
            )
        endless = isinstance(node.test, ast.Constant) and not analysis.leaves_loop(node.body, ast.Break)
        if endless and not analysis.returns(node.body):
            self.fail("this loop never ends", "leave it with break or return, or give it a condition", node)
        if self._stays_true(node):
            names = ", ".join(f"'{name}'" for name in sorted(analysis.reads(node.test)))
            self.fail(
                f"nothing in this loop changes {names}: once entered, it never ends",
                "change what the condition reads, or leave with break or return",
                node,
            )
        self.general_loop(node, LoopFlow(lambda: self.test(node.test)))
        if endless:  # Nothing follows it.
            self.frame.variables[RETURN] = Const(True)
        return None

    def _stays_true(self, node: ast.While) -> bool:
        """Whether the condition reads only numbers that the loop does not change, and nothing leaves the loop."""
        test, names = node.test, analysis.reads(node.test)
        if analysis.leaves_loop(node.body, ast.Break) or analysis.returns(node.body):
            return False
        if not names or names & analysis.assigned([test, *node.body]):
            return False
        asks = any(isinstance(n, ast.Call | ast.Subscript) for n in ast.walk(test))
        return not asks and all(isinstance(self.frame.variables.get(name), Scalar | Const) for name in names)

    def _only_waits(self, node: ast.While) -> bool:
        """Whether the loop only tests memory that other blocks may change."""
        tests = _exit_conditions(node)
        calls = [n for t in tests for n in ast.walk(t) if isinstance(n, ast.Call)]
        if not tests or not all(self._only_calculates(call) for call in calls):
            return False
        if analysis.assigned(tests) & set().union(*map(analysis.reads, tests)):
            return False
        subscripts = [n for test in tests for n in ast.walk(test) if isinstance(n, ast.Subscript)]
        bases = {name for n in subscripts for name in analysis.reads(n.value)}
        return any(isinstance(self.frame.find(name), Memory | Window) for name in bases)

    def _only_calculates(self, call: ast.Call) -> bool:
        """Whether a call is known not to wait. Helpers, and functions that synchronize, may wait."""
        if not isinstance(call.func, ast.Name):
            return True
        called = self.frame.find(call.func.id)
        module = getattr(called, "__module__", "")
        return isinstance(called, DType) or module in ("builtins", functions.__name__)

    def general_loop(self, node: Loop, flow: LoopFlow) -> None:
        flag = f"{BREAK}{len(self.frame.loops)}"
        carried = flow.counters + self.carried_by(node)
        if analysis.leaves_loop(node.body, ast.Break):
            carried.append(self.carried(flag, Const(False)))

        def attempt(given: list[LoopVariable]) -> None:
            self.bind(given, self.emitter.fresh)
            self.condition(flow.test(), "the condition of while")
            self._round(node, flow, given, flag)

        before = dict(self.frame.variables)
        carried = self.infer_carried_types(node, carried, attempt)
        kept, inits = self._enter(carried)
        leaves = [leaf for leaf, memory in kept if memory is None]
        name = self.emitter.fresh() if leaves else ""
        condition, body = list[Line](), list[Line]()
        with self.emitter.into(condition, 1):
            given = self._bind_kept(carried, kept)
            self._emit_condition(flow, carried, list(zip(given, leaves, strict=True)))
        with self.emitter.into(body, 1):
            arguments = self._bind_kept(carried, kept)
            self._round(node, flow, carried, flag)
            self._yield_kept(carried, kept)
        self.place = self.at(node)
        self.emitter.emit(f"{self.results(name, leaves)}{_while_text(given, inits, leaves)} {{", None)
        self._emit_regions(condition, body, list(zip(arguments, leaves, strict=True)))
        self.frame.variables = before
        results = iter([name] if len(leaves) == 1 else [f"{name}#{i}" for i in range(len(leaves))])
        self.bind(carried, self._namer(kept, lambda: next(results)))
        for c in flow.counters:
            self.frame.variables.pop(c.name, None)
        self.forget(node, carried)
        self.otherwise(node, flag)

    def _round(self, node: Loop, flow: LoopFlow, carried: list[LoopVariable], flag: str) -> None:
        for c in carried:
            if c.name in (flag, RETURN):  # not left: the condition has looked
                self.frame.variables[c.name] = Const(False)
        self.loop_body(node, flag, flow.start)
        for c, value in zip(flow.counters, flow.step(), strict=True):
            self.frame.variables[c.name] = value

    def _emit_condition(self, flow: LoopFlow, carried: list[LoopVariable], given: list[tuple[str, Leaf]]) -> None:
        """Emits the condition that control has not left, and the programmer's condition."""
        left: Value = Const(False)
        for c in carried:
            if c.name.startswith(BREAK) or c.name == RETURN:
                left = self.logical(False, left, self.frame.variables[c.name])
        if isinstance(left, Const):
            go = self.truth(flow.test())
        else:
            go = self.truth(self.short_circuit(True, self.logical_not(left), lambda: self.truth(flow.test())))
        names, types = ", ".join(n for n, _ in given), ", ".join(leaf_text(leaf) for _, leaf in given)
        self.emit(f"scf.condition({go.name})" + (f" {names} : {types}" if given else ""))

    def _emit_regions(self, condition: list[Line], body: list[Line], arguments: list[tuple[str, Leaf]]) -> None:
        self.emitter.splice(condition)
        self.emitter.emit("} do {", None)
        if arguments:
            self.emitter.emit("^bb0(" + ", ".join(f"{n}: {leaf_text(leaf)}" for n, leaf in arguments) + "):", None)
        self.emitter.splice(body)
        self.emit("}")

    # Tiles in memory.

    def _enter(self, carried: list[LoopVariable]) -> tuple[list[Kept], list[str]]:
        """Prepares exit flags and initial values: tiles are stored in memory, other values become arguments."""
        kept: list[Kept] = []
        arguments = []
        owners = [(c, leaf) for c in carried for leaf in c.leaves]
        for name, (owner, leaf) in zip(self.initial(carried), owners, strict=True):
            memory = None if leaf[1] is None else self._memory_for(owner, leaf)
            kept.append((leaf, memory))
            if memory is None:
                arguments.append(name)
            else:
                self._put(memory, name, leaf)
        return kept, arguments

    def _memory_for(self, c: LoopVariable, leaf: Leaf) -> Memory:
        dtype, length = leaf
        if dtype is BOOL:
            self.fail(f"'{c.name}' is a tile of bool, which a loop with break, or while, cannot carry", "keep it as i8")
        made = Memory("", (length,), dtype, c.name)
        name = self.emitter.once(f"comms.scratch : {made.type}", self.place)
        self.emitter.hint(name, f"{c.name.strip('$')}_shelf")
        return Memory(name, made.shape, dtype, c.name)

    def _put(self, memory: Memory, name: str, leaf: Leaf) -> None:
        dtype, length = leaf
        assert length is not None
        self.store_tile(memory, Const(0), Tile(name, dtype, length))

    def _namer(self, kept: list[Kept], fresh: Callable[[], str]) -> Callable[[], str]:
        """Names for leaves in order: a load for those that lie in memory."""
        places = iter(kept)

        def name() -> str:
            (_, length), memory = next(places)
            if memory is None or length is None:
                return fresh()
            return self.load(memory, Const(0), length).name

        return name

    def _bind_kept(self, carried: list[LoopVariable], kept: list[Kept]) -> list[str]:
        made = self.bind(carried, self._namer(kept, self.emitter.fresh))
        return [name for name, (_, memory) in zip(made, kept, strict=True) if memory is None]

    def _yield_kept(self, carried: list[LoopVariable], kept: list[Kept]) -> None:
        typed: list[tuple[str, Leaf]] = []
        values = [part for value, leaves in self.at_end(carried) for part in parts(value, len(leaves))]
        for value, (leaf, memory) in zip(values, kept, strict=True):
            name = self.as_leaf(value, leaf).name
            if memory is None:
                typed.append((name, leaf))
            else:
                self._put(memory, name, leaf)
        self.emit_yield(typed)


def _exit_conditions(node: ast.While) -> list[ast.expr]:
    """Returns the exit conditions of a loop whose body does nothing but test them; otherwise an empty list."""

    def is_idle(statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Expr):
            return isinstance(statement.value, ast.Constant)
        return isinstance(statement, ast.Pass | ast.Continue)

    tests = [node.test]
    for statement in node.body:
        if isinstance(statement, ast.If) and all(
            is_idle(s) or isinstance(s, ast.Break) for s in [*statement.body, *statement.orelse]
        ):
            tests.append(statement.test)
        elif not is_idle(statement):
            return []
    return tests


def _while_text(given: list[str], inits: list[str], leaves: list[Leaf]) -> str:
    pairs = ", ".join(f"{a} = {b}" for a, b in zip(given, inits, strict=True))
    types = ", ".join(map(leaf_text, leaves))
    return "scf.while" + (f" ({pairs})" if pairs else "") + f" : ({types}) -> ({types})"
