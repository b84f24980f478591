pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

# SentencePiece's messages, generated as a target of its own, without our warnings (pjrt found protoc-c).
set(CT_SP_PROTO ${CMAKE_SOURCE_DIR}/src/tokenizer/sentencepiece.proto)
set(CT_SP_PROTO_DIR ${CMAKE_BINARY_DIR}/sentencepiece_proto)
add_custom_command(
  OUTPUT ${CT_SP_PROTO_DIR}/sentencepiece.pb-c.c ${CT_SP_PROTO_DIR}/sentencepiece.pb-c.h
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CT_SP_PROTO_DIR}
  COMMAND ${CT_PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/src/tokenizer --c_out=${CT_SP_PROTO_DIR} ${CT_SP_PROTO}
  DEPENDS ${CT_SP_PROTO} VERBATIM)
add_library(ct_sentencepiece_proto STATIC ${CT_SP_PROTO_DIR}/sentencepiece.pb-c.c)
target_include_directories(ct_sentencepiece_proto SYSTEM PUBLIC ${CT_SP_PROTO_DIR})
target_link_libraries(ct_sentencepiece_proto PUBLIC PkgConfig::PROTOBUF_C)

ct_module(tokenizer DEPS formats base LIBRARIES PkgConfig::PCRE2 PkgConfig::UTF8PROC)
target_link_libraries(ct_tokenizer PRIVATE ct_sentencepiece_proto)
