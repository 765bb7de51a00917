"""Prints the coefficients of the polynomials in this folder: near-minimax fits, rounded to the type they are used in.

Usage: python coefficients.py [NAME...]

Each is fitted to values of 40 digits at Chebyshev nodes by least squares, whose weights grow where the error is largest
(Lawson). Coefficients are rounded one by one, from the lowest power on, and the others are fitted again. Those in f64
differ in their last digits from one machine to another.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 40
Function = Callable[[Any], Any]
Array = np.ndarray[Any, Any]


@dataclass
class Fit:
    """sum(c[p] * x**p) that is near `function` in [low, high]; errors count in proportion to `weight`."""

    function: Function
    weight: Function
    low: float
    high: float
    powers: Sequence[int]
    #: Coefficients that are given.
    fixed: dict[int, float] = field(default_factory=dict)
    dtype: Any = np.float32


def odd(function: Function, high: float, degree: int) -> Fit:
    """Of x in [0, high], as x + x^3 * polynomial(x^2); errors are relative."""

    def rest(z: Any) -> Any:
        return (function(mp.sqrt(z)) / mp.sqrt(z) - 1) / z

    return Fit(rest, lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)), 1e-9, high**2, range(degree + 1))


def relative(function: Function) -> Function:
    return lambda x: 1 / function(x) if function(x) else mp.mpf(1000)


def far_erfc(t: Any) -> Any:
    """erfc(x) * e^(x^2) * x, of x by t = (x - 1.5) / (x + 1.5)."""
    x = 1.5 * (1 + t) / (1 - t)
    return mp.erfc(x) * mp.exp(x * x) * x


def small_erf(z: Any) -> Any:
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def log2_ratio(x: Any) -> Any:
    return mp.log(1 + x, 2) / x if x else 1 / mp.log(2)


def log2_erfc(x: Any) -> Any:
    return mp.log(mp.erfc(x), 2)


def exp2(x: Any) -> Any:
    return mp.mpf(2) ** x


FITS = {
    "exp": Fit(mp.exp, relative(mp.exp), -0.70, 0.70, range(9), {0: 1, 1: 1}),
    "expm1": Fit(mp.expm1, relative(mp.expm1), -0.35, 0.35, range(1, 8), {1: 1}),
    "exp2": Fit(exp2, relative(exp2), -0.5, 0.5, range(8), {0: 1}),
    "exp2 in tanh": Fit(exp2, relative(exp2), -0.5, 0.5, range(7), {0: 1}),
    "log2 in powf": Fit(log2_ratio, relative(log2_ratio), -1 / 3, 1 / 3, range(14), dtype=np.float64),
    "log1p": Fit(mp.log1p, relative(mp.log1p), -1 / 3, 1 / 3, range(1, 11), {1: 1, 2: -0.5}),
    "tanh": odd(mp.tanh, 0.6, 4),
    "sinh": odd(mp.sinh, 1.0, 3),
    "erf": Fit(small_erf, lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)), 1e-9, 1.0, range(7)),
    "log2 of erfc": Fit(log2_erfc, mp.erfc, 1.0, 4.0, range(8)),
    "erfc": Fit(far_erfc, relative(far_erfc), (0.68 - 1.5) / (0.68 + 1.5), (10.3 - 1.5) / (10.3 + 1.5), range(11)),
    "sin": Fit(mp.sin, relative(mp.sin), 1e-4, 0.87, range(1, 10, 2), {1: 1}),
    "cos": Fit(mp.cos, relative(mp.cos), 1e-4, 0.87, range(0, 10, 2), {0: 1, 2: -0.5}),
    "asin": odd(mp.asin, 0.2501**0.5, 5),
    "atan": odd(mp.atan, 1.0, 8),
}


def lawson(x: Array, y: Array, weight: Array, powers: Sequence[int]) -> tuple[float, Array]:
    """The greatest error and the coefficients, which are not rounded."""
    size = float(np.abs(x).max())
    basis = np.stack([(x / size) ** p for p in powers], 1)
    more, best = np.ones_like(x), (np.inf, np.zeros(len(powers)))
    for _ in range(60):
        w = weight * np.sqrt(more)
        c = np.linalg.lstsq(basis * w[:, None], y * w, rcond=None)[0]
        error = np.abs((basis @ c - y) * weight)
        best = min(best, (float(error.max()), c), key=lambda pair: pair[0])
        more *= error / error.max() + 1e-3
        more /= more.mean()
    return best[0], best[1] / np.array([size**p for p in powers])


def fit(wanted: Fit, nodes: int = 300) -> tuple[float, dict[int, float]]:
    """The greatest error of the rounded coefficients, and they by their powers."""
    middle, half = (wanted.low + wanted.high) / 2, (wanted.high - wanted.low) / 2
    x = middle + half * np.cos((2 * np.arange(nodes) + 1) * np.pi / (2 * nodes))
    y = np.array([float(wanted.function(mp.mpf(float(v)))) for v in x])
    weight = np.array([float(wanted.weight(mp.mpf(float(v)))) for v in x])
    coefficients = {p: float(wanted.dtype(c)) for p, c in wanted.fixed.items()}
    for p, c in coefficients.items():
        y = y - c * x**p
    powers = [p for p in wanted.powers if p not in coefficients]
    while powers:
        c = float(wanted.dtype(lawson(x, y, weight, powers)[1][0]))
        coefficients[powers[0]] = c
        y = y - c * x ** powers[0]
        del powers[0]
    return float(np.abs(y * weight).max()), coefficients


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FITS))
    for name in parser.parse_args().names or FITS:
        error, coefficients = fit(FITS[name])
        print(f"{name}: within 2^{np.log2(error):.1f}")
        for power in sorted(coefficients):
            print(f"  x^{power:<2} {coefficients[power].hex()}")


if __name__ == "__main__":
    main()
