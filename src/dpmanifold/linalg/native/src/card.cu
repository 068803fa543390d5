// A pass on a graphics card, compiled for one size, one function and one choice of inputs and outputs.
//
// The kernel computes what pass.hpp says: up to 11 x 11 it is that file's own code, one matrix per thread, all of it in
// registers; larger matrices are shared by the threads of a team (team.hpp). What is absent from DPM_WHAT is null to the
// compiler, which leaves its code out. Which rows are taken, and where triangles go, is no part of it: one and the same
// code must do a matrix whether all are taken or a few, since who is left out may depend on other people's data.
#define DPM_LANES 1
#include "choice.hpp"
#include "pass.hpp"
#include "team.hpp"

enum What {
    WITH_FACTOR = 1, WITH_LOWER = 2, WITH_CENTER = 4, WITH_MATRICES = 8, WITH_COORDINATES = 16, WITH_NORMS = 32,
    WITH_WORDS = 64, WITH_CODES = 128, WITH_TRIANGLES = 256, WITH_INSPECT = 512, WITH_POWERS = 1024, WITH_MOVED = 2048,
    WITH_RADIUS = 4096
};

DPM_CONSTANT bool with(int what) { return (DPM_WHAT & what) != 0; }

constexpr int SIDE = DPM_K;
constexpr bool ALONE = SIDE <= 11;  // one thread per matrix
constexpr bool BY_VALUES = SIDE <= 3 && (DPM_FUNCTION == LOG || DPM_FUNCTION == ROOT || DPM_FUNCTION == INVERSE_ROOT);

using Block = Team<ALONE ? 12 : SIDE, team_warps<ALONE ? 12 : SIDE>(DPM_FUNCTION, with(WITH_FACTOR))>;

// Rotations of 3 x 3 matrices are quickest in large blocks, two of which fit into a multiprocessor.
constexpr bool LARGE = SIDE == 3 && BY_VALUES;
constexpr int THREADS = !ALONE ? Block::THREADS : LARGE ? 512 : SIDE <= 3 ? 256 : SIDE <= 5 ? 128 : 64;
constexpr int AT_ONCE = ALONE ? THREADS : Block::MATRICES;
constexpr int SHARED = ALONE ? 0 : Block::bytes(DPM_FUNCTION, with(WITH_FACTOR));
constexpr int COPIES = ALONE || with(WITH_CODES) ? 1 : Block::COPIES;

// Threads of a block, matrices it works on at once, bytes of memory it shares, and copies of `words` that are added to.
extern "C" __device__ const int dpm_card_shape[4] = {THREADS, AT_ONCE, SHARED, COPIES};

// The tables of the pass, in memory that a block shares.
struct Tables {
    double poles[2][72], residues[2][72];
};

__device__ __forceinline__ PoleTable taken(const PoleTable* from, double* poles, double* residues) {
    for (int i = threadIdx.x; i < from->count; i += THREADS) poles[i] = from->poles[i], residues[i] = from->residues[i];
    return PoleTable{from->bound, from->count, from->constant, poles, residues};
}

__device__ __forceinline__ Pass known(Pass pass) {
    pass.k = SIDE;
    pass.function = DPM_FUNCTION;
    pass.accurate = 0;
    pass.factor_is_lower = with(WITH_LOWER);
    pass.inspect = with(WITH_INSPECT);
    pass.triangles = with(WITH_TRIANGLES);
    if (!with(WITH_FACTOR)) pass.factor = nullptr;
    if (!with(WITH_CENTER)) pass.center = nullptr;
    if (!with(WITH_MATRICES)) pass.matrices = nullptr;
    if (!with(WITH_COORDINATES)) pass.coordinates = nullptr;
    if (!with(WITH_NORMS)) pass.norms = nullptr;
    if (!with(WITH_WORDS)) pass.words = nullptr;
    if (!with(WITH_CODES)) pass.codes = nullptr;
    if (!with(WITH_POWERS)) pass.powers = nullptr;
    if (!with(WITH_MOVED)) pass.moved = nullptr;
    if (!with(WITH_RADIUS) && DPM_FUNCTION != CHECK) pass.radius = DPM_INFINITY;
    return pass;
}

__device__ __forceinline__ void count_up(const Pass& pass, Counts counts) {
    const long long mine[2] = {counts.marked, counts.clipped};
    for (int which = 0; which < 2; ++which) {
        const int all = __reduce_add_sync(0xffffffffu, (int)mine[which]);
        if (all && (threadIdx.x & 31) == 0) atomicAdd((unsigned long long*)pass.counts + which, (unsigned long long)all);
    }
}

// What is wrong with a matrix, as run_check tells it.
__device__ __forceinline__ Counts check_alone(const Pass& pass, long first, long count, Vec* a) {
    const double* p[1];
    point_at(pass.x, (long)SIDE * SIDE, nullptr, first, count, p);
    Entries entries;
    load_symmetric<SIDE>(p, SIDE, a, entries);
    normalise(a, SIDE);
    Vec trace{};
    DPM_UNROLL for (int i = 0; i < SIDE; ++i) trace += a[at(i, i)];
    DPM_UNROLL for (int i = 0; i < SIDE; ++i) a[at(i, i)] -= DOUBTFUL * trace;
    const Ints found = (cholesky(a, SIDE) & (long long)UNUSABLE) | faults(entries, pass.radius);
    if (count) pass.status[first] = (unsigned char)found.lane;
    return Counts{count && found.lane ? 1 : 0, 0};
}

__device__ __forceinline__ void symmetrize_all(const Pass& pass) {
    const long size = (long)SIDE * SIDE, all = pass.n * size;
    const long start = blockIdx.x * (long)blockDim.x + threadIdx.x, step = (long)gridDim.x * blockDim.x;
    for (long e = start; e < all; e += step) {
        const long i = e / size, row = e % size / SIDE, column = e % SIDE;
        pass.matrices[e] = pass.x[e] * 0.5 + pass.x[i * size + column * SIDE + row] * 0.5;
    }
    for (long i = start; i < pass.n; i += step) pass.status[i] = 0;
}

// One matrix per thread. All threads of a warp go round together: those beyond the last matrix have a count of 0.
__device__ __forceinline__ void run_alone(const Pass& pass) {
    constexpr int SIZE = packed(SIDE), SQUARES = DPM_FUNCTION == EXP ? 6 : with(WITH_FACTOR) ? 2 : 0;
    Totals<SIZE> total;
    if (pass.words) total.clear();
    Counts counts{0, 0};
    const long step = (long)gridDim.x * THREADS;
    for (long first = blockIdx.x * (long)THREADS + threadIdx.x; first - (long)(threadIdx.x & 31) < pass.n; first += step) {
        const long count = first < pass.n ? 1 : 0, place = count ? first : pass.n;
        Vec a[SIZE], s[SIZE], spare[SIZE], diagonals[3 * (SIDE + 1)], reflections[8 * (SIDE + 1)], poles[2 * SIDE * POLES];
        Vec squares[SQUARES * SIDE * SIDE + 1], factor[with(WITH_POWERS) ? SIDE * SIDE : 1];
        Memory m;
        m.a = a, m.s = s, m.spare = spare, m.diagonals = diagonals, m.reflections = reflections, m.poles = poles;
        m.squares = squares, m.factor = factor, m.total = nullptr, m.vectors = 0;
        Counts one;
        if (DPM_FUNCTION == CHECK) {
            one = check_alone(pass, place, count, a);
        } else {
            long long group[1] = {0};
            if (pass.codes) groups_of(pass, place, count, group);
            const Ints found = read<SIDE>(pass, place, count, a);
            const Ints exponent = move<SIDE>(pass, place, count, group, a, m);
            Vec* result = s;
            Ints bad;
            if constexpr (BY_VALUES) {
                Vec block[1][SIZE], values[1][SIDE], vectors[1][SIDE * SIDE];
                DPM_UNROLL for (int i = 0; i < SIZE; ++i) block[0][i] = a[i];
                const Ints unfit = beyond_diagonal<SIDE>(block[0]);
                const double lost = pass.inspect ? DOUBTFUL : LOST;
                if constexpr (SIDE == 2 && DPM_FUNCTION == LOG) {
                    bad = log_of_two(block[0], lost, s) | unfit;
                } else {
                    diagonalise<SIDE>(block, values, vectors);
                    bad = of_eigenvalues<SIDE>(values[0], vectors[0], DPM_FUNCTION, lost, s) | unfit;
                }
                unscale(s, SIDE, DPM_FUNCTION, exponent);
            } else {
                const bool whole = pass.matrices || pass.coordinates || pass.words || pass.center;
                bad = apply<SIDE>(a, pass, exponent, !whole, m, result);
            }
            one = finish<SIDE>(pass, place, count, result, bad, found, group, &total);
        }
        counts.marked += one.marked, counts.clipped += one.clipped;
    }
    if (pass.words && !pass.codes) total.hand_in(pass.words);
    count_up(pass, counts);
}

__device__ __forceinline__ void run_teams(const Pass& pass, double condition) {
    extern __shared__ __align__(16) double shared[];
    const long first = blockIdx.x * (long)AT_ONCE, step = (long)gridDim.x * AT_ONCE;
    count_up(pass, Block::template share<DPM_FUNCTION>(pass, choice_for(pass, condition), first, pass.n, step, shared));
}

extern "C" __global__ void __launch_bounds__(THREADS, LARGE ? 2 : 1) dpm_card_pass(Pass given, double condition) {
    Pass pass = known(given);
    if constexpr (DPM_FUNCTION == SYMMETRIZE) {
        symmetrize_all(pass);
        return;
    }
    PoleTable table{}, wide{};
    if constexpr (!BY_VALUES && (DPM_FUNCTION == LOG || DPM_FUNCTION == ROOT || DPM_FUNCTION == INVERSE_ROOT)) {
        const PoleTable *narrow = table_for(DPM_FUNCTION, condition), *widest = table_for(DPM_FUNCTION, MOST_CONDITION);
        table = *narrow, wide = *widest;
        if constexpr (ALONE) {
            __shared__ Tables memory;  // every thread reads every pole
            table = taken(narrow, memory.poles[0], memory.residues[0]);
            wide = taken(widest, memory.poles[1], memory.residues[1]);
            __syncthreads();
        }
        pass.table = &table;
        pass.wide = narrow == widest ? nullptr : &wide;
    }
    if constexpr (ALONE)
        run_alone(pass);
    else
        run_teams(pass, condition);
}
