# What the integration tests share, and the command that they run.
if(TARGET ctitan AND CMOCKA_FOUND)
  add_library(integration_support STATIC ${CMAKE_SOURCE_DIR}/tests/integration/support.c
              ${CMAKE_SOURCE_DIR}/tests/integration/reference.c)
  target_include_directories(integration_support PUBLIC ${CMAKE_SOURCE_DIR}/tests/integration)
  target_compile_options(integration_support PRIVATE ${CT_WARNINGS})
  target_compile_definitions(integration_support PRIVATE CT_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             CT_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_link_libraries(integration_support PUBLIC ct_checkpoint ct_formats ct_base PkgConfig::CMOCKA)
  file(GLOB integration_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/integration/*_test.c)
  foreach(source ${integration_sources})
    get_filename_component(stem ${source} NAME_WE)
    target_link_libraries(integration_${stem} PRIVATE integration_support)
    add_dependencies(integration_${stem} ctitan)
  endforeach()
endif()
