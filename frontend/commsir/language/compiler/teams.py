"""Teams of ranks and their numbers, which are asked for once."""

from __future__ import annotations

from typing import NoReturn

from ..dtypes import I64, INDEX
from .arithmetic import Arithmetic
from .values import Const, Scalar, Team, Tile, Value


class Teams(Arithmetic):
    """The layer that knows teams."""

    def __init__(self, ranks: int | None = None) -> None:
        super().__init__(ranks)
        self._teams: dict[str, Team] = {}
        self._team_numbers: dict[tuple[str, str], Scalar] = {}

    def team(self, kind: str) -> Team:
        if kind not in self._teams:
            name = self.emitter.once(f"comms.team {kind}", self.place)
            self.emitter.hint(name, kind)
            self._teams[kind] = Team(name, self.ranks if kind == "world" else None)
        return self._teams[kind]

    def team_number(self, which: str, team: Team) -> Value:
        """This rank's number in a team ("rank"), or the number of its ranks ("size")."""
        if which == "size" and team.size is not None:
            return Const(team.size)
        key = (which, team.name)
        if key in self._team_numbers:
            return self.from_outside(self._team_numbers[key])
        # A team that was split off exists from there on, and not for every region: it is asked each time.
        everywhere = team in self._teams.values()
        if self.in_region and not everywhere:
            self.refuse_in_function(f"the {which} of a part of a team")
        emit = self.emitter.once if everywhere else self.emitter.result
        number = Scalar(emit(f"comms.{which} {team.name}", self.place), INDEX, True)
        self.emitter.hint(number.name, "rank" if which == "rank" else "ranks")
        if everywhere:
            self._team_numbers[key] = number
        return self.from_outside(number)

    def from_outside(self, number: Scalar | Tile, name: str = "") -> Scalar | Tile:
        """Returns a number of the kernel: in the function of a collective, the tile that the function gets of it."""
        if not self.in_region:
            return number
        if number.name not in self.captures:
            length = number.length if isinstance(number, Tile) else 1
            made = Tile(self.emitter.fresh(), I64 if number.dtype is INDEX else number.dtype, length)
            if name:
                self.emitter.hint(made.name, name)
            self.captures[number.name] = number, made
        return self.captures[number.name][1]

    def refuse_in_function(self, what: str) -> NoReturn:
        self.fail(
            f"{what} is not known in the function of a collective",
            "ask before the collective, and use the number: b = block_id(), then b in the function",
        )
