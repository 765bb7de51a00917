# ruff: noqa: E501 (programs in strings)
"""Kernels assembled at random: each gives IR that verifies, or a CompileError with a line."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from types import ModuleType

import commsir
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Load = Callable[[str], ModuleType]

PARAMETERS = "x: f32[Window, 8, 64], y: f32[Array, 8, 64], h: bf16[Array, 64], q: i32[Array, 64], s: Signal[4], c: Counter[2], n: i64, i: index, v: f32"
LEAVES = [
    "x",
    "y",
    "h",
    "q",
    "s",
    "c",
    "n",
    "i",
    "v",
    "a",
    "b",
    "0",
    "1",
    "-1",
    "2.5",
    "True",
    "None",
    "'sum'",
    "world",
    "t",
    "s[0]",
    "s[n]",
    "c[1]",
    "x[0]",
    "x[i]",
    "y[n, 0:64]",
    "y[0, 3]",
    "h[:]",
    "q[i:i + 8]",
    "q[i]",
    "rank()",
    "size()",
    "epoch()",
    "iota(64)",
    "zeros(64)",
    "f32",
    "(a, b)",
    "(1, 2)",
    "{}",
    "[]",
    "lambda t: t",
    "twice",
    "range(3)",
    "for_peers()",
    "x.peer(n)",
    "team()",
]
PLAIN = [
    "n",
    "i",
    "v",
    "a",
    "b",
    "0",
    "1",
    "2",
    "2.5",
    "x[0]",
    "x[i]",
    "h[:]",
    "q[:]",
    "q[i]",
    "y[0, 3]",
    "rank()",
    "size()",
    "epoch()",
    "iota(64)",
]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", "<", "==", "!=", "+", "-", "*", "and", "in"]
CALLS = [
    "exp({})",
    "rsqrt({})",
    "where({}, {}, {})",
    "minimum({}, {})",
    "min({}, {})",
    "max({})",
    "abs({})",
    "len({})",
    "f32({})",
    "i32({})",
    "int({})",
    "row_reduce({}, {})",
    "splat({}, {})",
    "bitcast({}, {})",
    "twice({})",
    "tile_load({}, {}, {})",
    "wait_signal({}, ge={})",
    "read_signal({})",
    "packet_load({}, {}, {}, {}, {})",
    "poison_load({}, {}, {})",
    "recv({}, {})",
    "channel({}, {})",
    "scratch({}, {})",
    "bulk_copy({}, {})",
    "translate_rank({}, {}, {})",
    "math.sin({})",
    "np.where({}, {}, {})",
    "fma({}, {}, {})",
    "{}.sum()",
    "{}.peer({})",
    "{}.astype({})",
    "{}.shape",
    "{}.size",
    "{}[{}]",
    "{}[{}:{}]",
    "{}[{}, {}]",
    "-{}",
    "~{}",
    "not {}",
    "({} if {} else {})",
    "({} < {} < {})",
    "(lambda t: t + {})({})",
    "enumerate({})",
    "all_reduce",
]
STATEMENTS = [
    "put({}, {}, {})",
    "put_signal({}, {}, {}, {})",
    "get({}, {}, {})",
    "signal({}, {})",
    "signal({}, {}, add={})",
    "barrier({})",
    "fence({})",
    "flush()",
    "tile_store({}, {}, {})",
    "packet_store({}, {}, {}, {})",
    "poison_fill({}, {}, {})",
    "bulk_wait({})",
    "barrier_wait({})",
    "all_reduce({}, outs={})",
    "all_reduce({}, outs={}, op={}, consume=lambda t: {})",
    "all_gather({}, outs={}, produce=twice)",
    "broadcast({}, root={}, outs={})",
    "send_recv({}, {}, {}, outs={})",
    "send({}, {}, {})",
    "check_bounds({}, {}, {}, {})",
    "assert {}",
    "{}",
    "y[{}] = {}",
    "y[{}, {}] = {}",
    "q[{}] += {}",
    "a += {}",
    "a, b = {}, {}",
    "a: f32 = {}",
    "return",
    "return {}",
    "break",
    "continue",
    "pass",
    "x.load({}, {})",
    "x.store({}, {})",
    "engine_copy({}, {}, {})",
    "multimem_store({}, {}, {})",
    "channel_barrier({})",
    "role({}, {}, {})",
]


# How often something that hardly fits is taken.
wild = 0.1


def _expression(r: random.Random, depth: int) -> str:
    if depth <= 0 or r.random() < 0.3:
        return r.choice(LEAVES if r.random() < wild else PLAIN)
    if r.random() < 0.4:
        return f"({_expression(r, depth - 1)} {r.choice(BINARY)} {_expression(r, depth - 1)})"
    return _fill(r, r.choice(CALLS), depth - 1)


def _fill(r: random.Random, text: str, depth: int) -> str:
    parts = text.split("{}")
    return parts[0] + "".join(_expression(r, depth) + p for p in parts[1:])


def _block(r: random.Random, indent: int, depth: int) -> list[str]:
    lines = []
    for _ in range(r.randint(1, 3)):
        pad, kind = "    " * indent, r.randint(0, 9)
        if depth > 0 and kind == 0:
            lines += [f"{pad}if {_expression(r, 1)}:", *_block(r, indent + 1, depth - 1)]
            if r.random() < 0.5:
                lines += [f"{pad}else:", *_block(r, indent + 1, depth - 1)]
        elif depth > 0 and kind <= 2:
            over = r.choice(["range({})", "range({}, {})", "for_peers()", "{}", "static_range({})", "(1, 2, {})"])
            lines += [
                f"{pad}for {r.choice(['a', 'k', 't'])} in {_fill(r, over, 0)}:",
                *_block(r, indent + 1, depth - 1),
            ]
        elif depth > 0 and kind == 3:
            lines += [f"{pad}while {_expression(r, 1)}:", *_block(r, indent + 1, depth - 1)]
        elif depth > 0 and kind == 4:
            lines += [f"{pad}with role('a', 0, 1):", *_block(r, indent + 1, depth - 1)]
        elif kind <= 6:
            lines.append(f"{pad}{r.choice(['a', 'b', 't', 'world'])} = {_expression(r, 2)}")
        else:
            statement = r.choice(STATEMENTS)
            if statement in ("break", "continue") and depth >= 2:
                statement = "pass"
            lines.append(pad + _fill(r, statement, 1))
    return lines


def program(seed: int) -> str:
    """A kernel that Python itself accepts."""
    r = random.Random(seed)
    while True:
        body = ["    a = 1", "    b = x[0]", "    world = team()", *_block(r, 1, 2)]
        text = f"def twice(t):\n    return t * 2\n@kernel\ndef k({PARAMETERS}):\n" + "\n".join(body) + "\n"
        try:
            compile(text, "program", "exec")
            return text
        except SyntaxError:
            continue


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**9))
def test_random(load: Load, seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        text = program(seed)
        module = load(text)
    try:
        ir = module.k.text()
    except commsir.CompileError as error:
        assert error.file == module.__file__ and error.line, str(error)
        return
    try:
        commsir.compile_ir(ir, produce="ir")
    except commsir.CompileError as error:
        # The verifier knows more than the translation, and says it of the line; that the text parses is ours to see to.
        assert error.file == module.__file__, f"{error}\n{text}\n{ir}"
