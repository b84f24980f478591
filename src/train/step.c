/* The training step and the scoring program as graphs. */
#include "train/step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autodiff/grad.h"
#include "base/alloc.h"
#include "graph/node.h"
#include "graph/ops.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "spmd/points.h"

typedef struct step_builder {
    const ct_model *model;
    const ct_step_opts *opts;
    ct_tensor **params;
    ct_tensor *num_valid;
} step_builder;

static void pass_through(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    (void)graph;
    (void)context;
    memcpy(out_outputs, inputs, 2 * sizeof(*inputs));
}

static void await_both(ct_graph *graph, void *context, ct_tensor *const *inputs, ct_tensor *const *outputs,
                       ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    (void)graph;
    (void)context;
    (void)inputs;
    (void)outputs;
    if (cotangents[0] && cotangents[1]) {
        ct_optimization_barrier(2, cotangents, out_gradients);
    } else {
        memcpy(out_gradients, cotangents, 2 * sizeof(*cotangents));
    }
}

/* Lets the backward pass enter the layers only when the head's gradient is reduced. Nothing else waits for that
 * gradient before the optimizer, so XLA leaves it whole, as large as the vocabulary, through all layers. */
static void reduce_head_first(ct_graph *graph, const ct_model *model, ct_tensor **hidden, ct_tensor **params)
{
    int head = ct_model_head_index(model);
    ct_tensor *tied[2] = {*hidden, params[head]};
    ct_custom_vjp(graph, 2, tied, 2, tied, pass_through, await_both, NULL);
    *hidden = tied[0];
    params[head] = tied[1];
}

/* The sum of the losses of all labels. batch: tokens, labels, positions, segments, each [batch seq]. */
static ct_tensor *loss_sum(ct_graph *graph, const step_builder *builder, ct_tensor *const *batch,
                           const ct_remat_policy *remat)
{
    const ct_model *model = builder->model;
    ct_model_opts opts = {.compute_dtype = builder->opts->compute_dtype, .remat = remat};
    ct_tensor *segments = builder->opts->document_mask ? batch[3] : NULL;
    ct_tensor *hidden = ct_model_hidden(model, builder->params, batch[0], batch[2], segments, &opts);
    size_t params_size = (size_t)model->num_params * sizeof(ct_tensor *);
    ct_tensor **params = memcpy(ct_alloc(params_size), builder->params, params_size);
    const ct_parallel *parallel = ct_parallel_of(graph);
    bool is_head_frozen = ct_model_head_index(model) < model->num_frozen;
    if (parallel && !parallel->reduce_once && !is_head_frozen) reduce_head_first(graph, model, &hidden, params);
    ct_tensor *head = ct_model_head(model, params, &opts);
    free(params);
    ct_scope_push(graph, "loss");
    ct_linear_cross_entropy_opts loss = {.frozen = is_head_frozen};
    ct_tensor *sum = ct_linear_cross_entropy_sum(hidden, head, batch[1], &loss);
    ct_scope_pop(graph);
    return sum;
}

/* The parameters that are trained, the last of all. */
static ct_tensor **trained(const step_builder *builder, int *out_count)
{
    *out_count = builder->model->num_params - builder->model->num_frozen;
    return builder->params + builder->model->num_frozen;
}

/* The loss of one microbatch as its share of the global mean, and its gradients. */
static void microbatch(ct_graph *graph, const step_builder *builder, ct_tensor *const *batch, ct_tensor **out_loss,
                       ct_tensor **out_gradients)
{
    int num_trained;
    ct_tensor **params = trained(builder, &num_trained);
    ct_tensor *sum = loss_sum(graph, builder, batch, &builder->opts->remat);
    ct_scope_push(graph, "loss");
    *out_loss = ct_div(sum, builder->num_valid);
    ct_scope_pop(graph);
    /* an error stays in the graph, and its exits report it */
    ct_status_free(ct_grad(graph, *out_loss, params, num_trained, out_gradients));
}

/* One turn of accumulation: carries are the loss and the gradients so far. */
static void accumulate(ct_graph *graph, void *context, ct_tensor *const *carries, ct_tensor *const *slices,
                       ct_tensor **out_carries, ct_tensor **out_slices)
{
    (void)out_slices;
    const step_builder *builder = context;
    int num_trained;
    trained(builder, &num_trained);
    microbatch(graph, builder, slices, &out_carries[0], out_carries + 1);
    for (int i = 0; i < num_trained + 1; i++) out_carries[i] = ct_add(carries[i], out_carries[i]);
}

static void loss_and_gradients(ct_graph *graph, step_builder *builder, ct_tensor *const *batch, ct_tensor **out_loss,
                               ct_tensor **out_gradients)
{
    int num_trained;
    ct_tensor **params = trained(builder, &num_trained);
    if (builder->opts->num_microbatches == 1) {
        microbatch(graph, builder, batch, out_loss, out_gradients);
        return;
    }
    ct_tensor **carries = ct_alloc((size_t)(num_trained + 1) * sizeof(*carries));
    carries[0] = ct_scalar(graph, CT_DTYPE_F32, 0);
    for (int i = 0; i < num_trained; i++) carries[i + 1] = ct_full_like(params[i], 0);
    ct_scan_opts opts = {
        .axis = "accum", .num_carries = num_trained + 1, .carries = carries, .num_inputs = 4, .inputs = batch};
    ct_scan(graph, &opts, accumulate, builder, carries, NULL);
    *out_loss = carries[0];
    /* gradients that were not reduced in each microbatch are now */
    bool is_due = builder->opts->parallel && builder->opts->parallel->reduce_once;
    for (int i = 0; i < num_trained; i++)
        out_gradients[i] = is_due ? ct_store(carries[i + 1], params[i]) : carries[i + 1];
    free(carries);
}

static ct_tensor *element(ct_tensor *vector, const char *axis, int64_t index)
{
    return ct_squeeze(ct_slice(vector, axis, index, index + 1), axis);
}

/* State inputs named PREFIX + parameter name, one per parameter that is trained. */
static void state_inputs(const ct_model *model, ct_graph *graph, const char *prefix, ct_dtype dtype, ct_tensor **out)
{
    for (int i = model->num_frozen; i < model->num_params; i++) {
        char *name = ct_asprintf("%s%s", prefix, model->params[i].name);
        *out++ = ct_input(graph, name, dtype, model->params[i].axes);
        free(name);
    }
}

static void state_output(ct_graph *graph, ct_tensor *updated, ct_tensor *before, bool on_host)
{
    int index = ct_graph_num_outputs(graph);
    char *name = ct_asprintf("state.%d", index);
    ct_output(graph, name, on_host ? ct_to_host(updated) : updated, before);
    if (on_host) ct_graph_set_output_on_host(graph, index);
    free(name);
}

/* tokens, labels, positions, segments: inputs of those axes. */
static void batch_inputs(ct_graph *graph, const char *axes, ct_tensor **out_batch)
{
    static const char *const names[4] = {"tokens", "labels", "positions", "segments"};
    for (int i = 0; i < 4; i++) out_batch[i] = ct_input(graph, names[i], CT_DTYPE_S32, axes);
}

static void build_step(ct_graph *graph, const ct_model *model, const ct_step_opts *opts, ct_tensor **tensors)
{
    int num_params = model->num_params, n = num_params - model->num_frozen; /* n: trained */
    ct_tensor **all_params = tensors, **params = tensors + model->num_frozen;
    ct_tensor **m = tensors + num_params, **v = m + n, **gradients = v + n, **new_m = gradients + n,
              **new_v = new_m + n;
    ct_model_inputs(model, graph, opts->param_dtype, all_params);
    state_inputs(model, graph, "exp_avg.", opts->moment_dtype, m);
    state_inputs(model, graph, "exp_avg_sq.", opts->moment_dtype, v);
    ct_tensor *halted = ct_input(graph, "halted", CT_DTYPE_S32, "");
    ct_graph_declare_axis(graph, "batch", opts->batch);
    ct_graph_declare_axis(graph, "seq", opts->seq_len);
    ct_graph_declare_axis(graph, "accum", opts->num_microbatches);
    const char *axes = opts->num_microbatches > 1 ? "accum batch seq" : "batch seq";
    ct_tensor *batch[4];
    batch_inputs(graph, axes, batch);
    ct_tensor *scalars = ct_input(graph, "scalars", CT_DTYPE_F32, "scalar=4");
    ct_adamw_step step = {.lr = element(scalars, "scalar", CT_STEP_LR),
                          .bias_correction1 = element(scalars, "scalar", CT_STEP_BIAS1),
                          .bias_correction2 = element(scalars, "scalar", CT_STEP_BIAS2)};

    step_builder builder = {
        .model = model, .opts = opts, .params = all_params, .num_valid = element(scalars, "scalar", CT_STEP_NUM_VALID)};
    ct_tensor *loss;
    loss_and_gradients(graph, &builder, batch, &loss, gradients);

    ct_scope_push(graph, "optimizer");
    ct_tensor *norm = ct_gradient_norm(gradients, n);
    ct_tensor *running = ct_eq(halted, ct_scalar_like(halted, 0));
    ct_tensor *finite = ct_and(running, ct_and(ct_is_finite(loss), ct_is_finite(norm)));
    ct_tensor *coefficient = isinf(opts->max_norm) ? NULL : ct_clip_coefficient(norm, opts->max_norm);
    step.applies = finite;
    ct_tensor **new_params = gradients; /* each gradient is used up by its own update */
    for (int i = 0; i < n; i++) {
        ct_tensor *gradient = coefficient ? ct_mul(ct_convert(gradients[i], CT_DTYPE_F32), coefficient) : gradients[i];
        ct_tensor *before[2] = {m[i], v[i]};
        for (int k = 0; k < 2 && opts->moments_on_host; k++) {
            ct_graph_set_input_on_host(graph, before[k]);
            before[k] = ct_to_device(before[k]);
        }
        ct_adamw_update(&opts->adamw, &step, params[i], gradient, before[0], before[1], &new_params[i], &new_m[i],
                        &new_v[i]);
    }
    for (int i = 0; i < n; i++) state_output(graph, new_params[i], params[i], false);
    for (int i = 0; i < n; i++) state_output(graph, new_m[i], m[i], opts->moments_on_host);
    for (int i = 0; i < n; i++) state_output(graph, new_v[i], v[i], opts->moments_on_host);
    ct_output(graph, "halted", ct_convert(ct_not(finite), CT_DTYPE_S32), halted);
    ct_tensor *metrics[CT_STEP_NUM_METRICS] = {loss, norm, ct_convert(finite, CT_DTYPE_F32)};
    for (int i = 0; i < CT_STEP_NUM_METRICS; i++) metrics[i] = ct_unsqueeze(metrics[i], "metric", 0);
    ct_output(graph, "metrics", ct_concat(metrics, CT_STEP_NUM_METRICS, "metric"), NULL);
    ct_scope_pop(graph);
}

/* ---- where inputs and outputs lie ---- */

typedef ct_sharding sharding_fn(const ct_parallel *parallel, int rank, const ct_axis *axes);

static void place_input(ct_graph *graph, int index, sharding_fn *of)
{
    const ct_parallel *parallel = ct_parallel_of(graph);
    if (!parallel || ct_graph_has_failed(graph)) return;
    const ct_tensor *input = ct_graph_input_tensor(graph, index);
    ct_sharding sharding = of ? of(parallel, input->rank, input->axes) : (ct_sharding){0};
    ct_parallel_set_input(graph, input, &sharding);
}

static void place_output(ct_graph *graph, int index, sharding_fn *of)
{
    const ct_parallel *parallel = ct_parallel_of(graph);
    if (!parallel || ct_graph_has_failed(graph)) return;
    const ct_tensor *output = ct_graph_output_tensor(graph, index);
    ct_sharding sharding = of ? of(parallel, output->rank, output->axes) : (ct_sharding){0};
    ct_parallel_set_output(graph, index, &sharding);
}

/* Parameters as stored, moments as they are, the batch as activations, the rest whole on every device. */
static void place_step(ct_graph *graph, const ct_model *model)
{
    int num_params = model->num_params, num_frozen = model->num_frozen;
    int num_state = num_params + 2 * (num_params - num_frozen);
    for (int i = 0; i < num_state; i++) {
        sharding_fn *of = i < num_params ? ct_parallel_stored : ct_parallel_moment;
        place_input(graph, i, of);
        if (i >= num_frozen) place_output(graph, i - num_frozen, of);
    }
    for (int i = num_state; i < ct_graph_num_inputs(graph); i++)
        place_input(graph, i, i > num_state && i <= num_state + 4 ? ct_parallel_activation : NULL);
    for (int i = num_state - num_frozen; i < ct_graph_num_outputs(graph); i++) place_output(graph, i, NULL);
}

static void place_score(ct_graph *graph, int num_params, const ct_score_opts *opts)
{
    for (int i = 0; i < ct_graph_num_inputs(graph); i++)
        place_input(graph, i, i < num_params ? ct_parallel_stored : ct_parallel_activation);
    int first_gradient = opts->logits ? 3 : 2;
    for (int i = 0; i < ct_graph_num_outputs(graph); i++)
        place_output(graph, i, i == 0 ? NULL : i < first_gradient ? ct_parallel_activation : ct_parallel_gradient);
}

/* The finished graph, or its error. */
static ct_status *finish(ct_graph *graph, ct_localize_report *report, ct_graph **out_graph)
{
    const ct_parallel *parallel = ct_parallel_of(graph);
    ct_status *status = ct_graph_check(graph);
    if (!status && parallel && parallel->partition == CT_PARTITION_MANUAL) status = ct_localize(graph, report);
    if (status)
        ct_graph_free(graph);
    else
        *out_graph = graph;
    return status;
}

ct_status *ct_train_step_build(const ct_model *model, const ct_step_opts *opts, ct_graph **out_graph)
{
    *out_graph = NULL;
    ct_graph *graph = ct_graph_new("train_step");
    ct_parallel_attach(graph, opts->parallel);
    ct_kernels_attach(graph, &opts->kernels);
    ct_tensor **tensors = ct_alloc((size_t)model->num_params * 6 * sizeof(*tensors));
    build_step(graph, model, opts, tensors);
    place_step(graph, model);
    free(tensors);
    return finish(graph, opts->report, out_graph);
}

ct_status *ct_validation_build(const ct_model *model, const ct_step_opts *opts, ct_graph **out_graph)
{
    *out_graph = NULL;
    ct_graph *graph = ct_graph_new("validation");
    ct_parallel_attach(graph, opts->parallel);
    ct_kernels_attach(graph, &opts->kernels);
    ct_tensor **params = ct_alloc((size_t)model->num_params * sizeof(*params)), *batch[4];
    ct_model_inputs(model, graph, opts->param_dtype, params);
    ct_graph_declare_axis(graph, "batch", opts->batch);
    ct_graph_declare_axis(graph, "seq", opts->seq_len);
    batch_inputs(graph, "batch seq", batch);
    step_builder builder = {.model = model, .opts = opts, .params = params};
    ct_output(graph, "loss_sum", loss_sum(graph, &builder, batch, NULL), NULL);
    for (int i = 0; i < ct_graph_num_inputs(graph); i++)
        place_input(graph, i, i < model->num_params ? ct_parallel_stored : ct_parallel_activation);
    place_output(graph, 0, NULL);
    free(params);
    return finish(graph, NULL, out_graph);
}

static void build_score(ct_graph *graph, const ct_model *model, const ct_score_opts *opts, ct_tensor **params,
                        ct_tensor **gradients)
{
    ct_model_inputs(model, graph, CT_DTYPE_F32, params);
    ct_graph_declare_axis(graph, "batch", opts->batch);
    ct_graph_declare_axis(graph, "seq", opts->seq_len);
    ct_tensor *tokens = ct_input(graph, "tokens", CT_DTYPE_S32, "batch seq");
    ct_tensor *labels = ct_input(graph, "labels", CT_DTYPE_S32, "batch seq");
    ct_tensor *positions = ct_iota(graph, CT_DTYPE_S32, "batch seq", "seq");
    ct_tensor *hidden = ct_model_hidden(model, params, tokens, positions, NULL, NULL);
    ct_tensor *logits = NULL, *nll;
    if (opts->logits) {
        logits = ct_model_logits(model, params, hidden, NULL);
        nll = ct_cross_entropy(logits, labels);
    } else {
        nll = ct_linear_cross_entropy(hidden, ct_model_head(model, params, NULL), labels, NULL);
    }
    ct_tensor *counted = ct_convert(ct_ne(labels, ct_scalar_like(labels, CT_IGNORE_LABEL)), CT_DTYPE_F32);
    ct_tensor *loss = ct_div(ct_sum(nll, "batch seq"), ct_sum(counted, "batch seq"));
    ct_output(graph, "loss", loss, NULL);
    ct_output(graph, "logprobs", ct_neg(nll), NULL);
    if (logits) ct_output(graph, "logits", logits, NULL);
    if (!opts->gradients) return;
    ct_status_free(ct_grad(graph, loss, params, model->num_params, gradients));
    for (int i = 0; i < model->num_params; i++) ct_output(graph, model->params[i].name, gradients[i], NULL);
}

ct_status *ct_score_build(const ct_model *model, const ct_score_opts *opts, ct_graph **out_graph)
{
    *out_graph = NULL;
    ct_graph *graph = ct_graph_new("score");
    ct_parallel_attach(graph, opts->parallel);
    ct_kernels_attach(graph, &opts->kernels);
    ct_tensor **tensors = ct_alloc((size_t)model->num_params * 2 * sizeof(*tensors));
    build_score(graph, model, opts, tensors, tensors + model->num_params);
    place_score(graph, model->num_params, opts);
    free(tensors);
    return finish(graph, NULL, out_graph);
}
