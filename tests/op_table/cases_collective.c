/* Collectives and manual regions on eight virtual devices, mesh a=2 b=2 c=2, against what the whole arrays say. The
 * body's inputs are parts of the global inputs, so each result is a plain function of those. */
#include "graph/placement.h"
#include "op_table.h"

#define MESH "a=2 b=2 c=2"

typedef struct manual_case {
    const char *in[3], *out[3];
    int num_in, num_out;
    ct_manual_body *body;
} manual_case;

static void run_manual(ct_graph *graph, ct_tensor *const *in, ct_tensor **out, const manual_case *c)
{
    ct_manual_opts opts = {.num_inputs = c->num_in,
                           .num_outputs = c->num_out,
                           .inputs = in,
                           .input_placements = c->in,
                           .output_placements = c->out};
    ct_manual(graph, &opts, c->body, NULL, out);
}

#define BODY(fn)    static void fn(ct_graph *graph, void *context, ct_tensor *const *x, ct_tensor **out)
#define BODY_UNUSED ((void)graph, (void)context, (void)x, (void)out)

/* ---- local work and a sum: loss of a batch split over a and c, features over b ---- */
BODY(loss_body)
{
    BODY_UNUSED;
    ct_tensor *partial = ct_linear(x[0], x[1]); /* [batch out], feature is split: a pending sum */
    ct_tensor *h = ct_tanh(ct_all_reduce(partial, CT_REDUCTION_SUM, "b"));
    out[0] = h;
    out[1] = ct_all_reduce(ct_sum(ct_mul(h, h), "batch out"), CT_REDUCTION_SUM, "a c");
}
BUILD(build_loss)
{
    UNUSED4;
    static const manual_case c = {.in = {"batch=a+c feature=b", "feature=b"},
                                  .out = {"batch=a+c", ""},
                                  .num_in = 2,
                                  .num_out = 2,
                                  .body = loss_body};
    run_manual(graph, in, out, &c);
}
REFERENCE(ref_loss)
{
    for (int i = 0; i < 4; i++)
        for (int o = 0; o < 3; o++) {
            double sum = 0;
            for (int f = 0; f < 4; f++) sum += in[0][i * 4 + f] * in[1][o * 4 + f];
            out[0][i * 3 + o] = tanh(sum);
            out[1][0] += tanh(sum) * tanh(sum);
        }
}

/* ---- gather and scatter: parameters stored in parts, FSDP; one axis after the other and both at once ---- */
BODY(fsdp_body)
{
    BODY_UNUSED;
    ct_tensor *w = ct_all_gather(ct_all_gather(x[1], "out", "c"), "out", "a"); /* stored as out=a+c */
    ct_tensor *v = ct_all_gather(x[1], "out", "a c");
    ct_tensor *h = ct_sin(ct_linear(x[0], w));
    out[0] = ct_add(h, ct_linear(x[0], v));
    out[1] = ct_reduce_scatter(ct_linear(ct_rename(h, "out", "dim"), x[2]), "hidden", "b"); /* sums b's equal parts */
}
BUILD(build_fsdp)
{
    UNUSED4;
    static const manual_case c = {.in = {"batch=a", "out=a+c", ""},
                                  .out = {"batch=a", "batch=a hidden=b"},
                                  .num_in = 3,
                                  .num_out = 2,
                                  .body = fsdp_body};
    run_manual(graph, in, out, &c);
}
REFERENCE(ref_fsdp)
{
    for (int i = 0; i < 2; i++) {
        double h[4];
        for (int o = 0; o < 4; o++) {
            double sum = 0;
            for (int f = 0; f < 3; f++) sum += in[0][i * 3 + f] * in[1][o * 3 + f];
            h[o] = sin(sum);
            out[0][i * 4 + o] = h[o] + sum;
        }
        for (int k = 0; k < 2; k++) {
            double sum = 0;
            for (int d = 0; d < 4; d++) sum += h[d] * in[2][k * 4 + d];
            out[1][i * 2 + k] = 2 * sum;
        }
    }
}

/* ---- all_to_all there and with work between: sequence parts to head parts ---- */
BODY(exchange_body)
{
    BODY_UNUSED;
    ct_tensor *h = ct_all_to_all(x[0], "heads", "seq", "a b"); /* [seq=8 heads=1] locally */
    h = ct_cumsum(ct_mul(h, h), "seq");
    out[0] = ct_all_to_all(h, "seq", "heads", "a b");
    out[1] = h;
}
BUILD(build_exchange)
{
    UNUSED4;
    static const manual_case c = {
        .in = {"seq=a+b"}, .out = {"seq=a+b", "heads=a+b"}, .num_in = 1, .num_out = 2, .body = exchange_body};
    run_manual(graph, in, out, &c);
}
REFERENCE(ref_exchange)
{
    for (int h = 0; h < 4; h++) {
        double sum = 0;
        for (int s = 0; s < 8; s++) {
            sum += in[0][s * 4 + h] * in[0][s * 4 + h];
            out[0][s * 4 + h] = out[1][s * 4 + h] = sum;
        }
    }
}

/* ---- a ring, an open chain, and who am I ---- */
BODY(ring_body)
{
    BODY_UNUSED;
    static const int64_t ring[4][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 0}}, chain[1][2] = {{0, 1}};
    out[0] = ct_mul(x[0], ct_collective_permute(x[0], "a c", 4, ring));
    out[1] = ct_collective_permute(ct_sin(x[0]), "c", 1, chain);
    ct_tensor *index = ct_convert(ct_mesh_index(graph, "a c"), ct_tensor_dtype(x[0]));
    out[2] = ct_mul(x[0], index);
}
BUILD(build_ring)
{
    UNUSED4;
    static const manual_case c = {
        .in = {"n=a+c"}, .out = {"n=a+c", "n=a+c", "n=a+c"}, .num_in = 1, .num_out = 3, .body = ring_body};
    run_manual(graph, in, out, &c);
}
REFERENCE(ref_ring)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            int at = i * 2 + j;
            out[0][at] = in[0][at] * in[0][(i + 3) % 4 * 2 + j];
            out[1][at] = i % 2 ? sin(in[0][at - 2]) : 0;
            out[2][at] = in[0][at] * i;
        }
}

BODY(extremes_body)
{
    BODY_UNUSED;
    out[0] = ct_all_reduce(x[0], CT_REDUCTION_MAX, "a c");
    out[1] = ct_all_reduce(x[0], CT_REDUCTION_MIN, "a c");
    out[2] = ct_unsqueeze(ct_convert(ct_partition_id(graph), CT_DTYPE_S32), "device", 0);
}
BUILD(build_extremes)
{
    UNUSED4;
    static const manual_case c = {
        .in = {"n=a+c"}, .out = {"", "", "device=a+b+c"}, .num_in = 1, .num_out = 3, .body = extremes_body};
    run_manual(graph, in, out, &c);
}
REFERENCE(ref_extremes)
{
    for (int j = 0; j < 2; j++) {
        out[0][j] = out[1][j] = in[0][j];
        for (int i = 1; i < 4; i++) {
            out[0][j] = fmax(out[0][j], in[0][i * 2 + j]);
            out[1][j] = fmin(out[1][j], in[0][i * 2 + j]);
        }
    }
    for (int i = 0; i < 8; i++) out[2][i] = i;
}

/* ---- a manual region in a scan, with a scan and a custom derivative in it: ring attention's shape ---- */
static void turn_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x, ct_tensor **out_c,
                      ct_tensor **out_y)
{
    (void)graph, (void)x, (void)out_y;
    static const int64_t ring[2][2] = {{0, 1}, {1, 0}};
    ct_tensor *scores = ct_softmax(ct_mul(context, c[1]), "dim");
    out_c[0] = ct_add(c[0], ct_mul(scores, c[1]));
    out_c[1] = ct_collective_permute(c[1], "b", 2, ring);
}
BODY(rotate_body)
{
    BODY_UNUSED;
    ct_tensor *carries[2] = {ct_full_like(x[0], 0), x[0]}, *final[2];
    ct_scan_opts opts = {.axis = "turn", .length = 2, .num_carries = 2, .carries = carries};
    ct_scan(graph, &opts, turn_body, x[1], final, NULL);
    out[0] = final[0];
}
static void rotate_scan_body(ct_graph *graph, void *context, ct_tensor *const *c, ct_tensor *const *x,
                             ct_tensor **out_c, ct_tensor **out_y)
{
    (void)context, (void)out_y;
    static const manual_case m = {
        .in = {"seq=b", "seq=b"}, .out = {"seq=b"}, .num_in = 2, .num_out = 1, .body = rotate_body};
    ct_tensor *in[2] = {c[0], x[0]}, *moved;
    run_manual(graph, in, &moved, &m);
    out_c[0] = ct_tanh(moved);
}
BUILD(build_rotate)
{
    UNUSED4;
    static const ct_remat_policy policies[2] = {{.mode = CT_REMAT_NONE}, {.mode = CT_REMAT_FULL}};
    ct_scan_opts opts = {.axis = "layers",
                         .num_carries = 1,
                         .carries = &in[0],
                         .num_inputs = 1,
                         .inputs = &in[1],
                         .remat = &policies[variant]};
    ct_scan(graph, &opts, rotate_scan_body, NULL, out, NULL);
}
REFERENCE(ref_rotate)
{
    double c[4][3];
    for (int i = 0; i < 12; i++) c[i / 3][i % 3] = in[0][i];
    for (int layer = 0; layer < 2; layer++) {
        double next[4][3] = {{0}};
        for (int s = 0; s < 4; s++)
            for (int turn = 0; turn < 2; turn++) {
                const double *other = c[(s + 2 * turn) % 4], *q = in[1] + (layer * 4 + s) * 3;
                double sum = 0;
                for (int d = 0; d < 3; d++) sum += exp(q[d] * other[d]);
                for (int d = 0; d < 3; d++) next[s][d] += exp(q[d] * other[d]) / sum * other[d];
            }
        for (int i = 0; i < 12; i++) c[i / 3][i % 3] = tanh(next[i / 3][i % 3]);
    }
    for (int i = 0; i < 12; i++) out[0][i] = c[i / 3][i % 3];
}

static const op_case cases[] = {
    {.name = "manual, all_reduce",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"batch=4 feature=4", 0, 0, 0}, {"out=3 feature=4", 0, 0, 0}},
     .num_outputs = 2,
     .build = build_loss,
     .reference = ref_loss,
     .mesh = MESH,
     .print = true},
    {.name = "manual, all_gather, reduce_scatter",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"batch=2 in=3", 0, 0, 0}, {"out=4 in=3", 0, 0, 0}, {"hidden=2 dim=4", 0, 0, 0}},
     .num_outputs = 2,
     .build = build_fsdp,
     .reference = ref_fsdp,
     .mesh = MESH,
     .print = true},
    {.name = "manual, all_to_all",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"seq=8 heads=4", 0, 0, 0}},
     .num_outputs = 2,
     .build = build_exchange,
     .reference = ref_exchange,
     .mesh = MESH,
     .print = true},
    {.name = "manual, collective_permute, mesh_index",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"n=8", 0, 0, 0}},
     .num_outputs = 3,
     .build = build_ring,
     .reference = ref_ring,
     .mesh = MESH,
     .print = true},
    {.name = "manual, all_reduce max and min, partition_id",
     .dtypes = WIDE | D(S32),
     .inputs = {{"n=8", -9, 9, 0}},
     .num_outputs = 3,
     .build = build_extremes,
     .reference = ref_extremes,
     .mesh = MESH,
     .print = true},
    {.name = "manual with a scan in a scan",
     .dtypes = WIDE,
     .grad = true,
     .inputs = {{"seq=4 dim=3", 0, 0, 0}, {"layers=2 seq=4 dim=3", 0, 0, 0}},
     .num_outputs = 1,
     .build = build_rotate,
     .reference = ref_rotate,
     .mesh = MESH},
    {.name = "manual with a scan in a scan, remat full",
     .grad = true,
     .inputs = {{"seq=4 dim=3", 0, 0, 0}, {"layers=2 seq=4 dim=3", 0, 0, 0}},
     .num_outputs = 1,
     .build = build_rotate,
     .variant = 1,
     .mesh = MESH},
};
const op_family collective_cases = {"collective", cases, CT_COUNT(cases)};
