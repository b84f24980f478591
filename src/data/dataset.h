/* Datasets: files of several kinds as an endless row of samples of seq_len tokens with their labels, cut into batches.
 *
 *   source "web"  0.7   files > records > documents > shuffle buffer > packing > samples \
 *   source "code" 0.3   files > rows or windows, shuffled as a whole       > samples      +-> mixture -> batches
 *
 * A source is a list of files of one kind; a mixture takes samples from its sources in proportion to their weights, the
 * one that is furthest behind its share each time, so the shares hold at any moment and are shares of the tokens.
 *
 *   kind        files                                      a sample is
 *   text        any text; a file is a document             a window of all documents behind one another, in memory
 *   tokens      safetensors with I32 `tokens` [N, seq + 1] a row; of one long sequence a window of it
 *               or [steps, batch, seq + 1], or one long
 *               sequence [N] of I32, U32 or U16
 *   json        JSON lines, or one array                   packed from documents, a line each
 *   parquet     Parquet                                    packed from documents, a row each
 *   webdataset  tar; members that share a name up to its   packed from documents
 *               first dot are a sample
 *
 * JSON lines, tar and text may be compressed with gzip or Zstandard. docs/data.md says what columns make a document,
 * how packing goes and what -100 marks.
 *
 * What comes when depends on options and files alone, not on threads or time. A ct_data_state is a place in it, small
 * enough for a checkpoint: documents in hand are named by file and offset, and read again on resuming. The state is
 * that of the whole run, so it does not matter how many devices share a batch, nor how large the batch is.
 */
#ifndef CT_DATA_DATASET_H
#define CT_DATA_DATASET_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"
#include "base/str.h"
#include "formats/json.h"
#include "tokenizer/tokenizer.h"

enum { CT_IGNORED_LABEL = -100 };

typedef enum ct_data_kind {
    CT_DATA_AUTO, /* by the files' suffixes; what has none that is known is text */
    CT_DATA_TEXT,
    CT_DATA_TOKENS,
    CT_DATA_JSON,
    CT_DATA_PARQUET,
    CT_DATA_WEBDATASET,
} ct_data_kind;

/* How documents become samples. */
typedef enum ct_data_packing {
    CT_PACKING_AUTO,      /* concat_then_split for text, first_fit for prompts and messages */
    CT_PACKING_CONCAT,    /* behind one another, cut every seq_len tokens */
    CT_PACKING_FIRST_FIT, /* whole, several in a sample; those longer than seq_len are dropped */
    CT_PACKING_NONE,      /* whole, each in a sample of its own */
} ct_data_packing;

/* Makes the text of a conversation, a JSON array of messages, as a chat template does. Called by several threads. */
typedef struct ct_chat_renderer {
    ct_status *(*render)(void *context, ct_json_value messages, ct_str *out_text); /* appends */
    void *context;
} ct_chat_renderer;

typedef struct ct_dataset_opts {
    const char *const *paths; /* files, folders, glob patterns */
    size_t num_paths;
    const double *weights; /* one per path, each of which is a source then; NULL: all paths are one source */
    ct_data_kind kind;
    int64_t seq_len;
    int64_t batch_size; /* samples per batch */
    int64_t vocab_size; /* of the model: ids must be below it */
    const ct_tokenizer *tokenizer;
    const ct_chat_renderer *chat; /* for messages */
    bool once;                    /* to the end of the data, in place of again and again */
    bool shuffle;
    int64_t shuffle_buffer; /* documents; 0: 1000 */
    uint64_t seed;
    bool document_mask; /* each document of a sample has a segment id and positions of its own */
    ct_data_packing packing;
    int64_t packing_bins; /* samples under way in first_fit; 0: 8 */
    /* of a record; what is NULL is not looked at, and with all NULL the text is "text" (of webdataset: "txt") */
    const char *text_column, *messages_column, *prompt_column, *completion_column;
    bool fail_on_broken; /* a broken record ends the run; else it is left out and counted */
    int num_workers;     /* threads that read and tokenise ahead; 0: none, it is done when asked for */
} ct_dataset_opts;

typedef struct ct_data_state ct_data_state;

/* One batch; arrays of s32 [batch seq], owned by the batch. */
typedef struct ct_batch {
    ct_array inputs, labels, positions, segment_ids;
    int64_t num_valid_labels; /* those that are not CT_IGNORED_LABEL */
    int64_t num_samples;      /* with opts.once the last batch may have fewer than batch_size, the rest being ignored
                                 labels; 0: the data has ended */
    int64_t first_sample;
    int64_t epoch;        /* of the first source, where the batch begins */
    ct_data_state *state; /* the place behind the batch */
} ct_batch;

typedef struct ct_dataset ct_dataset;

/* The strings, and the tokenizer (not needed for tokens), must outlive the dataset.
 * Errors: NOT_FOUND, INVALID_ARGUMENT naming path, what was required and what was found: no file, a text shorter than
 * seq_len + 1 tokens, ids beyond the vocabulary (of tokens they are found when read), a missing tensor or column, its
 * shape or dtype. */
CT_MUST_USE ct_status *ct_dataset_open(const ct_dataset_opts *opts, ct_dataset **out_dataset);
void ct_dataset_close(ct_dataset *dataset); /* NULL is allowed */

void ct_batch_init(ct_batch *batch, const ct_dataset *dataset); /* makes the arrays */
void ct_batch_deinit(ct_batch *batch);

/* The next batch. One thread at a time; ct_loader calls it in the background.
 * Errors: OUT_OF_RANGE naming file, position and value of an id outside [0, vocab_size); with fail_on_broken what is
 * wrong with a record; then the batch, and every later one, fails. */
CT_MUST_USE ct_status *ct_dataset_next(ct_dataset *dataset, ct_batch *batch);

int64_t ct_dataset_num_samples(const ct_dataset *dataset);        /* per epoch; -1 where only reading all would tell */
int64_t ct_dataset_num_tokens(const ct_dataset *dataset);         /* per epoch; likewise */
bool ct_dataset_is_text(const ct_dataset *dataset);               /* made of text by the tokenizer, at least in part */
void ct_dataset_describe(const ct_dataset *dataset, ct_str *out); /* appends what it reads, for people */

/* Records left out so far: broken ones, and documents longer than seq_len with packing that keeps them whole. */
void ct_data_state_left_out(const ct_data_state *state, int64_t *out_num_broken, int64_t *out_num_too_long);

/* The present place; the caller's to free. */
ct_data_state *ct_dataset_state(const ct_dataset *dataset);
ct_data_state *ct_data_state_copy(const ct_data_state *state);
void ct_data_state_free(ct_data_state *state); /* NULL is allowed */

/* Writes a place as an object, with what it depends on; goes to such a place. With everything as it was the same
 * samples follow. Errors: FAILED_PRECONDITION naming what differs (kind, files, seq_len, number of tokens, shuffle,
 * seed, ...): then the place would mean another. */
void ct_data_state_write(const ct_data_state *state, ct_json_writer *writer, const char *key);
CT_MUST_USE ct_status *ct_dataset_restore(ct_dataset *dataset, ct_json_value value);

/* -sum p ln p over the frequencies of the tokens, in nats per token: the loss of a model that knows nothing but how
 * frequent each token is. NaN unless the data is one text, which lies in memory. */
double ct_dataset_unigram_entropy(const ct_dataset *dataset);

#endif
