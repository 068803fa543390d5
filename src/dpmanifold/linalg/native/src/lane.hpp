// One lane: the vector type of a level that works on one matrix at a time, as a thread of a graphics card does.
//
// The same operators as the vectors of GCC and Clang have, comparisons with their -1 and 0 included, so that the
// kernels' mathematics is one source for every level; on a processor it is for tests.
#pragma once

namespace {

struct Ints {
    long long lane;
    DPM_METHOD long long& operator[](long) { return lane; }
    DPM_METHOD long long operator[](long) const { return lane; }
    DPM_METHOD explicit operator bool() const { return lane != 0; }
    DPM_METHOD Ints operator~() const { return Ints{~lane}; }
    DPM_METHOD Ints operator-() const { return Ints{-lane}; }
};

struct Vec {
    double lane;
    DPM_METHOD double& operator[](long) { return lane; }
    DPM_METHOD double operator[](long) const { return lane; }
    DPM_METHOD Vec operator-() const { return Vec{-lane}; }
};

#define DPM_OPERATOR(Result, Type, Number, op, value)                                                  \
    DPM_INLINE Result operator op(Type x, Type y) { return Result{value(x.lane op y.lane)}; }          \
    DPM_INLINE Result operator op(Type x, Number y) { return Result{value(x.lane op y)}; }             \
    DPM_INLINE Result operator op(Number x, Type y) { return Result{value(x op y.lane)}; }
#define DPM_ITSELF(x) x
#define DPM_MASK(x) (x) ? -1LL : 0LL

DPM_OPERATOR(Vec, Vec, double, +, DPM_ITSELF)
DPM_OPERATOR(Vec, Vec, double, -, DPM_ITSELF)
DPM_OPERATOR(Vec, Vec, double, *, DPM_ITSELF)
DPM_OPERATOR(Vec, Vec, double, /, DPM_ITSELF)
DPM_OPERATOR(Ints, Vec, double, <, DPM_MASK)
DPM_OPERATOR(Ints, Vec, double, >, DPM_MASK)
DPM_OPERATOR(Ints, Vec, double, <=, DPM_MASK)
DPM_OPERATOR(Ints, Vec, double, ==, DPM_MASK)
DPM_OPERATOR(Ints, Ints, long long, +, DPM_ITSELF)
DPM_OPERATOR(Ints, Ints, long long, -, DPM_ITSELF)
DPM_OPERATOR(Ints, Ints, long long, &, DPM_ITSELF)
DPM_OPERATOR(Ints, Ints, long long, |, DPM_ITSELF)
DPM_OPERATOR(Ints, Ints, long long, ^, DPM_ITSELF)
DPM_OPERATOR(Ints, Ints, long long, <, DPM_MASK)
DPM_OPERATOR(Ints, Ints, long long, >, DPM_MASK)
DPM_OPERATOR(Ints, Ints, long long, !=, DPM_MASK)

#undef DPM_OPERATOR
#undef DPM_MASK
#undef DPM_ITSELF

// Shifted as bits: a negative number to the left is no undefined case.
DPM_INLINE Ints operator<<(Ints x, int by) { return Ints{(long long)((unsigned long long)x.lane << by)}; }
DPM_INLINE Ints operator>>(Ints x, int by) { return Ints{x.lane >> by}; }

template <typename Type, typename Other>
DPM_INLINE Type& operator+=(Type& x, Other y) { return x = x + y; }
template <typename Type, typename Other>
DPM_INLINE Type& operator-=(Type& x, Other y) { return x = x - y; }
template <typename Other>
DPM_INLINE Vec& operator*=(Vec& x, Other y) { return x = x * y; }
template <typename Other>
DPM_INLINE Vec& operator/=(Vec& x, Other y) { return x = x / y; }
DPM_INLINE Ints& operator|=(Ints& x, Ints y) { return x = x | y; }

#if defined(__CUDACC__)
DPM_INLINE Vec from_bits(Ints x) { return Vec{__longlong_as_double(x.lane)}; }
DPM_INLINE Ints to_bits(Vec x) { return Ints{__double_as_longlong(x.lane)}; }
DPM_INLINE Vec square_root(Vec x) { return Vec{sqrt(x.lane)}; }
DPM_INLINE Vec product_minus(Vec a, Vec b, Vec p) { return Vec{fma(a.lane, b.lane, -p.lane)}; }
DPM_INLINE Vec absolute(Vec x) { return Vec{fabs(x.lane)}; }

// The card's estimates of 1/x and 1/sqrt(x) have 20 bits and more; each is followed by steps that leave less than two
// units in the last place (theory: kernels). For positive normal numbers whose reciprocal is one.
DPM_INLINE Vec reciprocal(Vec x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x.lane));
    const double e = fma(-x.lane, y, 1.0);
    y = fma(y, e, y);
    return Vec{fma(y, e * e, y)};
}
DPM_INLINE Vec reciprocal_root(Vec x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x.lane));
    const double half = 0.5 * x.lane;
    y = fma(y, fma(-half * y, y, 0.5), y);
    return Vec{fma(y, fma(-half * y, y, 0.5), y)};
}
// sqrt(x) and a/b where both are as harmless.
DPM_INLINE Vec near_root(Vec x) {
    const double y = reciprocal_root(x).lane, root = x.lane * y;
    return Vec{fma(0.5 * y, fma(-root, root, x.lane), root)};
}
DPM_INLINE Vec near_quotient(Vec a, Vec b) {
    const double y = reciprocal(b).lane, q = a.lane * y;
    return Vec{fma(y, fma(-q, b.lane, a.lane), q)};
}
#else
DPM_INLINE Vec from_bits(Ints x) {
    Vec y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}
DPM_INLINE Ints to_bits(Vec x) {
    Ints y;
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
}
DPM_INLINE Vec square_root(Vec x) { return Vec{__builtin_sqrt(x.lane)}; }
DPM_INLINE Vec product_minus(Vec a, Vec b, Vec p) { return Vec{__builtin_fma(a.lane, b.lane, -p.lane)}; }
DPM_INLINE Vec absolute(Vec x) { return Vec{__builtin_fabs(x.lane)}; }
DPM_INLINE Vec reciprocal(Vec x) { return 1.0 / x; }
DPM_INLINE Vec reciprocal_root(Vec x) { return 1.0 / square_root(x); }
DPM_INLINE Vec near_root(Vec x) { return square_root(x); }
DPM_INLINE Vec near_quotient(Vec a, Vec b) { return a / b; }
#endif

DPM_INLINE Vec load(const double* p) { return Vec{*p}; }
DPM_INLINE void store(double* p, Vec x) { *p = x.lane; }
DPM_INLINE bool any(Ints mask) { return mask.lane != 0; }

}  // namespace
