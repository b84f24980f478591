ct_module(train DEPS data checkpoint tokenizer optim models nn kernels predict spmd autodiff graph pjrt formats chips base)

# Whose profiler sees something without a device.
if(TARGET train_profile_test AND TARGET ct_fake_plugin)
  target_include_directories(train_profile_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/fake_plugin)
  target_compile_definitions(train_profile_test PRIVATE CT_FAKE_PLUGIN="$<TARGET_FILE:ct_fake_plugin>")
  add_dependencies(train_profile_test ct_fake_plugin)
endif()
