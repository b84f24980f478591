# The command sees every module that is there. A verb is a file of this folder and a row in main.c.
set(cli_modules)
foreach(module base formats pjrt graph autodiff kernels nn optim models tokenizer data checkpoint train)
  if(TARGET ct_${module})
    list(PREPEND cli_modules ${module})
  endif()
endforeach()
ct_module(cli DEPS ${cli_modules})
target_compile_definitions(ct_cli PRIVATE CT_VERSION="${PROJECT_VERSION}")

add_executable(ctitan ${CMAKE_SOURCE_DIR}/src/cli/main.c)
target_link_libraries(ctitan PRIVATE ct_cli)
target_compile_options(ctitan PRIVATE ${CT_WARNINGS})
target_compile_definitions(ctitan PRIVATE CT_VERSION="${PROJECT_VERSION}")
