"""The collectives of the kernel language: their signatures and what they do.

In a kernel `lowering.collectives` makes ops of them. Outside they run on arrays, one a rank: `outside`; of names they
say what a kernel computes: `computes`.
"""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

from . import contracts, shared_parameters
from .functions import ALL, F, plain

if TYPE_CHECKING:
    from typing import Unpack

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send_recv",
]

Region = Callable[..., Any]

#: What a collective does outside a kernel; takes its name and its arguments.
outside: Callable[[str, dict[str, Any]], Any] | None = None


class _Options(TypedDict, total=False):
    """Keyword options of collectives, in addition to the ones that each kind has."""

    outs: Any
    args: Any
    consume: Region | None
    produce: Region | None
    algorithm: str | None
    protocol: str | None


#: None is the default of the options but of `args`.
_DEFAULTS: dict[str, Any] = {name: None for name in _Options.__annotations__} | {"args": ()}

# Kinds of collectives: those that reduce have an `op`, those from or to one rank a `root`.


def _moves(x: Any, team: Any = None, **options: Unpack[_Options]) -> Any: ...
def _reduces(x: Any, team: Any = None, op: str = "sum", **options: Unpack[_Options]) -> Any: ...
def _has_root(x: Any, team: Any = None, root: int = 0, **options: Unpack[_Options]) -> Any: ...
def _reduces_to_root(x: Any, team: Any = None, op: str = "sum", root: int = 0, **options: Unpack[_Options]) -> Any: ...
def _varies(
    x: Any,
    team: Any = None,
    *,
    send_rows: Any,
    recv_rows: Any,
    max_rows: int | None = None,
    outs: Any = None,
    algorithm: str | None = None,
    protocol: str | None = None,
) -> Any: ...
def _from_to(
    x: Any, source: int, dest: int, team: Any = None, *, outs: Any = None, protocol: str | None = None
) -> Any: ...


def _collective(kind: F) -> Callable[[Callable[[], None]], F]:
    """A collective of the signature of `kind`; the function that is decorated has its name and documentation.

    Outside a kernel it runs on arrays: see `host`.
    """
    given = list(inspect.signature(kind).parameters.values())
    if given[-1].kind is inspect.Parameter.VAR_KEYWORD:
        types = {name: getattr(t, "__forward_arg__", t) for name, t in _Options.__annotations__.items()}
        given[-1:] = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[name])
            for name, default in _DEFAULTS.items()
        ]
    signature = inspect.Signature(given, return_annotation=Any)

    def make(named: Callable[[], None]) -> F:
        name = named.__name__

        def collective(*args: Any, **keywords: Any) -> Any:
            if (said := contracts.named(name, signature.parameters, args, keywords)) is not None:
                return said
            try:
                bound = signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"commsir.{name}: {error}; it is {name}{plain(signature)}") from None
            bound.apply_defaults()
            assert outside is not None, "importing commsir sets it"
            return outside(name, dict(bound.arguments))

        functools.update_wrapper(collective, named, ("__module__", "__name__", "__qualname__", "__doc__"))
        collective.__doc__ = shared_parameters.explain(named.__doc__ or "", signature, shared_parameters.OF_COLLECTIVES)
        collective.__signature__ = signature  # type: ignore[attr-defined]
        del collective.__wrapped__  # type: ignore[attr-defined]
        ALL.append(collective)
        return typing.cast(F, collective)

    return make


@_collective(_reduces)
def all_reduce() -> None:
    """Every rank gets the reduction over all ranks.

    In a kernel, `x` is a window, an array, or several of them. The result is written to `outs`, or to `x` without it.
    `produce(*rows)` computes the tiles to send from one row of every input. `consume(*reduced, *args)` computes the
    rows of the outputs. Ranks are combined in rank order, narrow floats in f32. `op` is "sum", "prod", "min", "max" or
    "avg", or for integers "and", "or" or "xor". Outside a kernel, `x` is a list with one array per rank, and the
    reduced arrays are returned.
    """


@_collective(_reduces)
def reduce_scatter() -> None:
    """Rank r gets the r-th part of the reduction over all ranks: `outs` has 1/N of the rows of `x`."""


@_collective(_moves)
def all_gather() -> None:
    """Every rank gets the parts of all ranks, in rank order: `outs` has N times the rows of `x`."""


@_collective(_moves)
def all_to_all() -> None:
    """Rank r gets the r-th part of every rank, in rank order; `outs` has the shape of `x`."""


@_collective(_varies)
def all_to_all_v() -> None:
    """All-to-all with a number of rows for each pair of ranks that is known only at run time.

    `send_rows` (i32, one element per rank) has the number of rows for each rank; these rows are consecutive in `x`.
    `recv_rows` has the number of rows from each rank. No pair exchanges more than `max_rows`.
    """


@_collective(_has_root)
def broadcast() -> None:
    """Every rank gets the root's array."""


@_collective(_reduces_to_root)
def reduce() -> None:
    """The root gets the reduction over all ranks; the outputs of other ranks do not change."""


@_collective(_has_root)
def gather() -> None:
    """The root gets the parts of all ranks, in rank order; the outputs of other ranks do not change."""


@_collective(_has_root)
def scatter() -> None:
    """Rank r gets the r-th part of the root's array."""


@_collective(_from_to)
def send_recv() -> None:
    """Rank `source` sends an array that rank `dest` receives; others do nothing."""
