// The pass that every batched function is: load a block, apply a function, reduce or write, mark what was unusable.
#pragma once

#include "graded.hpp"
#include "inspect.hpp"
#include "interface.hpp"
#include "products.hpp"
#include "rational.hpp"
#include "small.hpp"
#include "tridiagonal.hpp"

namespace {

// A smallest eigenvalue below this share of the (rounded up) largest one is lost to rounding.
constexpr double LOST = 0x1p-50;

struct Memory {
    Vec *a, *s, *total, *diagonals, *reflections, *poles, *squares;
    long vectors;
};

DPM_INLINE Memory arrange(const Pass& pass, Vec* base) {
    const long k = pass.k, size = packed(pass.k);
    const bool squares = pass.accurate || pass.factor || pass.function == CHECK;
    const long square = pass.function == EXP ? 6 * k * k : squares ? 2 * k * k : 0;
    Memory m;
    long used = 0;
    auto take = [&](long count) {
        Vec* start = base ? base + used : nullptr;
        used += count;
        return start;
    };
    m.a = take(size);
    m.s = take(size);
    m.total = take(size);
    m.diagonals = take(3 * (k + 1));
    m.reflections = take(8 * (k + 1));
    m.poles = take(2 * k * POLES);
    m.squares = take(square);
    m.vectors = used;
    return m;
}

// f at an eigenvalue of the scaled matrix, divided by the eigenvalue if asked (for columns of length sqrt(value)).
DPM_INLINE Vec at_eigenvalue(int function, Vec x) {
    if (function == LOG) return logarithm(x);
    return function == ROOT ? square_root(x) : 1.0 / square_root(x);
}

// Undo the scaling by 2^exponent: the logarithm is shifted, roots are multiplied.
DPM_INLINE void unscale(Vec* s, int k, int function, Ints exponent) {
    Vec e = to_double(exponent);
    if (function == LOG) {
        Vec high = e * LN2_HIGH, low = e * LN2_LOW;
        for (int i = 0; i < k; ++i) s[at(i, i)] += high + low;
    } else {
        Ints half = exponent >> 1;
        Vec scale = power_of_two(function == ROOT ? half : -half);
        for (int i = 0; i < packed(k); ++i) s[i] *= scale;
    }
}

// f of a small matrix from its eigenvalues; marks what is not positive definite.
template <int K>
DPM_INLINE Ints of_eigenvalues(Vec* values, const Vec* vectors, int function, Vec* s) {
    Vec low = values[0], high = values[0];
    for (int i = 1; i < K; ++i) low = smaller(values[i], low), high = larger(values[i], high);
    Ints bad = ~(low > LOST * high);
    for (int i = 0; i < K; ++i) bad |= ~(values[i] > 0.0);
    for (int i = 0; i < K; ++i) values[i] = at_eigenvalue(function, select(bad, broadcast(1.0), values[i]));
    recompose<K>(values, vectors, s);
    return bad;
}

DPM_INLINE Ints of_graded(Vec* a, int k, int function, Vec* s, Memory& m) {
    Vec *g = m.squares, *values = m.diagonals;
    Ints bad = cholesky(a, k);
    for (int c = 0; c < k; ++c)
        for (int i = 0; i < k; ++i)
            g[c * k + i] = select(bad, broadcast(i == c ? 1.0 : 0.0), i >= c ? a[at(i, c)] : Vec{});
    orthogonalise(g, k, values);
    for (int c = 0; c < k; ++c) values[c] = at_eigenvalue(function, values[c]) / values[c];
    sum_of_squares(g, values, k, s);
    return bad;
}

// The general case. With `only_norm` the result is a matrix with the same Frobenius norm and eigenvalues.
template <int K>
DPM_INLINE Ints of_general(Vec* a, int size, const Pass& pass, bool only_norm, Vec* s, Ints& exponent, Memory& m) {
    const int k = K ? K : size;
    Vec *d = m.diagonals, *e = d + k + 1, *t = e + k + 1;
    tridiagonalise<K>(a, k, d, e, t, Reflections{m.reflections});
    exponent += scale_to_unit<K>(d, e, k, pass.function != LOG);
    Ints bad = below<K>(d, e, k, 1 / pass.table->bound);
    resolvent_sum<K>(d, e, k, *pass.table, s, m.poles);
    if (!only_norm) transform_back<K>(a, t, k, s, Reflections{m.reflections});
    return bad;
}

template <int K>
DPM_INLINE Ints apply(Vec* a, int size, const Pass& pass, bool only_norm, Memory& m, Vec*& s) {
    const int k = K ? K : size;
    s = m.s;
    if (pass.function == EXP) {
        s = a;
        return exponentiate(a, k, m.squares);
    }
    Ints exponent{};
    if (pass.function != NONE || pass.factor) exponent = normalise(a, k);
    if (pass.factor) {
        congruence<K>(a, k, pass.factor, pass.factor_is_lower != 0, m.squares);
        if (pass.function != NONE) exponent += normalise(a, k);
    }
    if (pass.function == NONE) {
        s = a;
        exponent -= pass.power;
        exponent = exponent > 2044 ? broadcast_bits(2044) : exponent < -2044 ? broadcast_bits(-2044) : exponent;
        Ints half = exponent >> 1;  // in two steps: the exponents of both may add up to more than a double has
        Vec scale = power_of_two(half), rest = power_of_two(exponent - half);
        Ints bad{};
        for (int i = 0; i < packed(k); ++i) {
            s[i] = s[i] * scale * rest;
            bad |= ~(absolute(s[i]) < __builtin_inf());
        }
        return bad;
    }
    Ints bad;
    if (pass.accurate)
        bad = of_graded(a, k, pass.function, s, m);
    else
        bad = of_general<K>(a, k, pass, only_norm, s, exponent, m);
    unscale(s, k, pass.function, exponent - pass.power);
    return bad;
}

// Subtract the centre, clip, and hand out what was asked for. Bad lanes count as 0.
template <int K>
DPM_INLINE long finish(const Pass& pass, long first, long count, Vec* s, Ints bad, Vec* total) {
    const int k = K ? K : pass.k;
    if (pass.center)
        for (int i = 0; i < k; ++i)
            for (int j = 0; j <= i; ++j) s[at(i, j)] -= pass.center[i * k + j];
    Vec weight = broadcast(1.0);
    if (pass.norms || pass.radius < __builtin_inf()) {
        Vec norm = square_root(square_norm(s, k));
        if (pass.norms && count == LANES)
            store(pass.norms + first, norm);
        else if (pass.norms)
            for (long lane = 0; lane < count; ++lane) pass.norms[first + lane] = norm[lane];
        // Short by what the norm of a result of this size may round, so that nothing is left outside.
        weight = select(norm > pass.radius, pass.radius * (1 - k * 0x1p-51) / norm, weight);
    }
    if (pass.radius < __builtin_inf() && (pass.matrices || pass.coordinates || pass.sums))
        for (int i = 0; i < packed(k); ++i) s[i] *= weight;
    if (pass.matrices) store_block(s, count, k, pass.matrices + first * k * k);
    if (pass.coordinates) store_coordinates(s, count, k, pass.coordinates + first * packed(k));
    long marked = 0;
    for (long lane = 0; lane < count; ++lane) pass.status[first + lane] = 0;
    if (any(bad))
        for (long lane = 0; lane < count; ++lane) {
            pass.status[first + lane] = bad[lane] != 0;
            marked += bad[lane] != 0;
        }
    if (pass.sums) {
        Vec share = broadcast(1.0);
        if (pass.weights && count == LANES)
            share = load(pass.weights + first);
        else if (pass.weights)
            for (long lane = 0; lane < count; ++lane) share[lane] = pass.weights[first + lane];
        for (long lane = count; lane < LANES; ++lane) bad[lane] = -1;
        for (int i = 0; i < packed(k); ++i) total[i] += select(bad, Vec{}, s[i]) * share;
    }
    return marked;
}

DPM_INLINE double lane_sum(Vec x) {
    double sum = 0;
    for (int lane = 0; lane < LANES; ++lane) sum += x[lane];
    return sum;
}

template <int K>
long run_pass(const Pass* given, long first_chunk, long last_chunk, void* memory) {
    const Pass pass = *given;
    const int k = K ? K : pass.k;
    Memory m = arrange(pass, (Vec*)memory);
    long marked = 0;
    const bool whole = pass.matrices || pass.coordinates || pass.sums || pass.center;
    for (long chunk = first_chunk; chunk < last_chunk; ++chunk) {
        const long start = chunk * CHUNK, end = start + CHUNK < pass.n ? start + CHUNK : pass.n;
        if (pass.sums)
            for (int i = 0; i < packed(k); ++i) m.total[i] = Vec{};
        for (long first = start; first < end; first += LANES) {
            const long count = end - first < LANES ? end - first : LANES;
            load_block(pass.x + first * k * k, count, k, m.a);
            Vec* s;
            Ints bad = apply<K>(m.a, k, pass, !whole, m, s);
            marked += finish<K>(pass, first, count, s, bad, m.total);
        }
        if (pass.sums)
            for (int i = 0; i < packed(k); ++i) pass.sums[chunk * packed(k) + i] = lane_sum(m.total[i]);
    }
    return marked;
}

// The same for k = 2 and 3, from eigenvalues and for several blocks at a time.
template <int K>
long run_small(const Pass* given, long first_chunk, long last_chunk, void* memory) {
    const Pass pass = *given;
    Memory m = arrange(pass, (Vec*)memory);
    long marked = 0;
    for (long chunk = first_chunk; chunk < last_chunk; ++chunk) {
        const long start = chunk * CHUNK, end = start + CHUNK < pass.n ? start + CHUNK : pass.n;
        Vec total[packed(K)];
        for (int i = 0; i < packed(K); ++i) total[i] = Vec{};
        for (long first = start; first < end; first += TURNS * LANES) {
            Vec a[TURNS][packed(K)], s[packed(K)], values[TURNS][K], vectors[TURNS][K * K];
            Ints exponent[TURNS], unfit[TURNS];
            long count[TURNS];
            for (int b = 0; b < TURNS; ++b) {
                const long left = end - first - b * LANES;
                count[b] = left < 0 ? 0 : left < LANES ? left : LANES;
                load_block(pass.x + (first + b * LANES) * K * K, count[b], K, a[b]);
                exponent[b] = normalise(a[b], K);
                if (pass.factor) {
                    congruence<K>(a[b], K, pass.factor, pass.factor_is_lower != 0, m.squares);
                    exponent[b] += normalise(a[b], K);
                }
            }
            for (int b = 0; b < TURNS; ++b) unfit[b] = beyond_diagonal<K>(a[b]);
            diagonalise<K>(a, values, vectors);
            for (int b = 0; b < TURNS; ++b) {
                if (count[b] == 0) continue;
                Ints bad = of_eigenvalues<K>(values[b], vectors[b], pass.function, s) | unfit[b];
                unscale(s, K, pass.function, exponent[b] - pass.power);
                marked += finish<K>(pass, first + b * LANES, count[b], s, bad, total);
            }
        }
        if (pass.sums)
            for (int i = 0; i < packed(K); ++i) pass.sums[chunk * packed(K) + i] = lane_sum(total[i]);
    }
    return marked;
}

template <int K>
long run_any(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    if (pass->function == SYMMETRIZE) return run_symmetrize<K>(pass, first_chunk, last_chunk);
    if (pass->function == CHECK) return run_check<K>(pass, first_chunk, last_chunk, arrange(*pass, (Vec*)memory));
    return run_pass<K>(pass, first_chunk, last_chunk, memory);
}

template <int K>
long run_any_small(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    const int f = pass->function;
    const bool small = !pass->accurate && (f == LOG || f == ROOT || f == INVERSE_ROOT);
    return (small ? run_small<K> : run_any<K>)(pass, first_chunk, last_chunk, memory);
}

long pass_memory(const Pass* pass) { return arrange(*pass, nullptr).vectors * (long)sizeof(Vec); }

// Sizes that are common enough to be worth their own code: there the compiler knows every loop's length.
long pass_of_size(const Pass* pass, long first_chunk, long last_chunk, void* memory) {
    switch (pass->k) {
        case 2: return run_any_small<2>(pass, first_chunk, last_chunk, memory);
        case 3: return run_any_small<3>(pass, first_chunk, last_chunk, memory);
        case 4: return run_any<4>(pass, first_chunk, last_chunk, memory);
        case 5: return run_any<5>(pass, first_chunk, last_chunk, memory);
        case 9: return run_any<9>(pass, first_chunk, last_chunk, memory);
        case 11: return run_any<11>(pass, first_chunk, last_chunk, memory);
        default: return run_any<0>(pass, first_chunk, last_chunk, memory);
    }
}

}  // namespace
