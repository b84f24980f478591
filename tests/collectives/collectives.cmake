# What the tests of compiled collectives share.
if(CMOCKA_FOUND)
  add_library(collectives_support STATIC ${CMAKE_SOURCE_DIR}/tests/collectives/rules.c
              ${CMAKE_SOURCE_DIR}/tests/collectives/recipe.c)
  target_include_directories(collectives_support PUBLIC ${CMAKE_SOURCE_DIR}/tests/collectives)
  target_compile_options(collectives_support PRIVATE ${CT_WARNINGS})
  target_link_libraries(collectives_support PUBLIC ct_train PkgConfig::CMOCKA)
  file(GLOB collectives_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/collectives/*_test.c)
  foreach(source ${collectives_sources})
    get_filename_component(stem ${source} NAME_WE)
    target_link_libraries(collectives_${stem} PRIVATE collectives_support)
  endforeach()
endif()
