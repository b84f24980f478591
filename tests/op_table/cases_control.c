/* Scans, branches, loops, custom derivatives, checkpoint blocks, and gradients within gradients. */
#include "op_table.h"

/* ---- scan: several carries (one an integer, one unchanged, one swapped), inputs, a captured weight ---- */

typedef struct scan_context {
    ct_tensor *w, *stacked;
} scan_context;

static void scan_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                      ct_tensor **out_y)
{
    (void)graph;
    const scan_context *s = context;
    ct_tensor *turn = ct_convert(c[1], ct_tensor_dtype(c[0]));
    ct_tensor *h = ct_checkpoint_name(ct_rename(ct_linear(c[0], s->w), "dim_out", "dim"), "h");
    out_c[0] = ct_tanh(ct_add(h, ct_mul(x[0], ct_add_scalar(turn, 1))));
    out_c[1] = ct_add_scalar(c[1], 1);
    out_c[2] = c[2]; /* unchanged */
    out_c[3] = x[0]; /* last turn's input */
    out_y[0] = ct_mul(ct_add(c[0], c[3]), c[2]);
    out_y[1] = c[1];                                  /* an argument as it is */
    out_y[2] = ct_sum(ct_mul(s->stacked, c[0]), "n"); /* the scanned input, captured whole */
}

static const ct_remat_policy *policy_of(int variant)
{
    static const char *const save[] = {"h"};
    static const ct_remat_policy policies[4] = {{.mode = CT_REMAT_NONE},
                                                {.mode = CT_REMAT_SELECTIVE},
                                                {.mode = CT_REMAT_FULL},
                                                {.mode = CT_REMAT_FULL, .num_save = 1, .save = save}};
    return &policies[variant];
}

/* variant: remat mode + 4 * reverse */
BUILD(build_scan)
{
    UNUSED4;
    scan_context context = {.w = in[2], .stacked = in[1]};
    ct_tensor *carries[4] = {in[0], ct_scalar(graph, CT_DTYPE_S32, 0), in[3], in[0]}, *final[4];
    ct_scan_opts opts = {.axis = "n",
                         .num_carries = 4,
                         .carries = carries,
                         .num_inputs = 1,
                         .inputs = &in[1],
                         .num_outputs = 3,
                         .reverse = variant >= 4,
                         .remat = policy_of(variant % 4)};
    ct_scan(graph, &opts, scan_body, &context, final, out + 4);
    for (int i = 0; i < 4; i++) out[i] = final[i];
}
static void scan_reference(const double *const *in, double *const *out, bool reverse)
{
    double c[3] = {in[0][0], in[0][1], in[0][2]}, last[3] = {in[0][0], in[0][1], in[0][2]};
    for (int turn = 0; turn < 4; turn++) {
        int n = reverse ? 3 - turn : turn;
        double next[3];
        for (int i = 0; i < 3; i++) {
            double h = 0, sum = 0;
            for (int j = 0; j < 3; j++) h += c[j] * in[2][i * 3 + j];
            next[i] = tanh(h + in[1][n * 3 + i] * (turn + 1));
            out[4][n * 3 + i] = (c[i] + last[i]) * in[3][i];
            for (int k = 0; k < 4; k++) sum += in[1][k * 3 + i] * c[i];
            out[6][n * 3 + i] = sum;
        }
        out[5][n] = turn;
        for (int i = 0; i < 3; i++) {
            c[i] = next[i];
            last[i] = in[1][n * 3 + i];
        }
    }
    for (int i = 0; i < 3; i++) {
        out[0][i] = c[i];
        out[2][i] = in[3][i];
        out[3][i] = last[i];
    }
    out[1][0] = 4;
}
REFERENCE(ref_scan)
{
    scan_reference(in, out, false);
}
REFERENCE(ref_scan_reverse)
{
    scan_reference(in, out, true);
}

/* ---- a cumulative product in a scan of one turn's worth of nothing: no carries, only a map ---- */
static void map_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                     ct_tensor **out_y)
{
    (void)graph, (void)c, (void)out_c;
    out_y[0] = ct_mul(x[0], context);
    out_y[1] = context; /* a captured tensor as it is */
}
BUILD(build_map)
{
    UNUSED4;
    ct_scan_opts opts = {.axis = "n", .num_inputs = 1, .inputs = &in[0], .num_outputs = 2};
    ct_scan(graph, &opts, map_body, in[1], NULL, out);
}
REFERENCE(ref_map)
{
    for (int i = 0; i < 12; i++) {
        out[0][i] = in[0][i] * in[1][i % 3];
        out[1][i] = in[1][i % 3];
    }
}

/* ---- scan in cond in scan, with a tensor captured by all three ---- */

typedef struct deep_context {
    ct_tensor *w, *c, *x;
    int variant;
} deep_context;

static void inner_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                       ct_tensor **out_y)
{
    (void)graph;
    deep_context *d = context;
    out_c[0] = ct_sin(ct_add(ct_mul(c[0], d->w), ct_mul(x[0], d->c)));
    out_y[0] = ct_mul(c[0], d->x);
}
static void deep_true(ct_graph *graph, void *context, ct_tensor **out)
{
    deep_context *d = context;
    ct_tensor *stacked = ct_concat((ct_tensor *[]){ct_unsqueeze(d->x, "m", 0), ct_unsqueeze(d->c, "m", 0)}, 2, "m");
    ct_scan_opts opts = {.axis = "m",
                         .num_carries = 1,
                         .carries = &d->c,
                         .num_inputs = 1,
                         .inputs = &stacked,
                         .num_outputs = 1,
                         .remat = policy_of(d->variant % 4)};
    ct_tensor *final, *ys;
    ct_scan(graph, &opts, inner_body, d, &final, &ys);
    out[0] = ct_add(final, ct_sum(ys, "m"));
}
static void deep_false(ct_graph *graph, void *context, ct_tensor **out)
{
    (void)graph;
    deep_context *d = context;
    out[0] = d->x; /* a branch without nodes */
}
static void deep_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                      ct_tensor **out_y)
{
    (void)out_y;
    deep_context d = *(deep_context *)context;
    d.c = c[0];
    d.x = x[0];
    ct_tensor *sum = ct_sum(x[0], "dim");
    ct_cond(graph, ct_gt(sum, ct_scalar_like(sum, 0)), deep_true, deep_false, &d, 1, &out_c[0]);
    out_c[0] = ct_tanh(ct_mul(out_c[0], d.w));
}
BUILD(build_deep)
{
    UNUSED4;
    deep_context d = {.w = in[2], .variant = variant};
    ct_scan_opts opts = {.axis = "n",
                         .num_carries = 1,
                         .carries = &in[0],
                         .num_inputs = 1,
                         .inputs = &in[1],
                         .remat = policy_of(variant / 4)};
    ct_scan(graph, &opts, deep_body, &d, out, NULL);
}
REFERENCE(ref_deep)
{
    double c[3] = {in[0][0], in[0][1], in[0][2]};
    for (int n = 0; n < 4; n++) {
        const double *x = in[1] + n * 3;
        bool chosen = x[0] + x[1] + x[2] > 0;
        for (int i = 0; i < 3; i++) {
            double w = in[2][i], value = x[i];
            if (chosen) {
                double first = sin(c[i] * w + x[i] * c[i]), second = sin(first * w + c[i] * c[i]);
                value = second + c[i] * x[i] + first * x[i];
            }
            out[0][i] = tanh(value * w);
        }
        for (int i = 0; i < 3; i++) c[i] = out[0][i];
    }
}

/* ---- cond: both branches, predicate by input ---- */

static void cond_true(ct_graph *graph, void *context, ct_tensor **out)
{
    (void)graph;
    ct_tensor *const *in = context;
    out[0] = ct_mul(in[0], in[1]);
    out[1] = in[0];
}
static void cond_false(ct_graph *graph, void *context, ct_tensor **out)
{
    (void)graph;
    ct_tensor *const *in = context;
    out[0] = ct_sin(in[1]);
    out[1] = ct_add(in[0], in[0]);
}
BUILD(build_cond)
{
    UNUSED4;
    ct_tensor *tensors[2] = {in[0], in[1]};
    ct_cond(graph, ct_gt(in[2], ct_scalar_like(in[2], 0)), cond_true, cond_false, tensors, 2, out);
    ct_cond(graph, ct_le(in[2], ct_scalar_like(in[2], 0)), cond_true, cond_false, tensors, 2, out + 2);
}
REFERENCE(ref_cond)
{
    for (int i = 0; i < 3; i++) {
        bool chosen = in[2][0] > 0;
        for (int k = 0; k < 2; k++, chosen = !chosen) {
            out[2 * k][i] = chosen ? in[0][i] * in[1][i] : sin(in[1][i]);
            out[2 * k + 1][i] = chosen ? in[0][i] : 2 * in[0][i];
        }
    }
}

/* ---- while: Newton's square root of each element until all have it, with captures ---- */

static ct_tensor *newton_condition(ct_graph *graph, void *context, ct_tensor *const *c)
{
    (void)graph;
    ct_tensor *gap = ct_max(ct_abs(ct_sub(ct_mul(c[0], c[0]), context)), "dim");
    return ct_and(ct_gt(gap, ct_scalar_like(gap, 1e-5)), ct_lt(c[1], ct_scalar_like(c[1], 50)));
}
static void newton_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor **out_c)
{
    (void)graph;
    out_c[0] = ct_mul_scalar(ct_add(c[0], ct_div(context, c[0])), 0.5);
    out_c[1] = ct_add_scalar(c[1], 1);
}
BUILD(build_while)
{
    UNUSED4;
    ct_tensor *carries[2] = {ct_full_like(in[0], 1), ct_scalar(graph, CT_DTYPE_S32, 0)}, *final[2];
    ct_while(graph, 2, carries, newton_condition, newton_body, in[0], final);
    out[0] = final[0];
    out[1] = ct_lt(final[1], ct_scalar_like(final[1], 10));
}
REFERENCE(ref_while)
{
    for (int i = 0; i < 3; i++) out[0][i] = sqrt(in[0][i]);
    out[1][0] = 1;
}

/* ---- checkpoint blocks, one after the other, with plain ops between, before and after ---- */

static ct_tensor *layer(ct_tensor *x, ct_tensor *w)
{
    ct_tensor *h = ct_checkpoint_name(ct_rename(ct_linear(x, w), "dim_out", "dim"), "h");
    return ct_add(x, ct_mul(ct_tanh(h), ct_softmax(h, "dim")));
}
BUILD(build_blocks)
{
    UNUSED4;
    ct_tensor *x = ct_sin(in[0]);
    for (int i = 0; i < 2; i++) {
        ct_checkpoint_begin(graph, policy_of(variant));
        x = layer(layer(x, in[1]), in[1]);
        out[1 + i] = ct_mul(x, x); /* a second output of the block */
        ct_checkpoint_end(graph);
    }
    x = ct_mul(x, in[0]);
    ct_checkpoint_begin(graph, policy_of(variant));
    out[0] = layer(x, in[1]);
    ct_checkpoint_end(graph);
}

/* a scan of blocks whose own policy differs */
static void blocks_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                        ct_tensor **out_y)
{
    (void)out_y;
    ct_checkpoint_begin(graph, context);
    out_c[0] = layer(c[0], x[0]);
    ct_checkpoint_end(graph);
    out_c[0] = ct_sin(out_c[0]);
}
BUILD(build_scan_of_blocks)
{
    UNUSED4;
    ct_scan_opts opts = {.axis = "n",
                         .num_carries = 1,
                         .carries = &in[0],
                         .num_inputs = 1,
                         .inputs = &in[1],
                         .remat = policy_of(variant % 4)};
    ct_scan(graph, &opts, blocks_body, (void *)(uintptr_t)policy_of(variant / 4), out, NULL);
}

/* ---- custom derivative, barrier ---- */

static void custom_forward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor **out)
{
    (void)graph;
    (void)context;
    out[0] = ct_mul(in[0], ct_exp(in[1]));
    out[1] = in[0]; /* an input as an output */
    out[2] = ct_exp(in[1]);
}
static void custom_backward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor *const *out,
                            ct_tensor *const *cotangents, ct_tensor **gradients)
{
    (void)graph;
    (void)in;
    CT_ASSERT(!cotangents[2]); /* only a residual */
    gradients[0] = cotangents[1];
    ct_tensor *first = cotangents[0] ? ct_mul(cotangents[0], out[2]) : NULL;
    if (first) gradients[0] = gradients[0] ? ct_add(gradients[0], first) : first;
    if (cotangents[0]) gradients[1] = ct_mul(cotangents[0], out[0]);
    (void)context;
}
BUILD(build_custom)
{
    UNUSED4;
    ct_tensor *results[3];
    ct_custom_vjp(graph, 2, in, 3, results, custom_forward, custom_backward, NULL);
    out[0] = results[0];
    out[1] = results[1];
}
REFERENCE(ref_custom)
{
    for (int i = 0; i < 3; i++) {
        out[0][i] = in[0][i] * exp(in[1][i]);
        out[1][i] = in[0][i];
    }
}

/* one tensor as two outputs */
static void twice_forward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor **out)
{
    (void)graph, (void)context;
    out[0] = out[1] = ct_sin(in[0]);
}
static void twice_backward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor *const *out,
                           ct_tensor *const *cotangents, ct_tensor **gradients)
{
    (void)graph, (void)context, (void)out;
    gradients[0] = ct_mul(ct_cos(in[0]), ct_add(cotangents[0], cotangents[1]));
}
BUILD(build_custom_twice)
{
    UNUSED4;
    ct_custom_vjp(graph, 1, in, 2, out, twice_forward, twice_backward, NULL);
}

/* a derivative by hand is believed: here it is 7 whatever the function, which is made of a scan and a rounding */
static void believed_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                          ct_tensor **out_y)
{
    (void)graph, (void)context, (void)x, (void)out_y;
    out_c[0] = ct_round(ct_stop_gradient(ct_add(c[0], c[0])));
}
static void believed_forward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor **out)
{
    (void)context;
    ct_scan_opts opts = {.axis = "n", .length = 2, .num_carries = 1, .carries = in};
    ct_scan(graph, &opts, believed_body, NULL, out, NULL);
}
static void believed_backward(ct_graph *graph, void *context, ct_tensor *const *in, ct_tensor *const *out,
                              ct_tensor *const *cotangents, ct_tensor **gradients)
{
    (void)graph, (void)context, (void)in, (void)out;
    gradients[0] = ct_mul_scalar(cotangents[0], 7);
}
BUILD(build_believed)
{
    UNUSED4;
    ct_tensor *y;
    ct_custom_vjp(graph, 1, in, 1, &y, believed_forward, believed_backward, NULL);
    ct_tensor *loss = ct_sum(ct_mul(y, in[0]), "dim");
    expect_ok(ct_grad(graph, loss, in, 1, out));
}
REFERENCE(ref_believed)
{
    for (int i = 0; i < 3; i++) out[0][i] = nearbyint(2 * nearbyint(2 * in[0][i])) + 7 * in[0][i];
}

BUILD(build_barrier)
{
    UNUSED4;
    ct_tensor *x[2] = {ct_sin(in[0]), in[1]};
    ct_optimization_barrier(2, x, out);
}
REFERENCE(ref_barrier)
{
    for (int i = 0; i < 3; i++) {
        out[0][i] = sin(in[0][i]);
        out[1][i] = in[1][i];
    }
}

/* ---- gradients as values: what GRAD mode differentiates again ---- */

static ct_tensor *gradient_of(ct_tensor *loss, ct_tensor *x)
{
    ct_tensor *gradient;
    expect_ok(ct_grad(ct_graph_of(loss), loss, &x, 1, &gradient));
    return gradient;
}

BUILD(build_stop_gradient)
{
    UNUSED4;
    ct_tensor *loss = ct_sum(ct_mul(ct_stop_gradient(ct_sin(in[0])), in[0]), "dim");
    out[0] = gradient_of(loss, in[0]);
    out[1] = ct_stop_gradient(in[0]);
}
REFERENCE(ref_stop_gradient)
{
    for (int i = 0; i < 3; i++) {
        out[0][i] = sin(in[0][i]);
        out[1][i] = in[0][i];
    }
}

/* two gradients of one graph, of intermediates, of what does not depend, and of the loss itself */
BUILD(build_two_gradients)
{
    UNUSED4;
    ct_tensor *middle = ct_sin(in[0]);
    ct_tensor *loss = ct_sum(ct_mul(middle, ct_mul(middle, in[1])), "dim");
    ct_tensor *params[3] = {middle, in[2], loss};
    expect_ok(ct_grad(graph, loss, params, 3, out));
    out[3] = gradient_of(loss, in[0]);
    out[4] = gradient_of(loss, in[1]);
}
REFERENCE(ref_two_gradients)
{
    for (int i = 0; i < 3; i++) {
        double s = sin(in[0][i]);
        out[0][i] = 2 * s * in[1][i];
        out[1][i] = 0;
        out[3][i] = 2 * s * in[1][i] * cos(in[0][i]);
        out[4][i] = s * s;
    }
    out[2][0] = 1;
}

/* grad of grad of grad of x^4: 24 x */
BUILD(build_third_derivative)
{
    UNUSED4;
    ct_tensor *square = ct_mul(in[0], in[0]), *y = ct_mul(square, square);
    for (int i = 0; i < 3; i++) y = gradient_of(ct_sum(y, "dim"), in[0]);
    out[0] = y;
}
REFERENCE(ref_third_derivative)
{
    for (int i = 0; i < 3; i++) out[0][i] = 24 * in[0][i];
}

/* a scan's gradient, differentiated once more */
BUILD(build_scan_twice)
{
    UNUSED4;
    ct_tensor *results[OP_MAX_OUTPUTS];
    build_scan(graph, in, results, variant);
    ct_tensor *loss = ct_add(ct_sum(ct_mul(results[0], results[0]), "dim"), ct_sum(results[4], "n dim"));
    out[0] = gradient_of(loss, in[2]);
    out[1] = gradient_of(loss, in[1]);
}

/* ct_grad within a scan's body: gradient accumulation over microbatches, with the parameter captured */
static void accumulate_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                            ct_tensor **out_y)
{
    (void)graph;
    ct_tensor *w = context;
    ct_tensor *loss = ct_sum(ct_tanh(ct_mul(w, x[0])), "dim");
    out_c[0] = ct_add(c[0], gradient_of(loss, w));
    out_y[0] = loss;
}
BUILD(build_accumulation)
{
    UNUSED4;
    ct_tensor *zero = ct_full_like(in[0], 0);
    ct_scan_opts opts = {.axis = "n",
                         .num_carries = 1,
                         .carries = &zero,
                         .num_inputs = 1,
                         .inputs = &in[1],
                         .num_outputs = 1,
                         .remat = policy_of(variant)};
    ct_scan(graph, &opts, accumulate_body, in[0], &out[0], &out[1]);
}
REFERENCE(ref_accumulation)
{
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < 3; i++) {
            double x = in[1][n * 3 + i], t = tanh(in[0][i] * x);
            out[0][i] += (1 - t * t) * x;
            out[1][n] += t;
        }
}

#define DIM "dim=3"
#define SCAN_INPUTS                                                                                                    \
    {                                                                                                                  \
        {DIM, 0, 0, 0}, {"n=4 dim=3", 0, 0, 0}, {"dim_out=3 dim=3", 0, 0, 0},                                          \
        {                                                                                                              \
            DIM, 0, 0, 0                                                                                               \
        }                                                                                                              \
    }
#define SCAN(text, number, function, golden)                                                                           \
    {                                                                                                                  \
        .name = text, .dtypes = WIDE, .grad = true, .inputs = SCAN_INPUTS, .num_outputs = 7, .build = build_scan,      \
        .variant = number, .no_shard = (number) % 4 != 0, .reference = function, .print = golden                       \
    }
#define DEEP(number)                                                                                                   \
    {                                                                                                                  \
        .name = "scan in cond in scan, remat " #number, .dtypes = WIDE, .grad = true,                                  \
        .inputs = {{DIM, 0, 0, 0}, {"n=4 dim=3", 0, 0, 0}, {DIM, 0, 0, 0}}, .num_outputs = 1, .build = build_deep,     \
        .variant = number, .no_shard = (number) % 4 != 0, .reference = ref_deep                                        \
    }
#define BLOCKS(number)                                                                                                 \
    {                                                                                                                  \
        .name = "checkpoint blocks, remat " #number, .grad = true,                                                     \
        .inputs = {{DIM, 0, 0, 0}, {"dim_out=3 dim=3", 0, 0, 0}}, .num_outputs = 3, .build = build_blocks,             \
        .variant = number, .no_shard = (number) % 4 != 0                                                               \
    }
#define SCAN_OF_BLOCKS(number)                                                                                         \
    {                                                                                                                  \
        .name = "scan of blocks, remat " #number, .grad = true,                                                        \
        .inputs = {{DIM, 0, 0, 0}, {"n=4 dim_out=3 dim=3", 0, 0, 0}}, .num_outputs = 1, .build = build_scan_of_blocks, \
        .variant = number, .no_shard = (number) % 4 != 0                                                               \
    }
#define TWICE(number)                                                                                                  \
    {                                                                                                                  \
        .name = "gradient of a scan's gradient, remat " #number, .grad = true, .inputs = SCAN_INPUTS,                  \
        .num_outputs = 2, .build = build_scan_twice, .variant = number, .no_shard = (number) % 4 != 0                  \
    }
#define ACCUMULATION(number)                                                                                           \
    {                                                                                                                  \
        .name = "gradient in a scan, remat " #number, .dtypes = WIDE, .grad = true,                                    \
        .inputs = {{DIM, 0, 0, 0}, {"n=4 dim=3", 0, 0, 0}}, .num_outputs = 2, .build = build_accumulation,             \
        .variant = number, .no_shard = (number) % 4 != 0, .reference = ref_accumulation                                \
    }

static const op_case cases[] = {
    SCAN("scan", 0, ref_scan, true),
    SCAN("scan, selective", 1, ref_scan, false),
    SCAN("scan, full", 2, ref_scan, false),
    SCAN("scan, full but names", 3, ref_scan, false),
    SCAN("scan, reverse", 4, ref_scan_reverse, true),
    SCAN("scan, reverse, selective", 5, ref_scan_reverse, false),
    SCAN("scan, reverse, full", 6, ref_scan_reverse, false),
    {.name = "scan without carries",
     .dtypes = WIDE | D(S32),
     .grad = true,
     .inputs = {{"n=4 dim=3", 0, 0, 0}, {DIM, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_map,
     .reference = ref_map,
     .print = true},
    DEEP(0),
    DEEP(2),
    DEEP(5),
    DEEP(8),
    DEEP(10),
    {.name = "cond",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{DIM, 0, 0, 0}, {DIM, 0, 0, 0}, {"", 0, 0, 0}},
     .num_outputs = 4,
     .build = build_cond,
     .reference = ref_cond,
     .print = true},
    {.name = "while",
     .dtypes = WIDE,
     .inputs = {{DIM, 1, 3, 0}},
     .num_outputs = 2,
     .build = build_while,
     .reference = ref_while,
     .tolerance = 1e6,
     .print = true},
    BLOCKS(0),
    BLOCKS(1),
    BLOCKS(2),
    BLOCKS(3),
    SCAN_OF_BLOCKS(0),
    SCAN_OF_BLOCKS(2),
    SCAN_OF_BLOCKS(4),
    SCAN_OF_BLOCKS(8),
    SCAN_OF_BLOCKS(9),
    SCAN_OF_BLOCKS(10),
    SCAN_OF_BLOCKS(14),
    {.name = "custom_vjp",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{DIM, 0, 0, 0}, {DIM, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_custom,
     .reference = ref_custom},
    {.name = "custom_vjp, one tensor as two outputs",
     .grad = true,
     .inputs = {{DIM, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_custom_twice},
    {.name = "custom_vjp is believed",
     .dtypes = WIDE,
     .inputs = {{DIM, 0, 3, 0}},
     .num_outputs = 1,
     .build = build_believed,
     .reference = ref_believed},
    {.name = "optimization_barrier",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{DIM, 0, 0, 0}, {DIM, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_barrier,
     .reference = ref_barrier,
     .print = true},
    {.name = "stop_gradient",
     .dtypes = WIDE,
     .inputs = {{DIM, 0, 0, 0}},
     .num_outputs = 2,
     .build = build_stop_gradient,
     .reference = ref_stop_gradient},
    {.name = "two gradients",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{DIM, 0, 0, 0}, {DIM, 0, 0, 0}, {DIM, 0, 0, 0}},
     .num_outputs = 5,
     .build = build_two_gradients,
     .reference = ref_two_gradients},
    {.name = "third derivative",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{DIM, 0, 0, 0}},
     .num_outputs = 1,
     .build = build_third_derivative,
     .reference = ref_third_derivative,
     .tolerance = 10},
    TWICE(0),
    TWICE(1),
    TWICE(2),
    TWICE(3),
    TWICE(6),
    ACCUMULATION(0),
    ACCUMULATION(2),
};
const op_family control_cases = {"control", cases, CT_COUNT(cases)};
