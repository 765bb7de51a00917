"""A process group to subclass: the C++ backend, with a program's own versions of some collectives.

    class MyGroup(commsir.torch.ProcessGroup):
        def allreduce(self, tensors, opts):
            return self.submit("all_reduce", tensors, tensors, run=lambda: my_all_reduce(self.group, tensors[0]))

    commsir.torch.register_backend("mine", MyGroup)

torch calls these methods, also from its C++ (functional collectives, DDP). What a subclass does not override goes to
the backend.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensor

from commsir.torch import backend, capi, dynamo, forms

dist: Any = torch.distributed

__all__ = ["ProcessGroup"]

#: Names of one method: of all releases of torch, and of 2.13 and newer. A subclass may override either.
_NAMES = {
    "_allgather_base": "all_gather_single",
    "allgather_into_tensor_coalesced": "all_gather_single_coalesced",
    "gather_into_tensor": "gather_single",
    "_reduce_scatter_base": "reduce_scatter_single",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_single_coalesced",
    "alltoall_base": "all_to_all_single",
}
#: Coalesced methods of lists of tensors; the method that each pair of tensors is a call of, and its options.
_COALESCED = {
    "allreduce_coalesced": ("allreduce", dist.AllreduceOptions),
    "allgather_into_tensor_coalesced": ("_allgather_base", dist.distributed_c10d.AllgatherOptions),
    "reduce_scatter_tensor_coalesced": ("_reduce_scatter_base", dist.ReduceScatterOptions),
}
_METHODS = (
    "allreduce",
    "broadcast",
    "reduce",
    "barrier",
    "allgather",
    "allgather_coalesced",
    "gather",
    "scatter",
    "reduce_scatter",
    "alltoall",
    "send",
    "recv",
    "recv_anysource",
    *_COALESCED,
    *_NAMES,
    *_NAMES.values(),
)


@dynamo.opaque
class _JointWork(dist.Work):  # type: ignore[misc]
    """Several Works as one, whose future has `tensors`. Without Works, it is complete."""

    def __init__(self, tensors: Sequence[torch.Tensor], works: Sequence[Any]) -> None:
        super().__init__()
        self._tensors, self._works = list(tensors), [work for work in works if work is not None]
        self._future: Any = None

    def wait(self, *timeout: Any) -> bool:
        for work in self._works:
            work.wait(*timeout)
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def get_future(self) -> Any:
        if self._future is None and self._works:
            every = torch.futures.collect_all([work.get_future() for work in self._works])
            self._future = every.then(lambda done: (done.value(), self._tensors)[1])
        elif self._future is None:
            self._future = torch.futures.Future()
            self._future.set_result(self._tensors)
        return self._future


def _has_memory(tensor: torch.Tensor) -> bool:
    """Whether tensors have memory. Those of the device "meta" and of FakeTensorMode have none, and nothing is sent."""
    return tensor.device.type != "meta" and not isinstance(tensor, FakeTensor)


_BOTH_NAMES = _NAMES | {new: old for old, new in _NAMES.items()}


def _name_in_torch(name: str) -> str:
    """Returns the name of a method in this release of torch, or an empty string if torch lacks it."""
    return next((one for one in (name, _BOTH_NAMES.get(name, "")) if hasattr(dist.ProcessGroup, one)), "")


def _forwarding(name: str) -> Callable[..., Any]:
    """A ProcessGroup method that forwards to the backend's."""
    known = _name_in_torch(name)
    old = next((one for one, new in _NAMES.items() if new == name), name)
    plain, options = _COALESCED.get(old, ("", None))

    def call(self: ProcessGroup, *given: Any, **named: Any) -> Any:
        if plain and self._overrides(plain) and not self._overrides(name):
            return self._call_each(getattr(self, plain), options, *given, **named)
        # torch takes no options where there are none.
        given = tuple(one for one in given if one is not None)
        work = getattr(self._plain, known)(*given, **{key: one for key, one in named.items() if one is not None})
        return _JointWork(given[0] if given and isinstance(given[0], list) else [], ()) if work is None else work

    call.__name__ = call.__qualname__ = name
    return call


@dynamo.opaque
class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """One rank of a process group, made of what torch hands to the makers of backends."""

    #: torch asks these of a backend, which `shrink_group` takes this for.
    supports_shrinking = True

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for one, other in _BOTH_NAMES.items():
            if one in vars(cls) and other not in vars(cls):
                setattr(cls, other, vars(cls)[one])
        forms.accept_all_forms(cls)
        dynamo.opaque(cls)

    def __init__(self, settings: backend.Settings) -> None:
        super().__init__(settings.rank, settings.size)
        self.settings = settings
        self._backend = settings.made or backend.make_in_cpp(settings)
        #: A group with the backend's methods alone.
        self._plain = dist.ProcessGroup(settings.store, settings.rank, settings.size)
        for group in (self, self._plain):
            backend.serve(group, self._backend)
        #: `device`: of the call that this thread runs.
        self._running = threading.local()

    def getBackendName(self) -> str:  # noqa: N802 (torch's own name)
        return "commsir"

    def name(self) -> str:
        return "commsir"

    def get_group_store(self) -> Any:
        return self.settings.store

    @property
    def group(self) -> capi.Group:
        """CommsIR's group, for kernels of the caller's own; made at first use, collectively.

        In what `submit` runs it is the group of where the call's tensors are, elsewhere that for CPU tensors.
        """
        return self.group_on(getattr(self._running, "device", "cpu"))

    def group_on(self, device: str) -> capi.Group:
        """Returns the group for `device`, "cpu" or "cuda" (the current GPU)."""
        found = torch.device(device)
        if found.type == "cuda" and found.index is None:
            found = torch.device("cuda", torch.cuda.current_device())
        made: capi.Group | None = backend.group_of(self, found)
        assert made is not None
        return made

    def submit(
        self,
        name: str,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        run: Callable[[], None],
        opts: Any = None,
    ) -> torch.distributed.Work:
        """Queues a collective: `run` is called in its turn on the group's thread; for CUDA tensors, in a stream.

        It reads `inputs` and writes `outputs`, which `run` must not replace. Returns the Work. Counters and reports use
        `name`. `opts` are the options that torch passed to the method.
        """
        tensors = [*inputs, *outputs]
        if not all(map(_has_memory, tensors)):
            return _JointWork(outputs or inputs, ())
        device = tensors[0].device.type if tensors else "cpu"

        def on_device() -> None:
            before = getattr(self._running, "device", "cpu")
            self._running.device = device
            try:
                run()
            finally:
                self._running.device = before

        limit, asynchronous = getattr(opts, "timeout", None), getattr(opts, "asyncOp", True)
        module = backend.loaded_module()
        work: torch.distributed.Work | None = module.run_in_turn(
            self._backend, name, list(inputs), list(outputs), on_device, limit, asynchronous
        )
        return _JointWork(outputs or inputs, ()) if work is None else work

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(ProcessGroup, method)

    def _call_each(self, method: Callable[..., Any], options: Any, tensors: Any, *more: Any, opts: Any = None) -> Any:
        """A coalesced call of a method that a subclass has overridden, and not its coalesced form."""
        inputs = more[:1] if more and isinstance(more[0], (list, tuple)) else ()
        given = (tensors, *inputs) if inputs else ([[one] for one in tensors],)
        asked = next((one for one in (*more[len(inputs) :], opts) if one is not None), None)
        used = options()
        for name in ("reduceOp", "timeout", "asyncOp"):
            if hasattr(used, name) and hasattr(asked, name):
                setattr(used, name, getattr(asked, name))
        return _JointWork(tensors, [method(*each, used) for each in zip(*given, strict=True)])

    def shrink(self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0, options: Any = None) -> ProcessGroup:
        """Makes a group of all ranks but `ranks_to_exclude`, also if this group has failed. They meet in the store
        again.

        `shrink_flags` and `options` are torch's, as of `torch.distributed.shrink_group`.
        """
        left = [rank for rank in range(self.settings.size) if rank not in ranks_to_exclude]
        chosen = options if options is not None else self._backend.options
        made = self._backend.shrink(list(ranks_to_exclude), shrink_flags, chosen)
        settings = dataclasses.replace(
            self.settings,
            rank=made.rank(),
            size=made.size(),
            name=f"{self.settings.name}:{'_'.join(map(str, left))}",
            global_ranks=[self.settings.global_ranks[rank] if self.settings.global_ranks else rank for rank in left],
            made=made,
        )
        return type(self)(settings)


for _name in filter(_name_in_torch, _METHODS):
    setattr(ProcessGroup, _name, dynamo.opaque(_forwarding(_name)))
