// One double per matrix: the vector type every kernel computes with, and its elementary functions.
//
// A lane never looks at another lane and no function branches on values, so a matrix gets the same bits whatever
// lane, block or batch it sits in. Everything lives in an unnamed namespace: this header is compiled once per
// instruction set, and the linker must never merge two of those copies.
#pragma once

#if defined(__x86_64__) || defined(__i386__)
#if !defined(__CUDACC__)
#include <immintrin.h>
#endif
#endif

#if defined(__CUDACC__)
#define DPM_INLINE static __device__ __forceinline__
#define DPM_METHOD __device__ __forceinline__
#define DPM_CONSTANT __host__ __device__ constexpr
#define DPM_LAMBDA
#define DPM_UNROLL _Pragma("unroll")  // what is indexed by constants alone can be held in registers
#define DPM_INFINITY __longlong_as_double(0x7ff0000000000000LL)
#else
#define DPM_INLINE static inline __attribute__((always_inline))
#define DPM_METHOD inline __attribute__((always_inline))
#define DPM_CONSTANT constexpr
#define DPM_LAMBDA __attribute__((always_inline))
#define DPM_UNROLL
#define DPM_INFINITY __builtin_inf()
#endif

#if DPM_LANES == 1
#include "lane.hpp"
#endif

namespace {

constexpr int LANES = DPM_LANES;

#if DPM_LANES > 1
typedef double Vec __attribute__((vector_size(8 * DPM_LANES)));
typedef long long Ints __attribute__((vector_size(8 * DPM_LANES)));
DPM_INLINE Vec from_bits(Ints x) { return (Vec)x; }
DPM_INLINE Ints to_bits(Vec x) { return (Ints)x; }
DPM_INLINE Vec absolute(Vec x) { return from_bits(to_bits(x) & 0x7fffffffffffffffLL); }

DPM_INLINE bool any(Ints mask) {
#if defined(__AVX512F__) && DPM_LANES == 8
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX__) && DPM_LANES == 4
    return _mm256_movemask_pd((__m256d)mask) != 0;
#else
    long long found = 0;
    for (int lane = 0; lane < LANES; ++lane) found |= mask[lane];
    return found != 0;
#endif
}

DPM_INLINE Vec load(const double* p) {
    Vec x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
}
DPM_INLINE void store(double* p, Vec x) { __builtin_memcpy(p, &x, sizeof x); }

DPM_INLINE Vec square_root(Vec x) {
#if defined(__AVX512F__) && DPM_LANES == 8
    return (Vec)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX__) && DPM_LANES == 4
    return (Vec)_mm256_sqrt_pd((__m256d)x);
#elif defined(__SSE2__) && DPM_LANES == 2
    return (Vec)_mm_sqrt_pd((__m128d)x);
#else
    for (int lane = 0; lane < LANES; ++lane) x[lane] = __builtin_sqrt(x[lane]);
    return x;
#endif
}

// 1/x for positive x well inside the doubles. AVX-512's estimate has 14 bits; one step of order four gives 53, at a
// quarter of the division's cost.
DPM_INLINE Vec reciprocal(Vec x) {
#if defined(__AVX512F__) && DPM_LANES == 8
    Vec y = (Vec)_mm512_rcp14_pd((__m512d)x);
    Vec e = 1.0 - x * y;
    y += y * e;
    return y + y * (e * e);
#else
    return 1.0 / x;
#endif
}

// 1/sqrt(x), likewise: two Newton steps after the estimate.
DPM_INLINE Vec reciprocal_root(Vec x) {
#if defined(__AVX512F__) && DPM_LANES == 8
    Vec y = (Vec)_mm512_rsqrt14_pd((__m512d)x);
    Vec half = 0.5 * x;
    y += y * (0.5 - half * y * y);
    return y + y * (0.5 - half * y * y);
#else
    return 1.0 / square_root(x);
#endif
}

// a b - p without rounding the product: the error of p = a b, exactly. Written with intrinsics because a compiler may
// see that a b - p is 0.
DPM_INLINE Vec product_minus(Vec a, Vec b, Vec p) {
#if defined(__AVX512F__) && DPM_LANES == 8
    return (Vec)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)p);
#elif defined(__FMA__) && DPM_LANES == 4
    return (Vec)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)p);
#else
    for (int lane = 0; lane < LANES; ++lane) p[lane] = __builtin_fma(a[lane], b[lane], -p[lane]);
    return p;
#endif
}

// sqrt(x) and a/b inside the doubles: a card has faster ones than those of every number.
DPM_INLINE Vec near_root(Vec x) { return square_root(x); }
DPM_INLINE Vec near_quotient(Vec a, Vec b) { return a / b; }
#endif

DPM_INLINE Vec broadcast(double x) { return x - Vec{}; }
DPM_INLINE Ints broadcast_bits(long long x) { return x - Ints{}; }
DPM_INLINE Vec select(Ints mask, Vec yes, Vec no) { return mask ? yes : no; }
DPM_INLINE Vec larger(Vec a, Vec b) { return select(a > b, a, b); }
DPM_INLINE Vec smaller(Vec a, Vec b) { return select(a < b, a, b); }

// Integers of at most 2^50 in size as doubles: AVX2 has no such conversion, adding to 1.5 * 2^52 is one.
DPM_INLINE Vec to_double(Ints n) { return from_bits(n + 0x4338000000000000LL) - 6755399441055744.0; }

// 2^n for n in [-1022, 1023].
DPM_INLINE Vec power_of_two(Ints n) { return from_bits((n + 1023) << 52); }

// The e with 2^(e-1) <= x < 2^e, for normal x > 0.
DPM_INLINE Ints exponent_above(Vec x) { return ((to_bits(x) >> 52) & 0x7ff) - 1022; }

constexpr double LN2_HIGH = 6.93147180369123816490e-01;  // 32 leading bits: times an integer exponent it is exact
constexpr double LN2_LOW = 1.90821492927058770002e-10;

// Natural logarithm of normal x > 0, to less than one unit in the last place (fdlibm's reduction and polynomial).
DPM_INLINE Vec logarithm(Vec x) {
    const long long root_half = 0x3fe6a09e667f3bcdLL;
    Ints shifted = to_bits(x) + (0x3ff0000000000000LL - root_half);
    Vec exponent = to_double((shifted >> 52) - 1023);
    Vec f = from_bits((shifted & 0x000fffffffffffffLL) + root_half) - 1.0;
    Vec s = f * reciprocal(2.0 + f), z = s * s, w = z * z;
    Vec even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    Vec odd = z * (6.666666666666735130e-01 +
                   w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    Vec half_square = 0.5 * f * f;
    return exponent * LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + exponent * LN2_LOW)) - f);
}

// Exponential; 0 and infinity beyond the doubles.
DPM_INLINE Vec exponential(Vec x) {
    x = larger(smaller(x, broadcast(800.0)), broadcast(-800.0));
    Vec shifted = x * 1.4426950408889634 + 6755399441055744.0;
    Ints n = to_bits(shifted) - 0x4338000000000000LL;
    Vec whole = shifted - 6755399441055744.0;
    Vec r = (x - whole * LN2_HIGH) - whole * LN2_LOW;
    // Taylor up to r^13: the next term is below 2^-57 for |r| <= ln(2)/2.
    Vec p = broadcast(1.0 / 6227020800.0);
    const double c[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                        1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5};
    for (double coefficient : c) p = coefficient + r * p;
    p = 1.0 + (r + r * r * p);
    Ints half = n >> 1;  // in two steps, so that results below the normal numbers and overflow come out right
    return p * power_of_two(half) * power_of_two(n - half);
}

// arctan2(y, x) for x, y >= 0; 0 where both are 0 (Cephes: rational on [0, tan(pi/8)], shifted by pi/4 above it).
DPM_INLINE Vec angle(Vec y, Vec x) {
    Vec high = larger(x, y), low = smaller(x, y);
    Ints far = low > 0.41421356237309503 * high;
    Vec bottom = select(far, low + high, select(high > 0.0, high, broadcast(1.0)));
    Vec t = select(far, low - high, low) / bottom;
    Vec z = t * t;
    Vec top = -6.485021904942025371773e1 +
              z * (-1.228866684490136173410e2 +
                   z * (-7.500855792314704667340e1 + z * (-1.615753718733365076637e1 + z * -8.750608600031904122785e-1)));
    Vec under = 1.945506571482613964425e2 +
                z * (4.853903996359136964868e2 +
                     z * (4.328810604912902668951e2 + z * (1.650270098316988542046e2 + z * (2.485846490142306297962e1 + z))));
    Vec a = select(far, broadcast(0.78539816339744830962), Vec{}) + (t + t * (z * top * reciprocal(under)));
    return select(y > x, 1.57079632679489661923 - a, a);
}

}  // namespace
