"""Arithmetic of indices, as docs/Spec.md defines it."""

import math
from collections.abc import Callable

PREDICATES = ["slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "eq", "ne"]


def signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int = 64) -> int:
    return value & ((1 << bits) - 1)


def divide(a: int, b: int, bits: int) -> int:
    """Towards zero; by zero: all ones."""
    if b == 0:
        return -1
    return signed(-(-a // b) if (a < 0) != (b < 0) and a % b else a // b, bits)


def remainder(a: int, b: int) -> int:
    return a if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b))


def expand_ceil_signed(a: int, b: int, bits: int) -> int:
    """arith.ceildivsi as it is expanded: by the quotient towards zero."""
    q = divide(a, b, bits)
    exact = signed(q * b, bits) == a
    return q if exact or (a < 0) != (b < 0) else signed(q + 1, bits)


def expand_floor_signed(a: int, b: int, bits: int) -> int:
    q = divide(a, b, bits)
    exact = signed(q * b, bits) == a
    return signed(q - 1, bits) if not exact and (a < 0) != (b < 0) else q


def expand_ceil_unsigned(a: int, b: int, bits: int) -> int:
    """(a - 1) / b + 1, or 0 of 0."""
    if unsigned(a, bits) == 0:
        return 0
    q = (1 << bits) - 1 if b == 0 else unsigned(a - 1, bits) // unsigned(b, bits)
    return signed(q + 1, bits)


def shift(op: str, a: int, b: int, bits: int) -> int:
    count = unsigned(b, bits)
    if op == "shrsi":
        return a >> min(count, bits - 1)
    if count >= bits:
        return 0
    return signed(a << count, bits) if op == "shli" else signed(unsigned(a, bits) >> count, bits)


def compute(op: str, a: int, b: int, bits: int = 64) -> int:
    """The op of arith `op` on signed numbers of so many bits."""
    ua, ub = unsigned(a, bits), unsigned(b, bits)
    table: dict[str, Callable[[], int]] = {
        "addi": lambda: a + b,
        "subi": lambda: a - b,
        "muli": lambda: a * b,
        "minsi": lambda: min(a, b),
        "maxsi": lambda: max(a, b),
        "minui": lambda: min(ua, ub),
        "maxui": lambda: max(ua, ub),
        "andi": lambda: a & b,
        "ori": lambda: a | b,
        "xori": lambda: a ^ b,
        "divsi": lambda: divide(a, b, bits),
        "divui": lambda: -1 if ub == 0 else ua // ub,
        "remsi": lambda: remainder(a, b),
        "remui": lambda: a if ub == 0 else ua % ub,
        "ceildivsi": lambda: expand_ceil_signed(a, b, bits),
        "floordivsi": lambda: expand_floor_signed(a, b, bits),
        "ceildivui": lambda: expand_ceil_unsigned(a, b, bits),
    }
    if op in ("shli", "shrsi", "shrui"):
        return shift(op, a, b, bits)
    return signed(table[op](), bits)


def compare(predicate: str, a: int, b: int) -> bool:
    if predicate in ("eq", "ne"):
        return (a == b) == (predicate == "eq")
    if predicate[0] == "u":
        a, b = unsigned(a), unsigned(b)
    return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[predicate[1:]]


# The index dialect's ops that use no value, and what {a} is then.
INDEX_CONSTANTS = [
    (["{a} = index.constant 5"], 5),
    (["{a} = index.constant -1"], -1),
    (["{a} = index.sizeof"], 64),
    (["{a}c = index.bool.constant true", "{a} = index.castu {a}c : i1 to index"], 1),
]
# The index dialect's names of the ops above.
INDEX_OPS = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "divs": "divsi",
    "divu": "divui",
    "ceildivs": "ceildivsi",
    "ceildivu": "ceildivui",
    "floordivs": "floordivsi",
    "rems": "remsi",
    "remu": "remui",
    "maxs": "maxsi",
    "maxu": "maxui",
    "mins": "minsi",
    "minu": "minui",
    "shl": "shli",
    "shrs": "shrsi",
    "shru": "shrui",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
}


def affine_mod(a: int, m: int) -> int:
    return a % m


def affine_floor(a: int, m: int) -> int:
    return a // m


def affine_ceil(a: int, m: int) -> int:
    return -(-a // m)
