/* What a call of a Mosaic kernel computes and moves. Its cost_estimate is not looked at: whoever writes a kernel writes
 * that, too.
 *
 *   attention   by the shapes of q, k, v: forward 2 products, fused backward 5, dk and dv 4, dq 3, each of
 *               2 rows queries keys head_dim FLOPs, of which a causal mask needs half
 *   others      text is counted (body.c); bytecode of known kernels goes by shapes; what is left has bytes alone
 */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "predict/internal.h"

enum { MAX_RANK = 8, MAX_ARRAYS = 8 };

typedef struct {
    int rank;
    int64_t sizes[MAX_RANK];
    bool is_float, is_f32;
} array;

/* Of "bf16[4,8]{1,0}"; of a tuple the parts, in order. How many. */
static int parse_shapes(const char *shape, array *out, int most)
{
    int count = 0;
    for (const char *at = shape; (at = strchr(at, '[')) && count < most; at++) {
        const char *type = at;
        while (type > shape && strchr("abcdefghijklmnopqrstuvwxyz0123456789", type[-1])) type--;
        array *to = &out[count++];
        *to = (array){.is_float = *type == 'f' || *type == 'b', .is_f32 = !strncmp(type, "f32", 3)};
        for (const char *size = at + 1; *size >= '0' && *size <= '9' && to->rank < MAX_RANK;) {
            char *end;
            to->sizes[to->rank++] = strtoll(size, &end, 10);
            size = *end == ',' ? end + 1 : end;
        }
    }
    return count;
}

static double bytes_of(const ct_hlo_instruction *call)
{
    char type[16];
    double bytes = (double)ct_hlo_shape_bytes(call->shape, type);
    for (size_t i = 0; i < call->num_operands; i++) bytes += (double)ct_hlo_shape_bytes(call->operands[i]->shape, type);
    return bytes;
}

/* ---- names ---- */

static const char *const known_names[] = {
    "splash_mha_fwd", "splash_mqa_fwd",  "splash_mha_dkv", "splash_mqa_dkv", "splash_mha_dq",
    "splash_mqa_dq",  "flash_attention", "splash",         "tgmm",           "gmm",
};

/* The kernel's own name: of text its function's; bytecode has its names as they are. */
static const char *find_name(ct_arena *arena, const ct_hlo_instruction *call, const char *body, size_t size)
{
    for (size_t i = 0; i < CT_COUNT(known_names); i++) {
        const char *at = body ? memmem(body, size, known_names[i], strlen(known_names[i])) : NULL;
        if (!at) at = strstr(call->op_name, known_names[i]);
        if (!at) at = strstr(call->name, known_names[i]);
        if (!at) continue;
        size_t length = 0;
        while (length < 80 && at[length] && strchr("abcdefghijklmnopqrstuvwxyz_0123456789", at[length])) length++;
        return ct_arena_strndup(arena, at, length);
    }
    return ct_arena_strndup(arena, call->name, strcspn(call->name, "."));
}

static char *decode_body(const ct_hlo_instruction *call, size_t *out_size)
{
    *out_size = 0;
    const char *at = strstr(call->backend_config, "\"body\"");
    if (!at || !(at = strchr(at + 6, '"'))) return NULL;
    at++;
    return ct_base64_decode(at, strcspn(at, "\""), out_size);
}

/* ---- attention ---- */

/* The part of the scores that the mask shows: half, unless the name says more, as ctitan's own do (kernels/attention).
 */
static double share_of(const char *name, double keys)
{
    const char *window = strstr(name, "_window");
    double share = strstr(name, "_full") ? 1 : 0.5;
    return window ? CT_MIN(share, 2 * share * strtod(window + 7, NULL) / keys) : share;
}

static double products_of(const char *name, int num_results)
{
    if (strstr(name, "_dq")) return 3;
    if (strstr(name, "_dkv")) return num_results >= 3 ? 5 : 4;
    return strstr(name, "backward") || strstr(name, "bwd") ? 5 : 2;
}

static bool cost_attention(const ct_hlo_instruction *call, ct__kernel_cost *cost)
{
    array found[3], results[MAX_ARRAYS];
    int count = 0, num_results = 0, num_shapes = parse_shapes(call->shape, results, MAX_ARRAYS);
    for (size_t i = 0; i < call->num_operands && count < 3; i++) {
        array operand;
        if (parse_shapes(call->operands[i]->shape, &operand, 1) == 1 && operand.is_float && operand.rank >= 3)
            found[count++] = operand;
    }
    if (count < 3) return false;
    for (int i = 0; i < num_shapes; i++) num_results += results[i].is_float && results[i].rank >= found[0].rank;
    double rows = 1, lengths[2];
    int64_t dims[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) dims[i][j] = found[i].sizes[found[i].rank - 2 + j];
    bool head_dim_last = dims[0][1] == dims[1][1] && (dims[0][0] != dims[1][0] || dims[0][1] <= dims[0][0]);
    for (int i = 0; i < 2; i++) lengths[i] = (double)dims[i][!head_dim_last];
    double head_dim = (double)dims[0][head_dim_last];
    for (int i = 0; i < found[0].rank - 2; i++) rows *= (double)found[0].sizes[i];
    bool is_part = !strncmp(cost->name, "ctitan_", 7) && num_results == 3 && results[0].rank == 3 &&
                   (double)results[0].sizes[1] < lengths[0]; /* of the queries one part */
    double queries = is_part ? (double)results[0].sizes[1] : lengths[0];
    cost->flops = 2 * products_of(cost->name, num_results) * rows * queries * lengths[1] * head_dim *
                  share_of(cost->name, lengths[1]);
    if (found[0].is_f32) cost->f32_flops = cost->flops;
    return true;
}

/* ---- grouped products of megablox and tokamax ---- */

/* gmm: [M K] x [G K N] (or [G N K]) -> [M N]; tgmm: [K M] x [M N] -> [G K N]. Each row belongs to one group. */
static bool cost_grouped(const ct_hlo_instruction *call, ct__kernel_cost *cost)
{
    array found[2], result;
    int count = 0;
    for (size_t i = 0; i < call->num_operands && count < 2; i++) {
        array operand;
        if (parse_shapes(call->operands[i]->shape, &operand, 1) == 1 && operand.is_float && operand.rank >= 2)
            found[count++] = operand;
    }
    if (count < 2 || !parse_shapes(call->shape, &result, 1) || result.rank < 2) return false;
    double columns = (double)result.sizes[result.rank - 1];
    cost->flops = 2 * (double)found[0].sizes[0] * (double)found[0].sizes[1] * columns;
    if (found[0].is_f32) cost->f32_flops = cost->flops;
    return true;
}

void ct__kernel_cost_of(ct_arena *arena, const ct_hlo_instruction *call, ct__kernel_cost *out_cost)
{
    *out_cost = (ct__kernel_cost){.bytes = bytes_of(call)};
    size_t size;
    char *body = decode_body(call, &size);
    ct__body_count count;
    bool is_counted = body && ct__body_count_of(body, size, &count);
    out_cost->name = is_counted ? ct_arena_strdup(arena, count.name) : find_name(arena, call, body, size);
    free(body);
    const char *name = out_cost->name;
    if (strstr(name, "splash") || strstr(name, "attention")) {
        out_cost->is_attention = true;
        out_cost->has_flops = cost_attention(call, out_cost);
    } else if (is_counted) {
        out_cost->has_flops = true;
        out_cost->flops = count.flops;
        out_cost->f32_flops = count.f32_flops;
        if (count.window_bytes > 0) out_cost->bytes = count.window_bytes;
    } else if (strstr(name, "gmm")) {
        out_cost->has_flops = cost_grouped(call, out_cost);
    }
}
