/* What goes into attention's manual regions and how it lies there; forms' custom derivatives; the all-gather form. */
#include "kernels/attention/context.h"

#include <string.h>

#include "graph/ops.h"
#include "kernels/attention/definition.h"
#include "spmd/parallel.h"

bool ct__context_wanted(const ct_graph *graph)
{
    const ct_parallel *parallel = ct_parallel_of(graph);
    return parallel && parallel->mesh.degrees[CT_MESH_CP] > 1 && !graph->manual_depth;
}

/* The mesh axes of a group word from the skip-th on, with a separator between. */
static const char *mesh_axes_text(ct_graph *graph, const char *word, int skip, const char *separator)
{
    const ct_mesh *mesh = &ct_parallel_of(graph)->mesh;
    int axes[CT_MAX_MESH_AXES], count = ct_mesh_find(mesh, word, strlen(word), axes);
    const char *text = "";
    for (int i = skip; i < count; i++)
        text = ct_arena_printf(&graph->arena, "%s%s%s", text, i > skip ? separator : "", mesh->axes[axes[i]].name);
    return text;
}

static const char *placement_of(ct_graph *graph, int rank, const ct_axis *axes)
{
    static const char *const words[][2] = {
        {"batch", "dp"}, {"seq", "cp"}, {"kv_seq", "cp"}, {"heads", "tp"}, {"kv_heads", "tp_kv"}};
    const char *text = "";
    for (int i = 0; i < rank; i++)
        for (size_t j = 0; j < CT_COUNT(words); j++) {
            if (strcmp(axes[i].name, words[j][0]) != 0) continue;
            int64_t parts = ct_mesh_size(&ct_parallel_of(graph)->mesh, words[j][1]);
            if (j == 0 && axes[i].size % parts) continue; /* a batch too small for the mesh: the same on all */
            const char *mesh_axes = mesh_axes_text(graph, words[j][1], 0, "+");
            if (*mesh_axes) text = ct_arena_printf(&graph->arena, "%s%s=%s ", text, axes[i].name, mesh_axes);
        }
    return text;
}

/* Inputs, in the order of ct__context; fills context. */
static void collect(ct__context *context, ct_tensor *q, ct_tensor *k, ct_tensor *v, ct_tensor **inputs)
{
    ct_graph *graph = q->graph;
    ct_attention_opts *opts = &context->opts;
    int count = 0;
    inputs[count++] = q;
    inputs[count++] = k;
    inputs[count++] = v;
    bool is_masked = opts->causal || opts->window > 0;
    if (is_masked && (context->degree > 1 || opts->positions || opts->kv_positions)) {
        /* made from whole arrays, so that each device gets its own */
        inputs[count++] = opts->positions = ct__attention_positions(opts->positions, q, "seq");
        inputs[count++] = opts->kv_positions = ct__attention_positions(opts->kv_positions, k, "kv_seq");
    } else {
        opts->positions = opts->kv_positions = NULL;
    }
    if (opts->segments) {
        inputs[count++] = opts->segments;
        inputs[count++] = opts->kv_segments;
    }
    context->num_inputs = count;
    if (!context->is_region) return;
    for (int i = 0; i < count; i++) context->placements[i] = placement_of(graph, inputs[i]->rank, inputs[i]->axes);
    context->rows_placement = placement_of(graph, 3, (ct_axis[]){{"batch", q->axes[0].size}, {"heads", 0}, {"seq", 0}});
    const ct_mesh *mesh = &ct_parallel_of(graph)->mesh;
    context->cp = mesh_axes_text(graph, "cp", 0, " ");
    context->shared = mesh_axes_text(graph, "tp", mesh->num_tp_kv_axes, " ");
}

/* Where devices share kv heads, each of them must have one only: several would be paired with the wrong heads. */
static bool groups_fit(const char *loc, const ct__context *context, const ct_tensor *k)
{
    int64_t kv_heads = ct_tensor_axis_size(k, "kv_heads");
    if (!*context->shared) return true;
    int64_t parts = ct_mesh_size(&ct_parallel_of(k->graph)->mesh, "tp_kv");
    if (kv_heads == parts) return true;
    ct__fail(k->graph, loc, "attention",
             "heads are split over the mesh axes \"%s\" further than kv_heads = %lld, which leaves %lld to a device "
             "and must leave one: the tensor parallel degree must divide kv_heads or be a multiple of it",
             context->shared, (long long)kv_heads, (long long)(kv_heads / parts));
    return false;
}

ct__context_parts ct__context_parts_of(const ct__context *context, ct_tensor *const *args)
{
    ct__context_parts parts = {.q = args[0], .k = args[1], .v = args[2], .opts = context->opts};
    int next = 3;
    if (parts.opts.positions) {
        parts.opts.positions = args[next++];
        parts.opts.kv_positions = args[next++];
    }
    if (parts.opts.segments) {
        parts.opts.segments = args[next++];
        parts.opts.kv_segments = args[next++];
    }
    return parts;
}

ct_tensor *ct__context_pass_on(const ct__context *context, ct_tensor *x)
{
    int64_t degree = context->degree;
    int64_t(*pairs)[2] = ct_arena_alloc(&x->graph->arena, (size_t)degree * sizeof(*pairs));
    for (int64_t i = 0; i < degree; i++) {
        pairs[i][0] = i;
        pairs[i][1] = (i + 1) % degree;
    }
    return ct_collective_permute(x, context->cp, (int)degree, (const int64_t(*)[2])pairs);
}

static ct_tensor *gather(const ct__context *context, ct_tensor *x)
{
    return x && context->degree > 1 ? ct_all_gather(x, "kv_seq", context->cp) : x;
}

static ct__context_parts gathered_parts(const ct__context *context, ct_tensor *const *args)
{
    ct__context_parts parts = ct__context_parts_of(context, args);
    parts.k = gather(context, parts.k);
    parts.v = gather(context, parts.v);
    parts.opts.kv_positions = gather(context, parts.opts.kv_positions);
    parts.opts.kv_segments = gather(context, parts.opts.kv_segments);
    return parts;
}

/* ---- regions ---- */

/* body at local sizes; outputs are the result's or the inputs' own kind. */
static void run_body(ct_graph *graph, const ct__context *context, ct_manual_body *body, int num_inputs,
                     ct_tensor *const *inputs, const char *const *placements, int num_outputs,
                     const char *const *output_placements, ct_tensor **out_outputs)
{
    if (!context->is_region) {
        body(graph, (void *)(uintptr_t)context, inputs, out_outputs);
        return;
    }
    ct_manual_opts region = {.num_inputs = num_inputs,
                             .num_outputs = num_outputs,
                             .inputs = inputs,
                             .input_placements = placements,
                             .output_placements = output_placements};
    ct_manual(graph, &region, body, (void *)(uintptr_t)context, out_outputs);
}

static void definition_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    const ct__context *context = opaque;
    ct__context_parts parts = gathered_parts(context, args);
    if (parts.opts.out_logsumexp) parts.opts.out_logsumexp = &out_results[1];
    out_results[0] = ct__attention_plain(parts.q, parts.k, parts.v, &parts.opts);
}

/* ---- forms, with custom derivatives around the regions: the backward pass does not run forward again ---- */

static ct__context_parts parts_for_form(const ct__context *context, ct_tensor *const *args)
{
    return context->form->gathers ? gathered_parts(context, args) : ct__context_parts_of(context, args);
}

static void forward_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    const ct__context *context = opaque;
    ct__context_parts parts = parts_for_form(context, args);
    context->form->forward(context, &parts, out_results);
}

static void fill_backward(const ct__context *context, ct_tensor *const *args, ct_tensor *d_lse, ct_tensor **out_results)
{
    ct__context_parts parts = parts_for_form(context, args);
    ct_tensor *const *saved = args + context->num_inputs;
    context->form->backward(
        context, &parts,
        &(ct__attention_saved){.result = saved[0], .lse = saved[1], .d_result = saved[2], .d_lse = d_lse}, out_results);
    for (int i = 1; i < 3; i++) {
        if (context->form->gathers && context->degree > 1)
            out_results[i] = ct_reduce_scatter(out_results[i], "kv_seq", context->cp);
        if (*context->shared) out_results[i] = ct_pending_sum(out_results[i], context->shared);
    }
}

/* args: forward's, result, log-sum-exp, cotangent of the result, and that of the log-sum-exp when it has one */
static void backward_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    fill_backward(opaque, args, NULL, out_results);
}

static void backward_body_with_rows(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    const ct__context *context = opaque;
    fill_backward(context, args, args[context->num_inputs + 3], out_results);
}

static void custom_forward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    const ct__context *context = opaque;
    run_body(graph, context, forward_body, context->num_inputs, inputs, context->placements, 2,
             (const char *[]){context->placements[0], context->rows_placement}, out_outputs);
}

static void custom_backward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor *const *outputs,
                            ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    const ct__context *context = opaque;
    ct_tensor *args[CT__CONTEXT_MAX_INPUTS + 4] = {0};
    const char *placements[CT__CONTEXT_MAX_INPUTS + 4];
    int count = context->num_inputs;
    for (int i = 0; i < count; i++) {
        args[i] = inputs[i];
        placements[i] = context->placements[i];
    }
    args[count] = outputs[0];
    placements[count++] = context->placements[0];
    args[count] = outputs[1];
    placements[count++] = context->rows_placement;
    args[count] = cotangents[0] ? cotangents[0] : ct_full_like(outputs[0], 0);
    placements[count++] = context->placements[0];
    if (cotangents[1]) {
        args[count] = cotangents[1];
        placements[count++] = context->rows_placement;
    }
    run_body(graph, context, cotangents[1] ? backward_body_with_rows : backward_body, count, args, placements, 3,
             context->placements, out_gradients);
}

ct_tensor *ct__context_attention(const char *loc, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                                 const ct_attention_opts *opts, ct_kernel_form form)
{
    ct_graph *graph = q->graph;
    const ct_parallel *parallel = ct_parallel_of(graph);
    ct__context *context = CT_ARENA_NEW(&graph->arena, ct__context);
    context->opts = *opts;
    context->kernels = ct_kernels_of(graph);
    context->is_blockwise = form != CT_KERNEL_DEFINITION;
    context->is_region = parallel && !graph->manual_depth;
    context->degree = context->is_region ? parallel->mesh.degrees[CT_MESH_CP] : 1;
    context->cp = context->shared = "";
    bool is_ring = context->degree > 1 && parallel->rotate == CT_ROTATE_RING;
    switch (form) {
    case CT_KERNEL_MOSAIC: context->form = is_ring ? &ct__attention_mosaic_ring : &ct__attention_mosaic; break;
    case CT_KERNEL_PORTABLE: context->form = is_ring ? &ct__attention_ring : &ct__attention_portable; break;
    default: context->form = is_ring ? &ct__attention_ring : NULL;
    }
    ct_tensor *inputs[CT__CONTEXT_MAX_INPUTS] = {0}, *outputs[2] = {0};
    collect(context, q, k, v, inputs);
    if (!groups_fit(loc, context, k)) return graph->poison;
    if (context->form)
        ct__custom_vjp(loc, graph, context->num_inputs, inputs, 2, outputs, custom_forward, custom_backward, context);
    else
        run_body(graph, context, definition_body, context->num_inputs, inputs, context->placements,
                 opts->out_logsumexp ? 2 : 1, (const char *[]){context->placements[0], context->rows_placement},
                 outputs);
    if (opts->checkpoint_name && outputs[1]) ct_checkpoint_name(outputs[1], opts->checkpoint_name);
    if (opts->out_logsumexp) *opts->out_logsumexp = ct_convert(outputs[1], CT_DTYPE_F32);
    return outputs[0];
}
