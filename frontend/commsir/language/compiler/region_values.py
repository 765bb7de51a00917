"""Values that control flow hands on: from the branches of an `if`, and from one round of a loop to the next."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ..dtypes import DType, promote
from .values import Const, Scalar, Seq, Tile, Undefined, Value

# The type of a number that is handed on: of its elements, and its length if it is a tile. A variable has one, a tuple
# one for each of its elements.
Leaf = tuple[DType, int | None]

# Variables of a frame that the compiler keeps: whether the function has returned, and what; whether a loop was left, by
# the loop's depth; whether its round was.
RETURN, RESULT, BREAK, CONTINUE = "$return", "$result", "$break", "$continue"
_FLAGS = (RETURN, BREAK, CONTINUE)

# What a condition chooses, as a variable that its branches assign.
CHOICE = "$choice"

# What a variable is where nothing that may follow reads it.
NEVER_READ = Undefined("it has no value here")


def label_of(name: str) -> str:
    """Returns the name of a variable as errors show it."""
    return {RESULT: "what is returned", CHOICE: "the value"}.get(name) or f"'{name}'"


@dataclass
class LoopVariable:
    """A variable that a loop changes: its value before the loop, and its types in the loop."""

    name: str
    before: Value
    leaves: list[Leaf]
    # Which leaves are Python numbers before the loop, so that their type may still follow from the loop.
    weak: list[bool]


def leaf_text(leaf: Leaf) -> str:
    dtype, length = leaf
    return dtype.mlir if length is None else f"tensor<{length}x{dtype.mlir}>"


def describe_leaf(leaf: Leaf) -> str:
    dtype, length = leaf
    return dtype.name if length is None else f"tile of {length} {dtype.name}"


def wider(a: Leaf, b: Leaf) -> Leaf:
    return promote(a[0], b[0]), a[1] if b[1] is None else b[1]


def value_of(leaf: Leaf, name: str) -> Scalar | Tile:
    dtype, length = leaf
    return Scalar(name, dtype) if length is None else Tile(name, dtype, length)


def flatten(value: Value) -> list[Value]:
    return [leaf for item in value.items for leaf in flatten(item)] if isinstance(value, Seq) else [value]


def rebuild(like: Value, leaves: list[Value]) -> Value:
    """`like` with its leaves replaced, in order; they are taken out of the list."""
    if isinstance(like, Seq):
        return dataclasses.replace(like, items=tuple(rebuild(item, leaves) for item in like.items))
    return leaves.pop(0)


def parts(value: Value | None, count: int) -> list[Value]:
    """Returns the leaves of a value; for a missing value, zeros that are never read."""
    return flatten(value) if value is not None and is_defined(value) else [Const(0)] * count


def is_carried(value: Value) -> bool:
    """Whether each part of the value can be passed between regions."""
    return all(isinstance(v, Scalar | Tile) or isinstance(v, Const) and v.is_number for v in flatten(value))


def is_defined(value: Value | None) -> bool:
    return value is not None and not any(isinstance(v, Undefined) for v in flatten(value))


def same_structure(a: Value, b: Value) -> bool:
    if not (isinstance(a, Seq) and isinstance(b, Seq)):
        return isinstance(a, Seq) == isinstance(b, Seq)
    return len(a.items) == len(b.items) and all(map(same_structure, a.items, b.items))


def unset(name: str, side: dict[str, Value]) -> Value | None:
    """Returns the value of a variable that a branch does not assign."""
    if name.startswith(_FLAGS):
        return Const(False)
    return NEVER_READ if _left(side) else None


def _left(side: dict[str, Value]) -> bool:
    """Whether control has certainly left."""
    return any(v == Const(True) for name, v in side.items() if name.startswith(_FLAGS))


def forget_returned(then: dict[str, Value], other: dict[str, Value], before: dict[str, Value]) -> None:
    """If one branch has returned, takes the values of the other one."""
    gone = [side.get(RETURN) == Const(True) for side in (then, other)]
    if gone[0] == gone[1]:
        return
    left, stays = (then, other) if gone[0] else (other, then)
    for name, value in stays.items():
        if not name.startswith("$"):
            left[name] = value if before.get(name) == value else NEVER_READ
