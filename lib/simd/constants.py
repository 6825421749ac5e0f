#!/usr/bin/env python3
"""Writes constants.h: the tables and polynomials of the vector kernels.

    python3 lib/simd/constants.py > lib/simd/constants.h

Every number is computed with 60 decimal digits and rounded once. The
polynomials interpolate at Chebyshev nodes, which is within a fraction of a
bit of minimax on intervals this short; the error printed above each one is
measured, on a fine grid, after its coefficients were rounded to double.
"""
from decimal import Decimal as D, getcontext
from fractions import Fraction as F
import math
import struct

getcontext().prec = 60
LN2 = D(2).ln()
GRID = 42  # high parts are multiples of 2^-42, so k * ln2_hi + log_hi is exact for |k| <= 1100


def double(value):
    """The double nearest to a Decimal: Fraction division rounds correctly."""
    f = F(value)
    return f.numerator / f.denominator


def exact(value):
    f = F(value)
    return D(f.numerator) / D(f.denominator)


def on_grid(value):
    return round(F(value) * 2**GRID) / 2**GRID


def row(i):
    """c of 29 bits, so that m * c is exact for 24-bit m, and -log(c) in two parts. Beside 1, c is
    1 from above and 1/2 from below, whose logarithm -1 * ln2 takes away again: log has no
    cancellation there, and log(1) is 0."""
    if i == 15:
        return 0.5, LN2_HI, LN2_LO
    c = 1.0 if i == 0 else round(2**29 / (1 + (i + 0.5) / 16)) / 2**29
    log = -exact(c).ln()
    high = on_grid(log)
    return c, high, double(log - exact(high))


def interpolate(function, low, high, degree):
    n = degree + 1
    mid, half = (low + high) / 2, (high - low) / 2
    nodes = [mid + half * D(math.cos(math.pi * (2 * k + 1) / (2 * n))) for k in range(n)]
    matrix = [[x**j for j in range(n)] + [function(x)] for x in nodes]
    for col in range(n):
        pivot = max(range(col, n), key=lambda r: abs(matrix[r][col]))
        matrix[col], matrix[pivot] = matrix[pivot], matrix[col]
        for row in range(n):
            if row != col:
                factor = matrix[row][col] / matrix[col][col]
                matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[col])]
    return [double(matrix[j][n] / matrix[j][j]) for j in range(n)]


def worst(function, coefficients, low, high, weight):
    result = D(0)
    for k in range(2001):
        x = low + (high - low) * k / 2000
        value = D(0)
        for c in reversed(coefficients):
            value = value * x + exact(c)
        result = max(result, abs(value - function(x)) * weight(x))
    return float(result.ln() / LN2) if result else -math.inf


def log_tail(r):
    """(log(1 + r) - r) / r^2"""
    if abs(r) < D("1e-12"):
        return D(-1) / 2 + r / 3
    return ((1 + r).ln() - r) / (r * r)


def exp_tail(r):
    """(exp(r) - 1 - r) / r^2"""
    if abs(r) < D("1e-12"):
        return D(1) / 2 + r / 6
    return (r.exp() - 1 - r) / (r * r)


def array(name, values, comment):
    print(f"/* {comment} */")
    print(f"static const double {name}[{len(values)}] = {{")
    for i in range(0, len(values), 4):
        print("    " + " ".join(f"{float(v).hex()}," for v in values[i:i + 4]))
    print("};\n")


LN2_HI = on_grid(LN2)
LN2_LO = double(LN2 - exact(LN2_HI))

rows = [row(i) for i in range(16)]

print("/* Tables and polynomials of the vector kernels. Made by constants.py; edit that. */")
print("#pragma once\n")
print("/* clang-format off */")
exp_hi = float(round(F(LN2) * 2**36) / 2**36)
print(f"#define LN2 {double(LN2).hex()}")
print(f"#define LN2_HI {float(LN2_HI).hex()} /* on the grid of 2^-42 */")
print(f"#define LN2_LO {LN2_LO.hex()}")
print(f"#define EXP_LN2_HI {exp_hi.hex()} /* 36 bits: times sixteenths below 2^12 it is exact */")
print(f"#define EXP_LN2_LO {double(LN2 - exact(exp_hi)).hex()}\n")

array("invc", [r[0] for r in rows], "about 1/m for each sixteenth of [1, 2)")
array("logc", [double(exact(r[1]) + exact(r[2])) for r in rows], "-log(invc)")
array("logc_hi", [r[1] for r in rows], "the same on the grid of 2^-42")
array("logc_lo", [r[2] for r in rows], "and what the grid left out")

ends = [F(c) * (1 + F(i + e, 16)) - 1 for i, (c, _, _) in enumerate(rows) for e in (0, 1)]
low, high = (D(f.numerator) / D(f.denominator) for f in (min(ends), max(ends)))
for name, degree in (("f64_log_poly", 9), ("f32_log_poly", 7), ("short_log_poly", 6),
                     ("f16_log_poly", 5), ("bf16_log_poly", 4)):
    p = interpolate(log_tail, low, high, degree)
    bits = worst(log_tail, p, low, high, lambda r: r * r)
    array(name, p, f"(log(1+r) - r) / r^2 on [{float(low):.4f}, {float(high):.4f}]; "
                   f"times r^2 within 2^{bits:.1f}")

half = D(double(LN2 / 32)) * D("1.0001")
p = interpolate(exp_tail, -half, half, 5)
bits = worst(exp_tail, p, -half, half, lambda r: r * r)
array("f64_exp_poly", p, f"(exp(r) - 1 - r) / r^2 on |r| <= ln2/32; times r^2 within 2^{bits:.1f}")
for name, degree in (("f32_exp_poly", 5), ("half_exp_poly", 4)):
    p = interpolate(D.exp, -half, half, degree)
    bits = worst(D.exp, p, -half, half, lambda r: D(1))
    array(name, p, f"exp(r) on |r| <= ln2/32, within 2^{bits:.1f}")

roots = [(LN2 * j / 16).exp() for j in range(16)]
bits = [struct.unpack("<Q", struct.pack("<d", double(v)))[0] - (j << 48) for j, v in enumerate(roots)]
array("exp2_table", [struct.unpack("<d", struct.pack("<Q", b))[0] for b in bits],
      "2^(j/16), with j taken off the bits from 2^48 up: adding n 2^48 makes 2^(n/16)")
array("exp_table_lo", [double((v - exact(double(v))) / v) for v in roots],
      "what rounding left out of 2^(j/16), in proportion")
print("/* clang-format on */")
