/* Functions, calls, composites, ct_vjp, custom calls. */
#include "autodiff/vjp.h"
#include "op_table.h"

/* x[dim], w[dim_out dim] -> tanh(w x), x w-sums */
static void layer_body(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph;
    (void)context;
    ct_tensor *h = ct_checkpoint_name(ct_rename(ct_linear(args[0], args[1]), "dim_out", "dim"), "h");
    out[0] = ct_tanh(h);
    out[1] = ct_sum(ct_mul(ct_softmax(h, "dim"), args[0]), "dim");
}
static ct_function *layer_function(ct_graph *graph, ct_tensor *x, ct_tensor *w)
{
    ct_tensor *like[2] = {x, w};
    return ct_function_new(graph, "layer", 2, like, 2, layer_body, NULL);
}
static void layer_reference(const double *x, const double *w, double *out, double *sum)
{
    double h[3], total = 0;
    *sum = 0;
    for (int i = 0; i < 3; i++) {
        h[i] = 0;
        for (int j = 0; j < 3; j++) h[i] += w[i * 3 + j] * x[j];
        total += exp(h[i]);
    }
    for (int i = 0; i < 3; i++) *sum += exp(h[i]) / total * x[i];
    for (int i = 0; i < 3; i++) out[i] = tanh(h[i]);
}

/* called twice, once with an argument that is no parameter; one result unused */
BUILD(build_call)
{
    UNUSED4;
    ct_function *layer = layer_function(graph, in[0], in[1]);
    ct_tensor *first[2], *second[2], *third[2];
    ct_call(layer, ((ct_tensor *[]){in[0], in[1]}), first);
    ct_call(layer, ((ct_tensor *[]){first[0], in[1]}), second);
    ct_call(layer, ((ct_tensor *[]){ct_full_like(in[0], 0.5), in[1]}), third);
    out[0] = second[0];
    out[1] = ct_add(first[1], second[1]);
    out[2] = third[0];
}
REFERENCE(ref_call)
{
    double first[3], half[3] = {0.5, 0.5, 0.5}, sums[3];
    layer_reference(in[0], in[1], first, &sums[0]);
    layer_reference(first, in[1], out[0], &sums[1]);
    layer_reference(half, in[1], out[2], &sums[2]);
    out[1][0] = sums[0] + sums[1];
}

/* a function that calls a function, in a scan's body, under each policy */
static void outer_body(ct_graph *graph, void *context, ct_tensor *const *args, ct_tensor **out)
{
    (void)graph;
    ct_tensor *results[2];
    ct_call(context, args, results);
    out[0] = ct_mul(results[0], ct_add_scalar(results[1], 1));
}
static void call_scan_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                           ct_tensor **out_y)
{
    (void)graph, (void)out_y;
    ct_call(context, ((ct_tensor *[]){c[0], x[0]}), out_c);
}
BUILD(build_call_in_scan)
{
    UNUSED4;
    static const ct_remat_policy policies[3] = {
        {.mode = CT_REMAT_NONE}, {.mode = CT_REMAT_SELECTIVE}, {.mode = CT_REMAT_FULL}};
    ct_tensor *w = ct_squeeze(ct_slice(in[1], "n", 0, 1), "n"), *like[2] = {in[0], w};
    ct_function *layer = layer_function(graph, in[0], w);
    ct_function *outer = ct_function_new(graph, "outer", 2, like, 1, outer_body, layer);
    ct_scan_opts opts = {.axis = "n",
                         .num_carries = 1,
                         .carries = &in[0],
                         .num_inputs = 1,
                         .inputs = &in[1],
                         .remat = &policies[variant % 3]};
    if (variant >= 3) ct_checkpoint_begin(graph, &policies[2]);
    ct_scan(graph, &opts, call_scan_body, outer, out, NULL);
    ct_call(outer, ((ct_tensor *[]){out[0], w}), out);
    if (variant >= 3) ct_checkpoint_end(graph);
}
REFERENCE(ref_call_in_scan)
{
    double x[3] = {in[0][0], in[0][1], in[0][2]};
    for (int n = 0; n < 5; n++) {
        double next[3], sum;
        layer_reference(x, in[1] + n % 4 * 9, next, &sum);
        for (int i = 0; i < 3; i++) x[i] = next[i] * (sum + 1);
    }
    for (int i = 0; i < 3; i++) out[0][i] = x[i];
}

/* a composite that no plugin knows is its decomposition */
BUILD(build_composite)
{
    UNUSED4;
    ct_composite("ctitan.layer", "k = 3 : i64, name = \"x\"", layer_function(graph, in[0], in[1]), in, out);
}
REFERENCE(ref_composite)
{
    layer_reference(in[0], in[1], out[0], out[1]);
}

/* The pair of ct_vjp used by hand: gradients of sum(tanh) * 2 + the second result * 3, under each policy. */
BUILD(build_vjp)
{
    UNUSED4;
    static const ct_remat_policy policies[2] = {{.mode = CT_REMAT_SELECTIVE}, {.mode = CT_REMAT_FULL}};
    ct_vjp_pair pair;
    expect_ok(ct_vjp(layer_function(graph, in[0], in[1]), variant ? &policies[variant - 1] : NULL, &pair));
    CT_ASSERT(pair.num_outputs == 2 && pair.num_cotangents == 2 && pair.num_gradients == 2);
    ct_tensor *results[32], *args[32];
    ct_call(pair.forward, in, results);
    int count = 0;
    for (int i = 0; i < pair.num_residuals; i++) args[count++] = results[2 + i];
    args[count++] = ct_full_like(results[0], 2);
    args[count++] = ct_full_like(results[1], 3);
    ct_call(pair.backward, args, out);
    /* the same by ct_grad */
    ct_tensor *plain[2], *gradients[2];
    layer_body(graph, NULL, in, plain);
    expect_ok(ct_grad_from(graph, 2, plain, &args[pair.num_residuals], in, 2, gradients));
    for (int i = 0; i < 2; i++) out[2 + i] = ct_sub(out[i], gradients[i]);
}
/* out[0] and out[1] are what GRAD differentiates; FORWARD says that both ways agree */
BUILD(build_vjp_difference)
{
    ct_tensor *results[4];
    build_vjp(graph, in, results, variant);
    for (int i = 0; i < 2; i++) out[i] = results[2 + i];
}
REFERENCE(ref_vjp_difference)
{
    (void)in, (void)out; /* zeros */
}

/* annotations that the CPU plugin runs as they are */
BUILD(build_custom_call)
{
    UNUSED4;
    ct_custom_call(graph, "Sharding", 1, in, 1, in, (&(ct_custom_call_opts){.api_version = 1}), out);
    static const int64_t integers[2] = {1, -2};
    static const ct_attribute attributes[] = {
        {.name = "i", .kind = CT_ATTRIBUTE_INT, .integer = 3},
        {.name = "f", .kind = CT_ATTRIBUTE_FLOAT, .number = 0.5},
        {.name = "d", .kind = CT_ATTRIBUTE_DOUBLE, .number = 0.1},
        {.name = "b", .kind = CT_ATTRIBUTE_BOOL, .integer = 1},
        {.name = "s", .kind = CT_ATTRIBUTE_STRING, .string = "a \"quoted\" \\ word"},
        {.name = "l", .kind = CT_ATTRIBUTE_INTS, .integer = 2, .integers = integers},
        {.name = "r", .kind = CT_ATTRIBUTE_RAW, .string = "dense<[[0, 1]]> : tensor<1x2xi64>"},
    };
    static const ct_attribute frontend[] = {
        {.name = "_xla_buffer_placement", .kind = CT_ATTRIBUTE_STRING, .string = "pinned_host"}};
    ct_custom_call_opts opts = {.num_attributes = (int)CT_COUNT(attributes),
                                .attributes = attributes,
                                .num_frontend_attributes = 1,
                                .frontend_attributes = frontend};
    ct_tensor *unused;
    if (variant) {
        opts.has_side_effect = true;
        ct_custom_call(graph, "typed", 1, in, 1, in, &opts, &unused);
    }
}
REFERENCE(ref_custom_call)
{
    for (int i = 0; i < 3; i++) out[0][i] = in[0][i];
}

#define LAYER                                                                                                          \
    {                                                                                                                  \
        {"dim=3", 0, 0, 0},                                                                                            \
        {                                                                                                              \
            "dim_out=3 dim=3", 0, 0, 0                                                                                 \
        }                                                                                                              \
    }
#define IN_SCAN(number)                                                                                                \
    {                                                                                                                  \
        .name = "call in a scan, remat " #number, .dtypes = WIDE, .grad = true,                                        \
        .inputs = {{"dim=3", 0, 0, 0}, {"n=4 dim_out=3 dim=3", 0, 0, 0}}, .num_outputs = 1,                            \
        .build = build_call_in_scan, .variant = number, .no_shard = (number) % 4 != 0, .reference = ref_call_in_scan   \
    }
#define VJP_BY_HAND(number)                                                                                            \
    {.name = "vjp, remat " #number,                                                                                    \
     .grad = true,                                                                                                     \
     .inputs = LAYER,                                                                                                  \
     .num_outputs = 2,                                                                                                 \
     .build = build_vjp,                                                                                               \
     .variant = number,                                                                                                \
     .no_shard = (number) % 4 != 0},                                                                                   \
    {                                                                                                                  \
        .name = "vjp against grad, remat " #number, .dtypes = D(F64), .inputs = LAYER, .num_outputs = 2,               \
        .build = build_vjp_difference, .variant = number, .no_shard = (number) % 4 != 0,                               \
        .reference = ref_vjp_difference                                                                                \
    }

static const op_case cases[] = {
    {.name = "call",
     .dtypes = WIDE,
     .grad = true,
     .inputs = LAYER,
     .num_outputs = 3,
     .build = build_call,
     .reference = ref_call,
     .print = true},
    IN_SCAN(0),
    IN_SCAN(1),
    IN_SCAN(2),
    IN_SCAN(3),
    IN_SCAN(5),
    {.name = "composite",
     .dtypes = WIDE,
     .grad = true,
     .inputs = LAYER,
     .num_outputs = 2,
     .build = build_composite,
     .reference = ref_composite,
     .print = true},
    VJP_BY_HAND(0),
    VJP_BY_HAND(1),
    VJP_BY_HAND(2),
    {.name = "custom_call",
     .dtypes = D(F32),
     .inputs = {{"dim=3", 0, 0, 0}},
     .num_outputs = 1,
     .build = build_custom_call,
     .reference = ref_custom_call,
     .no_shard = true},
    {.name = "custom_call, text",
     .inputs = {{"dim=3", 0, 0, 0}},
     .num_outputs = 1,
     .build = build_custom_call,
     .variant = 1,
     .print = true},
};
const op_family function_cases = {"function", cases, CT_COUNT(cases)};
