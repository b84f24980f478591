/* Datasets: an endless, numbered sequence of samples of seq_len tokens with their labels, cut into batches.
 *
 *   sample   0    1    2   ...  W-1 | W   W+1 ...      W = samples per epoch; sample W begins epoch 1
 *   batch   [0 .. B-1] [B .. 2B-1] ...                 batches run on over the end of an epoch
 *
 * Sample number -> contents is a pure function of options and files, so a position is one number, resuming costs
 * nothing and any thread can make any batch. With shuffle, the samples of each epoch are visited in an order drawn from
 * the seed and the epoch's number.
 *
 * "text": a file, a folder (all files in it and below, but those whose name begins with a dot) or a glob pattern. Each
 *   file is a document: bos, its tokens, eos. The documents, in order of their paths, are one stream; windows of
 * seq_len + 1 tokens are cut from it every seq_len tokens (the last token of a window is the first of the next), so
 * each token is a label once. Without shuffle the stream runs on from its end to its start; with shuffle the fewer than
 * seq_len tokens that are left at the end of the stream are not visited. As TorchTitan's text loader, documents run
 * together: attention is not cut at their borders, positions are 0..seq_len-1 and segment ids 0. "tokens": a
 * safetensors file with tensor `tokens` of i32, [N, seq_len + 1], or [steps, batch, seq_len + 1] read as N = steps *
 * batch rows; a row is a sample. An optional tensor `labels` of i32, the same but for its last dim of seq_len, replaces
 * the shifted tokens; -100 there marks a position that the loss leaves out.
 */
#ifndef CT_DATA_DATASET_H
#define CT_DATA_DATASET_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"
#include "formats/json.h"
#include "tokenizer/tokenizer.h"

enum { CT_IGNORED_LABEL = -100 };

typedef struct ct_dataset_opts {
    const char *dataset; /* "text" or "tokens" */
    const char *path;
    int64_t seq_len;
    int64_t batch_size; /* samples per batch */
    int64_t vocab_size; /* of the model: ids must be below it */
    bool shuffle;
    uint64_t seed;
    const ct_tokenizer *tokenizer; /* of "text"; used by _open only */
} ct_dataset_opts;

/* One batch; arrays of s32 [batch seq], owned by the batch. */
typedef struct ct_batch {
    ct_array inputs, labels, positions, segment_ids;
    int64_t num_valid_labels; /* those that are not CT_IGNORED_LABEL */
    int64_t first_sample;
    int64_t epoch; /* of the first sample */
} ct_batch;

typedef struct ct_dataset ct_dataset;

/* Errors: NOT_FOUND, INVALID_ARGUMENT naming path, what was required and what was found: no file, a text shorter than
 * seq_len + 1 tokens, ids beyond the vocabulary (text only; of "tokens" they are found when read), a missing tensor,
 * its shape or dtype. */
CT_MUST_USE ct_status *ct_dataset_open(const ct_dataset_opts *opts, ct_dataset **out_dataset);
void ct_dataset_close(ct_dataset *dataset); /* NULL is allowed */

void ct_batch_init(ct_batch *batch, const ct_dataset *dataset); /* makes the arrays */
void ct_batch_deinit(ct_batch *batch);

/* The batch of samples [first_sample, first_sample + batch_size). Thread-safe.
 * Errors: OUT_OF_RANGE naming file, position and value of an id outside [0, vocab_size). */
CT_MUST_USE ct_status *ct_dataset_batch_at(const ct_dataset *dataset, int64_t first_sample, ct_batch *batch);

/* The batch at the position, which then moves on. One thread at a time; ct_loader does the same in the background. */
CT_MUST_USE ct_status *ct_dataset_next(ct_dataset *dataset, ct_batch *batch);
int64_t ct_dataset_position(const ct_dataset *dataset); /* the next sample's number */
void ct_dataset_seek(ct_dataset *dataset, int64_t sample);

int64_t ct_dataset_num_samples(const ct_dataset *dataset); /* per epoch */
int64_t ct_dataset_num_tokens(const ct_dataset *dataset);  /* per epoch: of the stream, or N * (seq_len + 1) */

/* Writes a position (of the dataset or of its loader) as an object, with what it depends on; reads it back. With
 * everything as it was the same batches follow.
 * Errors: FAILED_PRECONDITION naming what differs (kind, seq_len, number of tokens, shuffle, seed): then the position
 * would mean another place. */
void ct_dataset_position_write(const ct_dataset *dataset, int64_t sample, ct_json_writer *writer, const char *key);
CT_MUST_USE ct_status *ct_dataset_position_read(const ct_dataset *dataset, ct_json_value value, int64_t *out_sample);

/* -sum p ln p over the frequencies of the tokens, in nats per token: the loss of a model that knows nothing but how
 * frequent each token is. Errors: as of _batch_at. */
CT_MUST_USE ct_status *ct_dataset_unigram_entropy(const ct_dataset *dataset, double *out_nats);

#endif
