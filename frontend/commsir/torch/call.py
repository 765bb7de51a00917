"""One call of the process group in Python, taken apart: copies around the flat collectives of CommsIR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed
from torch._subclasses.fake_tensor import FakeTensor

from commsir.torch import capi, flight
from commsir.torch.overlap import check_apart, overlap
from commsir.torch.work import Work

dist: Any = torch.distributed

__all__ = ["Call", "Tensors", "is_part_of"]

Tensors = list[torch.Tensor]
_R = dist.ReduceOp
#: Of numbers, and of booleans.
_REDUCTIONS = {
    _R.SUM.value: ("sum", "or"),
    _R.AVG.value: ("avg", ""),
    _R.PRODUCT.value: ("prod", "and"),
    _R.MIN.value: ("min", "and"),
    _R.MAX.value: ("max", "or"),
    _R.BAND.value: ("and", "and"),
    _R.BOR.value: ("or", "or"),
    _R.BXOR.value: ("xor", "xor"),
    _R.PREMUL_SUM.value: ("sum", "or"),
}
_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


class Call:
    """What torch asked for, and how it is carried out."""

    def __init__(self, name: str, ranks: int, opts: Any = None) -> None:
        self.name, self.ranks, self.reduction = name, ranks, ""
        #: Root or peer; -1: none.
        self.root = -1
        #: Contiguous tensors, as another backend gets them; `kept` are packed ones.
        self.inputs: Tensors = []
        self.outputs: Tensors = []
        self.kept: Tensors = []
        #: Copies around the call, and around the steps alone.
        self.before: list[Callable[[], Any]] = []
        self.after: list[Callable[[], Any]] = []
        self.pack: list[Callable[[], Any]] = []
        self.unpack: list[Callable[[], Any]] = []
        self.steps: list[capi.Collective] = []
        #: In place of running the steps, which then only say what will be asked.
        self.run: Callable[[], None] | None = None
        #: By a backend for all ranks; a send or a receive on a GPU by one for this rank and its peer.
        self.delegated: Callable[[Any], Any] | None = None
        #: A send or a receive on the CPU, by CommsIR.
        self.begins: Callable[[], Any] | None = None
        #: Why CommsIR has nothing for the call; empty: it is asked.
        self.reason = ""
        self.sends = False
        #: What is read is calculated with, which takes booleans that are 0 or 1.
        self.reduces = False
        #: Where a call without tensors runs.
        self.place = torch.device("cpu")
        #: Who waits for it waits for the GPU.
        self.host_waits = False
        self.timeout: timedelta | None = getattr(opts, "timeout", None)
        if self.timeout is not None and self.timeout.total_seconds() <= 0:
            self.timeout = None
        self.number = 0
        self.work: Work | None = None
        self.record: flight.Record | None = None

    def drop(self) -> None:
        """Lets go of tensors, and of copies and calls that hold them."""
        self.inputs, self.outputs, self.kept = [], [], []
        self.before, self.after, self.pack, self.unpack = [], [], [], []
        self.run = self.delegated = self.begins = None

    # Checks.

    def single(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """The one tensor of a call that takes one."""
        if len(tensors) != 1:
            raise RuntimeError(
                f"commsir: {self.name} takes one tensor, got {len(tensors)}; call it once for each tensor"
            )
        return tensors[0]

    def check_count(self, tensors: Sequence[Any]) -> None:
        """There is one for each rank."""
        if len(tensors) != self.ranks:
            raise RuntimeError(
                f"commsir: {self.name} got {len(tensors)} tensors for {self.ranks} ranks; give a tensor for each rank"
            )

    def check_types(self, tensors: Sequence[torch.Tensor], same_size: bool = False) -> None:
        """They are of one type."""
        if not tensors:
            raise RuntimeError(f"commsir: {self.name} got no tensors")
        types = sorted({str(tensor.dtype) for tensor in tensors})
        if len(types) > 1:
            raise RuntimeError(
                f"commsir: {self.name} got tensors of the types {' and '.join(types)}; give tensors of one type"
            )
        sizes = sorted({tensor.numel() for tensor in tensors})
        if same_size and len(sizes) > 1:
            raise RuntimeError(f"commsir: {self.name} got tensors of {sizes} elements; give tensors of one size")

    def check_pairs(self, parts: Sequence[torch.Tensor], wholes: Sequence[torch.Tensor], times: int) -> None:
        """Of each pair the second holds `times` the elements of the first, of one type."""
        if not parts or len(parts) != len(wholes):
            raise RuntimeError(f"commsir: {self.name} got {len(parts)} tensors and {len(wholes)}; give as many of both")
        for i, (part, whole) in enumerate(zip(parts, wholes, strict=True)):
            self.check_types([part, whole])
            if whole.numel() != times * part.numel():
                raise RuntimeError(
                    f"commsir: {self.name}: tensors {i} have {part.numel()} and {whole.numel()} elements; the one has "
                    f"to hold {times} times the other"
                )

    def has_memory(self) -> bool:
        """Whether its tensors do: those of the device "meta" and of FakeTensorMode have none, and nothing moves. It is
        asked before the device, which is told to be one of those that have."""
        tensors = self.inputs + self.outputs + self.kept
        places = {tensor.device.type for tensor in tensors}
        return places != {"meta"} and not any(isinstance(tensor, FakeTensor) for tensor in tensors)

    def device(self) -> str:
        """Where its tensors are: "cpu" or "cuda"."""
        devices = {tensor.device for tensor in self.inputs + self.outputs}
        if len(devices) > 1:
            names = " and ".join(sorted(map(str, devices)))
            raise RuntimeError(f"commsir: {self.name} got tensors on {names}; move them to one device")
        device = devices.pop() if devices else self.place
        if device.type not in ("cpu", "cuda"):
            raise RuntimeError(f"commsir: {self.name} got a tensor on {device}; move it to the CPU or a CUDA device")
        return device.type

    def on_gpu(self) -> bool:
        """Whether it has tensors there, its own included."""
        return any(tensor.is_cuda for listed in (self.inputs, self.outputs, self.kept) for tensor in listed)

    # Tensors.

    def dense(self, tensor: torch.Tensor, read: bool, write: bool) -> torch.Tensor:
        """`tensor` if its memory is what it holds, elements behind each other and booleans 0 or 1 if the call
        `reduces`; else a stand-in that is filled before the call and copied back after it."""
        if tensor.layout != torch.strided:
            raise RuntimeError(f"commsir: {self.name} takes dense tensors; call .to_dense() first")
        is_truth = read and self.reduces and tensor.dtype == torch.bool
        if _is_plain_view(tensor) and not is_truth:
            return tensor
        if write:
            check_apart(self.name, [tensor])
        stand = _stand_for(tensor)
        if is_truth:
            # Booleans may be any byte, as in a view of uint8: all but 0 are true.
            self.before.append(lambda: torch.ne(tensor.view(torch.uint8), 0, out=stand))
        elif read:
            self.before.append(lambda: stand.copy_(tensor))
        if write:
            self.after.append(lambda: tensor.copy_(stand))
        return stand

    def input(self, tensor: torch.Tensor, written: Sequence[torch.Tensor] = (), is_own: bool = False) -> torch.Tensor:
        """A tensor that is read. Where it shares memory with what is `written` it is copied before that, unless it
        `is_own`, this rank's own part of it."""
        used = self.dense(tensor, True, False)
        if not is_own and any(overlap(one, used) for one in written):
            stand, plain = _stand_for(used), used
            self.before.append(lambda: stand.copy_(plain))
            used = stand
        self.inputs.append(used)
        return used

    def input_list(self, tensors: Sequence[torch.Tensor], rank: int) -> Tensors:
        """One input a rank, of which that of this rank may be the call's one output."""
        written = list(self.outputs)
        return [
            self.input(tensor, written, number == rank and is_part_of(tensor, written[0], 0))
            for number, tensor in enumerate(tensors)
        ]

    def output(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that is written."""
        self.outputs.append(self.dense(tensor, False, True))
        return self.outputs[-1]

    def output_list(self, tensors: Sequence[torch.Tensor]) -> Tensors:
        """Outputs that have memory of their own each. Returns what stands for them."""
        check_apart(self.name, tensors)
        return [self.output(tensor) for tensor in tensors]

    def both(self, tensor: torch.Tensor, read: bool = True, write: bool = True) -> torch.Tensor:
        """A tensor that is read and written."""
        self.inputs.append(self.dense(tensor, read, write))
        self.outputs.append(self.inputs[-1])
        return self.inputs[-1]

    def delegated_options(self, opts: Any) -> Any:
        """What another backend is asked in place of `opts`: Gloo calculates with the bytes of booleans."""
        known = self.inputs[0]
        kind = getattr(opts.reduceOp, "op", opts.reduceOp)
        if known.dtype != torch.bool or known.is_cuda or kind == _R.PREMUL_SUM:
            return opts
        made = type(opts)()
        for name in ("rootRank", "timeout", "asyncOp"):
            if hasattr(opts, name):
                setattr(made, name, getattr(opts, name))
        made.reduceOp = {"or": _R.BOR, "and": _R.BAND, "xor": _R.BXOR}[_REDUCTIONS[kind.value][True]]
        return made

    def scratch(self, elements: int, like: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Memory for the time of the call."""
        self.kept.append(torch.empty(elements, dtype=dtype or like.dtype, device=like.device))
        return self.kept[-1]

    def packed(self, tensors: Tensors, each: int) -> torch.Tensor:
        """A list as one flat array that is filled before the steps, `each` elements a tensor."""
        flat = self.scratch(each * len(tensors), tensors[0])

        def copy() -> None:
            for i, tensor in enumerate(tensors):
                flat.narrow(0, i * each, tensor.numel()).view(tensor.shape).copy_(tensor)

        self.pack.append(copy)
        return flat

    def unpacked(self, tensors: Tensors, each: int) -> torch.Tensor:
        """The same for results: taken apart after the steps."""
        flat = self.scratch(each * len(tensors), tensors[0])

        def copy() -> None:
            for i, tensor in enumerate(tensors):
                tensor.copy_(flat.narrow(0, i * each, tensor.numel()).view(tensor.shape))

        self.unpack.append(copy)
        return flat

    # Steps.

    def copy_step(
        self, op: str, source: torch.Tensor | None, target: torch.Tensor | None, root: int = 0, within: str = ""
    ) -> None:
        """A step that moves bytes; None: this rank has no such array. `within`: `sizes_of` what the array holds."""
        known = source if source is not None else target
        assert known is not None
        width = min(known.element_size(), 8)
        given, got = ((t.data_ptr(), t.nbytes // width) if t is not None else (0, 0) for t in (source, target))
        self.steps.append(capi.Collective.of(op, "", f"i{8 * width}", given, got, root, self._name_of(known) + within))

    def _name_of(self, tensor: torch.Tensor) -> str:
        """What the elements of a step's array are taken for: it may hold tensors of several types, as words."""
        names = [capi.named_type(one.dtype) for one in self.inputs]
        if all(one.dtype == tensor.dtype for one in self.inputs):
            return capi.named_type(tensor.dtype)
        runs = [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
        return f"words of {', '.join(runs)}"

    @staticmethod
    def sizes_of(tensors: Iterable[torch.Tensor]) -> str:
        """What a step tells of tensors in one array: ranks have to agree in each size, and the array's own is a sum."""
        return f" in tensors of {[tensor.numel() for tensor in tensors]} elements"

    def reduce_step(
        self,
        op: str,
        how: Any,
        source: torch.Tensor,
        target: torch.Tensor | None,
        root: int = 0,
        within: str = "",
    ) -> None:
        """A step that reduces, with what c10d's reductions need around it. `within` is as for `copy_step`."""
        kind = how.op if hasattr(how, "op") else how
        self._check_reduction(kind, source.dtype)
        named = capi.named_type(source.dtype)
        if source.is_complex():
            named = f"halves of {named.removeprefix('halves of ')}"
            source = torch.view_as_real(source)
            target = torch.view_as_real(target) if target is not None else None
        dtype, self.reduction = source.dtype, _REDUCTIONS[kind.value][source.dtype == torch.bool]
        result = target
        if kind in (_R.MIN, _R.MAX) and dtype in _UNSIGNED:
            turned, plain = torch.empty_like(source), source
            self.kept.append(turned)
            self.pack.append(lambda: _turn_top_bit(turned, plain))
            if result is not None:
                self.unpack.insert(0, lambda: _turn_top_bit(result, result))
            source = turned
        if kind == _R.PREMUL_SUM:
            scaled, plain = torch.empty_like(source), source
            self.kept.append(scaled)
            factor = how.__getstate__()[1]
            if isinstance(factor, torch.Tensor):
                if factor.is_complex():
                    raise RuntimeError(
                        f"commsir: {self.name}: PREMUL_SUM takes a real factor; multiply by a complex one before, and"
                        " use SUM"
                    )
                factor = factor.reshape(())
            if not dtype.is_floating_point and not dtype.is_complex:
                is_tensor = isinstance(factor, torch.Tensor)
                if factor.is_floating_point() if is_tensor else factor != int(factor):
                    raise RuntimeError(
                        f"commsir: {self.name}: PREMUL_SUM would cut off the factor of {dtype} to an integer; convert"
                        " the tensor to a floating type"
                    )
                factor = factor if is_tensor else int(factor)
            self.pack.append(lambda: torch.mul(plain, factor, out=scaled))
            source = scaled
        if kind == _R.AVG and not dtype.is_floating_point:
            self.reduction = "sum"
            if result is not None:
                self.unpack.insert(0, lambda: _divide(result, self.ranks))
        element = capi.element_type(dtype)
        if not element:
            self.reason = f"element type {dtype}"
        given, got = ((t.data_ptr(), t.numel()) if t is not None else (0, 0) for t in (source, target))
        self.steps.append(capi.Collective.of(op, self.reduction, element, given, got, root, named + within))

    def _check_reduction(self, kind: Any, dtype: torch.dtype) -> None:
        if kind in (_R.BAND, _R.BOR, _R.BXOR) and (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(
                f"commsir: Cannot use a bitwise ReduceOp with {dtype} in {self.name}; use an integer tensor"
            )
        if dtype.is_complex and kind not in (_R.SUM, _R.AVG, _R.PREMUL_SUM):
            raise RuntimeError(
                f"commsir: {self.name} does not support this ReduceOp on complex tensors; use SUM, AVG or PREMUL_SUM"
            )
        if dtype == torch.bool and kind == _R.AVG:
            raise RuntimeError(f"commsir: {self.name}: Cannot use ReduceOp.AVG with Boolean inputs; use a number")

    # Reports.

    def recorded(self) -> flight.Record:
        """As the group's recorder keeps it."""
        return flight.Record(
            self.name,
            self.reduction,
            self.root,
            self.sends,
            self.number,
            [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in self.inputs],
            [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in self.outputs],
            round(self.timeout.total_seconds() * 1000) if self.timeout else 0,
        )

    def describe(self) -> str:
        """As errors name it."""
        return self.recorded().describe()


def _is_plain_view(tensor: torch.Tensor) -> bool:
    """Whether memory is what the tensor holds: that of a view which conjugates or negates lazily, such as the imaginary
    part of a conjugate, is not."""
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


def _stand_for(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor like that one, without its contents."""
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def is_part_of(part: torch.Tensor, whole: torch.Tensor, number: int) -> bool:
    """Whether `part` lies in `whole` as its part of that number."""
    if isinstance(part, FakeTensor) or isinstance(whole, FakeTensor):
        return True
    plain = _is_plain_view(part) and _is_plain_view(whole)
    return plain and part.data_ptr() == whole.data_ptr() + number * part.nbytes


def _divide(sums: torch.Tensor, by: int) -> None:
    """Integers, rounded to zero. torch divides no unsigned ones of more than 8 bits."""
    if sums.dtype not in _UNSIGNED or sums.dtype == torch.uint8:
        sums.div_(by, rounding_mode="trunc")
    elif sums.dtype != torch.uint64:
        sums.copy_(sums.to(torch.int64).div(by, rounding_mode="trunc"))
    else:
        # The half of a number is no negative one. What is left is below 2 * by.
        whole = sums.view(torch.int64)
        most = ((whole >> 1) & torch.iinfo(torch.int64).max).div(by, rounding_mode="trunc") * 2
        whole.copy_(most + (whole - most * by).div(by, rounding_mode="trunc"))


def _turn_top_bit(target: torch.Tensor, source: torch.Tensor) -> None:
    signed = _SIGNED[source.element_size()]
    torch.bitwise_xor(source.view(signed), torch.iinfo(signed).min, out=target.view(signed))
