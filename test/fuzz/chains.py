"""Measures how the time to check, compile and run a kernel grows with the length of a chain of one op.

CHAINS has one row per op and form: text in which {p} is the result of the previous op and {n} names this one's.
Each chain of N links ends in a store. NESTS has nested regions. comms-run gets each row, or with --ptx
comms-translate, which compiles it for a GPU. A row fails if it takes more than --seconds of processor time, or if the
program crashes.

Usage: chains.py FOLDER_OF_PROGRAMS [--ptx] [--length N] [--seconds S] [--only NAME...]
"""

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

HEAD = """comms.kernel @k(%x: memref<16xi64>, %f: memref<16xf32>, %w: !comms.window<16xi64>, %s: !comms.signal<16>,
                %c: !comms.counter<16>) attributes {ranks = 1, blocks = 1} {
  %team = comms.team world
  %own = comms.local %w : !comms.window<16xi64> -> memref<16xi64>
  %k0 = arith.constant 0 : index
  %k1 = arith.constant 1 : index
  %k2 = arith.constant 2 : index
  %k7 = arith.constant 7 : index
  %k16 = arith.constant 16 : index
  %z = arith.constant 0 : i64
  %flag = arith.constant 7 : i32
  %tile = arith.constant dense<3> : tensor<4xi64>
  %floats = arith.constant dense<3.0> : tensor<4xf32>
  %scratch = comms.scratch : memref<16xi64>
  %ones = arith.constant dense<1> : vector<4xi1>
  %n = memref.load %x[%k0] : memref<16xi64>
  %i = arith.index_cast %n : i64 to index
  %v = memref.load %f[%k0] : memref<16xf32>
  %t = arith.cmpi slt, %i, %k7 : index
  %q = vector.broadcast %v : f32 to vector<4xf32>
  %qi = vector.broadcast %n : i64 to vector<4xi64>
"""
#: What a chain begins with, and how its end is stored.
KINDS = {
    "index": ("arith.addi %i, %k0 : index", "%e = arith.index_cast {p} : index to i64\n"
              "memref.store %e, %x[%k0] : memref<16xi64>"),
    "i64": ("arith.addi %n, %z : i64", "memref.store {p}, %x[%k0] : memref<16xi64>"),
    "f32": ("arith.addf %v, %v : f32", "memref.store {p}, %f[%k0] : memref<16xf32>"),
    "vf": ("arith.addf %q, %q : vector<4xf32>", "vector.store {p}, %f[%k0] : memref<16xf32>, vector<4xf32>"),
    "vi": ("arith.addi %qi, %qi : vector<4xi64>", "vector.store {p}, %x[%k0] : memref<16xi64>, vector<4xi64>"),
    "tile": ("arith.addi %tile, %tile : tensor<4xi64>",
             "comms.tile_store {p}, %x[%k0] : tensor<4xi64>, memref<16xi64>"),
    "floats": ("arith.addf %floats, %floats : tensor<4xf32>",
               "comms.tile_store {p}, %f[%k0] : tensor<4xf32>, memref<16xf32>"),
    "memory": ("memref.cast %x : memref<16xi64> to memref<?xi64>",
               "%e = memref.load {p}[%k0] : memref<?xi64>\nmemref.store %e, %x[%k1] : memref<16xi64>"),
}  # fmt: skip
TYPES = {"vf": "vector<4xf32>", "vi": "vector<4xi64>", "tile": "tensor<4xi64>", "floats": "tensor<4xf32>"}

INTEGERS = """addi subi muli andi ori xori shli shrsi shrui divsi divui remsi remui ceildivsi ceildivui floordivsi maxsi
maxui minsi minui"""
INDEXES = "add sub mul divs divu ceildivs ceildivu floordivs rems remu maxs maxu mins minu shl shrs shru and or xor"
FLOATS = "addf subf mulf divf maximumf minimumf maxnumf minnumf"
FUNCTIONS = """exp exp2 expm1 log log2 log1p sin cos tan tanh sinh cosh asin acos atan asinh acosh atanh erf erfc sqrt
rsqrt cbrt floor ceil round roundeven trunc absf"""

CHAINS: dict[str, tuple[str, str]] = {}
for _op in INTEGERS.split():
    for _kind, _other in (("index", "%i"), ("i64", "%n"), ("vi", "%qi"), ("tile", "%tile")):
        _type = TYPES.get(_kind, _kind)
        CHAINS[f"arith.{_op} {_kind}"] = (_kind, f"{{n}} = arith.{_op} {{p}}, {_other} : {_type}")
    CHAINS[f"arith.{_op} twice"] = ("index", f"{{n}} = arith.{_op} {{p}}, {{p}} : index")
    CHAINS[f"arith.{_op} constant"] = ("index", f"{{n}} = arith.{_op} {{p}}, %k7 : index")
    CHAINS[f"arith.{_op} reversed"] = ("index", f"{{n}} = arith.{_op} %i, {{p}} : index")
for _op in INDEXES.split():
    CHAINS[f"index.{_op}"] = ("index", f"{{n}} = index.{_op} {{p}}, %i")
    CHAINS[f"index.{_op} constant"] = ("index", f"{{n}} = index.{_op} {{p}}, %k7")
CHAINS["index.casts"] = ("index", "{n}a = index.casts {p} : index to i32\n{n} = index.casts {n}a : i32 to index")
CHAINS["index.castu"] = ("index", "{n}a = index.castu {p} : index to i32\n{n} = index.castu {n}a : i32 to index")
CHAINS["index.cmp"] = ("index", "{n}a = index.cmp slt({p}, %i)\n{n} = arith.select {n}a, {p}, %k7 : index")
for _op in FLOATS.split():
    for _kind, _other in (("f32", "%v"), ("vf", "%q"), ("floats", "%floats")):
        _type = TYPES.get(_kind, _kind)
        CHAINS[f"arith.{_op} {_kind}"] = (_kind, f"{{n}} = arith.{_op} {{p}}, {_other} : {_type}")
CHAINS["arith.negf"] = ("f32", "{n} = arith.negf {p} : f32")
for _op in FUNCTIONS.split():
    CHAINS[f"math.{_op}"] = ("f32", f"{{n}} = math.{_op} {{p}} : f32")
for _op in ("atan2", "powf", "copysign"):
    CHAINS[f"math.{_op}"] = ("f32", f"{{n}} = math.{_op} {{p}}, %v : f32")
CHAINS["math.fma"] = ("f32", "{n} = math.fma {p}, %v, {p} : f32")
for _op in ("absi", "ctlz", "cttz", "ctpop"):
    CHAINS[f"math.{_op}"] = ("i64", f"{{n}} = math.{_op} {{p}} : i64")
CHAINS["math.ipowi"] = ("i64", "{n} = math.ipowi {p}, %n : i64")
CHAINS["math.fpowi"] = ("f32", "{n} = math.fpowi {p}, %flag : f32, i32")
for _op in ("addui_extended", "mulsi_extended", "mului_extended"):
    _types = "i64, i1" if _op == "addui_extended" else "i64"
    CHAINS[f"arith.{_op}"] = ("i64", f"{{n}}, {{n}}o = arith.{_op} {{p}}, %n : {_types}")
CHAINS.update({
    "arith.cmpi": ("index", "{n}a = arith.cmpi slt, {p}, %k7 : index\n{n} = arith.select {n}a, {p}, %i : index"),
    "arith.cmpf": ("f32", "{n}a = arith.cmpf olt, {p}, %v : f32\n{n} = arith.select {n}a, {p}, %v : f32"),
    "arith.select one": ("index", "{n} = arith.select %t, {p}, %k7 : index"),
    "arith.select false": ("index", "{n} = arith.select %t, %k7, {p} : index"),
    "arith.select minimum": ("index", "{n}a = arith.cmpi slt, {p}, %i : index\n"
                             "{n} = arith.select {n}a, {p}, %i : index"),
    "arith.trunci": ("i64", "{n}a = arith.trunci {p} : i64 to i13\n{n} = arith.extsi {n}a : i13 to i64"),
    "arith.extui": ("i64", "{n}a = arith.trunci {p} : i64 to i32\n{n} = arith.extui {n}a : i32 to i64"),
    "arith.index_cast": ("i64", "{n}a = arith.index_cast {p} : i64 to index\n"
                         "{n} = arith.index_cast {n}a : index to i64"),
    "arith.index_castui": ("i64", "{n}a = arith.index_castui {p} : i64 to index\n"
                           "{n} = arith.index_castui {n}a : index to i64"),
    "arith.fptosi": ("f32", "{n}a = arith.fptosi {p} : f32 to i64\n{n} = arith.sitofp {n}a : i64 to f32"),
    "arith.fptoui": ("f32", "{n}a = arith.fptoui {p} : f32 to i64\n{n} = arith.uitofp {n}a : i64 to f32"),
    "arith.extf": ("f32", "{n}a = arith.extf {p} : f32 to f64\n{n} = arith.truncf {n}a : f64 to f32"),
    "arith.truncf bf16": ("f32", "{n}a = arith.truncf {p} : f32 to bf16\n{n} = arith.extf {n}a : bf16 to f32"),
    "arith.bitcast": ("f32", "{n}a = arith.bitcast {p} : f32 to i32\n{n} = arith.bitcast {n}a : i32 to f32"),
    "arith.constant": ("index", "{n}a = arith.constant {m} : index\n{n} = arith.addi {p}, {n}a : index"),
    "affine.apply": ("index", "{n} = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 3)>({p}, %i)"),
    "affine floordiv": ("index", "{n} = affine.apply affine_map<(d0) -> (d0 floordiv 3 + 1)>({p})"),
    "affine ceildiv": ("index", "{n} = affine.apply affine_map<(d0) -> (d0 ceildiv 3 + 1)>({p})"),
    "affine mod": ("index", "{n} = affine.apply affine_map<(d0) -> (d0 mod 7 + 1)>({p})"),
    "affine.min": ("index", "{n} = affine.min affine_map<(d0, d1) -> (d0 + 1, d1)>({p}, %i)"),
    "affine.max": ("index", "{n} = affine.max affine_map<(d0, d1) -> (d0 - 1, d1)>({p}, %i)"),
    # Control flow.
    "scf.if": ("index", "{n} = scf.if %t -> index {{\n scf.yield {p} : index\n}} else {{\n scf.yield %i : index\n}}"),
    "scf.if same": ("index", "{n}a = arith.addi {p}, %i : index\nscf.if %t {{\n memref.store %n, %x[%k1] : "
                    "memref<16xi64>\n}}\n{n} = arith.addi {n}a, %k1 : index"),
    "scf.if empty": ("index", "scf.if %t {{\n}}\n{n} = arith.addi {p}, %k1 : index"),
    "scf.if stores": ("index", "scf.if %t {{\n memref.store %n, %x[%k1] : memref<16xi64>\n}}\n"
                      "{n} = arith.addi {p}, %k1 : index"),
    "scf.if in a row": ("i64", "scf.if %t {{\n memref.store %n, %x[%k{d}] : memref<16xi64>\n}}"),
    "scf.if not": ("index", "{n}a = arith.cmpi slt, {p}, %k7 : index\n{n} = scf.if {n}a -> index {{\n {n}b = "
                   "arith.addi {p}, %k1 : index\n scf.yield {n}b : index\n}} else {{\n scf.yield {p} : index\n}}"),
    "scf.if data": ("index", "{n}a = memref.load %x[%k{d}] : memref<16xi64>\n{n}b = arith.cmpi slt, {n}a, %n : i64\n"
                    "{n} = scf.if {n}b -> index {{\n {n}c = arith.addi {p}, %k1 : index\n scf.yield {n}c : index\n}} "
                    "else {{\n scf.yield {p} : index\n}}"),
    # Ops of the same operands, each with another region.
    "scf.if one condition": ("index", "{n} = scf.if %t -> index {{\n {n}b = arith.muli {p}, %i : index\n scf.yield "
                             "{n}b : index\n}} else {{\n scf.yield {p} : index\n}}"),
    "scf.for one range": ("index", "{n} = scf.for %j{m} = %k0 to %i step %k1 iter_args(%a{m} = %i) -> index {{\n "
                          "{n}b = arith.minsi {p}, %a{m} : index\n scf.yield {n}b : index\n}}"),
    "scf.index_switch one": ("index", "{n} = scf.index_switch %i -> index\ncase 1 {{\n {n}b = arith.muli {p}, %i : "
                             "index\n scf.yield {n}b : index\n}}\ndefault {{\n scf.yield {p} : index\n}}"),
    "scf.while one": ("index", "{n} = scf.while (%a{m} = %i) : (index) -> index {{\n {n}c = arith.cmpi slt, %a{m}, {p} "
                      ": index\n scf.condition({n}c) %a{m} : index\n}} do {{\n^bb0(%b{m}: index):\n {n}d = arith.addi "
                      "%b{m}, %k1 : index\n scf.yield {n}d : index\n}}"),
    # A load that may be the one before, if no region between them writes.
    "scf.if stores, loads": ("i64", "{n}a = memref.load %x[%k{d}] : memref<16xi64>\n{n}b = arith.cmpi slt, {n}a, {p} : "
                             "i64\nscf.if {n}b {{\n vector.store %q, %f[%k1] : memref<16xf32>, vector<4xf32>\n}}\n"
                             "{n} = arith.addi {p}, {n}a : i64"),
    "scf.for": ("index", "{n} = scf.for %j{m} = %k0 to %k2 step %k1 iter_args(%a{m} = {p}) -> index {{\n {n}b = "
                "arith.addi %a{m}, %j{m} : index\n scf.yield {n}b : index\n}}"),
    "scf.for to it": ("index", "{n} = scf.for %j{m} = %k0 to {p} step %k16 iter_args(%a{m} = %i) -> index {{\n {n}b = "
                      "arith.minsi %a{m}, %j{m} : index\n scf.yield {n}b : index\n}}"),
    "scf.for stores": ("i64", "scf.for %j{m} = %k0 to %k16 step %k1 {{\n memref.store %n, %x[%j{m}] : "
                       "memref<16xi64>\n}}"),
    "scf.while": ("index", "{n} = scf.while (%a{m} = {p}) : (index) -> index {{\n {n}c = arith.cmpi slt, %a{m}, %k7 : "
                  "index\n scf.condition({n}c) %a{m} : index\n}} do {{\n^bb0(%b{m}: index):\n {n}d = arith.addi %b{m}, "
                  "%k1 : index\n scf.yield {n}d : index\n}}"),
    "scf.index_switch": ("index", "{n} = scf.index_switch {p} -> index\ncase 1 {{\n scf.yield %i : index\n}}\ndefault "
                         "{{\n scf.yield {p} : index\n}}"),
    "scf.execute_region": ("index", "{n} = scf.execute_region -> index {{\n {n}a = arith.addi {p}, %i : index\n "
                           "scf.yield {n}a : index\n}}"),
    "cf.br": ("index", "{n}a = arith.addi {p}, %i : index\ncf.br ^b{m}({n}a : index)\n^b{m}({n}: index):"),
    "cf.cond_br": ("index", "{n}a = arith.addi {p}, %i : index\ncf.cond_br %t, ^b{m}({n}a : index), ^b{m}({p} : "
                   "index)\n^b{m}({n}: index):"),
    "cf.switch": ("index", "cf.switch %flag : i32, [\n default: ^b{m}(%k1 : index),\n 1: ^b{m}({p} : index)\n]\n"
                  "^b{m}({n}: index):"),
    "cf.br empty": ("index", "cf.br ^b{m}({p} : index)\n^b{m}({n}: index):"),
    "cf.br stores": ("i64", "memref.store %n, %x[%k{d}] : memref<16xi64>\ncf.br ^b{m}\n^b{m}:"),
    "cf.cond_br joins": ("index", "cf.cond_br %t, ^c{m}, ^d{m}\n^c{m}:\n{n}a = arith.addi {p}, %i : index\n"
                         "cf.br ^b{m}({n}a : index)\n^d{m}:\n{n}c = arith.muli {p}, %i : index\n"
                         "cf.br ^b{m}({n}c : index)\n^b{m}({n}: index):"),
    "cf.cond_br stores": ("i64", "cf.cond_br %t, ^c{m}, ^b{m}\n^c{m}:\nmemref.store %n, %x[%k{d}] : memref<16xi64>\n"
                          "cf.br ^b{m}\n^b{m}:"),
    "cf.cond_br data": ("i64", "{n}a = memref.load %x[%k{d}] : memref<16xi64>\n{n}b = arith.cmpi slt, {n}a, {p} : i64\n"
                        "cf.cond_br {n}b, ^c{m}, ^b{m}({p} : i64)\n^c{m}:\n{n}c = arith.addi {p}, {n}a : i64\n"
                        "memref.store {n}c, %x[%k{d}] : memref<16xi64>\ncf.br ^b{m}({n}c : i64)\n^b{m}({n}: i64):"),
    "cf.cond_br ends": ("i64", "cf.cond_br %t, ^b{m}, ^c{m}\n^c{m}:\ncomms.return\n^b{m}:"),
    "cf.cond_br loops": ("index", "cf.br ^c{m}(%k0 : index)\n^c{m}({n}a: index):\n{n} = arith.addi {n}a, %k1 : index\n"
                         "{n}c = arith.cmpi slt, {n}, %k2 : index\ncf.cond_br {n}c, ^c{m}({n} : index), ^b{m}\n^b{m}:"),
    "cf.switch joins": ("i64", "cf.switch %flag : i32, [\n default: ^b{m},\n 1: ^c{m}\n]\n^c{m}:\n"
                        "memref.store %n, %x[%k{d}] : memref<16xi64>\ncf.br ^b{m}\n^b{m}:"),
    "cf.switch data": ("index", "{n}a = arith.index_cast {p} : index to i32\ncf.switch {n}a : i32, [\n "
                       "default: ^b{m}(%k1 : index),\n 1: ^b{m}({p} : index),\n 2: ^c{m}\n]\n^c{m}:\n"
                       "memref.store %n, %x[%k{d}] : memref<16xi64>\ncf.br ^b{m}(%k7 : index)\n^b{m}({n}: index):"),
    # Memory.
    "memref.load": ("i64", "{n}a = memref.load %x[%k{d}] : memref<16xi64>\n{n} = arith.addi {p}, {n}a : i64"),
    "memref.load by it": ("i64", "{n}i = arith.index_cast {p} : i64 to index\n{n}b = arith.remui {n}i, %k16 : index\n"
                          "{n} = memref.load %x[{n}b] : memref<16xi64>"),
    "memref.load checked": ("i64", "{n}i = arith.index_cast {p} : i64 to index\n"
                            "{n} = memref.load %x[{n}i] : memref<16xi64>"),
    "memref.store": ("i64", "memref.store {p}, %x[%k{d}] : memref<16xi64>\n{n} = arith.addi {p}, %n : i64"),
    "memref.store checked": ("i64", "memref.store {p}, %x[%i] : memref<16xi64>\n{n} = arith.addi {p}, %n : i64"),
    "memref.alloca": ("i64", "{n}a = memref.alloca() : memref<2xi64>\nmemref.store {p}, {n}a[%k1] : memref<2xi64>\n"
                      "{n} = memref.load {n}a[%k1] : memref<2xi64>"),
    "memref.cast": ("memory", "{n} = memref.cast {p} : memref<?xi64> to memref<?xi64>"),
    "memref.copy": ("i64", "memref.copy %x, %own : memref<16xi64> to memref<16xi64>\n{n} = arith.addi {p}, %n : i64"),
    "memref.dim": ("index", "{n}a = memref.dim %x, %k0 : memref<16xi64>\n{n} = arith.addi {p}, {n}a : index"),
    "memref.collapse_shape": ("i64", "{n}a = memref.expand_shape %x [[0, 1]] output_shape [4, 4] : memref<16xi64> into "
                              "memref<4x4xi64>\n{n}b = memref.collapse_shape {n}a [[0, 1]] : memref<4x4xi64> into "
                              "memref<16xi64>\n{n} = memref.load {n}b[%k7] : memref<16xi64>"),
    "memref.subview": ("i64", "{n}a = memref.subview %x[1][8][1] : memref<16xi64> to memref<8xi64, strided<[1], "
                       "offset: 1>>\n{n}b = memref.load {n}a[%k7] : memref<8xi64, strided<[1], offset: 1>>\n"
                       "{n} = arith.addi {p}, {n}b : i64"),
    # Vectors.
    "vector.broadcast": ("f32", "{n}a = vector.broadcast {p} : f32 to vector<4xf32>\n"
                         "{n} = vector.extract {n}a[1] : f32 from vector<4xf32>"),
    "vector.reduction": ("f32", "{n}a = vector.broadcast {p} : f32 to vector<4xf32>\n"
                         "{n} = vector.reduction <add>, {n}a : vector<4xf32> into f32"),
    "vector.shuffle": ("vf", "{n} = vector.shuffle {p}, %q [3, 4, 1, 0] : vector<4xf32>, vector<4xf32>"),
    "vector.insert": ("vf", "{n} = vector.insert %v, {p} [2] : f32 into vector<4xf32>"),
    "vector.interleave": ("vf", "{n}a = vector.interleave {p}, %q : vector<4xf32> -> vector<8xf32>\n"
                          "{n}, {n}b = vector.deinterleave {n}a : vector<8xf32> -> vector<4xf32>"),
    "vector.shape_cast": ("vf", "{n}a = vector.shape_cast {p} : vector<4xf32> to vector<2x2xf32>\n"
                          "{n} = vector.shape_cast {n}a : vector<2x2xf32> to vector<4xf32>"),
    "vector.bitcast": ("vf", "{n}a = vector.bitcast {p} : vector<4xf32> to vector<4xi32>\n"
                       "{n} = vector.bitcast {n}a : vector<4xi32> to vector<4xf32>"),
    "vector.from_elements": ("f32", "{n}a = vector.from_elements {p}, %v : vector<2xf32>\n"
                             "{n}, {n}b = vector.to_elements {n}a : vector<2xf32>"),
    "vector.extract_strided_slice": (
        "vf", "{n}a = vector.extract_strided_slice {p} {{offsets = [1], sizes = [2], strides = [1]}} : vector<4xf32> "
        "to vector<2xf32>\n{n} = vector.insert_strided_slice {n}a, %q {{offsets = [2], strides = [1]}} : vector<2xf32> "
        "into vector<4xf32>"),
    "vector.create_mask": ("index", "{n}a = vector.create_mask {p} : vector<4xi1>\n{n}b = vector.extract {n}a[2] : i1 "
                           "from vector<4xi1>\n{n} = arith.select {n}b, %i, {p} : index"),
    "vector.load": ("vf", "vector.store {p}, %f[%k{d}] : memref<16xf32>, vector<4xf32>\n"
                    "{n} = vector.load %f[%k{d}] : memref<16xf32>, vector<4xf32>"),
    "vector.maskedload": (
        "vf", "vector.maskedstore %f[%k{d}], %ones, {p} : memref<16xf32>, vector<4xi1>, vector<4xf32>\n{n} = "
        "vector.maskedload %f[%k{d}], %ones, {p} : memref<16xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>"),
    "tensor.extract": ("index", "{n}a = arith.constant dense<1> : tensor<1xindex>\n{n}b = tensor.extract {n}a[%k0] : "
                       "tensor<1xindex>\n{n} = arith.addi {p}, {n}b : index"),
    # Communication.
    "comms.tile_load": ("tile", "comms.tile_store {p}, %x[%k{d}] : tensor<4xi64>, memref<16xi64>\n"
                        "{n} = comms.tile_load %x[%k{d}] : memref<16xi64> -> tensor<4xi64>"),
    "comms.tile_load scratch": ("tile", "comms.tile_store {p}, %scratch[%k{d}] : tensor<4xi64>, memref<16xi64>\n"
                                "{n} = comms.tile_load %scratch[%k{d}] : memref<16xi64> -> tensor<4xi64>"),
    "comms.peer": ("i64", "{n}a = comms.peer %w at %k0 of %team : !comms.window<16xi64> -> memref<16xi64>\n"
                   "{n}b = memref.load {n}a[%k{d}] : memref<16xi64>\n{n} = arith.addi {p}, {n}b : i64"),
    "comms.scratch": ("i64", "{n}a = comms.scratch : memref<4xi64>\nmemref.store {p}, {n}a[%k1] : memref<4xi64>\n"
                      "{n} = memref.load {n}a[%k1] : memref<4xi64>"),
    "comms.put": ("i64", "comms.put %x[%k0] to %w[%k0] count %k2 at %k0 of %team : memref<16xi64>, "
                  "!comms.window<16xi64>"),
    "comms.get": ("i64", "comms.get %w[%k0] to %x[%k0] count %k2 at %k0 of %team : !comms.window<16xi64>, "
                  "memref<16xi64>"),
    "comms.put_signal": ("i64", "comms.put_signal %x[%k0] to %w[%k0] count %k2 at %k0 of %team then inc %s[%k1] : "
                         "memref<16xi64>, !comms.window<16xi64>, !comms.signal<16>"),
    "comms.signal": ("i64", "comms.signal inc %s[%k1] at %k0 of %team : !comms.signal<16>"),
    "comms.signal and wait": ("i64", "comms.signal inc %s[%k1] at %k0 of %team : !comms.signal<16>\n{n}a = "
                              "arith.constant {m} : i64\ncomms.wait_signal %s[%k1] ge {n}a : !comms.signal<16>"),
    "comms.wait_signal": ("i64", "{n}a = comms.wait_signal %s[%k{d}] ge %z : !comms.signal<16>"),
    "comms.read_signal": ("i64", "{n}a = comms.read_signal %s[%k{d}] : !comms.signal<16>\n"
                          "{n} = arith.addi {p}, {n}a : i64"),
    "comms.reset_signal": ("i64", "comms.reset_signal %s[%k{d}] : !comms.signal<16>"),
    "comms.read_counter": ("i64", "{n}a = comms.read_counter %c[%k{d}] : !comms.counter<16>\n"
                           "{n} = arith.addi {p}, {n}a : i64"),
    "comms.barrier": ("i64", "comms.barrier block"),
    "comms.check_bounds": ("index", '{n} = arith.addi {p}, %k1 : index\ncomms.check_bounds "a check" {p}, %k1 in %k16'),
    "comms.translate_rank": ("index", "{n}a = arith.remui {p}, %k1 : index\n"
                             "{n} = comms.translate_rank {n}a from %team to %team"),
    "comms.poison": ("floats", "comms.poison_store {p}, %f[%k{d}] : tensor<4xf32>, memref<16xf32>\n"
                     "{n} = comms.poison_load %f[%k{d}] : memref<16xf32> -> tensor<4xf32>"),
    "comms.packet": ("floats", "comms.packet_store {p}, %x[%k{d}] flag %flag : tensor<4xf32>, memref<16xi64>\n"
                     "{n} = comms.packet_load %x[%k{d}] flag %flag : memref<16xi64> -> tensor<4xf32>"),
    "arith.bitcast tile": ("floats", "{n}a = arith.bitcast {p} : tensor<4xf32> to tensor<4xi32>\n"
                           "{n} = arith.bitcast {n}a : tensor<4xi32> to tensor<4xf32>"),
})  # fmt: skip

#: Regions in one another; {inner} is the region inside.
NESTS = {
    "scf.if": "scf.if %t {{\n{inner}\n}}",
    "scf.if else": "scf.if %t {{\n memref.store %n, %x[%k1] : memref<16xi64>\n}} else {{\n{inner}\n}}",
    "scf.if other": "%t{m} = arith.cmpi slt, %n, %n : i64\nscf.if %t{m} {{\n{inner}\n}}",
    "scf.if value": "%l{m} = memref.load %x[%k1] : memref<16xi64>\n%t{m} = arith.cmpi slt, %l{m}, %n : i64\n"
    "scf.if %t{m} {{\n{inner}\n}} else {{\n memref.store %l{m}, %x[%k1] : memref<16xi64>\n}}",
    "scf.for": "scf.for %j{m} = %k0 to %k1 step %k1 {{\n{inner}\n}}",
    "scf.for data": "scf.for %j{m} = %k0 to %i step %k1 {{\n{inner}\n}}",
    "scf.for from outer": "%b{m} = arith.addi {outer}, %k1 : index\nscf.for %j{m} = {outer} to %b{m} step %k1 {{\n"
    "{inner}\n}}",
    "scf.while": "scf.while (%a{m} = %i) : (index) -> index {{\n %c{m} = arith.cmpi slt, %a{m}, %k0 : index\n "
    "scf.condition(%c{m}) %a{m} : index\n}} do {{\n^bb0(%b{m}: index):\n{inner}\n scf.yield %b{m} : index\n}}",
    "scf.index_switch": "scf.index_switch %i\ncase 0 {{\n{inner}\n scf.yield\n}}\ndefault {{\n}}",
    "scf.execute_region": "scf.execute_region {{\n{inner}\n scf.yield\n}}",
}


def write_chain(name: str, length: int) -> str:
    kind, link = CHAINS[name]
    first, last = KINDS[kind]
    text, before = [f"%r0 = {first}"], "%r0"
    for number in range(1, length + 1):
        now = f"%r{number}"
        text.append(link.format(p=before, n=now, m=number, d=(0, 1, 2, 7)[number % 4]))
        if "{n} =" in link or "{n}," in link or "({n}" in link:
            before = now
    return HEAD + "\n".join([*text, last.format(p=before), "comms.return", "}"]) + "\n"


def write_nest(name: str, depth: int) -> str:
    text = "memref.store %n, %x[%k0] : memref<16xi64>"
    for number in reversed(range(depth)):
        outer = f"%j{number - 1}" if number else "%k0"
        text = NESTS[name].format(inner=text, m=number, outer=outer)
    return HEAD + text + "\ncomms.return\n}\n"


RUN = ["comms-run", "--quiet", "--time-limit=20"]
PTX = ["comms-translate", "--comms-to-ptx", "--gpu=chip=sm_90 check=false ranks=1 blocks=1"]


def measure(program: list[str], text: str, seconds: int) -> tuple[float, int, str]:
    """Processor seconds, exit status (-9: killed after `seconds`) and the error that is printed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*program, file.name], capture_output=True, text=True, preexec_fn=limit, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = (done.stdout + done.stderr).strip().splitlines() or [""]
        errors = [line for line in said if "error" in line] or said[-1:]
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return took, done.returncode, re.sub(r"^/tmp/[^ ]* ", "", errors[0])[:200]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--ptx", action="store_true")
    parser.add_argument("--length", type=int, default=4000)
    parser.add_argument("--depth", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    name, *arguments = PTX if options.ptx else RUN
    program = [str(options.programs / name), *arguments]
    cases = [(name, write_chain, options.length) for name in CHAINS]
    cases += [(f"nest of {name}", lambda name, length: write_nest(name[8:], length), options.depth) for name in NESTS]
    slow = 0
    for name, write, size in cases:
        if options.only and name not in options.only:
            continue
        took, status, said = measure(program, write(name, size), options.seconds)
        wrong = not 0 <= status < 9
        slow += wrong
        # How it grows is of interest where it is slow.
        half = f"{measure(program, write(name, size // 2), options.seconds)[0]:.2f} s, " if took > 1 else ""
        print(f"{name}: {half}{took:.2f} s, {status} {said if status else ''}{' WRONG' if wrong else ''}", flush=True)
    print(f"{slow} wrong")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
