"""Runs collectives outside a kernel, on one array per rank: builds a kernel around the call and simulates it."""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from commsir import _native, _simulate, errors
from commsir._arrays import element_type
from commsir._kernel import Kernel
from commsir.language import collectives as f
from commsir.language.compiler.registry import FUNCTIONS
from commsir.language.compiler.values import Const, Seq, Value
from commsir.language.dtypes import BOOL, BY_NAME, DType, as_dtype, narrow
from commsir.language.lowering import Compiler, Head
from commsir.language.parameters import Parameter
from commsir.language.source import Place


@functools.cache
def _movements() -> dict[str, str]:
    """Returns, for each collective, how input rows map to output rows, from the library's table."""
    return {row["name"]: row["movement"] for row in json.loads(str(_native.call("collectives")))}


def collective(name: str, arguments: dict[str, Any]) -> Any:
    """Runs one collective over arrays. Returns a list with each rank's result, or a list of such lists for several
    outputs.
    """
    inputs = _inputs(name, arguments)
    _check_signedness(name, arguments, inputs)
    arrays = _arrays(name, arguments, inputs)
    parameters = {key: _parameter(name, kind, parts, len(inputs[0])) for key, (kind, parts) in arrays.items()}
    outs = _outputs(name, arguments, parameters, len(inputs[0]), len(inputs))
    made = _Collective(name, arguments, parameters | outs, list(outs))
    given = {key: parts for key, (_, parts) in arrays.items()}
    report = _simulate.run(
        made, len(inputs[0]), given, seed=None, fuzz=0, blocks=None, launches=1, trace=None, target="cpu"
    )
    likes = _output_templates(arguments.get("outs"), [parts[0] for parts in inputs])
    results = [
        [_convert_like(part, outs[key].dtype, like) for part in report.outputs[key]]
        for key, like in zip(outs, likes, strict=False)
    ]
    return results[0] if len(results) == 1 else [list(parts) for parts in zip(*results, strict=True)]


def _inputs(name: str, arguments: dict[str, Any]) -> list[list[Any]]:
    """Returns the inputs of the exchange: for each input, one array per rank."""
    x = arguments["x"]
    if not _is_per_rank(x):
        raise errors.UsageError(
            f"commsir.{name} outside a kernel takes a list of one array a rank: commsir.{name}([x0, x1, …]); "
            "among processes use torch.distributed with the backend 'commsir', in a kernel pass a window"
        )
    if isinstance(arguments.get("team"), str | int | float):
        raise errors.UsageError(
            f"the team of commsir.{name} is {arguments['team']!r}; outside a kernel it is left out: the world"
        )
    return [_uniform_arrays(name, list(a)) for a in (x if _is_per_rank(x[0]) else [x])]


def _check_signedness(name: str, arguments: dict[str, Any], inputs: list[list[Any]]) -> None:
    """Rejects unsigned integers where a tile function would see them.

    A collective can move and sum unsigned integers as their bits; a tile function would read them as signed numbers.
    """
    kinds = [getattr(one[0], "dtype", None) for one in inputs]
    unsigned = [kind for kind in kinds if isinstance(kind, np.dtype) and kind.kind == "u"]
    if unsigned and (arguments.get("consume") or arguments.get("produce")):
        raise errors.UsageError(
            f"commsir.{name}: consume and produce work on integers with a sign, but the arrays are of {unsigned[0]}: "
            "convert them to a wider type that has one, such as int32"
        )
    outs = arguments.get("outs")
    for item in outs if isinstance(outs, tuple | list) else (outs,):
        kind = getattr(item, "dtype", None)
        if not unsigned and isinstance(kind, np.dtype) and kind.kind == "u":
            raise errors.UsageError(
                f"commsir.{name}: kernels write integers with a sign, but outs are of {kind}: "
                "give a wider type that has one, such as int32"
            )


def _arrays(name: str, arguments: dict[str, Any], inputs: list[list[Any]]) -> dict[str, tuple[str, list[Any]]]:
    """Returns the kernel's arrays by parameter: the annotation, and one array per rank."""
    arrays: dict[str, tuple[str, list[Any]]] = {f"x{i}": ("window", a) for i, a in enumerate(inputs)}
    args = arguments.get("args")
    args = () if args is None else args
    for i, a in enumerate(args if isinstance(args, tuple | list) and not hasattr(args, "dtype") else (args,)):
        if isinstance(a, int | float) or hasattr(a, "dtype") and not np.shape(a):
            raise errors.UsageError(
                f"commsir.{name}: args are arrays, one or a tuple of them, but {a!r} is a number; "
                "write it in the function, or pass numpy.array([…], numpy.float32)"
            )
        arrays[f"a{i}"] = ("array", list(a) if _is_per_rank(a) else [a] * len(inputs[0]))
    for key in ("send_rows", "recv_rows"):
        if key in arguments:
            given = arguments[key]
            numbers = [np.asarray(part) for part in given] if hasattr(given, "__iter__") else [np.asarray(given)]
            if any(part.dtype.kind not in "iu" or part.ndim != 1 for part in numbers):
                raise errors.UsageError(f"commsir.{name}: {key} are whole numbers: one for each rank, on each rank")
            arrays[key] = ("array", [part.astype(np.int32) for part in numbers])
    return arrays


def _parameter(name: str, kind: str, parts: list[Any], ranks: int) -> Parameter:
    if len(parts) != ranks:
        raise errors.UsageError(f"commsir.{name}: {len(parts)} arrays for {ranks} ranks; give one a rank")
    dtype = _known_type(element_type(parts[0]) if hasattr(parts[0], "dtype") else "f32")
    return Parameter(kind, dtype, tuple(int(d) for d in np.shape(parts[0])) or (1,))


def _output_templates(outs: Any, inputs: list[Any]) -> list[Any]:
    """Returns for each output an array that determines its library and type, or None for NumPy."""
    if outs is None:
        return inputs
    items = outs if isinstance(outs, tuple | list) else (outs,)
    return [
        item if hasattr(item, "dtype") and hasattr(item, "shape") and not isinstance(item, type) else None
        for item in items
    ]


def _convert_like(values: np.ndarray[Any, Any], dtype: DType, like: Any) -> Any:
    """Converts a result to an array of the library and type of `like`, if that library has bf16 and f8."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        bits = np.array(narrow(values, dtype), order="C")
        # Of integers without a sign, torch takes bytes alone everywhere.
        bits = bits.view(f"i{bits.itemsize}") if bits.dtype.kind == "u" else bits
        return torch.from_numpy(bits).view(like.dtype).to(like.device)
    if dtype.value_dtype != dtype.numpy and isinstance(getattr(like, "dtype", None), np.dtype):
        return narrow(values, dtype).view(like.dtype)
    kind = getattr(like, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind == "u" and values.dtype == f"i{kind.itemsize}":
        return values.view(kind.newbyteorder("="))  # Kernels know no integers without a sign.
    return values


def _is_per_rank(x: Any) -> bool:
    """Whether `x` is a list with one entry per rank: arrays, or lists of numbers."""
    return isinstance(x, Sequence) and not isinstance(x, str) and len(x) > 0 and not isinstance(x[0], int | float | str)


def _uniform_arrays(name: str, parts: list[Any]) -> list[Any]:
    """Checks that the ranks' arrays have one type and at least one dimension, and returns them."""
    parts = [
        p if hasattr(p, "dtype") else np.from_dlpack(p) if hasattr(p, "__dlpack__") else np.asarray(p, np.float32)
        for p in parts
    ]
    types = [element_type(p) for p in parts]
    for rank, (part, type_) in enumerate(zip(parts, types, strict=True)):
        if type_ != types[0]:
            raise errors.UsageError(
                f"commsir.{name}: {types[0]} on rank 0 and {type_} on rank {rank}; ranks have one type"
            )
        if not part.shape:
            raise errors.UsageError(f"commsir.{name}: rank {rank} has a number, not an array; reshape it: x.reshape(1)")
    return parts


def _known_type(name: str) -> DType:
    if name not in BY_NAME or BY_NAME[name] is BOOL:
        kind, instead = ("booleans", "int8") if name == "i1" else (name, "another type")
        raise errors.UsageError(f"arrays of {kind} are not known to kernels; convert them to {instead}")
    return BY_NAME[name]


def _outputs(
    name: str, arguments: dict[str, Any], parameters: dict[str, Parameter], ranks: int, inputs: int
) -> dict[str, Parameter]:
    """Allocates each rank's outputs.

    `outs` may give types and shapes as `f32`, `"bf16"` or arrays. Outputs have the input's type and shape by default.
    """
    first = parameters["x0"]
    shape = [d for d in first.shape if isinstance(d, int)]
    movement = _movements()[name]
    if movement == "Cut" and shape[0] % ranks:
        raise errors.UsageError(f"commsir.{name}: {shape[0]} rows cannot be shared out to {ranks} ranks")
    shape[0] = {"Join": shape[0] * ranks, "Cut": shape[0] // ranks}.get(movement, shape[0])
    wanted = arguments.get("outs")
    if wanted is None:
        count = 1 if arguments.get("consume") or arguments.get("produce") else inputs
        like = [parameters[f"x{i}"].dtype for i in range(count)]
        return {f"y{i}": Parameter("array", d, tuple(shape)) for i, d in enumerate(like)}
    items = wanted if isinstance(wanted, tuple | list) else (wanted,)
    result = {}
    for i, item in enumerate(items):
        result[f"y{i}"] = _output(name, item, tuple(shape))
    return result


def _output(name: str, item: Any, shape: tuple[Any, ...]) -> Parameter:
    dtype = as_dtype(item)
    if dtype is not None:
        return Parameter("array", dtype, shape)
    if hasattr(item, "dtype") and hasattr(item, "shape") and not isinstance(item, type):
        return Parameter("array", _known_type(element_type(item)), tuple(int(d) for d in item.shape))
    raise errors.UsageError(
        f"outs of commsir.{name} outside a kernel are types (f32, bf16) or arrays of the shape wanted, not {item!r}"
    )


class _Collective(Kernel):
    """A kernel that consists of one collective. The tile function is the caller's."""

    def __init__(self, name: str, arguments: dict[str, Any], parameters: dict[str, Parameter], outs: list[str]) -> None:
        super().__init__(_no_function, {})
        self.__name__ = name
        self._parameters = parameters
        self._arguments = arguments
        self._outs = outs
        self._place = _caller()

    @property
    def file(self) -> str:
        return self._place[0]

    @property
    def _start(self) -> Place:
        return self._place

    def text(self, locations: bool = True) -> str:
        compiler = Compiler(self.attributes.get("ranks"))
        compiler.begin(Head(self.__name__, self.parameters, self.attributes), self._place)
        self._build(compiler)
        return compiler.end(locations)

    def _build(self, compiler: Compiler) -> None:
        """Calls the collective's handler with this kernel's arrays."""
        values, name = compiler.arguments, self.__name__
        bound: dict[str, Value] = {}
        for key in inspect.signature(getattr(f, name)).parameters:
            bound[key] = values[key] if key in values else Const(self._arguments.get(key))
        bound["team"] = Const(None)
        bound["x"] = Seq(tuple(v for key, v in values.items() if key.startswith("x")))
        bound["outs"] = Seq(tuple(values[key] for key in self._outs))
        if "args" in bound:
            bound["args"] = Seq(tuple(v for key, v in values.items() if key.startswith("a")))
        FUNCTIONS[getattr(f, name)][1](compiler, **bound)


def _no_function() -> None:
    """Stands in for the Python function that other kernels have."""


def _caller() -> Place:
    """Returns the source line outside this package that made the call."""
    package = os.path.dirname(__file__) + os.sep
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno, 1) if frame else ("", 0, 0)
