"""The arguments of a kernel that a group has compiled."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from commsir import errors

__all__ = ["Signature"]


class Signature:
    """The arguments of a kernel, in order. The group provides signals and counters; callers do not pass them."""

    def __init__(self, described: str) -> None:
        about = json.loads(described)
        self.name: str = about["name"]
        self.arguments: list[dict[str, Any]] = about["arguments"]
        self.choices: list[dict[str, Any]] = about["choices"]
        self._asked = [one["name"] for one in self.arguments if one["kind"] not in ("signal", "counter")]

    def __repr__(self) -> str:
        return errors.printable(f"<kernel {self.name}({', '.join(self._asked)})>")

    def match(self, values: Sequence[Any], named: Mapping[str, Any]) -> list[tuple[dict[str, Any], Any]]:
        """Pairs each argument with its value, or None if the group provides it. Values are given in order or by
        name."""
        takes = f"kernel {self.name} takes {', '.join(self._asked) or 'no arguments'}"
        if len(values) > len(self._asked):
            raise errors.UsageError(f"{takes}, but {len(values)} arguments were given")
        given = dict(zip(self._asked, values, strict=False))
        for name in named:
            own = next((one["kind"] for one in self.arguments if one["name"] == name and name not in self._asked), "")
            if own:
                raise errors.UsageError(f"'{name}' is a {own}, which the group keeps: leave it out")
            if name in given or name not in self._asked:
                twice = "was given twice" if name in given else "is not one of them"
                raise errors.UsageError(f"{takes}; '{name}' {twice}")
        given |= named
        missing = [name for name in self._asked if given.get(name) is None]
        if missing:
            raise errors.UsageError(f"{takes}; there is no {' and no '.join(missing)}")
        return [(one, given.get(one["name"])) for one in self.arguments]

    @staticmethod
    def number_type(argument: Mapping[str, Any]) -> str:
        """Returns the type in which a number is passed."""
        return "i64" if argument["type"] == "index" else str(argument["type"])

    def check(self, argument: Mapping[str, Any], kind: str, shape: Sequence[int]) -> None:
        """Checks that an array has the shape and type that the kernel was compiled for."""
        if (kind, tuple(shape)) != (argument["type"], tuple(argument["shape"])):
            raise errors.UsageError(
                f"argument '{argument['name']}' of kernel {self.name} is {argument['type']} "
                f"{tuple(argument['shape'])}, but the array is {kind} {tuple(shape)}"
            )
