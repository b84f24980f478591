/* Sources whose samples can be made by their number: rows, and windows of a sequence. With shuffle an epoch visits all
 * of them in an order drawn from seed and epoch, without memory; without it a text's stream runs on from its end to its
 * begin, so that an epoch need not end with a sample.
 *
 *   sample   0    1    2   ...  W-1 | W   W+1 ...      W = samples per epoch; sample W begins epoch 1
 *
 * The last token of a window is the first of the next, so each token is a label once. With shuffle the fewer than
 * seq_len tokens that are left at the end of a sequence are not visited.
 */
#include "data/windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

typedef struct windows {
    ct__source base;
    ct__part *parts;
    size_t num_parts;
    int32_t bos, eos; /* what parts documents of tokens; -1: the tokenizer has none */
} windows;

/* ---- which window ---- */

/* The start of window number sample in the endless stream, as a place in it and a number of rounds;
 * sample * seq_len without overflow. */
static int64_t window_start(const ct__part *part, int64_t sample, int64_t *out_epoch)
{
    int64_t seq_len = part->stride, num_tokens = part->num_tokens;
    int64_t rest = sample % num_tokens * seq_len;
    *out_epoch = sample / num_tokens * seq_len + rest / num_tokens;
    return rest % num_tokens;
}

/* Which window or row of all a sample is. */
static int64_t row_of(const windows *w, int64_t sample)
{
    int64_t epoch = sample / w->base.num_samples, row = sample % w->base.num_samples;
    if (!w->base.opts->shuffle) return row;
    char name[80];
    snprintf(name, sizeof(name), "data.epoch%s.%lld", w->base.name, (long long)epoch);
    uint32_t key[2];
    ct_rng_key(w->base.opts->seed, name, key);
    return (int64_t)ct_rng_permute(key, (uint64_t)w->base.num_samples, (uint64_t)row);
}

/* ---- its tokens ---- */

static int64_t id_at(const ct__part *part, int64_t index)
{
    switch (part->width) {
    case CT__WIDTH_S32: return ((const int32_t *)part->ids)[index];
    case CT__WIDTH_U32: return ((const uint32_t *)part->ids)[index];
    case CT__WIDTH_U16: return ((const uint16_t *)part->ids)[index];
    }
    return -1;
}

static ct_status *wrong_id(const windows *w, const ct__part *part, const char *tensor, int64_t row, int64_t id,
                           int64_t at)
{
    return ct_error(CT_CODE_OUT_OF_RANGE,
                    "%s: %s must be in [0, %lld), the model's vocabulary%s, but row %lld has %lld at %lld", part->path,
                    tensor, (long long)w->base.opts->vocab_size, tensor[0] == 'l' ? ", or -100" : "", (long long)row,
                    (long long)id, (long long)at);
}

static ct_status *check_ids(const windows *w, const ct__part *part, const char *tensor, int64_t row, const int32_t *ids,
                            int64_t count)
{
    int64_t vocab_size = w->base.opts->vocab_size;
    bool may_ignore = tensor[0] == 'l';
    for (int64_t i = 0; i < count; i++)
        if ((ids[i] < 0 || ids[i] >= vocab_size) && !(may_ignore && ids[i] == CT_IGNORED_LABEL))
            return wrong_id(w, part, tensor, row, ids[i], i);
    return NULL;
}

/* Tokens [start, start + count) of the part as s32. */
static ct_status *copy_ids(const windows *w, const ct__part *part, int64_t row, int64_t start, int64_t count,
                           int32_t *out)
{
    if (part->width == CT__WIDTH_S32) {
        memcpy(out, (const int32_t *)part->ids + start, (size_t)count * sizeof(*out));
    } else if (part->width == CT__WIDTH_U16) {
        const uint16_t *ids = (const uint16_t *)part->ids + start;
        for (int64_t i = 0; i < count; i++) out[i] = ids[i];
    } else {
        const uint32_t *ids = (const uint32_t *)part->ids + start;
        for (int64_t i = 0; i < count; i++) {
            if (ids[i] > INT32_MAX) return wrong_id(w, part, "tokens", row, ids[i], i);
            out[i] = (int32_t)ids[i];
        }
    }
    return part->stream ? NULL : check_ids(w, part, "tokens", row, out, count); /* texts are checked when made */
}

/* ---- documents within a sample ---- */

static bool begins_document(const windows *w, const ct__part *part, int64_t index)
{
    if (part->begins) return part->begins[index];
    if (w->bos >= 0) return id_at(part, index) == w->bos;
    return index > 0 && id_at(part, index - 1) == w->eos;
}

/* Marks of a sample that begins with token `start`; labels that belong to another document are ignored. */
static void mark_documents(const windows *w, const ct__part *part, int64_t start, ct__row *row)
{
    int64_t seq_len = w->base.opts->seq_len;
    int32_t segment = 0, position = 0;
    for (int64_t i = 0; i < seq_len; i++) {
        row->segment_ids[i] = segment;
        row->positions[i] = position++;
        if (++start == part->num_tokens) start = 0;
        if (start && !begins_document(w, part, start)) continue;
        if (!part->labels) row->labels[i] = CT_IGNORED_LABEL;
        segment++;
        position = 0;
    }
}

static ct_status *fill(const windows *w, int64_t sample, ct__row *row)
{
    int64_t seq_len = w->base.opts->seq_len, index = row_of(w, sample), start, epoch;
    const ct__part *part = w->parts;
    for (; index >= part->num_samples; part++) index -= part->num_samples;
    start = part->wraps ? window_start(part, sample, &epoch) : index * part->stride;
    int64_t count = CT_MIN(seq_len + 1, part->num_tokens - start), first = CT_MIN(count, seq_len);
    CT_TRY(copy_ids(w, part, index, start, first, row->inputs));
    for (int64_t i = first; i < seq_len; i++) row->inputs[i] = (int32_t)id_at(part, (start + i) % part->num_tokens);
    int64_t last = id_at(part, (start + seq_len) % part->num_tokens);
    if (last < 0 || last >= w->base.opts->vocab_size) return wrong_id(w, part, "tokens", index, last, seq_len);
    if (part->labels) {
        const int32_t *given = part->labels + index * seq_len;
        CT_TRY(check_ids(w, part, "labels", index, given, seq_len));
        memcpy(row->labels, given, (size_t)seq_len * sizeof(*given));
    } else {
        memcpy(row->labels, row->inputs + 1, (size_t)(seq_len - 1) * sizeof(*row->labels));
        row->labels[seq_len - 1] = (int32_t)last;
    }
    if (w->base.opts->document_mask) {
        mark_documents(w, part, start, row);
    } else {
        for (int64_t i = 0; i < seq_len; i++) row->positions[i] = (int32_t)i;
        memset(row->segment_ids, 0, (size_t)seq_len * sizeof(*row->segment_ids));
    }
    return NULL;
}

static ct_status *next(ct__source *source, ct__row *row, bool *out_ended)
{
    const windows *w = (const windows *)source;
    *out_ended = source->opts->once && source->num_taken >= source->num_samples;
    return *out_ended ? NULL : fill(w, source->num_taken, row);
}

/* ---- the rest ---- */

static void save(const ct__source *source, ct__source_state *state)
{
    const windows *w = (const windows *)source;
    state->last_token = -1;
    state->epoch = source->num_taken / source->num_samples;
    if (w->parts->wraps) window_start(w->parts, source->num_taken, &state->epoch);
}

static ct_status *restore(ct__source *source, const ct__source_state *state)
{
    (void)source, (void)state; /* the number of samples taken is all there is */
    return NULL;
}

static void describe(const ct__source *source, ct_str *out)
{
    ct_str_printf(out, "%lld tokens, %lld sequences of %lld per epoch", (long long)source->num_tokens,
                  (long long)source->num_samples, (long long)source->opts->seq_len);
}

static void free_windows(ct__source *source)
{
    windows *w = (windows *)source;
    for (size_t i = 0; i < w->num_parts; i++) {
        ct__part *part = &w->parts[i];
        if (part->owns_tokens) ct_array_free(&part->tokens_array);
        if (part->owns_labels) ct_array_free(&part->labels_array);
        ct_safetensors_close(part->file);
        free(part->stream);
        free(part->stream_begins);
    }
    free(w->parts);
    free(w);
}

static ct_status *open_parts(windows *w)
{
    const ct_dataset_opts *opts = w->base.opts;
    if (w->base.kind == CT_DATA_TEXT) {
        w->num_parts = 1;
        CT_TRY(ct__text_open(&w->base, w->parts));
    }
    for (; w->base.kind == CT_DATA_TOKENS && w->num_parts < w->base.files.count;) {
        ct__part *part = &w->parts[w->num_parts++];
        part->path = w->base.files.paths[w->num_parts - 1];
        CT_TRY(ct__tokens_open(opts, part));
    }
    for (size_t i = 0; i < w->num_parts; i++) {
        w->base.num_tokens += w->parts[i].num_tokens;
        w->base.num_samples += w->parts[i].num_samples;
    }
    w->bos = opts->tokenizer ? ct_tokenizer_bos(opts->tokenizer) : -1;
    w->eos = opts->tokenizer ? ct_tokenizer_eos(opts->tokenizer) : -1;
    if (opts->document_mask && w->base.kind == CT_DATA_TOKENS && w->bos < 0 && w->eos < 0)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "training.document_mask needs a tokenizer with a token that begins or ends documents, to find "
                        "them in %s",
                        w->base.path);
    return NULL;
}

ct_status *ct__windows_new(const ct__source *base, ct__source **out_source)
{
    static const ct__source_class class = {next, save, restore, describe, free_windows};
    *out_source = NULL;
    windows *w = ct_alloc_zeroed(1, sizeof(*w));
    w->base = *base;
    w->base.class = &class;
    w->base.num_samples = w->base.num_tokens = 0;
    w->parts = ct_alloc_zeroed(base->files.count, sizeof(*w->parts));
    ct_status *status = open_parts(w);
    if (status) {
        free_windows(&w->base);
        return status;
    }
    w->base.identity[0] = (ct__identity){"num_tokens", w->base.num_tokens};
    w->base.num_identity = 1;
    *out_source = &w->base;
    return NULL;
}

double ct__windows_unigram_entropy(const ct__source *source)
{
    const ct__part *part = ((const windows *)source)->parts;
    int64_t *counts = ct_alloc_zeroed((size_t)source->opts->vocab_size, sizeof(*counts));
    double nats = 0;
    for (int64_t i = 0; i < part->num_tokens; i++) counts[part->stream[i]]++;
    for (int64_t id = 0; id < source->opts->vocab_size; id++) {
        double p = (double)counts[id] / (double)part->num_tokens;
        if (counts[id]) nats -= p * log(p);
    }
    free(counts);
    return nats;
}
