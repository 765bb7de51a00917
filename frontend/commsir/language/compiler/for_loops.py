"""`for`: scf.for over ranges, comms.for_peers over the ranks of a team, and copies of the body over tuples."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..dtypes import INDEX
from . import analysis
from .emitter import Line
from .loop_variables import Loop
from .region_values import BREAK, LoopVariable, leaf_text
from .values import Const, Peers, Range, Scalar, Value
from .while_loops import LoopFlow, WhileLoops


@dataclass
class Count:
    """The numbers that a loop counts through, ascending, and the loop variable's value at each."""

    lower: Scalar
    upper: Scalar
    step: Scalar
    number: Callable[[Scalar], Value] = lambda i: i


def _instead_of_iterable(value: Value) -> str:
    if isinstance(value, Scalar) or isinstance(value, Const) and value.is_number:
        return "write for i in range(n)"
    if isinstance(value, Const):
        return "make a tuple of it outside the kernel: NAMES = tuple(…)"
    return "write for i in range(len(…)) and index"


def _leaves_early(node: Loop) -> bool:
    return analysis.leaves_loop(node.body, ast.Break) or analysis.returns(node.body)


class ForLoops(WhileLoops):
    """The layer that knows what `for` runs over."""

    def for_loop(self, node: ast.For) -> None:
        iterable = self.expression(node.iter)
        if isinstance(iterable, Range):
            self._for_count(node, self._count(iterable))
        elif isinstance(iterable, Peers):
            self._for_peers(node, iterable)
        elif (items := self.items_if_known(iterable)) is not None:
            self._unrolled(node, items)
        else:
            self.fail(
                f"a for runs over range(…), the peers of a team or a tuple, not over {iterable.describe()}",
                _instead_of_iterable(iterable),
            )

    def _unrolled(self, node: ast.For, items: tuple[Value, ...]) -> None:
        flag = f"{BREAK}{len(self.frame.loops)}"
        live = self.frame.live.head[id(node)]
        self.frame.variables[flag] = Const(False)

        def run(first: int) -> None:
            for k in range(first, len(items)):
                self.loop_body(node, flag, partial(self.assign, node.target, items[k]))
                broken = self.frame.variables[flag]
                if self.has_left() is not False or broken != Const(False):
                    # What is known at run time only nests the rest in a branch.
                    rest = partial(run, k + 1)
                    return self.unless_left(partial(self.branch, broken, lambda: None, rest, live), live)
            return None

        run(0)
        self.otherwise(node, flag)

    # Ranges.

    def _count(self, r: Range) -> Count:
        start, stop, step = (self.number(v, "an argument of range") for v in (r.start, r.stop, r.step))
        lower, upper = self.index(start, "the start of range"), self.index(stop, "the end of range")
        if not isinstance(step, Const):
            return Count(lower, upper, self._positive(step))
        if step.py == 0:
            self.fail("the step of range is 0")
        size = self.index(Const(abs(step.py)), "the step of range")
        if step.py > 0:
            return Count(lower, upper, size)
        # Downwards: the rounds are counted upwards, and numbered downwards.
        span = self.subtract(lower, upper)
        rounds = self.binary(ast.FloorDiv(), self.add(span, Const(abs(step.py) - 1)), size)
        zero = self.constant(0, INDEX)
        return Count(
            zero,
            self.index(rounds, "range"),
            self.constant(1, INDEX),
            lambda k: self.subtract(lower, self.multiply(k, size)),
        )

    def _positive(self, step: Value) -> Scalar:
        if not getattr(step, "nonneg", False):
            self.fail(
                "the step of range is not known to be positive", "use a constant step, and multiply inside the loop"
            )
        size = self.index(step, "the step of range")
        self.check_bounds("step of range", self.constant(1, INDEX), self.constant(0, INDEX), size)
        return size

    def _for_count(self, node: ast.For, count: Count) -> None:
        if _leaves_early(node):
            return self._for_count_or_less(node, count)
        carried = self.carried_by(node)
        variable = ""

        def body(given: list[LoopVariable]) -> list[str]:
            nonlocal variable
            variable = self.emitter.fresh()
            made = self.bind(given, self.emitter.fresh)
            value = Scalar(variable, INDEX, count.lower.nonneg)
            self.loop_body(node, "", lambda: self.assign(node.target, count.number(value)))
            return made

        before = dict(self.frame.variables)
        carried = self.infer_carried_types(node, carried, body)
        inits = self.initial(carried)
        lines: list[Line] = []
        with self.emitter.into(lines, 1):
            given = body(carried)
            self.yield_results(self.at_end(carried))
        if isinstance(node.target, ast.Name):
            self.emitter.hint(variable, node.target.id)
        leaves = [leaf for c in carried for leaf in c.leaves]
        name = self.emitter.fresh() if leaves else ""
        pairs = ", ".join(f"{a} = {b}" for a, b in zip(given, inits, strict=True))
        tail = f" iter_args({pairs}) -> ({', '.join(map(leaf_text, leaves))})" if pairs else ""
        bounds = f"{count.lower.name} to {count.upper.name} step {count.step.name}"
        self.place = self.at(node)
        self.emitter.emit(f"{self.results(name, leaves)}scf.for {variable} = {bounds}{tail} {{", None)
        self.emitter.splice(lines)
        self.emit("}")
        self.frame.variables = before
        self.bind_after(carried, name)
        self.forget(node, carried)
        return self.otherwise(node, "")

    def _for_count_or_less(self, node: ast.For, count: Count) -> None:
        """Translates a counted loop that can be left early."""
        counter = f"$i{len(self.frame.loops)}"

        def current() -> Scalar:
            value = self.frame.variables[counter]
            assert isinstance(value, Scalar)
            return Scalar(value.name, INDEX, count.lower.nonneg)

        rounds = LoopFlow(
            test=lambda: self.compare(ast.Lt(), current(), count.upper),
            start=lambda: self.assign(node.target, count.number(current())),
            counters=[LoopVariable(counter, count.lower, [(INDEX, None)], [False])],
            step=lambda: [self.add(current(), count.step)],
        )
        self.general_loop(node, rounds)

    # Peers.

    def _for_peers(self, node: ast.For, peers: Peers) -> None:
        if not _leaves_early(node) and not self.carried_by(node):
            return self._visit_peers(node, peers)
        me, size = self.team_number("rank", peers.team), self.team_number("size", peers.team)

        def number(k: Scalar) -> Value:
            k = Scalar(k.name, INDEX, True)
            away = self.subtract(size, k) if peers.reversed else k
            away = Scalar(self.index(away, "a rank").name, INDEX, True)
            return self.binary(ast.Mod(), self.add(me, away), size)

        one = self.constant(1, INDEX)
        return self._for_count(node, Count(one, self.index(size, "the size"), one, number))

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
        self.emit("}")
        self.forget(node, [])
        self.otherwise(node, "")
