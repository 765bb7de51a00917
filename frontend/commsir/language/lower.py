"""What the functions, methods and attributes of the language become: one handler for each."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import functions as f
from .arithmetic import Number
from .compiler import ATTRIBUTES, FUNCTION_NAMES, FUNCTIONS, METHODS, Compiler, Handler
from .dtypes import BOOL, F32, I32, I64, INDEX, DType
from .emit import quote
from .values import (
    Cell,
    Cells,
    Channel,
    Const,
    Memory,
    Peers,
    Range,
    Scalar,
    Seq,
    Slot,
    Team,
    Tile,
    Token,
    Value,
    View,
    Window,
)

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("block", "cluster", "gpu", "sys")
KINDS = ("sum", "prod", "min", "max", "avg", "and", "or", "xor")


def _own_signature(handler: Handler, skipped: int) -> inspect.Signature:
    """The parameters of a handler but the first ones, with defaults as Python has them."""
    parameters = list(inspect.signature(handler).parameters.values())[skipped:]
    return inspect.Signature(
        [
            p.replace(annotation=p.empty, default=p.default.py if isinstance(p.default, Const) else p.default)
            for p in parameters
        ]
    )


def lowers(*implemented: Any) -> Callable[[Handler], Handler]:
    """The handler of functions; its own signature counts where Python's cannot be had."""

    def register(handler: Handler) -> Handler:
        for function in implemented:
            try:
                signature = inspect.signature(function)
                if function not in f.ALL:
                    raise ValueError
            except (TypeError, ValueError):
                signature = _own_signature(handler, 1)
            bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
            FUNCTIONS[function] = (inspect.Signature(bare), handler)
        return handler

    return register


def method(kinds: type[Value] | Iterable[type[Value]], name: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        signature = _own_signature(handler, 2)
        for kind in kinds if isinstance(kinds, Iterable) else (kinds,):
            METHODS[kind, name] = (signature, handler)
        return handler

    return register


def attribute(kinds: Iterable[type[Value]], name: str) -> Callable[[Any], Any]:
    def register(handler: Any) -> Any:
        for kind in kinds:
            ATTRIBUTES[kind, name] = handler
        return handler

    return register


# What several handlers need.


def _team(c: Compiler, team: Value) -> Team:
    if team == Const(None):
        return c.team("world")
    if isinstance(team, Const) and isinstance(team.py, str):
        return c.team(c.choice(team, "the team", ("world", "lsa", "rail"), "; what follows the team goes by name"))
    if isinstance(team, Memory | Window):
        c.fail(f"the team is {team.describe()}", f"what is written is named: outs={team.label}")
    if not isinstance(team, Team):
        c.fail(f"the team is {team.describe()}", "make one with team() or team_split(…); what follows it goes by name")
    return team


def _cell(c: Compiler, cell: Value, kind: str) -> Cell:
    if isinstance(cell, Cells) and cell.count == 1:
        cell = Cell(cell, Const(0))
    if not isinstance(cell, Cell) or cell.cells.kind != kind:
        c.fail(
            f"this is {cell.describe()}, where a cell of a {kind} is needed",
            f"a cell is written as a subscript: {cell.label if isinstance(cell, Cells) else kind}[0]",
        )
    return cell


def _cell_text(c: Compiler, cell: Cell) -> str:
    return f"{cell.cells.name}[{c.index(cell.index, 'the cell').name}]"


def _peer(c: Compiler, peer: Value, team: Team) -> str:
    return f"at {c.index(peer, 'the peer').name} of {team.name}"


def _gin(c: Compiler, gin: Value) -> str:
    if gin == Const(None):
        return ""
    text = c.known(gin, "gin", str, 'as in gin="context_id = 0"')
    if not re.fullmatch(r"[\w ,=]*", text):
        c.fail(f"gin is {gin.describe()}", 'as in gin="context_id = 0, backend = proxy"')
    return f" gin <{text}>" if text else " gin <>"


def _ordered(c: Compiler, order: Value, scope: Value | None = None, usual: str = "") -> str:
    text = c.choice(order, "the order", ORDERS)
    result = f" order {text}" if text != usual else ""
    if scope is not None and (reach := c.choice(scope, "the scope", SCOPES)) != "sys":
        result += f" scope {reach}"
    return result


def _change(c: Compiler, set_: Value, add: Value) -> tuple[str, str]:
    """`set`, `inc` or `add`, and its value."""
    if set_ != Const(None) and add != Const(None):
        c.fail("a signal either sets its cell or adds to it", "give set=… or add=…")
    if set_ == Const(None) and add == Const(None):
        return "inc", ""
    kind, value = ("set", set_) if add == Const(None) else ("add", add)
    return kind, f" value {c.integer(value, kind).name}"


def _until(c: Compiler, ge: Value, eq: Value) -> str:
    if (ge == Const(None)) == (eq == Const(None)):
        c.fail("a wait has one value", "write ge=value (at least) or eq=value (exactly)")
    kind, value = ("ge", ge) if eq == Const(None) else ("eq", eq)
    return f"{kind} {c.integer(value, kind).name}"


def _token(c: Compiler, text: str) -> Token:
    return Token(c.result(text, ""))


def _as_token(c: Compiler, token: Value, what: str, maker: str) -> Token:
    if not isinstance(token, Token):
        c.fail(f"{what} is {token.describe()}", f"it is the token that {maker}")
    return token


def _after(c: Compiler, after: Value) -> Token | None:
    if after == Const(None):
        return None
    return _as_token(c, after, "'after'", "a wait gives: t = wait_signal(…)")


def _optional(value: Value) -> Value | None:
    return None if value == Const(None) else value


def _valid(c: Compiler, valid: Value) -> str:
    return "" if valid == Const(None) else f" valid {c.index(valid, 'valid').name}"


def _length(c: Compiler, length: Value) -> int:
    if isinstance(length, Seq):
        c.fail(f"the length of a tile is {length.describe()}", "a tile has one dimension; arrays have more")
    n = c.known(
        length, "the length of a tile", int, "a number, a constant, or a dimension that is fixed: k.specialise(n=64)"
    )
    if n < 1:
        c.fail(f"a tile of {n} elements", "a tile has at least one element")
    return int(n)


def _a_tile(
    c: Compiler, value: Value, what: str = "the tile", dtype: DType | None = None, length: int | None = None
) -> Tile:
    n = c.number(value, what)
    if isinstance(n, Tile) or length is not None:
        return c.tile(n, length or n.length, dtype, what)  # type: ignore[union-attr]
    return c.tile(n, 1, dtype, what)


def _part(c: Compiler, value: Value, what: str) -> tuple[Memory | Window, Scalar, Value]:
    """Memory, offset and count of an array or a part of one."""
    if isinstance(value, Memory | Window):
        return value, c.constant(0, INDEX), c.size(value)
    if isinstance(value, View):
        if value.indices:
            return value.base, c.index(c._offset(value.base, value.indices), "the offset"), Const(1)
        return value.base, c.index(value.offset, "the offset"), value.count
    c.fail(
        f"{what} is {value.describe()}, where memory is needed",
        "pass an array or a part of one, such as x[0:64]; a tile is stored first",
    )


def _count(c: Compiler, count: Value, source: Value, dest: Value) -> Scalar:
    if count != Const(None):
        return c.index(count, "the count")
    if isinstance(source, Const) and isinstance(dest, Const) and source.py != dest.py:
        c.fail(
            f"{source.py} elements to a place of {dest.py}",
            "give both as parts of one length, such as x[0:32], or count=…",
        )
    return c.index(source if isinstance(source, Const) or not isinstance(dest, Const) else dest, "the count")


def _same_elements(c: Compiler, a: Memory | Window, b: Memory | Window) -> None:
    if a.dtype is not b.dtype:
        c.fail(
            f"{a.describe()} has {a.dtype.name}, {b.describe()} has {b.dtype.name}",
            "bytes travel as they are: both have one type",
        )


def _window(c: Compiler, value: Memory | Window, what: str) -> Window:
    if not isinstance(value, Window):
        c.fail(
            f"{what} is {value.describe()}, where a window is needed",
            "peers reach windows only: annotate it f32[Window, …]",
        )
    return value


# Teams and identity.


@lowers(f.team)
def _team_of(c: Compiler, kind: Value) -> Value:
    return c.team(c.choice(kind, "the kind of team", ("world", "lsa", "rail")))


@lowers(f.team_split)
def _split(c: Compiler, team: Value, kind: Value, factor: Value) -> Value:
    t = _team(c, team)
    how, n = c.choice(kind, "the kind of split", ("inner", "outer")), c.known(factor, "the factor", int)
    size = None if t.size is None else n if how == "inner" else t.size // n
    if t.size is not None and (n < 1 or t.size % n):
        c.fail(f"{n} does not divide a team of {t.size}")
    return Team(c.result(f"comms.team_split {t.name} {how} {n}", ""), size)


@method(Team, "inner")
def _inner(c: Compiler, team: Team, factor: Value) -> Value:
    return _split(c, team, Const("inner"), factor) or team


@method(Team, "outer")
def _outer(c: Compiler, team: Team, factor: Value) -> Value:
    return _split(c, team, Const("outer"), factor) or team


@lowers(f.rank)
def _rank(c: Compiler, team: Value) -> Value:
    return c.team_number("rank", _team(c, team))


@lowers(f.size)
def _size(c: Compiler, team: Value) -> Value:
    return c.team_number("size", _team(c, team))


@attribute((Team,), "rank")
def _rank_attribute(c: Compiler, team: Team) -> Value:
    return c.team_number("rank", team)


@attribute((Team,), "size")
def _size_attribute(c: Compiler, team: Team) -> Value:
    return c.team_number("size", team)


@lowers(f.translate_rank)
def _translate(c: Compiler, rank: Value, source: Value, to: Value) -> Value:
    names = _team(c, source).name, _team(c, to).name
    text = f"comms.translate_rank {c.index(rank, 'the rank').name} from {names[0]} to {names[1]}"
    return Scalar(c.result(text, ""), INDEX, True)


@method(Team, "translate")
def _translate_method(c: Compiler, team: Team, rank: Value, to: Value) -> Value | None:
    return _translate(c, rank, team, to)


@lowers(f.block_id)
def _block_id(c: Compiler) -> Value:
    return Scalar(c.result("comms.block_id", ""), INDEX, True)


@lowers(f.num_blocks)
def _num_blocks(c: Compiler) -> Value:
    return Scalar(c.result("comms.num_blocks", ""), INDEX, True)


@lowers(f.epoch)
def _epoch(c: Compiler) -> Value:
    return Scalar(c.result("comms.epoch", ""), INDEX, True)


@lowers(f.for_peers)
def _for_peers(c: Compiler, team: Value, reversed: Value) -> Value:
    return Peers(_team(c, team), c.known(reversed, "reversed", bool))


@method(Team, "peers")
def _peers(c: Compiler, team: Team, reversed: Value = Const(False)) -> Value | None:  # noqa: B008
    return _for_peers(c, team, reversed)


@lowers(f.role)
def _role(c: Compiler, name: Value, first: Value, last: Value) -> Value:
    c.fail('a role is written with: with role("name", first, last): …')


def _range_of(c: Compiler, arguments: Seq) -> Value:
    a = arguments.items
    if not 1 <= len(a) <= 3:
        c.fail("range takes one to three numbers")
    start, stop = (Const(0), a[0]) if len(a) == 1 else (a[0], a[1])
    return Range(start, stop, a[2] if len(a) == 3 else Const(1))


FUNCTIONS[range] = (
    inspect.Signature([inspect.Parameter("arguments", inspect.Parameter.VAR_POSITIONAL)]),
    _range_of,
)


@lowers(f.static_range)
def _static_range(c: Compiler, arguments: Seq) -> Value:
    numbers = [
        c.known(a, "an argument of static_range", int, "it needs numbers that are known; with ranks given, size() is")
        for a in arguments.items
    ]
    return Seq(tuple(Const(i) for i in range(*numbers)))


# Memory.


@lowers(f.local)
def _local(c: Compiler, window: Value) -> Value:
    return c.memory(window, "the window")


@method(Window, "local")
def _local_method(c: Compiler, window: Window) -> Value:
    return c.memory(window)


@lowers(f.peer)
def _peer_of(c: Compiler, window: Value, peer: Value, team: Value) -> Value:
    if not isinstance(window, Window):
        c.fail(f"this is {window.describe()}, where a window is needed", "annotate the parameter f32[Window, …]")
    t = _team(c, team)
    part = Memory("", window.shape, window.dtype, window.label)
    text = f"comms.peer {window.name} {_peer(c, peer, t)} : {window.type} -> {part.type}"
    return Memory(c.result(text, ""), window.shape, window.dtype, window.label, shared=True)


@method(Window, "peer")
def _peer_method(c: Compiler, window: Window, peer: Value, team: Value = Const(None)) -> Value | None:  # noqa: B008
    return _peer_of(c, window, peer, team)


@lowers(f.multimem)
def _multimem(c: Compiler, window: Value, team: Value) -> Value:
    if not isinstance(window, Window):
        c.fail(f"this is {window.describe()}, where a window is needed", "annotate the parameter f32[Window, …]")
    part = Memory("", window.shape, window.dtype, window.label, "multimem")
    name = c.result(f"comms.multimem {window.name} of {_team(c, team).name} : {window.type} -> {part.type}", "")
    return Memory(name, part.shape, part.dtype, part.label, part.space)


@method(Window, "multimem")
def _multimem_method(c: Compiler, window: Window, team: Value = Const(None)) -> Value | None:  # noqa: B008
    return _multimem(c, window, team)


@lowers(f.scratch)
def _scratch(c: Compiler, dtype: Value, shape: Value, space: Value) -> Value:
    sizes = tuple(c.known(d, "a dimension", int, "as in scratch(f32, 64)") for d in c._items(shape, ast.Pass()))
    where = c.choice(space, "the space", ("", "scratch", "shared"))
    memory = Memory("", sizes, c.element_type(dtype), "scratch", where)
    return Memory(c.result(f"comms.scratch : {memory.type}", ""), sizes, memory.dtype, "scratch", where)


@attribute((Memory, Window), "shape")
def _shape(c: Compiler, memory: Memory | Window) -> Value:
    return Seq(tuple(c.extent(memory, axis) for axis in range(len(memory.shape))))


@attribute((Memory, Window), "size")
def _memory_size(c: Compiler, memory: Memory | Window) -> Value:
    return c.size(memory)


@attribute((Memory, Window), "ndim")
def _ndim(c: Compiler, memory: Memory | Window) -> Value:
    return Const(len(memory.shape))


@attribute((Memory, Window, Tile, Scalar), "dtype")
def _dtype(c: Compiler, value: Any) -> Value:
    return Const(value.dtype)


@attribute((Tile,), "shape")
def _tile_shape(c: Compiler, tile: Tile) -> Value:
    return Seq((Const(tile.length),))


@lowers(len)
def _len(c: Compiler, value: Value) -> Value:
    if isinstance(value, Memory | Window):
        return c.extent(value, 0)
    if isinstance(value, View):
        value = c.load_view(value)
    if isinstance(value, Tile | Cells | Seq):
        return Const(
            value.length if isinstance(value, Tile) else value.count if isinstance(value, Cells) else len(value.items)
        )
    return Const(len(c._items(value, ast.Pass())))


# Tiles.


@lowers(f.tile_load)
def _tile_load(c: Compiler, memory: Value, offset: Value, length: Value, valid: Value, after: Value) -> Value:
    return c.load(memory, offset, _length(c, length), _optional(valid), _after(c, after))


@method((Memory, Window), "load")
def _load(
    c: Compiler,
    memory: Memory,
    offset: Value,
    length: Value,
    valid: Value = Const(None),  # noqa: B008
    after: Value = Const(None),  # noqa: B008
) -> Value | None:
    return _tile_load(c, memory, offset, length, valid, after)


@lowers(f.tile_store)
def _tile_store(c: Compiler, tile: Value, memory: Value, offset: Value, valid: Value) -> None:
    m = c.memory(memory, "the memory")
    if c.in_region:
        c.fail(
            f"the function of a collective cannot write {m.describe()}",
            "return the tile, and name the array in outs=(…)",
        )
    c.store_tile(m, offset, _a_tile(c, tile, dtype=m.dtype), _optional(valid))


@method((Memory, Window), "store")
def _store(c: Compiler, memory: Memory, tile: Value, offset: Value = Const(0), valid: Value = Const(None)) -> None:  # noqa: B008
    _tile_store(c, tile, memory, offset, valid)


def _reduce_tile(c: Compiler, kind: str, tile: Value) -> Tile:
    t = _a_tile(c, tile)
    text = f"comms.row_reduce {kind} {t.name} : {t.type} -> tensor<1x{t.dtype.mlir}>"
    return Tile(c.result(text, ""), t.dtype, 1)


@lowers(f.row_reduce)
def _row_reduce(c: Compiler, op: Value, tile: Value) -> Value:
    return _reduce_tile(c, c.choice(op, "the reduction", KINDS), tile)


for _name, _kind in {"sum": "sum", "prod": "prod", "min": "min", "max": "max", "mean": "avg"}.items():

    def _reduction(c: Compiler, tile: Value, *, kind: str = _kind) -> Value:
        return _reduce_tile(c, kind, tile)

    METHODS[Tile, _name] = (inspect.Signature(), _reduction)
    FUNCTIONS[getattr(np, _name)] = (
        inspect.Signature([inspect.Parameter("tile", inspect.Parameter.POSITIONAL_OR_KEYWORD)]),
        _reduction,
    )


def _quantifiers(which: str) -> tuple[Handler, Handler]:
    """`any` and `all` of the elements of a tile; as a function also of several conditions."""
    kind = "max" if which == "any" else "min"

    def of_tile(c: Compiler, tile: Value) -> Value:
        mask = c.convert(_a_tile(c, tile), BOOL)
        return c.convert(_reduce_tile(c, kind, c.convert(mask, I32)), BOOL)

    def handler(c: Compiler, values: Value) -> Value:
        values = c._computed(values)
        if not isinstance(values, Seq):
            return of_tile(c, values)
        result: Value = Const(which == "all")
        for condition in map(c.condition, values.items):
            if isinstance(result, Const) or isinstance(condition, Const):
                known, other = (result, condition) if isinstance(result, Const) else (condition, result)
                result = known if known == Const(which == "any") else other
            else:
                result = c.binary(ast.BitOr() if which == "any" else ast.BitAnd(), result, condition)
        return result

    return of_tile, handler


for _name in ("any", "all"):
    _of_tile, _of_values = _quantifiers(_name)
    METHODS[Tile, _name] = (inspect.Signature(), _of_tile)
    lowers(getattr(builtins, _name), getattr(np, _name))(_of_values)


@lowers(f.splat)
def _splat(c: Compiler, value: Value, length: Value, dtype: Value) -> Value:
    wanted = None if dtype == Const(None) else c.element_type(dtype)
    n = c.number(value, "the value")
    if wanted is None and isinstance(n, Const):
        wanted = I64 if c.default_dtype(n) is INDEX else c.default_dtype(n)
    return c.tile(n, _length(c, length), wanted, "the value")


@lowers(f.full)
def _full(c: Compiler, length: Value, value: Value, dtype: Value) -> Value | None:
    return _splat(c, value, length, dtype)


def _constant_tiles(number: int) -> Handler:
    def handler(c: Compiler, shape: Value, dtype: Value = Const(None)) -> Value:  # noqa: B008
        return c.tile(Const(number), _length(c, shape), F32 if dtype == Const(None) else c.element_type(dtype))

    return handler


lowers(np.zeros)(_constant_tiles(0))
lowers(np.ones)(_constant_tiles(1))


@lowers(np.full)
def _np_full(c: Compiler, shape: Value, fill_value: Value, dtype: Value = Const(None)) -> Value | None:  # noqa: B008
    return _splat(c, fill_value, shape, dtype)


@lowers(f.zeros)
def _zeros(c: Compiler, length: Value, dtype: Value) -> Value | None:
    return _constant_tiles(0)(c, length, dtype)


@lowers(f.broadcast_row)
def _broadcast_row(c: Compiler, tile: Value, length: Value) -> Value:
    t = _a_tile(c, tile)
    if t.length != 1:
        c.fail(f"broadcast_row of {t.describe()}", "it repeats a tile of one; t.sum() and t.max() make such")
    return c.tile(t, _length(c, length))


@lowers(f.iota)
def _iota(c: Compiler, length: Value, dtype: Value) -> Value:
    d = I32 if dtype == Const(None) else c.element_type(dtype)
    n = _length(c, length)
    made = d if d.kind == "int" or d.width >= 32 else F32
    made = I64 if made is INDEX else made
    tile = Tile(c.result(f"comms.iota : tensor<{n}x{made.mlir}>", ""), made, n)
    return c.convert(tile, d) if d is not INDEX else tile


@lowers(np.arange)
def _arange(c: Compiler, start: Value, stop: Value = Const(None), dtype: Value = Const(None)) -> Value:  # noqa: B008
    if stop == Const(None):
        return _iota(c, start, dtype) or start
    first, end = (c.known(v, f"the {what} of arange", int) for v, what in ((start, "start"), (stop, "end")))
    return c.binary(ast.Add(), _iota(c, Const(end - first), dtype) or start, Const(first))


@lowers(f.where, np.where)
def _where(c: Compiler, condition: Value, a: Value, b: Value) -> Value:
    return c.select(condition, a, b)


def _extremes(which: str) -> Handler:
    def handler(c: Compiler, a: Value, b: Value) -> Value:
        return c.extremum(which, c._computed(a), c._computed(b))

    return handler


lowers(f.minimum, np.minimum)(_extremes("min"))
lowers(f.maximum, np.maximum)(_extremes("max"))


def _python_extremes(which: str) -> Handler:
    def handler(c: Compiler, values: Seq) -> Value:
        items = [c._computed(v) for v in values.items]
        if len(items) == 1:
            if isinstance(items[0], Tile):
                return _reduce_tile(c, which, items[0])
            items = list(c._items(items[0], ast.Pass()))
        if not items:
            c.fail(f"{which} of nothing")
        result = items[0]
        for item in items[1:]:
            result = c.extremum(which, result, item)
        return result

    return handler


_VALUES = inspect.Signature([inspect.Parameter("values", inspect.Parameter.VAR_POSITIONAL)])
FUNCTIONS[min] = (_VALUES, _python_extremes("min"))
FUNCTIONS[max] = (_VALUES, _python_extremes("max"))


@lowers(f.clip, np.clip)
def _clip(c: Compiler, a: Value, low: Value, high: Value) -> Value:
    return c.extremum("min", c.extremum("max", c._computed(a), c._computed(low)), c._computed(high))


@lowers(f.fma)
def _fma(comp: Compiler, a: Value, b: Value, c: Value) -> Value:
    x, y = comp.both(a, b, "fma")
    x, z = comp.both(x, c, "fma")
    x, y = comp.both(x, y, "fma")
    y, z = comp.both(y, z, "fma")
    if not x.dtype.is_float:
        comp.fail("fma of integers", "write a * b + c")
    return comp._like(x, comp.result(f"math.fma {x.name}, {y.name}, {z.name} : {x.type}", ""), x.dtype)


def _converted(c: Compiler, value: Value, dtype: Value) -> Number:
    d, n = c.element_type(dtype), c.number(value)
    if isinstance(n, Tile):
        return c.tile(n, n.length, I64 if d is INDEX else d)
    return c.scalar(n, d)


@lowers(f.cast)
def _cast(c: Compiler, value: Value, dtype: Value) -> Value:
    return _converted(c, value, dtype)


@method((Tile, Scalar), "astype")
def _astype(c: Compiler, value: Value, dtype: Value) -> Value:
    return _converted(c, value, dtype)


@method((Tile, Scalar), "item")
def _item(c: Compiler, value: Tile | Scalar) -> Value:
    return c.scalar(value)


@lowers(f.bitcast)
def _bitcast(c: Compiler, value: Value, dtype: Value) -> Value:
    d, n = c.element_type(dtype), c.number(value)
    if isinstance(n, Const) or n.dtype.width != d.width or INDEX in (d, n.dtype):
        c.fail(f"bitcast of {n.describe()} to {d.name}", "both have the same number of bits")
    to = c._typed(n, d)
    return c._like(n, c.result(f"arith.bitcast {n.name} : {n.type} to {to}", ""), d)


# Mathematics. Python's `math` and NumPy's functions are the same ops.

_MATH = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log1p": "log1p", "sqrt": "sqrt",
    "rsqrt": "rsqrt", "cbrt": "cbrt", "tanh": "tanh", "sinh": "sinh", "cosh": "cosh", "sin": "sin", "cos": "cos",
    "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "erf": "erf", "erfc": "erfc", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "rint": "roundeven",
}  # fmt: skip
_FOLDED: dict[str, Callable[[float], float]] = {"rsqrt": lambda x: 1 / math.sqrt(x), "rint": round}


def _unary(name: str) -> Handler:
    fold = _FOLDED.get(name) or getattr(math, name, None) or (lambda x: float(getattr(np, name)(x)))

    def handler(c: Compiler, x: Value) -> Value:
        if isinstance(x, Const) and x.is_number:
            try:
                return Const(fold(x.py))
            except (ValueError, ArithmeticError) as error:
                c.fail(f"{name} of {x.py}: {error}")
        return c.unary_math(_MATH[name], x)

    return handler


def _elsewhere(name: str) -> list[Any]:
    return [g for library in (math, np) if (g := getattr(library, name, None)) is not None]


for _name in _MATH:
    lowers(getattr(f, _name), *_elsewhere(_name))(_unary(_name))


def _predicate(name: str) -> Handler:
    def handler(c: Compiler, x: Value) -> Value:
        return Const(getattr(math, name)(x.py)) if isinstance(x, Const) and x.is_number else c.predicate(name, x)

    return handler


for _name in ("isnan", "isinf", "isfinite"):
    lowers(getattr(f, _name), *_elsewhere(_name))(_predicate(_name))


@lowers(abs, np.abs, math.fabs, operator.abs)
def _abs(c: Compiler, x: Value) -> Value:
    return c.absolute(x)


@lowers(pow, math.pow, np.power)
def _pow(c: Compiler, x: Value, y: Value) -> Value:
    return c.binary(ast.Pow(), c._computed(x), c._computed(y))


@lowers(divmod)
def _divmod(c: Compiler, x: Value, y: Value) -> Value:
    return Seq((c.binary(ast.FloorDiv(), x, y), c.binary(ast.Mod(), x, y)))


@lowers(round)
def _round(c: Compiler, x: Value) -> Value:
    return c.scalar(c.unary_math("roundeven", x), I64)


@lowers(math.copysign, np.copysign)
def _copysign(c: Compiler, x: Value, y: Value) -> Value:
    return c.binary_math("copysign", x, y)


@lowers(math.atan2, np.arctan2)
def _atan2(c: Compiler, x: Value, y: Value) -> Value:
    return c.binary_math("atan2", x, y)


@lowers(enumerate)
def _enumerate(c: Compiler, values: Value, start: Value = Const(0)) -> Value:  # noqa: B008
    first = c.known(start, "the start of enumerate", int)
    return Seq(tuple(Seq((Const(first + i), v)) for i, v in enumerate(c._items(values, ast.Pass()))))


def _zip_of(c: Compiler, values: Seq) -> Value:
    return Seq(tuple(Seq(parts) for parts in zip(*(c._items(v, ast.Pass()) for v in values.items), strict=False)))


FUNCTIONS[zip] = (_VALUES, _zip_of)


@lowers(reversed)
def _reversed(c: Compiler, values: Value) -> Value:
    if isinstance(values, Peers):
        return Peers(values.team, not values.reversed)
    if isinstance(values, Range) and values.step == Const(1):
        before = [c.binary(ast.Sub(), v, Const(1)) for v in (values.stop, values.start)]
        return Range(before[0], before[1], Const(-1))
    return Seq(c._items(values, ast.Pass())[::-1])


@lowers(tuple, list)
def _tuple(c: Compiler, values: Value = Seq(())) -> Value:  # noqa: B008
    return Seq(c._items(values, ast.Pass()))


# One-sided operations.


@lowers(f.put)
def _put(
    c: Compiler, source: Value, window: Value, peer: Value, team: Value, count: Value, counted: Value, gin: Value
) -> None:
    text, types = _transfer(c, source, window, peer, team, count)
    if counted != Const(None):
        cell = _cell(c, counted, "counter")
        text += f" counted {_cell_text(c, cell)} : {cell.cells.type}"
    c.emitter.emit(f"comms.put {text}{_gin(c, gin)} : {types}", c.place)


def _transfer(c: Compiler, source: Value, window: Value, peer: Value, team: Value, count: Value) -> tuple[str, str]:
    """From memory of this rank to a window of a peer: operands and types."""
    base, offset, there = _part(c, source, "the source")
    whole, at, room = _part(c, window, "the destination")
    target = _window(c, whole, "the destination")
    _same_elements(c, base, target)
    own = c.memory(base)
    n = _count(c, count, there, room)
    to = _peer(c, peer, _team(c, team))
    return f"{own.name}[{offset.name}] to {target.name}[{at.name}] count {n.name} {to}", f"{own.type}, {target.type}"


@lowers(f.put_signal)
def _put_signal(
    c: Compiler,
    source: Value,
    window: Value,
    peer: Value,
    cell: Value,
    team: Value,
    count: Value,
    set: Value,
    add: Value,
    gin: Value,
) -> None:
    text, types = _transfer(c, source, window, peer, team, count)
    s, (kind, value) = _cell(c, cell, "signal"), _change(c, set, add)
    c.emitter.emit(
        f"comms.put_signal {text} then {kind} {_cell_text(c, s)}{value}{_gin(c, gin)} : {types}, {s.cells.type}",
        c.place,
    )


@lowers(f.get)
def _get(c: Compiler, window: Value, dest: Value, peer: Value, team: Value, count: Value, gin: Value) -> None:
    whole, offset, there = _part(c, window, "the source")
    source = _window(c, whole, "the source")
    base, at, room = _part(c, dest, "the destination")
    _same_elements(c, source, base)
    own, n = c.memory(base), _count(c, count, there, room)
    to = _peer(c, peer, _team(c, team))
    text = f"{source.name}[{offset.name}] to {own.name}[{at.name}] count {n.name} {to}{_gin(c, gin)}"
    c.emitter.emit(f"comms.get {text} : {source.type}, {own.type}", c.place)


@lowers(f.engine_copy)
def _engine_copy(c: Compiler, source: Value, window: Value, peer: Value, team: Value, count: Value) -> None:
    text, types = _transfer(c, source, window, peer, team, count)
    c.emitter.emit(f"comms.engine_copy {text} : {types}", c.place)


@lowers(f.bulk_copy)
def _bulk_copy(c: Compiler, source: Value, dest: Value, count: Value) -> Value:
    base, offset, there = _part(c, source, "the source")
    target, at, room = _part(c, dest, "the destination")
    _same_elements(c, base, target)
    a, b, n = c.memory(base), c.memory(target), _count(c, count, there, room)
    return _token(
        c, f"comms.bulk_copy {a.name}[{offset.name}] to {b.name}[{at.name}] count {n.name} : {a.type}, {b.type}"
    )


@lowers(f.bulk_wait)
def _bulk_wait(c: Compiler, copies: Seq) -> Value:
    tokens = [_as_token(c, t, "what is waited for", "bulk_copy gives") for t in copies.items]
    if not tokens:
        c.fail("bulk_wait of nothing", "name the tokens of bulk_copy")
    return _token(c, "comms.bulk_wait " + ", ".join(t.name for t in tokens))


@lowers(f.signal)
def _signal(
    c: Compiler, cell: Value, peer: Value, team: Value, set: Value, add: Value, order: Value, scope: Value, gin: Value
) -> None:
    s, (kind, value) = _cell(c, cell, "signal"), _change(c, set, add)
    how = _ordered(c, order, scope, "release") + _gin(c, gin)
    c.emitter.emit(
        f"comms.signal {kind} {_cell_text(c, s)}{value} {_peer(c, peer, _team(c, team))}{how} : {s.cells.type}", c.place
    )


@lowers(f.wait_signal)
def _wait_signal(c: Compiler, cell: Value, ge: Value, eq: Value, order: Value, scope: Value) -> Value:
    s = _cell(c, cell, "signal")
    how = f"{_until(c, ge, eq)}{_ordered(c, order, scope, 'acquire')}"
    return _token(c, f"comms.wait_signal {_cell_text(c, s)} {how} : {s.cells.type}")


@lowers(f.wait_signal_from)
def _wait_signal_from(
    c: Compiler, cell: Value, peer: Value, team: Value, ge: Value, eq: Value, order: Value, scope: Value
) -> Value:
    s, t = _cell(c, cell, "signal"), _team(c, team)
    who = f"from {c.index(peer, 'the peer').name} of {t.name}"
    how = _ordered(c, order, scope, "acquire")
    return _token(c, f"comms.wait_signal_from {_cell_text(c, s)} {_until(c, ge, eq)} {who}{how} : {s.cells.type}")


@lowers(f.read_signal)
def _read_signal(c: Compiler, cell: Value, order: Value) -> Value:
    s = _cell(c, cell, "signal")
    return Scalar(
        c.result(f"comms.read_signal {_cell_text(c, s)}{_ordered(c, order, None, 'acquire')} : {s.cells.type}", ""),
        I64,
        True,
    )


@lowers(f.reset_signal)
def _reset_signal(c: Compiler, cell: Value) -> None:
    s = _cell(c, cell, "signal")
    c.emitter.emit(f"comms.reset_signal {_cell_text(c, s)} : {s.cells.type}", c.place)


@lowers(f.wait_counter)
def _wait_counter(c: Compiler, cell: Value, ge: Value) -> Value:
    s = _cell(c, cell, "counter")
    return _token(c, f"comms.wait_counter {_cell_text(c, s)} ge {c.integer(ge, 'ge').name} : {s.cells.type}")


@lowers(f.read_counter)
def _read_counter(c: Compiler, cell: Value) -> Value:
    s = _cell(c, cell, "counter")
    return Scalar(c.result(f"comms.read_counter {_cell_text(c, s)} : {s.cells.type}", ""), I64, True)


@lowers(f.reset_counter)
def _reset_counter(c: Compiler, cell: Value) -> None:
    s = _cell(c, cell, "counter")
    c.emitter.emit(f"comms.reset_counter {_cell_text(c, s)} : {s.cells.type}", c.place)


@lowers(f.flush)
def _flush(c: Compiler, team: Value, gin: Value) -> None:
    c.emitter.emit(f"comms.flush {_team(c, team).name}{_gin(c, gin)}", c.place)


@lowers(f.fence)
def _fence(c: Compiler, order: Value, scope: Value, proxy: Value) -> None:
    how = f"{c.choice(order, 'the order', ORDERS)} {c.choice(scope, 'the scope', SCOPES)}"
    through = c.choice(proxy, "the proxy", ("generic", "async", "alias", "copy_engine"))
    c.emitter.emit(f"comms.fence {how}" + (f" proxy {through}" if through != "generic" else ""), c.place)


# Barriers.


def _barrier_text(c: Compiler, team: Value, extent: Value, order: Value, usual: str) -> str:
    where = c.choice(extent, "the extent", ("block", "grid"))
    return f"{_team(c, team).name} {where}{_ordered(c, order, None, usual)}"


@lowers(f.barrier)
def _barrier(c: Compiler, team: Value, extent: Value, order: Value) -> None:
    c.emitter.emit(f"comms.barrier {_barrier_text(c, team, extent, order, 'acq_rel')}", c.place)


@lowers(f.barrier_arrive)
def _barrier_arrive(c: Compiler, team: Value, extent: Value, order: Value) -> Value:
    return _token(c, f"comms.barrier_arrive {_barrier_text(c, team, extent, order, 'release')}")


@lowers(f.barrier_wait)
def _barrier_wait(c: Compiler, arrived: Value, order: Value) -> Value:
    token = _as_token(c, arrived, "what is waited for", "barrier_arrive gives: t = barrier_arrive()")
    return _token(c, f"comms.barrier_wait {token.name}{_ordered(c, order, None, 'acquire')}")


# Packets, poison, multimem.


def _at(c: Compiler, memory: Value, offset: Value) -> tuple[Memory, str]:
    m = c.memory(memory, "the memory")
    return m, f"{m.name}[{c.index(offset, 'the offset').name}]"


def _assumes(c: Compiler, assumes: Value) -> str:
    text = c.choice(assumes, "the assumption", ("store8_whole", "store16_whole", "store128_whole"))
    return "" if text == "store8_whole" else f" assumes {text}"


@lowers(f.packet_store)
def _packet_store(
    c: Compiler, tile: Value, memory: Value, offset: Value, flag: Value, valid: Value, assumes: Value
) -> None:
    t, (m, at) = _a_tile(c, tile), _at(c, memory, offset)
    how = f"flag {c.integer(flag, 'the flag', I32).name}{_valid(c, valid)}{_assumes(c, assumes)}"
    c.emitter.emit(f"comms.packet_store {t.name}, {at} {how} : {t.type}, {m.type}", c.place)


@lowers(f.packet_load)
def _packet_load(
    c: Compiler, memory: Value, offset: Value, length: Value, dtype: Value, flag: Value, valid: Value, assumes: Value
) -> Value:
    (m, at), n, d = _at(c, memory, offset), _length(c, length), c.element_type(dtype)
    how = f"flag {c.integer(flag, 'the flag', I32).name}{_valid(c, valid)}{_assumes(c, assumes)}"
    return Tile(c.result(f"comms.packet_load {at} {how} : {m.type} -> tensor<{n}x{d.mlir}>", ""), d, n)


def _stores(op: str) -> Handler:
    def handler(c: Compiler, tile: Value, memory: Value, offset: Value, valid: Value) -> None:
        m, at = _at(c, memory, offset)
        t = _a_tile(c, tile, dtype=m.dtype)
        c.emitter.emit(f"comms.{op} {t.name}, {at}{_valid(c, valid)} : {t.type}, {m.type}", c.place)

    return handler


lowers(f.poison_store)(_stores("poison_store"))
lowers(f.multimem_store)(_stores("multimem_store"))


@lowers(f.poison_load)
def _poison_load(c: Compiler, memory: Value, offset: Value, length: Value, valid: Value) -> Value:
    (m, at), n = _at(c, memory, offset), _length(c, length)
    text = f"comms.poison_load {at}{_valid(c, valid)} : {m.type} -> tensor<{n}x{m.dtype.mlir}>"
    return Tile(c.result(text, ""), m.dtype, n)


@lowers(f.poison_fill)
def _poison_fill(c: Compiler, memory: Value, offset: Value, count: Value) -> None:
    m, at = _at(c, memory, offset)
    n = c.index(c.size(m) if count == Const(None) else count, "the count")
    c.emitter.emit(f"comms.poison_fill {at} count {n.name} : {m.type}", c.place)


@lowers(f.multimem_load_reduce)
def _multimem_load_reduce(c: Compiler, op: Value, memory: Value, offset: Value, length: Value, valid: Value) -> Value:
    kind, (m, at), n = c.choice(op, "the reduction", KINDS), _at(c, memory, offset), _length(c, length)
    text = f"comms.multimem_load_reduce {kind} {at}{_valid(c, valid)} : {m.type} -> tensor<{n}x{m.dtype.mlir}>"
    return Tile(c.result(text, ""), m.dtype, n)


@lowers(f.multimem_reduce)
def _multimem_reduce(c: Compiler, op: Value, tile: Value, memory: Value, offset: Value, valid: Value) -> None:
    kind, (m, at) = c.choice(op, "the reduction", KINDS), _at(c, memory, offset)
    t = _a_tile(c, tile, dtype=m.dtype)
    c.emitter.emit(f"comms.multimem_reduce {kind} {t.name}, {at}{_valid(c, valid)} : {t.type}, {m.type}", c.place)


# Channels.


@lowers(f.channel)
def _channel(
    c: Compiler, length: Value, dtype: Value, team: Value, pattern: Value, slots: Value, protocol: Value
) -> Value:
    how = c.choice(pattern, "the pattern", ("multicast", "pairwise", "single"))
    n, by = c.known(slots, "the number of slots", int), c.known(protocol, "the protocol", str)
    made = Channel(
        "", by if by.isidentifier() and by.isascii() else quote(by), _length(c, length), c.element_type(dtype), how
    )
    name = c.result(f"comms.channel {c.channels} {how} over {_team(c, team).name} slots {n} : {made.type}", "")
    c.channels += 1
    return Channel(name, made.protocol, made.length, made.dtype, how)


def _slot(c: Compiler, slot: Value) -> Slot:
    if isinstance(slot, Channel):
        return Slot(slot, Const(0))
    if not isinstance(slot, Slot):
        c.fail(f"this is {slot.describe()}, where a slot of a channel is needed", "write channel[0]")
    return slot


@lowers(f.send)
def _send(c: Compiler, tile: Value, slot: Value, peer: Value, valid: Value) -> None:
    s = _slot(c, slot)
    t = _a_tile(c, tile, dtype=s.channel.dtype, length=s.channel.length)
    to = "" if peer == Const(None) else f" to {c.index(peer, 'the peer').name}"
    at = f"{s.channel.name}[{c.index(s.index, 'the slot').name}]"
    c.emitter.emit(f"comms.send {t.name} on {at}{to}{_valid(c, valid)} : {t.type}, {s.channel.type}", c.place)


@lowers(f.recv)
def _recv(c: Compiler, slot: Value, peer: Value, valid: Value) -> Value:
    s = _slot(c, slot)
    made = Tile("", s.channel.dtype, s.channel.length)
    at = f"{s.channel.name}[{c.index(s.index, 'the slot').name}] from {c.index(peer, 'the peer').name}"
    return Tile(
        c.result(f"comms.recv {at}{_valid(c, valid)} : {s.channel.type} -> {made.type}", ""), made.dtype, made.length
    )


@lowers(f.channel_barrier)
def _channel_barrier(c: Compiler, channel: Value) -> None:
    if not isinstance(channel, Channel):
        c.fail(f"this is {channel.describe()}, where a channel is needed")
    c.emitter.emit(f"comms.channel_barrier {channel.name} : {channel.type}", c.place)


@lowers(f.check_bounds)
def _check_bounds(c: Compiler, what: Value, offset: Value, count: Value, limit: Value) -> None:
    text = c.known(what, "the description", str)
    o, n, end = (c.index(v, "a number of check_bounds") for v in (offset, count, limit))
    c._check(text, o, n, end)


def _names() -> list[str]:
    ours = [g.__name__ for g in f.ALL]
    return ours + [n for n, g in vars(builtins).items() if callable(g) and _is_known(g)]


def _is_known(function: Any) -> bool:
    try:
        return function in FUNCTIONS
    except TypeError:
        return False


def register() -> None:
    """Everything that kernels can call is known once this module and `collectives` are imported."""
    from . import collectives  # noqa: F401

    FUNCTION_NAMES[:] = _names()
