"""Texts of regions in one line.

Inductor writes the nodes of a graph, with their arguments, into comments of one line in the code that it generates. A
line break in an argument ends the comment, and the rest is read as code.
"""

from __future__ import annotations

import re

import torch
from torch.fx import Graph, Node

__all__ = ["in_one_line", "join_lines"]

#: A string, which may hold two slashes, or a comment.
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*')


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator, unused-ignore]
def in_one_line(text: str) -> str:
    """The MLIR text without comments and line breaks."""
    if "\n" not in text:
        return text
    bare = _STRING_OR_COMMENT.sub(lambda found: found.group(1) or "", text)
    return " ".join(line for line in map(str.strip, bare.splitlines()) if line)


def join_lines(graph: Graph) -> None:
    """Puts the texts that the graph hands to ops of this library in one line each."""
    for node in graph.nodes:
        # An op that keeps its order among others is an argument of the node that hands on its token.
        if any(getattr(one, "namespace", "") == "commsir" for one in (node.target, *node.args[:2])):
            _join_lines_of(node)


def _join_lines_of(node: Node) -> None:
    node.args = tuple(in_one_line(one) if isinstance(one, str) else one for one in node.args)
    node.kwargs = {name: in_one_line(one) if isinstance(one, str) else one for name, one in node.kwargs.items()}
