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
#if defined(__CUDACC__)
    const Ints whole{__double2ll_rz(v.lane * fixed)};
    return Halves{whole >> HALF, whole & ((1LL << HALF) - 1)};
#elif defined(__AVX512DQ__) && DPM_LANES == 8
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

#if defined(__CUDACC__)

// The sums of one warp's matrices: entry i is kept by thread i % 32, as three integers that count 1, 2^21 and 2^42.
// Thirty-two integers of 21 bits are added by one instruction of the card.
template <int SIZE>
struct Totals {
    static constexpr int SLOTS = (SIZE + 31) / 32, PART = 21;
    long long part[SLOTS][3];

    DPM_METHOD void clear() {
        DPM_UNROLL for (int slot = 0; slot < SLOTS; ++slot)
            DPM_UNROLL for (int p = 0; p < 3; ++p) part[slot][p] = 0;
    }

    // Add one number of each thread of a warp, all of which must be here.
    DPM_METHOD void add(int i, Vec v, double fixed) {
        const long long whole = __double2ll_rz(v.lane * fixed);
        const unsigned low = (unsigned)whole & ((1u << PART) - 1), middle = (unsigned)(whole >> PART) & ((1u << PART) - 1);
        const unsigned sum_low = __reduce_add_sync(0xffffffffu, low), sum_middle = __reduce_add_sync(0xffffffffu, middle);
        const int sum_high = __reduce_add_sync(0xffffffffu, (int)(whole >> 2 * PART));
        if ((int)(threadIdx.x & 31) == i % 32) {
            part[i / 32][0] += sum_low;
            part[i / 32][1] += sum_middle;
            part[i / 32][2] += sum_high;
        }
    }

    // As high 2^31 + low. Integers are added in any order to the same sum, which atomic additions may use.
    DPM_METHOD void hand_in(long long* words) {
        DPM_UNROLL for (int slot = 0; slot < SLOTS; ++slot) {
            const int i = slot * 32 + (int)(threadIdx.x & 31);
            const long long* p = part[slot];
            const long long rest = p[1] & ((1LL << (HALF - PART)) - 1);
            if (i < SIZE) {
                add_word(words + i, (p[1] >> (HALF - PART)) + p[2] * (1LL << (2 * PART - HALF)));
                add_word(words + SIZE + i, p[0] + (rest << PART));
            }
        }
    }

    static DPM_METHOD void add_word(long long* word, long long value) {
        atomicAdd((unsigned long long*)word, (unsigned long long)value);
    }
};

// Add a vector to the sum of its group.
DPM_INLINE void add_to_group(const Pass& pass, const Vec* s, int size, long long group) {
    unsigned long long* words = (unsigned long long*)(pass.words + group * 2 * size);
    DPM_UNROLL for (int i = 0; i < size; ++i) {
        const Halves part = halves_of(s[i], pass.fixed);
        atomicAdd(words + i, (unsigned long long)part.high.lane);
        atomicAdd(words + size + i, (unsigned long long)part.low.lane);
    }
}

#else

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

#endif

}  // namespace
