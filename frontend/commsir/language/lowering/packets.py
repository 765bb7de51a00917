"""Packets with flags, poison, and multimem: how protocols move tiles."""

from __future__ import annotations

from .. import communication as f
from ..compiler import Compiler
from ..compiler.registry import Handler, lowers
from ..compiler.values import Const, Memory, Value
from ..contracts import KINDS
from ..dtypes import I32
from .operands import a_length, a_tile, valid_clause


def _at(c: Compiler, memory: Value, offset: Value) -> tuple[Memory, str]:
    m = c.memory(memory, "the memory")
    return m, c.at_offset(m, offset)


def _assumes(c: Compiler, assumes: Value) -> str:
    text = c.choice(assumes, "the assumption", ("store8_whole", "store16_whole", "store128_whole"))
    return "" if text == "store8_whole" else f" assumes {text}"


@lowers(f.packet_store)
def _packet_store(
    c: Compiler, tile: Value, memory: Value, offset: Value, flag: Value, valid: Value, assumes: Value
) -> None:
    t, (m, at) = a_tile(c, tile), _at(c, memory, offset)
    how = f"flag {c.integer(flag, 'the flag', I32).name}{valid_clause(c, valid)}{_assumes(c, assumes)}"
    c.tile_to("packet_store", t, f"{at} {how}", m)


@lowers(f.packet_load)
def _packet_load(
    c: Compiler, memory: Value, offset: Value, length: Value, dtype: Value, flag: Value, valid: Value, assumes: Value
) -> Value:
    (m, at), n, d = _at(c, memory, offset), a_length(c, length), c.element_type(dtype)
    how = f"flag {c.integer(flag, 'the flag', I32).name}{valid_clause(c, valid)}{_assumes(c, assumes)}"
    return c.tile_from("packet_load", f"{at} {how}", m, n, d)


def _stores(op: str) -> Handler:
    def handler(c: Compiler, tile: Value, memory: Value, offset: Value, valid: Value) -> None:
        m, at = _at(c, memory, offset)
        t = a_tile(c, tile, dtype=m.dtype)
        c.tile_to(op, t, at + valid_clause(c, valid), m)

    return handler


lowers(f.poison_store)(_stores("poison_store"))
lowers(f.multimem_store)(_stores("multimem_store"))


@lowers(f.poison_load)
def _poison_load(c: Compiler, memory: Value, offset: Value, length: Value, valid: Value) -> Value:
    (m, at), n = _at(c, memory, offset), a_length(c, length)
    return c.tile_from("poison_load", at + valid_clause(c, valid), m, n)


@lowers(f.poison_fill)
def _poison_fill(c: Compiler, memory: Value, offset: Value, count: Value) -> None:
    m, at = _at(c, memory, offset)
    n = c.index(c.size(m) if count == Const(None) else count, "the count")
    c.emit(f"comms.poison_fill {at} count {n.name} : {m.type}")


@lowers(f.multimem_load_reduce)
def _multimem_load_reduce(c: Compiler, op: Value, memory: Value, offset: Value, length: Value, valid: Value) -> Value:
    kind, (m, at), n = c.choice(op, "the reduction", KINDS), _at(c, memory, offset), a_length(c, length)
    return c.tile_from(f"multimem_load_reduce {kind}", at + valid_clause(c, valid), m, n)


@lowers(f.multimem_reduce)
def _multimem_reduce(c: Compiler, op: Value, tile: Value, memory: Value, offset: Value, valid: Value) -> None:
    kind, (m, at) = c.choice(op, "the reduction", KINDS), _at(c, memory, offset)
    t = a_tile(c, tile, dtype=m.dtype)
    c.tile_to(f"multimem_reduce {kind}", t, at + valid_clause(c, valid), m)
