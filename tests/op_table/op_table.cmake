# The table of ops is one program of several files, run through the CPU plugin.
if(TARGET ct_pjrt AND TARGET ct_spmd AND CMOCKA_FOUND)
  file(GLOB op_table_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/op_table/cases_*.c)
  add_library(op_table_cases STATIC ${op_table_sources} ${CMAKE_SOURCE_DIR}/tests/op_table/build.c
              ${CMAKE_SOURCE_DIR}/tests/op_table/device.c ${CMAKE_SOURCE_DIR}/tests/op_table/shard.c
              ${CMAKE_SOURCE_DIR}/tests/op_table/random_programs.c)
  target_include_directories(op_table_cases PUBLIC ${CMAKE_SOURCE_DIR}/tests/op_table)
  target_compile_options(op_table_cases PRIVATE ${CT_WARNINGS})
  target_compile_definitions(op_table_cases PRIVATE CT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(op_table_cases PUBLIC ct_spmd ct_autodiff ct_graph ct_pjrt PkgConfig::CMOCKA)
  ct_test(op_table ${CMAKE_SOURCE_DIR}/tests/op_table/runner.c op_table_cases)
  # the mode SHARD compiles most: it is a test of its own, for the slow ones
  add_test(NAME op_table_shard COMMAND op_table --shard WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(op_table_shard PROPERTIES LABELS slow)
endif()
