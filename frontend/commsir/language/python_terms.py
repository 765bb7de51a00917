"""Translates the library's messages about a kernel to the words of its Python source.

The library names operations and types of the dialect. `CONSTRUCTS` is the one table of what stands for them in Python.
"""

from __future__ import annotations

import re

from .dtypes import BY_NAME

#: What a kernel in Python has in place of an operation. An operation that is not listed has the name of its function.
CONSTRUCTS: dict[str, str] = {
    "comms.kernel": "kernel",
    "comms.return": "the end of the kernel",
    "comms.yield": "return",
    "comms.role": "with role(…)",
    "comms.for_peers": "for_peers()",
    "comms.team": "team(…)",
    "comms.team_split": "team_split(…)",
    "comms.rank": "rank()",
    "comms.size": "size()",
    "comms.block_id": "block_id()",
    "comms.num_blocks": "num_blocks()",
    "comms.epoch": "epoch()",
    "comms.extent": "the number of elements of a launch",
    "comms.local": "w.local()",
    "comms.peer": "w.peer(p)",
    "comms.multimem": "w.multimem()",
    "comms.scratch": "scratch(…)",
    "comms.tile_load": "a read such as x[i:i + 64]",
    "comms.tile_store": "a store such as x[i:i + 64] = tile",
    "comms.row_reduce": "tile.sum(), .max(), …",
    "comms.splat": "full(n, value)",
    "comms.broadcast_row": "broadcast_row(tile, n)",
    "comms.iota": "iota(n)",
    "comms.contract": "a product such as y[i:i + 64] = a @ b",
    "comms.math": "a function such as exp",
    "comms.check_bounds": "assert 0 <= i < n",
    "comms.record_access": "an access",
    "comms.record_sync": "a wait",
    "arith.addi": "+",
    "arith.addf": "+",
    "arith.subi": "-",
    "arith.subf": "-",
    "arith.muli": "*",
    "arith.mulf": "*",
    "arith.divf": "/",
    "arith.divui": "//",
    "arith.divsi": "//",
    "arith.floordivsi": "//",
    "arith.remui": "%",
    "arith.remsi": "%",
    "arith.remf": "%",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
    "arith.shli": "<<",
    "arith.shrsi": ">>",
    "arith.shrui": ">>",
    "arith.negf": "-",
    "arith.cmpi": "a comparison",
    "arith.cmpf": "a comparison",
    "arith.select": "where(condition, a, b)",
    "arith.minsi": "minimum",
    "arith.maxsi": "maximum",
    "arith.minui": "minimum",
    "arith.maxui": "maximum",
    "arith.minimumf": "minimum",
    "arith.maximumf": "maximum",
    "arith.constant": "a number",
    "arith.extf": "astype",
    "arith.truncf": "astype",
    "arith.extsi": "astype",
    "arith.extui": "astype",
    "arith.trunci": "astype",
    "arith.sitofp": "astype",
    "arith.uitofp": "astype",
    "arith.fptosi": "astype",
    "arith.fptoui": "astype",
    "arith.index_cast": "astype",
    "arith.index_castui": "astype",
    "arith.bitcast": "bitcast",
    "math.absf": "abs",
    "math.absi": "abs",
    "math.roundeven": "rint",
    "math.powf": "**",
    "math.atan2": "np.arctan2",
    "math.copysign": "np.copysign",
    "memref.load": "a read such as x[i]",
    "memref.store": "a store such as x[i] = value",
    "memref.dim": "x.shape",
    "memref.copy": "y[:] = x[:]",
    "tensor.extract": "tile[0]",
    "tensor.extract_slice": "a part of a tile such as t[8:16]",
    "tensor.concat": "concatenate((a, b))",
    "scf.for": "for",
    "scf.while": "while",
    "scf.if": "if",
    "scf.yield": "the end of a branch",
    "scf.condition": "the condition of while",
    "cf.br": "a jump",
    "cf.cond_br": "a jump",
    "cf.assert": "assert",
}

# What a diagnostic begins with says what the line that it shows does, not what a program could write.
_SUBJECTS = {
    "comms.tile_load": "this read",
    "comms.tile_store": "this store",
    "comms.contract": "this product",
    "comms.kernel": "the kernel",
} | {
    name: "this " + CONSTRUCTS[name].partition(" such")[0].removeprefix("a ")
    for name in (
        "memref.load",
        "memref.store",
        "arith.cmpi",
        "arith.cmpf",
        "arith.constant",
        "scf.for",
        "scf.while",
        "scf.if",
    )
}
# The passes, by what they do for who writes kernels.
_PASSES = {"comms-check-sync": "the checker"}

# How each interface runs a kernel without a proof.
_UNCHECKED = re.compile(r"\bcheck=false; [^)]*--no-check(?:=\w+)?")
# Options of the tools, which Python has as keywords.
_FLAGS = {"--target cpu": 'target="cpu"', "--memory-limit": "memory_limit", "--max-steps": "max_steps"}
_FLAG = re.compile("|".join(_FLAGS))

_DIALECTS = "comms|arith|math|memref|scf|cf|tensor|affine|vector|gpu|func|llvm|builtin"
_OP = rf"(?:{_DIALECTS})\.[a-z_0-9]+"
_SUBJECT = re.compile(rf"'({_OP})' op ")
# What a check of bounds says of an access, which names it as well.
_ACCESS = re.compile(r"\bthis (?:read|store) (read|write) of ")
# A rule of docs/Spec.md, whose number stays.
_NUMBERED = re.compile(rf"'({_OP})' op (C\d+): (.*)", re.DOTALL)
# Outside quotes a name of another dialect may be the program's own, as in `assert x < math.inf`.
_BARE = "|".join([r"comms\.[a-z_]+", *(re.escape(op) for op in CONSTRUCTS if not op.startswith("comms."))])
_NAMED = re.compile(rf"'({_OP})'|(?<![\w./\\])({_BARE})\b(?!\()")
_PASS = re.compile(r"\bcomms(?:-[a-z]+)+\b")
_MEMORY = re.compile(
    r"(?:(?P<window>!comms\.window)|memref)<(?P<shape>(?:[\d?]+x)*)(?P<element>\w+)(?:, #comms\.space<(?P<space>\w+)>"
    r"|, strided<[^>]*>)?>"
)
_TILE = re.compile(r"tensor<(?P<shape>(?:[\d?]+x)*)(?P<element>\w+)>")
_CELLS = re.compile(r"!comms\.(signal|counter)<(\d+)>")
_CHANNEL = re.compile(r"!comms\.channel<\w+, (?P<shape>[\d?x]*x)?(?P<element>\w+)>")
_HANDLE = re.compile(r"!comms\.(team|token)\b")
_SPACE = re.compile(r"#comms\.space<(\w+)>")
_TYPES = {dtype.mlir: name for name, dtype in BY_NAME.items() if dtype.name == name}


def construct(op: str) -> str:
    """The Python construct for the operation `op` ("comms.epoch"), or `op` if there is none."""
    if not re.fullmatch(_OP, op):
        return op
    return CONSTRUCTS.get(op) or op.partition(".")[2]


def in_python(text: str) -> str:
    """`text` with Python's words for the operations, types and passes that it names."""
    text = _NUMBERED.sub(lambda m: f"{_subject(m[1])}: {m[3]} (rule {m[2]} of docs/Spec.md)", text)
    text = _SUBJECT.sub(lambda m: f"{_subject(m[1])} ", text)
    text = _ACCESS.sub(r"this \1 of ", text).replace("this read reads ", "this line reads ")
    text = _MEMORY.sub(_memory, text)
    text = _TILE.sub(lambda m: f"a tile of {_shape(m)} {_element(m)}", text)
    text = _CELLS.sub(lambda m: f"{m[1].capitalize()}[{m[2]}]", text)
    text = _CHANNEL.sub(lambda m: f"a channel of {_shape(m)} {_element(m)}", text)
    text = _HANDLE.sub(r"a \1", text)
    text = _SPACE.sub(r'space="\1"', text)
    text = _NAMED.sub(_named, text)
    text = _UNCHECKED.sub("check=False", text)
    text = _FLAG.sub(lambda m: _FLAGS[m[0]], text)
    text = _PASS.sub(lambda m: _PASSES.get(m[0], "the compiler"), text)
    return text.replace("the kernel the checker ", "the checker ")  # The pass says so of the kernel's op.


def _subject(op: str) -> str:
    return _SUBJECTS.get(op) or CONSTRUCTS.get(op, op.partition(".")[2])


def _named(found: re.Match[str]) -> str:
    return construct(found[1] or found[2])


def _element(found: re.Match[str]) -> str:
    return _TYPES.get(found["element"], found["element"])


def _shape(found: re.Match[str]) -> str:
    return " x ".join((found["shape"] or "").rstrip("x").split("x"))


def _memory(found: re.Match[str]) -> str:
    kind = "Window" if found["window"] else "Array"
    sizes = found["shape"].rstrip("x").split("x") if found["shape"] else []
    return f"{_element(found)}[{', '.join([kind, *sizes])}]"
