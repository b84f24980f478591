# yyjson is fetched at set-up and built as its own target, without our warnings; only json.c sees it.
find_path(CT_YYJSON_DIR yyjson.c HINTS ${CT_DEPS_DIR}/yyjson NO_DEFAULT_PATH REQUIRED)
add_library(yyjson STATIC ${CT_YYJSON_DIR}/yyjson.c)
target_include_directories(yyjson SYSTEM PUBLIC ${CT_YYJSON_DIR})

# toml++ is used header-only, so that the command does not depend on its shared library.
pkg_check_modules(TOMLPLUSPLUS REQUIRED tomlplusplus)

pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)

ct_module(formats DEPS base LIBRARIES PkgConfig::ZLIB PkgConfig::ZSTD)
target_link_libraries(ct_formats PRIVATE yyjson)
target_include_directories(ct_formats SYSTEM PRIVATE ${TOMLPLUSPLUS_INCLUDE_DIRS})
# The C++ file throws nothing and asks no types at run time.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/formats/toml.cc PROPERTIES COMPILE_OPTIONS "-fno-exceptions;-fno-rtti")
