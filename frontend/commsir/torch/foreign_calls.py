"""Calls of other libraries' operations that are collectives, as text that a compiled graph holds.

Until all ranks agree on a kernel in its place, the operation itself runs: ranks on which it is not registered run it as
well, and it need not use the process group.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["SEPARATOR", "ForeignCall"]

#: Between the parts of a place of a compiled graph that is such a call: its name, the operation, and the rest.
SEPARATOR = "\t"


@dataclass(frozen=True)
class ForeignCall:
    """A call of an operation, without its tensors."""

    #: "library::name.overload"
    operation: str
    #: Its arguments that are no tensors, by name.
    given: tuple[tuple[str, Any], ...]
    #: The names of the argument that it reads, and of the one that it writes; "": it returns its result.
    reads: str
    writes: str
    #: Whether it returns one tensor for each rank.
    is_list: bool
    #: The dimension that it gathers or scatters along; torch's collective that replaces it does so along 0.
    dim: int
    #: The shape of what it reads, and of the collective's input; -1: one size that is not known when it is compiled.
    shape: tuple[int, ...]
    sent: tuple[int, ...]

    def text(self) -> str:
        """The call as text, which begins with the operation."""
        rest = [self.given, self.reads, self.writes, self.is_list, self.dim, self.shape, self.sent]
        return f"{self.operation}{SEPARATOR}{json.dumps(rest)}"

    @classmethod
    @functools.cache
    def of(cls, site: str) -> ForeignCall | None:
        """The call at a place of a compiled graph, whose name `at` has made; None: it is one of torch's collectives."""
        _, _, text = site.partition(SEPARATOR)
        operation, _, rest = text.partition(SEPARATOR)
        if not operation:
            return None
        given, reads, writes, is_list, dim, shape, sent = json.loads(rest)
        return cls(operation, tuple(map(tuple, given)), reads, writes, is_list, dim, tuple(shape), tuple(sent))

    def at(self, place: str) -> str:
        """The name of a place at which the call is."""
        return f"{place}{SEPARATOR}{self.text()}"

    def run(self, op: str, input: torch.Tensor, ranks: int) -> torch.Tensor:  # noqa: A002
        """The result of torch's collective `op` for its input, as the operation computes it."""
        source = input.reshape(self.sent)
        if op == "reduce_scatter" and self.dim:
            source = torch.cat(source.chunk(ranks), self.dim)
        made = self._call(op, source.reshape(self.shape).contiguous(), ranks)
        if op == "all_gather" and self.dim:
            made = torch.cat(made.chunk(ranks, self.dim))
        return made.contiguous()

    def _call(self, op: str, source: torch.Tensor, ranks: int) -> torch.Tensor:
        arguments = dict(self.given)
        if self.writes == self.reads:
            source = source.clone()
        arguments[self.reads] = source
        if self.writes:
            arguments[self.writes] = arguments.get(self.writes, self._space(op, source, ranks))
        returned = _operation(self.operation)(**arguments)
        if self.writes:
            written: torch.Tensor = arguments[self.writes]
            return written
        return torch.cat(list(returned), self.dim) if self.is_list else returned

    def _space(self, op: str, source: torch.Tensor, ranks: int) -> torch.Tensor:
        """Where the operation writes its result."""
        shape = list(source.shape)
        if op == "all_gather":
            shape[self.dim] *= ranks
        elif op == "reduce_scatter":
            shape[self.dim] //= ranks
        return source.new_empty(shape)


def _operation(text: str) -> Any:
    library, _, name = text.partition("::")
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(torch.ops, library), name), overload or "default")
