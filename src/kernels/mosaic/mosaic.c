/* Kernels: declarations, transforms, the module's text. Grid indices and prefetched scalars have the same SSA names in
 * the kernel's function and in its transforms, so that a transform may be written with the kernel's own values.
 */
#include "kernels/mosaic/mosaic.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "chips/chips.h"
#include "kernels/mosaic/internal.h"

ct_mosaic *ct_mosaic_new(const char *name)
{
    ct_mosaic *k = ct_alloc_zeroed(1, sizeof(*k));
    k->name = ct_strdup(name);
    ct_str_init(&k->body);
    ct_str_init(&k->transforms);
    ct_str_init(&k->text);
    k->out = &k->body;
    return k;
}

void ct_mosaic_free(ct_mosaic *k)
{
    ct_str_deinit(&k->body);
    ct_str_deinit(&k->transforms);
    ct_str_deinit(&k->text);
    free(k->name);
    free(k);
}

int64_t ct__mosaic_element_bytes(ct_mosaic_element element)
{
    return element == CT_MOSAIC_BF16 ? 2 : element == CT_MOSAIC_I1 ? 1 : 4;
}

ct_mosaic_value ct__mosaic_new_value(ct_mosaic *k, ct_mosaic_kind kind, ct_mosaic_element element, int rank,
                                     const int64_t *sizes)
{
    CT_ASSERT(rank <= CT_MOSAIC_MAX_RANK);
    ct_mosaic_value value = {.id = ++k->next_id, .kind = kind, .element = element, .rank = rank};
    for (int i = 0; i < rank; i++) {
        CT_ASSERT(sizes[i] > 0);
        value.sizes[i] = sizes[i];
    }
    return value;
}

void ct__mosaic_print_type(ct_str *out, const ct_mosaic_value *value)
{
    static const char *const elements[] = {"i1", "i32", "index", "bf16", "f32"};
    if (value->kind == CT_MOSAIC_SCALAR) {
        ct_str_append(out, elements[value->element]);
        return;
    }
    ct_str_append(out, value->kind == CT_MOSAIC_VECTOR ? "vector<" : "memref<");
    for (int i = 0; i < value->rank; i++) ct_str_printf(out, "%lldx", (long long)value->sizes[i]);
    ct_str_append(out, elements[value->element]);
    if (value->kind == CT_MOSAIC_VMEM) ct_str_append(out, ", #tpu.memory_space<vmem>");
    if (value->kind == CT_MOSAIC_SMEM) ct_str_append(out, ", #tpu.memory_space<smem>");
    ct_str_append_char(out, '>');
}

/* ---- declarations ---- */

static ct_mosaic_value declare(ct_mosaic *k, ct__mosaic_stage stage, ct_mosaic_kind kind, ct_mosaic_element element,
                               int rank, const int64_t *sizes)
{
    if (k->stage > stage) CT_BUG("%s: grid, prefetched, inputs, outputs, scratch are declared in that order", k->name);
    CT_ASSERT(k->num_args < CT__MOSAIC_MAX_ARGS);
    k->stage = stage;
    ct_mosaic_value value = ct__mosaic_new_value(k, kind, element, rank, sizes);
    k->args[k->num_args++] = value;
    k->counts[stage]++;
    return value;
}

ct_mosaic_value ct_mosaic_grid(ct_mosaic *k, int64_t size, bool parallel)
{
    CT_ASSERT(size > 0);
    k->bounds[k->num_args] = size;
    k->parallel[k->num_args] = parallel;
    return declare(k, CT__GRID, CT_MOSAIC_SCALAR, CT_MOSAIC_I32, 0, NULL);
}

ct_mosaic_value ct_mosaic_prefetch(ct_mosaic *k, int64_t count)
{
    return declare(k, CT__PREFETCH, CT_MOSAIC_SMEM, CT_MOSAIC_I32, 1, &count);
}

/* (%1: i32, %2: ...) of the first count arguments. */
static void print_arguments(ct_str *out, const ct_mosaic *k, int count)
{
    ct_str_append(out, "^bb0(");
    for (int i = 0; i < count; i++) {
        ct_str_printf(out, "%s%%%d: ", i ? ", " : "", k->args[i].id);
        ct__mosaic_print_type(out, &k->args[i]);
    }
    ct_str_append(out, "):\n");
}

static void print_argument_types(ct_str *out, const ct_mosaic *k, int count)
{
    ct_str_append_char(out, '(');
    for (int i = 0; i < count; i++) {
        if (i) ct_str_append(out, ", ");
        ct__mosaic_print_type(out, &k->args[i]);
    }
    ct_str_append_char(out, ')');
}

static void add_transform(ct_mosaic *k, int index, int rank, ct_mosaic_transform *transform, const void *context)
{
    int count = k->counts[CT__GRID] + k->counts[CT__PREFETCH];
    ct_str *out = &k->transforms;
    ct_str_append(out, "\"stable_mosaic.func.func\"() ({\n");
    print_arguments(out, k, count);
    ct_mosaic_value blocks[CT_MOSAIC_MAX_RANK];
    k->out = out;
    transform(k, context, blocks);
    k->out = &k->body;
    ct_str_append(out, "\"stable_mosaic.func.return\"(");
    for (int i = 0; i < rank; i++) {
        CT_ASSERT(blocks[i].kind == CT_MOSAIC_SCALAR && blocks[i].element == CT_MOSAIC_I32);
        ct_str_printf(out, "%s%%%d", i ? ", " : "", blocks[i].id);
    }
    ct_str types;
    ct_str_init(&types);
    for (int i = 0; i < rank; i++) ct_str_append(&types, i ? ", i32" : "i32");
    ct_str_printf(out, ") : (%s) -> ()\n}) {function_type = ", types.data);
    print_argument_types(out, k, count);
    ct_str_printf(out, " -> %s%s%s, sym_name = \"transform_%d\"} : () -> ()\n", rank > 1 ? "(" : "", types.data,
                  rank > 1 ? ")" : "", index);
    ct_str_deinit(&types);
}

/* Rows in groups of 8 (16 of two bytes), columns in groups of 128; a lone row takes as much as it needs. */
static int64_t tiled_bytes(const ct_mosaic_value *value)
{
    int64_t bytes = ct__mosaic_element_bytes(value->element), elements = bytes;
    for (int i = 0; i < value->rank; i++) {
        int64_t tile = i == value->rank - 1 ? CT_MOSAIC_LANES : i == value->rank - 2 ? 32 / bytes : 1;
        elements *= (value->sizes[i] + tile - 1) / tile * tile;
    }
    return elements;
}

static ct_mosaic_value window(ct_mosaic *k, ct__mosaic_stage stage, ct_mosaic_element element, int rank,
                              const int64_t *sizes, ct_mosaic_transform *transform, const void *context)
{
    ct_mosaic_value value = declare(k, stage, CT_MOSAIC_VMEM, element, rank, sizes);
    k->buffer_bytes += 2 * tiled_bytes(&value);
    add_transform(k, k->counts[CT__INPUT] + k->counts[CT__OUTPUT] - 1, rank, transform, context);
    return value;
}

ct_mosaic_value ct_mosaic_input(ct_mosaic *k, ct_mosaic_element element, int rank, const int64_t *sizes,
                                ct_mosaic_transform *transform, const void *context)
{
    return window(k, CT__INPUT, element, rank, sizes, transform, context);
}

ct_mosaic_value ct_mosaic_output(ct_mosaic *k, ct_mosaic_element element, int rank, const int64_t *sizes,
                                 ct_mosaic_transform *transform, const void *context)
{
    return window(k, CT__OUTPUT, element, rank, sizes, transform, context);
}

ct_mosaic_value ct_mosaic_scratch(ct_mosaic *k, ct_mosaic_element element, int rank, const int64_t *sizes)
{
    ct_mosaic_value value = declare(k, CT__SCRATCH, CT_MOSAIC_VMEM, element, rank, sizes);
    k->buffer_bytes += tiled_bytes(&value);
    return value;
}

int64_t ct_mosaic_buffer_bytes(const ct_mosaic *k)
{
    return k->buffer_bytes;
}

/* libtpu keeps this much of vector memory for itself: a kernel that asks for all is cut down, with an error in its log.
 */
enum { LIBTPU_BYTES = 64 << 10 };

int64_t ct_mosaic_chip_bytes(const char *chip)
{
    const ct_chip *known = ct_chip_find(chip);
    return (known ? known->vmem_bytes : (int64_t)64 << 20) - LIBTPU_BYTES;
}

/* ---- the module ---- */

static void print_grid(ct_str *out, const ct_mosaic *k)
{
    ct_str_append(out, "dimension_semantics = [");
    for (int i = 0; i < k->counts[CT__GRID]; i++)
        ct_str_printf(out, "%s#tpu.dimension_semantics<%s>", i ? ", " : "", k->parallel[i] ? "parallel" : "arbitrary");
    ct_str_append(out, "], function_type = ");
    print_argument_types(out, k, k->num_args);
    ct_str_append(out, " -> (), iteration_bounds = array<i64");
    for (int i = 0; i < k->counts[CT__GRID]; i++)
        ct_str_printf(out, "%s%lld", i ? ", " : ": ", (long long)k->bounds[i]);
}

static void print_windows(ct_str *out, const ct_mosaic *k)
{
    const ct_mosaic_value *windows = k->args + k->counts[CT__GRID] + k->counts[CT__PREFETCH];
    for (int i = 0; i < k->counts[CT__INPUT] + k->counts[CT__OUTPUT]; i++) {
        ct_str_printf(out, "%s{transform_indices = @transform_%d, window_bounds = array<i64", i ? ", " : "", i);
        for (int j = 0; j < windows[i].rank; j++)
            ct_str_printf(out, "%s%lld", j ? ", " : ": ", (long long)windows[i].sizes[j]);
        ct_str_append(out, ">}");
    }
}

const char *ct_mosaic_text(ct_mosaic *k)
{
    if (k->text.length) return k->text.data;
    CT_ASSERT(k->depth == 0);
    ct_str *out = &k->text;
    ct_str_append(out, "\"builtin.module\"() ({\n\"stable_mosaic.func.func\"() ({\n");
    print_arguments(out, k, k->num_args);
    ct_str_append(out, k->body.data);
    ct_str_append(out, "\"stable_mosaic.func.return\"() : () -> ()\n}) {");
    print_grid(out, k);
    ct_str_printf(out,
                  ">, scalar_prefetch = %d : i64, scratch_operands = %d : i64, sym_name = \"%s\", "
                  "tpu.core_type = #tpu.core_type<tc>, window_params = [",
                  k->counts[CT__PREFETCH], k->counts[CT__SCRATCH], k->name);
    print_windows(out, k);
    ct_str_append(out, "]} : () -> ()\n");
    ct_str_append(out, k->transforms.data);
    ct_str_append(out, "}) {stable_mosaic.version = 15 : i64} : () -> ()\n");
    return out->data;
}

void ct_mosaic_cost(ct_mosaic *k, double flops, double transcendentals, double bytes)
{
    k->flops = flops;
    k->transcendentals = transcendentals;
    k->bytes = bytes;
}

void ct_mosaic_limit(ct_mosaic *k, int64_t bytes)
{
    k->limit_bytes = bytes;
}
