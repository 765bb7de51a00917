"""The IR of each construct: one line of Python, and the op that it becomes."""

# ruff: noqa: E501 (tables, and programs in strings)
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

Load = Callable[[str], ModuleType]

PARAMETERS = (
    "x: f32[Window, 8, 64], y: f32[Array, 8, 64], h: bf16[Array, 64], q: i32[Array, 64], box: i64[Window, 64], "
    "s: Signal[4], c: Counter[2], n: i64, i: index, v: f32"
)

# What is written, and what has to be found in the IR, in this order.
CASES = {
    "team": ("t = team('lsa')\n    y[0, 0] = f32(t.size)", ["comms.team lsa", "comms.size"]),
    "split": ("t = team().inner(2)\n    y[0, 0] = t.rank", ["comms.team_split %world inner 2", "comms.rank %t"]),
    "split-op": ("t = team_split(team(), 'outer', 2)\n    barrier(t)", ["team_split %world outer 2", "comms.barrier %t"]),
    "translate": ("y[0, 0] = team('lsa').translate(0, team())", ["comms.translate_rank %c0 from %lsa to %world"]),
    "ids": ("y[block_id(), num_blocks()] = epoch()", ["comms.epoch", "comms.block_id", "comms.num_blocks", "comms.check_bounds", "comms.tile_store"]),
    "local": ("y[:] = 0\n    a = local(x)\n    y[0] = a[1]", ["comms.local %x", "comms.tile_load %x_local[%c64]"]),
    "peer": ("a = x.peer(1)\n    y[0] = a[2]", ["comms.peer %x at %c1 of %world", "comms.tile_load"]),
    "multimem": (
        "a = x.multimem()\n    multimem_store(y[0], a)\n    y[1] = multimem_load_reduce('sum', a, 0, 64)\n"
        "    multimem_reduce('sum', y[0], a, 64)",
        ["comms.multimem %x of %world", "comms.multimem_store", "comms.multimem_load_reduce sum", "comms.multimem_reduce sum"],
    ),
    "load": (
        "t = x.load(i, 16, valid=n)\n    y.store(t, 8, valid=4)",
        ["arith.index_cast %n : i64 to index", "comms.tile_load %x_local[%i] valid %", "-> tensor<16xf32>", "comms.tile_store %t, %y[%c8] valid %c4"],
    ),
    "product": (
        "p = x[0:4, 0:8] @ y[0:8, 0:16]\n    p += x[4:8, 0:8] @ y[0:8, 0:16]\n    contract(x[0:8, 0:4], p, y[:, i:min(i + 16, 64)], accumulate=True)",
        [
            "comms.scratch : memref<4x16xf32>",
            "comms.contract %x_local[%c0, %c0], %y[%c0, %c0] to %p[%c0, %c0] tile [4, 16] depth %c8",
            "comms.contract %x_local[%c4, %c0], %y[%c0, %c0] to %p[%c0, %c0] tile [4, 16] depth %c8 {accumulate}",
            "comms.check_bounds", "comms.contract %x_local[%c0, %c0], %p[%c0, %c0] to %y[%c0, %i] tile [8, 16] depth %c4 columns %", "{accumulate}",
        ],
    ),
    "product_plus": (
        "y[0:4, 0:16] = x[0:4, 0:8] @ x[0:8, 0:16] + x[4:8, 0:16]\n    contract(x[0:4, 0:8], x[0:8, 0:16], y[4:8, 0:16], plus=(x[i:i + 4, 0:16], x[4:8, 0:16])[:2])",
        [
            "to %y[%c0, %c0] tile [4, 16] depth %c8 plus %x_local[%c4, %c0] :", "to %y[%c4, %c0] tile [4, 16] depth %c8 plus %x_local[%i, %c0], %x_local[%c4, %c0] :",
        ],
    ),
    "row": ("y[3] = x[i]", ["arith.muli %i, %c64", "comms.tile_load", "comms.tile_store %", "%y[%c192]"]),
    "part-of-row": ("y[1, 0:16] = x[2, i:i + 16]", ["arith.addi %c128, %i", "-> tensor<16xf32>", "%y[%c64]"]),
    "tile-number": ("y[i * 2:(i + 1) * 2] = 1.0", ["dense<1.0> : tensor<128xf32>", "comms.tile_store"]),
    "element": ("y[1, 2] = y[i, 3] + v", ["memref.load %y[%", "arith.addf", "comms.tile_store %", "%y[%c66]"]),
    "negative": ("q[-1] = 5", ["arith.constant 5 : i32", "comms.tile_store %", "%q[%c63]"]),
    "promotion": (
        "t = h[:] + v\n    y[0] = t * 2\n    q[:] = q[:] + 1",
        ["arith.extf", "to tensor<64xf32>", "comms.splat %v", "arith.addf", "dense<2.0> : tensor<64xf32>", "arith.mulf", "dense<1> : tensor<64xi32>", "arith.addi"],
    ),
    "weak": ("h[:] = h[:] * 0.5 + 1", ["arith.mulf %", ": tensor<64xbf16>", "arith.addf %", ": tensor<64xbf16>"]),
    "scalar-types": ("a = n + i\n    y[0, a] = i32(n) + q[0]", ["arith.index_cast", "arith.addi", "arith.trunci %n : i64 to i32", "arith.sitofp"]),
    "modulo": ("y[0, (rank() + 1) % size()] = 0", ["arith.remui"]),
    "modulo-signed": ("y[0, (rank() - 1) % size()] = 0", ["arith.remsi", "arith.cmpi slt", "arith.select"]),
    "floor": ("q[0] = n // 4", ["arith.floordivsi"]),
    "power": ("y[0] = x[0] ** 3 + x[1] ** 0.5", ["arith.mulf", "arith.mulf", "math.sqrt"]),
    "functions": (
        "y[0] = exp(x[0]) + rsqrt(x[1]) + tanh(x[2]) + math.sin(x[3]) + np.maximum(x[4], 0.0)",
        ["math.exp", "math.rsqrt", "math.tanh", "math.sin", "arith.maximumf"],
    ),
    "where": ("y[0] = where(x[0] > 0, x[0], 0.0)", ["arith.cmpf ogt", "arith.select %", ": tensor<64xi1>, tensor<64xf32>"]),
    "reduce": ("y[0] = x[0] - x[0].max() / row_reduce('sum', x[1])", ["comms.row_reduce max", "comms.row_reduce sum", "arith.divf", "comms.broadcast_row"]),
    "item": ("y[0, 0] = x[0].mean().item() * v", ["comms.row_reduce avg", "tensor.extract %", "comms.tile_store"]),
    "iota": ("q[:] = iota(64) + np.arange(64)", ["comms.iota : tensor<64xi32>", "arith.addi"]),
    "parts": (
        "t = x[0] + 1\n    y[0] = concatenate((t[8:], t[:8]))\n    y[1] = np.concatenate(((t > 0)[-60:-3], t[:7] > 1))",
        ["tensor.extract_slice %", "[8] [56] [1]", "tensor.concat dim(0) %", "arith.extui", "[4] [57] [1]"],
    ),
    "bits": ("q[:] = bitcast(x[0], i32) & ~7 ^ (q[:] << 2) | 1", ["arith.bitcast", "dense<-8>", "arith.andi", "arith.shli", "arith.xori", "arith.ori"]),
    "fma": ("y[0] = fma(x[0], x[1], 1.0)", ["math.fma"]),
    "casts": ("q[:] = x[0].astype(i32)\n    h[:] = x[0]", ["arith.fptosi", "arith.truncf"]),
    "scratch": ("a = scratch(f32, 64, space='shared')\n    a[:] = x[0]\n    y[0] = a[:]", ["comms.scratch : memref<64xf32, #comms.space<shared>>"]),
    "put": ("put(y, x, 1)", ["comms.put %y[%c0] to %x[%c0] count %c512 at %c1 of %world"]),
    "put-part": (
        "put(y[1], x[rank()], 1, counted=c[1])",
        ["comms.put %y[%c64] to %x[%", "count %c64 at %c1 of %world counted %c[%c1] : !comms.counter<2>"],
    ),
    "put-count": ("put(y[0, 0:64], x[i, 0:64], 1, count=n)", ["arith.index_cast %n", 'check_bounds "the count of a part of memory" %c0, %', "comms.put %y[%c0] to %x[%"]),
    "put-count-from": ("put(y[0, 0], x[i, 0], 1, count=100)", ["comms.put %y[%c0] to %x[%", "count %c100 at %c1"]),
    "put-signal": ("put_signal(y, x, 1, s[2], add=n)", ["comms.put_signal", "then add %s[%c2] value %n"]),
    "get": ("get(x[0], y[1], 1)", ["comms.get %x[%c0] to %y[%c64] count %c64 at %c1 of %world"]),
    "signal": (
        "signal(s[0], 1)\n    signal(s[1], 0, set=3, order='relaxed')",
        ["comms.signal inc %s[%c0] at %c1 of %world", "comms.signal set %s[%c1] value %", "order relaxed"],
    ),
    "wait": (
        "a = wait_signal(s[0], ge=epoch())\n    b = wait_signal_from(s[1], 1, eq=2)\n    y[0] = x.load(0, 64, after=a)",
        ["comms.wait_signal %s[%c0] ge %", "comms.wait_signal_from %s[%c1] eq %", "from %c1 of %world", "after %a"],
    ),
    "cells": (
        "q[0] = i32(read_signal(s[0]))\n    reset_signal(s[0])\n    wait_counter(c[0], ge=1)\n    q[1] = i32(read_counter(c[0]))\n"
        "    reset_counter(c[1])",
        ["comms.read_signal", "comms.reset_signal", "comms.wait_counter", "comms.read_counter", "comms.reset_counter"],
    ),
    "order": ("flush()\n    fence('release', 'gpu', 'async')", ["comms.flush %world", "comms.fence release gpu proxy async"]),
    "barriers": (
        "barrier(extent='grid')\n    a = barrier_arrive()\n    b = barrier_wait(a)",
        ["comms.barrier %world grid", "comms.barrier_arrive %world block", "comms.barrier_wait %a"],
    ),
    "packets": (
        "packet_store(x[0], box.peer(1), 0, epoch())\n    y[0] = packet_load(box, 0, 64, f32, epoch())",
        ["comms.packet_store", "comms.packet_load", "memref<64xi64> -> tensor<64xf32>"],
    ),
    "poison": (
        "poison_fill(x, 0, 64)\n    poison_store(y[0], x.peer(1))\n    y[1] = poison_load(x, 0, 64)",
        ["comms.poison_fill %x_local[%c0] count %c64", "comms.poison_store", "comms.poison_load"],
    ),
    "bulk": (
        "a = bulk_copy(x[0], y[1])\n    b = bulk_wait(a)",
        ["comms.bulk_copy %x_local[%c0] to %y[%c64] count %c64", "comms.bulk_wait %a"],
    ),
    "engine": ("engine_copy(y, x, 1)", ["comms.engine_copy %y[%c0] to %x[%c0] count %c512 at %c1"]),
    "channels": (
        "ch = channel(64, f32, pattern='pairwise', slots=2, protocol='pull')\n    send(y[0], ch[1], 1)\n    channel_barrier(ch)\n"
        "    y[1] = recv(ch[1], 0)",
        ["comms.channel 0 pairwise over %world slots 2 : !comms.channel<pull, 64xf32>", "comms.send %", "to %c1", "comms.channel_barrier", "comms.recv"],
    ),
    "role": ("with role('a', 0, 1):\n        y[0] = 1.0", ['comms.role "a" blocks 0 to 1', "comms.tile_store"]),
    "bounds": ("assert 0 <= n < 8, 'n'\n    assert v > 0", ['comms.check_bounds "n" %', "in %c8", 'comms.check_bounds "assert v > 0"']),
    "for": ("for k in range(8):\n        y[k] = x[k]", ["scf.for %k = %c0 to %c8 step %c1 {"]),
    "for-carried": (
        "a = 0\n    for k in range(1, n, 2):\n        a += x[k]\n    y[0] = a",
        ["%a = scf.for %k = %c1 to %", "iter_args(%a_1 = %", "-> (tensor<64xf32>)", "scf.yield", "comms.tile_store %a"],
    ),
    "for-down": ("for k in range(7, -1, -1):\n        y[k] = x[k]", ["scf.for %k = %c0 to", "arith.subi %c7"]),
    "for-peers": ("for p in for_peers(reversed=True):\n        signal(s[0], p)", ["comms.for_peers %world reversed as %p {"]),
    "unrolled": ("for k, w in enumerate((1.0, 2.0)):\n        y[k] = w", ["dense<1.0>", "%y[%c0]", "dense<2.0>", "%y[%c64]"]),
    "break": (
        "for k in range(8):\n        if q[k] == 0:\n            break\n        y[k] = x[k]",
        ["scf.while", "scf.condition", "scf.if"],
    ),
    "while": ("k = 0\n    while k < n:\n        k += 2\n    q[0] = k", ["scf.while (%k_1 = %c0)", "scf.condition", "arith.addi", "to i32"]),
    "if": ("if rank() == 0:\n        y[0] = 1.0\n    elif n > 3:\n        y[1] = 2.0", ["scf.if", "} else {", "scf.if"]),
    "if-value": ("a = v if n > 0 else 0.5\n    y[0, 0] = a", ["scf.if", "-> (f32)", "scf.yield %v"]),
    "static-if": ("if math.pi > 3:\n        y[0] = 1.0\n    else:\n        nonsense()", ["comms.tile_store"]),
    "and": ("if n > 0 and q[n - 1] > 0:\n        y[0] = 1.0", ["scf.if", "-> (i1)", "memref.load", "scf.yield %false"]),
    "and-plain": ("if n > 0 and v > 0:\n        y[0] = 1.0", ["arith.andi"]),
    "chained": ("if 0 <= n < 8:\n        y[0] = 1.0", ["arith.cmpi sle", "arith.cmpi slt", "arith.andi"]),
    "helper": ("def twice(t, by=2):\n        return t * by\n    y[0] = twice(x[0])", ["arith.mulf"]),
    "lambda": ("g = lambda t: t + 1\n    y[0] = g(x[0])", ["arith.addf"]),
    "all_reduce": (
        "all_reduce(x, outs=y, op='max', algorithm='ring', protocol='ll')",
        ["comms.all_reduce max %world ins(%x : !comms.window<8x64xf32>) outs(%y : memref<8x64xf32>)", '{algorithm = "ring", protocol = "ll"}'],
    ),
    "consume": (
        "all_reduce(x, outs=y, args=(h,), consume=lambda t, w: t * w)",
        ["args(%h : memref<64xbf16>)", "consume (%", "tensor<64xf32>, %h_row: tensor<64xbf16>)", "arith.extf", "arith.mulf", "comms.yield"],
    ),
    "produce": (
        "all_reduce(x, outs=y, produce=lambda t: t * 0.5)",
        ["produce (%x_row: tensor<64xf32>)", "arith.mulf", "comms.yield"],
    ),
    "broadcast": ("broadcast(x, root=1, outs=y)", ["comms.broadcast root 1 %world"]),
    "reduce-op": ("reduce(x, op='sum', root=0, outs=y)", ["comms.reduce sum root 0 %world"]),
    "all_to_all": ("all_to_all(x, outs=y)", ["comms.all_to_all %world"]),
    "send_recv": ("send_recv(x, 0, 1, outs=y)", ["comms.send_recv %world from 0 to 1"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def kernels(load: Load) -> ModuleType:
    """All kernels in one file, as a user would have them."""
    text = ""
    for name, (body, _) in CASES.items():
        text += f"@kernel\ndef {name.replace('-', '_')}_({PARAMETERS}):\n    {body}\n\n"
    return load(text)


@pytest.mark.parametrize("name", CASES)
def test_construct(kernels: ModuleType, name: str) -> None:
    """The library verifies the IR, and the ops are there in order."""
    ir = getattr(kernels, name.replace("-", "_") + "_").ir
    at = 0
    for wanted in CASES[name][1]:
        found = ir.find(wanted, at)
        # Constants stand at the top: they may come before or after what they are used by.
        if found < 0 and ("constant" in wanted or "dense" in wanted):
            found = ir.find(wanted)
        assert found >= 0, f"no {wanted!r} in\n{ir}"
        at = at if "dense" in wanted or "constant" in wanted or "team" in wanted or "local" in wanted else found


def test_locations(load: Load) -> None:
    """Every op says where it stands in the file of Python."""
    module = load("@kernel\ndef k(y: f32[Array, 64]):\n    t = y[:] + 1.0\n    y[:] = t\n")
    text = module.k.text()
    file = module.__file__
    for line in text.splitlines():
        if "comms." in line and "kernel @" not in line or "arith." in line:
            assert " loc(#l" in line
    assert f'loc("{file}":7:9)' in text  # y[:]
    assert f'loc("{file}":7:' in text and f'loc("{file}":8:5)' in text


def test_specialize(load: Load) -> None:
    """Named dimensions are fixed by arrays, by name, or stay `?`."""
    module = load(
        '@kernel\ndef k(x: Window["rows, n", "f32"], y: f32[Array, "rows", "n"]):\n'
        "    for r in range(x.shape[0]):\n        y[r] = x[r]\n"
        '@kernel\ndef open_(x: f32[Window, "rows", 64], y: f32[Array, "rows", 64]):\n    all_reduce(x, outs=y)\n'
    )
    assert module.k.symbols == ["rows", "n"]
    fixed = module.k.specialize(rows=4, n=32)
    assert "!comms.window<4x32xf32>" in fixed.ir and "tensor<32xf32>" in fixed.ir
    with pytest.raises(module.CompileError, match="known when the kernel is compiled"):
        _ = module.k.ir
    assert "!comms.window<?x64xf32>" in module.open_.ir
    with pytest.raises(module.UsageError, match="did you mean 'rows'"):
        module.k.specialize(row=3)


def test_every_op_can_be_written(load: Load) -> None:
    """Each op of the dialect has a function of its name; what passes insert alone is left out."""
    import re
    from pathlib import Path

    import commsir

    spec = (Path(__file__).parents[3] / "docs" / "Spec.md").read_text()
    ops = set(re.findall(r"^### comms\.(\w+)$", spec, re.MULTILINE))
    inserted = {"kernel", "return", "yield", "extent", "record_access", "record_sync", "math"}
    assert ops - inserted <= set(dir(commsir)), sorted(ops - inserted - set(dir(commsir)))


def test_channels_are_numbered_from_zero(load: Load) -> None:
    """The body of a loop is translated more than once, until its types are known."""
    module = load(
        "@kernel\ndef k(x: f32[Array, 4, 64], n: i64):\n    for i in range(n):\n"
        "        ch = channel(64, f32)\n        send(x[i], ch[0])\n    other = channel(64, f32)\n    send(x[0], other[0])\n"
    )
    text = module.k.text()
    assert "comms.channel 0 " in text and "comms.channel 1 " in text
