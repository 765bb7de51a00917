# ruff: noqa: E501 (programs in strings)
"""Python's semantics, case by case: a function returns the same in Python and compiled into a kernel."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from types import ModuleType

import commsir
import numpy as np
import pytest

Load = Callable[[str], ModuleType]

POINTS = [(-7, 3), (7, -3), (0, 5), (5, 0), (3, 3), (1, 2), (-1, -1), (12, 4)]
PRELUDE = """
import functools

N = 5
WEIGHTS = (np.float32(1.5), np.int64(2))
NONE, SOME = [], [1, 2]

def twice(g):
    @functools.wraps(g)
    def wrapped(*args):
        return g(*args) * 2
    return wrapped

def plus(g):
    return lambda x: g(x) + 1

@twice
def decorated(x):
    return x + 1

@functools.lru_cache
def remembered(x):
    return x + 1

def scaled(x, *, by=2):
    return x * by

tripled = functools.partial(scaled, by=3)

class Shift:
    def __init__(self, by):
        self.by = by

    def of(self, x):
        return x + self.by

shift = Shift(4)
"""

INTEGERS = {
    # `and`, `or` and `not` give one of their operands, and compute no more than they need.
    "or": "return a or 7",
    "and": "return a and b",
    "or-of-many": "x = a or b or 9\nreturn x + 1",
    "and-constant": "return a > 0 and 5",
    "or-constant": "return b > 0 or -2",
    "or-of-memory": "return (b and 12 // b) or a",
    "not": "return not a",
    "as-a-condition": "if a and (b or a > 2):\n    return 1\nreturn 2 if not (a or b) else 3",
    "of-known": "return (a and 0) or (None or a) or SOME[0]",
    "lists-known": "return a if SOME and not NONE else b",
    # Comparisons.
    "chain": "return a < b < 4 != a",
    "chain-stops": "return 1 if 0 < b < 100 // b else 0",
    "chain-of-false": "return 3 < 2 < a",
    "none": "x = None\nreturn (a == None) + 2 * (a != None) + 4 * (x is None) + 8 * (a is not None)",
    "tuples": "return ((a, b) == (b, a)) + 2 * ((a, 1) != (3, 1)) + 4 * ((a,) == (a, b))",
    "in": "return a in (3, 7, b)",
    # Numbers.
    "bools": "return (a > 0) + (b > 0) * 2 - (a > b)",
    "bools-shifted": "return (a > 0) << (b > 0)",
    "shift": "return (a << 3) + (a >> 1) + (a >> 70)",
    "power": "return a ** 0 + a ** 3",
    "divmod": "q, r = divmod(a, -4)\nreturn q * 10 + r",
    "floor": "return a // (b * b + 1) * 100 + a % -(b * b + 1)",
    "sum": "return sum((a, b, 2), 1)",
    "constants-of-numpy": "t = 0\nfor w in WEIGHTS:\n    t = t + int(w * 2)\nx, y = WEIGHTS\nreturn t + int(y) + a",
    "tuple-repeated": "t = (a, b) * 2\nreturn t[2] - t[3]",
    # `:=`, in what may not be computed as well.
    "walrus": "y = (n := a + 1) * 2\nreturn n + y",
    "walrus-behind-and": "n = 5\nif a > 0 and (n := b) > 2:\n    return n\nreturn n * 10",
    "walrus-behind-or": "n = 5\nx = a > 0 or (n := b) > 2\nreturn n * 10 + x",
    "walrus-in-a-choice": "n = 1\ny = (n := 4) if a > 0 else 2\nreturn n * 100 + y",
    "walrus-in-while": "i = 0\nwhile (j := i * 2) < a:\n    i += j + 1\nreturn i",
    "walrus-in-while-else": "i = j = 0\nwhile (j := i * 2) < a:\n    i += 1\n    if i == b:\n        break\n"
    "else:\n    i += 100\nreturn i + j",
    # Functions.
    "default-when-defined": "n = a\ndef g(t, s=n):\n    return t * s\nn = b\nreturn g(2)",
    "default-of-lambda": "n = a\ng = lambda t, *, s=n: t * s\nn = b\nreturn g(2)",
    "closure-late": "n = a\ndef g():\n    return n\nn = b\nreturn g()",
    "closures-of-a-loop": "t = 0\nfs = ()\nfor i in (1, 2, 3):\n    fs += (lambda: i * a, lambda i=i: i * b)\n"
    "for g in fs:\n    t += g()\nreturn t",
    "closure-returned": "def g(x):\n    return lambda y: x + y\nreturn g(a)(b)",
    "arguments": "def g(x, /, *v, k=3, m):\n    t = x\n    for y in v:\n        t = t * 3 + y\n    return t * k - m\n"
    "return g(a, b, *(1, 2), m=b)",
    "decorated": "@plus\n@plus\ndef g(x):\n    return x - b\nreturn g(a) + decorated(b)",
    "recursion-known": "def g(n):\n    return a if n == 0 else g(n - 1) * 2 + g(0)\nreturn g(5)",
    "closures-alike": "def g(n):\n    return lambda x: n(x) + 1\nreturn g(g(g(lambda x: x * b)))(a)",
    "remembered": "return remembered(a)",
    "partial": "return tripled(a)",
    "method": "return shift.of(a)",
    "known-as-another": "max = lambda x, y: x * y\nsum = max(a, b)\nreturn sum",
    # Loops.
    "while-true": "i = 0\nwhile True:\n    i += 1\n    if i > a:\n        return i",
    "while-true-in-a-branch": "i = 0\nif a > 0:\n    while True:\n        i += 1\n        if i > a:\n            return i\nreturn b",
    "while-true-left": "i = 0\nwhile True:\n    i += 1\n    if i > a:\n        break\nreturn i * 2",
    "left-two-deep": "for i in range(4):\n    for j in range(5):\n        if i * j == a:\n            return i * 10 + j\n"
    "        if j > b:\n            break\n    else:\n        if i == 2:\n            continue\n        a -= 1\nreturn a",
    "grown-and-overwritten": "t = 0\nfor i in range(4):\n    t += 1\n    for j in range(a % 3):\n        t = j\nreturn t + b",
    "else-of-for": "t = 0\nfor i in range(6):\n    if i == a:\n        break\n    if i % 2:\n        continue\n    t += i\n"
    "else:\n    t += 100\nreturn t",
    "variable-changed": "t = 0\nfor i in range(5):\n    t += i\n    i = 100\nreturn t + a",
    "backwards": "t = 0\nfor i in range(a, b, -2):\n    t = t * 3 + i\nreturn t",
    # What the test of a loop assigns changes from round to round, whatever its `else` does.
    "assigned-in-a-test-else-returns": "w, n = a, 0\nwhile (w := w - 1) > 0 and n < 100:\n    n += 1\nelse:\n    return n * 10\nreturn -1",
    "assigned-in-a-test-left": "w, n = a, 0\nwhile (w := w - 1) > 0:\n    n += w\n    if n > b:\n        break\nelse:\n    return n * 10 + w\nreturn -n",
    "assigned-in-the-second-test": "i, s = 0, 0\nwhile i < 8 and (v := i * a) < 30:\n    s += v\n    i += 1\n    if s > 90:\n        break\nelse:\n    s += 1000\nreturn s",
    "else-continues-outside": "t = 0\nfor k in range(5):\n    i = a % 3\n    while (i := i + 1) < k:\n        if i == b % 4:\n            break\n"
    "    else:\n        if k == 3:\n            continue\n        t += 1\n        continue\n    t += 10 * i\nreturn t",
    # Lists and what they are made of.
    "lists-added": "x = [1, 2]\ny = x\nx = x + [a]\nreturn len(x) * 10 + len(y) + x[2]",
    # Annotations of variables are never computed.
    "annotations": "x: int | None = a\ny: Unknown[int] = b\nz: 'Unknown' = 1\nreturn x + y + z",
    "annotation-converts": "x: i32 = a\ny: commsir.i64 = b\nz: 'i8' = 3\nreturn x + y + z",
}  # fmt: skip
FLOATS = {
    "mixed-choice": "x = 1 if a > 0 else 2.5\nreturn x",
    "mixed-or": "return a * 0.5 or 2",
    "mixed-and": "return a > 0 and b * 0.5",
    "mixed-loop": "x = 0\nfor i in range(3):\n    x = x + 0.5\nreturn x + a",
    "modulo": "return a % 3.0 + a % -3.0 + a // 2.0",
    "power": "return a ** 0 + (a * a + 1) ** 0.5",
    "power-of-either-sign": "return a ** 3.0 + (a * a + 1) ** -3",
    "modulo-either-sign": "return a % (b * 0.3 + 0.05) + a // (b * 0.3 + 0.05)",
}


def _check(load: Load, body: str, dtype: type[np.generic], kind: str) -> None:
    rows = len(POINTS)
    module = load(
        f"{PRELUDE}\ndef f(a, b):\n{textwrap.indent(body, '    ')}\n\n@kernel\n"
        f"def k(p: {kind}[Array, {rows}, 2], y: {kind}[Array, {rows}]):\n"
        f"    for row in range({rows}):\n        y[row] = f(p[row, 0], p[row, 1])\n"
    )
    wanted = [module.f(*point) for point in POINTS]
    got = module.k.simulate(ranks=1, inputs={"p": np.array(POINTS, dtype)})["y"][0]
    np.testing.assert_allclose(got, np.array(wanted, dtype), rtol=1e-6)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(load: Load, name: str) -> None:
    _check(load, INTEGERS[name], np.int64, "i64")


@pytest.mark.parametrize("name", FLOATS)
def test_floats(load: Load, name: str) -> None:
    _check(load, FLOATS[name], np.float64, "f64")


def test_operands_are_unchanged(load: Load) -> None:
    """Also where a later one changes the memory that they come from."""
    module = load(
        "@kernel\ndef k(x: i64[Array, 1], y: i64[Array, 4]):\n"
        "    def bump():\n        x[0] += 1\n        return x[0]\n"
        "    y[0] = x[0] + bump()\n    y[1] = (lambda a, b: a * 10 + b)(x[0], bump())\n"
        "    y[2] = (lambda a, b: a * 10 + b)(a=x[0], b=bump())\n    y[3] = x[0] < bump()\n"
    )
    np.testing.assert_array_equal(module.k.simulate(1, {"x": np.array([5])})["y"][0], [11, 67, 78, 1])


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, -3.0, 2.5, 1e10, -1e30, 1e-30, np.inf, -np.inf, np.nan]


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_floats_divide_as_numpys(load: Load) -> None:
    """`//`, `%` and `**` of tiles: special values to the bit; `**` of others to a few units in the last place."""
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL], np.float32)
    random = np.random.default_rng(1)
    scales = 10.0 ** random.integers(-30, 30, (2048, 2))
    pairs = np.concatenate([pairs, (random.normal(size=(2048, 2)) * scales).astype(np.float32)])
    count = len(pairs)
    module = load(
        f"@kernel\ndef k(x: f32[Array, {count}], d: f32[Array, {count}], m: f32[Array, {count}], q: f32[Array, {count}], p: f32[Array, {count}]):\n"
        "    m[:], q[:], p[:] = x[:] % d[:], x[:] // d[:], x[:] ** d[:]\n"
    )
    x, d = pairs.T.copy()
    got = module.k.simulate(1, {"x": x, "d": d})
    special = slice(0, len(SPECIAL) ** 2)
    for name, want in (("m", np.mod(x, d)), ("q", np.floor_divide(x, d))):
        mine = got[name][0]
        np.testing.assert_array_equal(mine[special], want[special])
        numbers = ~np.isnan(want[special])
        np.testing.assert_array_equal(np.signbit(mine[special])[numbers], np.signbit(want[special])[numbers])
    np.testing.assert_array_equal(got["m"][0], np.mod(x, d))
    # NumPy rounds on the way, where the quotient has more digits than f32.
    np.testing.assert_allclose(got["q"][0], np.floor_divide(x, d), rtol=3e-7)
    want = np.power(x.astype(np.float64), d.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(got["p"][0], want, rtol=2.5e-7, atol=3e-45)
    sure = np.isinf(want) | (want == 0)
    np.testing.assert_array_equal(got["p"][0][sure].view(np.int32), want[sure].view(np.int32))


UNARY = ["exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "cbrt", "tanh", "sinh", "cosh", "sin", "cos"]
UNARY += ["tan", "asin", "acos", "atan", "erf", "erfc"]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_functions_of_constants_are_those_of_data(load: Load, dtype: str) -> None:
    """To the bit, as tiles and as scalars; and what Python makes of such constants stays exact."""
    module = load(
        f"@kernel\ndef k(x: {dtype}[Array, 4], y: {dtype}[Array, {len(UNARY)}, 3, 4], z: f64[Array, 2]):\n"
        "    t = x[:]\n"
        + "".join(f"    y[{i}, 0], y[{i}, 1] = {f}(t), {f}(0.7890625)\n" for i, f in enumerate(UNARY))
        + "".join(f"    y[{i}, 2] = 0 * t + {f}(0.7890625)\n" for i, f in enumerate(UNARY))
        + "    z[0], z[1] = math.log(2), zeros(int(math.sqrt(4))).sum() + math.exp(1)\n"
    )
    kernel = module.k
    got = kernel.simulate(1, {"x": np.full(4, 0.7890625, np.float32)})
    y = got["y"][0].view(np.int32)  # f32 holds bf16 exactly.
    assert (y == y[:, :1, :1]).all()
    np.testing.assert_array_equal(got["z"][0][0], np.log(2.0))


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_functions_at_their_ends(load: Load) -> None:
    """Huge arguments, subnormal numbers and special values, against NumPy in float64."""
    names = [name for name in UNARY if hasattr(np, name) or name in ("asin", "acos", "atan")]
    ends = [0.0, 1e-45, 1e-40, 1.1e-38, 1e-8, 0.5, 1, 89, 131072, 1e9, 1e15, 1e30, 3.4e38, np.inf]
    x = np.array([*ends, *(-end for end in ends), np.nan, 88.7, -103.9], np.float32)
    module = load(
        f"@kernel\ndef k(x: f32[Array, {len(x)}], y: f32[Array, {len(names)}, {len(x)}]):\n"
        + "".join(f"    y[{i}] = {name}(x[:])\n" for i, name in enumerate(names))
    )
    got = module.k.simulate(1, {"x": x})["y"][0]
    for name, mine in zip(names, got, strict=True):
        want = getattr(np, name.replace("asin", "arcsin").replace("acos", "arccos").replace("atan", "arctan"))(
            x.astype(np.float64)
        ).astype(np.float32)
        np.testing.assert_allclose(mine, want, rtol=5e-7, atol=6e-45, err_msg=name)
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(mine[zeros]), np.signbit(want[zeros]), err_msg=name)


ENDS = [
    ("exp", 1000.0), ("exp2", 5000), ("expm1", 1e6), ("log", 0.0), ("log", -1.0), ("log2", 0), ("log1p", -1.0),
    ("sqrt", -1.0), ("rsqrt", 0.0), ("cosh", 1e6), ("sinh", -1e6), ("asin", 2), ("acos", -2.0), ("sin", math.inf),
    ("cos", -math.inf), ("tan", math.inf), ("floor", math.inf), ("ceil", -math.inf), ("rint", math.nan),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_functions_of_constants_at_their_ends(load: Load) -> None:
    """Where Python's `math` raises, constants give what data give."""
    module = load(
        f"inf, nan = math.inf, math.nan\n@kernel\ndef k(x: f32[Array, {len(ENDS)}], y: f32[Array, 2, {len(ENDS)}]):\n"
        + "".join(f"    y[0, {i}], y[1, {i}] = {name}(x[{i}]), {name}({x})\n" for i, (name, x) in enumerate(ENDS))
    )
    data, constants = module.k.simulate(1, {"x": np.array([x for _, x in ENDS], np.float32)})["y"][0]
    np.testing.assert_array_equal(constants, data)
    with pytest.raises(commsir.CompileError, match="exp of an integer of 1329 bits"):
        load("@kernel\ndef k(y: f32[Array, 1]):\n    y[0] = exp(10**400)\n").k.text()


def test_names_and_forms_of_numpy(load: Load) -> None:
    module = load(
        "N, NAMES = [1, 2, 3], {'a': 1}\n@kernel\ndef k(x: f32[Array, 8], y: f32[Array, 8, 8]):\n    t = x[:]\n"
        "    y[0], y[1] = np.arange(0, 16, 2), np.arange(8, 0, -1)\n"
        "    y[2], y[3] = np.arange(1, 9, dtype=np.float32), np.clip(t, None, 3)\n"
        "    y[4], y[5] = clip(t, 2, None), full(8, len('abc') + len(N) + len(NAMES))\n"
        "    y[6, 0], y[6, 1], y[6, 2] = all(N), any((0, 0)), all(())\n"
    )
    x = np.arange(8, dtype=np.float32)
    y = module.k.simulate(1, {"x": x})["y"][0]
    wanted = [np.arange(0, 16, 2), np.arange(8, 0, -1), x + 1, x.clip(None, 3), x.clip(2, None), [7] * 8]
    np.testing.assert_array_equal(y[:6], wanted)
    assert y[6].tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


def test_ranks_in_functions_of_collectives(load: Load) -> None:
    """What is a number of the rank in the kernel is the same number in the function."""
    module = load(
        "@kernel\ndef k(x: f32[Window, 2, 4], y: f32[Array, 2, 4], z: f32[Array, 2, 4]):\n"
        "    all_reduce(x, outs=y, consume=lambda t: t * size() + rank() * 10)\n"
        "    r = rank()\n    all_reduce(x, outs=z, consume=lambda t: t + r + team().rank)\n"
    )
    for blocks in (1, 2):
        report = module.k.simulate(3, {"x": np.ones((2, 4))}, blocks=blocks)
        assert [[y.min(), y.max()] for y in report["y"]] == [[9 + 10 * r] * 2 for r in range(3)]
        assert [[z.min(), z.max()] for z in report["z"]] == [[3 + 2 * r] * 2 for r in range(3)]


def test_exponents_that_are_no_numbers(load: Load) -> None:
    module = load(
        "@kernel\ndef k(x: f32[Array, 4], y: f32[Array, 4], z: f32[Array, 4]):\n"
        "    y[:], z[:] = x[:] ** np.inf, x[:] ** np.nan\n"
    )
    x = np.array([0.5, 2, 1, -1], np.float32)
    got = module.k.simulate(1, {"x": x})
    np.testing.assert_array_equal(got["y"][0], np.power(x, np.float32(np.inf)))
    np.testing.assert_array_equal(got["z"][0], np.power(x, np.float32(np.nan)))


def test_numbers_that_wrap_are_divided_with_their_sign(load: Load) -> None:
    module = load(
        "@kernel\ndef k(y: i64[Array, 6]):\n    h = i32((rank() + 1) * 3000000000)\n    y[0], y[1] = h % 10, h // 10\n"
        "    a = i8(rank() + 200)\n    y[2], y[3] = a // 3, a % 7\n    b = i8(rank() == 0) * 100\n    y[4] = (b + b) // 3\n"
        "    g = (rank() + 1) * 6364136223846793005\n    y[5] = (g * 3) % 10\n"
    )
    h, g = 3000000000 - 2**32, 6364136223846793005 * 3 - 2**64
    np.testing.assert_array_equal(module.k.simulate(1)["y"][0], [h % 10, h // 10, -56 // 3, -56 % 7, -56 // 3, g % 10])


def test_masks_are_counted(load: Load) -> None:
    """A bit has no room for a sum, and as a number with a sign it is negative."""
    module = load(
        "@kernel\ndef k(x: f32[Array, 8], q: i32[Array, 8], y: f32[Array, 9]):\n"
        "    m, none = x[:] > 2, x[:] > 100\n"
        "    y[0], y[1], y[2] = m.sum(), m.mean(), m.prod()\n"
        "    y[3], y[4], y[5] = m.max(), m.min(), none.max()\n"
        "    y[6], y[7] = np.mean(q[:]), np.sum(none)\n    y[8] = row_reduce('or', m)\n"
    )
    x, q = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.int32)
    m = x > 2
    wanted = [m.sum(), m.mean(), m.prod(), m.max(), m.min(), 0, q.mean(), 0, 1]
    np.testing.assert_array_equal(module.k.simulate(1, {"x": x, "q": q})["y"][0], np.array(wanted, np.float32))


def test_slices_from_the_end(load: Load) -> None:
    module = load("@kernel\ndef k(x: f32[Array, 8], y: f32[Array, 4]):\n    y[:] = x[-8:-8 + 4]\n")
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(module.k.simulate(1, {"x": x})["y"][0], x[:4])


def test_a_chain_reads_only_what_it_reaches(load: Load) -> None:
    module = load(
        "@kernel\ndef k(x: i64[Array, 4], y: i64[Array, 6]):\n    for i in range(6):\n        y[i] = i < 4 < x[i]\n"
    )
    got = module.k.simulate(1, {"x": np.array([4, 5, 6, 7])}, check=False)["y"][0]
    np.testing.assert_array_equal(got, [0, 1, 1, 1, 0, 0])


def test_right_sides_have_their_effects_when_reached(load: Load) -> None:
    """A function may store, put and wait before it returns a constant or a tile; one that is not called does not."""
    module = load(
        "@kernel\ndef k(x: i64[Array, 2, 8], y: i64[Array, 8], r: index):\n"
        "    def number(q):\n        y[0] = y[0] * 10 + q\n        return q\n"
        "    def tile(q):\n        y[1] = y[1] * 10 + q\n        return x[1].max()\n"
        "    if r == 7 or number(5):\n        y[2] = 1\n"
        "    if r == 1 and number(0):\n        y[3] = 1\n"
        "    if r == 7 and number(1):\n        y[4] = 1\n"
        "    y[5] = 7 < r < tile(3)\n"
        "    if 0 < r < tile(4):\n        y[6] = 1\n"
        "    y[7] = 7 > r > tile(2)\n"
    )
    x = np.full((2, 8), 9, np.int64)
    for r, wanted in ((1, [50, 42, 1, 0, 0, 0, 1, 0]), (7, [1, 4, 1, 0, 1, 0, 1, 0]), (8, [5, 34, 1, 0, 0, 1, 1, 0])):
        np.testing.assert_array_equal(module.k.simulate(1, {"x": x, "r": r})["y"][0], wanted)


def test_right_sides_communicate_when_reached(load: Load) -> None:
    module = load(
        "@kernel\ndef k(s: i64[Signal, 1], w: f32[Window, 4], x: f32[Array, 4], y: f32[Array, 4]):\n"
        "    def deliver():\n        put_signal(x, w, 1, s[0])\n        return True\n"
        "    def arrived():\n"
        "        t = wait_signal(s[0], ge=epoch())\n        y[:] = w.load(0, 4, after=t)\n        return x[:].max()\n"
        "    sent = rank() == 1 or deliver()\n"
        "    if 0 < rank() < arrived():\n        y[0] = 7\n"
        "    barrier()\n"
    )
    got = module.k.simulate(2, {"x": [np.full(4, 3, np.float32)] * 2})["y"]
    np.testing.assert_array_equal(got, [[0, 0, 0, 0], [7, 3, 3, 3]])


def test_negated_views_of_torch(load: Load) -> None:
    """Their memory is not what they hold."""
    torch = pytest.importorskip("torch")
    module = load("@kernel\ndef k(x: f32[Array, 4], y: f32[Array, 4]):\n    y[:] = x[:]\n")
    x = torch._neg_view(torch.arange(1.0, 5.0))
    np.testing.assert_array_equal(module.k.simulate(1, {"x": x})["y"][0], [-1, -2, -3, -4])


def test_indices_keep_narrowed_values(load: Load) -> None:
    module = load(
        "@kernel\ndef k(x: i64[Array, 8], y: i64[Array, 6], r: index):\n"
        "    y[0], y[1] = int(i8(r)), i8(r) + r\n    y[2] = int(i32(r * 30000000))\n"
        "    y[3] = x[i32(r * 30000000) % 8]\n    y[4], y[5] = i16(r * 500) < r, min(i8(r), r)\n"
    )
    wrapped = int(np.int64(6000000000).astype(np.int32))
    got = module.k.simulate(1, {"x": np.arange(8), "r": 200})["y"][0]
    np.testing.assert_array_equal(got, [-56, 144, wrapped, wrapped % 8, 1, -56])


def test_arguments_are_unchanged(load: Load) -> None:
    """Before a later argument, or the subscript of what is assigned to, stores there."""
    module = load(
        "@kernel\ndef k(x: i64[Array, 8], y: i64[Array, 8], z: i64[Array, 2, 4]):\n"
        "    def f(v):\n        x[0] = 50\n        return v\n"
        "    y[f(0)] = x[0]\n    x[0] = 5\n    y[1] = max(x[0], f(1))\n    x[0] = 5\n"
        "    y[2] = where(x[6] == 6, x[0], f(0))\n    x[0] = 5\n    y[3] = divmod(x[0], f(2))[0]\n    x[0] = 5\n"
        "    z[f(1)] = x[0:4]\n    x[0] = 5\n    r = range(x[0], f(8))\n    x[0] = 1\n"
        "    for i in r:\n        y[4] += 1\n"
        "    x[0] = 5\n    y.store(full(1, 4), x[0], valid=f(1))\n    x[0] = 5\n    a = y[f(6)] = x[0]\n    y[7] = a\n"
    )
    got = module.k.simulate(1, {"x": np.arange(8) + 5 * (np.arange(8) == 0)})
    np.testing.assert_array_equal(got["y"][0], [5, 5, 5, 2, 3, 4, 5, 5])
    np.testing.assert_array_equal(got["z"][0][1], [5, 1, 2, 3])


def test_parts_of_lengths_that_differ(load: Load) -> None:
    """A length that is known at run time only counts as one that is known before."""
    module = load(
        "@kernel\ndef k(w: i64[Window, 8], x: i64[Array, 8], n: index, m: index):\n"
        "    put(x[0:n], w[0:m], rank())\n    barrier()\n    get(w[0:n], x[4:8], rank())\n"
    )
    got = module.k.simulate(1, {"x": np.arange(8), "n": 4, "m": 4})
    np.testing.assert_array_equal(got["w"][0], [0, 1, 2, 3, 0, 0, 0, 0])
    np.testing.assert_array_equal(got["x"][0], [0, 1, 2, 3, 0, 1, 2, 3])
    for n, m in ((4, 5), (5, 4), (3, 3)):
        with pytest.raises(commsir.BoundsError, match="what is copied covers"):
            module.k.simulate(1, {"x": np.arange(8), "n": n, "m": m})


def test_asserts_compute_once(load: Load) -> None:
    module = load(
        "@kernel\ndef k(y: i64[Array, 2], r: index):\n"
        "    def f(v):\n        y[0] += 1\n        return v\n"
        "    assert 0 <= f(2) < 5\n    assert 0 <= f(r) < f(3)\n    assert 0 <= f(0.5) < 5\n"
        "    if r == 2:\n        y[1] = 1\n    else:\n        assert False, 'not two'\n"
    )
    np.testing.assert_array_equal(module.k.simulate(1, {"r": 2})["y"][0], [4, 1])
    with pytest.raises(commsir.BoundsError, match="not two"):
        module.k.simulate(1, {"r": 1})


def test_integers_are_round(load: Load) -> None:
    module = load(
        "@kernel\ndef k(x: i64[Array, 4], y: i64[Array, 4]):\n"
        "    y[0], y[1], y[2], y[3] = round(x[0]), math.floor(x[1]), math.ceil(x[2]), round(2.5000001)\n"
    )
    x = np.array([16777217, 16777219, 2**53 + 1, 0])
    np.testing.assert_array_equal(module.k.simulate(1, {"x": x})["y"][0], [*x[:3], 3])


def test_zeros_have_signs(load: Load) -> None:
    module = load("@kernel\ndef k(y: f32[Array, 1], r: index):\n    v = 0.0 if r == 0 else -0.0\n    y[0] = v\n")
    assert [np.signbit(module.k.simulate(1, {"r": r})["y"][0][0]) for r in (0, 1)] == [False, True]


def test_long_tuples(load: Load) -> None:
    module = load("@kernel\ndef k(y: i64[Array, 1]):\n    for v in static_range(600):\n        y[0] += v\n")
    assert module.k.simulate(1)["y"][0][0] == sum(range(600))


def test_shifts_that_leave_nothing(load: Load) -> None:
    """As NumPy's: of scalars as of tiles, by amounts that are known and that are not; constants keep their sign."""
    module = load(
        "@kernel\ndef k(x: i64[Array, 2], s: i64[Array, 2], v: i8[Array, 1], y: i64[Array, 4], r: index):\n"
        "    y[0] = x[0] << r\n    y[1] = x[1] >> (r + 1)\n    y[2:4] = x[:] << s[:]\n    v[0] = v[0] >> 200\n"
    )
    given = {"x": np.array([5, -(2**50)]), "s": np.array([70, 64]), "v": np.array([-3], np.int8), "r": 70}
    result = module.k.simulate(1, given)
    np.testing.assert_array_equal(result["y"][0], [0, -1, 0, 0])
    assert result["v"][0][0] == -1
    wide = load("@kernel\ndef k(v: i32[Array, 1], y: i64[Array, 1]):\n    y[0] = 100 >> v[0]\n")
    assert wide.k.simulate(1, {"v": np.array([2], np.int32)})["y"][0][0] == 25
    with pytest.raises(commsir.CompileError, match="200"):
        load("@kernel\ndef k(v: i8[Array, 1], y: i64[Array, 1]):\n    y[0] = 200 >> v[0]\n").k.simulate(1)


@pytest.mark.parametrize("r", [-1, 3, 50, 10**10])
def test_elements_of_rows_have_bounds(load: Load, r: int) -> None:
    module = load(
        "@kernel\ndef k(x: i64[Array, 3, 4], y: i64[Array, 1], r: index):\n    y[0] = x[r, 1]\n"
        "@kernel\ndef s(y: i64[Array, 1], r: index):\n    a = scratch(i64, 3, 2)\n    a[0, 0] = 1\n    y[0] = a[r, 0]\n"
    )
    for kernel, what in ((module.k, "read of x, dimension 0"), (module.s, "read of scratch memory, dimension 0")):
        with pytest.raises(commsir.BoundsError, match=what):
            kernel.simulate(1, {"r": r})
