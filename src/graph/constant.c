/* stablehlo.constant and stablehlo.iota. */
#include "graph/constant.h"

#include <string.h>

#include "graph/convert.h"
#include "graph/elementwise.h"
#include "graph/factor.h"
#include "graph/shape.h"
#include "graph/slice.h"

typedef struct constant_attrs {
    bool splat; /* one element stands for all */
    size_t size_bytes;
    void *data;
    ct_node *next_table; /* an earlier constant array of the graph */
} constant_attrs;

static void print_constant_attrs(ct_printer *p, const ct_node *node)
{
    const constant_attrs *attrs = node->attrs;
    ct_str_append(p->out, "value = dense<");
    if (attrs->splat) {
        ct__print_constant_value(p, node->results[0]->dtype, attrs->data);
    } else if (node->results[0]->dtype == CT_DTYPE_BOOL) { /* packed bits in hexadecimal form, so spell them out */
        const uint8_t *values = attrs->data;
        for (int i = 0; i < node->results[0]->rank; i++) ct_str_append_char(p->out, '[');
        for (size_t i = 0; i < attrs->size_bytes; i++) {
            if (i) { /* close and open as many brackets as dims end here */
                int64_t block = 1;
                int closed = 0;
                for (int d = node->results[0]->rank - 1; d > 0; d--) {
                    block *= node->results[0]->axes[d].size;
                    if (i % (size_t)block == 0) closed++;
                }
                for (int k = 0; k < closed; k++) ct_str_append_char(p->out, ']');
                ct_str_append(p->out, ", ");
                for (int k = 0; k < closed; k++) ct_str_append_char(p->out, '[');
            }
            ct_str_append(p->out, values[i] ? "true" : "false");
        }
        for (int i = 0; i < node->results[0]->rank; i++) ct_str_append_char(p->out, ']');
    } else {
        const unsigned char *bytes = attrs->data;
        ct_str_append(p->out, "\"0x");
        for (size_t i = 0; i < attrs->size_bytes; i++) ct__print(p, "%02X", bytes[i]);
        ct_str_append_char(p->out, '"');
    }
    ct_str_append(p->out, "> : ");
    ct__print_type(p, node->results[0]);
}

static void local_constant(const ct_local *local);

static const ct_op op_constant = {.name = "stablehlo.constant",
                                  .print_attrs = print_constant_attrs,
                                  .zero_gradient = true,
                                  .cheap = true,
                                  .factors = ct__factors_elementwise,
                                  .local = local_constant};

/* An equal array made earlier in the same region: tables of many values are printed once. */
static ct_tensor *find_table(const ct_graph *graph, const constant_attrs *attrs, const ct_tensor *type)
{
    for (ct_node *node = graph->tables; node; node = ((constant_attrs *)node->attrs)->next_table) {
        const constant_attrs *other = node->attrs;
        if (node->region == graph->region && other->size_bytes == attrs->size_bytes &&
            ct__same_type(node->results[0], type) && !memcmp(other->data, attrs->data, attrs->size_bytes))
            return node->results[0];
    }
    return NULL;
}

/* ---- zeros beside another tensor ---- */

static void print_zeros_beside(ct_printer *p, const ct_node *node)
{
    const ct_tensor *result = node->results[0];
    const char *type = ct_dtype_mlir(result->dtype);
    uint64_t bits = 0;
    int zero = ct__print_new_name(p), name = ct__print_new_name(p);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.constant\"() <{value = dense<", zero);
    ct__print_constant_value(p, result->dtype, &bits);
    ct__print(p, "> : tensor<%s>}> : () -> tensor<%s>", type, type);
    ct__print_line(p);
    ct__print(p, "%%%d = \"stablehlo.broadcast_in_dim\"(%%%d) <{broadcast_dimensions = array<i64>}> : (tensor<%s>) -> ",
              name, zero, type);
    ct__print_type(p, result);
    ct__print_bind(p, result, name);
}

static const ct_op op_zeros_beside = {.name = "ctitan.zeros_beside",
                                      .print = print_zeros_beside,
                                      .zero_gradient = true,
                                      .cheap = true,
                                      .factors = ct__factors_elementwise};

ct_tensor *ct__zeros_beside(const char *loc, ct_tensor *x)
{
    if (ct__any_poison(1, &x)) return x->graph->poison;
    if (!x->graph->parallel) return ct__full_like(loc, x, 0);
    return ct__result_like(ct__node_new(x->graph, &op_zeros_beside, loc, 1, &x), x);
}

bool ct__is_zero_constant(const ct_node *node)
{
    const constant_attrs *attrs = node->attrs;
    if (node->op == &op_zeros_beside) return true;
    if (node->op != &op_constant || !attrs->splat) return false;
    for (size_t i = 0; i < attrs->size_bytes; i++)
        if (((const char *)attrs->data)[i]) return false;
    return true;
}

static ct_tensor *constant(const char *loc, ct_graph *graph, ct_dtype dtype, int rank, const ct_axis *axes, bool splat,
                           const void *data, size_t size_bytes)
{
    if (graph->error) return graph->poison;
    constant_attrs *attrs = CT_ARENA_NEW(&graph->arena, constant_attrs);
    attrs->splat = splat;
    attrs->size_bytes = size_bytes;
    attrs->data = ct_arena_dup(&graph->arena, data, size_bytes);
    bool is_table = !splat && !graph->insert_before; /* what is inserted may come after an equal one */
    if (is_table) {
        ct_tensor type = {.dtype = dtype, .rank = rank};
        memcpy(type.axes, axes, (size_t)rank * sizeof(*axes));
        ct_tensor *known = find_table(graph, attrs, &type);
        if (known) return known;
    }
    ct_node *node = ct__node_new(graph, &op_constant, loc, 0, NULL);
    node->attrs = attrs;
    if (is_table) {
        attrs->next_table = graph->tables;
        graph->tables = node;
    }
    return ct__result(node, dtype, rank, axes);
}

/* A table with zeros after its end along each dim, in the graph's arena. */
static void *pad_table(ct_graph *graph, const void *data, size_t element_bytes, int rank, const ct_axis *axes,
                       const ct_axis *padded_axes, size_t *out_size_bytes)
{
    *out_size_bytes = element_bytes;
    for (int i = 0; i < rank; i++) *out_size_bytes *= (size_t)padded_axes[i].size;
    char *padded = ct_arena_alloc(&graph->arena, *out_size_bytes);
    memset(padded, 0, *out_size_bytes);
    int64_t rows = 1, columns = axes[rank - 1].size;
    for (int i = 0; i < rank - 1; i++) rows *= axes[i].size;
    for (int64_t row = 0; row < rows; row++) {
        int64_t rest = row, to = 0, stride = padded_axes[rank - 1].size;
        for (int i = rank - 2; i >= 0; i--) {
            to += rest % axes[i].size * stride;
            rest /= axes[i].size;
            stride *= padded_axes[i].size;
        }
        memcpy(padded + (size_t)to * element_bytes, (const char *)data + (size_t)(row * columns) * element_bytes,
               (size_t)columns * element_bytes);
    }
    return padded;
}

/* A part of a table is cut from the whole one, so that every device runs the same program. */
static void local_constant(const ct_local *local)
{
    const ct_node *node = local->node;
    const constant_attrs *attrs = node->attrs;
    const ct_tensor *whole = node->results[0];
    ct_graph *graph = node->graph;
    ct_axis padded[CT_MAX_RANK], local_axes[CT_MAX_RANK];
    int factors[CT_MAX_RANK];
    bool is_split = false, is_padded = false;
    ct__local_axes(local, 0, local_axes);
    for (int i = 0; i < whole->rank; i++) {
        padded[i] = whole->axes[i];
        factors[i] = ct__factor_of(&local->factors->results[0][i]);
        if (!ct__local_is_split(local, factors[i])) continue;
        is_split = true;
        padded[i].size = local_axes[i].size * ct__local_parts(local, factors[i]);
        is_padded |= padded[i].size != whole->axes[i].size;
    }
    if (attrs->splat || !is_split) {
        ct__local_clone(local, node->attrs);
        return;
    }
    const void *data = attrs->data;
    size_t size_bytes = attrs->size_bytes;
    if (is_padded)
        data = pad_table(graph, data, ct_dtype_bytes(whole->dtype), whole->rank, whole->axes, padded, &size_bytes);
    ct_tensor *part = constant(node->loc, graph, whole->dtype, whole->rank, padded, false, data, size_bytes);
    for (int i = 0; i < whole->rank; i++)
        if (ct__local_is_split(local, factors[i]))
            part = ct__dynamic_slice(node->loc, part, whole->axes[i].name, ct__local_offset(local, factors[i]),
                                     local_axes[i].size);
    local->results[0] = part;
}

ct_tensor *ct__scalar(const char *loc, ct_graph *graph, ct_dtype dtype, double value)
{
    uint64_t element = 0;
    ct_array array = {.dtype = dtype, .data = &element};
    if (dtype == CT_DTYPE_S64 && value >= 0x1p63)
        element = INT64_MAX; /* no double is just below 2^63 */
    else
        ct_array_set(&array, 0, value);
    return constant(loc, graph, dtype, 0, NULL, true, &element, ct_dtype_bytes(dtype));
}

ct_tensor *ct__scalar_like(const char *loc, const ct_tensor *x, double value)
{
    if (ct_tensor_is_poison(x)) return x->graph->poison;
    return ct__scalar(loc, x->graph, x->dtype, value);
}

ct_tensor *ct__full_like(const char *loc, const ct_tensor *x, double value)
{
    if (ct_tensor_is_poison(x)) return x->graph->poison;
    return ct__broadcast_to(loc, ct__scalar(loc, x->graph, x->dtype, value), x->rank, x->axes);
}

/* Axes whose sizes are all known. */
static bool sized_axes(const char *loc, ct_graph *graph, const char *op, const char *text, ct_axis *axes, int *rank)
{
    if (graph->error || !ct__parse_axes(graph, loc, op, text, axes, rank)) return false;
    for (int i = 0; i < *rank; i++)
        if (axes[i].size < 0) {
            ct__fail(graph, loc, op, "axis %s has no size: declare it or write %s=SIZE", axes[i].name, axes[i].name);
            return false;
        }
    return true;
}

ct_tensor *ct__full(const char *loc, ct_graph *graph, ct_dtype dtype, const char *text, double value)
{
    ct_axis axes[CT_MAX_RANK];
    int rank;
    if (!sized_axes(loc, graph, "full", text, axes, &rank)) return graph->poison;
    return ct__broadcast_to(loc, ct__scalar(loc, graph, dtype, value), rank, axes);
}

ct_tensor *ct__constant(const char *loc, ct_graph *graph, const ct_array *array, const char *text)
{
    ct_axis axes[CT_MAX_RANK];
    int rank;
    if (graph->error || !ct__parse_axes(graph, loc, "constant", text, axes, &rank)) return graph->poison;
    if (rank != array->rank)
        return ct__fail(graph, loc, "constant", "the array has %d dims, \"%s\" names %d", array->rank, text, rank);
    for (int i = 0; i < rank; i++) {
        if (axes[i].size >= 0 && axes[i].size != array->sizes[i])
            return ct__fail(graph, loc, "constant", "axis %s has size %lld, the array has %lld", axes[i].name,
                            (long long)axes[i].size, (long long)array->sizes[i]);
        axes[i].size = array->sizes[i];
    }
    bool splat = ct_array_num_elements(array) == 1;
    return constant(loc, graph, array->dtype, rank, axes, splat, array->data, ct_array_bytes(array));
}

static void print_iota_attrs(ct_printer *p, const ct_node *node)
{
    ct__print(p, "iota_dimension = %lld : i64", (long long)*(const int64_t *)node->attrs);
}

static void local_iota(const ct_local *local);

static const ct_op op_iota = {.name = "stablehlo.iota",
                              .print_attrs = print_iota_attrs,
                              .zero_gradient = true,
                              .cheap = true,
                              .factors = ct__factors_elementwise,
                              .local = local_iota};

static ct_tensor *iota(const char *loc, ct_graph *graph, ct_dtype dtype, int rank, const ct_axis *axes, int64_t dim)
{
    ct_node *node = ct__node_new(graph, &op_iota, loc, 0, NULL);
    node->attrs = ct_arena_dup(&graph->arena, &dim, sizeof(dim));
    return ct__result(node, dtype, rank, axes);
}

/* The device's positions in the whole array. Floats count in integers, so that the sum is rounded once. */
static void local_iota(const ct_local *local)
{
    const ct_node *node = local->node;
    const ct_tensor *whole = node->results[0];
    int64_t dim = *(const int64_t *)node->attrs;
    int factor = ct__factor_of(&local->factors->results[0][dim]);
    ct_axis axes[CT_MAX_RANK];
    ct__local_axes(local, 0, axes);
    bool is_split = ct__local_is_split(local, factor);
    ct_dtype dtype = is_split && ct_dtype_is_float(whole->dtype) ? CT_DTYPE_S32 : whole->dtype;
    ct_tensor *ramp = iota(node->loc, node->graph, dtype, whole->rank, axes, dim);
    if (is_split) {
        ct_tensor *offset = ct__convert(node->loc, ct__local_offset(local, factor), dtype);
        ramp = ct__convert(node->loc, ct__add(node->loc, ramp, offset), whole->dtype);
    }
    local->results[0] = ramp;
}

ct_tensor *ct__iota(const char *loc, ct_graph *graph, ct_dtype dtype, const char *text, const char *along)
{
    ct_axis axes[CT_MAX_RANK];
    int rank;
    if (!sized_axes(loc, graph, "iota", text, axes, &rank)) return graph->poison;
    int64_t dim = ct__find_axis(axes, rank, ct__intern_z(graph, along)); /* (C1): iota_dimension < rank */
    if (dim < 0) return ct__fail(graph, loc, "iota", "no axis %s in \"%s\"", along, text);
    if (dtype == CT_DTYPE_BOOL) return ct__fail(graph, loc, "iota", "dtype bool is not supported");
    return iota(loc, graph, dtype, rank, axes, dim);
}
