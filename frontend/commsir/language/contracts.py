"""The postcondition that a kernel declares. The checker proves it or shows the difference (docs/Checker.md)."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from .. import errors
from .compiler.emitter import quote

__all__ = ["ASSUMPTIONS", "KINDS", "Contract", "check_names", "render", "render_assumptions"]

#: Assumptions that a kernel can state (docs/Spec.md, Named assumptions): on hardware, and on an array.
ASSUMPTIONS = ("packets_cumulative", "same_on_ranks(x)")

#: The reduction kinds of kernels; the dialect's `ReductionKind`.
KINDS = ("sum", "prod", "min", "max", "avg", "and", "or", "xor")


@dataclass(frozen=True)
class Contract:
    """One collective, whose result is in `output`, or in the only array that the kernel writes and does not read."""

    text: str
    output: str | None = None
    #: The array that it names; empty: none.
    source: str = ""


def named(name: str, parameters: Container[str], args: tuple[Any, ...], options: Mapping[str, Any]) -> Contract | None:
    """Returns the contract of a collective called with names, such as `all_reduce("sum")`; None if called with arrays.

    `parameters` are those of the collective's function: one with `op` reduces, one with `root` has a root. The first
    argument names the array or, if the collective reduces, the reduction kind. `team` is ("outer", 2) or ("inner", 2),
    or several of these, each a split of the one before.
    """
    given = dict(options)
    first = args[0] if args else given.pop("x", None)
    if not isinstance(first, str) or "consume" not in parameters:
        return None
    unknown = set(given) - {"op", "root", "outs", "team"}
    if len(args) > 1 or unknown:
        raise errors.UsageError(
            f"commsir.{name} of names takes x, op, root, outs and team"
            + (f", not {min(unknown)}" if unknown else ", all but the first by name")
        )
    op = given.get("op", "sum")
    if "op" in parameters and first in KINDS:
        op, first = first, ""
    if op not in KINDS:
        raise errors.UsageError(f"op of commsir.{name} is {op!r}; it is one of {', '.join(KINDS)}")
    parts = [op] if "op" in parameters else []
    parts += [first] if first else []
    parts += [f"root {int(given.get('root', 0))}"] if "root" in parameters else []
    team = given.get("team") or ()
    for kind, factor in [team] if team and isinstance(team[0], str) else team:
        parts.append(f"{kind} {int(factor)}")
    return Contract(f"{name}({', '.join(parts)})", given.get("outs"), first)


def check_names(said: Any, kernel: str, parameters: Container[str]) -> None:
    """Refuses collectives of arrays that the kernel does not have."""
    for one in said.values() if isinstance(said, Mapping) else (said,):
        if isinstance(one, Contract) and one.source and one.source not in parameters:
            raise errors.UsageError(
                f"computes has {one.text}: '{one.source}' is neither a parameter of {kernel} nor one of "
                f"{', '.join(KINDS)}"
            )


def render_assumptions(names: Any) -> str:
    """The attribute `comms.assumes`; empty: none is stated."""
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        if name not in ASSUMPTIONS and not re.fullmatch(r"same_on_ranks\(\w+\)", str(name)):
            raise errors.UsageError(f"assumes is {name!r}; a kernel can state {', '.join(map(repr, ASSUMPTIONS))}")
    return f"[{', '.join(map(quote, listed))}]" if listed else ""


def render(said: Any) -> str:
    """The attribute `comms.computes`; empty: nothing is said."""
    if said is None:
        return ""
    if isinstance(said, Contract):
        return quote(said.text) if said.output is None else f"{{{said.output} = {quote(said.text)}}}"
    if not isinstance(said, Mapping):
        raise errors.UsageError(
            f'computes is {said!r}; give a collective, commsir.all_reduce("sum"), or what element i of an output is: '
            '{"y": "sum(r, x(r)[i])"}'
        )
    parts = []
    for output, value in said.items():
        text = value.text if isinstance(value, Contract) else value
        if not isinstance(output, str) or not output.isidentifier() or not isinstance(text, str):
            raise errors.UsageError(
                f"computes says {text!r} of {output!r}: names are those of parameters, and what they hold is a text "
                "or a collective"
            )
        parts.append(f"{output} = {quote(text)}")
    return "{" + ", ".join(parts) + "}"
