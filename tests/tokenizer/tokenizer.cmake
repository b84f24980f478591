# Ids against those of other libraries: a program that encodes files, and the script that compares.
add_executable(encode_files ${CMAKE_SOURCE_DIR}/tests/tokenizer/encode_files.c)
target_link_libraries(encode_files PRIVATE ct_tokenizer)
target_compile_options(encode_files PRIVATE ${CT_WARNINGS})
add_dependencies(encode_files ctitan) # the script runs it, too
set_tests_properties(tokenizer_equality_test PROPERTIES ENVIRONMENT CT_DEPS_DIR=${CT_DEPS_DIR})
# all cases over all texts, megabyte runs included
add_test(NAME tokenizer_equality_all COMMAND bash ${CMAKE_SOURCE_DIR}/tests/tokenizer/equality_test.sh --all
         WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
set_tests_properties(tokenizer_equality_all PROPERTIES LABELS slow ENVIRONMENT CT_DEPS_DIR=${CT_DEPS_DIR})

# Chat templates against Jinja, in the same way.
add_executable(render_templates ${CMAKE_SOURCE_DIR}/tests/tokenizer/render_templates.c)
target_link_libraries(render_templates PRIVATE ct_tokenizer)
target_compile_options(render_templates PRIVATE ${CT_WARNINGS})
set_tests_properties(tokenizer_templates_test PROPERTIES ENVIRONMENT CT_DEPS_DIR=${CT_DEPS_DIR})
