/* From a record to a document: its tokens, and which of them the loss counts. Only for files in this folder. */
#ifndef CT_DATA_DOCUMENT_H
#define CT_DATA_DOCUMENT_H

#include "data/record.h"

typedef struct ct__document {
    int32_t *tokens; /* heap; NULL: an empty text, which is no document */
    bool *in_loss;   /* per token, heap; NULL: all */
    int64_t num_tokens;
    int64_t file, offset; /* where it came from */
} ct__document;

void ct__document_free(ct__document *document);

/* What dataset options make of columns: which are looked at. Errors: INVALID_ARGUMENT for those that do not go
 * together. */
CT_MUST_USE ct_status *ct__columns_of(const ct_dataset_opts *opts, ct_data_kind kind, ct__columns *out_columns);
bool ct__columns_are_masked(const ct__columns *columns); /* prompts or messages: the loss is on a part */

/* Errors: INVALID_ARGUMENT: the record is broken; OUT_OF_RANGE: an id beyond opts->vocab_size, which no record is to
 * blame for. where names it in messages. */
CT_MUST_USE ct_status *ct__document_make(const ct_dataset_opts *opts, const ct__columns *columns,
                                         const ct__record *record, const char *where, ct__document *out_document);

/* Errors: OUT_OF_RANGE naming where, and the first id that the model's vocabulary has not. */
CT_MUST_USE ct_status *ct__ids_check(const ct_dataset_opts *opts, const int32_t *ids, size_t count, const char *where);

/* Bytes [begin, end) of a text. */
typedef struct ct__span {
    size_t begin, end;
} ct__span;

/* Makes a document of a text. spans: what the loss counts, in order, with the token that ends a turn or the text behind
 * each; NULL: all. */
CT_MUST_USE ct_status *ct__document_encode(const ct_dataset_opts *opts, const char *text, size_t length,
                                           const ct__span *spans, size_t num_spans, bool with_borders,
                                           ct__document *out_document);

/* Makes a document of a conversation: a JSON array of messages. */
CT_MUST_USE ct_status *ct__chat_encode(const ct_dataset_opts *opts, ct_json_value messages, ct__document *out_document);

#endif
