/* Datasets: sources from paths, the mixture, batches. */
#include "data/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/dataset_internal.h"

/* ---- sources ---- */

static ct_status *kind_of(const ct_dataset_opts *opts, const ct__files *files, ct_data_kind *out_kind)
{
    *out_kind = opts->kind;
    if (opts->kind != CT_DATA_AUTO) return NULL;
    CT_ASSERT(files->paths && files->count);
    *out_kind = ct__kind_of_file(files->paths[0]);
    for (size_t i = 1; i < files->count; i++)
        if (ct__kind_of_file(files->paths[i]) != *out_kind)
            return ct_error(CT_CODE_INVALID_ARGUMENT,
                            "files of several kinds must be parts of a mixture, each with a weight of "
                            "dataloader.weights, but %s is %s and %s is %s; or training.dataset says what all are",
                            files->paths[0], ct__kind_name(*out_kind), files->paths[i],
                            ct__kind_name(ct__kind_of_file(files->paths[i])));
    return NULL;
}

/* A source of some of the paths. */
static ct_status *add_source(ct_dataset *dataset, const char *const *paths, size_t num_paths, double weight)
{
    const ct_dataset_opts *opts = &dataset->opts;
    ct__source base = {.opts = opts, .weight = weight}, *source = NULL;
    ct_status *status = NULL;
    for (size_t i = 0; i < num_paths; i++) CT_TRY_OUT(ct__files_add(&base.files, paths[i]));
    CT_TRY_OUT(kind_of(opts, &base.files, &base.kind));
    base.path = num_paths == 1 ? ct_strdup(paths[0]) : ct_asprintf("%s and %zu more", paths[0], num_paths - 1);
    base.name = dataset->num_sources ? ct_asprintf(".%zu", dataset->num_sources) : ct_strdup("");
    bool has_documents = base.kind != CT_DATA_TEXT && base.kind != CT_DATA_TOKENS;
    CT_TRY_OUT(has_documents ? ct__stream_new(&base, dataset->workers, &source) : ct__windows_new(&base, &source));
    dataset->sources[dataset->num_sources++] = source;
    return NULL;
out:
    ct__files_deinit(&base.files);
    free(base.path);
    free(base.name);
    return status;
}

static ct_status *add_sources(ct_dataset *dataset)
{
    const ct_dataset_opts *opts = &dataset->opts;
    dataset->sources = ct_alloc_zeroed(opts->num_paths, sizeof(ct__source *));
    if (!opts->weights) return add_source(dataset, opts->paths, opts->num_paths, 1);
    for (size_t i = 0; i < opts->num_paths; i++)
        if (!(opts->weights[i] > 0) || isinf(opts->weights[i]))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "dataloader.weights must be above 0, but weight %zu is %g", i,
                            opts->weights[i]);
    for (size_t i = 0; i < opts->num_paths; i++) CT_TRY(add_source(dataset, &opts->paths[i], 1, opts->weights[i]));
    return NULL;
}

ct_status *ct_dataset_open(const ct_dataset_opts *opts, ct_dataset **out_dataset)
{
    *out_dataset = NULL;
    CT_ASSERT(opts->seq_len > 0 && opts->batch_size > 0 && opts->vocab_size > 0);
    if (!opts->num_paths || !opts->paths[0] || !opts->paths[0][0])
        return ct_error(CT_CODE_INVALID_ARGUMENT, "training.dataset_path is required");
    ct_dataset *dataset = ct_alloc_zeroed(1, sizeof(*dataset));
    dataset->opts = *opts;
    dataset->workers = ct__workers_new(opts->num_workers);
    ct_status *status = add_sources(dataset);
    dataset->opts.paths = NULL; /* the caller's arrays need not live on */
    dataset->opts.weights = NULL;
    if (status)
        ct_dataset_close(dataset);
    else
        *out_dataset = dataset;
    return status;
}

void ct_dataset_close(ct_dataset *dataset)
{
    if (!dataset) return;
    ct__workers_free(dataset->workers);
    for (size_t i = 0; i < dataset->num_sources; i++) {
        ct__source *source = dataset->sources[i];
        ct__files_deinit(&source->files);
        free(source->path);
        free(source->name);
        source->class->free(source);
    }
    ct_status_free(dataset->failed);
    free(dataset->sources);
    free(dataset);
}

/* ---- batches ---- */

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
    ct_data_state_free(batch->state);
    batch->state = NULL;
}

/* The source that is furthest behind its share; the first of equals. NULL: all have ended. */
static ct__source *most_behind(const ct_dataset *dataset)
{
    ct__source *best = NULL;
    double total_weight = 0, total_taken = 1, most = 0;
    for (size_t i = 0; i < dataset->num_sources; i++) {
        const ct__source *source = dataset->sources[i];
        if (source->ended) continue;
        total_weight += source->weight;
        total_taken += (double)source->num_taken;
    }
    for (size_t i = 0; i < dataset->num_sources; i++) {
        ct__source *source = dataset->sources[i];
        if (source->ended) continue;
        double behind = source->weight / total_weight * total_taken - (double)source->num_taken;
        if (best && behind <= most) continue;
        best = source;
        most = behind;
    }
    return best;
}

/* The next sample of the mixture; out_ended when there is none. */
static ct_status *next_sample(ct_dataset *dataset, ct__row *row, bool *out_ended)
{
    ct__source *source;
    while ((source = most_behind(dataset))) {
        CT_TRY(source->class->next(source, row, &source->ended));
        if (source->ended) continue;
        source->num_taken++;
        *out_ended = false;
        return NULL;
    }
    *out_ended = true;
    return NULL;
}

/* Samples [from, batch_size), for which there was no data. */
static void ignore_rest(const ct_dataset *dataset, ct_batch *batch, int64_t from)
{
    int64_t seq_len = dataset->opts.seq_len;
    int32_t *inputs = batch->inputs.data, *labels = batch->labels.data, *positions = batch->positions.data;
    for (int64_t i = from * seq_len; i < dataset->opts.batch_size * seq_len; i++) {
        inputs[i] = 0;
        labels[i] = CT_IGNORED_LABEL;
        positions[i] = (int32_t)(i % seq_len);
        ((int32_t *)batch->segment_ids.data)[i] = 0;
    }
}

static ct_status *fill(ct_dataset *dataset, ct_batch *batch)
{
    int64_t seq_len = dataset->opts.seq_len, batch_size = dataset->opts.batch_size;
    CT_ASSERT(batch->inputs.sizes[0] == batch_size && batch->inputs.sizes[1] == seq_len);
    int32_t *labels = batch->labels.data;
    batch->num_samples = batch->num_valid_labels = 0;
    batch->first_sample = 0;
    for (size_t i = 0; i < dataset->num_sources; i++) batch->first_sample += dataset->sources[i]->num_taken;
    for (int64_t b = 0; b < batch_size; b++) {
        int64_t at = b * seq_len;
        ct__row row = {.inputs = (int32_t *)batch->inputs.data + at,
                       .labels = labels + at,
                       .positions = (int32_t *)batch->positions.data + at,
                       .segment_ids = (int32_t *)batch->segment_ids.data + at};
        bool ended;
        CT_TRY(next_sample(dataset, &row, &ended));
        if (ended) {
            ignore_rest(dataset, batch, b);
            break;
        }
        batch->num_samples++;
        for (int64_t i = 0; i < seq_len; i++) batch->num_valid_labels += labels[at + i] != CT_IGNORED_LABEL;
    }
    return NULL;
}

ct_status *ct_dataset_next(ct_dataset *dataset, ct_batch *batch)
{
    ct_data_state_free(batch->state);
    batch->state = NULL;
    if (!dataset->failed) dataset->failed = fill(dataset, batch);
    if (dataset->failed) return ct_error(ct_status_code(dataset->failed), "%s", ct_status_message(dataset->failed));
    batch->state = ct_dataset_state(dataset);
    batch->epoch = dataset->epoch;
    dataset->epoch = ct__data_state_epoch(batch->state);
    return NULL;
}

/* ---- what it is ---- */

int64_t ct_dataset_num_samples(const ct_dataset *dataset)
{
    return dataset->num_sources == 1 ? dataset->sources[0]->num_samples : -1;
}

int64_t ct_dataset_num_tokens(const ct_dataset *dataset)
{
    return dataset->num_sources == 1 ? dataset->sources[0]->num_tokens : -1;
}

bool ct_dataset_is_text(const ct_dataset *dataset)
{
    for (size_t i = 0; i < dataset->num_sources; i++)
        if (dataset->sources[i]->kind != CT_DATA_TOKENS) return true;
    return false;
}

void ct_dataset_describe(const ct_dataset *dataset, ct_str *out)
{
    double total = 0;
    for (size_t i = 0; i < dataset->num_sources; i++) total += dataset->sources[i]->weight;
    for (size_t i = 0; i < dataset->num_sources; i++) {
        const ct__source *source = dataset->sources[i];
        if (i) ct_str_append(out, "; ");
        if (dataset->num_sources > 1) ct_str_printf(out, "%.1f%% ", 100 * source->weight / total);
        ct_str_printf(out, "%s, ", source->path);
        source->class->describe(source, out);
    }
}

double ct_dataset_unigram_entropy(const ct_dataset *dataset)
{
    bool is_one_text = dataset->num_sources == 1 && dataset->sources[0]->kind == CT_DATA_TEXT;
    return is_one_text ? ct__windows_unigram_entropy(dataset->sources[0]) : NAN;
}
