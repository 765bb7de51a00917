"""Evaluates a region's text with torch operations, one after the other.

A compiled graph holds its regions as text alone. Where no kernel can be made of one, because of a defect, this computes
the same values. It knows the operations that regions hold.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["UnknownOperation", "evaluate", "type_of"]

_HEAD = re.compile(r"%(\w+): tensor<(\d+)x(\w+)>")
#: Between two operations, in one line or not.
_BETWEEN = re.compile(r"\s+(?=%\w+ = |comms\.yield\s)")
_OPERATION = re.compile(r"%(\w+) = ([\w.]+)\s?(.*)")
_TYPE = re.compile(r"tensor<(\d+)x(\w+)>")
_NAME = re.compile(r"%(\w+)")
_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}
#: The largest number of e4m3fn, to which `arith.truncf` saturates.
_LARGEST_E4M3FN = 448.0

_Values = list[torch.Tensor]


def type_of(kind: str) -> torch.dtype:
    """The type of a tile's elements, as MLIR writes it."""
    return _DTYPES[kind]


class UnknownOperation(Exception):
    """A region has an operation that is not evaluated here."""


def _truncated(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if dtype is torch.float8_e4m3fn:
        value = value.clamp(-_LARGEST_E4M3FN, _LARGEST_E4M3FN)
    return value.to(dtype)


#: Element by element, by name.
_BY_NAME: dict[str, Callable[..., torch.Tensor]] = {
    "arith.addf": torch.add,
    "arith.subf": torch.sub,
    "arith.mulf": torch.mul,
    "arith.divf": torch.div,
    "arith.maximumf": torch.maximum,
    "arith.minimumf": torch.minimum,
    "arith.negf": torch.neg,
    "arith.andi": torch.logical_and,
    "arith.ori": torch.logical_or,
    "arith.xori": torch.logical_xor,
    "arith.select": torch.where,
    "math.absf": torch.abs,
    "math.fma": lambda a, b, c: torch.addcmul(c, a, b),
    "math.powf": torch.pow,
    "math.roundeven": torch.round,
}
#: Each rounds, or converts, to the type behind "to".
_CASTS = (
    "arith.extf",
    "arith.truncf",
    "arith.extui",
    "arith.extsi",
    "arith.trunci",
    "arith.uitofp",
    "arith.sitofp",
    "arith.fptosi",
)
_COMPARISONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "ogt": torch.gt,
    "oge": torch.ge,
    "olt": torch.lt,
    "ole": torch.le,
    "oeq": torch.eq,
    "une": torch.ne,
    "ne": torch.ne,
    "eq": torch.eq,
    "sgt": torch.gt,
    "sge": torch.ge,
    "slt": torch.lt,
    "sle": torch.le,
    "uno": lambda a, b: a.isnan() | b.isnan(),
}
_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda row: row.sum(-1, keepdim=True),
    "max": lambda row: row.amax(-1, keepdim=True),
    "min": lambda row: row.amin(-1, keepdim=True),
}


def _constant(text: str, width: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    number = re.findall(r"dense<(.*)>", text.partition(" : ")[0])[0]
    if number.startswith("0x"):
        value: Any = struct.unpack(">f", bytes.fromhex(number[2:]))[0]
    else:
        whole = not (dtype.is_floating_point or dtype is torch.bool)
        value = number == "true" if number in ("true", "false") else (int if whole else float)(number)
    return torch.full((1, width), value, dtype=dtype, device=device)


def _element_wise(op: str, text: str, given: _Values) -> torch.Tensor | None:
    if op in _BY_NAME:
        return _BY_NAME[op](*given)
    if op in ("arith.cmpf", "arith.cmpi"):
        return _COMPARISONS[text.split(",")[0]](*given)
    function = getattr(torch, op.removeprefix("math."), None) if op.startswith("math.") else None
    return function(*given) if function is not None else None


def _made(op: str, text: str, given: _Values, width: int, dtype: torch.dtype) -> torch.Tensor:
    """The result of one operation, of that many elements a row."""
    if op in _CASTS:
        return _truncated(given[0], dtype) if op == "arith.truncf" else given[0].to(dtype)
    if op == "comms.broadcast_row":
        return given[0].expand(-1, width)
    if op == "comms.row_reduce":
        return _REDUCTIONS[text.split()[0]](given[0])
    if op == "tensor.extract_slice":
        begin = int(re.findall(r"\[(\d+)\]", text)[0])
        return given[0][:, begin : begin + width]
    if op == "tensor.concat":
        rows = max(len(one) for one in given)
        return torch.cat([one.expand(rows, -1) for one in given], -1)
    made = _element_wise(op, text, given)
    if made is None:
        raise UnknownOperation(f"{op} is not evaluated by torch")
    return made


def evaluate(region: str, rows: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns what the region yields, one tensor [rows, width] for each tile.

    `region`: its text, "(%w0: tensor<64xf32>, ...) { ... comms.yield ... }". `rows`: its arguments, in order; those of
    one dimension are one row for all rows, others have a row of the argument's width for each. Raises UnknownOperation.
    """
    head, _, body = region.partition("{")
    values: dict[str, torch.Tensor] = {}
    count = 1
    for (name, width, kind), given in zip(_HEAD.findall(head), rows, strict=False):
        # Masks are stored as int8, and float64 is read as what the region says.
        values[name] = given.reshape(-1, int(width)).to(_DTYPES[kind])
        count = max(count, len(values[name]))
    device = rows[0].device
    *operations, last = _BETWEEN.split(body)
    for operation in operations:
        if found := _OPERATION.match(operation):
            name, op, text = found.groups()
            width, kind = _TYPE.findall(text)[-1]
            dtype = _DTYPES[kind] if op not in ("arith.cmpf", "arith.cmpi") else torch.bool
            if op == "arith.constant":
                values[name] = _constant(text, int(width), dtype, device)
            elif op == "comms.iota":
                values[name] = torch.arange(int(width), dtype=dtype, device=device)[None]
            else:
                given_values = [values[one] for one in _NAME.findall(text)]
                values[name] = _made(op, text, given_values, int(width), dtype)
    return [values[name].expand(count, -1).contiguous() for name in _NAME.findall(last)]
