"""Windows and arrays: their parts on ranks, their shapes, tiles from and to them, and checks of bounds."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import functions as f
from ..compiler import Compiler
from ..compiler.registry import lowers, lowers_attribute, lowers_method
from ..compiler.values import UNNAMED, Const, Memory, Scalar, Seq, Tile, Value, Window
from .operands import a_length, a_team, a_tile, a_window, after_token, at_peer, optional


@lowers_method(Window, name="local", of=f.local)
@lowers(f.local)
def _local(c: Compiler, window: Value) -> Value:
    return c.memory(window, "the window")


@lowers_method(Window, name="peer", of=f.peer)
@lowers(f.peer)
def _peer_of(c: Compiler, window: Value, peer: Value, team: Value) -> Value:
    w, t = a_window(c, window, "this"), a_team(c, team)
    part = Memory("", w.shape, w.dtype, w.label, shared=True)
    name = c.result(f"comms.peer {w.name} {at_peer(c, peer, t)} : {w.type} -> {part.type}")
    return dataclasses.replace(part, name=name)


@lowers_method(Window, name="multimem", of=f.multimem)
@lowers(f.multimem)
def _multimem(c: Compiler, window: Value, team: Value) -> Value:
    w, t = a_window(c, window, "this"), a_team(c, team)
    part = Memory("", w.shape, w.dtype, w.label, "multimem")
    name = c.result(f"comms.multimem {w.name} of {t.name} : {w.type} -> {part.type}")
    return dataclasses.replace(part, name=name)


def _scratch_size(c: Compiler, size: Value) -> int:
    hint = "a number, a constant, or a dimension that is fixed, as in scratch(f32, 4, 64)"
    number = int(c.known(size, "a dimension of scratch memory", int, hint))
    if number < 1:
        c.fail(f"scratch memory with a dimension of {number}", "a dimension is at least 1")
    return number


@lowers(f.scratch)
def _scratch(c: Compiler, dtype: Value, shape: Value, space: Value) -> Value:
    given = c.items(shape)
    nested = c.items_if_known(given[0]) if len(given) == 1 else None  # A shape as NumPy takes it: (4, 64).
    sizes = tuple(_scratch_size(c, d) for d in (given if nested is None else nested))
    if not sizes:
        c.fail("scratch memory has no shape", "write scratch(f32, 64), or scratch(f32, 4, 64)")
    where = c.choice(space, "the space", ("", "scratch", "shared"))
    memory = Memory("", sizes, c.element_type(dtype), UNNAMED, where)
    return dataclasses.replace(memory, name=c.result(f"comms.scratch : {memory.type}"))


@lowers_attribute(Memory, Window, name="T")
def _transpose(c: Compiler, memory: Memory | Window) -> Value:
    return c.transposed(memory) or c.fail(
        f"{memory.describe()} has {len(memory.shape)} dimensions, and no transpose", "name one matrix of it"
    )


@lowers_attribute(Memory, Window, name="shape")
def _shape(c: Compiler, memory: Memory | Window) -> Value:
    return Seq(tuple(c.extent(memory, axis) for axis in range(len(memory.shape))))


@lowers_attribute(Memory, Window, name="size")
def _memory_size(c: Compiler, memory: Memory | Window) -> Value:
    return c.size(memory)


@lowers_attribute(Memory, Window, name="ndim")
def _ndim(c: Compiler, memory: Memory | Window) -> Value:
    return Const(len(memory.shape))


@lowers_attribute(Memory, Window, Tile, Scalar, name="dtype")
def _dtype(c: Compiler, value: Any) -> Value:
    return Const(value.dtype)


@lowers_attribute(Tile, name="size")
def _tile_size(c: Compiler, tile: Tile) -> Value:
    return Const(tile.length)


@lowers_attribute(Tile, name="ndim")
def _tile_ndim(c: Compiler, tile: Tile) -> Value:
    return Const(1)


@lowers_attribute(Tile, name="shape")
def _tile_shape(c: Compiler, tile: Tile) -> Value:
    return Seq((Const(tile.length),))


@lowers_method(Memory, Window, name="load", of=f.tile_load)
@lowers(f.tile_load)
def _tile_load(c: Compiler, memory: Value, offset: Value, length: Value, valid: Value, after: Value) -> Value:
    return c.load(memory, offset, a_length(c, length), optional(valid), after_token(c, after))


@lowers(f.tile_store)
def _tile_store(c: Compiler, tile: Value, memory: Value, offset: Value, valid: Value) -> None:
    m = c.memory(memory, "the memory")
    c.store_tile(m, offset, a_tile(c, tile, dtype=m.dtype), optional(valid))


@lowers_method(Memory, Window, name="store")
def _store(c: Compiler, memory: Memory, tile: Value, offset: Value = Const(0), valid: Value = Const(None)) -> None:  # noqa: B008
    _tile_store(c, tile, memory, offset, valid)


def _one_or_more(c: Compiler, value: Value) -> tuple[Value, ...]:
    """Returns the elements of a tuple or a list; another value is one."""
    items = c.items_if_known(value)
    return (value,) if items is None else items


@lowers(f.contract)
def _contract(c: Compiler, lhs: Value, rhs: Value, acc: Value, accumulate: Value, plus: Value, scales: Value) -> None:
    product = c.product(lhs, rhs)
    for addend in _one_or_more(c, plus):
        product = c.plus(product, addend)
    if given := _one_or_more(c, scales):
        product = c.scaled(product, given)
    c.store_product(acc, product, c.known(accumulate, "accumulate", bool))


@lowers(f.check_bounds)
def _check_bounds(c: Compiler, what: Value, offset: Value, count: Value, limit: Value) -> None:
    text = c.known(what, "the description", str)
    o, n, end = (c.index(v, "a number of check_bounds") for v in (offset, count, limit))
    c.check_bounds(text, o, n, end)
