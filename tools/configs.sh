# Sourced by tools/build and tools/test: the build configurations by name. Sets folder and cmake_options.
use_config() {
    local gcc="-DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++"
    local clang="-DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14"
    case $1 in
        default) folder=build cmake_options="$gcc" ;;
        clang) folder=build-clang cmake_options="$clang" ;;
        # Undefined behaviour is looked for as well: one build and one run for both.
        asan) folder=build-asan cmake_options="$gcc -DCT_SANITIZE=address,undefined" ;;
        ubsan) folder=build-ubsan cmake_options="$gcc -DCT_SANITIZE=undefined" ;;
        fuzz) folder=build-fuzz cmake_options="$clang -DCT_FUZZ=ON" ;;
        *) echo "unknown configuration $1: default, clang, asan, ubsan or fuzz" >&2; return 2 ;;
    esac
}
