"""Python that cannot be compiled: errors give the line, the cause, and the repair."""

# ruff: noqa: E501 (tables, and programs in strings)
from __future__ import annotations

import importlib
import linecache
import pathlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import commsir
import numpy as np
import pytest

Load = Callable[[str], ModuleType]

PARAMETERS = (
    "x: f32[Window, 8, 64], y: f32[Array, 8, 64], q: i32[Array, 64], s: Signal[4], n: i64, v: f32, w: f32[Array, 8]"
)
PRELUDE = "import numpy\nGL = [1, 2, 3]\nOUTSIDE = numpy.zeros(3)\ndef itself(t):\n    return itself(t)\ndef one_way(t):\n    if t > 0:\n        return t\n"

# The body, the line in it that is meant (from 1), and words of the message.
CASES: dict[str, tuple[str, int, str]] = {
    "list-comprehension": ("a = [k for k in range(3)]", 1, "list comprehension.*for loop"),
    "generator": ("a = sum(k for k in range(3))", 1, "generator expression|sum cannot"),
    "dict": ("a = {1: 2}", 1, "a dict cannot.*outside"),
    "try": ("try:\n    pass\nexcept ValueError:\n    pass", 1, "try cannot.*if"),
    "with": ("with open('f') as f:\n    pass", 1, "with cannot.*role"),
    "raise": ("raise ValueError", 1, "raise cannot.*assert"),
    "global": ("global OUTSIDE", 1, "global cannot.*argument"),
    "import": ("import os", 1, "import cannot.*outside"),
    "class": ("class A:\n    pass", 1, "a class cannot"),
    "print": ("print(n)", 1, "print cannot.*trace"),
    "f-string": ("a = f'{n}'", 1, "f-string"),
    "yield": ("yield n", 1, "yield cannot.*store the value in an array"),
    "match": ("match n:\n    case 1:\n        pass", 1, "match cannot.*if and elif"),
    "string-method": ("a = 'x'.upper()", 1, "the string 'x' has no methods"),
    "string-sum": ("a = 'x' + n", 1, "the string 'x', which is not a number.*no text"),
    "unpack-array": ("a, b = w[:]", 1, r"a part of the array 'w' cannot be unpacked.*a, b = x\[0\], x\[1\]"),
    "forgotten-brackets": ("y = x[0]", 1, r"'y' is an array, of which this stores nothing.*y\[:\] = …"),
    "forgotten-brackets-of-both": ("y = x", 1, r"'y' is an array, of which this stores nothing.*y\[:\] = …"),
    "forgotten-brackets-in-loop": ("for k in range(8):\n    y = x[k] * 2", 2, r"'y' is an array.*y\[i\] = …"),
    "forgotten-brackets-of-peer": ("p = x.peer(0)\np = y[0]", 2, r"'p' is an array.*p\[:\] = …"),
    "forgotten-brackets-of-several": ("a, y = x[0], x[1]", 1, r"'y' is an array.*y\[:\] = …"),
    "forgotten-brackets-annotated": ("y: f32 = x[0]", 1, r"'y' is an array.*y\[:\] = …"),
    "forgotten-brackets-of-sum": ("y += x[0]", 1, r"'y' is an array.*y\[:\] \+= …"),
    "unknown-name": ("y[0] = twce", 1, "'twce' has no value"),
    "unknown-function": ("barier()", 1, "'barier' has no value.*did you mean 'barrier'"),
    "unknown-attribute": ("a = x.locl()", 1, "the window 'x' has no attribute 'locl'.*did you mean 'local'"),
    "unknown-module-attribute": ("a = np.sine(v)", 1, "'numpy' has no attribute 'sine'.*did you mean 'sin"),
    "unknown-keyword": ("put(y, x, 1, cont=3)", 1, "put has no parameter 'cont'.*did you mean 'count'"),
    "missing-argument": ("put(y, x)", 1, "missing a required argument: 'peer'"),
    "unknown-choice": ("barrier(extent='grids')", 1, "the extent is the string 'grids'.*did you mean 'grid'"),
    "unknown-reduction": ("all_reduce(x, outs=y, op='sums')", 1, "op is the string 'sums'.*did you mean 'sum'"),
    "other-reduction": ("all_reduce(x, outs=y, op='add')", 1, "op is the string 'add' [^?]*it is one of sum, prod"),
    "annotated-parameter": (
        "def g(t: f16):\n    return t\ny[0] = g(x[0])", 1,
        r"'t' of 'g' is annotated f16, and gets a tile of 64 f32.*\.astype\(f16\)",
    ),
    "annotated-result": (
        "def g(t: f32) -> i32:\n    return t\ny[0] = v + g(v)", 1, "'g' is annotated to return i32, and returns a scalar f32"
    ),
    "append": ("a = []\nfor k in range(3):\n    a.append(k)", 3, "no attribute 'append'.*store in an array"),
    "star": ("a, *b = (1, 2, 3)", 1, "a name with a star cannot.*name of its own"),
    "enumerate-peers": ("for k, p in enumerate(for_peers()):\n    y[k] = p", 1, "the peers of a team.*i = 0 before the loop"),
    "compare-cell": ("while s[0] < 3:\n    pass", 1, r"a cell of the signal 's', which is not a number.*read_signal\(s\[…\]\)"),
    "none-at-run-time": ("a = None\nif n > 0:\n    a = 1\nif a is None:\n    y[0] = 1", 4, "'a' is .* or None.*a number such as -1"),
    "array-at-run-time": ("a = y if n > 0 else q\na[0] = 1", 1, "the array 'y' or the array 'q'.*each in its own branch"),
    "numpy-log10": ("y[0] = np.log10(y[0])", 1, "'log10' is not known to kernels.*log2"),
    "numpy-function": ("y[0] = np.sort(y[0])", 1, "'sort' is not known to kernels.*functions of your own"),
    "keyword-of-helper": ("def h(a, *, b):\n    return a + b\ny[0] = h(y[0], c=1)", 3, r"h has no parameter 'c'.*it is h\(a, \*, b\)"),
    "length-of-open-dimension": ("y.store(x.load(0, n), 0)", 1, r"the length of a tile.*k.specialize\(n=64\)"),
    "unknown-python": ("a = sorted((n, 1))", 1, "sorted cannot.*outside"),
    "array-outside": ("a = OUTSIDE[0]", 1, "an array from outside cannot.*argument"),
    "lengths": ("y[0] = x[0] + q[0:32]", 1, r"'\+' of tiles of 64 and 32 elements"),
    "store-length": ("y[0] = q[0:32]", 1, "a tile of 32 elements does not fit 64 of the array 'y'"),
    "tile-condition": ("if x[0] > 0:\n    y[0] = 1", 1, "a tile of 64 bool: a branch needs one truth value.*where"),
    "tile-and": ("a = (x[0] > 0) and (x[1] > 0)", 1, "'and' and 'or' of tiles.*a & b"),
    "tile-index": ("a = (x[0] + 1)[3]", 1, "a tile has no subscripts"),
    "tile-part-unknown": ("a = (x[0] + 1)[n:]", 1, "begins and ends at numbers that are known.*load a part"),
    "tile-part-outside": ("a = (x[0] + 1)[60:65]", 1, "elements 60 to 64 of a tile of 64 f32.*stays in the tile"),
    "tile-part-empty": ("a = (x[0] + 1)[8:8]", 1, "elements 8 to 8 of a tile.*at least one element"),
    "tile-part-step": ("a = (x[0] + 1)[::2]", 1, "a slice has no step"),
    "joined-nothing": ("a = concatenate(())", 1, "concatenate of no tiles.*a tuple of tiles"),
    "float-index": ("y[0, v] = 1", 1, "a subscript is a scalar f32, not an integer.*int"),
    "float-bits": ("a = v & 1", 1, "'&' of f32.*astype"),
    "out-of-bounds": ("y[8] = x[0]", 1, "8 is out of bounds: the array 'y' has 8 along dimension 0"),
    "slice-too-long": ("y[0, 60:70] = 1.0", 1, "a slice that ends at 70 of the array 'y', which has 64"),
    "slice-unknown": ("y[0, 0:n] = 1.0", 1, "length of this part.*valid=count"),
    "slice-step": ("a = y[0, 0:64:2]", 1, "a slice has no step"),
    "too-many-subscripts": ("a = y[0, 0, 0]", 1, "3 subscripts for the array 'y', which has 2 dimensions"),
    "cell": ("signal(s[4], 1)", 1, r"cell 4 of the signal 's', which has 4.*Signal\[5\]"),
    "no-cell": ("signal(x, 1)", 1, "the window 'x', where a cell of a signal is needed"),
    "no-window": ("put(x, y, 1)", 1, "the array 'y', where a window is needed.*Window"),
    "other-types": ("put(q, x, 1)", 1, "'q' has i32, the window 'x' has f32"),
    "count-of-part": ("put(y[0, 0:8], x[0], 1, count=9)", 1, "9 elements of a part of 8.*begin"),
    "two-changes": ("signal(s[0], 1, set=1, add=2)", 1, "either sets its cell or adds"),
    "no-value": ("wait_signal(s[0])", 1, "a wait has one value.*ge=value"),
    "no-token": ("a = x.load(0, 64, after=n)", 1, "'after' is a scalar i64.*token"),
    "length-unknown": ("a = x.load(0, n)", 1, "the length of a tile is a scalar i64"),
    "one-branch": ("if n > 0:\n    a = 1.0\ny[0] = a", 3, "'a' gets a value in only one branch of the if at line"),
    "only-loop": ("for k in range(n):\n    a = k\nq[0] = a", 3, "'a' gets its value inside the loop at line"),
    "loop-variable": ("for k in range(n):\n    pass\nq[0] = k", 3, "'k' gets its value inside the loop"),
    "branch-types": ("if n > 0:\n    a = v\nelse:\n    a = n\ny[0] = a", 1, "'a' is f32 in one branch and i64 in the other"),
    "loop-type": ("a = n\nfor k in range(3):\n    a = a * 0.5\ny[0] = a", 2, "'a' is i64 before the loop and f32 after its body"),
    "loop-length": ("a = x[0]\nfor k in range(3):\n    a = y[k, 0:32]\ny[0, 0:32] = a", 2, "'a' is tile of 64 f32 before"),
    "memory-by-condition": ("a = x if n > 0 else y", 1, "only numbers and tiles may depend on a run-time condition"),
    "recursion": ("y[0] = itself(x[0])", 1, "call each other 24 deep.*has to end by what is known.*loop"),
    "half-returned": ("y[0, 0] = one_way(v)", 1, "'one_way' does not return a value on every path"),
    "kernel-returns": ("return x[0]", 1, "a kernel returns nothing"),
    "constant-division": ("a = 1 // 0", 1, "integer division or modulo by zero|by zero"),
    "assert-false": ("assert 1 > 2, 'order'", 1, "this does not hold: order"),
    "static-unknown": ("for k in static_range(n):\n    pass", 1, "an argument of static_range is a scalar i64"),
    "iterate-array": ("for k in y:\n    pass", 1, "a for runs over range.*not over the array 'y'"),
    "goes-nowhere": ("x[0] == y[0]", 1, "this value is not used"),
    "assign-attribute": ("x.name = 3", 1, "attributes cannot be assigned"),
    "unpack": ("a, b = 1, 2, 3", 1, "3 values for 2 names"),
    "consume-memory": ("all_reduce(x, outs=y, consume=lambda t: t + y[0])", 1, "cannot (read|use) the array 'y'.*args"),
    "consume-condition": ("all_reduce(x, outs=y, consume=lambda t: t if t.sum()[0] > 0 else -t)", 1, "conditional expression.*where"),
    "consume-arity": ("all_reduce(x, outs=y, consume=lambda t, w: t)", 1, "missing a required argument: 'w'"),
    "consume-count": ("all_reduce(x, outs=y, consume=lambda t: (t, t))", 1, "returns 2 tiles for 1 outputs"),
    "consume-length": ("all_reduce(x, outs=q, consume=lambda t: t)", 1, "returns a tile of 64 f32 for 'q', whose rows have 8"),
    "args-unread": ("all_reduce(x, outs=y, args=q)", 1, "has args but no function that reads them"),
    "no-outs": ("all_gather(x)", 1, "all_gather needs outs"),
    "part-of-collective": ("all_reduce(x[0], outs=y)", 1, "collectives take whole arrays"),
    "role-numbers": ("with role('a', 0, n):\n    pass", 1, "two numbers of blocks that are known"),
    "role-breaks": ("for a in (1, 2):\n    with role('a', 0, 1):\n        break", 2, "a role cannot break out"),
    "role-continues": ("for a in (1, 2):\n    with role('a', 0, 1):\n        continue", 2, "a role cannot continue"),
    "slice-before": ("y[0, 0:3] = x[1, -65:-62]", 1, "a slice that begins 1 before the window 'x' along dimension 1"),
    "loop-lengthens": ("a = y[0, 0:1]\nfor k in range(n):\n    a = a + y[0, 0:8]\ny[0, 0:8] = a", 2, "one length, too.*begin with a tile of 8 f32, as commsir.full\\(8"),
    "bool-from-loop": ("a = 5\nfor k in range(n):\n    a = n > k\ny[0, 0] = a", 2, "index before the loop and bool after"),
    "returns-slice-of-calls": ("f = lambda: q.store(zeros(8)) or rank()\ny[0, 0:4] = x[0, f():f() + 4]", 2, "length of this part"),
    "role-returns": ("with role('a', 0, 1):\n    return", 1, "a role cannot return"),
    "too-big": ("q[0] = 2**40", 1, "does not fit i32"),
    "literal": ("y[0, 0] = f32(i8(n) < 200)", 1, "200 does not fit i8.*convert what it meets to a wider type, or write -56"),
    "literal-converted": ("y[0, 0] = f32(i8(200))", 1, "200 does not fit i8"),
    "spin": ("while q[0] == 0:\n    pass", 1, "this loop waits for memory to change.*wait_signal"),
    "spin-assigned": ("while (t := q[0]) == 0:\n    pass", 1, "this loop waits for memory to change"),
    "spin-of-calls": ("while not int(abs(q[0])) >= i64(epoch() + size()):\n    pass", 1, "this loop waits for memory"),
    "spin-left": ("while True:\n    if q[0] > 0:\n        break", 1, "this loop waits for memory to change"),
    "list-grows": ("a = [1, 2]\na += [3]", 2, r"lists do not change.*a = a \+"),
    "list-element": ("a = [1, 2]\na[0] = 5", 2, "a list of 2 does not change in a kernel"),
    "returned-types": ("y[0, 0] = f32((lambda t: 1.5 if t > 1 else t)(n))", 1, "f32 .*i64"),
    "step-zero": ("for k in range(0, n, 0):\n    pass", 1, "the step of range is 0"),
    "not-a-number": ("a = x + 1", 1, "the window 'x', which is not a number.*load it first"),
    "uncalled-method": ("y[0] = x[0].sum", 1, "the method 'sum' of a tile.*call it"),
    "torch-method": ("y[0] = x[0].to(bf16)", 1, r"no attribute 'to'.*astype\(bf16\)"),
    "softmax": ("y[0] = x[0].softmax()", 1, r"no attribute 'softmax'.*exp\(t - t.max\(\)\)"),
    "outs-as-team": ("all_reduce(x, y)", 1, "the team is the array 'y'.*outs=y"),
    "op-as-team": ("all_reduce(x, 'max')", 1, 'that is a reduction: op="max"'),
    "extent-as-team": ("barrier('grid')", 1, "the team is the string 'grid'.*by name"),
    "cell-without-subscript": ("wait_signal(s, ge=1)", 1, r"as a subscript: s\[0\]"),
    "mask-as-subscript": ("y[x[0] > 0] = 1", 1, "a subscript is a tile of 64 bool.*where"),
    "empty-space": ("a = scratch(f32, 64, space='local')", 1, 'it is one of "", scratch, shared'),
    "shape-of-tile": ("a = zeros((8, 64))", 1, "a tuple of 2.*a tile has one dimension"),
    "iota-of-two": ("a = iota(0, 64)", 1, "the type of the elements is 64"),
    "nothing-stored": ("y[0] = all_reduce(x)", 1, "collectives write their outs"),
    "wait-for-number": ("barrier_wait(3)", 1, "what is waited for is 3.*barrier_arrive gives"),
    "role-as": ("with role('a', 0, 1) as r:\n    pass", 1, "a role has no value"),
    "invert-float": ("y[0] = ~x[0]", 1, "'~' of f32.*astype"),
    "huge": ("y[0] = 10**400", 1, "an integer of 1329 bits does not fit f32"),
    "astronomic": ("y[0] = 10**5000", 1, "an integer of 16610 bits does not fit f32"),
    "int-of-infinity": ("q[0] = int(np.inf)", 1, r"int\(inf\) has no value"),
    "i32-of-nan": ("q[0] = i32(np.nan)", 1, r"i32\(nan\) has no value"),
    "round-of-infinity": ("q[0] = round(-np.inf)", 1, r"round\(-inf\) has no value"),
    "no-subscript": ("a = y[()]", 1, r"no subscript for the array 'y'.*y\[i\]"),
    "ellipsis": ("a = y[...]", 1, r"ellipsis, which is not a number.*\[:\]"),
    "endless": ("while True:\n    q[0] = 1", 1, "this loop never ends.*break or return"),
    "long-tuple": ("a = (1, 2) * 10**9", 1, r"a tuple of 2000000000 values.*full\(n, value\)"),
    "of-numpy": ("y[0] = np.eye(8)", 1, "'eye' is not known to kernels.*functions of your own"),
    "of-numpy-known": ("y[0] = np.dot(x[0], x[1])", 1, r"'dot' is not known to kernels.*\(a \* b\).sum"),
    "array-of-numpy": ("y[0] = np.float32([1, 2])", 1, r"zeros\(n\), full\(n, value\)|takes one value|which is not a number"),
    "keyword-of-numpy": ("y[0] = np.zeros(64, order='C')", 1, r"zeros has no parameter 'order'.*zeros\(shape, dtype=None\)"),
    "is-at-run-time": ("y[0] = (n > 0) is True", 1, "'is' of numbers.*=="),
    "not-yet-assigned": ("y[0] = TABLE\nTABLE = 1", 1, "'TABLE' has no value yet.*assigns it later"),
    "walrus-in-part": ("if n > 0 and (m := n) > 2:\n    y[0] = m", 2, "'m' gets a value in only one branch"),
    "shift-backwards": ("y[0, 0] = n >> -1", 1, "'>>' by -1.*other way"),
    "shift-too-far": ("y[0, 0] = n << 64", 1, "leaves nothing of i64, which has 64 bits"),
    "division-by-zero": ("y[0, 0] = n // 0", 1, "'//' by zero"),
    "modulo-of-zero": ("y[0] = x[0] % 0", 1, "'%' by zero"),
    "decorator": ("@sorted\ndef f(v):\n    return v\ny[0] = f(1)", 2, "sorted"),
    "object": ("class_ = np.random\ny[0] = class_.default_rng(0)(1)", 2, "default_rng|Generator"),
    "uncalled": ("a = rank + 1", 1, "which is not a number.*call it"),
    "name-of-softmax": ("y[0] = softmax(x[0])", 1, r"kernels have no 'softmax'.*e / e.sum\(\)"),
    "name-of-relu": ("y[0] = relu(x[0])", 1, r"kernels have no 'relu'.*maximum\(t, 0.0\)"),
    "name-of-gelu": ("y[0] = gelu(x[0])", 1, r"kernels have no 'gelu'.*erf"),
    "name-of-thread": ("y[thread_id()] = x[0]", 1, "kernels have no 'thread_id'.*block_id"),
    "name-of-triton": ("y[program_id(0)] = x[0]", 1, "kernels have no 'program_id'.*block_id"),
    "missing-in-numpy": ("y[0] = np.softmax(x[0])", 1, r"'numpy' has no attribute 'softmax'.*e / e.sum\(\)"),
    "matmul": ("y[0] = np.matmul(x[0], x[0])", 1, r"'matmul' is not known.*\(a \* b\).sum"),
    "matmul-of-rows": ("y[0] = x[0] @ y[0]", 1, r"left side of '@' is a part of the .* which is not a matrix.*rows and columns"),
    "matmul-of-tiles": ("a = x[0] + 1\ny[0] = a @ y", 2, "left side of '@' is a tile of .*not a matrix.*a tile is one row"),
    "matmul-plus-number": ("y[0:4, 0:4] = x[0:4, 0:8] @ x[:, 0:4] + 1.0", 1, "a product of matrices, which is not a number.*name it"),
    "matmul-plus-matmul": ("y[0:4, 0:4] = x[0:4, 0:8] @ x[:, 0:4] + x[0:4, 0:8] @ x[:, 0:4]", 1, "the sum of two products.*store the first"),
    "matmul-plus-itself": ("y[0:4, 0:4] = y[0:4, 0:4] + x[0:4, 0:8] @ x[:, 0:4]", 1, "is added to a product that is stored there.*\\+="),
    "matmul-plus-smaller": ("y[0:4, 0:4] = x[0:4, 0:8] @ x[:, 0:4] + y[0:2, 0:4]", 1, "a product of 4 rows plus 2 rows.*must agree"),
    "matmul-at-once": ("p = x[0:4, 0:8] @ x[:, 0:4]\ny[0:4, 0:4] = p", 2, r"only the last subscript may be a slice.*y\[i\] = p\[r\]"),
    "matmul-subscript": ("y[0] = (x[0:4, 0:8] @ x[:, 0:4])[0]", 1, r"a product of matrices has no subscripts.*then c\[r\]"),
    "matmul-method": ("y[0] = (x[0:4, 0:8] @ x[:, 0:4]).sum()", 1, r"a product of matrices has no attribute 'sum'.*then c\[r\]"),
    "matmul-transposed": ("y[0:4, 0:4] = (x[0:4, 0:8] @ x[:, 0:4]).T", 1, r"no attribute 'T'.*b.T @ a.T"),
    "matmul-in-maximum": ("y[0] = maximum(x[0:4, 0:8] @ x[:, 0:4], 0.0)", 1, "the first of maximum is a product of matrices.*name it"),
    "matmul-of-numbers": ("y[0] = 2.0 @ y", 1, "left side of '@' is 2.0, which is not a matrix.*multiply parts of arrays"),
    "matmul-depth": ("y[0:2, 0:8] = x[0:2] @ x[0:2, 0:8]", 1, "a matrix of .* columns and one of 2 rows.*must agree"),
    "matmul-rows": ("y[0:2, 0:2] = x[0:4, 0:8] @ y[0:2, 0:8].T", 1, "a product of 4 rows to a place of 2.*must agree"),
    "matmul-as-number": ("y[0] = x[0] + (y[0:2, 0:8] @ x[0:2, 0:8].T)", 1, "a product of matrices, which is not a number.*name it"),
    "rows-as-tile": ("a = x[0:2, 0:8]", 1, "only the last subscript may be a slice.*row by row"),
    "digits": ("y[0] = round(x[0], 2)", 1, r"round takes no number of digits.*rint\(x \* 100.0\)"),
    "keyword-of-torch": ("y[0] = x[0].sum(dim=-1)", 1, "sum has no parameter 'dim'.*it is called 'axis'"),
    "axis": ("y[0] = x[0].sum(1)", 1, "the axis is 1.*a tile has one dimension"),
    "instance": ("y[0] = isinstance(x[0], float)", 1, "isinstance works only on values that are known"),
    "random": ("import_ = 1\ny[0] = numpy.random.rand(64)", 2, "kernels draw no random numbers"),
    "none-as-subscript": ("a = x[None]", 1, r"a subscript is None.*x\[i, :\]"),
    "list-as-subscript": ("a = x[[0, 1]]", 1, r"a subscript is a list of 2.*x\[i, :\]"),
    "range-of-floats": ("for k in range(1.5):\n    pass", 1, "the end of range is 1.5, not an integer.*//"),
    "gin-word": ("put(y, x, 1, gin='any')", 1, "gin has 'any', which is not a setting.*gin=\"backend = any\""),
    "gin-name": ("put(y, x, 1, gin='backed = any')", 1, "gin has no setting 'backed'.*did you mean 'backend'"),
    "gin-value": ("put(y, x, 1, gin='backend = ib')", 1, "backend of gin is 'ib'.*any, proxy, gdaki"),
    "gin-number": ("put(y, x, 1, gin='context_id = one')", 1, "context_id of gin is 'one'.*a number"),
    "gin-type": ("put(y, x, 1, gin=0)", 1, "gin is 0.*backend is any, proxy, gdaki"),
    "scratch-shapeless": ("a = scratch(f32)", 1, r"scratch memory has no shape.*scratch\(f32, 4, 64\)"),
    "scratch-of-nothing": ("a = scratch(f32, 0)", 1, "a dimension of 0.*at least 1"),
    "scratch-unknown": ("a = scratch(f32, n)", 1, "a dimension of scratch memory is a scalar i64"),
    "scratch-of-text": ("a = scratch(f32, '64')", 1, "a dimension of scratch memory is the string '64'"),
    "in-text": ("a = 1 in 'abc'", 1, "1 in the string 'abc'.*requires string"),
    "in-set-at-run-time": ("a = n in {1, 2}", 1, "a set cannot.*tuple"),
    "tuple-step": ("a = (1, 2, 3)[::0]", 1, "a slice with a step of 0.*leave the step out"),
    "tuple-slice": ("a = (1, 2, 3)[1.5:]", 1, "a slice of a tuple needs integers that are known"),
    "tile-step": ("t = x[0]\na = t[0:8:0]", 2, "a slice with a step of 0"),
    "static-nothing": ("for k in static_range():\n    pass", 1, "static_range takes one to three numbers"),
    "static-too-much": ("for k in static_range(1, 2, 3, 4):\n    pass", 1, "static_range takes one to three numbers"),
    "static-step": ("for k in static_range(0, 4, 0):\n    pass", 1, "the step of static_range is 0"),
    "arange-step": ("y[0] = np.arange(0, 64, 0)", 1, "the step of arange is 0"),
    "int-of-two": ("q[0] = int(n, 2)", 1, r"int\(…\) takes one value"),
    "float-of-two": ("y[0] = float(n, 2)", 1, r"float\(…\) takes one value"),
    "memory-of-constants": ("a = 1 << 10**12", 1, "'<<' of 1 and 1000000000000: out of memory"),
    "breakpoint": ("breakpoint()", 1, r"breakpoint cannot.*report.trace\(\)"),
    "exit": ("exit()", 1, "exit cannot.*return ends a kernel"),
    "method-of-torch": ("y[0] = x[0].exp()", 1, r"no attribute 'exp'.*it is a function: exp\(t\)"),
    "method-of-scalar": ("y[0] = v.sqrt()", 1, r"it is a function: sqrt\(t\)"),
    "name-of-torch": ("y[0] = torch.exp(x[0])", 1, "kernels have no 'torch'.*was imported.*without a module"),
    "type-of-numpy": ("y[0] = float32(n)", 1, r"kernels have no 'float32'.*write f32\(t\)"),
    "type-without-sign": ("y[0] = np.uint8(n)", 1, r"'uint8' is not known.*have a sign: write i8\(t\)"),
    "store-in-a-tile": ("t = x[0] + 1\nt[3] = 1", 2, r"a tile of 64 f32 is a value, which no store changes.*where\(iota"),
    "array-that-was": ("y = x[0]\ny[3] = 1", 2, r"'y' names a tile of 64 f32 here.*that line is y\[:\] = …"),
    "store-in-a-signal": ("s[0] = 1", 1, r"cannot be assigned.*signal\(s\[0\], rank\(\), set=value\).*reset_signal"),
    "store-of-transpose": ("y[0] = x.T", 1, "the transpose of the window 'x' is not a tile.*operand of '@'"),
    "name-of-scratch": ("a = scratch(f32, 64)\ny[0] = a", 2, r"the array 'a', which is not a number.*load it first: a\[:\]"),
    "star-in-subscript": ("a = x[*(0, 1)]", 1, "a star in a subscript"),
    "number-of-loops": ("for k in n:\n    pass", 1, r"not over a scalar i64.*write for i in range\(n\)"),
    "max-of-a-number": ("a = max(n)", 1, r"no elements that are known.*write several values"),
    "in-a-tile": ("a = n in x[0]", 1, r"no elements that are known.*\(t == x\)\.any\(\)"),
    "list-times-tile": ("y[0] = GL * x[0]", 1, r"a Python list, which is not a number.*full\(n, value\)"),
    "endless-number": ("while n:\n    pass", 1, "nothing in this loop changes 'n': once entered, it never ends"),
    "endless-comparison": ("while n > v:\n    q[0] = 1", 1, "changes 'n', 'v'.*leave with break or return"),
    "endless-around-a-loop": ("while n > 0:\n    for k in range(3):\n        break", 1, "nothing in this loop changes 'n'"),
    "consume-takes-none": ("all_reduce(x, outs=y, consume=lambda: 1)", 1, r"the function for consume, \(\): too many.*1 tile: a row of the result"),
    "produce-takes-two": ("all_reduce(x, outs=y, produce=lambda t, u: t)", 1, r"function for produce, \(t, u\): missing.*a row of each input"),
    "consume-block": ("all_reduce(x, outs=y, consume=lambda t: t + block_id())", 1, r"block_id\(\) is not known in the function.*b = block_id\(\)"),
    "consume-split": ("all_reduce(x, outs=y, consume=lambda t: t + team().inner(1).rank)", 1, "the rank of a part of a team is not known"),
    "consume-assert": ("def f(t):\n    assert t.sum() > 0\n    return t\nall_reduce(x, outs=y, consume=f)", 2, "checks nothing.*before or after"),
    "result-of-collective": ("t = all_reduce(x)\ny[0] = t * 2", 2, r"'\*' of None and 2.*collectives write their outs"),
    "result-compared": ("t = all_reduce(x)\nif t > 2:\n    y[0] = 1.0", 2, r"'>' of None and 2.*collectives write their outs"),
    "number-of-ranks": ("y[0] = num_ranks()", 1, r"kernels have no 'num_ranks'.*write size\(\)"),
    "peer-of-array": ("y[0] = y.peer(1)[0]", 1, r"the array 'y' has no attribute 'peer'.*windows only: annotate 'y' as f32\[Window, …\]"),
    "one-value-a-row": ("all_reduce(x, outs=y, args=w, consume=lambda t, w: t * w)", 1, r"64 and 8 elements.*one dimension.*\[rows, 1\]"),
}  # fmt: skip


def _indent(body: str) -> str:
    return "\n".join("    " + line for line in body.splitlines())


@pytest.mark.parametrize("name", CASES)
def test_message(load: Load, name: str) -> None:
    body, line, words = CASES[name]
    module = load(f"{PRELUDE}@kernel\ndef k({PARAMETERS}):\n{_indent(body)}\n")
    with pytest.raises(commsir.CompileError) as caught:
        module.k.text()
    error = caught.value
    first = 1 + Path(str(module.__file__)).read_text().split("\n").index(f"def k({PARAMETERS}):")
    said = error.diagnostics[0]
    text = str(error).replace("\n", " ")
    assert re.search(words, text), text
    assert said.file == module.__file__
    places = [said, *said.notes]
    assert first + line in [p.line for p in places], (said.line, first, text)
    assert "^" in said.message  # the line of source, and a caret


def test_source_not_available() -> None:
    space: dict[str, object] = {}
    exec("import commsir\nfrom commsir import f32, Array\n@commsir.kernel\ndef k(y: f32[Array, 4]):\n    pass\n", space)
    with pytest.raises(commsir.CompileError, match="source of 'k' is not available.*save it as a .py file"):
        space["k"].text()  # type: ignore[attr-defined]


def test_notebook_cell() -> None:
    """What a notebook has compiled is in linecache, under a name that is not a file."""
    text = "import commsir\nfrom commsir import f32, Array\n@commsir.kernel\ndef k(y: f32[Array, 4]):\n    y[:] = 2.0\n"
    name = "<ipython-input-7-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, object] = {}
    exec(compile(text, name, "exec"), space)
    kernel = space["k"]
    assert isinstance(kernel, commsir.Kernel)
    assert kernel.simulate(1)["y"][0][3] == 2


ONE_CELL = """import commsir
from commsir import f32, Array
@commsir.kernel
def k(y: f32[Array, 1]):
    y[0] = NUMBER
"""


def test_a_module_that_is_loaded_again(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kernel is what its function was made of, also when another of its name and line came after it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "loaded_again.py"
    file.write_text(ONE_CELL.replace("NUMBER", "1.0"))
    module = importlib.import_module("loaded_again")
    old = module.k
    file.write_text(ONE_CELL.replace("NUMBER", "-22.25"))
    new = importlib.reload(module).k
    assert [k.simulate(1)["y"][0][0] for k in (new, old)] == [-22.25, 1]


@pytest.mark.parametrize("changed", [False, True])
def test_a_helper_whose_file_changes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, changed: bool) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    name = f"helper_changed_{changed}"
    helper = tmp_path / f"{name}.py"
    helper.write_text("def scale(t):\n    return t * 2.0\n")
    user = ONE_CELL.replace("import commsir\n", f"import commsir, {name}\n")
    (tmp_path / f"user_of_{name}.py").write_text(user.replace("NUMBER", f"1.0\n    y[:] = {name}.scale(y[:])"))
    module = importlib.import_module(f"user_of_{name}")
    if not changed:
        assert module.k.simulate(1)["y"][0][0] == 2
        return
    helper.write_text("def scale(t):\n    return t * 3000.0\n")
    with pytest.raises(commsir.CompileError, match=r"source of 'scale' is not in .*changed since it was imported"):
        module.k.simulate(1)


def test_a_helper_compiled_with_features_of_the_future(load: Load, tmp_path: pathlib.Path) -> None:
    """Its code is not what its file alone would give: exec hands on the __future__ imports of this file."""
    file = tmp_path / "executed.py"
    file.write_text("def scale(t):\n    return t * 2.0\n")
    user = load("@kernel\ndef k(y: f32[Array, 1]):\n    y[0] = scale(4.0)\n")
    exec(compile(file.read_text(), str(file), "exec"), vars(user))
    assert user.k.simulate(1)["y"][0][0] == 8


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("y", "'y' has no annotation.*f32"),
        ("y: 3", "'y' is annotated 3"),
        ("*y", r"no \*args"),
        ("y: 'f32[Arrays, 4]'", "Arrays.*did you mean 'Array'"),
        ('y: "f32[Array]"', "has no shape"),
        ('y: "f32[Array, 0.5]"', "0.5 is not a dimension"),
        ("größe: f32", "'größe' is not ASCII"),
        ('y: "Signal[1, 2]"', "a signal has a number of cells"),
        ('y: "Signal[0]"', "a signal has a number of cells"),
        ('y: "f32[Signal, 4]"', r"cells are i64: write i64\[Signal, 4\]"),
        ("y: f32[Array, 4] = 3", "'y' has a default, which only scalars have"),
    ],
)
def test_parameters(load: Load, parameters: str, words: str) -> None:
    module = load(f"@kernel\ndef k({parameters}):\n    pass\n")
    with pytest.raises(commsir.CompileError) as caught:
        module.k.text()
    assert re.search(words, str(caught.value).replace("\n", " ")), str(caught.value)


@pytest.mark.parametrize("returned", ["f32", "int", "'f32[Array, 4]'"])
def test_a_kernel_returns_nothing(load: Load, returned: str) -> None:
    module = load(f"@kernel\ndef k(y: f32[Array, 4]) -> {returned}:\n    y[0] = 1.0\n")
    with pytest.raises(commsir.CompileError, match="annotated to return (f32|int).*returns nothing"):
        module.k.text()


@pytest.mark.parametrize("returned", ["None", "'None'"])
def test_a_kernel_may_say_so(load: Load, returned: str) -> None:
    assert load(f"@kernel\ndef k(y: f32[Array, 4]) -> {returned}:\n    y[0] = 1.0\n").k.text()


def test_outside_a_kernel() -> None:
    with pytest.raises(commsir.UsageError, match=r"commsir.barrier works inside a function with @commsir.kernel"):
        commsir.barrier()
    with pytest.raises(commsir.UsageError, match="list of one array a rank"):
        commsir.all_reduce(np.zeros(4))


def test_called(load: Load) -> None:
    module = load("@kernel\ndef k(y: f32[Array, 4]):\n    y[:] = 1.0\n")
    with pytest.raises(commsir.UsageError, match=r"k.simulate\(ranks=…"):
        module.k(np.zeros(4))


SIMPLE = '@kernel\ndef k(x: Window["rows, 64", "f32"], y: f32[Array, "rows", 64], n: i64, s: Signal):\n    all_reduce(x, outs=y)\n'


@pytest.mark.parametrize(
    ("ranks", "inputs", "words"),
    [
        (2, {"z": 1}, "no parameter 'z'"),
        (2, {"s": 1}, "a signal.*take no input"),
        (2, {"x": np.zeros((4, 32))}, r"'x' has shape \[4, 32\], and the kernel has it as \[rows, 64\]"),
        (2, {"x": np.zeros((4, 64)), "y": np.zeros((5, 64))}, "'rows' is 4 elsewhere|kernel has it as"),
        (3, {"x": [np.zeros((4, 64))] * 2}, "'x' has 2 arrays for 3 ranks"),
        (None, {"x": np.zeros((4, 64))}, "how many ranks"),
        (2, {}, "the dimension 'rows' of 'x' is not known"),
        (2, {"x": np.array([["a"]])}, "elements of type"),
        (2, {"x": [np.zeros((4, 64)), np.zeros((5, 64))]}, "ranks have arrays of one shape"),
    ],
)  # fmt: skip
def test_inputs(load: Load, ranks: int | None, inputs: dict[str, object], words: str) -> None:
    with pytest.raises(commsir.UsageError, match=words):
        load(SIMPLE).k.simulate(ranks, inputs)


def test_integers_that_do_not_fit(load: Load) -> None:
    module = load("@kernel\ndef k(q: i32[Array, 2]):\n    q[0] = 1\n")
    with pytest.raises(commsir.UsageError, match="do not fit i32"):
        module.k.simulate(1, {"q": np.array([2**40, 0])})
    with pytest.raises(commsir.UsageError, match="round it first"):
        module.k.simulate(1, {"q": np.array([0.5, 0])})


STUCK = (
    "@kernel\ndef k(s: Signal, y: i64[Array, 1]):\n    if rank() == 1:\n        signal(s[0], 0)\n"
    "    wait_signal(s[0], ge=1)\n    y[0] = 1\n"
)


def test_undecided(load: Load) -> None:
    """What the checker cannot know, because data decide it, is not decided, and runs."""
    module = load(
        "@kernel\ndef k(y: i64[Array, 1], n: i64[Array, 1]):\n    for i in range(n[0]):\n        barrier()\n    y[0] = n[0]\n"
    )
    report = module.k.check(2)
    assert report.verdict == "not decided" and not report.proven
    assert "not known: it depends on data" in report.proof.reasons[0] and "not decided" in str(report)
    assert "not decided" in str(module.k.explain(2))
    run = module.k.simulate(2, {"n": [np.array([3])] * 2})
    assert run["y"][1][0] == 3 and "not decided" in str(run)


def test_proof_required(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a proof is required, what is not decided is refused, and what asks for no proof gets one."""
    text = "@kernel\ndef k(y: i64[Array, 1], n: i64[Array, 1]):\n    for i in range({}):\n        barrier()\n    y[0] = n[0]\n"
    for on, options in (("1", {}), ("true", {}), ("On", {"check": False})):
        monkeypatch.setenv("COMMSIR_REQUIRE_PROOF", on)
        assert load(text.format("3")).k.check(2).proven
        with pytest.raises(commsir.CheckError, match=r"is not proven, and a proof is required(.|\n)*not known"):
            load(text.format("n[0]")).k.check(2, **options)
    for off in ("0", "", "off", "False", "no"):
        monkeypatch.setenv("COMMSIR_REQUIRE_PROOF", off)
        assert not load(text.format("n[0]")).k.check(2).proven


def test_checker_points_at_python(load: Load) -> None:
    module = load(STUCK)
    with pytest.raises(commsir.CheckError, match=r"deadlock: rank \d, block 0 waits") as caught:
        module.k.check(ranks=3)
    assert caught.value.file == module.__file__
    assert "    wait_signal(s[0], ge=1)\n    ^" in str(caught.value)


def test_deadlock_has_its_events(load: Load) -> None:
    module = load(STUCK)
    with pytest.raises(commsir.DeadlockError) as caught:
        module.k.simulate(3, check=False)
    error = caught.value
    assert {w.rank for w in error.waiting} == {1, 2}
    assert "observed 0, expected >= 1" in str(error) and "wait_signal(s[0], ge=1)" in str(error)


def test_verifier_points_at_python(load: Load) -> None:
    """What the dialect alone knows is said of the line too."""
    module = load(
        "@kernel\ndef k(x: f32[Window, 8], y: f32[Array, 8]):\n    if rank() == 0:\n        all_reduce(x, outs=y)\n"
    )
    with pytest.raises(commsir.CompileError, match="C1") as caught:
        _ = module.k.ir
    assert caught.value.file == module.__file__
    assert "    all_reduce(x, outs=y)\n" in str(caught.value)
    assert caught.value.message == "the kernel is not valid"


def test_bounds_at_run_time(load: Load) -> None:
    module = load("@kernel\ndef k(y: f32[Array, 8], n: i64):\n    assert 0 <= n < 8, 'the row'\n    y[n] = 1.0\n")
    assert module.k.simulate(1, {"n": 7})["y"][0][7] == 1
    with pytest.raises(commsir.BoundsError, match="the row"):
        module.k.simulate(1, {"n": 8})


def test_failing_run_is_saved(load: Load, tmp_path: object) -> None:
    module = load(STUCK)
    with pytest.raises(commsir.DeadlockError) as caught:
        module.k.simulate(3, check=False)
    path = caught.value.save(f"{tmp_path}/run.zip")
    with pytest.raises(commsir.DeadlockError) as again:
        commsir.replay(path)
    assert again.value.line == caught.value.line and str(again.value) == str(caught.value)


def test_asserts_at_run_time(load: Load) -> None:
    kernel = load("@kernel\ndef k(x: f32[Array, 4], i: i64):\n    assert i != 2, 'never two'\n    x[i] = 1.0\n").k
    with pytest.raises(commsir.BoundsError, match="never two: i != 2 does not hold") as caught:
        kernel.simulate(1, {"i": 2})
    assert caught.value.line == 7 and "assert i != 2" in str(caught.value)
    with pytest.raises(commsir.BoundsError, match=r"write of x covers \[4, 4 \+ 1\), but the limit is 4") as caught:
        kernel.simulate(1, {"i": 4})
    assert caught.value.line == 8 and "x[i] = 1.0" in str(caught.value)


@pytest.mark.parametrize(
    ("ranks", "inputs", "words"),
    [
        ("2", {}, "ranks is '2', not a number of ranks"),
        (True, {}, "ranks is True"),
        (2, [np.zeros(4)], 'inputs is a list; it is a dict by parameter: {"x": …, "i": …}'),
        (2, np.zeros(4), 'inputs is a ndarray; it is a dict by parameter: {"x": …, "i": …}'),
        (2, [], 'inputs is a list; it is a dict by parameter: {"x": …, "i": …}'),
    ],
)
def test_arguments_of_simulate(load: Load, ranks: object, inputs: object, words: str) -> None:
    kernel = load("@kernel\ndef k(x: f32[Array, 4], i: i64):\n    x[i] = 1.0\n").k
    with pytest.raises(commsir.UsageError, match=re.escape(words)):
        kernel.simulate(ranks, inputs)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([np.ones(4, np.float32), np.ones(4)], "f32 on rank 0 and f64 on rank 1"),
        ([np.float32(1), np.float32(2)], r"rank 0 has a number, not an array; reshape it"),
        ([np.ones(4, bool)] * 2, "arrays of booleans are not known to kernels; convert them to int8"),
        ([np.array([200, 1], np.uint8)] * 2, r"numbers that do not fit i8: .*view\('int8'\)"),
    ],
)
def test_arrays_of_collectives(x: list[object], words: str) -> None:
    with pytest.raises(commsir.UsageError, match=words):
        commsir.all_reduce(x, op="max")


def test_paths_in_place_of_texts() -> None:
    with pytest.raises(commsir.UsageError, match=r"the source is 'sum.mlir', a path: pass the text"):
        commsir.simulate("sum.mlir", ranks=2)
    with pytest.raises(commsir.UsageError, match=r"the source is a PosixPath, not a text: pass its text"):
        commsir.simulate(Path("sum.mlir"), ranks=2)  # type: ignore[arg-type]


def test_options_in_the_words_of_python(load: Load) -> None:
    kernel = load("@kernel\ndef k(x: f32[Window, 8], y: f32[Array, 8]):\n    all_reduce(x, outs=y)\n").k
    with pytest.raises(commsir.UsageError, match=r"no option 'x'; arrays and scalars go into inputs={\"x\": …}"):
        kernel.simulate(2, x=np.zeros(8))
    with pytest.raises(commsir.UsageError, match=r"k\[…\] sets no grid: the number of blocks is an option"):
        kernel[4]
    with pytest.raises(commsir.UsageError, match=r"or raise memory_limit$"):
        kernel.simulate(4, memory_limit=1000)
    for option in ({"same": "z"}, {"vary": ["y", "z"]}):
        with pytest.raises(commsir.UsageError, match=rf"^{next(iter(option))}=.*: k has no parameter 'z'; it has x, y"):
            kernel.simulate(2, **option)
    for launches in (-1, 2.5, "2"):
        for ask in (kernel.check, kernel.explain):
            with pytest.raises(commsir.UsageError, match="^launches is .*, but must be a whole number of at least 0"):
                ask(2, launches=launches)
    assert kernel.explain(2, launches=2) and kernel.check(2, launches=2).launches == 2
    with pytest.raises(commsir.CheckError, match="error: the checker cannot follow 65 launches"):
        kernel.check(2, launches=65)


def test_arrays_that_no_memory_holds(load: Load) -> None:
    kernel = load("n = dims('n')\n@kernel\ndef k(x: f32[Array, n, n]):\n    x[0, 0] = 1.0\n").k
    with pytest.raises(commsir.UsageError, match=r"'x' of \[2147483648, 2147483648\] does not fit into this machine"):
        kernel.specialize(n=2**31).simulate(1)


def test_collectives_outside_say_where_they_are() -> None:
    x = [np.ones(4, np.float32)] * 2
    for options in ({"root": 5}, {"root": 1.0}, {"algorithm": "tree"}):
        with pytest.raises(commsir.CompileError) as caught:
            commsir.broadcast(x, **options)
        assert caught.value.file == __file__ and "commsir.broadcast(x, **options)" in str(caught.value)


def test_specialized_to_nonsense(load: Load) -> None:
    kernel = load('@kernel\ndef k(x: f32[Array, "n"]):\n    x[0] = 1.0\n').k
    for fixed, words in (
        ({"n": -3}, "n is -3, but must be a whole number of at least 0"),
        ({"n": True}, "n is True"),
        ({"blocks": 0}, "blocks is 0, but must be a whole number of at least 1"),
        ({"ranks": "2"}, "ranks is '2'"),
        ({"m": 1}, "has no dimension 'm'; there is n, ranks"),
    ):
        with pytest.raises(commsir.UsageError, match=words):
            kernel.specialize(**fixed)
    assert kernel.specialize(n=np.int64(4)).dims == {"n": 4}
    with pytest.raises(commsir.UsageError, match="a list of one array a rank"):
        commsir.all_reduce(["a", "b"])


def test_methods_are_no_kernels(load: Load) -> None:
    module = load("class C:\n    @kernel\n    def k(self, x: f32[Array, 4]):\n        x[0] = 1.0\n")
    with pytest.raises(commsir.CompileError, match="not a method(.|\n)*move it out of the class"):
        module.C.k.text()


def test_scalars_have_defaults(load: Load) -> None:
    kernel = load("@kernel\ndef k(x: f32[Array, 2], by: f32 = 1.5, *, i: index = 1):\n    x[i] = by\n").k
    assert kernel.simulate(1)["x"][0].tolist() == [0, 1.5]
    assert kernel.simulate(1, {"by": 2, "i": 0})["x"][0].tolist() == [2, 0]


@pytest.mark.parametrize(("option", "meant"), [("inptus", "inputs"), ("input", "inputs"), ("rnks", "ranks")])
def test_misspelled_options(load: Load, option: str, meant: str) -> None:
    """They are named before sizes that they would have given are missed."""
    text = "n = dims('n')\n@kernel\ndef k(x: f32[Window, n]):\n    barrier()\n"
    with pytest.raises(commsir.UsageError, match=f"no option '{option}'; did you mean '{meant}'"):
        load(text).k.simulate(**{option: 2})


def test_misspelled_names_of_the_package() -> None:
    """Tracebacks suggest a name where the exception has the module and the name."""
    with pytest.raises(AttributeError) as caught:
        commsir.all_gahter  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("all_gahter", commsir)


def test_unknown_names_of_options(load: Load) -> None:
    module = load("@kernel\ndef k(x: f32[Array, 8]):\n    x[0] = 1.0\n")
    for options, known in (({"protocol": "fast"}, "known are .*push"), ({"algorithm": "tree"}, "known are .*two_shot")):
        with pytest.raises(commsir.CompileError, match=known):
            module.k.simulate(2, {}, **options)
        with pytest.raises(commsir.CompileError, match=known):
            module.k.check(2, **options)


def test_sizes_that_are_not_known(load: Load) -> None:
    kernel = load("n, m = dims('n m')\n@kernel\ndef k(x: f32[Array, n, m]):\n    x[0, 0] = 1.0\n").k
    for ask in (kernel.check, kernel.explain):
        with pytest.raises(
            commsir.UsageError, match=rf"sizes n, m of k are not known: k.specialize\(n=…, m=…\).{ask.__name__}"
        ):
            ask(ranks=2)
    with pytest.raises(commsir.UsageError, match="the size m of k is not known"):
        kernel.specialize(n=2).check(ranks=2)
    kernel.specialize(n=2, m=3).check(ranks=2)


def test_no_ranks_at_all(load: Load) -> None:
    kernel = load("@kernel\ndef k(x: f32[Array, 2]):\n    x[0] = 1.0\n").k
    for ranks in (0, -1):
        with pytest.raises(commsir.UsageError, match=f"ranks is {ranks}, but must be at least 1"):
            kernel.simulate(ranks)


def test_arrays_where_tiles_are_meant(load: Load) -> None:
    head = "n, m = dims('n m')\n@kernel\ndef k(x: f32[Array, n], y: f32[Array, m, n]):\n"
    for body, words in (
        ("x[0] = sum(x)", r"sum, min and max take: x\[:\]"),
        ("x[0] = y.sum()", r"tiles have it: y\[i, :\].sum\(\)"),
        ("x[::2] = 1.0", r"for i in range\(start, stop, step\)"),
    ):
        with pytest.raises(commsir.CompileError, match=words):
            load(f"{head}    {body}\n").k.specialize(n=8, m=2).text()


def test_what_assertions_say(load: Load) -> None:
    kernel = load("@kernel\ndef k(x: f32[Array, 2]):\n    assert x[0] > 3, f'bad {x[0]} of {2}'\n").k
    with pytest.raises(commsir.CommsError) as caught:
        kernel.simulate(1)
    assert "bad {x[0]} of {2}: x[0] > 3 does not hold" in str(caught.value)


def test_sizes_that_no_memory_has(load: Load) -> None:
    """What is said of the text that a kernel is made into is shown where the kernel begins."""
    made = load('n = dims("n")\n# not here\n@kernel\ndef k(x: f32[Window, n]):\n    barrier()\n')
    for size in (2**62, 2**80):
        with pytest.raises(commsir.CompileError, match=r"def k\(x") as told:
            made.k.specialize(n=size).check(ranks=2)
        assert told.value.file == made.__file__ and told.value.line == 8


def test_shapes_of_unknown_arguments(load: Load) -> None:
    k = load("@kernel\ndef k(x: f32[Window, 8]):\n    barrier()\n").k
    assert k.check(ranks=2, shapes={"x": [8]}).ranks == 2
    for ask in (k.check, k.explain):
        with pytest.raises(commsir.UsageError, match="no argument 'zz'"):
            ask(ranks=2, shapes={"zz": [8]})


@pytest.mark.parametrize(
    "access", ["y[0] = a[1, j]", "y[0] = w[1, j]", "a[1, j] = 1", "a[0, j:j + 2] = 1", "y[0:2] = w[1, j:j + 2]"]
)
@pytest.mark.parametrize("place", [-1, 4])
def test_a_row_ends(load: Load, access: str, place: int) -> None:
    """Beyond it there is memory, of the next row: reads and slices are checked as stores are."""
    kernel = load(
        f"@kernel\ndef k(a: i64[Array, 3, 4], w: i64[Window, 3, 4], y: i64[Array, 2], j: index):\n    {access}\n"
    ).k
    with pytest.raises(commsir.BoundsError, match=r"dimension 1 of [aw] covers \[(-1|4), "):
        kernel.simulate(1, {"j": place})
    kernel.simulate(1, {"j": 2})
