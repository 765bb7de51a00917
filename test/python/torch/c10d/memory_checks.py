"""Tensors that are views, or share memory: each call gives the correct result, or raises on its rank before anything
is sent.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import torch
import torch.distributed
from expected import close, error_of

dist: Any = torch.distributed
_c10d: Any = dist.distributed_c10d


def _still_usable(size: int) -> None:
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    close(tensor, torch.full((3,), float(size)))


# ---------------------------------------------------------------------------------------------------------------------
# Views that negate or conjugate lazily
# ---------------------------------------------------------------------------------------------------------------------


def _lazy(values: torch.Tensor) -> torch.Tensor:
    """The same values, held as their negatives or conjugates."""
    made = values.conj().resolve_conj().conj() if values.is_complex() else torch._neg_view(-values)
    assert (made.is_conj() or made.is_neg()) and torch.equal(made, values)
    return made


def _empty(count: int, dtype: torch.dtype) -> torch.Tensor:
    return _lazy(torch.full((count,), 7, dtype=dtype))


def lazy_views(rank: int, size: int, dtype: torch.dtype) -> None:
    """Every collective reads and writes what such views hold."""
    group = _c10d._get_default_group()
    own = [torch.full((2,), r + 1, dtype=dtype) for r in range(size)]
    total, whole = reduce(operator.add, own), torch.cat(own)
    parts = [torch.full((2,), 10 * rank + r + 1, dtype=dtype) for r in range(size)]
    mine = [torch.full((2,), 10 * r + rank + 1, dtype=dtype) for r in range(size)]

    def wait(work: Any) -> None:
        work.wait()

    x = _lazy(own[rank])
    wait(group.allreduce([x], dist.AllreduceOptions()))
    close(x, total)
    listed = [_lazy(own[rank]), _lazy(2 * own[rank])]
    wait(group.allreduce_coalesced(listed, dist.AllreduceCoalescedOptions()))
    close(torch.cat(listed), torch.cat([total, 2 * total]))
    x = _lazy(own[rank])
    options = dist.BroadcastOptions()
    options.rootRank = 1
    wait(group.broadcast([x], options))
    close(x, own[1])
    x = _lazy(own[rank])
    wait(group.reduce([x], dist.ReduceOptions()))
    close(x, own[rank] if rank else total)
    outputs = [_empty(2, dtype) for _ in range(size)]
    wait(group.allgather([outputs], [_lazy(own[rank])]))
    close(torch.cat(outputs), whole)
    output = _empty(2 * size, dtype)
    wait(group._allgather_base(output, _lazy(own[rank])))
    close(output, whole)
    outputs = [_empty(2, dtype) for _ in range(size)]
    wait(group.allgather_coalesced([[one] for one in outputs], [_lazy(own[rank])]))
    close(torch.cat(outputs), whole)
    output = _empty(2 * size, dtype)
    wait(group.allgather_into_tensor_coalesced([output], [_lazy(own[rank])]))
    close(output, whole)
    outputs = [_empty(2, dtype) for _ in range(size)] if rank == 0 else []
    wait(group.gather([outputs] if rank == 0 else [], [_lazy(own[rank])], dist.GatherOptions()))
    if rank == 0:
        close(torch.cat(outputs), whole)
    output = _empty(2, dtype)
    wait(group.scatter([output], [list(map(_lazy, own))] if rank == 0 else [], dist.ScatterOptions()))
    close(output, own[rank])
    scatter = dist.ReduceScatterOptions()
    output = _empty(2, dtype)
    wait(group.reduce_scatter([output], [list(map(_lazy, parts))], scatter))
    close(output, reduce(operator.add, mine))
    output = _empty(2, dtype)
    wait(group._reduce_scatter_base(output, _lazy(torch.cat(parts)), scatter))
    close(output, reduce(operator.add, mine))
    output = _empty(2, dtype)
    wait(group.reduce_scatter_tensor_coalesced([output], [_lazy(torch.cat(parts))], scatter))
    close(output, reduce(operator.add, mine))
    output = _empty(2 * size, dtype)
    wait(group.alltoall_base(output, _lazy(torch.cat(parts)), [], [], dist.AllToAllOptions()))
    close(output, torch.cat(mine))
    output = _empty(2 * size, dtype)
    wait(group.alltoall_base(output, _lazy(torch.cat(parts)), [2] * size, [2] * size, dist.AllToAllOptions()))
    close(output, torch.cat(mine))
    outputs = [_empty(2, dtype) for _ in range(size)]
    wait(group.alltoall(outputs, list(map(_lazy, parts)), dist.AllToAllOptions()))
    close(torch.cat(outputs), torch.cat(mine))
    _sent(rank, size, own)


def _sent(rank: int, size: int, own: list[torch.Tensor]) -> None:
    group = _c10d._get_default_group()
    after, before = (rank + 1) % size, (rank - 1) % size
    output = _empty(2, own[0].dtype)
    sent = group.send([_lazy(own[rank])], after, 0)
    group.recv([output], before, 0).wait()
    sent.wait()
    close(output, own[before])


def negated_in_programs(rank: int, size: int) -> None:
    """The same by torch's own functions, batches and functional collectives."""
    own = [torch.full((2,), float(r + 1)) for r in range(size)]
    total, name = reduce(operator.add, own), dist.group.WORLD.group_name
    x = torch.full((2,), 1 + 1j * (rank + 1)).conj().imag
    assert x.is_neg()
    dist.all_reduce(x)
    close(x, -total)
    after, before, output = (rank + 1) % size, (rank - 1) % size, _lazy(torch.zeros(2))
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, _lazy(own[rank]), after), dist.P2POp(dist.irecv, output, before)]
    )
    for work in works:
        work.wait()
    close(output, own[before])
    tensors = [_lazy(own[rank]), _lazy(own[rank])]
    with dist._coalescing_manager(device=torch.device("cpu")):
        for tensor in tensors:
            dist.all_reduce(tensor)
    for tensor in tensors:
        close(tensor, total)
    functional = torch.ops._c10d_functional
    close(functional.wait_tensor(functional.all_reduce(_lazy(own[rank]), "sum", name)), total)
    x = _lazy(own[rank])
    functional.wait_tensor(functional.all_reduce_(x, "sum", name))
    close(x, total)
    x = _lazy(own[rank])
    functional.wait_tensor(functional.broadcast_(x, 1, name))
    close(x, own[1])
    output = _lazy(torch.zeros(2 * size))
    functional.wait_tensor(functional.all_gather_into_tensor_out(_lazy(own[rank]), size, name, out=output))
    close(output, torch.cat(own))


def other_backends_are_as_they_were(rank: int, size: int) -> None:
    """What torch hands other backends is none of ours: a copy of such a view."""
    group = dist.new_group(backend="gloo")
    x = _lazy(torch.full((2,), float(rank + 1)))
    dist.all_reduce(x, group=group)
    close(x, torch.full((2,), float(rank + 1)))


# ---------------------------------------------------------------------------------------------------------------------
# Booleans
# ---------------------------------------------------------------------------------------------------------------------

_TRUTH: dict[str, Callable[[bool, bool], bool]] = {
    "MIN": operator.and_,
    "PRODUCT": operator.and_,
    "BAND": operator.and_,
    "MAX": operator.or_,
    "SUM": operator.or_,
    "BOR": operator.or_,
    "BXOR": operator.xor,
}
_BYTES = [[2, 4, 1, 128, 0, 0, 255, 3], [1, 8, 128, 128, 0, 16, 0, 3]]


def booleans(rank: int, size: int, kind: str) -> None:
    """Any byte but 0 is true, in every reduction and every form of it; a result is 0 or 1."""
    op = getattr(dist.ReduceOp, kind)
    of = [torch.tensor(_BYTES[r % 2], dtype=torch.uint8) for r in range(size)]
    want = [int(reduce(_TRUTH[kind], column)) for column in zip(*((one != 0).tolist() for one in of), strict=True)]

    def own() -> torch.Tensor:
        return of[rank].clone().view(torch.bool)

    def holds(tensor: torch.Tensor, wanted: list[int]) -> None:
        assert tensor.view(torch.uint8).tolist() == wanted, (kind, tensor.view(torch.uint8).tolist(), wanted)

    x = own()
    dist.all_reduce(x, op)
    holds(x, want)
    x = own()
    dist.reduce(x, 0, op)
    holds(x, of[rank].tolist() if rank else want)
    strided = own().repeat_interleave(2)[::2]
    dist.all_reduce(strided, op)
    holds(strided.contiguous(), want)
    both, options = [own(), own()], dist.AllreduceCoalescedOptions()
    options.reduceOp = op
    _c10d._get_default_group().allreduce_coalesced(both, options).wait()
    holds(torch.cat(both), 2 * want)
    part = torch.empty(8, dtype=torch.bool)
    dist.reduce_scatter(part, [own()] * size, op)
    holds(part, want)
    dist.reduce_scatter_tensor(part, own().repeat(size), op)
    holds(part, want)
    scatter = dist.ReduceScatterOptions()
    scatter.reduceOp = op
    _c10d._get_default_group().reduce_scatter_tensor_coalesced([part], [own().repeat(size)], scatter).wait()
    holds(part, want)


# ---------------------------------------------------------------------------------------------------------------------
# Memory that is shared
# ---------------------------------------------------------------------------------------------------------------------


def shared_outputs(rank: int, size: int) -> None:
    """Outputs that share memory are refused on each rank, before anything is sent."""
    group: Any = _c10d._get_default_group()
    x, memory, wide = torch.ones(3), torch.zeros(3 * size), torch.ones(3 * size)
    same, shifted = [torch.zeros(3)] * size, [memory[r : r + 3] for r in range(size)]
    expanded = torch.zeros(1).expand(3)
    windows = torch.zeros(4).as_strided((2, 3), (1, 1))
    gather, scatter = _c10d.AllgatherOptions(), dist.ReduceScatterOptions()
    calls: list[Callable[[], Any]] = [
        lambda: dist.all_reduce(expanded),
        lambda: dist.all_reduce(windows),
        lambda: dist.reduce_scatter_tensor(expanded, wide),
        lambda: dist.all_gather_into_tensor(torch.zeros(1).expand(3 * size), x),
        lambda: dist.all_to_all_single(torch.zeros(1).expand(3 * size), wide),
        lambda: dist.recv(expanded, (rank + 1) % size),
        lambda: group.allgather_into_tensor_coalesced([memory, memory], [x, x], gather),
        lambda: group.reduce_scatter_tensor_coalesced([x, x[:2]], [wide, wide[: 2 * size]], scatter),
    ]
    for outputs in (same, shifted):
        calls += [
            partial(dist.all_gather, outputs, x),
            partial(dist.all_to_all, outputs, [x] * size),
            partial(group.allgather_coalesced, [[one] for one in outputs], [x], gather),
        ]
        if rank == 0:
            calls.append(partial(dist.gather, x, outputs))
    for number, call in enumerate(calls):
        said = error_of(call)
        assert "share memory" in said and "commsir" in said, (number, said)
    # Ranks that read alone may have such tensors, and do not wait for those that are refused what they write.
    for call, writes in (
        (lambda: dist.broadcast(expanded, 0), rank != 0),
        (lambda: dist.reduce(windows, 0), rank == 0),
    ):
        said = error_of(call)
        assert ("share memory" in said) == writes, (rank, said)
    _still_usable(size)


def columns(rank: int, size: int) -> None:
    """Outputs that lie between each other share no memory."""
    x, table = torch.full((5,), float(rank)), torch.zeros(5, size)
    dist.all_gather(list(table.unbind(1)), x)
    close(table, torch.arange(float(size)).expand(5, size))
    table.zero_()
    dist.all_to_all(list(table.unbind(1)), [x] * size)
    close(table, torch.arange(float(size)).expand(5, size))
    # The root of a broadcast writes nothing.
    shown = torch.full((1,), 4.0).expand(3) if rank == 0 else torch.zeros(3)
    dist.broadcast(shown, 0)
    close(shown, torch.full((3,), 4.0))


def inputs_in_outputs(rank: int, size: int, count: int) -> None:
    """An input that lies in an output is read before that is written, in its own part and elsewhere."""

    def filled(memory: torch.Tensor, at: int, length: int, seed: int) -> torch.Tensor:
        memory[at : at + length] = torch.arange(float(length)) + 1000.0 * seed
        return memory[at : at + length]

    want = torch.cat([torch.arange(float(count)) + 1000.0 * r for r in range(size)])
    for at in (rank * count, 1, (size - 1) * count // 2):
        memory = torch.zeros(size * count)
        dist.all_gather_into_tensor(memory, filled(memory, at, count, rank))
        close(memory, want)
        memory = torch.zeros(size * count)
        dist.all_gather(list(memory.chunk(size)), filled(memory, at, count, rank))
        close(memory, want)
        memory = torch.zeros(size * count)
        out = memory[at : at + count]
        dist.reduce_scatter_tensor(out, filled(memory, 0, size * count, 0))
        close(out, size * (torch.arange(float(count)) + rank * count))
    for at in (0, 1):
        memory = torch.zeros(size * count + 1)
        source = filled(memory, at, size * count, rank)
        sent = source.clone()
        dist.all_to_all_single(memory[: size * count], source)
        every = [torch.empty(size * count) for _ in range(size)]
        dist.all_gather(every, sent)
        close(memory[: size * count], torch.cat([one[rank * count : (rank + 1) * count] for one in every]))


# ---------------------------------------------------------------------------------------------------------------------
# Splits
# ---------------------------------------------------------------------------------------------------------------------


def splits(rank: int, size: int) -> None:
    """Splits that are none are refused on each rank, before anything is sent."""
    even, rows = [1] * size, torch.ones(size)
    cases = [
        ("cannot be negative", [3, -1, *even[2:]]),
        ("not equal to group size", even[1:]),
        ("not equal to group size", [*even, 0]),
        ("doesn't match", [2, *even[1:]]),
        ("doesn't match", [0] * size),
        ("doesn't match", [2**62, 2**62, 2**62, 2**62][:size] if size >= 4 else [2**63 - 1, 2**63 - 1]),
    ]
    for says, wrong in cases:
        for what, outputs, inputs in (("output", wrong, even), ("input", even, wrong), ("input", wrong, wrong)):
            out = torch.full((size,), -1.0)
            said = error_of(partial(dist.all_to_all_single, out, rows, outputs, inputs))
            assert says in said and f"{what}_split_sizes" in said, (outputs, inputs, said)
            assert (out == -1).all(), out
    said = error_of(lambda: dist.all_to_all_single(torch.ones(()), torch.ones(()), even, even))
    assert "no dimension" in said, said
    _still_usable(size)


# ---------------------------------------------------------------------------------------------------------------------
# Storages that are smaller than their tensors
# ---------------------------------------------------------------------------------------------------------------------


def short_storages(rank: int, size: int) -> None:
    """A tensor whose storage has become smaller than the tensor is refused, also by calls that ran before."""
    from commsir.torch import ops

    name = dist.group.WORLD.group_name
    columns = 64
    sum_of = f"(%sum: tensor<{columns}xf32>, %r: tensor<{columns}xf32>) {{\n  %h = arith.addf %sum, %r : "
    sum_of += f"tensor<{columns}xf32>\n  comms.yield %h : tensor<{columns}xf32>\n}}"
    prepared = ops.prepare("all_reduce", sum_of, [(torch.float32, columns)])
    op = torch.ops.commsir

    def fused_op(x: torch.Tensor, r: torch.Tensor, out: torch.Tensor) -> None:
        op.fused_collective.out("all_reduce", x, [r], "sum", sum_of, False, name, outs=[out])

    def gather_list(x: torch.Tensor, out: torch.Tensor) -> None:
        parts = [torch.empty_like(x) for _ in range(size)]
        parts[-1] = out
        dist.all_gather(parts, x)

    #: A call, and the number of its tensors of 4 rows.
    calls: list[tuple[Callable[..., Any], int]] = [
        (lambda x: dist.all_reduce(x), 1),
        (lambda x: dist.all_reduce(x, async_op=True).wait(), 1),
        (lambda x: dist.broadcast(x, 0), 1),
        (gather_list, 2),
        (lambda x, out: op.all_reduce.out(x, "sum", name, out=out), 2),
        (lambda x: op.all_gather(x, name), 1),
        (lambda x, r, out: prepared(x, [r], out=[out]), 3),
        (lambda x, r: prepared(x, [r]), 2),
        (fused_op, 3),
    ]
    for number, (call, count) in enumerate(calls):
        for shrunk in range(count):
            tensors = [torch.zeros(4, columns) for _ in range(count)]
            for _ in range(2):  # The second call is the short way.
                call(*tensors)
            storage = tensors[shrunk].untyped_storage()
            whole = storage.nbytes()
            for bytes_left in (whole - 4, 0):
                storage.resize_(bytes_left)
                said = error_of(lambda call=call, tensors=tensors: call(*tensors))
                assert f"of its storage, which has {bytes_left}" in said, (number, shrunk, bytes_left, said)
            storage.resize_(whole)
            call(*tensors)
    # A view whose storage ends before it, and one whose storage ends with it.
    x = torch.zeros(8, columns)
    late, early = x[4:], x[2:6]
    x.untyped_storage().resize_(6 * columns * 4)
    assert f"needs {8 * columns * 4} bytes of its storage" in error_of(lambda: dist.all_reduce(late))
    dist.all_reduce(early)
    strided = torch.zeros(columns, 4).t()
    strided.untyped_storage().resize_(4 * columns * 4 - 4)
    assert "of its storage" in error_of(lambda: dist.all_reduce(strided))
    assert "of its storage" in error_of(lambda: op.all_reduce(strided, "sum", name))
    # Memory of another tensor in place of its own.
    y = torch.zeros(4, columns)
    dist.all_reduce(y)
    y.data = torch.ones(2, columns)
    dist.all_reduce(y)
    y.set_(torch.ones(6, columns))  # type: ignore[call-overload]
    dist.all_reduce(y)
    assert y.shape == (6, columns)
