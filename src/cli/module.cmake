# The command sees every module. A verb is a file of this folder and a row in main.c.
ct_module(cli DEPS plan generate train checkpoint data tokenizer models optim nn kernels predict autodiff graph pjrt plot formats chips base)
target_compile_definitions(ct_cli PRIVATE CT_VERSION="${PROJECT_VERSION}")
add_custom_target(ct_commit BYPRODUCTS ${CMAKE_BINARY_DIR}/commit/ct_commit.h
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${CMAKE_BINARY_DIR}/commit/ct_commit.h
          -P ${CMAKE_SOURCE_DIR}/src/cli/commit.cmake VERBATIM)
add_dependencies(ct_cli ct_commit)
target_include_directories(ct_cli SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/commit)

add_executable(ctitan ${CMAKE_SOURCE_DIR}/src/cli/main.c)
target_link_libraries(ctitan PRIVATE ct_cli)
target_compile_options(ctitan PRIVATE ${CT_WARNINGS})
target_compile_definitions(ctitan PRIVATE CT_VERSION="${PROJECT_VERSION}")
