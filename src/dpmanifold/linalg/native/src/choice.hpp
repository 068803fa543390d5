// Which table of poles a pass takes.
#pragma once

#include "interface.hpp"

#if defined(__CUDACC__)
#define DPM_TABLE static __device__ const
#define DPM_CHOOSE static __device__ __forceinline__
#else
#define DPM_TABLE static const
#define DPM_CHOOSE static inline
#endif
#include "poles.inc"

namespace {

// More than any table covers: the largest one is taken.
constexpr double MOST_CONDITION = 1e30;

template <int COUNT>
DPM_CHOOSE const PoleTable* pick(const PoleTable (&tables)[COUNT], double bound) {
    for (const PoleTable& table : tables)
        if (table.bound >= bound) return &table;
    return &tables[COUNT - 1];
}

// The norm that T is scaled by is at most 2 sqrt(3) times its largest eigenvalue; twice that for even exponents.
DPM_CHOOSE const PoleTable* table_for(int function, double condition) {
    if (function == LOG) return pick(log_tables, 4 * condition);
    return function == ROOT ? pick(root_tables, 8 * condition) : pick(inverse_root_tables, 8 * condition);
}

}  // namespace
