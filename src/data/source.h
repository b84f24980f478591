/* Sources as the dataset sees them, and what is theirs in a state. Only for files in this folder. */
#ifndef CT_DATA_SOURCE_H
#define CT_DATA_SOURCE_H

#include "data/dataset.h"
#include "data/files.h"
#include "data/workers.h"

/* A document in hand, by where it came from. */
typedef struct ct__held {
    int64_t slot; /* -1: in the shuffle buffer; else the number of the sample under way that it is packed into */
    int64_t file, offset;
    int64_t from; /* of its tokens, those before are in samples already */
} ct__held;

enum { CT__IN_SHUFFLE_BUFFER = -1 };

/* Where a source stands. Windows and rows have their number in num_samples alone. */
typedef struct ct__source_state {
    int64_t num_samples;          /* handed out */
    int64_t epoch, place, offset; /* of the next record: which file of the epoch's order, where in it */
    int64_t num_draws;            /* from the shuffle buffer */
    int64_t num_documents;        /* of this epoch */
    int64_t last_token;           /* of the document before, where documents run together; -1: none */
    int64_t num_broken, num_too_long;
    bool draining; /* the epoch's records are all read; the shuffle buffer empties before the next epoch's are */
    bool ended;
    ct__held *held;
    size_t num_held, held_capacity;
} ct__source_state;

void ct__source_state_hold(ct__source_state *state, ct__held held);

/* One sample on its way into a batch: seq_len of each. */
typedef struct ct__row {
    int32_t *inputs, *labels, *positions, *segment_ids;
} ct__row;

/* A number that must be the same when a state is used again. */
typedef struct ct__identity {
    const char *name;
    int64_t value;
} ct__identity;

typedef struct ct__source ct__source;
typedef struct ct__source_class {
    /* Fills the row, or says that the source has ended. */
    ct_status *(*next)(ct__source *source, ct__row *row, bool *out_ended);
    void (*save)(const ct__source *source, ct__source_state *out_state); /* which is zero */
    ct_status *(*restore)(ct__source *source, const ct__source_state *state);
    void (*describe)(const ct__source *source, ct_str *out);
    void (*free)(ct__source *source);
} ct__source_class;

struct ct__source {
    const ct__source_class *class;
    const ct_dataset_opts *opts; /* the dataset's */
    ct_data_kind kind;
    ct__files files;
    char *name; /* of its random streams: "" for the first */
    char *path; /* as it was given, for messages */
    double weight;
    int64_t num_samples, num_tokens; /* per epoch; -1: unknown */
    int64_t num_taken;               /* samples handed out */
    bool ended;
    ct__identity identity[3];
    size_t num_identity;
};

/* Make the rest of a source whose opts, kind, files, name and path are set. */
CT_MUST_USE ct_status *ct__windows_new(const ct__source *base, ct__source **out_source);
CT_MUST_USE ct_status *ct__stream_new(const ct__source *base, ct__workers *workers, ct__source **out_source);

double ct__windows_unigram_entropy(const ct__source *source); /* of text */

#endif
