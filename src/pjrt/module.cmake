# pjrt_c_api.h comes with the plugin's wheel; the include folder is private, so that no other module can see it.
find_path(CT_PJRT_INCLUDE_DIR pjrt_c_api.h HINTS ${CT_DEPS_DIR}/pjrt/include NO_DEFAULT_PATH REQUIRED)
find_program(CT_PROTOC_C protoc-c REQUIRED)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
find_path(CT_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

# XLA's messages, as far as they are used, generated as a target of its own, without our warnings.
set(CT_XLA_PROTO ${CMAKE_SOURCE_DIR}/src/pjrt/xla.proto)
set(CT_XLA_PROTO_DIR ${CMAKE_BINARY_DIR}/xla_proto)
add_custom_command(
  OUTPUT ${CT_XLA_PROTO_DIR}/xla.pb-c.c ${CT_XLA_PROTO_DIR}/xla.pb-c.h
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CT_XLA_PROTO_DIR}
  COMMAND ${CT_PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/src/pjrt --c_out=${CT_XLA_PROTO_DIR} ${CT_XLA_PROTO}
  DEPENDS ${CT_XLA_PROTO} VERBATIM)
add_library(ct_xla_proto STATIC ${CT_XLA_PROTO_DIR}/xla.pb-c.c)
target_include_directories(ct_xla_proto SYSTEM PUBLIC ${CT_XLA_PROTO_DIR})
target_link_libraries(ct_xla_proto PUBLIC PkgConfig::PROTOBUF_C)

ct_module(pjrt DEPS base formats)
target_include_directories(ct_pjrt SYSTEM PRIVATE ${CT_PJRT_INCLUDE_DIR} ${CT_XXHASH_INCLUDE_DIR})
target_link_libraries(ct_pjrt PRIVATE ct_xla_proto ${CMAKE_DL_LIBS})
target_compile_definitions(ct_pjrt PRIVATE CT_PJRT_DEFAULT_FOLDER="${CT_DEPS_DIR}/pjrt")

# The plugin that misbehaves on request, for the tests.
if(TARGET pjrt_fake_plugin_test)
  add_library(ct_fake_plugin MODULE ${CMAKE_SOURCE_DIR}/tests/fake_plugin/fake_plugin.c
              ${CMAKE_SOURCE_DIR}/tests/fake_plugin/fake_profiler.c)
  target_include_directories(ct_fake_plugin SYSTEM PRIVATE ${CT_PJRT_INCLUDE_DIR})
  target_include_directories(ct_fake_plugin PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_compile_options(ct_fake_plugin PRIVATE ${CT_WARNINGS})
  target_include_directories(pjrt_fake_plugin_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/fake_plugin)
  target_compile_definitions(pjrt_fake_plugin_test PRIVATE CT_FAKE_PLUGIN="$<TARGET_FILE:ct_fake_plugin>")
  add_dependencies(pjrt_fake_plugin_test ct_fake_plugin)
endif()
