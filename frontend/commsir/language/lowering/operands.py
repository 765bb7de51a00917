"""Operands of handlers: teams, cells, parts of memory, clauses. Errors suggest a correction."""

from __future__ import annotations

from ..compiler import Compiler
from ..compiler.values import Cell, Cells, Const, Memory, Scalar, Seq, Team, Tile, Token, Value, View, Window
from ..contracts import KINDS
from ..diagnostics import did_you_mean
from ..dtypes import BOOL, F32, I32, INDEX, DType

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("block", "cluster", "gpu", "sys")


def a_team(c: Compiler, team: Value) -> Team:
    if team == Const(None):
        return c.team("world")
    if isinstance(team, Const) and isinstance(team.py, str):
        if team.py in KINDS:
            c.fail(f"the team is {team.describe()}", f'that is a reduction: op="{team.py}"')
        return c.team(
            c.choice(team, "the team", ("world", "lsa", "rail"), "; pass the arguments after the team by name")
        )
    if isinstance(team, Memory | Window):
        c.fail(f"the team is {team.describe()}", f"pass outputs by name: outs={team.label}")
    if not isinstance(team, Team):
        c.fail(
            f"the team is {team.describe()}",
            "make one with team() or team_split(…); pass the arguments after it by name",
        )
    return team


def a_cell(c: Compiler, cell: Value, kind: str) -> Cell:
    if isinstance(cell, Cells) and cell.count == 1:
        cell = Cell(cell, Const(0))
    if not isinstance(cell, Cell) or cell.cells.kind != kind:
        c.fail(
            f"this is {cell.describe()}, where a cell of a {kind} is needed",
            f"a cell is written as a subscript: {cell.label if isinstance(cell, Cells) else kind}[0]",
        )
    return cell


def cell_text(c: Compiler, cell: Cell) -> str:
    return f"{cell.cells.name}[{c.index(cell.index, 'the cell').name}]"


def at_peer(c: Compiler, peer: Value, team: Team) -> str:
    return f"at {c.index(peer, 'the peer').name} of {team.name}"


# What `gin=` takes: a number, or one of these words.
_GIN: dict[str, tuple[str, ...]] = {"context_id": (), "backend": ("any", "proxy", "gdaki"), "fence": SCOPES}
_GIN_TAKES = (
    'gin="" is NCCL\'s own choice, gin="context_id = 0, backend = proxy, fence = sys" says all that there is to say: '
    f"backend is {', '.join(_GIN['backend'])}, fence {', '.join(SCOPES)}"
)


def gin_clause(c: Compiler, gin: Value) -> str:
    if gin == Const(None):
        return ""
    text = c.known(gin, "gin", str, _GIN_TAKES).strip()
    for setting in filter(None, text.split(",")) if text else ():
        _check_gin(c, setting)
    return f" gin <{text}>" if text else " gin <>"


def _check_gin(c: Compiler, setting: str) -> None:
    """Checks one GIN setting, as in `backend = proxy`."""
    name, equals, value = (part.strip() for part in setting.partition("="))
    if not equals:
        owner = next((key for key, words in _GIN.items() if name in words), "")
        c.fail(f"gin has '{name}', which is not a setting", f'write gin="{owner} = {name}"' if owner else _GIN_TAKES)
    if name not in _GIN:
        c.fail(f"gin has no setting '{name}'", did_you_mean(name, _GIN) or _GIN_TAKES)
    words = _GIN[name]
    if value not in words if words else not value.isdecimal():
        c.fail(
            f"{name} of gin is '{value}'", f"it is one of {', '.join(words)}" if words else "it is a number from 0 on"
        )


def order_clause(c: Compiler, order: Value, scope: Value | None = None, usual: str = "") -> str:
    text = c.choice(order, "the order", ORDERS)
    result = f" order {text}" if text != usual else ""
    if scope is not None and (reach := c.choice(scope, "the scope", SCOPES)) != "sys":
        result += f" scope {reach}"
    return result


def change_clause(c: Compiler, set_: Value, add: Value) -> tuple[str, str]:
    """Returns `set`, `inc` or `add`, and its value."""
    if set_ != Const(None) and add != Const(None):
        c.fail("a signal either sets its cell or adds to it", "give set=… or add=…")
    if set_ == Const(None) and add == Const(None):
        return "inc", ""
    kind, value = ("set", set_) if add == Const(None) else ("add", add)
    return kind, f" value {c.integer(value, kind).name}"


def until_clause(c: Compiler, ge: Value, eq: Value) -> str:
    if (ge == Const(None)) == (eq == Const(None)):
        c.fail("a wait has one value", "write ge=value (at least) or eq=value (exactly)")
    kind, value = ("ge", ge) if eq == Const(None) else ("eq", eq)
    return f"{kind} {c.integer(value, kind).name}"


def a_token(c: Compiler, token: Value, what: str, maker: str) -> Token:
    if not isinstance(token, Token):
        c.fail(f"{what} is {token.describe()}", f"it is the token that {maker}")
    return token


def after_token(c: Compiler, after: Value) -> Token | None:
    if after == Const(None):
        return None
    return a_token(c, after, "'after'", "a wait gives: t = wait_signal(…)")


def optional(value: Value) -> Value | None:
    return None if value == Const(None) else value


def valid_clause(c: Compiler, valid: Value) -> str:
    return c.valid(optional(valid))


def a_length(c: Compiler, length: Value) -> int:
    if isinstance(length, Seq):
        c.fail(f"the length of a tile is {length.describe()}", "a tile has one dimension; arrays have more")
    n = c.known(
        length, "the length of a tile", int, "a number, a constant, or a dimension that is fixed: k.specialize(n=64)"
    )
    if n < 1:
        c.fail(f"a tile of {n} elements", "a tile has at least one element")
    return int(n)


def a_tile(
    c: Compiler, value: Value, what: str = "the tile", dtype: DType | None = None, length: int | None = None
) -> Tile:
    n = c.number(value, what)
    if isinstance(n, Tile) or length is not None:
        return c.tile(n, length or n.length, dtype, what)  # type: ignore[union-attr]
    return c.tile(n, 1, dtype, what)


def reduce_tile(c: Compiler, kind: str, tile: Value) -> Tile:
    t = a_tile(c, tile)
    if t.dtype is BOOL and kind not in ("and", "or", "xor"):
        return _reduce_mask(c, kind, t)
    return Tile(c.result(f"comms.row_reduce {kind} {t.name} : {t.type} -> tensor<1x{t.dtype.mlir}>"), t.dtype, 1)


def _reduce_mask(c: Compiler, kind: str, mask: Tile) -> Tile:
    """As of numbers: a bit has no room for a sum, and is negative where it is set."""
    reduced = reduce_tile(c, kind, c.tile(mask, mask.length, F32 if kind == "avg" else I32))
    return c.tile(reduced, 1, BOOL) if kind in ("min", "max") else reduced


def a_part(c: Compiler, value: Value, what: str) -> tuple[Memory | Window, Scalar, Value]:
    """Returns memory, offset and count of an array or a part of one."""
    if isinstance(value, Memory | Window):
        return value, c.constant(0, INDEX), c.size(value)
    if isinstance(value, View):
        if not value.is_tile:
            c.fail(f"{what} is {value.describe()} whose rows are not contiguous", "copy it row by row")
        if value.indices:
            return value.base, c.index(c.offset(value.base, value.indices), "the offset"), Const(1)
        return value.base, c.index(value.offset, "the offset"), value.count
    c.fail(
        f"{what} is {value.describe()}, where memory is needed",
        "pass an array or a part of one, such as x[0:64]; a tile is stored first",
    )


def _available_elements(part: Value) -> int | None:
    """The elements of a part that subscripts name; an element's begin one, and whole memory has a check of its own."""
    if isinstance(part, View) and not part.indices and isinstance(part.count, Const):
        return int(part.count.py)
    return None


def given_count(c: Compiler, count: Value, *parts: Value) -> Scalar:
    """An explicit count, which must not exceed the size of the parts."""
    n = c.index(count, "the count")
    rooms = [room for part in parts if (room := _available_elements(part)) is not None]
    if not rooms or (isinstance(count, Const) and count.py <= min(rooms)):
        return n
    if isinstance(count, Const):
        c.fail(
            f"{count.py} elements of a part of {min(rooms)}",
            "name a part that has them, such as x[0:64], or the element where they begin, such as x[0]",
        )
    c.check_bounds("the count of a part of memory", c.constant(0, INDEX), n, c.constant(min(rooms), INDEX))
    return n


def count_of(c: Compiler, count: Value, parts: tuple[Value, Value], has: tuple[Value, Value]) -> Scalar:
    """Returns how many elements are copied from one part to another; each part has `has` elements."""
    if count != Const(None):
        return given_count(c, count, *parts)
    there, room = has
    if isinstance(there, Const) and isinstance(room, Const) and there.py != room.py:
        c.fail(
            f"{there.py} elements to a place of {room.py}",
            "give both as parts of one length, such as x[0:32], or count=…",
        )
    n = c.index(there, "the count")
    if any(isinstance(part, View) and isinstance(part.count, Scalar) for part in parts):
        place, zero = c.index(room, "the count"), c.constant(0, INDEX)
        for one, other in ((n, place), (place, n)):
            c.check_bounds("what is copied", zero, one, other)
    return n if isinstance(there, Const) or not isinstance(room, Const) else c.index(room, "the count")


def same_elements(c: Compiler, a: Memory | Window, b: Memory | Window) -> None:
    if a.dtype is not b.dtype:
        c.fail(
            f"{a.describe()} has {a.dtype.name}, {b.describe()} has {b.dtype.name}",
            "bytes are copied unchanged: both must have one type",
        )


def a_window(c: Compiler, value: Value, what: str) -> Window:
    if not isinstance(value, Window):
        c.fail(
            f"{what} is {value.describe()}, where a window is needed",
            "peers reach windows only: annotate it f32[Window, …]",
        )
    return value
