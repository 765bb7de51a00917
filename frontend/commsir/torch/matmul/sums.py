"""Sums of all ranks' products: of what the others have sent, and of this rank's own product.

Either a kernel adds up what has come, and the vendor's matmul adds the product to it; or a kernel multiplies and adds
what has come to its sums before it rounds them. The model says which is faster.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from commsir.torch import capi
from commsir.torch.matmul import model
from commsir.torch.matmul.factor import Factor

__all__ = ["Sums"]

_DIST: Any = dist
#: The kernel that adds up what ranks have sent: as many blocks as an H100 runs at once, nearly.
_BLOCKS, _THREADS = 128, 512
#: Bytes that arrays of kernels on GPUs are aligned to.
_ALIGNMENT = 256
_ADD = """
comms.kernel @add_parts(%x: memref<{parts}x{rows}x{n}x{element}>, %total: memref<{rows}x{n}x{element}>)
    attributes {{ranks = 1}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = arith.constant {rows} : index
  %parts = arith.constant {parts} : index
  %n = arith.constant {n} : index
  %size = arith.constant {size} : index
  %block = comms.block_id
  %blocks = comms.num_blocks
  scf.for %row = %block to %rows step %blocks {{
    %place = arith.muli %row, %n : index
    %first = comms.tile_load %x[%place] : memref<{parts}x{rows}x{n}x{element}> -> tensor<{n}x{element}>
    %wide = arith.extf %first : tensor<{n}x{element}> to tensor<{n}xf32>
    %sum = scf.for %part = %one to %parts step %one iter_args(%so_far = %wide) -> (tensor<{n}xf32>) {{
      %start = arith.muli %part, %size : index
      %from = arith.addi %start, %place : index
      %next = comms.tile_load %x[%from] : memref<{parts}x{rows}x{n}x{element}> -> tensor<{n}x{element}>
      %more = arith.extf %next : tensor<{n}x{element}> to tensor<{n}xf32>
      %added = arith.addf %so_far, %more : tensor<{n}xf32>
      scf.yield %added : tensor<{n}xf32>
    }}
    %rounded = arith.truncf %sum : tensor<{n}xf32> to tensor<{n}x{element}>
    comms.tile_store %rounded, %total[%place] : tensor<{n}x{element}>, memref<{rows}x{n}x{element}>
  }}
  comms.return
}}
"""
#: Tiles of a column of tiles are made at once, as far as there are blocks: they share columns of the weight.
_MULTIPLY = """
comms.kernel @multiply_and_add(%a: memref<{rows}x{k}x{element}>, %b: memref<{weight}x{element}>,
                               %x: memref<{parts}x{rows}x{n}x{element}>, %total: memref<{rows}x{n}x{element}>)
    attributes {{ranks = 1}} {{
  %zero = arith.constant 0 : index
  %height = arith.constant {height} : index
  %width = arith.constant {width} : index
  %k = arith.constant {k} : index
  %down = arith.constant {down} : index
  %tiles = arith.constant {tiles} : index
  %block = comms.block_id
  %blocks = comms.num_blocks
{firsts}
  scf.for %tile = %block to %tiles step %blocks {{
    %i = arith.remui %tile, %down : index
    %j = arith.divui %tile, %down : index
    %row = arith.muli %i, %height : index
    %column = arith.muli %j, %width : index
{places}
    comms.contract %a[%row, %zero], %b[{place}] to %total[%row, %column] tile [{height}, {width}] depth %k
      plus {addends} {turned}
      : memref<{rows}x{k}x{element}>, memref<{weight}x{element}>, memref<{rows}x{n}x{element}> plus {types}
  }}
  comms.return
}}
"""


def _product_text(parts: int, rows: int, n: int, k: int, element: str, turned: bool) -> str:
    """`turned`: the weight is [n, k] in memory."""
    height, width = model.OWN_TILE
    each = range(parts)
    return _MULTIPLY.format(
        **{"rows": rows, "n": n, "k": k, "height": height, "width": width},
        parts=parts,
        element=element,
        weight=f"{n}x{k}" if turned else f"{k}x{n}",
        place="%column, %zero" if turned else "%zero, %column",
        turned="{transpose_rhs}" if turned else "",
        down=rows // height,
        tiles=rows // height * (n // width),
        firsts="\n".join(f"  %first{part} = arith.constant {part * rows} : index" for part in each),
        places="\n".join(f"    %row{part} = arith.addi %row, %first{part} : index" for part in each),
        addends=", ".join(f"%x[%row{part}, %column]" for part in each),
        types=", ".join(f"memref<{parts}x{rows}x{n}x{element}>" for _ in each),
    )


class Sums:
    """The kernels of one rank. Ranks need not agree on them: none waits for another."""

    def __init__(self, name: str, device: torch.device) -> None:
        self._device = device
        self._alignment = _ALIGNMENT if device.type == "cuda" else 1
        number = device.index if device.type == "cuda" else -1
        alone: dict[str, Any] = {"name": f"{name}, sums", "timeout": timedelta(minutes=5), "device": number}
        self._group = capi.Group(_DIST.HashStore(), 0, 1, **alone)
        self._kernels = dict[tuple[Any, ...], Callable[..., Any]]()

    def total(self, factor: Factor, parts: torch.Tensor, rows: torch.Tensor, start: int, out: torch.Tensor) -> None:
        """Fills `out`, [count, n], with the sum of `parts`, [ranks - 1, count, n], and the product of `rows`,
        [count, k], of which the first is row `start` of all."""
        if self._multiplies(factor, parts, rows, out):
            turned = not factor.weight.is_contiguous()
            product = self._product(parts, rows, turned)
            product(rows, factor.weight.t() if turned else factor.weight, parts, out)
            return
        others = parts[0]
        if parts.shape[0] > 1:
            self._adder(parts)(parts, out)
            others = out
        factor.add(others, rows, start, out)

    def _multiplies(self, factor: Factor, parts: torch.Tensor, rows: torch.Tensor, out: torch.Tensor) -> bool:
        """Whether a kernel multiplies and adds."""
        weight = factor.weight
        if weight.dim() > 2 or factor.row_scale is not None or not weight.dtype == rows.dtype == parts.dtype:
            return False
        if not (weight.is_contiguous() or weight.t().is_contiguous()) or not self._aligned(weight, parts, rows, out):
            return False
        others, count, n = parts.shape
        return model.adds_in_product(others + 1, count, n, rows.shape[1], rows.dtype, self._device)

    def _aligned(self, *tensors: torch.Tensor) -> bool:
        return all(one.data_ptr() % self._alignment == 0 for one in tensors)

    def _product(self, parts: torch.Tensor, rows: torch.Tensor, turned: bool) -> Callable[..., Any]:
        key = ("multiply", tuple(parts.shape), rows.shape[1], parts.dtype, turned)
        if key not in self._kernels:
            others, count, n = parts.shape
            text = _product_text(others, count, n, rows.shape[1], capi.element_type(parts.dtype), turned)
            self._kernels[key] = self._group.kernel(text, blocks=self._blocks(), threads=256)
        return self._kernels[key]

    def _blocks(self) -> int:
        """One for each multiprocessor."""
        if self._device.type != "cuda":
            return 4
        return int(torch.cuda.get_device_properties(self._device).multi_processor_count)

    def _adder(self, parts: torch.Tensor) -> Callable[[torch.Tensor, torch.Tensor], Any]:
        """What fills [rows, n] with the sum of such parts, taken in float32."""
        key = ("add", tuple(parts.shape), parts.dtype)
        if key not in self._kernels:
            count, rows, n = parts.shape
            if parts.itemsize != 2 or rows * n * parts.itemsize % self._alignment:
                return lambda some, out: torch.sum(some, 0, out=out)
            element = capi.element_type(parts.dtype)
            text = _ADD.format(parts=count, rows=rows, n=n, size=rows * n, element=element)
            self._kernels[key] = self._group.kernel(text, blocks=min(rows, _BLOCKS), threads=_THREADS)
        return self._kernels[key]
