/* Context parallel attention: what goes into the manual regions and how it lies there; the all-gather form. */
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
    if (opts->causal || opts->window > 0) { /* made from whole arrays, so that each device gets its own */
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
    for (int i = 0; i < count; i++) context->placements[i] = placement_of(graph, inputs[i]->rank, inputs[i]->axes);
    context->rows_placement = placement_of(graph, 3, (ct_axis[]){{"batch", 0}, {"heads", 0}, {"seq", 0}});

    const ct_mesh *mesh = &ct_parallel_of(graph)->mesh;
    context->degree = mesh->degrees[CT_MESH_CP];
    context->cp = mesh_axes_text(graph, "cp", 0, " ");
    context->shared = mesh_axes_text(graph, "tp", mesh->num_tp_kv_axes, " ");
}

/* Where devices share kv heads, each of them must have one only: several would be paired with the wrong heads. */
static bool groups_fit(const char *loc, const ct__context *context, const ct_tensor *k)
{
    int64_t kv_heads = ct_tensor_axis_size(k, "kv_heads");
    int64_t parts = ct_mesh_size(&ct_parallel_of(k->graph)->mesh, "tp_kv");
    if (!*context->shared || kv_heads == parts) return true;
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

static ct_tensor *gather(const ct__context *context, ct_tensor *x)
{
    return x ? ct_all_gather(x, "kv_seq", context->cp) : NULL;
}

static void gathered_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    const ct__context *context = opaque;
    ct__context_parts parts = ct__context_parts_of(context, args);
    parts.opts.kv_positions = gather(context, parts.opts.kv_positions);
    parts.opts.kv_segments = gather(context, parts.opts.kv_segments);
    if (parts.opts.out_logsumexp) parts.opts.out_logsumexp = &out_results[1];
    out_results[0] = ct__attention_plain(parts.q, gather(context, parts.k), gather(context, parts.v), &parts.opts);
}

ct_tensor *ct__context_attention(const char *loc, ct_tensor *q, ct_tensor *k, ct_tensor *v,
                                 const ct_attention_opts *opts)
{
    ct_graph *graph = q->graph;
    ct__context *context = CT_ARENA_NEW(&graph->arena, ct__context);
    context->opts = *opts;
    ct_tensor *inputs[CT__CONTEXT_MAX_INPUTS], *outputs[2];
    collect(context, q, k, v, inputs);
    if (!groups_fit(loc, context, k)) return graph->poison;
    if (ct_parallel_of(graph)->rotate == CT_ROTATE_RING) {
        ct__context_ring(loc, graph, context, inputs, outputs);
    } else {
        ct_manual_opts region = {.num_inputs = context->num_inputs,
                                 .num_outputs = opts->out_logsumexp ? 2 : 1,
                                 .inputs = inputs,
                                 .input_placements = context->placements,
                                 .output_placements =
                                     (const char *[]){context->placements[0], context->rows_placement}};
        ct__manual(loc, graph, &region, gathered_body, context, outputs);
    }
    if (opts->out_logsumexp) *opts->out_logsumexp = ct_convert(outputs[1], CT_DTYPE_F32);
    return outputs[0];
}
