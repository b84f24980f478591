/* Prefill and decode as graphs. */
#include "generate/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "graph/ops.h"

/* Later than any query. */
enum { FAR_POSITION = 1 << 30 };

typedef struct program {
    const ct_model *model;
    const ct_generate_shape *shape;
    const ct_generate_opts *opts;
    ct_graph *graph;
    ct_tensor **params;
    ct_tensor *pads;
    ct_sampling_inputs sampling;
    int num_caches; /* keys of all layers, then values */
} program;

static program begin(const char *name, const ct_model *model, const ct_generate_shape *shape,
                     const ct_generate_opts *opts)
{
    program p = {.model = model, .shape = shape, .opts = opts, .graph = ct_graph_new(name)};
    p.num_caches = (int)(2 * model->config.num_layers);
    p.params = ct_alloc((size_t)model->num_params * sizeof(*p.params));
    ct_model_inputs(model, p.graph, opts->dtype, p.params);
    ct_graph_declare_axis(p.graph, "batch", shape->batch);
    ct_graph_declare_axis(p.graph, "step", shape->steps);
    return p;
}

static ct_status *finish(program *p, ct_graph **out_graph)
{
    free(p->params);
    ct_status *status = ct_graph_check(p->graph);
    *out_graph = status ? NULL : p->graph;
    if (status) ct_graph_free(p->graph);
    return status;
}

static const char *cache_name(int index, char buffer[32])
{
    snprintf(buffer, 32, "cache.%d", index);
    return buffer;
}

/* s32 [batch kv_seq]: where columns are in their rows, padding out of sight. */
static ct_tensor *positions_of_columns(const program *p, int64_t num_columns)
{
    ct_graph_declare_axis(p->graph, "kv_seq", num_columns);
    ct_tensor *columns = ct_iota(p->graph, CT_DTYPE_S32, "batch kv_seq", "kv_seq");
    ct_tensor *positions = ct_sub(columns, p->pads), *zero = ct_scalar_like(positions, 0);
    return ct_select(ct_lt(positions, zero), ct_scalar_like(positions, FAR_POSITION), positions);
}

/* The token behind the last column of hidden. positions: that column's, s32 [batch]. */
static ct_tensor *choose(const program *p, ct_tensor *hidden, ct_tensor *positions, const ct_model_opts *opts)
{
    int64_t seq = ct_tensor_axis_size(hidden, "seq");
    ct_tensor *last = seq > 1 ? ct_slice(hidden, "seq", seq - 1, seq) : hidden;
    ct_tensor *logits = ct_squeeze(ct_model_logits(p->model, p->params, last, opts), "seq");
    return ct_sampling_choose(&p->opts->sampling, &p->sampling, logits, ct_add_scalar(positions, 1));
}

ct_status *ct_prefill_build(const ct_model *model, const ct_generate_shape *shape, const ct_generate_opts *opts,
                            ct_graph **out_graph)
{
    program p = begin("prefill", model, shape, opts);
    ct_kernels_attach(p.graph, &opts->kernels);
    ct_graph_declare_axis(p.graph, "seq", shape->prompt_len);
    ct_tensor *tokens = ct_input(p.graph, "tokens", CT_DTYPE_S32, "batch seq");
    p.pads = ct_input(p.graph, "pads", CT_DTYPE_S32, "batch");
    p.sampling = ct_sampling_declare(p.graph, &opts->sampling);
    ct_tensor **caches = ct_alloc_zeroed((size_t)p.num_caches, sizeof(ct_tensor *));
    ct_tensor *positions = ct_sub(ct_iota(p.graph, CT_DTYPE_S32, "batch seq", "seq"), p.pads);
    ct_model_cache cache = {.kv_positions = positions_of_columns(&p, shape->prompt_len),
                            .keys = caches,
                            .values = caches + model->config.num_layers};
    ct_model_opts model_opts = {.compute_dtype = opts->dtype, .cache = &cache};
    ct_tensor *hidden = ct_model_hidden(model, p.params, tokens, positions, NULL, &model_opts);
    ct_tensor *last_position = ct_sub(ct_full_like(p.pads, (double)(shape->prompt_len - 1)), p.pads);
    ct_tensor *next = choose(&p, hidden, last_position, &model_opts);
    for (int i = 0; i < p.num_caches && !ct_graph_has_failed(p.graph); i++) {
        char name[32];
        ct_output(p.graph, cache_name(i, name), ct_pad(caches[i], "kv_seq", 0, shape->capacity - shape->prompt_len, 0),
                  NULL);
    }
    ct_output(p.graph, "next", next, NULL);
    free(caches);
    return finish(&p, out_graph);
}

/* carries of decode's loop */
enum { STEP, COLUMN, TOKEN, FINISHED, CHOSEN, CACHES };

static ct_tensor *wants_more(ct_graph *graph, void *context, ct_tensor *const *carries)
{
    const program *p = context;
    ct_tensor *room = ct_lt(carries[STEP], ct_scalar(graph, CT_DTYPE_S32, (double)p->shape->steps));
    return ct_and(room, ct_not(ct_all(carries[FINISHED], "batch")));
}

static ct_tensor *is_stop(const program *p, ct_tensor *token)
{
    ct_tensor *result = ct_ne(token, token); /* nowhere */
    for (size_t i = 0; i < p->opts->num_stop_ids; i++)
        result = ct_or(result, ct_eq(token, ct_scalar_like(token, p->opts->stop_ids[i])));
    return result;
}

static void decode_one(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor **out_carries)
{
    (void)graph;
    program *p = context;
    for (int i = 0; i < p->num_caches; i++) out_carries[CACHES + i] = carries[CACHES + i];
    ct_model_cache cache = {.start = carries[COLUMN],
                            .kv_positions = positions_of_columns(p, p->shape->capacity),
                            .keys = out_carries + CACHES,
                            .values = out_carries + CACHES + p->model->config.num_layers};
    ct_model_opts opts = {.compute_dtype = p->opts->dtype, .cache = &cache};
    ct_tensor *position = ct_sub(ct_broadcast_like(carries[COLUMN], p->pads), p->pads);
    ct_tensor *hidden = ct_model_hidden(p->model, p->params, ct_unsqueeze(carries[TOKEN], "seq", 1),
                                        ct_unsqueeze(position, "seq", 1), NULL, &opts);
    ct_tensor *next = choose(p, hidden, position, &opts);
    out_carries[STEP] = ct_add_scalar(carries[STEP], 1);
    out_carries[COLUMN] = ct_add_scalar(carries[COLUMN], 1);
    out_carries[TOKEN] = next;
    out_carries[FINISHED] = ct_or(carries[FINISHED], is_stop(p, next));
    out_carries[CHOSEN] =
        ct_dynamic_update_slice(carries[CHOSEN], ct_unsqueeze(next, "step", 1), "step", carries[STEP]);
}

ct_status *ct_decode_build(const ct_model *model, const ct_generate_shape *shape, const ct_generate_opts *opts,
                           ct_graph **out_graph)
{
    /* one row of scores per head: nothing to save by going over the keys in blocks */
    static const ct_kernels whole_rows = {.attention = CT_KERNEL_DEFINITION};
    program p = begin("decode", model, shape, opts);
    ct_kernels_attach(p.graph, &whole_rows);
    char axes[128];
    snprintf(axes, sizeof(axes), "batch kv_seq=%lld kv_heads=%lld head_dim=%lld", (long long)shape->capacity,
             (long long)model->config.num_kv_heads, (long long)model->config.head_dim);
    int num_carries = CACHES + p.num_caches;
    ct_tensor **carries = ct_alloc((size_t)(2 * num_carries) * sizeof(ct_tensor *)), **last = carries + num_carries;
    for (int i = 0; i < p.num_caches; i++) {
        char name[32];
        carries[CACHES + i] = ct_input(p.graph, cache_name(i, name), opts->dtype, axes);
    }
    carries[TOKEN] = ct_input(p.graph, "next", CT_DTYPE_S32, "batch");
    p.pads = ct_input(p.graph, "pads", CT_DTYPE_S32, "batch");
    carries[COLUMN] = ct_input(p.graph, "column", CT_DTYPE_S32, "");
    carries[FINISHED] = ct_convert(ct_input(p.graph, "finished", CT_DTYPE_S32, "batch"), CT_DTYPE_BOOL);
    p.sampling = ct_sampling_declare(p.graph, &opts->sampling);
    carries[STEP] = ct_scalar(p.graph, CT_DTYPE_S32, 0);
    carries[CHOSEN] = ct_full(p.graph, CT_DTYPE_S32, "batch step", -1);
    ct_while(p.graph, num_carries, carries, wants_more, decode_one, &p, last);
    for (int i = 0; i < p.num_caches; i++) {
        char name[32];
        ct_output(p.graph, cache_name(i, name), last[CACHES + i], carries[CACHES + i]);
    }
    ct_output(p.graph, "next", last[TOKEN], NULL);
    ct_output(p.graph, "chosen", last[CHOSEN], NULL);
    free(carries);
    return finish(&p, out_graph);
}
