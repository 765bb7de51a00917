"""Teams, ranks, blocks, and loops over peers."""

from __future__ import annotations

from .. import functions as f
from ..compiler import Compiler
from ..compiler.registry import lowers, lowers_attribute, lowers_method
from ..compiler.values import Const, Peers, Scalar, Team, Value
from ..dtypes import INDEX
from .operands import a_team


@lowers(f.team)
def _team_of(c: Compiler, kind: Value) -> Value:
    return c.team(c.choice(kind, "the kind of team", ("world", "lsa", "rail")))


@lowers(f.team_split)
def _split(c: Compiler, team: Value, kind: Value, factor: Value) -> Value:
    t = a_team(c, team)
    how, n = c.choice(kind, "the kind of split", ("inner", "outer")), c.known(factor, "the factor", int)
    size = None if t.size is None else n if how == "inner" else t.size // n
    if t.size is not None and (n < 1 or t.size % n):
        c.fail(f"{n} does not divide a team of {t.size}")
    return Team(c.result(f"comms.team_split {t.name} {how} {n}"), size)


@lowers_method(Team, name="inner")
def _inner(c: Compiler, team: Team, factor: Value) -> Value:
    return _split(c, team, Const("inner"), factor)


@lowers_method(Team, name="outer")
def _outer(c: Compiler, team: Team, factor: Value) -> Value:
    return _split(c, team, Const("outer"), factor)


@lowers_attribute(Team, name="rank")
@lowers(f.rank)
def _rank(c: Compiler, team: Value) -> Value:
    return c.team_number("rank", a_team(c, team))


@lowers_attribute(Team, name="size")
@lowers(f.size)
def _size(c: Compiler, team: Value) -> Value:
    return c.team_number("size", a_team(c, team))


@lowers(f.translate_rank)
def _translate(c: Compiler, rank: Value, source: Value, to: Value) -> Value:
    names = a_team(c, source).name, a_team(c, to).name
    text = f"comms.translate_rank {c.index(rank, 'the rank').name} from {names[0]} to {names[1]}"
    return Scalar(c.result(text), INDEX, True)


@lowers_method(Team, name="translate")
def _translate_method(c: Compiler, team: Team, rank: Value, to: Value) -> Value:
    return _translate(c, rank, team, to)


def _number_of_block(c: Compiler, name: str) -> Scalar:
    if c.in_region:
        c.refuse_in_function(f"{name}()")
    return Scalar(c.result(f"comms.{name}"), INDEX, True)


@lowers(f.block_id)
def _block_id(c: Compiler) -> Value:
    return _number_of_block(c, "block_id")


@lowers(f.num_blocks)
def _num_blocks(c: Compiler) -> Value:
    return _number_of_block(c, "num_blocks")


@lowers(f.epoch)
def _epoch(c: Compiler) -> Value:
    return _number_of_block(c, "epoch")


@lowers_method(Team, name="peers", of=f.for_peers)
@lowers(f.for_peers)
def _for_peers(c: Compiler, team: Value, reversed: Value) -> Value:
    return Peers(a_team(c, team), c.known(reversed, "reversed", bool))


@lowers(f.role)
def _role(c: Compiler, name: Value, first: Value, last: Value) -> Value:
    c.fail('a role is written with: with role("name", first, last): …')
