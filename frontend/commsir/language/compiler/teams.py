"""Teams of ranks and their numbers, which are asked for once."""

from __future__ import annotations

from ..dtypes import INDEX
from .arithmetic import Arithmetic
from .values import Const, Scalar, Team, Value


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
            return self._team_numbers[key]
        # A team that was split off exists from there on, and not for every region: it is asked each time.
        everywhere = team in self._teams.values()
        emit = self.emitter.once if everywhere else self.emitter.result
        number = Scalar(emit(f"comms.{which} {team.name}", self.place), INDEX, True)
        self.emitter.hint(number.name, "rank" if which == "rank" else "ranks")
        if everywhere:
            self._team_numbers[key] = number
        return number
