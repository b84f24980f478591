/* Text to text: prompts are encoded, or put into the tokenizer's chat template, and what the model goes on with is
 * handed out as it comes, in whole characters. */
#ifndef CT_GENERATE_TEXT_H
#define CT_GENERATE_TEXT_H

#include "generate/generate.h"

typedef struct ct_generate_text_opts {
    const char *model_folder;
    const char *tokenizer; /* a folder or file, or "bytes"; NULL: the model's folder */
    ct_dtype dtype;
    const char *const *prompts;
    size_t num_prompts;
    bool chat;          /* each prompt is a user's message, to be answered */
    const char *system; /* with chat: a message before it; NULL: none */
    int64_t max_tokens; /* new ones per prompt */
    ct_sampling sampling;
    const char *const *stops; /* texts that end a row, which are not part of it */
    size_t num_stops;
    ct_session_opts session;
    /* Text of a row as it comes, in order within the row; is_last with the last of it, which may be empty. */
    ct_status *(*on_text)(void *context, size_t row, const char *text, size_t length, bool is_last);
    /* Each new token, before its text; NULL: not wanted. */
    ct_status *(*on_id)(void *context, size_t row, int32_t id);
    void *context;
} ct_generate_text_opts;

/* A row ends with max_tokens, a stop text, the tokenizer's end of document, or one of the eos_token_id of the folder's
 * generation_config.json (without one: of its config.json). Errors: those of reading the folder, of the template, of
 * ct_generate and of the callbacks. */
CT_MUST_USE ct_status *ct_generate_text(const ct_generate_text_opts *opts);

#endif
