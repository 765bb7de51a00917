"""torch.compile: a collective and the arithmetic around it become one kernel.

    torch.compile(model, options=commsir.torch.compile_options())

An Inductor pass looks for collectives of torch.distributed (functional ones, which compiled code has), takes the
arithmetic that follows as far as a region can hold it, residual additions and norms among it, and what is done before
to what is sent, such as casts, and puts
`torch.ops.commsir.fused_collective` in their place. `report()` says what was fused, what was not, and why.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

import torch
from torch._inductor.pattern_matcher import stable_topological_sort
from torch.fx import Graph, Node

from commsir import _native
from commsir.errors import UsageError
from commsir.torch import defects, foreign_collectives, gather_layouts, lowerings, reporting
from commsir.torch.collectives import collectives_of
from commsir.torch.fusion import fuse_collectives, skip_all
from commsir.torch.fusion_timing import measure
from commsir.torch.region_lines import join_lines
from commsir.torch.reporting import Fusion, Report, clear_fusions, fusions, report

__all__ = [
    "CollectivePass",
    "Fusion",
    "Report",
    "clear_fusions",
    "compile_options",
    "disable",
    "enable",
    "fusions",
    "measure",
    "report",
]

_Pass = torch._inductor.custom_graph_pass.CustomGraphPass


@functools.cache
def _sources() -> str:
    """Digests everything that determines the pass's results, apart from torch: this package and the library."""
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.rglob("*.py")))
    return hashlib.sha256(f"{texts}{_native.version()}".encode()).hexdigest()


def _is_of_a_library(node: Node) -> bool:
    """Whether it may be a collective: it is none of torch's own arithmetic."""
    return getattr(node.target, "namespace", "aten") not in ("aten", "prims")


class CollectivePass(_Pass):
    """The pass, for `torch._inductor.config.post_grad_custom_post_pass`; calls the one that was there first."""

    def __init__(self, before: Any = None, join_sums: bool = True, prefetch_weights: bool = False) -> None:
        self.before = before
        self.join_sums = join_sums
        self.prefetch_weights = prefetch_weights
        #: Whether Inductor knows the op that the pass inserts.
        self._is_ready = defects.run_guarded("preparing Inductor", lowerings.lower, "Nothing is fused")
        defects.run_guarded("preparing Dynamo", gather_layouts.let_trace, "It may trace less")

    def __call__(self, graph: Graph) -> None:
        if self.before is not None:
            self.before(graph)
        if not self._is_ready or not any(map(_is_of_a_library, graph.nodes)):
            return
        # Passes before this one, such as torch's for DDP, may leave nodes before what they read.
        stable_topological_sort(graph)
        noted = len(reporting.fusions())
        settings = f"None, {self.join_sums}, {self.prefetch_weights}"
        if said := defects.run_contained(graph, lambda: self.change(graph), settings):
            reporting.drop(noted)
            defects.run_contained(graph, lambda: skip_all(graph, said))

    def change(self, graph: Graph) -> None:
        """Fuses what it can in the graph."""
        if next(collectives_of(graph), None) is not None or foreign_collectives.is_any_in(graph):
            written = foreign_collectives.write(graph)
            fuse_collectives(graph, self.join_sums, self.prefetch_weights)
            foreign_collectives.restore(written)
        join_lines(graph)

    def uuid(self) -> Any:
        """For Inductor's cache: changes when what the pass does changes. None: nothing says when; nothing is cached."""
        found = list[Any]()
        defects.run_guarded("naming what it does", lambda: found.append(self._key()), "Graphs are not cached")
        return found[0] if found else None

    def _key(self) -> Any:
        if type(self) is not CollectivePass and type(self).uuid is CollectivePass.uuid:
            return None
        inner = self.before.uuid() if isinstance(self.before, _Pass) else None
        if self.before is not None and not inner:
            return None
        registered = foreign_collectives.uuid()
        if registered is None:
            return None
        settings = (self.join_sums, self.prefetch_weights)
        return (_sources(), lowerings.groups_with_symmetric_memory(), registered, settings, inner)


#: Passes that torch calls with more than the graph; () where it has no such kind, or takes one pass alone.
_AWARE: Any = getattr(torch._inductor.custom_graph_pass, "CustomInferenceAwareGraphPass", ())
if not hasattr(torch._inductor.custom_graph_pass, "get_custom_graph_passes"):
    _AWARE = ()


def _appended(before: Any, **settings: bool) -> Any:
    """Returns the existing pass, or passes in a newer torch, followed by this one."""
    for name, value in settings.items():
        if not isinstance(value, bool):
            raise UsageError(f"{name}={value!r}: give True or False")
    if isinstance(before, (list, tuple)):
        return [*before, CollectivePass(None, **settings)]
    if isinstance(before, _AWARE):
        return [before, CollectivePass(None, **settings)]
    return CollectivePass(before, **settings)


def compile_options(*, join_sums: bool = True, prefetch_weights: bool = False, **options: Any) -> dict[str, Any]:
    """Options for torch.compile with the pass among them; `options` are Inductor's other ones.

    `join_sums`: a sum of all_reduces, or of reduce_scatters, becomes one of the sum of their inputs, which rounds in
    another order. All ranks give the same.
    `prefetch_weights`: on GPUs with bulk copies (sm_90 and newer) a kernel brings the weights of the matmuls that read
    its results, up to 32 MiB, into the L2 cache while ranks wait for each other. Results are the same.
    """
    before = options.pop("post_grad_custom_post_pass", None)
    made = _appended(before, join_sums=join_sums, prefetch_weights=prefetch_weights)
    return {**options, "post_grad_custom_post_pass": made}


def enable(*, join_sums: bool = True, prefetch_weights: bool = False) -> None:
    """Adds the pass to every torch.compile of this process from now on; both settings as in `compile_options`."""
    config: Any = torch._inductor.config
    there = config.post_grad_custom_post_pass
    if not any(isinstance(one, CollectivePass) for one in (there if isinstance(there, (list, tuple)) else [there])):
        made = _appended(there, join_sums=join_sums, prefetch_weights=prefetch_weights)
        config.post_grad_custom_post_pass = made


def disable() -> None:
    """Undoes `enable`."""
    config: Any = torch._inductor.config
    there = config.post_grad_custom_post_pass
    if isinstance(there, CollectivePass):
        config.post_grad_custom_post_pass = there.before
    elif isinstance(there, (list, tuple)):
        config.post_grad_custom_post_pass = [one for one in there if not isinstance(one, CollectivePass)]
