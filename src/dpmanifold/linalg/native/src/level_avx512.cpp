// Eight lanes; compiled with -mavx512f -mavx512dq -mavx512vl -mfma.
#define DPM_LANES 8
#include "level.hpp"

DPM_DEFINE_LEVEL(dpm_level_avx512, "avx512")
