/* What ends a row: ids of the model's folder, texts of the user's. */
#ifndef CT_GENERATE_STOPS_H
#define CT_GENERATE_STOPS_H

#include "tokenizer/tokenizer.h"

typedef struct ct_stop_ids {
    int32_t *ids; /* heap, the caller's to free() */
    size_t num_ids;
} ct_stop_ids;

/* eos_token_id (a number, an array, or null) of folder's generation_config.json, without one of its config.json; and
 * the tokenizer's end of document. Errors: those of reading; INVALID_ARGUMENT for anything else there. */
CT_MUST_USE ct_status *ct_stop_ids_read(const char *folder, const ct_tokenizer *tokenizer, ct_stop_ids *out_stop_ids);
bool ct_stop_ids_has(const ct_stop_ids *stop_ids, int32_t id);

/* Is one of stops (none of them empty) in text? out_length: where the first begins; when there is none, what of text
 * can be no part of one that more text completes. */
bool ct_stop_find(const ct_str *text, const char *const *stops, size_t num_stops, size_t *out_length);

#endif
