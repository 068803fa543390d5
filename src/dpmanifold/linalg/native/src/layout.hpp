// Between a user's array (n, k, k) and blocks of LANES matrices, one matrix per lane, lower triangles packed by rows.
#pragma once

#include "vector.hpp"

namespace {

// Where entry (i, j), j <= i, of a packed lower triangle stands.
DPM_INLINE constexpr int at(int i, int j) { return i * (i + 1) / 2 + j; }
DPM_INLINE constexpr int packed(int k) { return k * (k + 1) / 2; }

// A transposition of LANES x LANES doubles in registers: what makes loading a block cheaper than a gather.
DPM_INLINE void transpose(Vec* r) {
#if DPM_LANES == 8 && defined(__AVX512F__)
    __m512d a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm512_unpacklo_pd((__m512d)r[i], (__m512d)r[i + 1]);
        a[i + 1] = _mm512_unpackhi_pd((__m512d)r[i], (__m512d)r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; ++h) {
            b[i + h] = _mm512_shuffle_f64x2(a[i + h], a[i + h + 2], 0x88);
            b[i + h + 2] = _mm512_shuffle_f64x2(a[i + h], a[i + h + 2], 0xdd);
        }
    for (int i = 0; i < 4; ++i) {
        r[i] = (Vec)_mm512_shuffle_f64x2(b[i], b[i + 4], 0x88);
        r[i + 4] = (Vec)_mm512_shuffle_f64x2(b[i], b[i + 4], 0xdd);
    }
#elif DPM_LANES == 4 && defined(__AVX__)
    __m256d a = _mm256_unpacklo_pd((__m256d)r[0], (__m256d)r[1]), b = _mm256_unpackhi_pd((__m256d)r[0], (__m256d)r[1]);
    __m256d c = _mm256_unpacklo_pd((__m256d)r[2], (__m256d)r[3]), d = _mm256_unpackhi_pd((__m256d)r[2], (__m256d)r[3]);
    r[0] = (Vec)_mm256_permute2f128_pd(a, c, 0x20);
    r[1] = (Vec)_mm256_permute2f128_pd(b, d, 0x20);
    r[2] = (Vec)_mm256_permute2f128_pd(a, c, 0x31);
    r[3] = (Vec)_mm256_permute2f128_pd(b, d, 0x31);
#else
    Vec t[LANES] = {};
    for (int i = 0; i < LANES; ++i)
        for (int j = 0; j < LANES; ++j) t[i][j] = r[j][i];
    for (int i = 0; i < LANES; ++i) r[i] = t[i];
#endif
}

// LANES doubles `stride` apart, as one vector built in registers.
DPM_INLINE Vec strided(const double* p, long stride) {
#if DPM_LANES == 8
    return Vec{p[0],          p[stride],     p[2 * stride], p[3 * stride],
               p[4 * stride], p[5 * stride], p[6 * stride], p[7 * stride]};
#elif DPM_LANES == 4
    return Vec{p[0], p[stride], p[2 * stride], p[3 * stride]};
#elif DPM_LANES == 2
    return Vec{p[0], p[stride]};
#else
    return Vec{p[0]};
#endif
}

// Read up to LANES matrices; lanes beyond them hold the identity.
DPM_INLINE void load_block(const double* x, long count, int k, Vec* a) {
    const long size = (long)k * k;
    if (count == LANES) {
        DPM_UNROLL for (int i = 0; i < k; ++i) {
            Vec* row = a + at(i, 0);
            int j = 0;
            DPM_UNROLL for (; j + LANES <= i + 1; j += LANES) {
                Vec r[LANES];
                for (int lane = 0; lane < LANES; ++lane) r[lane] = load(x + lane * size + i * k + j);
                transpose(r);
                for (int lane = 0; lane < LANES; ++lane) row[j + lane] = r[lane];
            }
            DPM_UNROLL for (; j <= i; ++j) row[j] = strided(x + i * k + j, size);
        }
        return;
    }
    DPM_UNROLL for (int i = 0; i < k; ++i)
        DPM_UNROLL for (int j = 0; j <= i; ++j) {
            double* entry = (double*)(a + at(i, j));
            for (int lane = 0; lane < LANES; ++lane)
                entry[lane] = lane < count ? x[lane * size + i * k + j] : (i == j ? 1.0 : 0.0);
        }
}

// The four doubles at each of p[0], ..., p[LANES - 1], as four vectors.
DPM_INLINE void load_fours(const double* const* p, long offset, Vec* out) {
#if DPM_LANES == 8 && defined(__AVX512F__)
    __m512d r[4];
    for (int i = 0; i < 4; ++i) {
        const int lane = i < 2 ? i : i + 2;
        r[i] = _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(p[lane] + offset)),
                                  _mm256_loadu_pd(p[lane + 2] + offset), 1);
    }
    const __m512d a = _mm512_unpacklo_pd(r[0], r[1]), b = _mm512_unpackhi_pd(r[0], r[1]);
    const __m512d c = _mm512_unpacklo_pd(r[2], r[3]), d = _mm512_unpackhi_pd(r[2], r[3]);
    out[0] = (Vec)_mm512_shuffle_f64x2(a, c, 0x88);
    out[1] = (Vec)_mm512_shuffle_f64x2(b, d, 0x88);
    out[2] = (Vec)_mm512_shuffle_f64x2(a, c, 0xdd);
    out[3] = (Vec)_mm512_shuffle_f64x2(b, d, 0xdd);
#else
    for (int i = 0; i < 4; ++i)
        for (int lane = 0; lane < LANES; ++lane) out[i][lane] = p[lane][offset + i];
#endif
}

// Call take(e, v) for e = 0, ..., length - 1 in order, where v holds entry e of the records at p, one per lane.
template <typename Take>
DPM_INLINE void each_entry(const double* const* p, long length, Take take) {
    long e = 0;
    DPM_UNROLL for (; e + LANES <= length; e += LANES) {
        Vec r[LANES];
        for (int lane = 0; lane < LANES; ++lane) r[lane] = load(p[lane] + e);
        transpose(r);
        for (int i = 0; i < LANES; ++i) take(e + i, r[i]);
    }
    if (LANES == 8 && e + 4 <= length) {
        Vec r[4];
        load_fours(p, e, r);
        for (int i = 0; i < 4; ++i) take(e + i, r[i]);
        e += 4;
    }
    if (LANES > 1) DPM_UNROLL for (; e < length; ++e) {
        Vec v;
        for (int lane = 0; lane < LANES; ++lane) v[lane] = p[lane][e];
        take(e, v);
    }
}

// Write both triangles of up to LANES matrices.
DPM_INLINE void store_block(const Vec* a, long count, int k, double* x) {
    const long size = (long)k * k;
    DPM_UNROLL for (int i = 0; i < k; ++i) {
        int j = 0;
        if (count == LANES)
            DPM_UNROLL for (; j + LANES <= k; j += LANES) {
                Vec r[LANES];
                for (int c = 0; c < LANES; ++c) r[c] = a[j + c <= i ? at(i, j + c) : at(j + c, i)];
                transpose(r);
                for (int lane = 0; lane < LANES; ++lane) store(x + lane * size + i * k + j, r[lane]);
            }
        DPM_UNROLL for (; j < k; ++j) {
            const double* entry = (const double*)(a + (j <= i ? at(i, j) : at(j, i)));
            for (long lane = 0; lane < count; ++lane) x[lane * size + i * k + j] = entry[lane];
        }
    }
}

// Write isometric coordinates: the diagonal, then sqrt(2) times the strict upper triangle, row by row.
DPM_INLINE void store_coordinates(const Vec* a, long count, int k, double* c) {
    const long size = packed(k);
    long place = k;
    DPM_UNROLL for (int i = 0; i < k; ++i) {
        const double* diagonal = (const double*)(a + at(i, i));
        for (long lane = 0; lane < count; ++lane) c[lane * size + i] = diagonal[lane];
        DPM_UNROLL for (int j = i + 1; j < k; ++j, ++place) {
            Vec scaled = 1.4142135623730951 * a[at(j, i)];
            for (long lane = 0; lane < count; ++lane) c[lane * size + place] = scaled[lane];
        }
    }
}

// Write packed triangles of up to LANES matrices, each to its place.
DPM_INLINE void store_triangles(const Vec* a, long count, int size, double* const* p) {
    for (long lane = 0; lane < count; ++lane) {
        const double* entries = (const double*)a + lane;
        DPM_UNROLL for (int i = 0; i < size; ++i) p[lane][i] = entries[i * LANES];
    }
}

// Scale by a power of two so that the largest diagonal entry is about 1; an even one, so that it has an exact root.
DPM_INLINE Ints normalise(Vec* a, int k) {
    Vec top = absolute(a[0]);
    DPM_UNROLL for (int i = 1; i < k; ++i) top = larger(absolute(a[at(i, i)]), top);
    Ints exponent = exponent_above(top);
    exponent += exponent & 1;
    exponent = exponent > 1020 ? broadcast_bits(1020) : exponent;
    Vec scale = power_of_two(-exponent);
    DPM_UNROLL for (int i = 0; i < packed(k); ++i) a[i] *= scale;
    return exponent;
}

// Sum of squares of all entries of a symmetric matrix.
DPM_INLINE Vec square_norm(const Vec* a, int k) {
    Vec diagonal{}, off{};
    DPM_UNROLL for (int i = 0; i < k; ++i) {
        DPM_UNROLL for (int j = 0; j < i; ++j) off += a[at(i, j)] * a[at(i, j)];
        diagonal += a[at(i, i)] * a[at(i, i)];
    }
    return diagonal + 2.0 * off;
}

}  // namespace
