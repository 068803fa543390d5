// Functions of 2 x 2 and 3 x 3 matrices by Jacobi rotations: a fixed number of them, whatever the matrix. The logarithm
// of a 2 x 2 matrix has a formula.
//
// One rotation diagonalises a 2 x 2 matrix. For 3 x 3, cyclic Jacobi converges cubically in the end: over a million
// random, graded and clustered matrices the largest off-diagonal entry was 8e-6 of the norm after three sweeps and
// 1e-20 after four (2e-20 at the worst that hill climbing found). A rotation is one long chain of dependent
// operations, so a few blocks take turns.
#pragma once

#include "layout.hpp"

namespace {

constexpr int SWEEPS = 4;
constexpr int TURNS = LANES == 8 ? 2 : LANES == 1 ? 1 : 4;

// Zero entry (p, q) of the packed matrix; r is the third index (K = 3). `vectors` holds the eigenvectors as columns.
template <int K>
DPM_INLINE void rotate(Vec* a, Vec* vectors, int p, int q, int r) {
    Vec& pp = a[at(p, p)];
    Vec& qq = a[at(q, q)];
    Vec& qp = a[at(q, p)];
    Vec gap = qq - pp, twice = qp + qp;
    Vec square = gap * gap + twice * twice;
    // Nothing to rotate where both vanish to working precision; the constant keeps the quotient a number.
    Vec root = near_root(square + 1e-300);
    Vec tangent = near_quotient(twice, absolute(gap) + root);
    tangent = select(gap < 0.0, -tangent, tangent);
    Vec cosine = reciprocal_root(1.0 + tangent * tangent), sine = tangent * cosine;
    pp -= tangent * qp;
    qq += tangent * qp;
    qp = Vec{};
    if (K == 3) {
        Vec& rp = a[r > p ? at(r, p) : at(p, r)];
        Vec& rq = a[r > q ? at(r, q) : at(q, r)];
        Vec x = rp, y = rq;
        rp = cosine * x - sine * y;
        rq = sine * x + cosine * y;
    }
    DPM_UNROLL for (int i = 0; i < K; ++i) {
        Vec x = vectors[i * K + p], y = vectors[i * K + q];
        vectors[i * K + p] = cosine * x - sine * y;
        vectors[i * K + q] = sine * x + cosine * y;
    }
}

// Whether an entry of a normalised matrix exceeds every diagonal entry, as none of a positive definite one does: its
// square might overflow in a rotation.
template <int K>
DPM_INLINE Ints beyond_diagonal(const Vec* a) {
    Ints found{};
    DPM_UNROLL for (int i = 1; i < K; ++i)
        DPM_UNROLL for (int j = 0; j < i; ++j) found |= ~(absolute(a[at(i, j)]) <= 1.0);
    return found;
}

// Determinant of a packed 2 x 2 matrix to two units in the last place (Kahan).
DPM_INLINE Vec determinant(const Vec* a) {
    Vec square = a[1] * a[1];
    Vec lost = product_minus(a[1], a[1], square);
    return product_minus(a[0], a[2], square) - lost;
}

// The logarithm of a packed 2 x 2 matrix of size about 1; marks what is not positive definite.
//
// With eigenvalues x >= y it is log(xy)/2 + (log x - log(xy)/2) R, where R has eigenvalues 1 and -1: the matrix less
// half its trace, over half the gap of the eigenvalues. Where that is next to nothing, so is what R is multiplied by.
DPM_INLINE Ints log_of_two(const Vec* a, double lost, Vec* s) {
    const Vec half_trace = 0.5 * a[0] + 0.5 * a[2], half_gap = 0.5 * a[0] - 0.5 * a[2], product = determinant(a);
    const Vec square = half_gap * half_gap + a[1] * a[1] + 1e-300, inverse = reciprocal_root(square);
    const Vec large = half_trace + square * inverse;
    const Ints bad = ~(large > 0.0) | ~(product > lost * large * large);
    const Vec mean = 0.5 * logarithm(select(bad, broadcast(1.0), product));
    const Vec part = (logarithm(select(bad, broadcast(1.0), large)) - mean) * inverse;
    s[0] = mean + part * half_gap;
    s[1] = part * a[1];
    s[2] = mean - part * half_gap;
    return bad;
}

// Eigenvalues and, as columns, eigenvectors of TURNS packed K x K matrices of size about 1.
template <int K>
DPM_INLINE void diagonalise(Vec a[][K * (K + 1) / 2], Vec values[][K], Vec vectors[][K * K]) {
    DPM_UNROLL for (int b = 0; b < TURNS; ++b)
        DPM_UNROLL for (int i = 0; i < K * K; ++i) vectors[b][i] = broadcast(i % (K + 1) == 0 ? 1.0 : 0.0);
    if (K == 2)
        DPM_UNROLL for (int b = 0; b < TURNS; ++b) {
            Vec small = determinant(a[b]);
            rotate<K>(a[b], vectors[b], 0, 1, 0);
            // The smaller eigenvalue of a positive definite matrix keeps all its digits this way.
            Vec &p = a[b][0], &q = a[b][2];
            Ints first = p > q;
            small = near_quotient(small, select(first, p, q));
            p = select(first, p, small);
            q = select(first, small, q);
        }
    if (K == 3)
        for (int sweep = 0; sweep < SWEEPS; ++sweep) {
            DPM_UNROLL for (int b = 0; b < TURNS; ++b) rotate<K>(a[b], vectors[b], 0, 1, 2);
            DPM_UNROLL for (int b = 0; b < TURNS; ++b) rotate<K>(a[b], vectors[b], 0, 2, 1);
            DPM_UNROLL for (int b = 0; b < TURNS; ++b) rotate<K>(a[b], vectors[b], 1, 2, 0);
        }
    DPM_UNROLL for (int b = 0; b < TURNS; ++b)
        DPM_UNROLL for (int i = 0; i < K; ++i) values[b][i] = a[b][at(i, i)];
}

// s = vectors diag(f) vectors', packed.
template <int K>
DPM_INLINE void recompose(const Vec* f, const Vec* vectors, Vec* s) {
    DPM_UNROLL for (int i = 0; i < K; ++i)
        DPM_UNROLL for (int j = 0; j <= i; ++j) {
            Vec sum = f[0] * vectors[i * K] * vectors[j * K];
            DPM_UNROLL for (int c = 1; c < K; ++c) sum += f[c] * vectors[i * K + c] * vectors[j * K + c];
            s[at(i, j)] = sum;
        }
}

}  // namespace
