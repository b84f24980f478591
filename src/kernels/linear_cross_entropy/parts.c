/* The loss of each row by the forms that save the log-sum-exp, and its derivative.
 *
 * On a mesh both passes are manual regions: each device has its rows and its part of the vocabulary, and what goes
 * between devices is one maximum and two sums per row. dx over the vocabulary's devices, and dw over those of the rows,
 * are pending sums, which localize makes where they are wanted (scattered, under sequence parallel and FSDP).
 * Source: Shoeybi et al. 2019, "Megatron-LM" (the vocabulary in parts).
 */
#include "graph/ops.h"
#include "kernels/linear_cross_entropy/loss.h"
#include "spmd/points.h"

static ct__loss_part part_of(const ct__loss *loss, ct_tensor *const *inputs)
{
    ct__loss_part part = {.loss = loss, .hidden = inputs[0], .weight = inputs[1], .labels = inputs[2]};
    part.vocab = ct_tensor_axis_size(part.weight, "vocab");
    if (loss->vocab_axes && *loss->vocab_axes)
        part.offset = ct_mul_scalar(ct_mesh_index(part.hidden->graph, loss->vocab_axes), (double)part.vocab);
    return part;
}

/* ---- forward ---- */

/* Both summed over the devices of the vocabulary at once. */
static void sum_together(const char *mesh_axes, ct_tensor **a, ct_tensor **b)
{
    ct_tensor *both = ct_concat((ct_tensor *[]){ct_unsqueeze(*a, "sum", 0), ct_unsqueeze(*b, "sum", 0)}, 2, "sum");
    both = ct_all_reduce(both, CT_REDUCTION_SUM, mesh_axes);
    *a = ct_squeeze(ct_slice(both, "sum", 0, 1), "sum");
    *b = ct_squeeze(ct_slice(both, "sum", 1, 2), "sum");
}

static void forward_body(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_results)
{
    (void)graph;
    const ct__loss *loss = opaque;
    ct__loss_part part = part_of(loss, inputs);
    ct_tensor *logsumexp, *picked;
    loss->form->forward(&part, &logsumexp, &picked);
    if (part.offset) {
        ct_tensor *max = ct_all_reduce(logsumexp, CT_REDUCTION_MAX, loss->vocab_axes);
        ct_tensor *total = ct_exp(ct_sub(logsumexp, max));
        sum_together(loss->vocab_axes, &total, &picked);
        logsumexp = ct_add(ct_log(total), max);
    }
    out_results[0] = ct__loss_of_rows(logsumexp, picked, part.labels, loss->z_loss);
    out_results[1] = logsumexp;
}

static void forward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor **out_outputs)
{
    const ct__loss *loss = opaque;
    if (!loss->rows_placement) {
        forward_body(graph, opaque, inputs, out_outputs);
        return;
    }
    const char *rows = loss->rows_placement;
    ct_manual_opts region = {.num_inputs = 3,
                             .num_outputs = 2,
                             .inputs = (ct_tensor *[]){inputs[0], ct_padded(inputs[1]), inputs[2]},
                             .input_placements = (const char *[]){rows, loss->weight_placement, rows},
                             .output_placements = (const char *[]){rows, rows}};
    ct_manual(graph, &region, forward_body, opaque, out_outputs);
}

/* ---- backward ---- */

/* args: the inputs, log-sum-exp, the loss' cotangent; d_logsumexp may be NULL */
static void fill_backward(const ct__loss *loss, ct_tensor *const *args, ct_tensor *d_logsumexp, ct_tensor **out_results)
{
    ct__loss_part part = part_of(loss, args);
    ct__loss_cotangents rows = {.logsumexp = args[3]};
    rows.of_label = ct_select(ct__loss_counted(part.labels), args[4], ct_scalar_like(args[4], 0));
    rows.of_softmax = rows.of_label;
    if (loss->z_loss > 0)
        rows.of_softmax = ct_mul(rows.of_softmax, ct_add_scalar(ct_mul_scalar(rows.logsumexp, 2 * loss->z_loss), 1));
    if (d_logsumexp) rows.of_softmax = ct_add(rows.of_softmax, d_logsumexp);
    loss->form->backward(&part, &rows, out_results);
    if (!loss->rows_placement) return;
    out_results[0] = ct_pending_sum(out_results[0], loss->vocab_axes);
    if (!loss->frozen) out_results[1] = ct_pending_sum(out_results[1], loss->rows_axes);
}

static void backward_body(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    fill_backward(opaque, args, NULL, out_results);
}

static void backward_body_with_rows(ct_graph *graph, void *opaque, ct_tensor *const *args, ct_tensor **out_results)
{
    (void)graph;
    fill_backward(opaque, args, args[5], out_results);
}

static void backward(ct_graph *graph, void *opaque, ct_tensor *const *inputs, ct_tensor *const *outputs,
                     ct_tensor *const *cotangents, ct_tensor **out_gradients)
{
    const ct__loss *loss = opaque;
    ct_manual_body *body = cotangents[1] ? backward_body_with_rows : backward_body;
    ct_tensor *d_loss = cotangents[0] ? cotangents[0] : ct_full_like(outputs[0], 0);
    ct_tensor *args[6] = {inputs[0], inputs[1], inputs[2], outputs[1], d_loss, cotangents[1]};
    if (!loss->rows_placement) {
        body(graph, opaque, args, out_gradients);
        return;
    }
    const char *rows = loss->rows_placement, *weight = loss->weight_placement;
    args[1] = ct_padded(inputs[1]);
    ct_tensor *results[2];
    ct_manual_opts region = {.num_inputs = cotangents[1] ? 6 : 5,
                             .num_outputs = loss->frozen ? 1 : 2,
                             .inputs = args,
                             .input_placements = (const char *[]){rows, weight, rows, rows, rows, rows},
                             .output_placements = (const char *[]){rows, weight}};
    ct_manual(graph, &region, body, opaque, results);
    out_gradients[0] = results[0];
    if (!loss->frozen) out_gradients[1] = ct_unpadded(results[1], inputs[1]);
}

ct_tensor *ct__loss_by_parts(const char *loc, ct_tensor *hidden, ct_tensor *weight, ct_tensor *labels, ct__loss *loss,
                             ct_tensor **out_logsumexp)
{
    ct_tensor *inputs[3] = {hidden, weight, labels}, *outputs[2];
    ct__custom_vjp(loc, hidden->graph, 3, inputs, 2, outputs, forward, backward, loss);
    if (out_logsumexp) *out_logsumexp = outputs[1];
    return outputs[0];
}
