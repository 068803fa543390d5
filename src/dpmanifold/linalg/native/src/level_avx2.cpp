// Four lanes; compiled with -mavx2 -mfma.
#define DPM_LANES 4
#include "level.hpp"

DPM_DEFINE_LEVEL(dpm_level_avx2, "avx2")
