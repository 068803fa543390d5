// Functions of positive definite matrices by one-sided Jacobi on the Cholesky factor: slower, and right to the last
// digits on graded matrices, whose small eigenvalues every tridiagonalisation loses.
//
// A lane that has converged is rotated by the identity from then on, so its bits do not depend on how long its
// neighbours take. The number of sweeps does depend on the data.
#pragma once

#include "layout.hpp"

namespace {

constexpr int MOST_SWEEPS = 30;  // 6 to 10 are usual

// Replace the packed matrix by its Cholesky factor; lanes with a pivot that is not positive are marked.
DPM_INLINE Ints cholesky(Vec* a, int k) {
    Ints bad{};
    DPM_UNROLL for (int j = 0; j < k; ++j) {
        Vec* row = a + at(j, 0);
        Vec pivot = row[j];
        DPM_UNROLL for (int m = 0; m < j; ++m) pivot -= row[m] * row[m];
        bad |= ~((pivot > 0.0) & (pivot < DPM_INFINITY));
        Vec root = square_root(pivot), inverse = 1.0 / root;
        row[j] = root;
        DPM_UNROLL for (int i = j + 1; i < k; ++i) {
            Vec* other = a + at(i, 0);
            Vec sum = other[j];
            DPM_UNROLL for (int m = 0; m < j; ++m) sum -= other[m] * row[m];
            other[j] = sum * inverse;
        }
    }
    return bad;
}

DPM_INLINE Vec dot(const Vec* x, const Vec* y, int k) {
    Vec even{}, odd{};
    int i = 0;
    for (; i + 1 < k; i += 2) {
        even += x[i] * y[i];
        odd += x[i + 1] * y[i + 1];
    }
    if (i < k) even += x[i] * y[i];
    return even + odd;
}

// Rotate the columns of g (column c at g + c k) until they are orthogonal; their squared lengths are the eigenvalues.
DPM_INLINE void orthogonalise(Vec* g, int k, Vec* values) {
    const double tolerance = 2.22e-16 * square_root(broadcast((double)k))[0];  // smaller cosines are rounding
    for (int sweep = 0; sweep < MOST_SWEEPS; ++sweep) {
        Ints moved{};
        for (int p = 0; p + 1 < k; ++p)
            for (int q = p + 1; q < k; ++q) {
                Vec *x = g + p * k, *y = g + q * k;
                Vec alpha = dot(x, x, k), beta = dot(y, y, k), gamma = dot(x, y, k);
                Ints needed = absolute(gamma) > tolerance * (square_root(alpha) * square_root(beta));
                if (!any(needed)) continue;
                moved |= needed;
                Vec gap = beta - alpha, twice = gamma + gamma;
                Vec size = larger(absolute(gap), absolute(twice));  // first, so that no square underflows
                size = select(size > 0.0, size, broadcast(1.0));
                gap /= size, twice /= size;
                Vec tangent = twice / (absolute(gap) + square_root(gap * gap + twice * twice));
                tangent = select(gap < 0.0, -tangent, tangent);
                tangent = select(needed, tangent, Vec{});
                Vec cosine = 1.0 / square_root(1.0 + tangent * tangent), sine = tangent * cosine;
                for (int i = 0; i < k; ++i) {
                    Vec u = x[i], v = y[i];
                    x[i] = cosine * u - sine * v;
                    y[i] = sine * u + cosine * v;
                }
            }
        if (!any(moved)) break;
    }
    for (int c = 0; c < k; ++c) values[c] = dot(g + c * k, g + c * k, k);
}

// s = sum over columns of weight times g g', packed.
DPM_INLINE void sum_of_squares(const Vec* g, const Vec* weight, int k, Vec* s) {
    for (int i = 0; i < packed(k); ++i) s[i] = Vec{};
    for (int c = 0; c < k; ++c) {
        const Vec* column = g + c * k;
        for (int i = 0; i < k; ++i) {
            Vec scaled = weight[c] * column[i];
            for (int j = 0; j <= i; ++j) s[at(i, j)] += scaled * column[j];
        }
    }
}

}  // namespace
