// Runs every kernel at every level the machine has over awkward sizes and inputs, for sanitizers and valgrind
// (`make sanitize`). Buffers are exactly as long as promised, so that a byte read or written beyond them is found.
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "../../src/dpmanifold/linalg/native/src/interface.hpp"

extern "C" {
const char* dpm_level_name(int);
long dpm_pass(int, const Pass*, double, int);
long dpm_gradient(int, const Gradient*, int);
long dpm_describe(int, const Images*, int);
}

namespace {

// A small repeatable generator: the numbers only have to be different.
double uniform() {
    static unsigned long long state = 88172645463325252ULL;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

std::vector<double> matrices(long n, int k) {
    std::vector<double> x(n * k * k), g(k * k);
    for (long m = 0; m < n; ++m) {
        for (double& v : g) v = uniform() - 0.5;
        for (int i = 0; i < k; ++i)
            for (int j = 0; j < k; ++j) {
                double sum = i == j ? 0.1 : 0.0;
                for (int l = 0; l < k; ++l) sum += g[i * k + l] * g[j * k + l];
                x[(m * k + i) * k + j] = sum;
            }
    }
    return x;
}

int failures = 0;

void expect(bool good, const char* what, int level, int k, long n) {
    if (good) return;
    ++failures;
    std::printf("%s: level %d, k = %d, n = %ld\n", what, level, k, n);
}

void exercise(int level, int k, long n, int function, bool accurate, bool spoiled, int threads) {
    std::vector<double> x = matrices(n, k);
    if (spoiled) {
        x[0] = std::numeric_limits<double>::quiet_NaN();
        x[x.size() - 1] = -1.0;
    }
    const long size = k * (k + 1) / 2;
    std::vector<double> factor(k * k), center(k * k), out(n * k * k), c(n * size), norms(n), moved(n * size);
    std::vector<long long> words(2 * size), rows(n), codes(n), powers(3), grouped(3 * 2 * size);
    for (int i = 0; i < k; ++i) factor[i * k + i] = 1.0 + i;
    std::vector<unsigned char> status(n);
    Pass pass{};
    pass.x = x.data(), pass.n = n, pass.k = k, pass.function = function, pass.accurate = accurate;
    pass.radius = function == CHECK ? 1e-6 : 1.0;
    pass.factor = function == EXP ? nullptr : factor.data(), pass.factor_is_lower = accurate;
    pass.center = center.data();
    pass.matrices = out.data(), pass.coordinates = c.data(), pass.norms = norms.data();
    pass.words = words.data(), pass.fixed = 0x1p62;
    pass.status = status.data();
    const long marked = dpm_pass(level, &pass, 1e6, threads);
    const bool definite = function == LOG || function == ROOT || function == INVERSE_ROOT || function == CHECK;
    if (definite) expect(spoiled ? marked >= 1 : marked == 0, "marked", level, k, n);
    if (function != LOG) return;
    pass.center = nullptr, pass.factor = nullptr, pass.matrices = nullptr, pass.coordinates = nullptr;
    pass.words = nullptr, pass.radius = std::numeric_limits<double>::infinity();
    expect(dpm_pass(level, &pass, 1e16, threads) >= 0, "norms", level, k, n);
    if (accurate) return;
    // Raw records to whitened triangles, each at another place, with a table that is too small; then sums by group.
    for (long i = 0; i < n; ++i) rows[i] = n - 1 - i, codes[i] = i % 3;
    pass.factor = factor.data(), pass.factor_is_lower = 1, pass.inspect = 1, pass.tolerance = 1e-6, pass.radius = 5.0;
    pass.norms = nullptr, pass.moved = moved.data(), pass.places = rows.data(), pass.words = words.data();
    const long faulty = dpm_pass(level, &pass, 2.0, threads);
    expect(spoiled ? faulty >= 1 : faulty == 0, "inspected", level, k, n);
    if (spoiled) return;
    std::vector<double> factors(3 * k * k);
    for (int i = 0; i < 3 * k * k; ++i) factors[i] = factor[i % (k * k)];
    pass.x = moved.data(), pass.triangles = 1, pass.inspect = 0, pass.moved = nullptr, pass.places = nullptr;
    pass.factor = factors.data(), pass.powers = powers.data(), pass.codes = codes.data(), pass.rows = rows.data();
    pass.words = grouped.data(), pass.n = n > 1 ? n - 1 : n, pass.radius = 1.0;
    expect(dpm_pass(level, &pass, 2.0, threads) == 0, "grouped", level, k, n);
}

void gradient(int level, int kind, int size, long n, int threads) {
    std::vector<double> x(n * size), base(3 * size);
    for (double& v : x) v = uniform() - 0.5;
    for (int i = 0; i < 3 * size; ++i) base[i] = x[i % (n * size)];
    std::vector<long long> rows(n), codes(n), words(3 * 2 * size);
    std::vector<unsigned char> status(n);
    for (long i = 0; i < n; ++i) rows[i] = n - 1 - i, codes[i] = i % 3;
    Gradient pass{x.data(), n, size, kind, 1.0, base.data(), 4.0, nullptr, nullptr, words.data(), 0x1p59, status.data(), nullptr};
    expect(dpm_gradient(level, &pass, threads) >= 0, "gradient", level, size, n);
    pass.rows = rows.data(), pass.codes = codes.data();
    expect(dpm_gradient(level, &pass, threads) >= 0, "grouped gradient", level, size, n);
    x[1] = std::numeric_limits<double>::quiet_NaN();  // an entry that every kind reads
    expect(dpm_gradient(level, &pass, threads) >= 1, "marked gradient", level, size, n);
}

template <typename Pixel>
void describe(int level, long n, long height, long width, int channels, int kind) {
    std::vector<Pixel> pixels(n * height * width * channels);
    for (Pixel& p : pixels) p = kind == 0 ? (Pixel)(255 * uniform()) : (Pixel)uniform();
    const int size = channels == 1 ? 9 : 11;
    std::vector<double> columns(width, 0.5), rows(height, 0.5), out(n * size * size);
    Images images{pixels.data(), n, height, width, channels, kind, 1e-6, columns.data(), rows.data(), out.data()};
    expect(dpm_describe(level, &images, 2) == 0, "describe", level, size, n);
    for (double v : out) expect(std::isfinite(v), "finite", level, size, n);
}

}  // namespace

int main() {
    int levels = 0;
    for (int level = 0; level < 5; ++level) {
        if (!dpm_level_name(level)) continue;
        ++levels;
        for (int k : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 16, 17, 31, 64})
            for (long n : {1L, 7L, 16L, 65L, k < 12 ? 261L : 9L})
                for (int function : {NONE, LOG, ROOT, INVERSE_ROOT, EXP, CHECK, SYMMETRIZE}) {
                    if (k > 20 && n > 7) continue;
                    for (bool spoiled : {false, true}) exercise(level, k, n, function, false, spoiled, 1);
                    exercise(level, k, n, function, false, false, 3);
                    const bool graded = function == LOG || function == ROOT || function == INVERSE_ROOT;
                    if (graded && k < 18) exercise(level, k, n, function, true, true, 1);
                }
        for (int kind : {SPHERE, HYPERBOLIC, SHAPE})
            for (int size : {2, 4, 6, 8, 10, 16, 22})
                for (long n : {1L, 7L, 65L, 261L})
                    for (int threads : {1, 3}) gradient(level, kind, size, n, threads);
        for (long width : {5L, 8L, 13L, 28L}) {
            describe<unsigned char>(level, 3, 7, width, 1, 0);
            describe<float>(level, 3, 5, width, 3, 1);
            describe<double>(level, 2, 28, width, 1, 2);
        }
    }
    std::printf("%d levels, %d failures\n", levels, failures);
    return failures != 0;
}
