"""Runs the PTX of a kernel on N ranks, thread by thread, without a GPU.

Every function of the text becomes a Python generator. At operations of several threads (barriers, shuffles, votes) and
at reads of memory that others write, the scheduler may continue with another thread, which it draws at random. An
access beyond an allocation, or a misaligned one, ends the run. The memory decides when stores become visible: at once
and in order (memory.py), which tests addresses, indices and synchronization, or as late as PTX allows
(weak_memory.py), which also tests fences and scopes.
"""

import dataclasses
import fractions
import functools
import math
import operator
import random
import re
import struct
from collections.abc import Callable, Generator
from typing import Any

import ml_dtypes
import numpy as np
from matrices import TOGETHER, Copies, Groups, Maps, wgmma
from memory import LEVELS, ORDERED, RELAXED, SLOT, SYS, WEAK, Fault, Memory, Viewer

Thread = Generator[tuple[Any, ...], Any, Any]


# Numbers: registers hold bits ----------------------------------------------------------------------------------------


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def f32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0])


def b32(value: float) -> int:
    if value != value:
        return 0x7FFFFFFF
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000


def f64(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0])


def b64(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def bf16(bits: int) -> int:
    """f32 to bf16, to nearest even."""
    bits &= 0xFFFFFFFF
    if bits & 0x7FFFFFFF > 0x7F800000:
        return 0x7FFF
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def f16(bits: int) -> int:
    """f32 to f16, to nearest even."""
    value = f32(bits)
    if value != value:
        return 0x7FFF
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def from_f16(bits: int) -> int:
    return b32(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])


def from_bf16(bits: int) -> int:
    return (bits & 0xFFFF) << 16


NARROW: dict[str, Any] = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def to_narrow(bits: int, kind: str) -> int:
    """f32 to fp8, to nearest even; what is too large becomes the greatest finite number (.satfinite)."""
    value, to = f32(bits), NARROW[kind]
    if value != value:
        return 0x7F
    most = {"e4m3": 448.0, "e5m2": 57344.0}[kind]
    return int(np.array(min(max(value, -most), most), np.float32).astype(to).view(np.uint8))


def from_narrow(bits: int, kind: str) -> int:
    """fp8 to f16, which has all of its numbers."""
    value = float(np.array(bits & 0xFF, np.uint8).view(NARROW[kind]))
    return f16(b32(value))


#: A register as a number.
FLOATS = {"f16": "f32(from_f16({}))", "bf16": "f32(from_bf16({}))", "f32": "f32({})", "f64": "f64({})"}
INTEGRAL: dict[str, Callable[[float], int]] = {"rzi": math.trunc, "rni": round, "rmi": math.floor, "rpi": math.ceil}


def integral(value: float, mode: str) -> float:
    return math.copysign(INTEGRAL[mode](value), value) if math.isfinite(value) else value


def divide(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def root(a: float) -> float:
    return math.sqrt(a) if a >= 0 else math.nan if a < 0 or a != a else a


def fma(a: float, b: float, c: float) -> float:
    """Of numbers of f32: what rounds to f32 as a * b + c does, which has more digits than f64."""
    product = a * b  # Exact.
    total = product + c
    back = total - product
    left = (product - (total - back)) + (c - back)
    if left == 0 or not math.isfinite(total) or int(np.float64(total).view(np.uint64)) & 1:
        return total
    # Rounded to odd, a sum lies on no tie of a narrower type.
    return math.nextafter(total, math.inf if left > 0 else -math.inf)


def fma_of_f64(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = fractions.Fraction(a) * fractions.Fraction(b) + fractions.Fraction(c)
    if not exact:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def compare(how: str, a: float, b: float) -> bool:
    unordered = a != a or b != b
    if how in ("nan", "num"):
        return unordered == (how == "nan")
    if len(how) == 3 and unordered:
        return True
    how = how[:2]
    plain = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    return plain[how] and not unordered


def permute(a: int, b: int, selector: int) -> int:
    data = (b & 0xFFFFFFFF) << 32 | a & 0xFFFFFFFF
    result = 0
    for at in range(4):
        pick = selector >> 4 * at & 15
        byte = data >> 8 * (pick & 7) & 255
        if pick & 8:
            byte = 255 if byte >> 7 else 0
        result |= byte << 8 * at
    return result


def to_integer(value: float, width: int, is_signed: bool) -> int:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    if value != value:
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(int(value), low), high)


# Functions of PTX as Python -------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Context:
    """One thread."""

    memory: Memory
    who: Viewer
    params: int
    thread: int
    threads: int
    cta: int
    ctas: int
    cluster: int
    symbols: dict[str, int]
    maps: Maps
    copies: Copies = dataclasses.field(default_factory=Copies)
    #: Of the first of four warps.
    groups: Groups = dataclasses.field(default_factory=Groups)


# PTX to Python -------------------------------------------------------------------------------------------------------


def split_operands(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "{[(") - (char in "}])")
        if char == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


# What threads of a warp wait for each other at.
WARP = ("warp", "shfl", "vote", "redux", "together")
WIDTHS = {"b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16, "pred": 1}
WIDTHS |= {f"{kind}{width}": width for kind in "busf" for width in (32, 64)}
WIDTHS |= {f"{kind}x2": 16 for kind in NARROW}
WIDTHS |= {"b128": 128, "f16x2": 32, "bf16x2": 32, "s16x2": 32, "u16x2": 32, "f32x2": 64}
SPECIAL = {
    "%tid.x": "c.thread",
    "%ntid.x": "c.threads",
    "%ctaid.x": "c.cta",
    "%nctaid.x": "c.ctas",
    "%laneid": "(c.thread & 31)",
    "%cluster_ctarank": "(c.cta % c.cluster)",
    "%cluster_ctaid.x": "(c.cta % c.cluster)",
    "%cluster_nctarank": "c.cluster",
    "%globaltimer": "0",
    "%globaltimer_lo": "0",
    "%clock64": "0",
}


def meaning(parts: list[str]) -> str:
    """Order and scope of an access, as the memory's functions take them."""
    if "volatile" in parts:
        return f"{RELAXED}, {SYS}"
    order = ORDERED if {"acquire", "release", "acq_rel"} & set(parts) else RELAXED if "relaxed" in parts else WEAK
    return f"{order}, {next((LEVELS.index(part) for part in parts if part in LEVELS), SYS)}"


class Translator:
    """One function."""

    def __init__(self, name: str, arguments: list[str], is_entry: bool, shared: dict[str, int]) -> None:
        self.name, self.arguments, self.is_entry, self.shared = name, arguments, is_entry, shared
        self.blocks: list[tuple[list[str], list[tuple[int, str]]]] = []
        self.local: dict[str, int] = {}
        self.barriers = self.groups = 0
        self.tables: dict[int, list[str]] = {}

    def operand(self, text: str) -> str:
        text = text.strip()
        if text in SPECIAL:
            return SPECIAL[text]
        if text.startswith("%SP"):
            return text[1:]
        if re.fullmatch(r"%[a-z]+\d+", text):
            return text[1:]
        if re.fullmatch(r"0f[0-9A-Fa-f]{8}|0d[0-9A-Fa-f]{16}", text):
            return str(int(text[2:], 16))
        if number := re.fullmatch(r"(-?(0x[0-9a-fA-F]+|\d+))U?", text):
            return number[1]
        if self.is_entry and text in self.arguments:
            return "c.params"
        if text in self.shared or text in self.local:
            return f"c.symbols['{text}']"
        if re.fullmatch(r"[a-z]\w*", text):  # A register of inline assembly.
            return "x_" + text
        raise NotImplementedError(f"operand {text}")

    def vector(self, text: str) -> list[str]:
        return [self.operand(part) for part in split_operands(text[1:-1])] if text[0] == "{" else [self.operand(text)]

    def address(self, text: str) -> str:
        inner = text.strip()[1:-1]
        match = re.fullmatch(r"([%\w.$]+)\s*(?:\+\s*(-?\w+))?", inner)
        if not match:
            raise NotImplementedError(f"address {text}")
        base = self.operand(match[1])
        return f"({base} + {match[2]})" if match[2] else base

    def instruction(self, op: str, operands: list[str]) -> list[str]:
        parts = op.split(".")
        head, kind = parts[0], parts[-1]
        width = WIDTHS.get(kind, 0)
        if head == "fence" and parts[1] == "acq_rel":
            return [f"c.memory.fence(c.who, {LEVELS.index(parts[2])})"]
        if head == "fence" and "tensormap" in op and "acquire" in parts:
            return [f"c.maps.acquire(c.memory, {self.address(operands[0])})"]
        if op.startswith("fence.mbarrier_init"):
            return ["c.memory.fence_barriers(c.who)"]
        if op.startswith("fence.proxy.async"):
            return ["c.memory.proxies.fence(c.who)"]
        if head in ("griddepcontrol", "fence", "prefetch", "isspacep", "pragma"):
            return []
        if head == "tensormap":
            return self.map(parts, operands)
        if head == "wgmma":
            return self.group(parts, operands)
        if head == "elect":
            word, leads = operands[0].split("|")
            return [f"{self.operand(word)} = 0", f"{self.operand(leads)} = c.thread & 31 == 0"]
        if head == "multimem":
            return self.multimem(parts, operands)
        if head == "cp" and "prefetch" in parts:
            return []
        if head == "cp":
            return self.copy(parts, operands)
        if head in ("ldmatrix", "mma"):
            return self.together(parts, operands)
        if head == "mbarrier":
            return self.shared_barrier(parts, operands)
        if head == "st" and "async" in parts:
            values, at = ", ".join(self.vector(operands[1])), self.address(operands[2])
            size = width // 8 * len(self.vector(operands[1]))
            return [
                f"c.memory.store({self.address(operands[0])}, {width // 8}, [{values}])",
                f"c.memory.expect(None, {at}, 0, -{size})",
            ]
        if head == "bar" or head == "barrier":
            return self.barrier(parts, operands)
        if head == "st" and parts[1] == "param":
            name = re.match(r"\[(\w+)", operands[0])
            assert name
            return [f"P_{name[1]} = {self.operand(operands[1])}"]
        if head == "ld" and parts[1] == "param":
            name = re.match(r"\[(\w+)\]", operands[1])
            if name and (name[1].startswith("retval") or not self.is_entry):
                source = f"P_{name[1]}"
                return [f"{self.operand(operands[0])} = {source}"]
        if head == "ld":
            count = int(parts[-2][1:]) if re.fullmatch(r"v\d", parts[-2]) else 1
            lines = ["yield ('look',)"] if {"relaxed", "acquire", "volatile"} & set(parts) else []
            targets = ", ".join(self.vector(operands[0]))
            lines.append(
                f"{targets}{',' if count == 1 else ''} = "
                f"load(c.who, {self.address(operands[1])}, {width // 8}, {count}, {meaning(parts)})"
            )
            if kind[0] == "s" and (width < 32 or (width == 32 and targets.startswith("rd"))):
                lines.append(f"{targets} = signed({targets}, {width})")
            return lines
        if head == "st":
            values = ", ".join(self.vector(operands[1]))
            return [f"store(c.who, {self.address(operands[0])}, {width // 8}, [{values}], {meaning(parts)})"]
        if head in ("atom", "red"):
            return self.atomic(head, parts, operands, width)
        if head == "shfl":
            return self.shuffle(parts, operands)
        if head == "redux":
            value, members = (self.operand(operand) for operand in operands[1:3])
            line = f"{self.operand(operands[0])} = yield ('redux', {parts[2]!r}, {parts[3]!r}, {value}, {members})"
            return [line]
        if head == "vote":
            return [
                f"{self.operand(operands[0])} = yield ('vote', {parts[2]!r}, {self.vote(operands[1])}, {operands[2]})"
            ]
        if head == "activemask":
            return [f"{self.operand(operands[0])} = 0xffffffff"]
        if head == "nanosleep":
            return ["yield ('look',)"]
        if head == "call":
            return self.call(operands)
        if head in ("mov", "cvta") and operands[1][0] == "{":
            pieces = self.vector(operands[1])
            each = width // len(pieces)
            joined = " | ".join(f"({p} & {hex((1 << each) - 1)}) << {i * each}" for i, p in enumerate(pieces))
            return [f"{self.operand(operands[0])} = {joined}"]
        if head == "mov" and operands[0][0] == "{":
            pieces = self.vector(operands[0].replace("_", "%unused0"))
            each = width // len(pieces)
            source = self.operand(operands[1])
            return [f"{p} = {source} >> {i * each} & {hex((1 << each) - 1)}" for i, p in enumerate(pieces)]
        if head == "cvta":
            return [f"{self.operand(operands[0])} = {self.operand(operands[1])}"]
        if head == "mapa":
            rank = self.operand(operands[2])
            made = f"yield ('mapa', {self.operand(operands[1])}, {rank})"
            return [f"{self.operand(operands[0])} = {made}"]
        if head == "setp" and kind in ("f16x2", "bf16x2"):
            of = "from_f16" if kind[0] == "f" else "from_bf16"
            a, b = (self.operand(operand) for operand in operands[1:])
            return [
                f"{self.operand(target)} = compare({parts[1]!r}, f32({of}({a} >> {by})), f32({of}({b} >> {by})))"
                for target, by in zip(operands[0].split("|"), (0, 16), strict=True)
            ]
        target, *sources = [self.operand(operand) for operand in operands]
        value = self.value(parts, kind, width, sources)
        if head == "setp" or kind == "pred":
            return [f"{target} = bool({value})"]
        if head == "cvt" and parts[-2] == "s8":  # The register is wider, and has the sign.
            return [f"{target} = ({value}) & 0xffffffff"]
        is_mixed = parts[-2] == "f32" and kind in ("f16", "bf16")
        to = 32 if is_mixed else width
        to = WIDTHS[parts[-2]] if head == "cvt" else 2 * width if "wide" in parts else to
        if head in ("popc", "clz", "bfind"):
            to = 32
        return [f"{target} = ({value}) & {hex((1 << to) - 1)}"] if to != 1 else [f"{target} = {value}"]

    def vote(self, text: str) -> str:
        return f"not {self.operand(text[1:])}" if text[0] == "!" else self.operand(text)

    def value(self, parts: list[str], kind: str, width: int, s: list[str]) -> str:
        head = parts[0]
        if head == "cvt":
            return self.convert(parts, s)
        if kind in ("f32", "f64") and head not in ("selp", "mov"):
            return self.floats(parts, kind, s)
        if kind == "f32x2" and head in ("add", "sub", "mul"):
            sign = {"add": "+", "sub": "-", "mul": "*"}[head]
            low, high = (f"b32(f32({s[0]} >> {n}) {sign} f32({s[1]} >> {n}))" for n in (0, 32))
            return f"{low} | {high} << 32"
        if kind == "f32x2" and head == "fma":
            low, high = (f"b32(fma({', '.join(f'f32({x} >> {by})' for x in s)}))" for by in (0, 32))
            return f"{low} | {high} << 32"
        if kind in ("s16x2", "u16x2") or kind in ("f16", "bf16", "f16x2", "bf16x2"):
            return self.halves(parts, kind, s)
        signs = kind[0] == "s"
        n = [f"signed({x}, {width})" if signs else f"({x} & {hex((1 << width) - 1)})" for x in s] if width > 1 else s
        if head in ("mov", "selp"):
            return s[0] if head == "mov" else f"{s[0]} if {s[2]} else {s[1]}"
        if head == "setp":
            how = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(parts[1], parts[1])
            sign = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[how]
            return f"{n[0]} {sign} {n[1]}"
        if head in ("add", "sub", "and", "or", "xor"):
            sign = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[head]
            return f"{s[0]} {sign} {s[1]}"
        if head in ("mul", "mad"):
            product = f"{n[0]} * {n[1]}"
            if "hi" in parts:
                product = f"({product} >> {width})"
            return product if head == "mul" else f"{product} + {s[2]}"
        if head in ("div", "rem"):
            quotient = f"divide_int({n[0]}, {n[1]})"
            return quotient if head == "div" else f"{n[0]} - {quotient} * {n[1]}"
        if head in ("min", "max"):
            return f"{head}({n[0]}, {n[1]})"
        if head == "shl":
            return f"{s[0]} << min({s[1]} & 0xffffffff, {width})"
        if head == "shr":
            return f"{n[0]} >> min({s[1]} & 0xffffffff, {width})"
        if head == "not":
            return f"not {s[0]}" if kind == "pred" else f"~{s[0]}"
        if head == "neg":
            return f"-{s[0]}"
        if head == "abs":
            return f"abs({n[0]})"
        if head == "bfe":
            field = f"({n[0]} >> {s[1]}) & ((1 << {s[2]}) - 1)"
            return f"signed({field}, {s[2]})" if signs else field
        if head == "bfi":
            field = f"((1 << {s[3]}) - 1)"
            return f"{s[1]} & ~({field} << {s[2]}) | ({s[0]} & {field}) << {s[2]}"
        if head == "lop3":
            a, b, c = s[:3]
            terms = [
                f"({a if n & 4 else f'~{a}'} & {b if n & 2 else f'~{b}'} & {c if n & 1 else f'~{c}'})" for n in range(8)
            ]
            return " | ".join(term for n, term in enumerate(terms) if int(s[3], 0) >> n & 1) or "0"
        if head == "prmt":
            return f"permute({s[0]}, {s[1]}, {s[2]})"
        if head == "popc":
            return f"({n[0]}).bit_count()"
        if head == "clz":
            return f"{width} - ({n[0]}).bit_length()"
        if head == "shf":
            joined = f"(({s[1]} & 0xffffffff) << 32 | {s[0]} & 0xffffffff)"
            by = f"({s[2]} & 31)" if "wrap" in parts else f"min({s[2]}, 32)"
            return f"({joined} << {by}) >> 32" if parts[1] == "l" else f"{joined} >> {by}"
        raise NotImplementedError(".".join(parts))

    def floats(self, parts: list[str], kind: str, s: list[str]) -> str:
        head, of, to = parts[0], kind, "b" + kind[1:]
        n = [f"{of}({x})" for x in s]
        if head in ("abs", "neg"):
            sign = 1 << int(kind[1:]) - 1
            return f"{s[0]} & {hex(sign - 1)}" if head == "abs" else f"{s[0]} ^ {hex(sign)}"
        if head == "copysign":
            sign = 1 << int(kind[1:]) - 1
            return f"{s[0]} & {hex(sign)} | {s[1]} & {hex(sign - 1)}"
        if head == "setp":
            return f"compare({parts[1]!r}, {n[0]}, {n[1]})"
        if head in ("add", "sub", "mul"):
            return f"{to}({n[0]} {dict(add='+', sub='-', mul='*')[head]} {n[1]})"
        if head == "fma":
            return f"{to}({'fma' if kind == 'f32' else 'fma_of_f64'}({', '.join(n)}))"
        if head == "div":
            return f"{to}(divide({n[0]}, {n[1]}))"
        # An approximation is as good as it can be; GPUs show whether theirs do.
        if head in ("sqrt", "rcp", "rsqrt"):
            root = f"root({n[0]})"
            return f"{to}({root})" if head == "sqrt" else f"{to}(divide(1.0, {n[0] if head == 'rcp' else root}))"
        if head in ("min", "max"):
            return f"{head}imum({s[0]}, {s[1]}, {'NaN' in parts}, {of}, {to})"
        raise NotImplementedError(".".join(parts))

    def halves(self, parts: list[str], kind: str, s: list[str]) -> str:
        head = parts[0]
        if head == "mov":
            return s[0]
        if parts[-2] == "f32" and head in ("add", "sub"):  # A half and an f32.
            of = "from_f16" if kind == "f16" else "from_bf16"
            return f"b32(f32({of}({s[0]})) {'+' if head == 'add' else '-'} f32({s[1]}))"
        if parts[-2] == "f32" and head == "fma":
            of = "from_f16" if kind == "f16" else "from_bf16"
            return f"b32(fma(f32({of}({s[0]})), f32({of}({s[1]})), f32({s[2]})))"
        if kind in ("s16x2", "u16x2") and head == "add":
            return f"({s[0]} + {s[1]} & 0xffff) | ({s[0]} >> 16) + ({s[1]} >> 16) << 16"
        if kind in ("s16x2", "u16x2") and head in ("min", "max"):
            cut = "signed({}, 16)" if kind[0] == "s" else "({} & 0xffff)"
            low = f"{head}({cut.format(s[0])}, {cut.format(s[1])}) & 0xffff"
            high = f"{head}({cut.format(s[0] + ' >> 16')}, {cut.format(s[1] + ' >> 16')}) & 0xffff"
            return f"({low}) | ({high}) << 16"
        if kind in ("f16", "f16x2", "bf16x2") and head in ("add", "sub", "mul", "fma"):
            wide = "f32(from_f16({} >> {}))" if kind[0] == "f" else "f32(from_bf16({} >> {}))"
            sign = {"add": "+", "sub": "-", "mul": "*", "fma": "*"}[head]
            made = []
            for by in (0, 16) if kind.endswith("x2") else (0,):
                a, b, *c = (wide.format(x, by) for x in s)
                made.append(
                    f"{'f16' if kind[0] == 'f' else 'bf16'}(b32({a} {sign} {b}{' + ' + c[0] if c else ''})) << {by}"
                )
            return " | ".join(made)
        if head in ("min", "max") and kind[0] in "fb":
            of, to = ("from_f16", "f16") if kind[0] == "f" else ("from_bf16", "bf16")
            made = []
            for by in (0, 16) if kind.endswith("x2") else (0,):
                a, b = (f"{of}({x} >> {by})" for x in s)
                made.append(f"{to}({head}imum({a}, {b}, {'NaN' in parts}, f32, b32)) << {by}")
            return " | ".join(made)
        if head in ("abs", "neg"):
            signs = 0x80008000 if kind.endswith("x2") else 0x8000
            return f"{s[0]} & {0x7FFF7FFF & ~signs}" if head == "abs" else f"{s[0]} ^ {signs}"
        if kind == "f16" and head == "setp":
            return f"compare({parts[1]!r}, f32(from_f16({s[0]})), f32(from_f16({s[1]})))"
        if kind == "bf16" and head == "setp":
            return f"compare({parts[1]!r}, f32({s[0]} << 16), f32({s[1]} << 16))"
        raise NotImplementedError(".".join(parts))

    def convert(self, parts: list[str], s: list[str]) -> str:
        to, of = parts[-2], parts[-1]
        if to[:-2] in NARROW and of == "f32":
            return f"to_narrow({s[0]}, {to[:-2]!r}) << 8 | to_narrow({s[1]}, {to[:-2]!r})"
        if of[:-2] in NARROW and to == "f16x2":
            return f"from_narrow({s[0]} >> 8, {of[:-2]!r}) << 16 | from_narrow({s[0]}, {of[:-2]!r})"
        if to in ("bf16x2", "f16x2"):
            name = to[:-2]
            return f"{name}({s[0]}) << 16 | {name}({s[1]})"
        if to in ("bf16", "f16") and of == "f32":
            return f"{to}({s[0]})"
        if to == "f32" and of in ("bf16", "f16") and len(parts) == 3:
            return f"{s[0]} << 16" if of == "bf16" else f"from_f16({s[0]})"
        if to[0] in "sub" and of[0] in "sub" and "f" not in to + of:
            width = WIDTHS[of]
            number = f"signed({s[0]}, {width})" if of[0] == "s" else f"({s[0]} & {hex((1 << width) - 1)})"
            return f"signed({number}, 8)" if to == "s8" else number
        if to in ("f32", "f64") and of[0] in "su":
            width = WIDTHS[of]
            number = f"signed({s[0]}, {width})" if of[0] == "s" else f"({s[0]} & {hex((1 << width) - 1)})"
            return f"from_integer({number})" if to == "f32" else f"b64(float({number}))"
        # By way of f32, which has what is in f16's range, and all of 16 bits.
        if of[0] in "su" and (to == "f16" or (to == "bf16" and WIDTHS[of] <= 16)):
            number = f"signed({s[0]}, {WIDTHS[of]})" if of[0] == "s" else f"({s[0]} & {hex((1 << WIDTHS[of]) - 1)})"
            return f"{to}(from_integer({number}))"
        if of in FLOATS:
            number = FLOATS[of].format(s[0])
            if mode := next((part for part in parts if part in INTEGRAL), ""):
                number = f"integral({number}, {mode!r})"
            if to[0] in "su":
                return f"to_integer({number}, {WIDTHS[to]}, {to[0] == 's'})"
            if to in ("f32", "f64"):
                return f"b{to[1:]}({number})"
            if of != "f64":
                return f"{to}(b32({number}))"
        raise NotImplementedError(".".join(parts))

    def shared_barrier(self, parts: list[str], operands: list[str]) -> list[str]:
        if parts[1] == "init":
            return [f"c.memory.open_barrier(c.who, {self.address(operands[0])}, {self.operand(operands[1])})"]
        if "expect_tx" in parts:
            return [f"c.memory.expect(c.who, {self.address(operands[1])}, 1, {self.operand(operands[2])})"]
        if parts[1] == "arrive":
            return [f"c.memory.expect(c.who, {self.address(operands[1])}, 1, 0)"]
        if "try_wait" in parts:
            passed = f"c.memory.has_passed(c.who, {self.address(operands[1])}, {self.operand(operands[2])})"
            return ["yield ('look',)", f"{self.operand(operands[0])} = {passed}"]
        raise NotImplementedError(".".join(parts))

    def barrier(self, parts: list[str], operands: list[str]) -> list[str]:
        if "warp" in parts:
            return [f"yield ('warp', {self.operand(operands[0])})"]
        if "cluster" in parts:
            if "arrive" in parts:
                return [f"c.memory.arrive(c.who, {'relaxed' not in parts})", "yield ('arrive',)"]
            return ["yield ('cluster',)"]
        self.barriers += 1
        count = self.operand(operands[1]) if len(operands) > 1 else "0"
        return [f"yield ('bar', {self.operand(operands[0])}, {self.barriers}, {count})"]

    def map(self, parts: list[str], operands: list[str]) -> list[str]:
        """Fields of a map in shared memory, and the copy of the whole to global memory."""
        if parts[1] == "replace":
            number = operands[1] if len(operands) > 2 else "0"
            value, at = self.operand(operands[-1]), self.address(operands[0])
            return [f"c.maps.replace(c.memory, {at}, {parts[3]!r}, {number}, {value})"]
        dest, source = (self.address(operand) for operand in operands[:2])
        return [f"c.memory.store({dest}, 4, c.memory.load({source}, 4, 32))"]

    def group(self, parts: list[str], operands: list[str]) -> list[str]:
        """What four warps do together. Its operands may change as soon as all have come."""
        if parts[1] == "wait_group":
            return [f"c.groups.wait({operands[0]})"]
        if parts[1] != "mma_async":
            return [f"c.groups.{'fence' if parts[1] == 'fence' else 'commit'}()"]
        targets = ", ".join(self.vector(operands[0]))
        left, right, keeps = (self.operand(operand) for operand in operands[1:4])
        turns = f"({', '.join(operands[6:8]) or '0, 0'})"
        given = f"({left}, {right}, {keeps}, {turns}, [{targets}])"
        kinds = (parts[-2], parts[-1])
        return [f"{targets} = yield ('group', {self.next_group()}, {parts[4]!r}, {kinds}, {given})"]

    def next_group(self) -> int:
        self.groups += 1
        return self.groups

    def atomic(self, head: str, parts: list[str], operands: list[str], width: int) -> list[str]:
        result = self.operand(operands.pop(0)) + " = " if head == "atom" else ""
        what = next(part for part in parts if part in ("add", "exch", "cas", "or", "and", "max", "min"))
        value = self.operand(operands[1])
        new = {"add": f"old + {value}", "exch": value, "or": f"old | {value}", "and": f"old & {value}"}
        new["cas"] = f"{self.operand(operands[2])} if old == {value} else old" if len(operands) > 2 else ""
        releases = "release" in parts or "acq_rel" in parts
        call = f"atomic(c.who, {self.address(operands[0])}, {width // 8}, lambda old: {new[what]}, "
        call += f"{meaning(parts)}, {releases})"
        return ["yield ('look',)", result + call]

    def multimem(self, parts: list[str], operands: list[str]) -> list[str]:
        """Each instruction is those of all ranks, in their order; sums of halves are rounded once (.acc::f32)."""
        kind = parts[-1]
        if parts[1] == "ld_reduce":
            what = next(part for part in parts if part in ("add", "min", "max", "and", "or", "xor"))
            targets = ", ".join(self.vector(operands[0]))
            count = len(self.vector(operands[0]))
            read = f"multimem_read(c, {self.address(operands[1])}, {what!r}, {kind!r}, {count})"
            return ["yield ('look',)", f"{targets}{',' if count == 1 else ''} = {read}"]
        values, at = ", ".join(self.vector(operands[1])), self.address(operands[0])
        if parts[1] == "st":
            return [f"multimem_write(c, {at}, {WIDTHS[kind] // 8}, [{values}])"]
        what = next(part for part in parts if part in ("add", "min", "max", "and", "or", "xor"))
        return ["yield ('look',)", f"multimem_update(c, {at}, {what!r}, {kind!r}, [{values}])"]

    def copy(self, parts: list[str], operands: list[str]) -> list[str]:
        """cp.async, which is seen in shared memory once its group has been waited for."""
        if "tensor" in parts:
            address, column, row = re.findall(r"%\w+", operands[1])
            tile = ", ".join(map(self.operand, (address, column, row)))
            return [
                f"c.maps.copy(c.memory, c.who, {self.address(operands[0])}, {tile}, {self.address(operands[2])})",
                "yield ('look',)",
            ]
        if parts[2] == "commit_group":
            return ["c.copies.commit()"]
        if parts[2] == "wait_group":
            return [f"c.copies.wait(c.memory, c.who, {operands[0]})"]
        if parts[2] != "cg" or operands[2] != "16":
            raise NotImplementedError(".".join(parts))
        dest, source = (self.address(operand) for operand in operands[:2])
        size = self.operand(operands[3]) if len(operands) > 3 else "16"
        return [f"c.copies.start(c.memory, c.who, {dest}, {source}, {size})"]

    def together(self, parts: list[str], operands: list[str]) -> list[str]:
        """What all lanes of a warp do with matrices."""
        targets = ", ".join(self.vector(operands[0]))
        if parts[0] == "ldmatrix":
            given = f"{'trans' in parts}, {self.address(operands[1])}"
        else:
            given = ", ".join([repr(parts[-2]), *(value for operand in operands[1:] for value in self.vector(operand))])
        return [f"{targets} = yield ('together', {parts[0]!r}, ({given}), 0xffffffff)"]

    def shuffle(self, parts: list[str], operands: list[str]) -> list[str]:
        targets = operands[0].split("|")
        value, lane, control, members = (self.operand(operand) for operand in operands[1:5])
        line = f"got = yield ('shfl', {parts[2]!r}, {value}, {lane}, {control}, {members})"
        lines = [line, f"{self.operand(targets[0])} = got[0]"]
        return lines + [f"{self.operand(targets[1])} = got[1]"] if len(targets) > 1 else lines

    def call(self, operands: list[str]) -> list[str]:
        result = operands[0][1:-1].strip() if operands[0][0] == "(" else ""
        name = operands[1] if result else operands[0]
        given = operands[-1][1:-1] if operands[-1][0] == "(" and operands[-1] != operands[0] else ""
        arguments = ", ".join("P_" + argument for argument in split_operands(given))
        call = f"yield from F['{name}'](c, F, {arguments})"
        return [f"P_{result} = {call}" if result else call]

    # Lines ---------------------------------------------------------------------------------------------------------

    def translate(self, body: list[str]) -> str:
        labels: dict[str, int] = {}
        blocks: list[list[str]] = [[]]
        for line in body:
            if line.startswith(".branchtargets"):
                self.tables[len(blocks) - 1] = split_operands(line.split(None, 1)[1])
                continue
            if label := re.fullmatch(r"(\$\w+):", line):
                blocks.append([])
                labels[label[1]] = len(blocks) - 1
                continue
            blocks[-1].append(line)
            if re.match(r"(@!?%\w+\s+)?(bra|brx|ret|exit|trap)\b", line):
                blocks.append([])
        text = [f"def run(c, F{''.join(', P_' + a for a in self.arguments) if not self.is_entry else ''}):"]
        # What is read before it is written is anything.
        registers = sorted({name for line in body for name in re.findall(r"%(\w+\d)", line)})
        text += [f"  {' = '.join(registers)} = 0xBADBADBADBADBAD"] if registers else []
        text += ["  load, store, atomic = c.memory.read, c.memory.write, c.memory.update", "  pc = 0", "  while True:"]
        for number, block in enumerate(blocks):
            text.append(f"    if pc == {number}:")
            for line in block:
                text += ["      " + made for made in self.line(line, labels)]
            text.append(f"      pc = {number + 1}")
        text.append("    raise Fault('ran off the end')")
        return "\n".join(text)

    def line(self, line: str, labels: dict[str, int]) -> list[str]:
        guard = ""
        if match := re.match(r"@(!?)([%\w]+)\s+(.*)", line):
            guard, line = f"if {'not ' if match[1] else ''}{self.operand(match[2])}: ", match[3]
        op, _, rest = line.partition(" ")
        operands = split_operands(rest.strip())
        if op == "brx.idx":
            table = [labels[label] for label in self.tables[labels[operands[1]]]]
            made = [f"pc = {table}[{self.operand(operands[0])}]", "continue"]
        elif op.startswith("bra"):
            made = [f"pc = {labels[operands[0]]}", "continue"]
        elif op == "ret" or op == "exit":
            made = ["return locals().get('P_func_retval0')" if not self.is_entry else "return"]
        elif op == "trap":
            made = ["raise Fault('trap')"]
        else:
            made = self.instruction(op, operands)
        if not guard:
            return made
        return [guard.rstrip(), *("  " + each for each in made)] if made else []


def divide_int(a: int, b: int) -> int:
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def from_integer(value: int) -> int:
    """An integer as f32, rounded once."""
    exact = float(value) if abs(value) < 1 << 53 else None
    if exact is not None:
        return b32(exact)
    shift = abs(value).bit_length() - 30
    sticky = 1 if abs(value) & (1 << shift) - 1 else 0
    return b32(math.copysign(float((abs(value) >> shift | sticky) << shift), value))


def _extreme(a: int, b: int, nan: bool, of: Callable[[int], float], to: Callable[[float], int], least: bool) -> int:
    x, y = of(a), of(b)
    if x != x or y != y:
        return to(math.nan) if nan or (x != x and y != y) else (b if x != x else a)
    if x == y == 0:
        return max(a, b) if least else min(a, b)
    return a if (x < y) == least else b


def minimum(a: int, b: int, nan: bool, of: Callable[[int], float], to: Callable[[float], int]) -> int:
    return _extreme(a, b, nan, of, to, True)


def maximum(a: int, b: int, nan: bool, of: Callable[[int], float], to: Callable[[float], int]) -> int:
    return _extreme(a, b, nan, of, to, False)


COMBINE: dict[str, Callable[[int, int], int]] = {"add": operator.add, "min": min, "max": max}
COMBINE |= {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def combined(what: str, kind: str, values: list[int]) -> int:
    """One word of all ranks."""
    if kind in ("f16x2", "bf16x2"):
        low, high = ([value >> by & 0xFFFF for value in values] for by in (0, 16))
        return combined(what, kind[:-2], low) | combined(what, kind[:-2], high) << 16
    if kind in ("f16", "bf16", "f32", "f64"):
        of: Callable[[int], int] = {"f16": from_f16, "bf16": from_bf16}.get(kind, int)
        wide, to = (f64, b64) if kind == "f64" else (f32, b32)
        total = of(values[0])
        for value in values[1:]:
            one = of(value)
            total = (
                to(wide(total) + wide(one)) if what == "add" else _extreme(total, one, False, wide, to, what == "min")
            )
        return {"f16": f16, "bf16": bf16}.get(kind, int)(total)
    width = WIDTHS[kind]
    numbers = [signed(value, width) if kind[0] == "s" else value & (1 << width) - 1 for value in values]
    total = functools.reduce(COMBINE[what], numbers)
    return total & (1 << width) - 1


def multimem_read(c: Context, address: int, what: str, kind: str, count: int) -> list[int]:
    size = WIDTHS[kind] // 8
    parts = [c.memory.read(c.who, at, size, count, RELAXED, SYS) for at in c.memory.everywhere(address)]
    return [combined(what, kind, list(values)) for values in zip(*parts, strict=True)]


def multimem_write(c: Context, address: int, size: int, values: list[int]) -> None:
    for at in c.memory.everywhere(address):
        c.memory.write(c.who, at, size, values, RELAXED, SYS)


def multimem_update(c: Context, address: int, what: str, kind: str, values: list[int]) -> None:
    size = WIDTHS[kind] // 8
    for base in c.memory.everywhere(address):
        for number, value in enumerate(values):
            add = functools.partial(lambda value, old: combined(what, kind, [old, value]), value)
            c.memory.update(c.who, base + number * size, size, add, RELAXED, SYS, False)


@dataclasses.dataclass
class Module:
    functions: dict[str, Callable[..., Thread]]
    shared: dict[str, int]
    variables: dict[str, int]
    local: dict[str, dict[str, int]]
    sources: dict[str, str]


def parse(text: str) -> Module:
    text = re.sub(r"//[^\n]*", "", text)
    shared = {}
    for kind, name, size in re.findall(r"\.shared\s+\.align\s+\d+\s+\.(\w+)\s+([\w$]+)(?:\[(\d*)\])?", text):
        shared[name] = int(size or 1) * WIDTHS[kind] // 8
    variables = {n: int(s) for n, s in re.findall(r"\.global \.align \d+ \.b8 ([\w$]+)\[(\d+)\];", text)}
    module = Module({}, shared, variables, {}, {})
    head = r"\.(entry|func)\s*(?:\(([^)]*)\)\s*)?(\w+)\s*\(([^)]*)\)([^{};]*)\{"
    for match in re.finditer(head, text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        body = text[match.end() : at - 1]
        arguments = re.findall(r"(\w+)(?:\[\d*\])?\s*(?:,|$)", match[4].strip())
        translator = Translator(match[3], arguments, match[1] == "entry", shared | variables)
        translator.local = {n: int(s) for n, s in re.findall(r"\.local\s+\.align\s+\d+\s+\.b8\s+(\w+)\[(\d+)\]", body)}
        source = translator.translate(statements(body))
        scope: dict[str, Any] = dict(globals())
        exec(compile(source, match[3], "exec"), scope)
        module.functions[match[3]] = scope["run"]
        module.local[match[3]] = translator.local
        module.sources[match[3]] = source
    return module


def statements(body: str) -> list[str]:
    """Instructions and labels; braces that only group go."""
    # Each loop of inline assembly has labels of its own.
    for number, asm in enumerate(re.findall(r"\{[^{}]*\bagain:[^{}]*\}", body)):
        body = body.replace(asm, re.sub(r"\b(again|done)\b", rf"$\1_{number}", asm), 1)
    body = re.sub(r"(\$\w+):", r"\1:;", body)
    body = re.sub(r"(?m)^\s*[{}]\s*$", "", body)
    body = re.sub(r"(^|;|\n)(\s*)\{(\s*\.)", r"\1\2\3", body)
    body = re.sub(r";(\s*)\}", r";\1", body)
    lines = []
    for line in body.split(";"):
        line = " ".join(line.split())
        if line and not line.startswith((".reg", ".param", ".local", ".shared", ".pragma", ".loc")):
            lines.append(line)
    return lines


# Running -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Fiber:
    context: Context
    body: Thread
    cta: "Cta"
    waits: tuple[Any, ...] | None = None
    answer: Any = None
    over: bool = False


@dataclasses.dataclass
class Cta:
    rank: int
    number: int
    shared: dict[str, int]
    fibers: list[Fiber] = dataclasses.field(default_factory=list)
    #: The first thread of a warp that has no turn for a while.
    rests: int = -1


class Run:
    """One launch of a kernel on all ranks."""

    def __init__(self, module: Module, name: str, memory: Memory, seed: int) -> None:
        self.module, self.name, self.memory, self.random = module, name, memory, random.Random(seed)
        # The launches of a sequence have a name each, and its own is empty.
        source = module.sources.get(name, "")
        memory.proxies.is_followed = "c.groups" in source
        #: Warps of a CTA are late now and then: it multiplies matrices.
        self.has_rests = "'group'" in source or "'ldmatrix'" in source
        self.ctas: list[Cta] = []
        self.variables = {n: memory.take(size) for n, size in module.variables.items()}

    def add(self, rank: int, params: int, ctas: int, threads: int, cluster: int, dynamic: int) -> None:
        for number in range(ctas):
            shared = {n: self.memory.take(max(s, dynamic, 16), low=True) for n, s in self.module.shared.items()}
            cta = Cta(rank, number, shared)
            maps = Maps()
            for thread in range(threads):
                own = {n: self.memory.take(s) for n, s in self.module.local[self.name].items()}
                symbols = shared | self.variables | own
                who = self.memory.viewer(rank, number, cluster, thread)
                context = Context(self.memory, who, params, thread, threads, number, ctas, cluster, symbols, maps)
                body = self.module.functions[self.name](context, self.module.functions)
                cta.fibers.append(Fiber(context, body, cta))
            self.ctas.append(cta)

    def group(self, cta: Cta, cluster: int) -> list[Fiber]:
        """Threads of the cluster of a CTA."""
        first = cta.number // cluster * cluster
        return [f for c in self.ctas if c.rank == cta.rank and first <= c.number < first + cluster for f in c.fibers]

    def run(self, limit: int = 3000) -> None:
        """Until all threads have ended; a turn that brings nobody on, many times, is a hang."""
        idle = 0
        # Of copies of tiles, which are slow or fast in all of a launch.
        pace = self.random.choice((0.5, 0.5, 0.1)) if self.has_rests else 0.5
        for cta in self.ctas:
            if self.has_rests and self.random.random() < 0.5:
                cta.rests = self.random.choice(range(0, len(cta.fibers), 32))
        while any(not f.over for c in self.ctas for f in c.fibers):
            order = list(self.ctas)
            self.random.shuffle(order)
            moved = False
            for cta in order:
                self.memory.turn()
                if self.memory.transfers and self.random.random() < pace:
                    self.memory.transfers.popleft()()
                looks = self.random.choice((1, 2, 8))
                # In any order: one that comes before another has not seen what that stores.
                if self.has_rests and self.random.random() < 0.03:
                    cta.rests = self.random.choice(range(-32, len(cta.fibers), 32))
                turns = [f for f in cta.fibers if f.context.thread // 32 * 32 != cta.rests]
                if self.random.random() < 0.5:
                    self.random.shuffle(turns)
                for fiber in turns:
                    if not fiber.over and fiber.waits is None:
                        self.step(fiber, looks)
                moved |= self.meet(cta)
            before = self.digest
            self.digest = hash(tuple(hash(bytes(p)) for p in self.memory.parts.values()))
            idle = 0 if moved or before != self.digest else idle + 1
            if idle > limit:
                waiting = {(c.rank, c.number): f.waits for c in self.ctas for f in c.fibers if not f.over}
                raise Fault(f"nobody gets on: {waiting}")
        self.memory.settle()
        for cta in self.ctas:
            for address in cta.shared.values():
                del self.memory.parts[address >> SLOT]

    digest = 0

    def step(self, fiber: Fiber, looks: int) -> None:
        """Goes on until the thread meets others, or has looked so often at memory.

        Threads of a CTA have the same turns, and no other CTA comes between them: what a warp stores with one
        instruction is seen as a whole, on which lines of 128 bytes rely.
        """
        while True:
            try:
                asked = fiber.body.send(fiber.answer)
            except StopIteration:
                fiber.over = True
                fiber.context.groups.end()
                return
            fiber.answer = None
            if asked[0] == "look":
                looks -= 1
                if looks == 0:
                    return
            elif asked[0] == "mapa":
                fiber.answer = self.mapped(fiber, asked[1], asked[2])
            elif asked[0] != "arrive":
                fiber.waits = asked
                return

    def mapped(self, fiber: Fiber, address: int, rank: int) -> int:
        number = fiber.cta.number // fiber.context.cluster * fiber.context.cluster + rank
        for name, base in fiber.cta.shared.items():
            if base >> SLOT == address >> SLOT:
                other = next(c for c in self.ctas if c.rank == fiber.cta.rank and c.number == number)
                return other.shared[name] + address - base
        raise Fault(f"mapa of {address:#x}, which is no shared memory")

    def meet(self, cta: Cta) -> bool:
        """Lets those go on who have all come."""
        moved = False
        alive = [fiber for fiber in cta.fibers if not fiber.over]
        moved |= self.barriers(cta, alive)
        if alive and all(f.waits and f.waits[0] == "cluster" for f in alive):
            everybody = [f for f in self.group(cta, alive[0].context.cluster) if not f.over]
            if all(f.waits and f.waits[0] == "cluster" for f in everybody):
                moved |= self.free(everybody, "cluster")
        for first in range(0, len(cta.fibers), 32):
            moved |= self.warp(cta.fibers[first : first + 32])
        for first in range(0, len(cta.fibers), 128):
            moved |= self.group_of_warps(cta, cta.fibers[first : first + 128])
        return moved

    def barriers(self, cta: Cta, alive: list[Fiber]) -> bool:
        """Barriers of all threads of a CTA, or of a number of them."""
        waiting: dict[int, list[Fiber]] = {}
        for fiber in alive:
            if fiber.waits and fiber.waits[0] == "bar":
                waiting.setdefault(fiber.waits[1], []).append(fiber)
        moved = False
        for fibers in waiting.values():
            counts = {f.waits[3] or len(alive) for f in fibers if f.waits}
            if len(counts) > 1 or len(fibers) > max(counts):
                raise Fault("threads wait at one barrier for other numbers of threads")
            if len(fibers) < max(counts):
                continue
            for first in range(0, len(cta.fibers), 32):
                lanes = [f for f in cta.fibers[first : first + 32] if f in fibers]
                if len({f.waits[2] for f in lanes if f.waits}) > 1:
                    raise Fault("threads of a warp are at different instructions bar.sync, which is .aligned")
            moved |= self.free(fibers, "cta")
        if not moved and len(waiting) > 1 and sum(map(len, waiting.values())) == len(alive):
            raise Fault("threads wait at different barriers")
        return moved

    def group_of_warps(self, cta: Cta, threads: list[Fiber]) -> bool:
        """Four warps that multiply."""
        asked = [f.waits for f in threads if not f.over and f.waits and f.waits[0] == "group"]
        if len(asked) < 128:
            return False
        if len({waits[1] for waits in asked}) > 1:
            raise Fault("warps of a group are at different instructions wgmma")
        (shared,) = cta.shared.values()
        _, _, shape, kinds, _ = asked[0]
        first = threads[0].context
        answers = wgmma(self.memory, first.who, first.groups, shared, shape, kinds, [waits[4] for waits in asked])
        for fiber, answer in zip(threads, answers, strict=True):
            fiber.answer = answer
        if self.random.random() < 0.1:  # One of the warps is late with what it does next.
            cta.rests = self.random.choice(threads).context.thread // 32 * 32
        return self.free(threads)

    def free(self, fibers: list[Fiber], level: str = "") -> bool:
        """They go on; a barrier lets them see what the others of that level have stored."""
        if level:
            self.memory.meet([fiber.context.who for fiber in fibers], LEVELS.index(level))
        for fiber in fibers:
            fiber.waits = None
        return True

    def warp(self, lanes: list[Fiber]) -> bool:
        first = next((f for f in lanes if f.waits and f.waits[0] in WARP), None)
        if not first or not first.waits:
            return False
        members = first.waits[-1] & 0xFFFFFFFF
        mine = [(i, f) for i, f in enumerate(lanes) if members >> i & 1]
        if not all(f.waits and f.waits[0] == first.waits[0] for _, f in mine):
            if any(f.over for _, f in mine):
                raise Fault("a lane that is waited for has ended")
            return False
        if first.waits[0] == "vote":
            said = [bool(f.waits[2]) for _, f in mine if f.waits]
            result: Any = {"all": all(said), "any": any(said), "uni": len(set(said)) == 1}.get(first.waits[1])
            if first.waits[1] == "ballot":
                result = sum(1 << i for i, f in mine if f.waits and f.waits[2])
            for _, fiber in mine:
                fiber.answer = result
        if first.waits[0] == "redux":
            _, what, kind, *_ = first.waits
            result = combined(what, kind, [f.waits[3] for _, f in mine if f.waits])
            for _, fiber in mine:
                fiber.answer = result
        if first.waits[0] == "together":
            given = [f.waits for _, f in mine if f.waits]
            if len(given) < 32 or len({waits[1] for waits in given}) > 1:
                raise Fault(f"lanes of a warp do not come to one {first.waits[1]} together")
            answers = TOGETHER[first.waits[1]](self.memory, [waits[2] for waits in given])
            for (_, fiber), answer in zip(mine, answers, strict=True):
                fiber.answer = answer
        if first.waits[0] == "shfl":
            values = {i: f.waits for i, f in mine}
            for i, fiber in mine:
                fiber.answer = self.shuffled(i, values)
        return self.free([fiber for _, fiber in mine], "warp" if first.waits[0] == "warp" else "")

    def shuffled(self, lane: int, values: dict[int, Any]) -> tuple[int, bool]:
        _, mode, own, by, control, _ = values[lane]
        clamp, segment = control & 31, control >> 8 & 31
        low, high = lane & segment, lane & segment | clamp & ~segment
        other, inside = {
            "up": (lane - by, lane - by >= high),
            "down": (lane + by, lane + by <= high),
            "bfly": (lane ^ by, (lane ^ by) <= high),
            "idx": (low | by & ~segment & 31, (low | by & ~segment & 31) <= high),
        }[mode]
        if not inside:
            return own, False
        if other not in values:
            raise Fault(f"lane {lane} reads lane {other}, which takes no part")
        return values[other][2], True
