#!/bin/sh
# Kernels under the address and undefined-behaviour sanitizers, then under valgrind (which knows no AVX-512).
set -e
here=$(dirname "$0")
native="$here/../../src/dpmanifold/linalg/native"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
compiler=${CXX:-c++}
flags="-std=c++17 -g -fno-math-errno -fno-trapping-math -ffp-contract=fast -pthread"

compile() { # directory, extra flags
    mkdir -p "$place/$1"
    levels=""
    if [ "$(uname -m)" = x86_64 ]; then levels=-DDPM_X86_LEVELS; fi
    $compiler $flags $2 $levels -DDPM_CARD_LEVELS -c "$native/src/dispatch.cpp" -o "$place/$1/dispatch.o"
    for level in lane team; do # a card's mathematics, on the processor
        $compiler $flags $2 -c "$native/src/level_$level.cpp" -o "$place/$1/$level.o"
    done
    $compiler $flags $2 -c "$native/src/level_baseline.cpp" -o "$place/$1/baseline.o"
    if [ -n "$levels" ]; then
        $compiler $flags $2 -mavx2 -mfma -c "$native/src/level_avx2.cpp" -o "$place/$1/avx2.o"
        $compiler $flags $2 -mavx512f -mavx512dq -mavx512vl -mfma -c "$native/src/level_avx512.cpp" -o "$place/$1/avx512.o"
    fi
    $compiler $flags $2 -c "$here/exercise.cpp" -o "$place/$1/exercise.o"
    $compiler $flags $2 "$place/$1"/*.o -o "$place/$1/exercise"
}

echo "address and undefined-behaviour sanitizers:"
compile sanitized "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all"
"$place/sanitized/exercise"
if command -v valgrind > /dev/null; then
    echo "valgrind:"
    compile plain "-O2"
    valgrind --quiet --error-exitcode=9 --leak-check=full "$place/plain/exercise"
fi
