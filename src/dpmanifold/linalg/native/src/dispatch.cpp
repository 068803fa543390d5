// The library's C interface: picks a level the machine has, splits the work among threads, calls the kernels.
#include "choice.hpp"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace {

constexpr int LEVELS = 5;
constexpr long NO_LEVEL = -1, NO_MEMORY = -2;

// What OMP_NUM_THREADS says, 1 without it: a library does not take cores that nobody offered.
int threads_at_start() {
    const char* text = std::getenv("OMP_NUM_THREADS");
    const int number = text ? std::atoi(text) : 1;
    return number > 0 && number <= 1024 ? number : 1;
}

std::atomic<int> most_threads{threads_at_start()};

// Levels the machine can run, by number: 0 baseline, 1 AVX2, 2 AVX-512; null for the others. 3 and 4 are a card's
// mathematics on a processor, which a build for tests has (cmake -DDPM_CARD_LEVELS=ON).
const Level* level_at(int number) {
    if (number == 0) return dpm_level_baseline();
#ifdef DPM_X86_LEVELS
    if (number == 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return dpm_level_avx2();
    if (number == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return dpm_level_avx512();
#endif
#ifdef DPM_CARD_LEVELS
    if (number == 3) return dpm_level_lane();
    if (number == 4) return dpm_level_team();
#endif
    return nullptr;
}

// Run work(first, last, memory) over [0, units), in portions that `threads` threads take as they become free; returns
// the sum of what the portions return, or NO_MEMORY. Which thread takes what does not show in any output.
template <typename Work>
long split(long units, int threads, long bytes, Work work) {
    const long alignment = 64;
    const long room = (bytes / alignment + 2) * alignment;
    if (threads > units) threads = (int)units;
    if (threads < 1) threads = 1;
    char* memory = (char*)std::malloc((size_t)room * threads + alignment);
    if (!memory) return NO_MEMORY;
    char* aligned = memory + (alignment - (size_t)memory % alignment);
    const long portion = threads == 1 ? units : units / (16L * threads) + 1;
    std::atomic<long> next{0}, total{0};
    auto run = [&](int thread) {
        for (long first = next.fetch_add(portion); first < units; first = next.fetch_add(portion)) {
            const long last = first + portion < units ? first + portion : units;
            total += work(first, last, (void*)(aligned + room * thread));
        }
    };
    std::vector<std::thread> helpers;
    try {
        helpers.reserve(threads);
        for (int thread = 1; thread < threads; ++thread) helpers.emplace_back(run, thread);
    } catch (const std::exception&) {
        // No more threads to be had: those there are do the work.
    }
    run(0);
    for (std::thread& helper : helpers) helper.join();
    std::free(memory);
    return total;
}

}  // namespace

extern "C" {

// Raised whenever the structures or the meaning of a call change: a stale library is refused, not called.
EXPORT int dpm_version() { return 5; }

// Name of level `number`, or null if this machine or build does not have it.
EXPORT const char* dpm_level_name(int number) {
    if (number < 0 || number >= LEVELS) return nullptr;
    const Level* level = level_at(number);
    return level ? level->name : nullptr;
}

// Poles that a pass takes for eigenvalues within a factor of `condition` of each other.
EXPORT int dpm_poles(int function, double condition) { return table_for(function, condition)->count; }

EXPORT int dpm_get_num_threads() { return most_threads; }
EXPORT void dpm_set_num_threads(int number) { most_threads = number > 0 ? number : 1; }

// Returns how many matrices were marked in `status`; -1 for a level this machine lacks, -2 without memory.
EXPORT long dpm_pass(int number, const Pass* given, double condition, int threads) {
    const Level* level = level_at(number);
    if (!level) return NO_LEVEL;
    if (given->n == 0) return 0;
    Pass pass = *given;
    pass.table = table_for(pass.function, condition);
    pass.wide = table_for(pass.function, MOST_CONDITION);
    if (pass.wide == pass.table) pass.wide = nullptr;
    std::vector<unsigned char> locks(threads > 1 && pass.words ? LOCKS : 0);
    pass.locks = locks.empty() ? nullptr : locks.data();
    const long chunks = (pass.n + CHUNK - 1) / CHUNK;
    auto work = [&](long first, long last, void* memory) { return level->pass(&pass, first, last, memory); };
    return split(chunks, threads, level->pass_memory(&pass), work);
}

// Likewise for points of spheres, hyperbolic spaces and shapes.
EXPORT long dpm_gradient(int number, const Gradient* given, int threads) {
    const Level* level = level_at(number);
    if (!level) return NO_LEVEL;
    if (given->n == 0) return 0;
    Gradient pass = *given;
    std::vector<unsigned char> locks(threads > 1 ? LOCKS : 0);
    pass.locks = locks.empty() ? nullptr : locks.data();
    const long chunks = (pass.n + CHUNK - 1) / CHUNK;
    auto work = [&](long first, long last, void* memory) { return level->gradient(&pass, first, last, memory); };
    return split(chunks, threads, level->gradient_memory(&pass), work);
}

EXPORT long dpm_describe(int number, const Images* images, int threads) {
    const Level* level = level_at(number);
    if (!level) return NO_LEVEL;
    if (images->n == 0) return 0;
    auto work = [&](long first, long last, void* memory) { return level->describe(images, first, last, memory); };
    return split(images->n, threads, level->image_memory(images), work);
}

}  // extern "C"
