"""The process group in Python: what the C++ backend does, where that cannot be had, and a class to subclass.

A subclass overrides one collective and keeps the rest:

    class Mine(commsir.torch.ProcessGroup):
        def allreduce(self, tensors, opts):
            return self.submit("all_reduce", tensors, tensors, run=lambda: my_all_reduce(self.group, tensors[0]))

    commsir.torch.register_backend("mine", Mine)

Here is what each call is made of; running.py runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed

from commsir.torch import backend, capi, torch_patches
from commsir.torch.call import Call, Tensors, is_part_of
from commsir.torch.running import Running
from commsir.torch.transfers import Transfer
from commsir.torch.work import Work

dist: Any = torch.distributed
#: torch.distributed itself leaves it out.
AllgatherOptions: Any = dist.distributed_c10d.AllgatherOptions

__all__ = ["ProcessGroup", "Work"]


def _words(tensor: torch.Tensor) -> int:
    return (tensor.nbytes + 7) // 8


def _listed(tensors: Any) -> Tensors:
    """torch gives some calls one tensor where others get a list."""
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _gathering(own: torch.Tensor, every: torch.Tensor) -> capi.Collective:
    """Ranks tell each other sizes before they exchange: one that makes another call is told of no elements of the
    program's."""
    given, got = ((t.data_ptr(), t.numel()) for t in (own, every))
    return capi.Collective.of("all_gather", "", "i64", given, got, named="sizes")


def _compare_sizes(call: Call, listed: Tensors) -> None:
    """Lists of tensors of several sizes, one a rank, have to be alike on all ranks, and a kernel sees the greatest
    alone: ranks compare them. On GPUs their hosts would have to wait for that."""
    sizes = [t.numel() for t in listed]
    if listed[0].is_cuda or len(set(sizes)) == 1:
        return
    own = torch.tensor(sizes, device="cpu")
    every = torch.empty(len(sizes), len(sizes), dtype=torch.int64, device="cpu")
    call.kept += [own, every]
    call.steps.insert(0, _gathering(own, every))

    def check() -> None:
        first, *others = every.tolist()
        for rank, other in enumerate(others, 1):
            if other != first:
                raise dist.DistBackendError(
                    f"commsir: {call.name}: rank 0 has a list of tensors of {first} elements, rank {rank} of {other}; "
                    "give lists that are alike on all ranks"
                )

    call.unpack.insert(0, check)


def _check_sizes(name: str, sizes: list[list[list[int]]]) -> None:
    """[rank][sends, expects][peer]: the same on all ranks, so that all of them refuse what does not fit."""
    for source, (sent, _) in enumerate(sizes):
        for target, count in enumerate(sent):
            expected = sizes[target][1][source]
            if count != expected:
                raise dist.DistBackendError(
                    f"commsir: {name}: rank {source} sends {count} elements to rank {target}, which expects "
                    f"{expected}. Nothing was exchanged; give sizes that agree"
                )


class ProcessGroup(Running):
    """Calls of one group begin in issue order, on a thread of their own."""

    #: torch asks these of a group's backend, which this is itself.
    supports_splitting = False
    supports_shrinking = True
    supports_coalescing = True
    supports_time_estimate = _supports_time_estimate = False
    supports_abort_hooks = supports_completion_hooks = supports_reconfigure = supports_window = False

    def _call(self, name: str, opts: Any = None) -> Call:
        call = Call(name, self.settings.size, opts)
        if (root := getattr(opts, "rootRank", None)) is not None:
            self._check_rank(name, root)
            call.root = root
        return call

    def _check_rank(self, name: str, rank: int) -> None:
        if not 0 <= rank < self.settings.size:
            raise RuntimeError(f"commsir: {name}: no rank {rank} in a group of {self.settings.size}")

    def _has_only(self, plain: str, coalesced: str) -> bool:
        """Whether a subclass has overridden a call and not its coalesced form, which is then made of such calls."""
        ours, own = ProcessGroup, type(self)
        return getattr(own, plain) is not getattr(ours, plain) and getattr(own, coalesced) is getattr(ours, coalesced)

    # What torch asks of a group.

    def getBackendName(self) -> str:  # noqa: N802 (torch's own name)
        return "commsir"

    def name(self) -> str:
        return "commsir"

    @property
    def _device_types(self) -> list[torch.device]:
        # While it makes a group, a newer torch hooks into the backends of the devices that the group names; a group in
        # Python is its own backend, and none that torch could hook into.
        if self not in dist.distributed_c10d._world.pg_names:
            return []
        return [torch.device("cpu")] + ([torch.device("cuda")] if torch.cuda.is_available() else [])

    @property
    def group_name(self) -> str:
        return str(dist.distributed_c10d._world.pg_names.get(self, self.settings.name))

    @property
    def group_desc(self) -> str:
        return getattr(self, "_description", "undefined")

    def _set_group_name(self, name: str) -> None:
        self.settings.name = name

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def _get_backend(self, device: torch.device) -> ProcessGroup:
        return self

    get_backend = _get_backend

    def get_group_store(self) -> Any:
        return self.settings.store

    @property
    def options(self) -> Any:
        return torch_patches.Options(self.name(), self.settings.timeout)

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return self._number

    # One tensor.

    def allreduce(self, tensors: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.AllreduceOptions()
        call = self._call("all_reduce", opts)
        tensor = call.single(_listed(tensors))
        if tensor.layout != torch.strided:
            call.reason, call.inputs, call.outputs = "sparse tensor", [tensor], [tensor]
        else:
            call.reduces = True
            tensor = call.both(tensor)
            call.reduce_step("all_reduce", opts.reduceOp, tensor, tensor)
            opts = call.delegated_options(opts)
        call.delegated = lambda other: other.allreduce([tensor], opts)
        return self._submit(call)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.AllreduceCoalescedOptions()
        if self._has_only("allreduce", "allreduce_coalesced"):
            return self._together(tensors, [self.allreduce([tensor], opts) for tensor in tensors])
        call = self._call("all_reduce_coalesced", opts)
        call.check_types(tensors)
        call.reduces = True
        listed = [call.both(tensor) for tensor in tensors]
        flat = call.scratch(sum(t.numel() for t in listed), listed[0])
        parts = torch.split(flat, [t.numel() for t in listed])
        call.pack.append(lambda: [part.copy_(t.view(-1)) for part, t in zip(parts, listed, strict=True)])
        call.unpack.append(lambda: [t.view(-1).copy_(part) for part, t in zip(parts, listed, strict=True)])
        call.reduce_step("all_reduce", opts.reduceOp, flat, flat, within=call.sizes_of(listed))
        opts = call.delegated_options(opts)
        call.delegated = lambda other: other.allreduce_coalesced(listed, opts)
        return self._submit(call)

    def broadcast(self, tensors: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.BroadcastOptions()
        call = self._call("broadcast", opts)
        is_root = opts.rootRank == self.settings.rank
        tensor = call.both(call.single(_listed(tensors)), read=is_root, write=not is_root)
        call.copy_step("broadcast", tensor, tensor, opts.rootRank)
        call.delegated = lambda other: other.broadcast([tensor], opts)
        return self._submit(call)

    def reduce(self, tensors: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.ReduceOptions()
        call = self._call("reduce", opts)
        call.reduces = True
        given, root = call.single(tensors), opts.rootRank == self.settings.rank
        tensor = call.both(given) if root else call.input(given)
        call.reduce_step("reduce", opts.reduceOp, tensor, tensor if root else None, opts.rootRank)
        opts = call.delegated_options(opts)
        call.delegated = lambda other: other.reduce([tensor], opts)
        return self._submit(call)

    def _place_of(self, opts: Any) -> torch.device:
        """Where a barrier runs: as its options have it, the CPU where they say nothing."""
        if (device := getattr(opts, "device", None)) is not None:
            return torch.device(device)
        numbers = getattr(opts, "device_ids", None)
        if numbers and torch.cuda.is_available():  # As Gloo has it, they say nothing where there is no GPU.
            return torch.device("cuda", numbers[0])
        return getattr(self, "bound_device_id", None) or torch.device("cpu")

    def barrier(self, opts: Any = None) -> torch.distributed.Work:
        call = self._call("barrier", opts)
        call.place = self._place_of(opts)
        call.host_waits = True
        if call.place.type == "cpu":
            self._begin_after_gpu(call)
        token = torch.zeros(1, dtype=torch.int32, device=call.place)
        call.kept.append(token)
        call.reduce_step("all_reduce", dist.ReduceOp.SUM, token, token)
        call.delegated = lambda other: other.barrier(opts) if opts else other.barrier()
        return self._submit(call)

    # Gathering.

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        call = self._call("all_gather", opts)
        given = call.single(inputs)
        call.check_count(outputs[0])
        call.check_types([given, *outputs[0]])
        targets = call.output_list(outputs[0])
        source = call.input(given, targets, is_part_of(given, targets[self.settings.rank], 0))
        if targets[self.settings.rank].numel() != source.numel():
            raise RuntimeError(
                f"commsir: all_gather of {source.numel()} elements into a tensor of "
                f"{targets[self.settings.rank].numel()}"
            )
        each = max(t.numel() for t in targets)
        part = source if source.numel() == each else call.packed([source], each)
        call.copy_step("all_gather", part, call.unpacked(targets, each))
        _compare_sizes(call, targets)
        call.delegated = lambda other: other.allgather([targets], [source], opts or AllgatherOptions())
        return self._submit(call)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> torch.distributed.Work:
        call = self._call("all_gather_into_tensor", opts)
        call.check_types([input, output])
        if output.numel() != input.numel() * self.settings.size:
            raise RuntimeError(
                "commsir: all_gather_into_tensor: output tensor size must be equal to world_size times input tensor "
                f"size: got {output.numel()} and {input.numel()} elements for {self.settings.size} ranks"
            )
        target = call.output(output)
        source = call.input(input, [target], is_part_of(input, target, self.settings.rank))
        call.copy_step("all_gather", source, target)
        call.delegated = lambda other: other._allgather_base(target, source, opts or AllgatherOptions())
        return self._submit(call)

    def _gather_words(self, call: Call, inputs: Tensors, outputs: list[Tensors]) -> None:
        """The tensors of each rank, as bytes behind each other, through one gather; `outputs` is one list a tensor."""
        offsets = [0]
        for tensor in inputs:
            offsets.append(offsets[-1] + 8 * _words(tensor))
        total = offsets.pop()
        source = call.scratch(total // 8, inputs[0], torch.int64).view(torch.uint8)
        target = call.scratch(total // 8 * self.settings.size, inputs[0], torch.int64).view(torch.uint8)

        def pack() -> None:
            for tensor, at in zip(inputs, offsets, strict=True):
                # One element is contiguous whatever its stride, which is in the way of a view as bytes.
                flat = tensor.contiguous().as_strided((tensor.numel(),), (1,))
                source.narrow(0, at, tensor.nbytes).copy_(flat.view(torch.uint8))

        def unpack() -> None:
            for listed, at in zip(outputs, offsets, strict=True):
                for rank, tensor in enumerate(listed):
                    part = target.narrow(0, rank * total + at, tensor.nbytes)
                    tensor.copy_(part.view(tensor.dtype).view(tensor.shape))

        call.pack.append(pack)
        call.unpack.append(unpack)
        within = call.sizes_of(inputs)
        call.copy_step("all_gather", source.view(torch.int64), target.view(torch.int64), within=within)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        call = self._call("all_gather_coalesced", opts)
        call.check_count(outputs)
        for listed in outputs:
            call.check_pairs(inputs, listed, 1)
        written = call.output_list([t for listed in outputs for t in listed])
        sources = [call.input(t) for t in inputs]
        count = len(sources)
        self._gather_words(call, sources, [written[number::count] for number in range(count)])
        by_rank = [written[first : first + count] for first in range(0, len(written), count)]
        call.delegated = lambda other: other.allgather_coalesced(by_rank, sources)
        return self._submit(call)

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        if self._has_only("_allgather_base", "allgather_into_tensor_coalesced"):
            used = opts or AllgatherOptions()
            works = [self._allgather_base(t, s, used) for t, s in zip(outputs, inputs, strict=True)]
            return self._together(outputs, works)
        call = self._call("all_gather_into_tensor_coalesced", opts)
        call.check_pairs(inputs, outputs, self.settings.size)
        targets = call.output_list(outputs)
        sources = [call.input(t) for t in inputs]
        parts = [
            [part.view(source.shape) for part in target.view(-1).chunk(self.settings.size)]
            for source, target in zip(sources, targets, strict=True)
        ]
        self._gather_words(call, sources, parts)
        call.delegated = lambda other: (
            [other._allgather_base(t, s).wait() for s, t in zip(sources, targets, strict=True)] and None
        )
        return self._submit(call)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.GatherOptions()
        call = self._call("gather", opts)
        given, together, lists = call.single(inputs), None, []
        if opts.rootRank == self.settings.rank:
            call.check_count(outputs[0])
            call.check_types([given, *outputs[0]], same_size=True)
            lists = [call.output_list(outputs[0])]
            together = call.unpacked(lists[0], given.numel())
        is_own = bool(lists) and is_part_of(given, lists[0][self.settings.rank], 0)
        source = call.input(given, call.outputs, is_own)
        call.copy_step("gather", source, together, opts.rootRank)
        call.delegated = lambda other: other.gather(lists, [source], opts)
        return self._submit(call)

    def gather_into_tensor(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> torch.distributed.Work:
        """`output` counts on the root alone."""
        opts = opts or dist.GatherOptions()
        call = self._call("gather_into_tensor", opts)
        together, lists = None, []
        if opts.rootRank == self.settings.rank:
            call.check_types([input, output])
            if output.numel() != input.numel() * self.settings.size:
                raise RuntimeError(
                    f"commsir: gather_into_tensor of {input.numel()} elements from each of {self.settings.size} ranks "
                    f"into a tensor of {output.numel()}"
                )
            together = call.output(output)
            lists = [list(together.view(self.settings.size, *input.shape))]
        is_own = together is not None and is_part_of(input, together, self.settings.rank)
        source = call.input(input, call.outputs, is_own)
        call.copy_step("gather", source, together, opts.rootRank)
        call.delegated = lambda other: other.gather(lists, [source], opts)
        return self._submit(call)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.ScatterOptions()
        call = self._call("scatter", opts)
        target, together, lists = call.output(call.single(outputs)), None, []
        if opts.rootRank == self.settings.rank:
            call.check_count(inputs[0])
            call.check_types([target, *inputs[0]], same_size=True)
            lists = [call.input_list(inputs[0], self.settings.rank)]
            together = call.packed(lists[0], target.numel())
        call.copy_step("scatter", together, target, opts.rootRank)
        call.delegated = lambda other: other.scatter([target], lists, opts)
        return self._submit(call)

    # Reduce-scatter.

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.ReduceScatterOptions()
        call = self._call("reduce_scatter", opts)
        call.reduces = True
        target = call.output(call.single(outputs))
        call.check_count(inputs[0])
        call.check_types([target, *inputs[0]])
        sources = call.input_list(inputs[0], self.settings.rank)
        if sources[self.settings.rank].numel() != target.numel():
            raise RuntimeError(
                f"commsir: reduce_scatter of {sources[self.settings.rank].numel()} elements into a tensor of "
                f"{target.numel()}"
            )
        each = max(t.numel() for t in sources)
        # What ranks have not compared yet is not written.
        part = target if all(t.numel() == each for t in sources) else call.unpacked([target], each)
        call.reduce_step("reduce_scatter", opts.reduceOp, call.packed(sources, each), part)
        _compare_sizes(call, sources)
        opts = call.delegated_options(opts)
        call.delegated = lambda other: other.reduce_scatter([target], [sources], opts)
        return self._submit(call)

    def _reduce_scatter_base(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> torch.distributed.Work:
        opts = opts or dist.ReduceScatterOptions()
        call = self._call("reduce_scatter_tensor", opts)
        call.check_types([input, output])
        if input.numel() != output.numel() * self.settings.size:
            raise RuntimeError(
                "commsir: reduce_scatter_tensor: input tensor must be the same size as output size times world size: "
                f"got {input.numel()} and {output.numel()} elements for {self.settings.size} ranks"
            )
        call.reduces = True
        target = call.output(output)
        source = call.input(input, [target], is_part_of(target, input, self.settings.rank))
        call.reduce_step("reduce_scatter", opts.reduceOp, source, target)
        opts = call.delegated_options(opts)
        call.delegated = lambda other: other._reduce_scatter_base(target, source, opts)
        return self._submit(call)

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        opts = opts or dist.ReduceScatterOptions()
        if self._has_only("_reduce_scatter_base", "reduce_scatter_tensor_coalesced"):
            works = [self._reduce_scatter_base(t, s, opts) for t, s in zip(outputs, inputs, strict=True)]
            return self._together(outputs, works)
        call = self._call("reduce_scatter_tensor_coalesced", opts)
        call.check_types([*inputs, *outputs])
        call.check_pairs(outputs, inputs, self.settings.size)
        call.reduces = True
        sources = [call.input(t) for t in inputs]
        targets = call.output_list(outputs)
        size, sizes = self.settings.size, [t.numel() for t in targets]
        source = call.scratch(sum(sizes) * size, sources[0]).view(size, -1)
        target = call.scratch(sum(sizes), sources[0])
        call.pack.append(
            lambda: [p.copy_(t.view(size, -1)) for p, t in zip(torch.split(source, sizes, 1), sources, strict=True)]
        )
        call.unpack.append(
            lambda: [t.view(-1).copy_(p) for p, t in zip(torch.split(target, sizes), targets, strict=True)]
        )
        call.reduce_step("reduce_scatter", opts.reduceOp, source, target, within=call.sizes_of(targets))
        opts = call.delegated_options(opts)
        call.delegated = lambda other: (
            [other._reduce_scatter_base(t, s, opts).wait() for s, t in zip(sources, targets, strict=True)] and None
        )
        return self._submit(call)

    # All-to-all.

    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: Any,
        input_splits: Any,
        opts: Any = None,
    ) -> torch.distributed.Work:
        call = self._call("all_to_all_single", opts)
        call.check_types([input, output])
        rows_in = self._splits(call, "input", input, input_splits)
        rows_out = self._splits(call, "output", output, output_splits)
        is_even = not input_splits and not output_splits
        target = call.output(output)
        source = call.input(input, [target], is_even and is_part_of(input, target, 0))
        if is_even:
            if source.numel() != target.numel():
                raise RuntimeError(f"commsir: all_to_all_single of {source.numel()} elements into {target.numel()}")
            call.copy_step("all_to_all", source, target)
        else:
            self._uneven(call, list(torch.split(target, rows_out)), list(torch.split(source, rows_in)))
        call.delegated = lambda other: other.alltoall_base(
            target, source, list(output_splits), list(input_splits), opts or dist.AllToAllOptions()
        )
        return self._submit(call)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        call = self._call("all_to_all", opts)
        call.check_count(outputs)
        call.check_count(inputs)
        call.check_types([*inputs, *outputs])
        on_gpu = inputs[0].is_cuda
        targets = call.output_list(outputs)
        sources = [call.input(t, targets) for t in inputs]
        self._uneven(call, targets, sources)

        def delegated(other: Any) -> Any:
            if on_gpu:
                return other.alltoall(targets, sources, opts or dist.AllToAllOptions())
            sizes = [t.numel() for t in targets]
            flat = torch.empty(sum(sizes), dtype=sources[0].dtype, device="cpu")
            joined = torch.cat([t.reshape(-1) for t in sources])
            other.alltoall_base(flat, joined, sizes, [t.numel() for t in sources], dist.AllToAllOptions()).wait()
            for part, tensor in zip(torch.split(flat, sizes), targets, strict=True):
                tensor.copy_(part.view(tensor.shape))
            return None

        call.delegated = delegated
        return self._submit(call)

    def _splits(self, call: Call, what: str, tensor: torch.Tensor, splits: Any) -> list[int]:
        """How `tensor` is cut into rows for each rank; no splits: into equal parts."""
        if not tensor.dim():
            raise RuntimeError(f"commsir: {call.name}: the {what} has no dimension along which it could be cut")
        size, rows, named = self.settings.size, tensor.shape[0], f"{what}_split_sizes"
        if not splits:
            if rows % size:
                raise RuntimeError(
                    f"commsir: {call.name}: the {what} has {rows} rows. Tensor's dim 0 does not divide equally across "
                    f"group size, which is {size}"
                )
            return [rows // size] * size
        if len(splits) != size:
            raise RuntimeError(
                f"commsir: {call.name}: {named} has {len(splits)} numbers for {size} ranks. Number of tensor splits "
                "not equal to group size"
            )
        if min(splits) < 0:
            raise RuntimeError(f"commsir: {call.name}: {named} is {list(splits)}: a number of rows cannot be negative")
        if sum(splits) != rows:
            raise RuntimeError(
                f"commsir: {call.name}: {named} is {list(splits)}, and the {what} has {rows} rows. Split sizes doesn't "
                "match total dim 0 size"
            )
        return list(splits)

    def _uneven(self, call: Call, outputs: Tensors, inputs: Tensors) -> None:
        """The ranks tell each other all sizes, and exchange pieces of the greatest."""
        if len(inputs) == 1:
            if inputs[0].numel() != outputs[0].numel():
                raise RuntimeError(f"commsir: {call.name} of {inputs[0].numel()} elements into {outputs[0].numel()}")
            call.copy_step("all_to_all", inputs[0], outputs[0])
            return
        if inputs[0].is_cuda:
            call.reason = "sizes that differ by peer"
            return
        ranks = self.settings.size
        own = torch.tensor([[t.numel() for t in inputs], [t.numel() for t in outputs]], device="cpu")
        every = torch.empty(ranks, 2, ranks, dtype=torch.int64, device="cpu")
        call.kept += [own, every]
        call.steps.append(_gathering(own, every))
        probe = call.scratch(ranks, inputs[0])
        call.copy_step("all_to_all", probe, probe)

        def run() -> None:
            self._launch(call, call.steps[0], "cpu")
            _check_sizes(call.name, every.tolist())
            each = 1 << max(int(every.max()) - 1, 0).bit_length()
            copies = Call(call.name, ranks)
            source, target = copies.packed(inputs, each), copies.unpacked(outputs, each)
            copies.copy_step("all_to_all", source, target)
            # Its number, time and tensors are the call's.
            copies.pack[0]()
            self._launch(call, copies.steps[0], "cpu")
            copies.unpack[0]()

        call.run = run

    # Since torch 2.13 programs and torch's own C++ call some of these by other names. What a subclass has overridden is
    # found by either.

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> torch.distributed.Work:
        return self._allgather_base(output, input, opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        return self.allgather_into_tensor_coalesced(outputs, inputs, opts)

    def gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> torch.distributed.Work:
        return self.gather_into_tensor(output, input, opts)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> torch.distributed.Work:
        return self._reduce_scatter_base(output, input, opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> torch.distributed.Work:
        return self.reduce_scatter_tensor_coalesced(outputs, inputs, opts)

    def all_to_all_single(
        self, output: torch.Tensor, input: torch.Tensor, output_splits: Any, input_splits: Any, opts: Any = None
    ) -> torch.distributed.Work:
        return self.alltoall_base(output, input, output_splits, input_splits, opts)

    def start_coalescing(self, device: torch.device) -> None:
        self._start_coalescing(device)

    def end_coalescing(self, device: torch.device) -> torch.distributed.Work:
        return self._end_coalescing(device)

    # Sends and receives.

    def _transfer(
        self, name: str, tensors: Any, peer: int, tag: int, transfer: Callable[[Any, Tensors, int, int], Any]
    ) -> Work:
        call = self._call(name)
        given, sends = call.single(tensors), name == "send"
        tensor = call.input(given) if sends else call.output(given)
        call.sends, call.root = True, peer
        on_cpu = call.device() == "cpu"
        call.reason = "" if on_cpu else "point to point"
        # Of two the lower one is 0.
        call.delegated = lambda pair: transfer(pair, [tensor], int(self.settings.rank < peer), tag)
        if on_cpu:
            side = Transfer.of(sends, self.settings.rank, peer, tag, tensor)

            def check() -> None:
                # Only when it begins: torch leaves a batch open in which a call is refused.
                if peer == self.settings.rank:
                    raise RuntimeError(f"commsir:{name}: rank {peer} is this one: copy the tensor")

            def begin() -> Any:
                check()
                assert call.timeout
                return self._messages.begin(side, tensor, call.timeout, self.abort_because)

            def carry(gloo: Any) -> Any:
                check()
                begun = transfer(gloo, [tensor], peer, side.fitting())
                return self._transfers.watch(side, begun, self._side("cpu").store("transfers"), self.abort_because)

            call.begins, call.delegated = begin, carry
        return self._submit(call)

    def send(self, tensors: Any, to: int, tag: int = 0) -> torch.distributed.Work:
        self._check_rank("send", to)
        return self._transfer(
            "send", tensors, to, tag, lambda other, listed, rank, used: other.send(listed, rank, used)
        )

    def recv(self, tensors: Any, source: int, tag: int = 0) -> torch.distributed.Work:
        self._check_rank("recv", source)
        return self._transfer(
            "recv", tensors, source, tag, lambda other, listed, rank, used: other.recv(listed, rank, used)
        )

    def recv_anysource(self, tensors: Any, tag: int = 0) -> torch.distributed.Work:
        if tensors[0].is_cuda:
            raise RuntimeError(
                "commsir: recv on a GPU has to be told who sends (src=…): NCCL has no receive from any rank"
            )
        return self._transfer(
            "recvAnySource", tensors, -1, tag, lambda other, listed, _, used: other.recv_anysource(listed, used)
        )

    # Barriers, groups made from this one.

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        self._check_usable("monitored_barrier")
        limit = self.settings.timeout if timeout is None or timeout.total_seconds() < 0 else timeout
        ms, rank = round(limit.total_seconds() * 1000), self.settings.rank
        if not ms and not rank:
            raise RuntimeError("[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms")

        # The words are Gloo's, which programs look for.
        def complain(missing: list[int]) -> str:
            told = missing if wait_all_ranks else missing[:1]
            ranks = ("s " if len(told) > 1 else " ") + ", ".join(map(str, told))
            return f"[Rank 0]: Rank{ranks} failed to pass monitoredBarrier in {ms} ms"

        met = self.settings.meet("commsir/monitored", limit, lambda: bool(self._ended), complain=complain)
        if not met.epoch and rank:
            raise RuntimeError(
                f"Rank {rank} successfully reached monitoredBarrier, "
                f"but received errors while waiting for send/recv from rank 0: {met.failure}"
            )
        if not met.epoch:
            raise RuntimeError(met.failure)

    # What torch asks of some backends.

    def shrink(self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0, options: Any = None) -> ProcessGroup:
        """A group of the ranks that are left, also where this one has failed; they meet in the store again."""
        left = [rank for rank in range(self.settings.size) if rank not in ranks_to_exclude]
        if self.settings.rank not in left:
            raise RuntimeError(f"commsir: shrink: rank {self.settings.rank} is left out; ranks that are left call this")
        if shrink_flags:
            self.abort_because(f"it shrinks to {len(left)} ranks")
        self._drain()
        listed = "_".join(map(str, left))
        made = backend.Settings(
            dist.PrefixStore(f"commsir/shrunk/{listed}", self.settings.store),
            left.index(self.settings.rank),
            len(left),
            getattr(options, "_timeout", None) or self.settings.timeout,
            f"{self.settings.name}:{listed}",
            [self.settings.global_rank(rank) for rank in left],
        )
        return type(self)(made)

    def _register_on_completion_hook(self, hook: Callable[[Any], None]) -> None:
        raise RuntimeError(
            "commsir: the process group in Python has no hooks on completion, which need torch's WorkInfo; "
            "use the C++ backend (COMMSIR_TORCH_BACKEND=cpp), or work.get_future().then(...)"
        )

    def _has_hooks(self) -> bool:
        return False

    def _enable_collectives_timing(self) -> None:
        """Times are always taken."""

    @property
    def mem_allocator(self) -> Any:
        raise RuntimeError(
            "commsir: a process group has no allocator of its own: make symmetric tensors by commsir.torch.window or "
            "torch.distributed._symmetric_memory.empty"
        )

    def eager_connect_single_device(self, device: torch.device | None = None) -> None:
        """Groups are made at the first call."""
