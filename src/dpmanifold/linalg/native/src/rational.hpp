// A function of a tridiagonal matrix as a sum of resolvents: f(T) = c + sum_j r_j (T + p_j)^-1, p_j > 0.
//
// With T + p = L D L', entry (i, j) of the inverse, i < j, is G_j times the product of -e_m/D_m over m = i..j-1, where
// G_j is the diagonal entry: k^2/2 multiplications and additions per pole, no eigenvectors, no branches.
#pragma once

#include "layout.hpp"
#include "tables.hpp"

namespace {

// Poles taken at once: independent chains that hide each other's latency, as many as the registers hold.
constexpr int POLES = LANES == 8 ? 6 : LANES == 1 ? 1 : 4;

DPM_INLINE Vec added(const Vec* x) {
    if constexpr (POLES == 1) {
        return x[0];
    } else {
        Vec sum = (x[0] + x[1]) + (x[2] + x[3]);
        return POLES == 6 ? sum + (x[POLES - 2] + x[POLES - 1]) : sum;
    }
}

// Scale T by a power of two, an even one if asked, to norm at most 1; returns the exponent e (T was 2^e times that).
// The largest row sum is at most sqrt(3) times the largest eigenvalue: three entries per row.
template <int K>
DPM_INLINE Ints scale_to_unit(Vec* d, Vec* e, int size, bool even) {
    const int k = K ? K : size;
    Vec norm = absolute(d[0]);
    if (k > 1) norm += absolute(e[0]);
    DPM_UNROLL for (int i = 1; i < k; ++i) {
        Vec row = absolute(d[i]) + absolute(e[i - 1]);
        if (i + 1 < k) row += absolute(e[i]);
        norm = larger(row, norm);
    }
    Ints exponent = exponent_above(norm);
    if (even) exponent += exponent & 1;
    Vec scale = power_of_two(-exponent);
    DPM_UNROLL for (int i = 0; i < k; ++i) d[i] *= scale;
    DPM_UNROLL for (int i = 0; i + 1 < k; ++i) e[i] *= scale;
    return exponent;
}

// Whether some eigenvalue of T is below `bound`, or something is not a number: Sturm's signs, one pole's work.
template <int K>
DPM_INLINE Ints below(const Vec* d, const Vec* e, int size, double bound) {
    const int k = K ? K : size;
    Vec pivot = d[0] - bound;
    Ints bad = ~(pivot > 0.0);
    DPM_UNROLL for (int i = 0; i + 1 < k; ++i) {
        pivot = (d[i + 1] - bound) - e[i] * (e[i] * reciprocal(pivot));
        bad |= ~(pivot > 0.0);
    }
    return bad;
}

// s (packed) = c I + sum_j r_j (T + p_j)^-1. `work` holds 2 k POLES vectors.
template <int K>
DPM_INLINE void resolvent_sum(const Vec* d, const Vec* e, int size, const PoleTable& table, Vec* s, Vec* work) {
    const int k = K ? K : size;
    Vec *inverse = work, *ratio = work + k * POLES;
    DPM_UNROLL for (int i = 0; i < packed(k); ++i) s[i] = Vec{};
    for (int first = 0; first < table.count; first += POLES) {
        double p[POLES], r[POLES];
        DPM_UNROLL for (int m = 0; m < POLES; ++m) {
            // A pole too many has residue 0.
            p[m] = first + m < table.count ? table.poles[first + m] : 1.0;
            r[m] = first + m < table.count ? table.residues[first + m] : 0.0;
        }
        Vec pivot[POLES], g[POLES];
        DPM_UNROLL for (int m = 0; m < POLES; ++m) pivot[m] = d[0] + p[m];
        DPM_UNROLL for (int i = 0; i + 1 < k; ++i)
            DPM_UNROLL for (int m = 0; m < POLES; ++m) {
                Vec x = reciprocal(pivot[m]), u = -e[i] * x;
                inverse[i * POLES + m] = x;
                ratio[i * POLES + m] = u;
                pivot[m] = (d[i + 1] + p[m]) + e[i] * u;
            }
        DPM_UNROLL for (int m = 0; m < POLES; ++m) g[m] = r[m] * reciprocal(pivot[m]);
        // Two columns at a time share the loads of the ratios.
        int j = k - 1;
        DPM_UNROLL for (; j > 0; j -= 2) {
            Vec h[POLES], q[POLES];
            Vec *column = s + at(j, 0), *previous = s + at(j - 1, 0);
            DPM_UNROLL for (int m = 0; m < POLES; ++m) {
                Vec x = inverse[(j - 1) * POLES + m], u = ratio[(j - 1) * POLES + m];
                h[m] = g[m] * u;
                q[m] = r[m] * x + u * h[m];
            }
            column[j] += added(g);
            column[j - 1] += added(h);
            previous[j - 1] += added(q);
            if (j > 1)
                DPM_UNROLL for (int m = 0; m < POLES; ++m) {
                    Vec x = inverse[(j - 2) * POLES + m], u = ratio[(j - 2) * POLES + m];
                    g[m] = r[m] * x + u * u * q[m];
                }
            DPM_UNROLL for (int i = j - 2; i >= 0; --i) {
                DPM_UNROLL for (int m = 0; m < POLES; ++m) {
                    Vec u = ratio[i * POLES + m];
                    h[m] *= u;
                    q[m] *= u;
                }
                column[i] += added(h);
                previous[i] += added(q);
            }
        }
        if (j == 0) s[0] += added(g);
    }
    // The constant last: the sum is rounded at its own size, not at the constant's.
    DPM_UNROLL for (int i = 0; i < k; ++i) s[at(i, i)] += table.constant;
}

}  // namespace
