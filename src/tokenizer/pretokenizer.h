/* Pre-tokenizers: what cuts text into the pieces that a model then encodes one by one. Only for files in this folder.
 *
 * Stages follow each other; every piece of one is text to the next. Metaspace and ByteLevel's add_prefix_space also
 * change the text.
 */
#ifndef CT_TOKENIZER_PRETOKENIZER_H
#define CT_TOKENIZER_PRETOKENIZER_H

#include "formats/json.h"
#include "tokenizer/pattern.h"
#include "tokenizer/text.h"

typedef enum ct__stage_kind {
    CT__STAGE_SPLIT, /* by a pattern, or needle when there is none */
    CT__STAGE_DIGITS,
    CT__STAGE_PUNCTUATION,
    CT__STAGE_WHITESPACE, /* cuts at spaces and drops them */
    CT__STAGE_METASPACE,
    CT__STAGE_PREFIX, /* a space in front, unless there is one */
} ct__stage_kind;

/* What becomes of matches. */
typedef enum ct__behavior {
    CT__BEHAVIOR_REMOVED,
    CT__BEHAVIOR_ISOLATED,
    CT__BEHAVIOR_MERGED_WITH_PREVIOUS,
    CT__BEHAVIOR_MERGED_WITH_NEXT,
    CT__BEHAVIOR_CONTIGUOUS, /* neighbouring matches are one piece */
} ct__behavior;

typedef enum ct__prepend { CT__PREPEND_ALWAYS, CT__PREPEND_FIRST, CT__PREPEND_NEVER } ct__prepend;

typedef struct ct__stage {
    ct__stage_kind kind;
    ct__pattern *pattern;
    char *needle; /* of SPLIT; of METASPACE what takes the place of a space */
    ct__behavior behavior;
    bool invert; /* what is between matches is a match */
    bool split;  /* METASPACE: cut before each */
    ct__prepend prepend;
} ct__stage;

enum { CT__MAX_STAGES = 16 };

typedef struct ct__pretokenizer {
    ct__stage stages[CT__MAX_STAGES];
    size_t num_stages;
    bool byte_level; /* symbols are bytes */
} ct__pretokenizer;

/* Adds what a tokenizer.json's "pre_tokenizer" says. Errors: UNIMPLEMENTED names a type. */
CT_MUST_USE ct_status *ct__pretokenizer_add_json(ct__pretokenizer *pretokenizer, ct_json_value value);
CT_MUST_USE ct_status *ct__pretokenizer_add_pattern(ct__pretokenizer *pretokenizer, const char *regex,
                                                    ct__dialect dialect);
void ct__pretokenizer_deinit(ct__pretokenizer *pretokenizer);

/* Working memory of one thread: an edited text per stage. */
typedef struct ct__stage_scratch {
    ct__edit edits[CT__MAX_STAGES];
} ct__stage_scratch;
void ct__stage_scratch_init(ct__stage_scratch *scratch);
void ct__stage_scratch_deinit(ct__stage_scratch *scratch);

typedef struct ct__piece_sink {
    ct_status *(*take)(void *context, const ct__text *piece);
    void *context;
} ct__piece_sink;

/* Gives every piece of text to the sink, in order. */
CT_MUST_USE ct_status *ct__pretokenize(const ct__pretokenizer *pretokenizer, ct__stage_scratch *scratch,
                                       ct__matcher *matcher, const ct__text *text, bool track, ct__piece_sink sink);

#endif
