# Tests of ctitan plan run the command, as the integration tests do.
if(TARGET integration_support)
  foreach(stem plan_cpu_test plan_tpu_test)
    target_link_libraries(${stem} PRIVATE integration_support)
    add_dependencies(${stem} ctitan)
  endforeach()
endif()
