/* The readers of the files that tokenizers come in. Each gives a whole tokenizer; which token begins and ends a
 * document is set where the file itself says it. Only for files in this folder.
 */
#ifndef CT_TOKENIZER_READERS_H
#define CT_TOKENIZER_READERS_H

#include "formats/json.h"
#include "tokenizer/pipeline.h"

/* tokenizer.json; text is the file's content and path its name. */
CT_MUST_USE ct_status *ct__read_tokenizer_json(const char *text, size_t length, const char *path,
                                               ct_tokenizer **out_tokenizer);

/* GPT-2's vocab.json with merges.txt beside it. */
CT_MUST_USE ct_status *ct__read_vocab_merges(const char *vocab_path, const char *merges_path,
                                             ct_tokenizer **out_tokenizer);

/* tiktoken's rank file: lines of base64 and rank. */
CT_MUST_USE ct_status *ct__read_tiktoken(const char *text, size_t length, const char *path,
                                         ct_tokenizer **out_tokenizer);

/* SentencePiece's tokenizer.model. */
CT_MUST_USE ct_status *ct__read_sentencepiece(const char *bytes, size_t length, const char *path,
                                              ct_tokenizer **out_tokenizer);

/* Mistral's tekken.json. */
CT_MUST_USE ct_status *ct__read_tekken(const ct_json *json, const char *path, ct_tokenizer **out_tokenizer);

/* Added tokens of the tokenizer_config.json beside path, if there is one that has them. */
CT_MUST_USE ct_status *ct__read_added_decoder(const char *path, ct__pipeline *pipeline);
/* An added token as tokenizer.json and tokenizer_config.json describe it. */
CT_MUST_USE ct_status *ct__read_added_token(ct_json_value value, int64_t id, ct__pipeline *pipeline);

/* Parts of tokenizer.json. */
CT_MUST_USE ct_status *ct__read_decoder(ct_json_value value, ct__pipeline *pipeline);
CT_MUST_USE ct_status *ct__read_post_processor(ct_json_value value, ct__pipeline *pipeline);

#endif
