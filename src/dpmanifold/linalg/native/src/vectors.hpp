// Sums of logarithms of many points of a sphere, of hyperbolic space or of planar shapes, each at its group's base point.
//
// Points are LANES at a time, one per lane, and all lanes run the same instructions: as for matrices. Curvature is 1, -1
// or that of shapes; the caller scales. Lanes in which a formula would lose its digits are marked, and left out.
#pragma once

#include "inspect.hpp"
#include "sums.hpp"

namespace {

// Below this, sines and cosines of a marked lane say too little about a direction.
constexpr double UNCLEAR = 1e-3;

// Vectors of working memory: point, base point, and the halves of the sums.
DPM_INLINE long gradient_vectors(int size) { return 4L * size + 4; }

// t/s for the angle t of the legs s (opposite) and c (adjacent), both at least 0; 1 where s vanishes.
DPM_INLINE Vec over_sine(Vec t, Vec s) { return select(s > 1e-9, t / larger(s, broadcast(1e-300)), broadcast(1.0)); }

// What a tangent vector of length t is multiplied by so that it is no longer than the bound.
DPM_INLINE Vec cut(Vec t, double bound) { return select(t > bound, bound / t, broadcast(1.0)); }

// q becomes the logarithm at p, in the space around. Returns the lanes near the antipode.
DPM_INLINE Ints sphere_log(Vec* q, const Vec* p, int size, double bound) {
    Vec c{}, square{};
    for (int i = 0; i < size; ++i) c += p[i] * q[i];
    for (int i = 0; i < size; ++i) {
        q[i] -= c * p[i];
        square += q[i] * q[i];
    }
    const Vec s = square_root(square), near = angle(s, absolute(c));
    const Vec t = select(c < 0.0, 3.14159265358979323846 - near, near);
    const Vec weight = over_sine(t, s) * cut(t, bound);
    for (int i = 0; i < size; ++i) q[i] *= weight;
    return ((c < 0.0) & (s < UNCLEAR)) | ~(t < 4.0);
}

// The same for pre-shapes, pairs of real and imaginary parts: q is first turned to lie as close to p as it can.
DPM_INLINE Ints shape_log(Vec* q, const Vec* p, int size, double bound) {
    Vec re{}, im{}, square{};
    for (int i = 0; i < size; i += 2) {
        re += p[i] * q[i] + p[i + 1] * q[i + 1];
        im += p[i] * q[i + 1] - p[i + 1] * q[i];
    }
    const Vec c = square_root(re * re + im * im), inverse = 1.0 / larger(c, broadcast(1e-300));
    const Vec cosine = re * inverse, sine = im * inverse;
    for (int i = 0; i < size; i += 2) {
        const Vec a = q[i], b = q[i + 1];
        q[i] = (a * cosine + b * sine) - c * p[i];
        q[i + 1] = (b * cosine - a * sine) - c * p[i + 1];
        square += q[i] * q[i] + q[i + 1] * q[i + 1];
    }
    const Vec s = square_root(square), t = angle(s, c);
    const Vec weight = over_sine(t, s) * cut(t, bound);
    for (int i = 0; i < size; ++i) q[i] *= weight;
    return (c < UNCLEAR) | ~(t < 4.0);
}

// Spatial entries of q (from the second on) become coordinates of the logarithm in the boosted frame at p.
DPM_INLINE Ints hyperbolic_log(Vec* q, const Vec* p, int size, double bound) {
    Vec pp{}, qq{}, along{}, gap_sum{};
    for (int i = 1; i < size; ++i) {
        const Vec gap = q[i] - p[i];
        pp += p[i] * p[i];
        qq += q[i] * q[i];
        along += p[i] * gap;
        gap_sum += gap * (p[i] + q[i]);
    }
    const Vec time = square_root(1.0 + pp), other = square_root(1.0 + qq);
    const Vec boost = gap_sum / (time + other) - along / (1.0 + time);
    Vec square{};
    for (int i = 1; i < size; ++i) {
        q[i] = (q[i] - p[i]) - p[i] * boost;
        square += q[i] * q[i];
    }
    const Vec s = square_root(square), root = square_root(1.0 + square);
    const Ints far = ~(square < 1e300) | ~(other < 1e150);  // the logarithm takes numbers alone
    const Vec t = logarithm(select(far, broadcast(1.0), s + root));
    const Vec series = 1.0 - square * (1.0 / 6.0 - square * (3.0 / 40.0));
    const Vec weight = select(s > UNCLEAR, t / larger(s, broadcast(1e-300)), series) * cut(t, bound);
    for (int i = 1; i < size; ++i) q[i] *= weight;
    return far;
}

long run_gradient(const Gradient* given, long first_chunk, long last_chunk, void* memory) {
    const Gradient& pass = *given;
    const int size = pass.size, skip = pass.kind == HYPERBOLIC ? 1 : 0;
    Vec *q = (Vec*)memory, *p = q + size;
    Halves* total = (Halves*)(p + size);
    const long end = last_chunk * CHUNK < pass.n ? last_chunk * CHUNK : pass.n;
    long marked = 0;
    for (int i = 0; i < size; ++i) total[i] = Halves{}, p[i] = broadcast(pass.base[i]);
    for (long first = first_chunk * CHUNK; first < end; first += LANES) {
        const long count = end - first < LANES ? end - first : LANES;
        const double* at[LANES];
        long long group[LANES];
        if (pass.codes) {
            for (long lane = 0; lane < LANES; ++lane) {
                const long i = first + (lane < count ? lane : count - 1);
                group[lane] = pass.codes[pass.rows ? pass.rows[i] : i];
                at[lane] = pass.base + group[lane] * size;
            }
            each_entry(at, size, [&](long e, Vec v) DPM_LAMBDA { p[e] = v; });
        }
        point_at(pass.x, size, pass.rows, first, count, at);
        each_entry(at, size, [&](long e, Vec v) DPM_LAMBDA { q[e] = v * pass.scale; });
        Ints bad = pass.kind == SPHERE  ? sphere_log(q, p, size, pass.bound)
                   : pass.kind == SHAPE ? shape_log(q, p, size, pass.bound)
                                        : hyperbolic_log(q, p, size, pass.bound);
        for (long lane = count; lane < LANES; ++lane) bad[lane] = -1;
        for (long lane = 0; lane < count; ++lane) {
            pass.status[first + lane] = bad[lane] != 0;
            marked += bad[lane] != 0;
        }
        for (int i = skip; i < size; ++i) {
            const Halves part = halves_of(select(bad, Vec{}, q[i]), pass.fixed);
            if (pass.codes) {
                total[i - skip] = part;
            } else {
                total[i - skip].high += part.high;
                total[i - skip].low += part.low;
            }
        }
        if (pass.codes) scatter(pass, total, size - skip, group, count, bad);
    }
    if (!pass.codes) hand_in(pass, total, size - skip);
    return marked;
}

long gradient_memory(const Gradient* pass) { return gradient_vectors(pass->size) * (long)sizeof(Vec); }

}  // namespace
