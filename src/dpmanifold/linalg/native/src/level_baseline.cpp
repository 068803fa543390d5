// Two lanes: SSE2 on x86-64, NEON on ARM, whatever the compiler makes of a vector type elsewhere.
#define DPM_LANES 2
#include "level.hpp"

DPM_DEFINE_LEVEL(dpm_level_baseline, "baseline")
