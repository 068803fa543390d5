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
    inline __attribute__((always_inline)) Vec see(Vec lower, Vec upper) {
        largest = larger(absolute(lower), larger(absolute(upper), largest));
        gap = larger(absolute(lower * 0.5 - upper * 0.5), gap);
        zero += lower * 0.0 + upper * 0.0;
        return lower * 0.5 + upper * 0.5;
    }
};

// Compare the packed lower triangles `a` of LANES matrices with their upper triangles in memory; `a` becomes the
// symmetric part.
DPM_INLINE void compare(const double* x, int k, Vec* a, Entries& entries) {
    const long size = (long)k * k;
    for (int i = 0; i < k; ++i) {
        int j = i;
        for (; j + LANES <= k; j += LANES) {
            Vec r[LANES];
            for (int lane = 0; lane < LANES; ++lane) r[lane] = load(x + lane * size + i * k + j);
            transpose(r);
            for (int c = 0; c < LANES; ++c) a[at(j + c, i)] = entries.see(a[at(j + c, i)], r[c]);
        }
        for (; j < k; ++j) a[at(j, i)] = entries.see(a[at(j, i)], strided(x + i * k + j, size));
    }
}

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

// `m` needs a and squares, as in Memory; the latter holds the last matrices of a batch, filled up to a whole block.
template <int K, typename Memory>
long run_check(const Pass* pass, long first_chunk, long last_chunk, Memory m) {
    const int k = K ? K : pass->k;
    const long size = (long)k * k, end = last_chunk * CHUNK < pass->n ? last_chunk * CHUNK : pass->n;
    long marked = 0;
    for (long first = first_chunk * CHUNK; first < end; first += LANES) {
        const long count = end - first < LANES ? end - first : LANES;
        const double* x = pass->x + first * size;
        if (count < LANES) {
            double* whole = (double*)m.squares;
            for (long i = 0; i < LANES * size; ++i) whole[i] = i < count * size ? x[i] : 0.0;
            x = whole;
        }
        load_block(x, LANES, k, m.a);
        Entries entries;
        compare(x, k, m.a, entries);
        normalise(m.a, k);
        Vec trace{};
        for (int i = 0; i < k; ++i) trace += m.a[at(i, i)];
        for (int i = 0; i < k; ++i) m.a[at(i, i)] -= DOUBTFUL * trace;
        const Ints unusable = cholesky(m.a, k), infinite = ~(entries.zero == 0.0);
        const Ints uneven = entries.gap > 0.5 * pass->radius * entries.largest;
        for (long lane = 0; lane < count; ++lane) {
            const int found = (unusable[lane] ? UNUSABLE : 0) | (infinite[lane] ? NOT_FINITE : 0) |
                              (uneven[lane] ? NOT_SYMMETRIC : 0);
            pass->status[first + lane] = (unsigned char)found;
            marked += found != 0;
        }
    }
    return marked;
}

}  // namespace
