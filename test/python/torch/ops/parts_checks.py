"""Slices of a collective's result, and rows concatenated from it, in cases that a compiler may confuse. The ranks' part
of test_parts.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import commsir.torch.compile as fusing
import torch
import torch.distributed
import torch.distributed._functional_collectives as funcol
from compile_checks import DEVICE
from differing_checks import _compare, _compiled

dist: Any = torch.distributed
_f: Any = torch.nn.functional
ROWS, WIDTH, CALLS = 6, 16, 4


def _sum(x: Any) -> Any:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)


def own_part(rank: int, x: Any, w: Any) -> Any:
    """Each rank takes another part."""
    h = _sum(x)
    return h[:, 4 * rank : 4 * rank + 4] * 2


def own_split(rank: int, x: Any, w: Any) -> Any:
    """Parts of other sizes on each rank."""
    a, b = _sum(x).split([4 + rank, WIDTH - 4 - rank], -1)
    return a.relu(), b.tanh()


def uneven_parts(rank: int, x: Any, w: Any) -> Any:
    return tuple(part * (place + 1) for place, part in enumerate(_sum(x).split(5, -1)))


def some_rows(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x)
    return h[1:3] * 2 + h[0], h[:1].relu()


def every_other(rank: int, x: Any, w: Any) -> Any:
    """As rotary embeddings of pairs have it."""
    h = _sum(x)
    return torch.stack((-h[:, 1::2], h[:, ::2]), -1).flatten(-2) + h


def some_of_the_others(rank: int, x: Any, w: Any) -> Any:
    """Every other element, of which the last is left out."""
    return _sum(x)[:, :-2:2] * 2


def from_the_end(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x) + 1
    return h[:, -3:] * 2, h[:, :-5].relu(), h[:, -1]


def rows_joined(rank: int, x: Any, w: Any) -> Any:
    return torch.cat((_sum(x), x)) * 2


def with_itself(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x)
    return torch.cat((h, h, h[:, :1]), -1).relu()


def unbound(rank: int, x: Any, w: Any) -> Any:
    """Halves of a row as a dimension of their own."""
    a, b = _sum(x).view(-1, 2, WIDTH // 2).unbind(1)
    return a * b, a.sum(-1)


def pairs_unbound(rank: int, x: Any, w: Any) -> Any:
    """Parts that do not lie in one piece."""
    a, b = _sum(x).view(-1, WIDTH // 2, 2).unbind(-1)
    return a * b


def columns(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x)
    return h[:, 3] + 1, h[:, 3:4] * h, (h[:, 5] * x[:, 0]).view(-1, 1) + h


def aligned_otherwise(rank: int, x: Any, w: Any) -> Any:
    """One element a row, which torch aligns with columns."""
    h = _sum(x[:, :ROWS].contiguous())
    return h * h[:, 2]


def before_a_matmul(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x)
    return (h[:, :8] * 2) @ w[:8], h[:, 8:] @ w[8:]


def waited_for(rank: int, x: Any, w: Any) -> Any:
    wait: Any = funcol.wait_tensor
    return wait(wait(_sum(x))[:, :8] * 2) + 1


def many_parts(rank: int, x: Any, w: Any) -> Any:
    """More results than a kernel writes."""
    h = _sum(x)
    return tuple(part * 2 + place for place, part in enumerate((*h.split(1, -1), *h.split(2, -1))))


def written_later(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x) * 2
    part = h[:, :4] + 1
    h[:, 2:6] = 0
    return part, h, h[:, :4] + part


def narrow(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x.bfloat16())
    return torch.cat((-h[:, 9:], h[:, :9]), -1) * h + 1


def of_integers(rank: int, x: Any, w: Any) -> Any:
    h = _sum((x * 10).long())
    return h[:, :4] * 2, torch.cat((h, h), -1).float()


def of_masks(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x)
    return (h > 0)[:, 1:] & (h < 1)[:, :-1], torch.cat((h > 0, h < -1), -1)


def mixed_types(rank: int, x: Any, w: Any) -> Any:
    """A tensor of integers, a mask and floats in one row."""
    h = _sum(x)
    return torch.cat((h, (h > 0), torch.round(h).to(torch.int32)), -1) * 0.5


def gathered(rank: int, x: Any, w: Any) -> Any:
    h = funcol.all_gather_tensor(x, 1, dist.group.WORLD)
    a, b = h.chunk(2, -1)
    return torch.cat((b * 2, a), -1), _f.silu(a) * b


def scattered(rank: int, x: Any, w: Any) -> Any:
    h = funcol.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD)
    return h * 2 + torch.cat((-h[:, 8:], h[:, :8]), -1)


def sent(rank: int, x: Any, w: Any) -> Any:
    return _sum(x[:, 4:12] * 2) + 1, funcol.all_gather_tensor(x[:, :3].bfloat16(), 0, dist.group.WORLD) * 2


def sent_joined(rank: int, x: Any, w: Any) -> Any:
    return _sum(torch.cat((x[:, 8:], x[:, :8] * 2), -1)) + 1


def no_rows(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x[:0].contiguous())
    return torch.cat((h[:, 8:], h), -1) * 2


def no_columns(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x)
    return h[:, 4:4] * 2, torch.cat((h[:, 4:4], h), -1) + 1


def of_several(rank: int, x: Any, w: Any) -> Any:
    """Sums that could be one, if there were no parts, which are not those of ranks."""
    return _sum(x)[:, :6] + _sum(x * 2)[:, 10:], _sum(x @ w)


def padded(rank: int, x: Any, w: Any) -> Any:
    return _f.pad(_sum(x), (1, 2)) * 2


def rolled(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x)
    return torch.roll(h, 3, -1) * 2 + h, torch.flip(h, (-1,)) + 1


def of_one_dimension(rank: int, x: Any, w: Any) -> Any:
    h = _sum(x.flatten())
    return torch.cat((h[5:], h[:5])) * 2


def norm_of_parts(rank: int, x: Any, w: Any) -> Any:
    """Statistics of parts, and of rows that are joined."""
    h = _sum(x)
    q, k = h.split([12, 4], -1)
    both = torch.cat((_f.rms_norm(q, (12,)), k - k.mean(-1, keepdim=True)), -1)
    return both, both.amax(-1, keepdim=True) * h


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return _sum(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _sum(gradient)


def with_gradient(rank: int, x: Any, w: Any) -> Any:
    """A gate and a rotation of a training step."""
    apply: Any = _Sum.apply  # type: ignore[no-untyped-call, unused-ignore]
    gate, up = apply(x).chunk(2, -1)
    turned = torch.cat((-up[:, 4:], up[:, :4]), -1)
    return _f.silu(gate) * turned


PARTS: dict[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        own_part,
        own_split,
        uneven_parts,
        some_rows,
        every_other,
        some_of_the_others,
        from_the_end,
        rows_joined,
        with_itself,
        unbound,
        pairs_unbound,
        columns,
        aligned_otherwise,
        before_a_matmul,
        waited_for,
        many_parts,
        written_later,
        narrow,
        of_integers,
        of_masks,
        mixed_types,
        gathered,
        scattered,
        sent,
        sent_joined,
        no_rows,
        no_columns,
        of_several,
        padded,
        rolled,
        of_one_dimension,
        norm_of_parts,
        with_gradient,
    )
}


def _results(function: Any, rank: int, x: Any, w: Any, trains: bool) -> tuple[Any, ...]:
    """What the function gives, and with `trains` the gradient of its input."""
    given = x.clone().requires_grad_(trains)
    with torch.set_grad_enabled(trains):
        got = function(rank, given, w)
    results: tuple[Any, ...] = got if isinstance(got, tuple) else (got,)
    if trains:
        results[0].square().sum().backward()
        results += (given.grad,)
    return tuple(one.detach() for one in results)


def gives_the_same(rank: int, size: int, names: list[str]) -> dict[str, list[tuple[int, str]]]:
    """Compiled, functions give what they give otherwise; how many ops were fused behind each collective, and why not
    more."""
    said = {}
    for name in names:
        function = PARTS[name]
        compiled = _compiled(function)
        for turn in range(CALLS):
            generator = torch.Generator().manual_seed(100 * turn + rank)
            x = torch.randn(ROWS, WIDTH, generator=generator, device="cpu").mul(8).round().div(8).to(DEVICE)
            w = torch.eye(WIDTH) * 0.5
            trains = name == "with_gradient"
            _compare(_results(function, rank, x, w, trains), _results(compiled, rank, x, w, trains))
        said[name] = [(len(one.fused) + len(one.produced), "; ".join(one.because)) for one in fusing.fusions()]
    return said
