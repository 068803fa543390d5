// Exact sums: an entry v with |v| fixed <= 2^62 is cut to a whole number of 1/fixed, toward zero, and added as two
// integers of 31 bits. 2^31 records fit a 64-bit sum of either, and the order of additions leaves no trace.
#pragma once

#include "interface.hpp"
#include "layout.hpp"

namespace {

constexpr int HALF = 31;

struct Halves {
    Ints high, low;
};

// Whole numbers of at most 2^51 in size, held in doubles, as integers.
DPM_INLINE Ints to_integer(Vec x) { return to_bits(x + 6755399441055744.0) - 0x4338000000000000LL; }

// The largest whole number not above x, for 0 <= x < 2^51.
DPM_INLINE Vec whole_part(Vec x) {
    Vec near = (x + 4503599627370496.0) - 4503599627370496.0;
    return near - select(near > x, broadcast(1.0), Vec{});
}

// The two ways differ in how a negative number is halved, never in high 2^31 + low.
DPM_INLINE Halves halves_of(Vec v, double fixed) {
#if defined(__AVX512DQ__) && DPM_LANES == 8
    const Ints whole = (Ints)_mm512_cvttpd_epi64((__m512d)(v * fixed));
    return Halves{whole >> HALF, whole & ((1LL << HALF) - 1)};
#else
    const Vec size = absolute(v) * (fixed * 0x1p-31);
    const Vec high = whole_part(size), low = whole_part((size - high) * 0x1p31);  // every step is exact
    const Ints negative = v < 0.0;
    const Ints h = to_integer(high), l = to_integer(low);
    return Halves{(h ^ negative) - negative, (l ^ negative) - negative};
#endif
}

DPM_INLINE long long lane_sum(Ints x) {
    long long sum = 0;
    for (int lane = 0; lane < LANES; ++lane) sum += x[lane];
    return sum;
}

DPM_INLINE void lock(unsigned char* locks, long long number) {
    if (locks)
        while (__atomic_test_and_set(locks + number % LOCKS, __ATOMIC_ACQUIRE)) {
        }
}
DPM_INLINE void unlock(unsigned char* locks, long long number) {
    if (locks) __atomic_clear(locks + number % LOCKS, __ATOMIC_RELEASE);
}

// Add what a thread summed up, `total` with one pair of vectors per entry, to the one group there is.
template <typename Sums>
DPM_INLINE void hand_in(const Sums& pass, const Halves* total, int size) {
    lock(pass.locks, 0);
    for (int i = 0; i < size; ++i) {
        pass.words[i] += lane_sum(total[i].high);
        pass.words[size + i] += lane_sum(total[i].low);
    }
    unlock(pass.locks, 0);
}

// Add up to LANES vectors, one per lane, to the sums of their groups; lanes in `bad` are left out.
template <typename Sums>
DPM_INLINE void scatter(const Sums& pass, const Halves* parts, int size, const long long* group, long count, Ints bad) {
    for (long lane = 0; lane < count; ++lane) {
        if (bad[lane]) continue;
        long long* words = pass.words + group[lane] * 2 * size;
        const long long* part = (const long long*)parts + lane;
        lock(pass.locks, group[lane]);
        for (int i = 0; i < size; ++i) {
            words[i] += part[2 * i * LANES];
            words[size + i] += part[(2 * i + 1) * LANES];
        }
        unlock(pass.locks, group[lane]);
    }
}

}  // namespace
