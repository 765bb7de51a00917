"""A torch.distributed backend in one file, to copy and edit.

It runs all-reduce, all-gather, reduce-scatter, broadcast and barrier of CPU tensors on CommsIR, coalesced ones one
after the other, and hands every other call to Gloo. There is no queue, no packing of lists and no counting:
the backend (runtime/torch/c10d) has those. To use a copy:

    import torch.distributed as dist
    import my_backend

    my_backend.register("mine")
    dist.init_process_group("mine")

A collective is three things: a description (`capi.Collective`), its arrays, and a call of `self.group.collective`.
A kernel of your own takes the place of the last two: see `sum_of_squares` at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed

from commsir.torch import backend, capi, dynamo

dist: Any = torch.distributed

__all__ = ["ReferenceGroup", "register", "sum_of_squares"]

_R = dist.ReduceOp
_REDUCTIONS = {_R.SUM: "sum", _R.AVG: "avg", _R.PRODUCT: "prod", _R.MIN: "min", _R.MAX: "max"}


#: Types whose reductions need nothing around them.
_REDUCED = (torch.float32, torch.bfloat16, torch.float16, torch.int32)


def _reduction(opts: Any, tensor: torch.Tensor) -> str:
    """Returns the reduction's name, or an empty string if Gloo reduces."""
    return _REDUCTIONS.get(getattr(opts.reduceOp, "op", opts.reduceOp), "") if tensor.dtype in _REDUCED else ""


def _one(tensors: Any) -> torch.Tensor:
    tensor: torch.Tensor
    (tensor,) = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    return tensor


@dynamo.opaque
class _Done(dist.Work):  # type: ignore[misc]
    """A Work that is complete when the program gets it, because calls of this backend return when they have run."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        super().__init__()
        self._future: Any = torch.futures.Future()
        self._future.set_result(tensors)

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def get_future(self) -> Any:
        return self._future


@dynamo.opaque
class ReferenceGroup(dist.ProcessGroup):  # type: ignore[misc]
    """One rank of a group. `settings` has the store, the rank and the size."""

    def __init__(self, settings: backend.Settings) -> None:
        super().__init__(settings.rank, settings.size)
        self.settings = settings
        self._group: capi.Group | None = None
        self._gloo: Any = None

    def getBackendName(self) -> str:  # noqa: N802 (torch's own name)
        return "commsir-reference"

    @property
    def group_name(self) -> str:
        return self.settings.name

    # The two that do the work; made when they are first needed, from the store alone.

    @property
    def group(self) -> capi.Group:
        """CommsIR's group."""
        if self._group is None:
            self._group = capi.Group(
                dist.PrefixStore("commsir", self.settings.store.clone()),
                self.settings.rank,
                self.settings.size,
                name=self.settings.name,
                timeout=self.settings.timeout,
            )
        return self._group

    @property
    def gloo(self) -> Any:
        """The backend for calls that this file does not implement."""
        if self._gloo is None:
            store = dist.PrefixStore("gloo", self.settings.store.clone())
            self._gloo = backend.delegate(self.settings.timeout)(
                store, "cpu", self.settings.rank, self.settings.size, self.settings.global_ranks, self.settings.name
            )
        return self._gloo

    # One collective: described, asked about, run; or, where CommsIR has none, run by Gloo.

    def _run(
        self,
        op: str,
        reduction: str,
        source: torch.Tensor,
        target: torch.Tensor,
        otherwise: Callable[[torch.Tensor, torch.Tensor], Any],
        root: int = 0,
    ) -> _Done:
        flat = source.contiguous()
        result = target if target.is_contiguous() else torch.empty_like(target).contiguous()
        element = capi.element_type(source.dtype) if reduction else f"i{8 * source.element_size()}"
        arrays = (flat.data_ptr(), flat.numel()), (result.data_ptr(), result.numel())
        call = capi.Collective(op, reduction, element, *arrays, root, capi.named_type(source.dtype))
        if not element or self.group.why_not(call):
            if work := otherwise(flat, result):
                work.wait()
        else:
            self.group.collective(call)
        if result is not target:
            target.copy_(result)
        return _Done([target])

    def allreduce(self, tensors: Any, opts: Any = None) -> _Done:
        opts = opts or dist.AllreduceOptions()
        tensor = _one(tensors)
        reduction = _reduction(opts, tensor)
        if not reduction:
            self.gloo.allreduce([tensor], opts).wait()
            return _Done([tensor])

        def by_gloo(source: torch.Tensor, target: torch.Tensor) -> None:
            self.gloo.allreduce([source], opts).wait()
            target.copy_(source)

        return self._run("all_reduce", reduction, tensor, tensor, by_gloo)

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> _Done:
        return self._run("all_gather", "", input, output, lambda s, t: self.gloo._allgather_base(t, s))

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> _Done:
        whole = torch.empty((len(outputs[0]), inputs[0].numel()), dtype=inputs[0].dtype, device=inputs[0].device)
        self._allgather_base(whole, inputs[0])
        for tensor, row in zip(outputs[0], whole, strict=True):
            tensor.copy_(row.view(tensor.shape))
        return _Done(list(outputs[0]))

    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> _Done:
        opts = opts or dist.ReduceScatterOptions()
        reduction = _reduction(opts, input)
        if not reduction:
            self.gloo._reduce_scatter_base(output, input, opts).wait()
            return _Done([output])
        return self._run(
            "reduce_scatter",
            reduction,
            input,
            output,
            lambda source, target: self.gloo._reduce_scatter_base(target, source, opts),
        )

    def broadcast(self, tensors: Any, opts: Any = None) -> _Done:
        opts = opts or dist.BroadcastOptions()
        tensor = _one(tensors)

        def by_gloo(source: torch.Tensor, target: torch.Tensor) -> None:
            self.gloo.broadcast([source], opts).wait()
            target.copy_(source)

        return self._run("broadcast", "", tensor, tensor, by_gloo, opts.rootRank)

    def barrier(self, opts: Any = None) -> _Done:
        return self.allreduce([torch.zeros(1, dtype=torch.int32, device="cpu")])

    # Coalesced calls.

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> _Done:
        for tensor in tensors:
            self.allreduce([tensor], opts)
        return _Done(list(tensors))

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> _Done:
        for output, input in zip(outputs, inputs, strict=True):  # noqa: A001 (torch's own name)
            self._allgather_base(output, input, opts)
        return _Done(list(outputs))

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> _Done:
        for output, input in zip(outputs, inputs, strict=True):  # noqa: A001
            self._reduce_scatter_base(output, input, opts)
        return _Done(list(outputs))

    # The rest is Gloo's.

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self.gloo.reduce_scatter(outputs, inputs, opts or dist.ReduceScatterOptions())

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> _Done:
        """Gloo supports only the variant with one tensor."""
        to, source = [t.numel() for t in outputs], [t.numel() for t in inputs]
        whole = outputs[0].new_empty(sum(to))
        self.alltoall_base(whole, torch.cat([t.reshape(-1) for t in inputs]), to, source, opts).wait()
        for tensor, part in zip(outputs, whole.split(to), strict=True):
            tensor.copy_(part.view(tensor.shape))
        return _Done(list(outputs))

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        self.gloo.monitored_barrier(timeout or self.settings.timeout, wait_all_ranks)

    def reduce(self, tensors: Any, opts: Any = None) -> Any:
        return self.gloo.reduce(tensors, opts)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self.gloo.gather(outputs, inputs, opts)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        return self.gloo.scatter(outputs, inputs, opts)

    def alltoall_base(self, output: Any, input: Any, to: Any, source: Any, opts: Any = None) -> Any:
        return self.gloo.alltoall_base(output, input, to, source, opts or dist.AllToAllOptions())

    def send(self, tensors: Any, to: int, tag: int = 0) -> Any:
        return self.gloo.send(tensors, to, tag)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Any:
        return self.gloo.recv(tensors, source, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self.gloo.recv_anysource(tensors, tag)

    # What torch 2.13 and newer call some of these.

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> _Done:
        return self._allgather_base(output, input, opts)

    def reduce_scatter_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> _Done:
        return self._reduce_scatter_base(output, input, opts)

    def all_to_all_single(self, output: Any, input: Any, to: Any, source: Any, opts: Any = None) -> Any:
        return self.alltoall_base(output, input, to, source, opts)

    def gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any) -> Any:
        root = opts.rootRank == self.settings.rank
        return self.gather([list(output.view(-1, *input.shape))] if root else [], [input], opts)

    def abort(self) -> None:
        if self._group is not None:
            self._group.abort("it was aborted")

    def shutdown(self) -> None:
        if self._group is not None:
            self._group.destroy()
            self._group = None


def register(name: str = "commsir-reference") -> None:
    """Makes `init_process_group(name)` use this file."""
    dist.Backend.register_backend(
        name, lambda options, _: ReferenceGroup(backend.settings(options)), extended_api=True, devices=["cpu"]
    )


#: A kernel of one's own: the squares of all ranks' numbers, summed, in one pass.
_SQUARES = """
comms.kernel @squares(%x: memref<1x{n}xf32>, %y: memref<1x{n}xf32>) {{
  %team = comms.team world
  comms.all_reduce sum %team ins(%x : memref<1x{n}xf32>) outs(%y : memref<1x{n}xf32>)
  produce (%a: tensor<{n}xf32>) {{
    %square = arith.mulf %a, %a : tensor<{n}xf32>
    comms.yield %square : tensor<{n}xf32>
  }}
  comms.return
}}
"""


def sum_of_squares(group: capi.Group, tensor: torch.Tensor) -> torch.Tensor:
    """Sum of squares for the gradients' norm, by a kernel that the group compiles once per size."""
    result = torch.empty_like(tensor)
    group.kernel(_SQUARES.format(n=tensor.numel()))(tensor.view(1, -1), result.view(1, -1))
    return result
