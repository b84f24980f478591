# Tests of more than one module: tests/<folder>/X_test.c is a test program <folder>_X_test that links every module;
# tests/<folder>/X_test.sh is a script that prints as cmocka does. Those of the folders named slow run last, one by one.
set(CT_SLOW_TESTS golden integration)

set(modules)
foreach(module base formats pjrt graph autodiff kernels nn optim models tokenizer data checkpoint train)
  if(TARGET ct_${module})
    list(PREPEND modules ct_${module})
  endif()
endforeach()

file(GLOB test_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/*_test.c ${CMAKE_SOURCE_DIR}/tests/*/*_test.sh)
foreach(source ${test_sources})
  get_filename_component(stem ${source} NAME_WE)
  get_filename_component(folder ${source} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  if(source MATCHES "\\.sh$")
    add_test(NAME ${folder}_${stem} COMMAND bash ${source} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  elseif(CMOCKA_FOUND)
    ct_test(${folder}_${stem} ${source} ${modules})
  else()
    continue()
  endif()
  if(folder IN_LIST CT_SLOW_TESTS)
    set_tests_properties(${folder}_${stem} PROPERTIES LABELS slow)
  endif()
endforeach()

include(${CMAKE_SOURCE_DIR}/tests/op_table/op_table.cmake)
