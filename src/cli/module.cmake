# The command sees every module. A verb is a file of this folder and a row in main.c.
ct_module(cli DEPS plan train checkpoint data tokenizer models optim nn kernels predict autodiff graph pjrt plot formats chips base)
target_compile_definitions(ct_cli PRIVATE CT_VERSION="${PROJECT_VERSION}")

add_executable(ctitan ${CMAKE_SOURCE_DIR}/src/cli/main.c)
target_link_libraries(ctitan PRIVATE ct_cli)
target_compile_options(ctitan PRIVATE ${CT_WARNINGS})
target_compile_definitions(ctitan PRIVATE CT_VERSION="${PROJECT_VERSION}")
