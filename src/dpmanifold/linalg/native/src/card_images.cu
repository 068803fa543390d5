// Covariance descriptors on a graphics card, compiled for one number of channels and one type of pixels.
#define DPM_LANES 1
#include "image_team.hpp"

using Block = ImageTeam<DPM_CHANNELS, DPM_KIND>;

// Threads of a block and images it works on at once; the shared memory depends on the images' size.
extern "C" __device__ const int dpm_card_shape[3] = {Block::THREADS, 1, 0};

// Blocks of a processor whose threads' products all find place in its registers.
constexpr int RESIDENT = (DPM_CHANNELS == 1 ? 384 : 256) / Block::THREADS;

extern "C" __global__ void __launch_bounds__(Block::THREADS, RESIDENT) dpm_card_describe(Images images) {
    extern __shared__ double gray[];
    __shared__ Block::Own own;
    Block::share(images, blockIdx.x, images.n, gridDim.x, Block::Memory{gray, &own});
}
