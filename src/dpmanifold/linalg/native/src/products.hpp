// Products of small matrices: congruences with one fixed matrix, and the exponential of symmetric matrices.
#pragma once

#include "layout.hpp"

namespace {

DPM_INLINE void unfold(const Vec* a, int k, Vec* full) {
    DPM_UNROLL for (int i = 0; i < k; ++i)
        DPM_UNROLL for (int j = 0; j <= i; ++j) full[i * k + j] = full[j * k + i] = a[at(i, j)];
}

// a <- f a f' for a k x k matrix f: of doubles, the same for all lanes, or of vectors. `lower` says that it is lower
// triangular. work: 2 k^2 vectors.
template <int K, typename Number>
DPM_INLINE void congruence(Vec* a, int size, const Number* f, bool lower, Vec* work) {
    const int k = K ? K : size;
    Vec *full = work, *half = work + k * k;
    unfold(a, k, full);
    DPM_UNROLL for (int i = 0; i < k; ++i) {
        const int end = lower ? i + 1 : k;
        int j = 0;
        DPM_UNROLL for (; j + 4 <= k; j += 4) {
            Vec s0{}, s1{}, s2{}, s3{};
            DPM_UNROLL for (int m = 0; m < end; ++m) {
                const Vec* row = full + m * k + j;
                const Number x = f[i * k + m];
                s0 += x * row[0];
                s1 += x * row[1];
                s2 += x * row[2];
                s3 += x * row[3];
            }
            Vec* out = half + i * k + j;
            out[0] = s0, out[1] = s1, out[2] = s2, out[3] = s3;
        }
        DPM_UNROLL for (; j < k; ++j) {
            Vec sum{};
            DPM_UNROLL for (int m = 0; m < end; ++m) sum += f[i * k + m] * full[m * k + j];
            half[i * k + j] = sum;
        }
    }
    DPM_UNROLL for (int j = 0; j < k; ++j) {
        const int end = lower ? j + 1 : k;
        const Number* g = f + j * k;
        int i = j;
        DPM_UNROLL for (; i + 4 <= k; i += 4) {
            Vec s0{}, s1{}, s2{}, s3{};
            const Vec* row = half + i * k;
            DPM_UNROLL for (int m = 0; m < end; ++m) {
                const Number x = g[m];
                s0 += x * row[m];
                s1 += x * row[k + m];
                s2 += x * row[2 * k + m];
                s3 += x * row[3 * k + m];
            }
            a[at(i, j)] = s0, a[at(i + 1, j)] = s1, a[at(i + 2, j)] = s2, a[at(i + 3, j)] = s3;
        }
        DPM_UNROLL for (; i < k; ++i) {
            Vec sum{};
            DPM_UNROLL for (int m = 0; m < end; ++m) sum += g[m] * half[i * k + m];
            a[at(i, j)] = sum;
        }
    }
}

// out = x y + c z for commuting symmetric x, y (all full): the product is symmetric, half of it is computed.
DPM_INLINE void product(const Vec* x, const Vec* y, double c, const Vec* z, int k, Vec* out) {
    for (int i = 0; i < k; i += 2) {
        const int rows = i + 1 < k ? 2 : 1;
        const Vec *x0 = x + i * k, *x1 = x + (i + rows - 1) * k;
        for (int j = 0; j < i + rows; j += 2) {
            const int columns = j + 1 < k ? 2 : 1;
            const Vec *y0 = y + j * k, *y1 = y + (j + columns - 1) * k;
            Vec s00{}, s01{}, s10{}, s11{};
            for (int m = 0; m < k; ++m) {
                s00 += x0[m] * y0[m];
                s01 += x0[m] * y1[m];
                s10 += x1[m] * y0[m];
                s11 += x1[m] * y1[m];
            }
            const Vec s[2][2] = {{s00, s01}, {s10, s11}};
            for (int r = 0; r < rows; ++r)
                for (int q = 0; q < columns; ++q)
                    if (j + q <= i + r) {
                        const int place = (i + r) * k + j + q;
                        out[place] = out[(j + q) * k + i + r] = s[r][q] + c * z[place];
                    }
        }
    }
}

// The largest Frobenius norm the exponential takes: 2^10 times what its Taylor polynomial covers.
constexpr double LONGEST = 700.0;

// a <- exp(a) = e^s exp(a - s), s the largest diagonal entry: Taylor polynomial of degree 16 of
// E = exp((a - s)/2^10) - 1, doubled ten times by (1 + E)^2 - 1 = 2E + E^2. Ten doublings always: work does not depend on the data. Without the 1
// no digit of a small E is lost; and after the shift an eigenvalue of at least 1 keeps the final 1 + E from cancelling.
// Returns the lanes that are too long or not numbers. work: 6 k^2 vectors.
DPM_INLINE Ints exponentiate(Vec* a, int k, Vec* work) {
    const int size = k * k;
    Vec *x = work, *x2 = x + size, *x3 = x2 + size, *x4 = x3 + size, *sum = x4 + size, *spare = sum + size;
    Vec shift = a[0];
    for (int i = 1; i < k; ++i) shift = larger(a[at(i, i)], shift);
    for (int i = 0; i < k; ++i) a[at(i, i)] -= shift;
    Ints bad = ~(square_norm(a, k) <= LONGEST * LONGEST);
    const Vec scale = exponential(shift);
    for (int i = 0; i < packed(k); ++i) a[i] = select(bad, Vec{}, a[i]) * 0x1p-10;
    unfold(a, k, x);
    product(x, x, 0.0, x, k, x2);
    product(x2, x, 0.0, x, k, x3);
    product(x2, x2, 0.0, x, k, x4);
    double factorial[17] = {1.0};
    for (int i = 1; i <= 16; ++i) factorial[i] = factorial[i - 1] * i;
    for (int i = 0; i < size; ++i) sum[i] = x4[i] * (1.0 / factorial[16]);
    for (int level = 3; level >= 0; --level) {
        const double* f = factorial + 4 * level;
        for (int i = 0; i < size; ++i) sum[i] += x[i] * (1 / f[1]) + (x2[i] * (1 / f[2]) + x3[i] * (1 / f[3]));
        if (level == 0) break;
        for (int i = 0; i < k; ++i) sum[i * k + i] += 1 / f[0];
        product(sum, x4, 0.0, x, k, spare);
        Vec* swap = sum;
        sum = spare;
        spare = swap;
    }
    for (int doubling = 0; doubling < 10; ++doubling) {
        product(sum, sum, 2.0, sum, k, spare);
        Vec* swap = sum;
        sum = spare;
        spare = swap;
    }
    for (int i = 0; i < k; ++i) {
        for (int j = 0; j < i; ++j) a[at(i, j)] = scale * sum[i * k + j];
        a[at(i, i)] = scale * (1.0 + sum[i * k + i]);
    }
    return bad;
}

}  // namespace
