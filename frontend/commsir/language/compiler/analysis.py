"""Analysis of statements before translation: early exits, assigned names, and names used later. Works on syntax trees
only."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable

_FUNCTIONS = (ast.Lambda, ast.FunctionDef)
_LEAVING = (ast.Return, ast.Break, ast.Continue)


def always_leaves(body: list[ast.stmt]) -> bool:
    """Whether control never reaches the end of `body`."""
    for statement in body:
        if isinstance(statement, _LEAVING):
            return True
        if isinstance(statement, ast.If) and always_leaves(statement.body) and always_leaves(statement.orelse):
            return True
    return False


def straighten(body: list[ast.stmt]) -> list[ast.stmt]:
    """Turns the statements after `if c: …return` into its else branch, so that most early exits need no flag."""
    result: list[ast.stmt] = []
    for i, statement in enumerate(body):
        rest = body[i + 1 :]
        if isinstance(statement, ast.If) and rest and always_leaves(statement.body) != always_leaves(statement.orelse):
            whole = copy.copy(statement)
            if always_leaves(statement.body):
                whole.orelse = statement.orelse + rest
            else:
                whole.body = statement.body + rest
            return [*result, _straightened(whole)]
        if isinstance(statement, ast.While) and assigned([statement.test]):
            result += straighten(_tested_inside(statement))
        else:
            result.append(_straightened(statement))
        if isinstance(statement, _LEAVING):
            break
    return result


def _straightened(statement: ast.stmt) -> ast.stmt:
    """Straightens the blocks of a statement. Functions are straightened when they are called."""
    if not isinstance(statement, ast.If | ast.For | ast.While | ast.With):
        return statement
    made = copy.copy(statement)
    made.body = straighten(made.body)
    if not isinstance(made, ast.With):
        made.orelse = straighten(made.orelse)
    return made


def _tested_inside(loop: ast.While) -> list[ast.stmt]:
    """`while (n := f()): …` as `while True: if not (n := f()): break; …`, for the body reads what is assigned. Each
    operand of an `and` is a test of its own. The `else` comes before that break, or behind the loop, if no `break` of
    the body has ended it: where it leaves the loop around, or would be there for each operand."""
    test, inside, behind = loop.test, loop.orelse, list[ast.stmt]()
    operands = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    if len(operands) > 1 or leaves_loop(inside, (ast.Break, ast.Continue)):
        inside, behind = [], loop.orelse
    made, before = copy.copy(loop), list[ast.stmt]()
    made.test, made.orelse = ast.copy_location(ast.Constant(True), test), []
    if behind and leaves_loop(loop.body, ast.Break):
        name = f"$ended {test.lineno} {test.col_offset}"
        ended, ending = (ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)) for value in (False, True))
        before, inside = [_placed(ended, test)], [_placed(ending, test)]
        behind = [_placed(ast.If(ast.Name(name, ast.Load()), behind, []), test)]
    stops = [_placed(ast.If(ast.UnaryOp(ast.Not(), test), [*inside, ast.Break()], []), test) for test in operands]
    made.body = [*stops, *loop.body]
    return [*before, made, *behind]


def _placed(made: ast.stmt, at: ast.AST) -> ast.stmt:
    """Gives the statement and its parts the source position of `at` if they have none."""
    for node in ast.walk(made):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            ast.copy_location(node, at)
    return made


def body_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.stmt]:
    """Returns the straightened statements of a function, without its docstring."""
    if isinstance(node, ast.Lambda):
        return [ast.copy_location(ast.Return(node.body), node.body)]
    first = node.body[0]
    documented = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return straighten(node.body[1:] if documented and len(node.body) > 1 else node.body)


def reads(node: ast.AST | None) -> set[str]:
    if node is None:
        return set()
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def calls(node: ast.AST) -> bool:
    """Whether an expression calls a function, which may have effects. Calls at the end of slices do not count."""
    return any(isinstance(n, ast.Call) and not is_extremum(n) for n in ast.walk(node))


def is_extremum(call: ast.Call) -> bool:
    """Whether the expression is `min(a, b)`, or `max`, `minimum` or `maximum` of two."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("min", "max", "minimum", "maximum") and len(call.args) == 2 and not call.keywords


def is_product(node: ast.AST) -> bool:
    """Whether it is `a @ b`, or a sum with one: `a @ b + d`."""
    if not isinstance(node, ast.BinOp):
        return False
    is_sum = isinstance(node.op, ast.Add)
    return isinstance(node.op, ast.MatMult) or (is_sum and (is_product(node.left) or is_product(node.right)))


def adds_product(node: ast.AST) -> bool:
    """Whether it is `c += a @ b` or `c += a @ b + d`, which updates an array in place."""
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and is_product(node.value)


def assigned(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names that statements assign, not counting functions inside them."""
    names: set[str] = set()
    for node in nodes:
        if adds_product(node):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        if not isinstance(node, _FUNCTIONS):
            names |= assigned(ast.iter_child_nodes(node))
    return names


def leaves_loop(body: list[ast.stmt], kind: type[ast.stmt] | tuple[type[ast.stmt], ...]) -> bool:
    """Whether a `break` (or `continue`) in `body` belongs to the loop around it."""
    for statement in body:
        if isinstance(statement, kind):
            return True
        inner: list[ast.stmt] = []
        if isinstance(statement, ast.If):
            inner = statement.body + statement.orelse
        elif isinstance(statement, ast.For | ast.While):
            inner = statement.orelse
        elif isinstance(statement, ast.With):
            inner = statement.body
        if leaves_loop(inner, kind):
            return True
    return False


def returns(body: list[ast.stmt]) -> bool:
    """Whether `body` has a `return` of this function."""

    def search(node: ast.AST) -> bool:
        if isinstance(node, ast.Return):
            return True
        return not isinstance(node, _FUNCTIONS) and any(search(c) for c in ast.iter_child_nodes(node))

    return any(search(s) for s in body)


class Liveness:
    """Computes which names may be read after a statement, and at the head of a loop."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.after: dict[int, set[str]] = {}
        self.head: dict[int, set[str]] = {}
        # What a function inside reads may be read whenever it is called.
        self._always: set[str] = set()
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, _FUNCTIONS):
                    self._always |= reads(node)
        self._loops: list[tuple[set[str], set[str]]] = []
        # What those who leave the loop around need; they pass through what follows, which a flag skips.
        self._leaving: set[str] = set()
        self._block(body, set())

    def _block(self, body: list[ast.stmt], out: set[str]) -> set[str]:
        live = set(out)
        for statement in reversed(body):
            self.after[id(statement)] = live | self._always | self._leaving
            live = self._statement(statement, live)
        return live

    def _statement(self, s: ast.stmt, out: set[str]) -> set[str]:
        if isinstance(s, ast.Return):
            return reads(s.value)
        if isinstance(s, ast.Break):
            return set(self._loops[-1][0]) if self._loops else set()
        if isinstance(s, ast.Continue):
            return set(self._loops[-1][1]) if self._loops else set()
        if isinstance(s, ast.If):
            return reads(s.test) | self._block(s.body, out) | self._block(s.orelse, out)
        if isinstance(s, ast.For):
            return self._loop(s, out, assigned([s.target]), set()) | reads(s.iter) | reads(s.target)
        if isinstance(s, ast.While):
            return self._loop(s, out, set(), reads(s.test))
        if isinstance(s, ast.With):
            inner = self._block(s.body, out)
            return inner.union(*(reads(item.context_expr) for item in s.items))
        if isinstance(s, ast.AugAssign):
            return out | reads(s.value) | reads(s.target) | ({s.target.id} if isinstance(s.target, ast.Name) else set())
        if isinstance(s, ast.FunctionDef):
            return (out - {s.name}) | reads(s)
        # What `:=` assigns may be assigned in part of the cases alone.
        targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []
        return (out - assigned(targets)) | reads(s)

    def _loop(self, s: ast.For | ast.While, out: set[str], targets: set[str], test: set[str]) -> set[str]:
        behind = self._block(s.orelse, out)
        head = behind | test | out
        breaks, continues = leaves_loop(s.body, ast.Break), leaves_loop(s.body, ast.Continue)
        outer = self._leaving
        while True:
            self._loops.append((out, head))
            self._leaving = (out if breaks else set()) | (head if continues else set())
            inner = self._block(s.body, head) - targets
            self._loops.pop()
            self._leaving = outer
            grown = head | inner
            if grown == head:
                break
            head = grown
        self.head[id(s)] = head | self._always
        return head
