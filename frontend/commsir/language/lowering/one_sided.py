"""Copies to and from the memory of peers."""

from __future__ import annotations

from .. import communication as f
from ..compiler import Compiler
from ..compiler.registry import lowers
from ..compiler.values import Const, Seq, Token, Value
from .operands import (
    a_cell,
    a_part,
    a_team,
    a_token,
    a_window,
    at_peer,
    cell_text,
    change_clause,
    count_of,
    gin_clause,
    same_elements,
)


@lowers(f.put, memory=("source", "window"))
def _put(
    c: Compiler, source: Value, window: Value, peer: Value, team: Value, count: Value, counted: Value, gin: Value
) -> None:
    text, types = _transfer(c, source, window, peer, team, count)
    if counted != Const(None):
        cell = a_cell(c, counted, "counter")
        text += f" counted {cell_text(c, cell)} : {cell.cells.type}"
    c.emit(f"comms.put {text}{gin_clause(c, gin)} : {types}")


def _transfer(c: Compiler, source: Value, window: Value, peer: Value, team: Value, count: Value) -> tuple[str, str]:
    """From memory of this rank to a window of a peer: operands and types."""
    base, offset, there = a_part(c, source, "the source")
    whole, at, room = a_part(c, window, "the destination")
    target = a_window(c, whole, "the destination")
    same_elements(c, base, target)
    own = c.memory(base)
    n = count_of(c, count, (source, window), (there, room))
    to = at_peer(c, peer, a_team(c, team))
    return f"{own.name}[{offset.name}] to {target.name}[{at.name}] count {n.name} {to}", f"{own.type}, {target.type}"


@lowers(f.put_signal, memory=("source", "window"))
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
    s, (kind, value) = a_cell(c, cell, "signal"), change_clause(c, set, add)
    then = f"then {kind} {cell_text(c, s)}{value}{gin_clause(c, gin)}"
    c.emit(f"comms.put_signal {text} {then} : {types}, {s.cells.type}")


@lowers(f.get, memory=("window", "dest"))
def _get(c: Compiler, window: Value, dest: Value, peer: Value, team: Value, count: Value, gin: Value) -> None:
    whole, offset, there = a_part(c, window, "the source")
    source = a_window(c, whole, "the source")
    base, at, room = a_part(c, dest, "the destination")
    same_elements(c, source, base)
    own, n = c.memory(base), count_of(c, count, (window, dest), (there, room))
    to = at_peer(c, peer, a_team(c, team))
    text = f"{source.name}[{offset.name}] to {own.name}[{at.name}] count {n.name} {to}{gin_clause(c, gin)}"
    c.emit(f"comms.get {text} : {source.type}, {own.type}")


@lowers(f.engine_copy, memory=("source", "window"))
def _engine_copy(c: Compiler, source: Value, window: Value, peer: Value, team: Value, count: Value) -> None:
    text, types = _transfer(c, source, window, peer, team, count)
    c.emit(f"comms.engine_copy {text} : {types}")


@lowers(f.bulk_copy, memory=("source", "dest"))
def _bulk_copy(c: Compiler, source: Value, dest: Value, count: Value) -> Value:
    base, offset, there = a_part(c, source, "the source")
    target, at, room = a_part(c, dest, "the destination")
    same_elements(c, base, target)
    a, b, n = c.memory(base), c.memory(target), count_of(c, count, (source, dest), (there, room))
    return Token(
        c.result(f"comms.bulk_copy {a.name}[{offset.name}] to {b.name}[{at.name}] count {n.name} : {a.type}, {b.type}")
    )


@lowers(f.bulk_wait)
def _bulk_wait(c: Compiler, copies: Seq) -> Value:
    tokens = [a_token(c, t, "what is waited for", "bulk_copy gives") for t in copies.items]
    if not tokens:
        c.fail("bulk_wait of nothing", "name the tokens of bulk_copy")
    return Token(c.result("comms.bulk_wait " + ", ".join(t.name for t in tokens)))
