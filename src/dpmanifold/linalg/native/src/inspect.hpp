// What is wrong with matrices a user gives, and their symmetric parts: the two passes that read both triangles.
#pragma once

#include "graded.hpp"
#include "interface.hpp"

namespace {

// A matrix is called positive definite where a Cholesky factor exists after this share of its trace was taken off the
// diagonal. A factor computed at size k vouches for the trace times (k + 1) eps/2, a fifteenth of it at k = 64; elsewhere
// the matrix is UNUSABLE, and the caller decides by other means.
constexpr double DOUBTFUL = 0x1p-43;

// Halved before they are added, so that entries near the largest double do not overflow.
DPM_INLINE void symmetric_part(const double* a, int k, double* out) {
    for (int i = 0; i < k; ++i)
        for (int j = 0; j < k; ++j) out[i * k + j] = a[i * k + j] * 0.5 + a[j * k + i] * 0.5;
}

struct Entries {
    Vec largest{}, gap{}, zero{};  // the largest |a_ij|, the largest |a_ij - a_ji|/2, and NaN if an entry is not finite

    // Take note of two mirrored entries; returns their mean.
    DPM_METHOD Vec see(Vec lower, Vec upper) {
        const Vec one = lower * 0.5, other = upper * 0.5, mean = one + other;
        largest = larger(absolute(lower), larger(absolute(upper), largest));
        gap = larger(absolute(one - other), gap);
        zero += mean * 0.0;
        return mean;
    }
    // The same for an entry of the diagonal.
    DPM_METHOD Vec see(Vec entry) {
        largest = larger(absolute(entry), largest);
        zero += entry * 0.0;
        return entry;
    }
};

// Read LANES matrices, one at each of p; `a` becomes the packed triangle of the symmetric part.
template <int K>
DPM_INLINE void load_symmetric(const double* const* p, int size, Vec* a, Entries& entries) {
    const int k = K ? K : size;
    int i = 0, j = 0;
    each_entry(p, (long)k * k, [&](long, Vec v) DPM_LAMBDA {
        if (j > i)
            a[at(j, i)] = v;  // waits for its mirror image, which comes later
        else if (j < i)
            a[at(i, j)] = entries.see(v, a[at(i, j)]);
        else
            a[at(i, i)] = entries.see(v);
        if (++j == k) j = 0, ++i;
    });
}

// Bits NOT_FINITE and NOT_SYMMETRIC.
DPM_INLINE Ints faults(const Entries& entries, double tolerance) {
    const Ints infinite = ~(entries.zero == 0.0), uneven = entries.gap > 0.5 * tolerance * entries.largest;
    return (infinite & (long long)NOT_FINITE) | (uneven & (long long)NOT_SYMMETRIC);
}

// Where the matrices of a block stand; lanes beyond the last one look at that one again.
DPM_INLINE void point_at(const double* x, long stride, const long long* rows, long first, long count, const double** p) {
    for (long lane = 0; lane < LANES; ++lane) {
        const long i = first + (lane < count ? lane : count - 1);
        p[lane] = x + (rows ? rows[i] : i) * stride;
    }
}

#if !defined(__CUDACC__)

template <int K>
long run_symmetrize(const Pass* pass, long first_chunk, long last_chunk) {
    const int k = K ? K : pass->k;
    const long size = (long)k * k, end = last_chunk * CHUNK < pass->n ? last_chunk * CHUNK : pass->n;
    for (long i = first_chunk * CHUNK; i < end; ++i) {
        pass->status[i] = 0;
        symmetric_part(pass->x + i * size, k, pass->matrices + i * size);
    }
    return 0;
}

template <int K, typename Memory>
long run_check(const Pass* pass, long first_chunk, long last_chunk, Memory m) {
    const int k = K ? K : pass->k;
    const long size = (long)k * k, end = last_chunk * CHUNK < pass->n ? last_chunk * CHUNK : pass->n;
    long marked = 0;
    for (long first = first_chunk * CHUNK; first < end; first += LANES) {
        const long count = end - first < LANES ? end - first : LANES;
        const double* p[LANES];
        point_at(pass->x, size, nullptr, first, count, p);
        Entries entries;
        load_symmetric<K>(p, k, m.a, entries);
        normalise(m.a, k);
        Vec trace{};
        for (int i = 0; i < k; ++i) trace += m.a[at(i, i)];
        for (int i = 0; i < k; ++i) m.a[at(i, i)] -= DOUBTFUL * trace;
        const Ints found = (cholesky(m.a, k) & (long long)UNUSABLE) | faults(entries, pass->radius);
        for (long lane = 0; lane < count; ++lane) {
            pass->status[first + lane] = (unsigned char)found[lane];
            marked += found[lane] != 0;
        }
    }
    return marked;
}

#endif

}  // namespace
