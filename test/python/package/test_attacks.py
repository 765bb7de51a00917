"""Kernels that try to reach memory, code or time of others: refused with a line, or the run ends with an error.

ATTACKS has one row per kernel. comms-run runs each; one Python process runs all of them through the C API.
"""

import json
import os
import pathlib
import re
import sys

import commsir
import pytest
from test_hostile import edit, framed, kernel, program, start

INDEX = "  %n = arith.fptosi %v : f32 to i64\n  %i = arith.index_cast %n : i64 to index\n"
#: Where what was computed is seen.
USE = "  memref.store %w, %x[%c0] : memref<8xf32>"
BESIDE = "is not allowed next to a kernel"
LLVM = "LLVM dialect cannot be checked"
OPAQUE = "accesses through it cannot be checked"
NO_PLACE = "is not allowed in a kernel"
ATTRIBUTE = "has no place in the module of a kernel or on the kernel"
TYPE = "which kernels do not have"
ARGUMENT = "op C[34]: argument 1 is"
OF_PASSES = "is written by passes, and a kernel cannot state it"
LEAVES = "but the limit is|out of bounds: every offset"


def beside(text: str) -> str:
    return f"{text}\n{kernel('')}"


def body(text: str) -> str:
    return str(kernel(INDEX + text))


def loads(index: str, text: str = "") -> str:
    """A load by an index that the kernel computes."""
    return body(f"{text}  %w = memref.load %x[{index}] : memref<8xf32>\n{USE}")


def product(row: str = "%c0", term: str = "%c0", depth: str = "%c128", addends: int = 0, place: str = "%c0",
            tile: str = "[16, 2]") -> str:  # fmt: skip
    """A product of fp8 matrices by scales of 128 terms, with addends, at places that the kernel computes."""
    memory = {"a": "256x256xf8E4M3FN", "y": "256x256xf32", "s": "256x2xf32", "t": "2x2xf32"}
    lines = [f"%{name} = comms.scratch : memref<{shape}>" for name, shape in memory.items()]
    places = " plus " + ", ".join([f"%s[{place}, %c0]"] * addends) if addends else ""
    types = " plus " + ", ".join(["memref<256x2xf32>"] * addends) if addends else ""
    lines += [
        "%c128 = arith.constant 128 : index",
        "%c127 = arith.constant 127 : index",
        "%k = arith.remui %i, %c127 : index",
        f"comms.contract %a[{row}, {term}], %a[%c0, %c0] to %y[%c0, %c0] tile {tile} depth {depth} scaled by %s, %t",
        f"  {places} : memref<256x256xf8E4M3FN>, memref<256x256xf8E4M3FN>, memref<256x256xf32>",
        f"  scaled by memref<256x2xf32>, memref<2x2xf32> {types}",
    ]
    return body("\n".join(lines))


def copy_by_engine(at: str = "%c0", there: str = "%c0", count: str = "%c1", peer: str = "%c0") -> str:
    arguments = "%x: memref<8xf32>, %w: !comms.window<8xf32>"
    text = "  %c1 = arith.constant 1 : index\n  %team = comms.team world\n"
    text += f"  comms.engine_copy %x[{at}] to %w[{there}] count {count} at {peer} of %team"
    return str(kernel(f"{INDEX}{text} : memref<8xf32>, !comms.window<8xf32>", arguments))


VECTORS = ("  %at = arith.constant dense<99> : vector<4xi32>\n  %ones = arith.constant dense<1> : vector<4xi1>\n"
           "  %p = arith.constant dense<0.0> : vector<4xf32>\n")  # fmt: skip
MEMREFS = ("  %m = memref.alloca() : memref<2xf32>\n  %a = memref.cast %x : memref<8xf32> to memref<?xf32>\n"
           "  %b = memref.cast %m : memref<2xf32> to memref<?xf32>\n"
           "  %t = arith.cmpi eq, %i, %c0 : index\n")  # fmt: skip
#: What is run: the error's words, or "" where the kernel is right.
ATTACKS: dict[str, tuple[str, str]] = {
    # Next to the kernel.
    "global": (beside("llvm.mlir.global internal @g(1 : i32) : i32"), BESIDE),
    "global with code": (
        beside("llvm.mlir.global @g() : i32 { %0 = llvm.mlir.constant(1 : i32) : i32 llvm.return %0 : i32 }"), BESIDE),
    "section": (beside('llvm.mlir.global external @g(1 : i32) {section = ".init_array"} : i32'), BESIDE),
    "destructors": (beside("llvm.mlir.global_dtors dtors = [], priorities = [], data = []"), BESIDE),
    "comdat": (beside("llvm.comdat @c { llvm.comdat_selector @any any }"), BESIDE),
    "module flags": (
        beside('llvm.module_flags [#llvm.mlir.module_flag<error, "wchar_size", 4 : i32>]'), BESIDE),
    "declaration": (beside("llvm.func @memcpy(!llvm.ptr, !llvm.ptr, i64) -> !llvm.ptr"), BESIDE),
    "personality": (beside('llvm.func @p() attributes {personality = @q, garbageCollector = "x", passthrough = '
                           '["naked"]} { llvm.return }\nllvm.func @q()'), BESIDE),
    "GPU module": (beside("gpu.module @m { gpu.func @f() kernel { gpu.return } }"), BESIDE),
    "GPU binary": (beside('gpu.binary @b [#gpu.object<#nvvm.target, "BLOB">]'), BESIDE),
    "global memref": (beside('memref.global "private" @g : memref<4xf32> = dense<1.0>'), BESIDE),
    "function": (beside("func.func @malloc(%a: i64) -> i64 { return %a : i64 }"), ""),
    "reproducer": (beside('{-# external_resources: { mlir_reproducer: { pipeline: "builtin.module(canonicalize)", '
                          "disable_threading: true, verify_each: false } } #-}"), ""),
    # On the kernel.
    **{f"attribute {name}": (kernel("", attributes=f", {name} = {value}"), ATTRIBUTE) for name, value in {
        "llvm.linkage": "#llvm.linkage<external>", "llvm.target_features": '#llvm.target_features<["+x"]>',
        "gpu.known_block_size": "array<i32: 1, 1, 1>", "nvvm.maxntid": "array<i32: 1>"}.items()},
    **{f"attribute {name}": (kernel("", attributes=f", {name}"), "has no attribute") for name in (
        'passthrough = ["naked"]', "personality = @p", 'garbageCollector = "shadow-stack"', 'section = ".text"')},
    **{f"argument {name}": (kernel("", f"%x: memref<8xf32> {{{name}}}"), ATTRIBUTE) for name in (
        "llvm.noalias", "llvm.align = 4096 : i64", "llvm.byval = i32", "llvm.dereferenceable = 99999 : i64")},
    # What passes tell each other: a text would be believed.
    **{f"{name} = {value}": (kernel("", attributes=f", {name} = {value}"), OF_PASSES) for name, value in {
        "comms.one_round": "unit",
        "comms.shared_channels": "unit", "comms.args": "[]", "comms.sites": "[1]", "comms.ranks": "77",
        "comms.blocks": "-1", "comms.lsa_size": "0", "comms.launch": "{threads = 999999 : i64}",
        "comms.param_bytes": "-1", "comms.arena_bytes": "-1", "comms.threads": "-5", "comms.cluster": "-3"}.items()},
    **{f"argument {name}": (kernel("", f"%x: memref<8xf32>, %z: {kind} {{{name}}}"), OF_PASSES) for name, kind in {
        "comms.nccl": "memref<8xf32>", 'comms.shared_slots = "data"': "!comms.window<8xf32>",
        "comms.prefetch": "!comms.window<8xf32>", "comms.alignment = 4096": "memref<8xf32>"}.items()},
    **{f"{name} on an op": (body(f"  %w = memref.load %x[%c0] {{{name}}} : memref<8xf32>\n{USE}"), OF_PASSES)
       for name in ("comms.alignment = 4096", "comms.canonical", "comms.stale")},
    "a loop without interrupts": (body(f"  scf.for %j = %c0 to %i step %i {{\n  %w = memref.load %x[%c0] : "
                                       f"memref<8xf32>\n{USE}\n  }} {{comms.tile}}"), OF_PASSES),
    # They are dropped: what is not checked stays "not checked".
    "comms.proof": (kernel("", attributes=', comms.proof = {verdict = "proven"}'), ""),
    "comms.choices": (kernel("", attributes=", comms.choices = [1]"), ""),
    # Each operator is a level of a tree, which was copied at each level.
    "comms.computes of 20,000 operators": (
        kernel("", attributes=f', comms.computes = {{x = "{" + ".join(["x[i]"] * 20000)}"}}'),
        "more than 4096 operators"),
    "comms.assumes = 7": (kernel("", attributes=", comms.assumes = 7"), "C12: comms.assumes is"),
    "comms.assumes of a zero": (
        kernel("", attributes=r', comms.assumes = ["packets_cumulative\00"]'), "C12: comms.assumes is"),
    "two roots": (kernel("", "%x: memref<8xf32>, %r: index {comms.run_time_root}, %q: index {comms.run_time_root}"),
                  "comms.run_time_root|has no value"),
    # Products with scales and addends, and copies by engines.
    "product": (product(addends=1), ""),
    "product of a row outside": (product(row="%i"), LEAVES),
    "product of a term outside": (product(term="%i"), f"begins with term|{LEAVES}"),
    "product within a block of scales": (product(term="%k", depth="%c0"), "first term in its block"),
    "product of too many terms": (product(depth="%i"), LEAVES),
    "addend outside": (product(addends=1, place="%i"), LEAVES),
    "addend that is too narrow": (product(addends=1, tile="[16, 16]"), "16 elements from offset 0 leave the addend"),
    "65 addends": (product(addends=65), "there are 65 addends; give at most 64"),
    **{f"copy by an engine, {name}": (copy_by_engine(**{name: "%i"}), LEAVES)
       for name in ("at", "there", "count", "peer")},
    "triple": ('module attributes {llvm.target_triple = "nvptx64"} {\n' + kernel("") + "}", ATTRIBUTE),
    "ranks": (kernel("").replace("ranks = 1", "ranks = 9223372036854775807"), "ranks is 9223372036854775807"),
    "blocks": (kernel("").replace("blocks = 1", "blocks = -5"), "blocks is -5"),
    # Steps that folders find to be 0: the run ends all the same.
    **{f"step {name}": (body(f"  %z = {text}\n  scf.for %j = %c0 to %i step %z {{\n"
                             "    %w = memref.load %x[%c0] : memref<8xf32>\n"
                             "    memref.store %w, %x[%j] : memref<8xf32>\n  }"), "step of a loop")
       for name, text in {
           "subtracted": "arith.subi %i, %i : index", "times 0": "arith.muli %i, %c0 : index",
           "exclusive or": "arith.xori %i, %i : index", "and": "arith.andi %i, %c0 : index",
           "least": "arith.minsi %c0, %i : index"}.items()},
    # Other code.
    "assembly": (body('  llvm.inline_asm "nop", "" : () -> ()'), LLVM),
    "pointer": (body("  %p = llvm.inttoptr %n : i64 to !llvm.ptr"), LLVM),
    "undefined value": (body("  %u = llvm.mlir.undef : i64"), LLVM),
    "call": (beside("func.func @f() { return }").replace("\n  comms.return", "\n  func.call @f() : () -> ()\n  "
             "comms.return"), "calls no functions"),
    "launch": (body("  gpu.launch blocks(%a,%b,%c) in (%d=%c0,%e=%c0,%f=%c0) threads(%g,%h,%j) in (%k=%c0,%l=%c0,"
                    "%m=%c0) { gpu.terminator }"), NO_PLACE),
    "shared memory": (body("  %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>"), NO_PLACE),
    # Views of other memory.
    "reinterpret_cast": (body("  %r = memref.reinterpret_cast %x to offset: [100], sizes: [8], strides: [1] : "
                              "memref<8xf32> to memref<8xf32, strided<[1], offset: 100>>"), OPAQUE),
    "view": (body("  %m = memref.alloca() : memref<16xi8>\n  %r = memref.view %m[%i][] : memref<16xi8> to "
                  "memref<4xf32>"), OPAQUE),
    "transpose": (body("  %r = memref.transpose %x (i) -> (i) : memref<8xf32> to memref<8xf32, strided<[1]>>"), OPAQUE),
    "reshape": (body("  %s = memref.alloca() : memref<1xindex>\n  %g = memref.reshape %x(%s) : (memref<8xf32>, "
                     "memref<1xindex>) -> memref<?xf32>"), OPAQUE),
    "larger cast": (body(MEMREFS + "  %c = memref.cast %a : memref<?xf32> to memref<800xf32>"), OPAQUE),
    "unranked cast": (body("  %a = memref.cast %x : memref<8xf32> to memref<*xf32>"), OPAQUE),
    "address": (body("  %p = memref.extract_aligned_pointer_as_index %x : memref<8xf32> -> index"), OPAQUE),
    "metadata": (body("  %b, %o, %s, %t = memref.extract_strided_metadata %x : memref<8xf32> -> memref<f32>, index, "
                      "index, index"), OPAQUE),
    "aliasing": (body("  %a, %b = memref.distinct_objects %x, %x : memref<8xf32>, memref<8xf32>"), OPAQUE),
    "alignment": (body("  %a = memref.assume_alignment %x, 4096 : memref<8xf32>"), OPAQUE),
    "free": (body("  memref.dealloc %x : memref<8xf32>"), OPAQUE),
    "view with a variable offset": (
        body("  %s = memref.subview %x[%i][4][1] : memref<8xf32> to memref<4xf32, strided<[1], offset: ?>>"), OPAQUE),
    "view backwards": (body("  %s = memref.subview %x[4][4][-1] : memref<8xf32> to memref<4xf32, strided<[-1], offset: "
                            "4>>"), OPAQUE),
    "stride that overflows": (body(
        "  %s = memref.subview %x[1][2][9223372036854775807] : memref<8xf32> to memref<2xf32, strided<"
        "[9223372036854775807], offset: 1>>\n  %c1 = arith.constant 1 : index\n  %w = memref.load %s[%c1] : "
        f"memref<2xf32, strided<[9223372036854775807], offset: 1>>\n{USE}"), "reads elements"),
    "memory chosen at run time": (body(MEMREFS + "  %s = arith.select %t, %a, %b : memref<?xf32>\n  %w = memref.load "
                                       f"%s[%i] : memref<?xf32>\n{USE}"), "memory that is chosen"),
    "scratch memory that grows": (body("  %m = memref.alloca(%i) : memref<?xf32>\n  memref.store %v, %m[%c0] : memref<"
                                       f"?xf32>\n  %w = memref.load %m[%c0] : memref<?xf32>\n{USE}"), "1 GiB"),
    "scratch memory with strides": (body("  %m = memref.alloca() : memref<4xf32, strided<[1000]>>\n  memref.store %v, "
                                         "%m[%c0] : memref<4xf32, strided<[1000]>>\n  %w = memref.load %m[%c0] : "
                                         f"memref<4xf32, strided<[1000]>>\n{USE}"), "identity layout"),
    # Many elements at once.
    "transfer": (body("  %r = vector.transfer_read %x[%i], %v : memref<8xf32>, vector<4xf32>"), OPAQUE),
    "gather": (body(VECTORS + "  %g = vector.gather %x[%c0] [%at], %ones, %p : memref<8xf32>, vector<4xi32>, "
                    "vector<4xi1>, vector<4xf32> into vector<4xf32>"), OPAQUE),
    "scatter": (body(VECTORS + "  vector.scatter %x[%c0] [%at], %ones, %p : memref<8xf32>, vector<4xi32>, "
                     "vector<4xi1>, vector<4xf32>"), OPAQUE),
    "compressed store": (body(VECTORS + "  vector.compressstore %x[%i], %ones, %p : memref<8xf32>, vector<4xi1>, "
                              "vector<4xf32>"), OPAQUE),
    "expanding load": (body(VECTORS + "  %q = vector.expandload %x[%i], %ones, %p : memref<8xf32>, vector<4xi1>, "
                            "vector<4xf32> into vector<4xf32>"), OPAQUE),
    "long vector": (body("  %q = arith.constant dense<0.0> : vector<64xf32>\n  vector.store %q, %x[%c0] : "
                         "memref<8xf32>, vector<64xf32>"), r"elements \[0, 64\)"),
    "vector at the end": (body("  %c5 = arith.constant 5 : index\n  %q = vector.load %x[%c5] : memref<8xf32>, "
                               f"vector<4xf32>\n  %w = vector.extract %q[0] : f32 from vector<4xf32>\n{USE}"),
                          "elements|out of bounds"),
    "element by a variable": (body("  %q = vector.broadcast %v : f32 to vector<4xf32>\n  %w = vector.extract %q[%i] : "
                                   f"f32 from vector<4xf32>\n{USE}"), "not defined"),
    "atomic": (body("  %q = memref.atomic_rmw addf %v, %x[%i] : (f32, memref<8xf32>) -> f32"), OPAQUE),
    "DMA": (body("  %m = memref.alloca() : memref<8xf32>\n  %t = memref.alloca() : memref<1xi32>\n  memref.dma_start "
                 "%x[%i], %m[%c0], %i, %t[%c0] : memref<8xf32>, memref<8xf32>, memref<1xi32>"), OPAQUE),
    "prefetch": (body("  memref.prefetch %x[%i], read, locality<3>, data : memref<8xf32>"), OPAQUE),
    # Arithmetic. The first element is 1e9.
    "truncation": (loads("%j", "  %t = arith.trunci %n : i64 to i5\n  %u = arith.extsi %t : i5 to i64\n  %b = "
                         "arith.constant -1 : i64\n  %m = arith.minsi %u, %b : i64\n  %j = arith.index_cast %m : i64 "
                         "to index\n"), LEAVES),
    "product that overflows": (loads("%j", "  %b = arith.constant 2305843009213693953 : index\n  %j = arith.muli %i, "
                                     "%b : index\n"), LEAVES),
    "map that overflows": (loads("%j", "  %j = affine.apply affine_map<(d0) -> (d0 * 9223372036854775807 + "
                                 "9223372036854775807)>(%i)\n"), LEAVES),
    "division by zero": (loads("%j", "  %j = arith.divsi %i, %c0 : index\n"), LEAVES),
    "modulo zero": (loads("%j", "  %j = affine.apply affine_map<(d0)[s0] -> (d0 mod s0)>(%i)[%c0]\n"),
                    f"non-positive|{LEAVES}"),
    "step backwards": (body("  %z = arith.subi %c0, %i : index\n  scf.for %j = %c0 to %i step %z {\n  %w = memref.load "
                            f"%x[%j] : memref<8xf32>\n{USE}\n  }}"), "step of a loop"),
    "largest index": (loads("%j", "  %j = arith.constant 9223372036854775807 : index\n"), "reads elements"),
    # Types.
    "i65": (body("  %t = arith.extsi %n : i64 to i65"), TYPE),
    "f128": (body("  %t = arith.extf %v : f32 to f128"), TYPE),
    "memref of memrefs": (kernel("", "%x: memref<8xf32>, %y: memref<1xmemref<8xf32>>"), ARGUMENT),
    "memref of vectors": (kernel("", "%x: memref<8xf32>, %y: memref<2xvector<4xf32>>"), ARGUMENT),
    "pointer argument": (kernel("", "%x: memref<8xf32>, %y: !llvm.ptr"), ARGUMENT),
    "layout by a map": (
        kernel("", "%x: memref<8xf32>, %y: memref<4xf32, affine_map<(d0) -> (d0 mod 2)>>"), ARGUMENT),
    "100 dimensions": (kernel("", f"%x: memref<8xf32>, %y: memref<{'1x' * 100}f32>"), TYPE),
}  # fmt: skip


@pytest.mark.parametrize("what", ATTACKS)
def test_comms_run_refuses(what: str, tmp_path: pathlib.Path) -> None:
    text, message = ATTACKS[what]
    path = tmp_path / "attack.mlir"
    path.write_text(text)
    (tmp_path / "x.py").write_text("import numpy as np; np.save('x.npy', np.full(8, 1e9, np.float32))")
    start([sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); exec(open('x.py').read())"])
    status, said = start(
        [program("comms-run"), "--quiet", "--time-limit=20", f"--input=x={tmp_path / 'x.npy'}", str(path)]
    )
    judge(what, message, status, said)


def judge(what: str, message: str, status: int, said: str) -> None:
    assert 0 <= status < 9, f"{what}: it ended with {status}: {said[-500:]}"
    assert (status != 0) == bool(message), f"{what}: {status}: {said[:500]}"
    assert re.search(message, said), f"{what}: {said[:500]}"


#: Prints, for each kernel of a list in JSON, how commsir.simulate ended.
PYTHON = """
import json, sys
import commsir
import numpy as np
for text in json.load(sys.stdin):
    try:
        commsir.simulate(text, ranks=1, arrays={"x": [np.full(8, 1e9, np.float32)]}, time_limit=20)
        print(json.dumps([0, ""]), flush=True)
    except commsir.CommsError as error:
        print(json.dumps([1, str(error)]), flush=True)
"""


def test_python_refuses() -> None:
    # Those whose arguments or ranks a call of simulate does not have end in another error of it.
    names = [name for name in ATTACKS if "%y" not in ATTACKS[name][0] and name not in ("ranks", "blocks")]
    given = json.dumps([ATTACKS[name][0] for name in names]).encode()
    status, said = start([sys.executable, "-c", PYTHON], given)
    assert status == 0, said[-500:]
    answers = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert len(answers) == len(names), said[-500:]
    for name, (failed, error) in zip(names, answers, strict=True):
        judge(name, ATTACKS[name][1], failed, error)


def test_a_fifo_is_no_saved_run(tmp_path: pathlib.Path) -> None:
    """Nothing waits for a process that would write to it."""
    os.mkfifo(tmp_path / "run.zip")
    with pytest.raises(commsir.UsageError, match="is not a regular file"):
        commsir.replay(tmp_path / "run.zip")


#: Texts that are not of Unicode or that C would cut, and a shape that is longer than any.
SURROGATES = {
    "tables": "commsir.load_tables('\\udc80')",
    "folder": "commsir.Group(0, 1, folder='\\udc80')",
    "name": "commsir.Group(0, 1, folder=FOLDER, name='\\udc80')",
    "kernel": "commsir.Group(0, 1, folder=FOLDER).kernel('\\udc80')",
    "zero byte in a folder": "commsir.Group(0, 1, folder=FOLDER + '\\0b')",
    "zero byte in a name": "commsir.Group(0, 1, folder=FOLDER, name='\\0')",
    "zero byte in a kernel": "commsir.Group(0, 1, folder=FOLDER).kernel('\\0')",
    "zero byte in tables": "commsir.load_tables(FOLDER + '\\0')",
    "shape": "commsir.Group(0, 1, folder=FOLDER).window((1,) * 100000)",
}


@pytest.mark.parametrize("call", SURROGATES)
def test_arguments_that_cannot_be_passed_on(call: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(commsir.UsageError, match="cannot be passed on|zero byte|at most 64"):
        eval(SURROGATES[call], {"commsir": commsir, "FOLDER": str(tmp_path / "store")})


#: Kernels with long chains, whose compilation once took memory that grows with the square of the length.
CHAINS = {
    "arith.select": ("  %s{n} = arith.select %t, %s{p}, %c0 : index\n", 20000),
    "arith.shli": ("  %s{n} = arith.shli %s{p}, %i : index\n", 20000),
    "arith.divsi": ("  %s{n} = arith.divsi %s{p}, %i : index\n", 20000),
}


def chain(name: str) -> str:
    op, length = CHAINS[name]
    text = "  %t = arith.cmpi eq, %i, %c0 : index\n  %s0 = arith.addi %i, %c0 : index\n"
    text += "".join(op.format(n=n, p=n - 1) for n in range(1, length))
    return loads(f"%s{length - 1}", text)


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains(name: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "chain.mlir"
    path.write_text(chain(name))
    # The limit of `start` is the time; that of memory is here.
    command = f"ulimit -v 2000000; exec {program('comms-run')} --quiet --time-limit=20 {path}"
    status, said = start(["bash", "-c", command])
    assert status in (0, 7), said[-500:]


def test_the_editor_does_not_wait_for_a_check() -> None:
    """A session ends at once while a check runs, or before it has begun."""
    text = kernel("".join(f"  memref.store %v, %x[%c0] : memref<8xf32> // {n}\n" for n in range(20000)))
    status, said = edit("file:///slow.mlir", text, framed(b'{"jsonrpc":"2.0","method":"nosuch"}'))
    assert status == 0 and '"id":2,' in said, said[-500:]


#: Arguments and variables of a wrong form, by program: each ends in an error or is told to be none, and nothing waits.
COMMANDS: dict[str, tuple[str, list[str], dict[str, str]]] = {
    **{f"COMMSIR_TABLES={value[:12]}": ("comms-run", [], {"COMMSIR_TABLES": value})
       for value in ("/dev/zero", "/proc/self/environ", "x" * 5000)},
    **{f"COMMSIR_CACHE_SIZE={value[:12]}": ("comms-run", [], {"COMMSIR_CACHE_SIZE": value})
       for value in ("-1", "9" * 5000, "18446744073709551615T")},
    **{f"COMMSIR_CACHE_DIR={value[:12]}": ("comms-run", [], {"COMMSIR_CACHE_DIR": value})
       for value in ("/dev/null/x", "/proc/self/mem", "%s%n", "a" * 5000)},
    "COMMSIR_DEBUG": ("comms-run", [], {"COMMSIR_DEBUG": "," * 3000}),
    "TMPDIR": ("comms-run", [], {"TMPDIR": "/dev/null"}),
    **{f"comms-run {value[:30]}": ("comms-run", [value], {}) for value in (
        "--launches=9223372036854775807", "--seed=99999999999999999999",
        "--time-limit=nan", "--time-limit=1e308", "--max-steps=-1", "--input=x=/dev/zero", "--input=x=@" + "9" * 2000,
        "--output=x=/dev/full", "--blocks=65537", "--tile-size=9223372036854775807")},
    "comms-opt of what has no end": ("comms-opt", ["/dev/zero"], {}),
    "comms-translate of what has no end": ("comms-translate", ["--comms-to-ptx", "/dev/zero"], {}),
    **{f"comms-bench {value[:30]}": ("comms-bench", ["--target=cpu", value], {}) for value in (
        "--ranks=" + "9" * 5000, "--sizes=9223372036854775807", "--sizes=1:99999999999999999999:2",
        "--compare=/dev/zero")},
    **{f"comms-translate {value[:30]}": ("comms-translate", ["--comms-to-ptx", value], {}) for value in (
        "--ranks=-1", "--ranks=9223372036854775807", "--threads=1073741824", "--threads=0")},
}  # fmt: skip


@pytest.mark.parametrize("what", COMMANDS)
def test_commands_of_a_wrong_form(what: str, tmp_path: pathlib.Path) -> None:
    name, arguments, variables = COMMANDS[what]
    path = tmp_path / "kernel.mlir"
    path.write_text(kernel("  memref.store %v, %x[%c0] : memref<8xf32>"))
    own = {"comms-run": ["--quiet", "--time-limit=20", str(path)], "comms-translate": [str(path)]}.get(name, [])
    command = ["env", "-C", str(tmp_path), *(f"{key}={value}" for key, value in variables.items())]
    status, said = start([*command, program(name), *own, *arguments])
    assert 0 <= status < 9, f"{status}: {said[-500:]}"
    assert status == 0 or "error" in said or "Unknown" in said, said[-500:]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernel.mlir"]


#: What is no message of the protocol, or means nothing.
MESSAGES = {
    "negative length": b"Content-Length: -5\r\n\r\n{}",
    "length of 20 digits": b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "a batch": framed(b"[" + b'{"jsonrpc":"2.0","id":1,"method":"shutdown"},' * 1000 + b"{}]"),
    "half a surrogate": framed(b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}'),
    "an object for an id": framed(b'{"jsonrpc":"2.0","id":{"a":1},"method":"shutdown"}'),
    "a position": framed(
        b'{"jsonrpc":"2.0","id":3,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///a.mlir"},'
        b'"position":{"line":-9223372036854775808,"character":9223372036854775807}}}'
    ),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_messages_to_the_language_server(what: str) -> None:
    status, said = edit("file:///a.mlir", kernel(""), MESSAGES[what])
    assert status in (0, 1), f"{status}: {said[-500:]}"
