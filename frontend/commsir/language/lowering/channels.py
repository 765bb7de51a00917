"""Channels."""

from __future__ import annotations

from .. import communication as f
from ..compiler import Compiler
from ..compiler.emitter import quote
from ..compiler.registry import lowers
from ..compiler.values import Channel, Const, Slot, Tile, Value
from .operands import a_length, a_team, a_tile, valid_clause


@lowers(f.channel)
def _channel(
    c: Compiler, length: Value, dtype: Value, team: Value, pattern: Value, slots: Value, protocol: Value
) -> Value:
    how = c.choice(pattern, "the pattern", ("multicast", "pairwise", "single"))
    n, by = c.known(slots, "the number of slots", int), c.known(protocol, "the protocol", str)
    made = Channel(
        "", by if by.isidentifier() and by.isascii() else quote(by), a_length(c, length), c.element_type(dtype), how
    )
    name = c.result(f"comms.channel {c.channels} {how} over {a_team(c, team).name} slots {n} : {made.type}")
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
    t = a_tile(c, tile, dtype=s.channel.dtype, length=s.channel.length)
    to = "" if peer == Const(None) else f" to {c.index(peer, 'the peer').name}"
    at = f"{s.channel.name}[{c.index(s.index, 'the slot').name}]"
    c.emit(f"comms.send {t.name} on {at}{to}{valid_clause(c, valid)} : {t.type}, {s.channel.type}")


@lowers(f.recv)
def _recv(c: Compiler, slot: Value, peer: Value, valid: Value) -> Value:
    s = _slot(c, slot)
    made = Tile("", s.channel.dtype, s.channel.length)
    at = f"{s.channel.name}[{c.index(s.index, 'the slot').name}] from {c.index(peer, 'the peer').name}"
    return Tile(
        c.result(f"comms.recv {at}{valid_clause(c, valid)} : {s.channel.type} -> {made.type}"), made.dtype, made.length
    )


@lowers(f.channel_barrier)
def _channel_barrier(c: Compiler, channel: Value) -> None:
    if not isinstance(channel, Channel):
        c.fail(f"this is {channel.describe()}, where a channel is needed")
    c.emit(f"comms.channel_barrier {channel.name} : {channel.type}")
