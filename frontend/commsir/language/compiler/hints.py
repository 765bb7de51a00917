"""What to write instead of what kernels do not know."""

from __future__ import annotations

# Nodes of syntax trees, by their names, for not all are in every Python: what they are called, and the way out.
SYNTAX: dict[str, tuple[str, str]] = {
    "ListComp": ("a list comprehension", "write a for loop, or a tuple (a, b, c) for what is known"),
    "SetComp": ("a set comprehension", "write a for loop"),
    "DictComp": ("a dict comprehension", "write a for loop"),
    "GeneratorExp": ("a generator expression", "write a for loop"),
    "Dict": ("a dict", "build it outside the kernel: kernels see constants of the functions and modules around them"),
    "Set": ("a set", "write a tuple"),
    "Try": ("try", "kernels raise nothing: test for the case with if"),
    "Raise": ("raise", "write assert condition, which ends the run with an error"),
    "Global": ("global", "pass an array or a scalar as an argument"),
    "Nonlocal": ("nonlocal", "return the value from the function"),
    "ClassDef": ("a class", "define it outside the kernel"),
    "Import": ("import", "import outside the kernel"),
    "ImportFrom": ("import", "import outside the kernel"),
    "Delete": ("del", "leave it out: values need no freeing"),
    "Await": ("await", "wait for a signal: wait_signal(s[i], ge=value)"),
    "Yield": ("yield", "return the value"),
    "YieldFrom": ("yield", "return the value"),
    "JoinedStr": ("an f-string", "text belongs outside the kernel"),
    "AsyncFor": ("async for", "write for"),
    "AsyncWith": ("async with", "write with role(…)"),
    "AsyncFunctionDef": ("async def", "write def"),
    "Match": ("match", "write if and elif"),
    "TryStar": ("try", "kernels raise nothing: test for the case with if"),
    "TemplateStr": ("a t-string", "text belongs outside the kernel"),
    "TypeAlias": ("a type", "define it outside the kernel"),
}
# Functions of Python.
BUILTINS = {
    "print": "store the value in an array, or look at the run with report.trace()",
    "dict": "build it outside the kernel",
    "set": "write a tuple",
    "str": "kernels know no text",
    "map": "write a for loop",
    "filter": "write a for loop",
    "open": "read the file outside and pass an array",
    "sorted": "kernels do not sort; do it outside",
}
# Attributes of arrays, and functions, elsewhere, by what tiles have for them.
ATTRIBUTES = {
    "to": "write t.astype(bf16), or bf16(t)",
    "type": "write t.astype(bf16), or bf16(t)",
    "float": "write t.astype(f32), or f32(t)",
    "half": "write t.astype(f16), or f16(t)",
    "bfloat16": "write t.astype(bf16), or bf16(t)",
    "int": "write t.astype(i32), or i32(t)",
    "view": "write bitcast(t, i32)",
    "copy": "leave it out: a tile is a value, which no store changes",
    "clone": "leave it out: a tile is a value, which no store changes",
    "detach": "leave it out: nothing is recorded here",
    "reshape": "a tile has one dimension; subscripts of the array choose what is loaded",
    "flatten": "a tile has one dimension",
    "T": "a tile has one dimension; subscripts of the array choose what is loaded",
    "softmax": "write e = exp(t - t.max()), then e / e.sum()",
    "std": "write sqrt(((t - t.mean()) * (t - t.mean())).mean())",
    "var": "write ((t - t.mean()) * (t - t.mean())).mean()",
    "norm": "write sqrt((t * t).sum())",
    "relu": "write maximum(t, 0.0)",
    "sigmoid": "write 1.0 / (1.0 + exp(-t))",
    "argmax": "write where(t == t.max(), iota(len(t)), len(t)).min()",
    "argmin": "write where(t == t.min(), iota(len(t)), len(t)).min()",
    "dot": "write (a * b).sum()",
}
