"""Make the tables of poles behind the native kernels: its output is src/dpmanifold/linalg/native/src/poles.inc.

Each table is a rational function c + sum_j r_j / (x + p_j) with real poles -p_j < 0, accurate to ERROR on [1/B, 1]:
log x (absolutely), x^(-1/2) (relatively) and x^(1/2) (absolutely). B is one of BOUNDS. The resolvents of a
tridiagonal matrix are cheap and, for positive definite matrices, cannot break down: that is why the poles are real.
"""

import sys

import mpmath as mp

# Bounds on (largest eigenvalue, rounded up) / (smallest one) for which tables exist; beyond the last, 1/(16 eps), the
# small eigenvalues are mostly rounding.
BOUNDS = [2**e for e in (5, 9, 12, 15, 18, 22, 26, 31, 36, 41, 45, 48)]
ERROR = mp.mpf("4e-15")


def grid(bound, points=500):
    """Points of [1/bound, 1], evenly spaced in the logarithm."""
    return [mp.mpf(bound) ** (-mp.mpf(i) / (points - 1)) for i in range(points)]


def value(table, x):
    """Evaluate a table at x."""
    constant, poles, residues = table
    return constant + mp.fsum(r / (x + p) for p, r in zip(poles, residues, strict=True))


def logarithm(bound, n):
    """Interpolate log at 2n + 1 Zolotarev nodes of [1/bound, 1] by a function of type (n, n).

    log is a Stieltjes function up to a constant: the interpolant's poles are simple, negative, and its residues
    negative. The nodes are the images of equidistant points under dn^2, which is near optimal for such functions.
    """
    mp.mp.dps = 40 + 3 * n
    m = 2 * n + 1
    # dn runs over [k', 1]; its square over [1/bound, 1].
    parameter = 1 - mp.mpf(1) / bound
    quarter = mp.ellipk(parameter)
    nodes = [mp.ellipfun("dn", (2 * j + 1) * quarter / (2 * m), m=parameter) ** 2 for j in range(m)]
    support, others = nodes[0::2], nodes[1::2]
    logs = [mp.log(x) for x in support]
    # Barycentric weights: the null vector of the Loewner matrix.
    loewner = mp.matrix(n, n + 1)
    for i, x in enumerate(others):
        y = mp.log(x)
        for j, s in enumerate(support):
            loewner[i, j] = (y - logs[j]) / (x - s)
    weights = [mp.mpf(1), *mp.lu_solve(loewner[:, 1:], -loewner[:, 0])]

    def denominator(u):
        x = -(mp.e**u)
        return mp.fsum(w / (x - s) for w, s in zip(weights, support, strict=True))

    low, high, cells = -mp.log(bound) - 20, mp.mpf(20), 24 * n
    marks = [low + (high - low) * i / cells for i in range(cells + 1)]
    signs = [denominator(u) for u in marks]
    poles = [
        mp.e ** mp.findroot(denominator, (marks[i], marks[i + 1]), solver="anderson", tol=mp.mpf(10) ** -60)
        for i in range(cells)
        if signs[i] * signs[i + 1] < 0
    ]
    if len(poles) != n:
        return None
    residues = []
    for p in poles:
        top = mp.fsum(w * y / (-p - s) for w, y, s in zip(weights, logs, support, strict=True))
        slope = -mp.fsum(w / (-p - s) ** 2 for w, s in zip(weights, support, strict=True))
        residues.append(top / slope)
    constant = mp.fsum(w * y for w, y in zip(weights, logs, strict=True)) / mp.fsum(weights)
    return constant, poles, residues


def inverse_root(bound, n):
    """Trapezoidal rule after an elliptic substitution (Hale, Higham and Trefethen 2008, method 3): real poles."""
    mp.mp.dps = 40
    low = mp.mpf(1) / bound
    parameter = 1 - low  # complementary to that of the spectrum
    quarter = mp.ellipk(parameter)
    poles, residues = [], []
    for j in range(n):
        t = (j + mp.mpf(1) / 2) * quarter / n
        sn, cn, dn = (mp.ellipfun(name, t, m=parameter) for name in ("sn", "cn", "dn"))
        poles.append(low * (sn / cn) ** 2)
        residues.append(2 * quarter * mp.sqrt(low) / (mp.pi * n) * dn / cn**2)
    return mp.mpf(0), poles, residues


def root(bound, n):
    """Multiply the inverse root by x: x r/(x + p) = r - r p/(x + p)."""
    _, poles, residues = inverse_root(bound, n)
    return mp.fsum(residues), poles, [-r * p for p, r in zip(poles, residues, strict=True)]


KINDS = {
    "log": (logarithm, lambda x, y: abs(y - mp.log(x))),
    "inverse_root": (inverse_root, lambda x, y: abs(y * mp.sqrt(x) - 1)),
    "root": (root, lambda x, y: abs(y - mp.sqrt(x))),
}


def smallest(kind, bound):
    """Return the table with the fewest poles that is accurate enough, and its error."""
    make, error_at = KINDS[kind]
    n = max(3, int(mp.log(4 / ERROR) * mp.log(16 * bound) / (2 * mp.pi**2)) - 6)
    while True:
        table = make(bound, n)
        if table is not None:
            error = max(error_at(x, value(table, x)) for x in grid(bound))
            if error < ERROR:
                return table, error
        n += 1


def main():
    """Print all tables."""
    print("// Made by tools/make_poles.py: c + sum r/(x + p) on [1/bound, 1], with real poles -p.")
    names = []
    for kind in KINDS:
        for bound in BOUNDS:
            (constant, poles, residues), error = smallest(kind, bound)
            print(kind, bound, len(poles), mp.nstr(error, 3), file=sys.stderr, flush=True)
            name = f"{kind}_{mp.mpf(bound).man_exp[1]}"
            for label, numbers in (("poles", poles), ("residues", residues)):
                text = ", ".join(repr(float(x)) for x in numbers)
                print(f"DPM_TABLE double {name}_{label}[] = {{{text}}};")
            names.append((kind, float(bound), len(poles), repr(float(constant)), name))
    for kind in KINDS:
        rows = [f"    {{{b!r}, {n}, {c}, {s}_poles, {s}_residues}}," for q, b, n, c, s in names if q == kind]
        print(f"DPM_TABLE PoleTable {kind}_tables[] = {{\n" + "\n".join(rows) + "\n};")


if __name__ == "__main__":
    main()
