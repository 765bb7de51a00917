"""What to write instead of what kernels do not know."""

from __future__ import annotations

import ast

# Statements and expressions: what they are called, and the way out.
SYNTAX: dict[type[ast.AST], tuple[str, str]] = {
    ast.ListComp: ("a list comprehension", "write a for loop, or a tuple (a, b, c) for what is known"),
    ast.SetComp: ("a set comprehension", "write a for loop"),
    ast.DictComp: ("a dict comprehension", "write a for loop"),
    ast.GeneratorExp: ("a generator expression", "write a for loop"),
    ast.Dict: ("a dict", "build it outside the kernel: kernels see constants of the functions and modules around them"),
    ast.Set: ("a set", "write a tuple"),
    ast.Try: ("try", "kernels raise nothing: test for the case with if"),
    ast.Raise: ("raise", "write assert condition, which ends the run with an error"),
    ast.Global: ("global", "pass an array or a scalar as an argument"),
    ast.Nonlocal: ("nonlocal", "return the value from the function"),
    ast.ClassDef: ("a class", "define it outside the kernel"),
    ast.Import: ("import", "import outside the kernel"),
    ast.ImportFrom: ("import", "import outside the kernel"),
    ast.Delete: ("del", "leave it out: values need no freeing"),
    ast.Await: ("await", "wait for a signal: wait_signal(s[i], ge=value)"),
    ast.Yield: ("yield", "return the value"),
    ast.YieldFrom: ("yield", "return the value"),
    ast.JoinedStr: ("an f-string", "text belongs outside the kernel"),
    ast.AsyncFor: ("async for", "write for"),
    ast.AsyncWith: ("async with", "write with role(…)"),
    ast.AsyncFunctionDef: ("async def", "write def"),
    ast.Match: ("match", "write if and elif"),
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
