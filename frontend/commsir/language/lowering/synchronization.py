"""Signals, counters, fences and barriers."""

from __future__ import annotations

from .. import communication as f
from ..compiler import Compiler
from ..compiler.registry import lowers
from ..compiler.values import Scalar, Token, Value
from ..dtypes import I64
from .operands import (
    ORDERS,
    SCOPES,
    a_cell,
    a_team,
    a_token,
    at_peer,
    cell_text,
    change_clause,
    gin_clause,
    order_clause,
    until_clause,
)


@lowers(f.signal)
def _signal(
    c: Compiler, cell: Value, peer: Value, team: Value, set: Value, add: Value, order: Value, scope: Value, gin: Value
) -> None:
    s, (kind, value) = a_cell(c, cell, "signal"), change_clause(c, set, add)
    how = order_clause(c, order, scope, "release") + gin_clause(c, gin)
    c.emitter.emit(
        f"comms.signal {kind} {cell_text(c, s)}{value} {at_peer(c, peer, a_team(c, team))}{how} : {s.cells.type}",
        c.place,
    )


@lowers(f.wait_signal)
def _wait_signal(c: Compiler, cell: Value, ge: Value, eq: Value, order: Value, scope: Value) -> Value:
    s = a_cell(c, cell, "signal")
    how = f"{until_clause(c, ge, eq)}{order_clause(c, order, scope, 'acquire')}"
    return Token(c.result(f"comms.wait_signal {cell_text(c, s)} {how} : {s.cells.type}"))


@lowers(f.wait_signal_from)
def _wait_signal_from(
    c: Compiler, cell: Value, peer: Value, team: Value, ge: Value, eq: Value, order: Value, scope: Value
) -> Value:
    s, t = a_cell(c, cell, "signal"), a_team(c, team)
    who = f"from {c.index(peer, 'the peer').name} of {t.name}"
    how = order_clause(c, order, scope, "acquire")
    return Token(
        c.result(f"comms.wait_signal_from {cell_text(c, s)} {until_clause(c, ge, eq)} {who}{how} : {s.cells.type}")
    )


@lowers(f.read_signal)
def _read_signal(c: Compiler, cell: Value, order: Value) -> Value:
    s = a_cell(c, cell, "signal")
    return Scalar(
        c.result(f"comms.read_signal {cell_text(c, s)}{order_clause(c, order, None, 'acquire')} : {s.cells.type}"),
        I64,
        True,
    )


@lowers(f.reset_signal)
def _reset_signal(c: Compiler, cell: Value) -> None:
    s = a_cell(c, cell, "signal")
    c.emit(f"comms.reset_signal {cell_text(c, s)} : {s.cells.type}")


@lowers(f.wait_counter)
def _wait_counter(c: Compiler, cell: Value, ge: Value) -> Value:
    s = a_cell(c, cell, "counter")
    return Token(c.result(f"comms.wait_counter {cell_text(c, s)} ge {c.integer(ge, 'ge').name} : {s.cells.type}"))


@lowers(f.read_counter)
def _read_counter(c: Compiler, cell: Value) -> Value:
    s = a_cell(c, cell, "counter")
    return Scalar(c.result(f"comms.read_counter {cell_text(c, s)} : {s.cells.type}"), I64, True)


@lowers(f.reset_counter)
def _reset_counter(c: Compiler, cell: Value) -> None:
    s = a_cell(c, cell, "counter")
    c.emit(f"comms.reset_counter {cell_text(c, s)} : {s.cells.type}")


@lowers(f.flush)
def _flush(c: Compiler, team: Value, gin: Value) -> None:
    c.emit(f"comms.flush {a_team(c, team).name}{gin_clause(c, gin)}")


@lowers(f.fence)
def _fence(c: Compiler, order: Value, scope: Value, proxy: Value) -> None:
    how = f"{c.choice(order, 'the order', ORDERS)} {c.choice(scope, 'the scope', SCOPES)}"
    through = c.choice(proxy, "the proxy", ("generic", "async", "alias", "copy_engine"))
    c.emit(f"comms.fence {how}" + (f" proxy {through}" if through != "generic" else ""))


# Barriers.


def _barrier_text(c: Compiler, team: Value, extent: Value, order: Value, usual: str) -> str:
    where = c.choice(extent, "the extent", ("block", "grid"))
    return f"{a_team(c, team).name} {where}{order_clause(c, order, None, usual)}"


@lowers(f.barrier)
def _barrier(c: Compiler, team: Value, extent: Value, order: Value) -> None:
    c.emit(f"comms.barrier {_barrier_text(c, team, extent, order, 'acq_rel')}")


@lowers(f.barrier_arrive)
def _barrier_arrive(c: Compiler, team: Value, extent: Value, order: Value) -> Value:
    return Token(c.result(f"comms.barrier_arrive {_barrier_text(c, team, extent, order, 'release')}"))


@lowers(f.barrier_wait)
def _barrier_wait(c: Compiler, arrived: Value, order: Value) -> Value:
    t = a_token(c, arrived, "what is waited for", "barrier_arrive gives: t = barrier_arrive()")
    return Token(c.result(f"comms.barrier_wait {t.name}{order_clause(c, order, None, 'acquire')}"))
