/* Datasets: sample numbers to windows or rows, checks, and positions. */
#include "data/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/source.h"

ct_status *ct_dataset_open(const ct_dataset_opts *opts, ct_dataset **out_dataset)
{
    *out_dataset = NULL;
    CT_ASSERT(opts->seq_len > 0 && opts->batch_size > 0 && opts->vocab_size > 0);
    if (!opts->path || !opts->path[0])
        return ct_error(CT_CODE_INVALID_ARGUMENT, "training.dataset_path is required with training.dataset = \"%s\"",
                        opts->dataset);
    ct_dataset *dataset = ct_alloc_zeroed(1, sizeof(*dataset));
    dataset->opts = *opts;
    dataset->opts.dataset = dataset->kind = ct_strdup(opts->dataset);
    dataset->opts.path = dataset->path = ct_strdup(opts->path);
    dataset->opts.tokenizer = NULL;
    ct_status *status;
    if (!strcmp(opts->dataset, "text"))
        status = ct__text_open(dataset, opts->tokenizer);
    else if (!strcmp(opts->dataset, "tokens"))
        status = ct__tokens_open(dataset);
    else
        status = ct_error(CT_CODE_INVALID_ARGUMENT, "training.dataset must be \"text\" or \"tokens\", but is \"%s\"",
                          opts->dataset);
    if (status)
        ct_dataset_close(dataset);
    else
        *out_dataset = dataset;
    return status;
}

void ct_dataset_close(ct_dataset *dataset)
{
    if (!dataset) return;
    if (dataset->owns_tokens) ct_array_free(&dataset->tokens);
    if (dataset->owns_labels) ct_array_free(&dataset->labels);
    ct_safetensors_close(dataset->file);
    free(dataset->stream);
    free(dataset->kind);
    free(dataset->path);
    free(dataset);
}

void ct_batch_init(ct_batch *batch, const ct_dataset *dataset)
{
    const int64_t sizes[2] = {dataset->opts.batch_size, dataset->opts.seq_len};
    *batch = (ct_batch){
        .inputs = ct_array_new(CT_DTYPE_S32, sizes, 2),
        .labels = ct_array_new(CT_DTYPE_S32, sizes, 2),
        .positions = ct_array_new(CT_DTYPE_S32, sizes, 2),
        .segment_ids = ct_array_new(CT_DTYPE_S32, sizes, 2),
    };
}

void ct_batch_deinit(ct_batch *batch)
{
    ct_array_free(&batch->inputs);
    ct_array_free(&batch->labels);
    ct_array_free(&batch->positions);
    ct_array_free(&batch->segment_ids);
}

/* ---- Samples. ---- */

static bool runs_on(const ct_dataset *dataset)
{
    return dataset->stream && !dataset->opts.shuffle;
}

/* The start of window number sample in the endless stream, as a place in it and a number of rounds;
 * sample * seq_len without overflow. */
static int64_t window_start(const ct_dataset *dataset, int64_t sample, int64_t *out_epoch)
{
    int64_t seq_len = dataset->opts.seq_len, num_tokens = dataset->num_tokens;
    int64_t rest = sample % num_tokens * seq_len;
    *out_epoch = sample / num_tokens * seq_len + rest / num_tokens;
    return rest % num_tokens;
}

static int64_t epoch_of(const ct_dataset *dataset, int64_t sample)
{
    int64_t epoch = sample / dataset->num_samples;
    if (runs_on(dataset)) window_start(dataset, sample, &epoch);
    return epoch;
}

/* Which window or row a sample is. */
static int64_t row_of(const ct_dataset *dataset, int64_t sample)
{
    int64_t epoch = sample / dataset->num_samples, row = sample % dataset->num_samples;
    if (!dataset->opts.shuffle) return row;
    char name[48];
    snprintf(name, sizeof(name), "data.epoch.%lld", (long long)epoch);
    uint32_t key[2];
    ct_rng_key(dataset->opts.seed, name, key);
    return (int64_t)ct_rng_permute(key, (uint64_t)dataset->num_samples, (uint64_t)row);
}

static ct_status *check_ids(const ct_dataset *dataset, const char *tensor, int64_t row, const int32_t *ids,
                            int64_t count)
{
    bool ignored_allowed = tensor[0] == 'l';
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] >= 0 && ids[i] < dataset->opts.vocab_size) continue;
        if (ignored_allowed && ids[i] == CT_IGNORED_LABEL) continue;
        return ct_error(CT_CODE_OUT_OF_RANGE,
                        "%s: %s must be in [0, %lld), the model's vocabulary%s, but row %lld has %d at %lld",
                        dataset->path, tensor, (long long)dataset->opts.vocab_size, ignored_allowed ? ", or -100" : "",
                        (long long)row, ids[i], (long long)i);
    }
    return NULL;
}

/* seq_len inputs and labels of one sample. */
static ct_status *read_sample(const ct_dataset *dataset, int64_t sample, int32_t *inputs, int32_t *labels)
{
    int64_t seq_len = dataset->opts.seq_len;
    size_t size = (size_t)seq_len * sizeof(int32_t);
    if (dataset->stream) {
        int64_t epoch, num_tokens = dataset->num_tokens;
        int64_t start = runs_on(dataset) ? window_start(dataset, sample, &epoch) : row_of(dataset, sample) * seq_len;
        for (int64_t i = 0; i < seq_len; i++) {
            inputs[i] = dataset->stream[start];
            if (++start == num_tokens) start = 0;
            labels[i] = dataset->stream[start];
        }
        return NULL;
    }
    int64_t row = row_of(dataset, sample);
    const int32_t *tokens = (const int32_t *)dataset->tokens.data + row * (seq_len + 1);
    CT_TRY(check_ids(dataset, "tokens", row, tokens, seq_len + 1));
    memcpy(inputs, tokens, size);
    if (!dataset->labels.data) {
        memcpy(labels, tokens + 1, size);
        return NULL;
    }
    const int32_t *given = (const int32_t *)dataset->labels.data + row * seq_len;
    CT_TRY(check_ids(dataset, "labels", row, given, seq_len));
    memcpy(labels, given, size);
    return NULL;
}

ct_status *ct_dataset_batch_at(const ct_dataset *dataset, int64_t first_sample, ct_batch *batch)
{
    CT_ASSERT(first_sample >= 0);
    int64_t seq_len = dataset->opts.seq_len, batch_size = dataset->opts.batch_size;
    CT_ASSERT(batch->inputs.sizes[0] == batch_size && batch->inputs.sizes[1] == seq_len);
    int32_t *inputs = batch->inputs.data, *labels = batch->labels.data, *positions = batch->positions.data;
    batch->first_sample = first_sample;
    batch->epoch = epoch_of(dataset, first_sample);
    batch->num_valid_labels = 0;
    for (int64_t b = 0; b < batch_size; b++) {
        int64_t at = b * seq_len;
        CT_TRY(read_sample(dataset, first_sample + b, inputs + at, labels + at));
        for (int64_t i = 0; i < seq_len; i++) {
            positions[at + i] = (int32_t)i;
            batch->num_valid_labels += labels[at + i] != CT_IGNORED_LABEL;
        }
    }
    memset(batch->segment_ids.data, 0, ct_array_bytes(&batch->segment_ids));
    return NULL;
}

ct_status *ct_dataset_next(ct_dataset *dataset, ct_batch *batch)
{
    CT_TRY(ct_dataset_batch_at(dataset, dataset->position, batch));
    dataset->position += dataset->opts.batch_size;
    return NULL;
}

int64_t ct_dataset_position(const ct_dataset *dataset)
{
    return dataset->position;
}

void ct_dataset_seek(ct_dataset *dataset, int64_t sample)
{
    CT_ASSERT(sample >= 0);
    dataset->position = sample;
}

int64_t ct_dataset_num_samples(const ct_dataset *dataset)
{
    return dataset->num_samples;
}

int64_t ct_dataset_num_tokens(const ct_dataset *dataset)
{
    return dataset->num_tokens;
}

/* ---- Positions. ---- */

void ct_dataset_position_write(const ct_dataset *dataset, int64_t sample, ct_json_writer *writer, const char *key)
{
    ct_json_begin_object(writer, key);
    ct_json_put_string(writer, "dataset", dataset->kind);
    ct_json_put_int(writer, "num_tokens", dataset->num_tokens);
    ct_json_put_int(writer, "seq_len", dataset->opts.seq_len);
    ct_json_put_bool(writer, "shuffle", dataset->opts.shuffle);
    ct_json_put_int(writer, "seed", (int64_t)dataset->opts.seed);
    ct_json_put_int(writer, "epoch", epoch_of(dataset, sample));
    ct_json_put_int(writer, "sample", sample);
    ct_json_end(writer);
}

static ct_status *check_same(ct_json_value value, const char *name, int64_t now)
{
    int64_t saved;
    CT_TRY(ct_json_need_int(value, name, &saved));
    if (saved == now) return NULL;
    return ct_error(
        CT_CODE_FAILED_PRECONDITION,
        "the data position was saved with %s = %lld, but now it is %lld; resume with the data and settings of "
        "the save, or start the data anew",
        name, (long long)saved, (long long)now);
}

ct_status *ct_dataset_position_read(const ct_dataset *dataset, ct_json_value value, int64_t *out_sample)
{
    *out_sample = 0;
    const char *kind;
    bool shuffle;
    int64_t sample;
    CT_TRY(ct_json_need_string(value, "dataset", &kind));
    if (strcmp(kind, dataset->kind) != 0)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "the data position was saved with dataset \"%s\", but now it is \"%s\"", kind, dataset->kind);
    CT_TRY(check_same(value, "num_tokens", dataset->num_tokens));
    CT_TRY(check_same(value, "seq_len", dataset->opts.seq_len));
    CT_TRY(ct_json_need_bool(value, "shuffle", &shuffle));
    if (shuffle != dataset->opts.shuffle)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "the data position was saved with shuffle = %s, but now it is %s",
                        shuffle ? "true" : "false", shuffle ? "false" : "true");
    if (shuffle) CT_TRY(check_same(value, "seed", (int64_t)dataset->opts.seed));
    CT_TRY(ct_json_need_int(value, "sample", &sample));
    if (sample < 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the data position's sample must not be negative, but is %lld",
                        (long long)sample);
    *out_sample = sample;
    return NULL;
}

/* ---- Entropy. ---- */

ct_status *ct_dataset_unigram_entropy(const ct_dataset *dataset, double *out_nats)
{
    *out_nats = 0;
    const int32_t *ids = dataset->stream ? dataset->stream : dataset->tokens.data;
    if (!dataset->stream)
        for (int64_t row = 0, length = dataset->opts.seq_len + 1; row < dataset->num_samples; row++)
            CT_TRY(check_ids(dataset, "tokens", row, ids + row * length, length));
    int64_t *counts = ct_alloc_zeroed((size_t)dataset->opts.vocab_size, sizeof(*counts));
    for (int64_t i = 0; i < dataset->num_tokens; i++) counts[ids[i]]++;
    for (int64_t id = 0; id < dataset->opts.vocab_size; id++) {
        double p = (double)counts[id] / (double)dataset->num_tokens;
        if (counts[id]) *out_nats -= p * log(p);
    }
    free(counts);
    return NULL;
}
