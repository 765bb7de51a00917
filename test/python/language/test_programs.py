"""Random functions: the compiled kernel computes the same as Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROWS = 16


class Writer:
    """Writes a function of three numbers. Values stay small, and every loop ends."""

    def __init__(self, seed: int, floats: bool) -> None:
        self.random = random.Random(seed)
        self.floats = floats
        self.lines: list[str] = []
        self.names = ["a", "b", "c"]
        self.loops = 0

    def expression(self, depth: int) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.2:
            constant = r.choice(["f64(0.5)", "f64(1.1)", "f64(-2.0)"]) if self.floats else str(r.randint(-5, 5))
            return r.choice([*self.names, *self.names, constant])
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        kinds = ["+", "-", "min", "max", "abs", "neg", "if", "logic"]
        kinds += ["*"] if self.floats else ["//", "%", "&", "|", "^", "*"]
        kind = r.choice(kinds)
        if kind in ("min", "max"):
            return f"{kind}({x}, {y})"
        if kind == "abs":
            return f"abs({x})"
        if kind == "neg":
            return f"(-{x})"
        if kind == "if":
            return f"({x} if {self.condition(depth - 1)} else {y})"
        if kind in ("//", "%"):
            return f"({x} {kind} {r.choice([2, 3, 7, -3])})" if r.random() < 0.5 else f"({x} {kind} (abs({y}) + 1))"
        if kind == "logic":
            return f"({x} {r.choice(['and', 'or'])} {y})"
        if kind == "*":
            factor = r.choice(["f64(0.5)", "f64(1.5)"])
            return f"(({x}) * {factor})" if self.floats else f"({x} % 11 * ({y} % 13))"
        return f"({x} {kind} {y})"

    def condition(self, depth: int) -> str:
        r = self.random
        op = r.choice(["<", "<=", ">", ">=", "==", "!="])
        plain = f"{self.expression(max(depth - 1, 0))} {op} {self.expression(0)}"
        kind = r.randint(0, 5)
        if kind == 0 and depth > 0:
            return f"({self.condition(depth - 1)} {r.choice(['and', 'or'])} {self.condition(depth - 1)})"
        if kind == 1 and depth > 0:
            return f"(not {self.condition(depth - 1)})"
        if kind == 2:
            return f"({self.expression(0)} < {self.expression(0)} <= {self.expression(0)})"
        return f"({plain})"

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, statements: int, in_loop: bool, depth: int) -> None:
        for _ in range(statements):
            self.statement(indent, in_loop, depth)

    def statement(self, indent: int, in_loop: bool, depth: int) -> None:
        r = self.random
        kind = r.randint(0, 9 if depth > 0 else 3)
        target = r.choice(["a", "b", "c"])
        if kind <= 1:
            self.emit(indent, f"{target} = {self.expression(2)}")
        elif kind == 2:
            self.emit(indent, f"{target} {r.choice(['+', '-'])}= {self.expression(1)}")
        elif kind == 3:
            # Two names: Python 3.11.2 stores the wrong value by `b, b = x, y`.
            other = r.choice([name for name in "abc" if name != target])
            self.emit(indent, f"{target}, {other} = {self.expression(1)}, {self.expression(1)}")
        elif kind <= 6:
            self.emit(indent, f"if {self.condition(2)}:")
            self.branch(indent + 1, in_loop, depth - 1)
            if r.random() < 0.4:
                self.emit(indent, f"elif {self.condition(1)}:")
                self.branch(indent + 1, in_loop, depth - 1)
            if r.random() < 0.5:
                self.emit(indent, "else:")
                self.branch(indent + 1, in_loop, depth - 1)
        elif kind <= 8:
            self.loops += 1
            name = f"i{self.loops}"
            bounds = r.choice(["4", "1, 6", "5, 0, -2", "abs(b) % 5" if not self.floats else "3"])
            over = f"range({bounds})" if r.random() < 0.7 else "(3, 1, 2)"
            self.emit(indent, f"for {name} in {over}:")
            if not self.floats:
                self.names.append(name)
            self.branch(indent + 1, True, depth - 1)
            if not self.floats:
                self.names.remove(name)
            if r.random() < 0.2:
                self.emit(indent, "else:")
                self.branch(indent + 1, in_loop, depth - 1)
        else:
            self.loops += 1
            name = f"n{self.loops}"
            self.emit(indent, f"{name} = 0")
            self.emit(indent, f"while {name} < 5 and {self.condition(1)}:")
            self.emit(indent + 1, f"{name} += 1")
            self.branch(indent + 1, True, depth - 1)

    def branch(self, indent: int, in_loop: bool, depth: int) -> None:
        self.block(indent, self.random.randint(1, 2), in_loop, depth)
        leave = self.random.random()
        if in_loop and leave < 0.2:
            self.emit(indent, f"if {self.condition(0)}:")
            self.emit(indent + 1, self.random.choice(["break", "continue"]))
            self.statement(indent, in_loop, 0)
        elif leave < 0.3:
            self.emit(indent, f"return {self.expression(1)}")

    def function(self) -> str:
        self.emit(0, "def f(a, b, c):")
        self.block(1, self.random.randint(2, 5), False, 3)
        self.emit(1, f"return {self.expression(2)}")
        return "\n".join(self.lines)


def _check(load: Callable[[str], ModuleType], seed: int, floats: bool) -> None:
    kind, dtype = ("f64", np.float64) if floats else ("i64", np.int64)
    program = Writer(seed, floats).function()
    module = load(
        f"{program}\n\n@kernel\ndef k(p: {kind}[Array, {ROWS}, 3], out: {kind}[Array, {ROWS}]):\n"
        f"    for row in range({ROWS}):\n        out[row] = f(p[row, 0], p[row, 1], p[row, 2])\n"
    )
    rng = np.random.default_rng(seed)
    points = rng.integers(-20, 20, (ROWS, 3)).astype(dtype)
    wanted = np.array([module.f(*(p.item() for p in row)) for row in points], dtype)
    got = module.k.simulate(ranks=1, inputs={"p": points})["out"][0]
    np.testing.assert_array_equal(got, wanted, err_msg=program)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_integers(load: Callable[[str], ModuleType], seed: int) -> None:
    _check(load, seed, floats=False)


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_floats(load: Callable[[str], ModuleType], seed: int) -> None:
    _check(load, seed, floats=True)
