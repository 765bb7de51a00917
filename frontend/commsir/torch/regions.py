"""Arithmetic of an FX graph as a region of a collective, `consume` or `produce`.

A value of a region is a tile: one row of `columns` elements, or one element a row; of what is cut out of rows, or
joined of several, another number of elements a row. What works element by element
takes a tensor of any shape that has the collective's elements, in their order. A statistic of the rows goes with whole
rows only where the tensors' last dimensions are 1 and `columns`: torch aligns shapes at their ends, so that a mean
without keepdim goes along the columns.
Everything is computed in f32, as Inductor does; a cast rounds where the program has one, and results are rounded where
they are stored. Masks are tiles of i1.

The region itself is in region_builder.py, and what is known of nodes in region_nodes.py.
"""

from __future__ import annotations

# Importing these modules enters their rules.
from commsir.torch import elementwise_rules, order_rules, part_rules, reduction_rules  # noqa: F401
from commsir.torch.region_builder import Argument, Region, Tile
from commsir.torch.region_nodes import (
    CASTS,
    Unsupported,
    cut_dim,
    cut_sizes,
    cuts_last_dim,
    is_arithmetic,
    is_elementwise,
    is_part,
    is_row_statistic,
    moves_nothing,
    parts_alone,
    reduced_dims,
    row_sizes,
    same_sizes,
    slice_of,
    strided_alone,
)

__all__ = [
    "CASTS",
    "Argument",
    "Region",
    "Tile",
    "Unsupported",
    "cut_dim",
    "cut_sizes",
    "cuts_last_dim",
    "is_arithmetic",
    "is_elementwise",
    "is_part",
    "is_row_statistic",
    "moves_nothing",
    "parts_alone",
    "reduced_dims",
    "row_sizes",
    "same_sizes",
    "slice_of",
    "strided_alone",
]
