"""Simulates kernels on the ranks of this machine and reports the results."""

from __future__ import annotations

import html
import json
import math
import operator
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from commsir import _arrays, _files, _native, errors
from commsir._arguments import number
from commsir.language import diagnostics, python_terms
from commsir.language.dtypes import BY_NAME, DType, narrow, widen
from commsir.language.extents import RANKS, DerivedDim, Extent, evaluate, names_in, solve
from commsir.language.parameters import Parameter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report", "run"]

Bits = np.ndarray[Any, Any]


class Simulated(Protocol):
    """What a simulation uses of a kernel: `commsir._kernel.Kernel`, which imports this module."""

    __name__: str
    attributes: dict[str, int]
    dims: dict[str, int]

    @property
    def _start(self) -> tuple[str, int, int]: ...
    @property
    def parameters(self) -> dict[str, Parameter]: ...
    @property
    def defaults(self) -> dict[str, Any]: ...
    def specialize(self, **fixed: int) -> Simulated: ...
    def text(self) -> str: ...
    def _with(self, ranks: int | None, blocks: int | None = None) -> Simulated: ...
    def _inferred(self) -> Simulated: ...
    def _shape(self, parameter: str) -> tuple[int, ...]: ...


def run(
    kernel: Simulated,
    ranks: int | None,
    inputs: Mapping[str, Any],
    *,
    seed: int | None,
    fuzz: int,
    blocks: int | None,
    launches: int,
    trace: str | os.PathLike[str] | bool | None,
    target: str,
    **options: Any,
) -> Report:
    """Implements `Kernel.simulate`."""
    path = _trace_path(trace)
    _check_names(kernel, inputs)
    _check_options(kernel, options)
    count = _count_ranks(kernel, ranks, inputs)
    given = {n: _parts(n, p, inputs[n], count) for n, p in kernel.parameters.items() if n in inputs and _is_array(p)}
    fixed = _bind_dimensions(kernel, given, count)
    made = kernel._with(count, blocks).specialize(**fixed)._inferred()
    # The report may run it again, when the caller's arrays hold something else.
    kept = {name: _copied(value) for name, value in inputs.items()}
    arrays = {n: given.get(n) or _zeros(made, n, p, count) for n, p in kernel.parameters.items() if _is_array(p)}
    values = {**kernel.defaults, **inputs}
    scalars = {n: values[n] for n, p in kernel.parameters.items() if p.kind == "scalar" and n in values}
    text = made.text()
    for name, value in scalars.items():
        _check_scalar(name, kernel.parameters[name].dtype, value)
    request: dict[str, Any] = {
        "file": diagnostics.GENERATED,
        "ranks": count,
        "scalars": {n: _native._plain(v) for n, v in scalars.items()},
        "shapes": {n: list(parts[0].shape) for n, parts in arrays.items()},
        "types": {n: kernel.parameters[n].dtype.mlir for n in arrays},
        "seed": seed,
        "fuzz": fuzz,
        "launches": launches,
        "target": target,
        **options,
    }
    views = {n: _views(parts, kernel.parameters[n]) for n, parts in arrays.items()}
    events = None
    try:
        if trace:
            stats, events = _traced(text, request, views, path)
        else:
            stats = _native.simulate_views(text, request, views)
    except errors.CommsError as error:
        raise diagnostics.with_source(error, made._start) from None
    outputs = {n: [widen(part, kernel.parameters[n].dtype) for part in parts] for n, parts in arrays.items()}
    again = {"seed": seed, "fuzz": 0, "blocks": blocks, "launches": launches, "target": target, **options}
    report = Report(made, count, outputs, stats, (kept, again), events)
    if path is not None:
        report.trace(path)
    return report


def _trace_path(trace: str | os.PathLike[str] | bool | None) -> str | os.PathLike[str] | None:
    """Returns the path that `trace` names, which can be written; None: it names none."""
    if not (trace is None or isinstance(trace, bool | str | os.PathLike)):
        raise errors.UsageError(f"trace is {trace!r}: give the path of a file to write, or True")
    if not isinstance(trace, str | os.PathLike):
        return None
    _files.check_writable(trace)
    return trace


def _check_options(kernel: Simulated, options: Mapping[str, Any]) -> None:
    for name in options:
        if name in kernel.parameters:
            raise errors.UsageError(
                f"simulate has no option '{name}'; arrays and scalars go into inputs={{\"{name}\": …}}"
            )
        # Without these, the next error would be about sizes. The library knows the other options.
        if hint := diagnostics.did_you_mean(name, ("inputs", "ranks"), 0.75):
            raise errors.UsageError(f"simulate has no option '{name}'; {hint}")
    for option in ("same", "vary"):
        _check_named(kernel, option, options.get(option))


def _traced(
    text: str, request: dict[str, Any], views: Mapping[str, Any], path: str | os.PathLike[str] | None
) -> tuple[dict[str, Any], Any]:
    """Runs a kernel, and returns its report and the events of its trace. A run that fails writes them to `path`."""
    keep = _temporary()
    try:
        stats = _native.simulate_views(text, {**request, "trace": os.fspath(keep)}, views)
        return stats, json.loads(keep.read_text(encoding="utf-8"))
    except errors.CommsError:
        if path is not None and keep.stat().st_size:
            _files.write(path, keep.read_text(encoding="utf-8"))  # How it came to that.
        raise
    finally:
        keep.unlink(missing_ok=True)


def _temporary() -> Path:
    handle, name = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    return Path(name)


def _check_scalar(name: str, dtype: DType, value: Any) -> None:
    """Checks a number, or one for each rank. Integers of kernels are signed: those that fit only without a sign would
    wrap.
    """
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1:
        for one in value:
            _check_scalar(name, dtype, one)
        return
    exact = number(value, dtype.name, f"'{name}'")
    if isinstance(exact, int):
        limits = np.iinfo(dtype.numpy)
        fits = limits.min <= exact <= limits.max
    else:
        fits = not math.isfinite(exact) or math.isfinite(float(dtype(exact)))
    if not fits:
        raise errors.UsageError(f"'{name}' is {value}, which does not fit {dtype.name}")


def _copied(value: Any) -> Any:
    """Copies an array of any library, or several."""
    if isinstance(value, list | tuple):
        return [_copied(one) for one in value]
    if hasattr(value, "detach"):  # torch's
        return value.detach().clone()
    return value.copy() if hasattr(value, "shape") and hasattr(value, "copy") else value


def _is_array(parameter: Parameter) -> bool:
    return parameter.kind in ("window", "array")


def _check_names(kernel: Simulated, inputs: Mapping[str, Any]) -> None:
    if not isinstance(inputs, Mapping):
        known = ", ".join(f'"{name}": …' for name in kernel.parameters)
        raise errors.UsageError(f"inputs is a {type(inputs).__name__}; it is a dict by parameter: {{{known}}}")
    for name in inputs:
        spec = kernel.parameters.get(name)
        if spec is None:
            hint = diagnostics.did_you_mean(str(name), kernel.parameters) or f"it has {', '.join(kernel.parameters)}"
            raise errors.UsageError(f"{kernel.__name__} has no parameter '{name}'; {hint}")
        if spec.kind in ("signal", "counter"):
            raise errors.UsageError(f"'{name}' is a {spec.kind}: its cells begin at 0 and take no input")


def _check_named(kernel: Simulated, option: str, value: Any) -> None:
    """Checks the names of arrays that an option has: one, or several."""
    for name in value.split(",") if isinstance(value, str) else value or ():
        if name not in kernel.parameters:
            hint = diagnostics.did_you_mean(str(name), kernel.parameters) or f"it has {', '.join(kernel.parameters)}"
            raise errors.UsageError(f"{option}={value!r}: {kernel.__name__} has no parameter '{name}'; {hint}")


def _is_per_rank(value: Any) -> bool:
    """Whether `value` is a list of arrays or lists, one per rank. A list of numbers is one array."""
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and any(getattr(v, "shape", hasattr(v, "__dlpack__")) or isinstance(v, Sequence) for v in value)
    )


def _count_ranks(kernel: Simulated, ranks: int | None, inputs: Mapping[str, Any]) -> int:
    lengths = {n: len(v) for n, v in inputs.items() if _is_array(kernel.parameters[n]) and _is_per_rank(v)}
    if ranks is not None and (isinstance(ranks, bool) or not hasattr(ranks, "__index__")):
        raise errors.UsageError(f"ranks is {ranks!r}, not a number of ranks")
    if ranks is not None and ranks < 1:
        raise errors.UsageError(f"ranks is {ranks}, but must be at least 1")
    given = 0 if ranks is None else operator.index(ranks)  # NumPy's numbers are no JSON.
    fixed = kernel.attributes.get("ranks")
    if given and fixed and given != fixed:
        raise errors.UsageError(
            f"{kernel.__name__} is of {fixed} ranks (ranks={fixed} in its decorator or in specialize), not of {given}"
        )
    count = given or fixed or next(iter(lengths.values()), 0)
    if count < 1:
        raise errors.UsageError(
            f"how many ranks? {kernel.__name__}.simulate(ranks=4, …), or inputs as lists of one array a rank"
        )
    for name, length in lengths.items():
        if length != count:
            raise errors.UsageError(
                f"'{name}' has {length} arrays for {count} ranks; give one a rank, or one array for all"
            )
    return count


def _parts(name: str, spec: Parameter, value: Any, ranks: int) -> list[Bits]:
    """Copies the arrays of all ranks as the bits that the kernel works on. The kernel writes to the copies."""
    if _is_per_rank(value):
        values = list(value)
    elif getattr(value, "ndim", 0) == len(spec.shape) + 1 and value.shape[0] == ranks:
        values = [value[r] for r in range(ranks)]
    else:
        values = [value] * ranks
    parts = [_kernel_bits(f"'{name}' of rank {r}", spec.dtype, v) for r, v in enumerate(values)]
    for r, part in enumerate(parts):
        if part.shape != parts[0].shape:
            raise errors.UsageError(
                f"'{name}' is {parts[0].shape} on rank 0 and {part.shape} on rank {r}; ranks have arrays of one shape"
            )
    return parts


def _kernel_bits(what: str, dtype: DType, value: Any) -> Bits:
    """Copies an array of any library to the kernel's element type. Floats are rounded; integers must fit."""
    _arrays.refuse_mask(value, what)
    try:
        name = _arrays.element_type(value) if hasattr(value, "dtype") else ""
        raw = _host(value, name)
        raw = raw if raw.dtype.isnative else raw.astype(raw.dtype.newbyteorder("="))
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise errors.UsageError(f"{what}: {error}") from error
    source = BY_NAME.get(name)
    # Unsigned integers that hold the bits of floats are no numbers.
    signless = raw.dtype.kind == "u" and (source is None or source.is_integer)
    if signless and dtype.is_integer and raw.size and raw.max() > np.iinfo(dtype.numpy).max:
        raise errors.UsageError(
            f"{what} has numbers that do not fit {dtype.name}: integers of kernels have a sign; "
            f"pass its .view({str(dtype.numpy)!r}) if bits are meant"
        )
    if source is dtype:
        return (
            np.array(raw, dtype=dtype.numpy, order="C")
            if raw.dtype != dtype.numpy and raw.dtype.kind in "iub"
            else np.array(raw, order="C")
        )
    values = raw if source is None else widen(raw, source)
    if dtype.is_float:
        if values.dtype.kind not in "fiub":
            raise errors.UsageError(f"{what} has elements of type {values.dtype}, but must have {dtype.name}")
        return np.array(narrow(values, dtype), order="C")
    if values.dtype.kind not in "iub":
        raise errors.UsageError(
            f"{what} has elements of type {values.dtype}, but must have {dtype.name}; round it first"
        )
    converted = values.astype(dtype.numpy)
    if not np.array_equal(converted, values):
        raise errors.UsageError(f"{what} has numbers that do not fit {dtype.name}")
    return np.array(converted, order="C")


def _host(value: Any, name: str) -> Bits:
    """Returns a NumPy view of an array in host memory. Element types that NumPy lacks appear as unsigned integers."""
    value = value.detach() if hasattr(value, "detach") else value
    value = value.resolve_neg() if hasattr(value, "resolve_neg") else value
    if hasattr(value, "dtype") and name in _arrays._RAW:
        raw = np.asarray(_arrays._raw(value, name))
        # Of JAX, and of a scalar, NumPy's own type for it is left.
        return raw if raw.dtype.kind in "iu" else raw.view(BY_NAME[name].numpy)
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError):
        return np.asarray(value.get()) if hasattr(value, "get") else np.asarray(value.cpu())


def _bind_dimensions(kernel: Simulated, given: Mapping[str, list[Bits]], ranks: int) -> dict[str, int]:
    """Infers the sizes of named dimensions from the given arrays: first plain names, then derived dimensions."""
    sizes = {**kernel.dims, RANKS: ranks}
    for name, parts in given.items():
        _check_dimensions(name, kernel.parameters[name].shape, parts[0].shape)
    pairs = [
        pair
        for name, parts in given.items()
        for pair in zip(kernel.parameters[name].shape, parts[0].shape, strict=True)
    ]
    for calculated in (False, True):
        for dim, size in pairs:
            found = solve(dim, size, sizes) if isinstance(dim, DerivedDim) == calculated else None
            if found is not None and found[1] >= 0:
                sizes[found[0]] = found[1]
    for name, parts in given.items():
        _check_shape(name, kernel.parameters[name].shape, parts[0].shape, sizes)
    return {name: size for name, size in sizes.items() if name != RANKS}


def _check_dimensions(name: str, wanted: tuple[Extent, ...], shape: tuple[int, ...]) -> None:
    if len(shape) != len(wanted):
        text = ", ".join(map(str, wanted))
        raise errors.UsageError(f"'{name}' has shape {list(shape)}, and the kernel has it as [{text}]")


def _check_shape(name: str, wanted: tuple[Extent, ...], shape: tuple[int, ...], sizes: Mapping[str, int]) -> None:
    """Checks that an array has the annotated shape, as far as its named dimensions are known."""
    for dim, size in zip(wanted, shape, strict=True):
        unknown = [one for one in names_in(dim) if one not in sizes]
        if dim == "?" or evaluate(dim, sizes) == size or len(unknown) > 1:
            continue
        if isinstance(dim, str):
            raise errors.UsageError(f"'{name}' has shape {list(shape)}, but '{dim}' is {sizes[dim]} elsewhere")
        known = ", ".join(f"{one} is {sizes[one]}" for one in dict.fromkeys(names_in(dim)) if one in sizes)
        text = ", ".join(map(str, wanted))
        raise errors.UsageError(
            f"'{name}' has shape {list(shape)}, and the kernel has it as [{text}]"
            + (f", where {known}" if known else "")
        )


def _zeros(kernel: Simulated, name: str, spec: Parameter, ranks: int) -> list[Bits]:
    shape = kernel._shape(name)
    try:
        return [np.zeros(shape, spec.dtype.numpy) for _ in range(ranks)]
    except (ValueError, MemoryError) as error:
        raise errors.UsageError(f"'{name}' of {list(shape)} does not fit into this machine's memory: {error}") from None


def _views(parts: list[Bits], spec: Parameter) -> list[_arrays.View]:
    return [_arrays.view(part)._replace(type=spec.dtype.mlir) for part in parts]


@dataclass(eq=False)
class Report:
    """The result of a run: the arrays of all ranks, statistics, and views of the trace."""

    kernel: Simulated
    ranks: int
    #: Arrays after the run by parameter, one a rank. bf16, f8 and f8e5m2 are float32 here, which holds all
    #: their values.
    outputs: dict[str, list[Bits]]
    #: The report of `comms-run --json`: steps, microseconds, choices, per_rank, …
    stats: dict[str, Any]
    _again: tuple[Mapping[str, Any], dict[str, Any]] = field(repr=False)
    _events: dict[str, Any] | None = field(default=None, repr=False)

    def keys(self) -> list[str]:
        """Returns the names of the arrays, so that `dict(report)` works."""
        return list(self.outputs)

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __bool__(self) -> bool:
        return True  # Also of a kernel without arrays.

    def __contains__(self, name: object) -> bool:
        return name in self.outputs

    def __getitem__(self, name: str) -> list[Bits]:
        if not isinstance(name, str):
            raise KeyError(f"arrays are found by name, not by {name!r}; there is {', '.join(self.outputs)}")
        if name not in self.outputs:
            hint = diagnostics.did_you_mean(name, self.outputs) or f"there is {', '.join(self.outputs)}"
            raise KeyError(f"no array '{name}'; {hint}")
        return self.outputs[name]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The trace events of each block in Perfetto's format. A run without a trace is repeated with the same
        schedule."""
        if self._events is None:
            inputs, options = self._again
            self._events = run(self.kernel, self.ranks, inputs, trace=True, **options)._events
        assert self._events is not None
        return list(self._events["traceEvents"])

    def trace(self, path: str | os.PathLike[str] = "run.json") -> Path:
        """Writes the run as a file for ui.perfetto.dev; returns its path."""
        _files.check_writable(path)
        _ = self.events
        return _files.write(path, json.dumps(self._events))

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draws the run as a timeline with one row per block. Writes it to `path`, if given."""
        from commsir._plot import timeline

        if path is not None:
            _files.check_writable(path)
        figure = timeline(self.events, self._title())
        if path is not None:
            with _files.written(path) as made:
                figure.savefig(made)
        return figure

    def _title(self) -> str:
        blocks, launches = self.stats.get("blocks", 1), self.stats.get("launches", 1)
        text = f"{self.kernel.__name__}: {self.ranks} rank{'s' * (self.ranks != 1)}"
        text += f", {blocks} block{'s' * (blocks != 1)} each"
        return text + (f", {launches} launches" if launches != 1 else "")

    def _facts(self) -> list[tuple[str, str]]:
        s = self.stats
        facts = [
            ("compiled in", f"{s.get('compile_milliseconds', 0):.1f} ms"),
            ("ran in", f"{s.get('microseconds', 0):.1f} µs"),
        ]
        if "steps" in s:
            facts.append(("steps", f"{s['steps']:,}"))
        if s.get("bytes_moved"):
            facts.append(("moved", _size(s["bytes_moved"])))
        if "fuzz" in s:
            facts.append(("schedules", f"{s['fuzz']['schedules']}, all with the same bits"))
        proof = s.get("proof", {})
        followed, launches = proof.get("launches", 0), s.get("launches", 1)
        if proof.get("verdict") == "not decided":
            facts.append(("not decided", "; ".join(map(python_terms.in_python, proof["reasons"]))))
        elif 0 < followed < launches:
            facts.append(("proven", f"{followed} of {launches} launches"))
        for choice in s.get("choices", ()):
            facts.append((choice["op"], f"{choice['algorithm']} over {choice['protocol']}"))
        facts += [("warning", warning) for warning in s.get("warnings", ())]
        return facts

    def __repr__(self) -> str:
        lines = [self._title(), "  " + ", ".join(f"{k} {v}" for k, v in self._facts())]
        for name, parts in self.outputs.items():
            lines.append(f"  {name}: {self._type(name)}, rank 0: {_preview(parts[0])}")
        return errors.printable("\n".join(lines))

    def _type(self, name: str) -> str:
        return self.kernel.parameters[name].describe(self.outputs[name][0].shape)

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr><td>{html.escape(k)}</td><td>{html.escape(v)}</td></tr>" for k, v in self._facts())
        head = (
            "<tr><th>array</th><th>type</th>"
            + "".join(f"<th>rank {r}</th>" for r in range(min(self.ranks, 4)))
            + "</tr>"
        )
        rows = ""
        for name, parts in self.outputs.items():
            cells = "".join(f"<td>{html.escape(_preview(p))}</td>" for p in parts[:4])
            rows += f"<tr><td>{html.escape(name)}</td><td>{self._type(name)}</td>{cells}</tr>"
        return f"<b>{html.escape(self._title())}</b><table>{facts}</table><table>{head}{rows}</table>"


def _preview(array: Bits) -> str:
    flat = array.reshape(-1)
    shown = ", ".join(f"{v:.4g}" if flat.dtype.kind == "f" else str(v) for v in flat[:3])
    return f"[{shown}{', …' if flat.size > 3 else ''}]"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
