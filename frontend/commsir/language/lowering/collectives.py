"""Collectives in kernels: a function over tiles becomes the region of the op."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from .. import collectives as f
from ..compiler import Compiler
from ..compiler.emitter import Line, quote
from ..compiler.registry import lowers
from ..compiler.values import Const, Memory, Scalar, Seq, Tile, Value, View, Window
from ..contracts import KINDS
from ..dtypes import F32, I32, DType
from .operands import a_team

Array = Memory | Window

# The shape of the outputs for x of [rows, n].
_SHAPES = {"1": "[rows, n]", "N": "[rows * ranks, n]", "1/N": "[rows // ranks, n]"}


@dataclass
class Exchange:
    """The arguments of one call of a collective."""

    name: str
    inputs: list[Array]
    outs: list[Array]
    args: list[Array]
    # How many times the rows of the inputs a rank gets: 1, the number of ranks, or one over it.
    scale: str = "1"
    reduces: bool = False


def _arrays(c: Compiler, value: Value, what: str) -> list[Array]:
    items = value.items if isinstance(value, Seq) else () if value == Const(None) else (value,)
    if isinstance(value, Const) and isinstance(value.py, tuple | list):
        items = tuple(map(Const, value.py))
    for item in items:
        if not isinstance(item, Memory | Window):
            hint = (
                "collectives take whole arrays" if isinstance(item, View | Tile) else "pass a parameter of the kernel"
            )
            c.fail(f"{what} is {item.describe()}, where a window or an array is needed", hint)
    return [i for i in items if isinstance(i, Memory | Window)]


def _exchange(c: Compiler, name: str, x: Value, outs: Value, args: Value, scale: str, reduces: bool) -> Exchange:
    inputs = _arrays(c, x, "what is exchanged")
    if not inputs:
        c.fail(f"{name} of nothing", "pass a window or an array")
    made = Exchange(name, inputs, _arrays(c, outs, "outs") or list(inputs), _arrays(c, args, "args"), scale, reduces)
    if c.in_region:
        c.fail("a collective inside the function of a collective")
    return made


def _rows(shape: tuple[int | None, ...]) -> int | None:
    if None in shape[:-1]:
        return None
    return math.prod(d for d in shape[:-1] if d is not None)


def _last(c: Compiler, array: Array) -> int:
    """Returns the length of a row, which regions need."""
    length = array.shape[-1]
    if length is None:
        c.fail(
            f"the length of the rows of {array.describe()} must be known where a collective has a function",
            "give the dimension when the kernel is specialized: k.specialize(name=…)",
        )
    return length


def _scaled(c: Compiler, e: Exchange, count: int | None) -> int | None:
    """Returns the number of result rows or elements for so many of the inputs, or None if it is not known."""
    size = c.ranks
    if count is None or e.scale == "1":
        return count
    if size is None:
        return None
    return count * size if e.scale == "N" else count // size


def _result_rows(c: Compiler, e: Exchange) -> int | None:
    return _scaled(c, e, _rows(e.inputs[0].shape))


def _cuts_row(e: Exchange) -> bool:
    """An array of rank 1 is cut by elements: tiles have its length, and stand for pieces of any size."""
    return len(e.inputs[0].shape) == 1 and (e.scale == "1/N" or e.name == "all_to_all")


def _accumulator(dtype: DType) -> DType:
    if dtype.is_float:
        return F32 if dtype.width < 32 else dtype
    return I32 if dtype.width == 8 else dtype


def _produced(c: Compiler, e: Exchange, produce: Value) -> tuple[list[Line], list[Tile]]:
    """Emits the region `produce` and returns the tiles that are sent."""
    if produce == Const(None):
        if any(None in a.shape for a in e.inputs):
            return [], []
        return [], [Tile("", a.dtype, _last(c, a)) for a in e.inputs]
    arguments = [Tile(c.emitter.fresh(), a.dtype, _last(c, a)) for a in e.inputs]
    for tile, array in zip(arguments, e.inputs, strict=True):
        c.emitter.hint(tile.name, f"{array.label}_row")
    return _region(c, "produce", produce, arguments, None)


def _region(
    c: Compiler,
    keyword: str,
    function: Value,
    arguments: list[Tile],
    wanted: list[tuple[DType, int | None, str]] | None,
) -> tuple[list[Line], list[Tile]]:
    place, lines = c.place, list[Line]()
    c.captures = {}
    with c.emitter.region(), c.emitter.into(lines, 1):
        result = c.region_of(keyword, function, list(arguments))
        c.place = place
        c.in_region = True
        items = result.items if isinstance(result, Seq) else (result,)
        if result == Const(None):
            c.fail(f"the function for {keyword} returns nothing", "return a tile, or a tuple of tiles")
        if wanted is not None and len(items) != len(wanted):
            c.fail(
                f"the function for {keyword} returns {len(items)} tiles for {len(wanted)} outputs",
                "return one tile for each of outs",
            )
        tiles = [_yielded(c, keyword, v, wanted[i] if wanted else None, arguments) for i, v in enumerate(items)]
        operands = ", ".join(t.name for t in tiles), ", ".join(t.type for t in tiles)
        c.emitter.emit(f"comms.yield {operands[0]} : {operands[1]}", place)
    c.in_region = False
    if c.captures and keyword == "produce":
        used = next(iter(c.captures.values()))[0]
        c.fail(
            f"the function for produce uses {used.describe()} of the kernel around it, but gets only the inputs' rows",
            "give an array next to the inputs, as in all_gather((x, it), …), or use it in consume",
        )
    arguments = [*arguments, *(tile for _, tile in c.captures.values())]
    parameters = ", ".join(f"{t.name}: {t.type}" for t in arguments)
    head = Line(f"{keyword} ({parameters}) {{", c.emitter.depth, None)
    return [head, *lines], tiles


def _yielded(
    c: Compiler, keyword: str, value: Value, wanted: tuple[DType, int | None, str] | None, arguments: list[Tile]
) -> Tile:
    n = c.number(value, f"what the function for {keyword} returns")
    length = n.length if isinstance(n, Tile) else arguments[0].length
    if wanted is None:
        return c.tile(n, length)
    dtype, needed, label = wanted
    if needed is not None and isinstance(n, Tile) and n.length not in (1, needed):
        c.fail(
            f"the function for {keyword} returns {n.describe()} for '{label}', whose rows have {needed} elements",
            "give the array rows of that length, or return a tile of it",
        )
    return c.tile(n, needed or length, dtype)


def _consumed(c: Compiler, e: Exchange, consume: Value, wire: list[Tile]) -> tuple[list[Line], list[Tile]]:
    """Emits the region `consume` and returns the tiles that are stored."""
    rows = _result_rows(c, e)
    arguments = []
    for tile in wire:
        dtype = _accumulator(tile.dtype) if e.reduces else tile.dtype
        arguments.append(Tile(c.emitter.fresh(), dtype, tile.length))
    for array in e.args:
        # The type decides, never the sizes: an array of one dimension is one row, which all rows of the result share.
        length = wire[0].length if _cuts_row(e) and len(array.shape) == 1 else _last(c, array)
        arguments.append(Tile(c.emitter.fresh(), array.dtype, length))
        c.emitter.hint(arguments[-1].name, f"{array.label}_row")
    wanted = [(a.dtype, wire[0].length if _cuts_row(e) else _output_length(c, a, rows), a.label) for a in e.outs]
    return _region(c, "consume", consume, arguments, wanted)


def _output_length(c: Compiler, array: Array, rows: int | None) -> int | None:
    if None in array.shape:
        return None
    count = math.prod(d for d in array.shape if d is not None)
    return count // rows if rows and count % rows == 0 and count else _last(c, array)


def _emit(
    c: Compiler, e: Exchange, lead: str, team: Value, consume: Value, produce: Value, algorithm: Value, protocol: Value
) -> None:
    place = c.place
    group = a_team(c, team)
    regions: list[list[Line]] = []
    lines, wire = _produced(c, e, produce)
    stored = wire
    if lines:
        regions.append(lines)
    if consume != Const(None):
        if not wire:
            _last(c, next(a for a in e.inputs if None in a.shape))
        lines, stored = _consumed(c, e, consume, wire)
        regions.append(lines)
        e.args.extend(_stored_number(c, value, tile) for value, tile in c.captures.values())
    elif e.args:
        c.fail(f"{e.name} has args but no function that reads them", "pass consume=lambda tile, …: …")
    if group.size == c.ranks:
        for array, tile in zip(e.outs, stored, strict=False):
            _infer(c, e, array, tile.length)
            _check_size(c, e, array, tile.length)
    text = f"comms.{e.name} {lead}{group.name} ins({_list(e.inputs)}) outs({_list(e.outs)})"
    if e.args:
        text += f" args({_list(e.args)})"
    tail = _attributes(c, algorithm=algorithm, protocol=protocol)
    if not regions:
        c.emitter.emit(text + tail, place)
        return
    c.emitter.emit(text, None)
    for i, region in enumerate(regions):
        c.emitter.splice(region)
        last = i + 1 == len(regions)
        c.emitter.emit("}" + (tail if last else ""), place if last else None)


def _infer(c: Compiler, e: Exchange, out: Array, length: int) -> None:
    """Infers the required shape of an output, for rows of that length, if its annotation leaves dimensions open."""
    spec = c.parameters.get(out.label)
    rows = _result_rows(c, e)
    if spec is None or c.arguments.get(out.label) != out or rows is None:
        return
    if _cuts_row(e):
        sizes = [_scaled(c, e, length)]
    elif len(out.shape) == 1:
        sizes = [rows * length]
    else:
        sizes = [*_lead(c, e, out, rows), length]
    for given, dim, size in zip(out.shape, spec.shape, sizes, strict=False):
        if given is None and size is not None:
            c.infer(dim, size)


def _lead(c: Compiler, e: Exchange, out: Array, rows: int) -> list[int | None]:
    """Returns the dimensions of an output but the last: one that is open follows from the number of rows; of several,
    all are as those of an input with as many dimensions.
    """
    known, given = list(out.shape[:-1]), e.inputs[0].shape[:-1]
    if known.count(None) > 1 and len(given) == len(known):
        like = [_scaled(c, e, given[0]), *given[1:]]
        known = [mine if mine is not None else theirs for mine, theirs in zip(known, like, strict=True)]
    share = math.prod(d for d in known if d is not None)
    if known.count(None) == 1 and share and rows % share == 0:
        known[known.index(None)] = rows // share
    return known


def _check_size(c: Compiler, e: Exchange, out: Array, length: int) -> None:
    """Rejects an output whose size differs from the result's, if both are known."""
    rows = _result_rows(c, e)
    if rows is None or _cuts_row(e) or None in out.shape:
        return
    held = math.prod(d for d in out.shape if d is not None)
    whole = e.scale != "1/N" or _rows(e.inputs[0].shape) == rows * (
        c.ranks or 1
    )  # Else the verifier refuses the input.
    if whole and held != rows * length:
        shape = ", ".join(map(str, out.shape))
        c.fail(
            f"'{out.label}' is [{shape}], but {e.name} gives each rank {rows} row{'s' * (rows != 1)} of {length}",
            f"where x is [rows, n], outs is an array of {_SHAPES[e.scale]}",
        )


def _stored_number(c: Compiler, value: Scalar | Tile, tile: Tile) -> Memory:
    """Stores a number of the kernel as a row shared by all rows, because regions can only read memory."""
    memory = Memory("", (1, tile.length), tile.dtype, "kept")
    memory = replace(memory, name=c.result(f"comms.scratch : {memory.type}"))
    c.store_tile(memory, Const(0), c.tile(value, tile.length, tile.dtype))
    return memory


def _attributes(c: Compiler, **attributes: Value) -> str:
    given = [f"{k} = {quote(c.known(v, k, str))}" for k, v in attributes.items() if v != Const(None)]
    return f" {{{', '.join(given)}}}" if given else ""


def _list(arrays: list[Array]) -> str:
    return ", ".join(a.name for a in arrays) + " : " + ", ".join(a.type for a in arrays)


def _needed(c: Compiler, outs: Value, name: str, scale: str = "1") -> Value:
    if outs == Const(None):
        why = "it does not write its input" if scale == "1" else "a rank gets more or less than it gives"
        c.fail(f"{name} needs outs=…: {why}", f"where x is [rows, n], outs is an array of {_SHAPES[scale]}")
    return outs


def _root(c: Compiler, root: Value) -> str:
    return f"root {c.known(root, 'the root', int, 'the root of a collective is the same for all calls')} "


def _lowers(function: Callable[..., object], scale: str, in_place: bool = True) -> None:
    """Registers the handler of a collective. Reductions have `op`; collectives from or to one rank have `root`."""
    name = function.__name__

    @lowers(function)
    def handler(
        c: Compiler,
        x: Value,
        team: Value,
        outs: Value,
        args: Value,
        consume: Value,
        produce: Value,
        algorithm: Value,
        protocol: Value,
        op: Value | None = None,
        root: Value | None = None,
    ) -> None:
        e = _exchange(c, name, x, outs if in_place else _needed(c, outs, name, scale), args, scale, op is not None)
        lead = "" if op is None else f"{c.choice(op, 'op', KINDS)} "
        lead += "" if root is None else _root(c, root)
        _emit(c, e, lead, team, consume, produce, algorithm, protocol)


_lowers(f.all_reduce, "1")
_lowers(f.broadcast, "1")
_lowers(f.reduce, "1")
_lowers(f.all_to_all, "1", in_place=False)
_lowers(f.all_gather, "N", in_place=False)
_lowers(f.gather, "N", in_place=False)
_lowers(f.reduce_scatter, "1/N", in_place=False)
_lowers(f.scatter, "1/N", in_place=False)


@lowers(f.send_recv)
def _send_recv(c: Compiler, x: Value, source: Value, dest: Value, team: Value, outs: Value, protocol: Value) -> None:
    e = _exchange(c, "send_recv", x, outs, Const(None), "1", False)
    if (length := e.inputs[0].shape[-1]) is not None:
        _infer(c, e, e.outs[0], length)
    ends = [c.known(v, what, int) for v, what in ((source, "the source"), (dest, "the destination"))]
    who = f"{a_team(c, team).name} from {ends[0]} to {ends[1]}"
    text = f"comms.send_recv {who} ins({_list(e.inputs)}) outs({_list(e.outs)})"
    c.emit(text + _attributes(c, protocol=protocol))


@lowers(f.all_to_all_v)
def _all_to_all_v(
    c: Compiler,
    x: Value,
    team: Value,
    send_rows: Value,
    recv_rows: Value,
    max_rows: Value,
    outs: Value,
    algorithm: Value,
    protocol: Value,
) -> None:
    e = _exchange(c, "all_to_all_v", x, _needed(c, outs, "all_to_all_v"), Const(None), "1", False)
    sends, recvs = (_arrays(c, v, what) for v, what in ((send_rows, "send_rows"), (recv_rows, "recv_rows")))
    if len(sends) != 1 or len(recvs) != 1:
        c.fail("send_rows and recv_rows are one array each: i32, one element a rank")
    most = _rows(e.inputs[0].shape) if max_rows == Const(None) else c.known(max_rows, "max_rows", int)
    if most is None:
        c.fail("max_rows is needed where the number of rows is not known", "write max_rows=…")
    numbers = [c.memory(a) for a in (*sends, *recvs)]
    text = f"comms.all_to_all_v {a_team(c, team).name} ins({_list(e.inputs)}) outs({_list(e.outs)})"
    text += f" send_rows({_list([numbers[0]])}) recv_rows({_list([numbers[1]])}) max_rows {most}"
    c.emit(text + _attributes(c, algorithm=algorithm, protocol=protocol))
