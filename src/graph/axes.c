/* Axes: parsing lists of names, finding dims, describing tensors. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/node.h"

void ct_graph_declare_axis(ct_graph *graph, const char *name, int64_t size)
{
    const char *interned = ct__intern_z(graph, name);
    int dim = ct__find_axis(graph->declared, graph->num_declared, interned);
    if (dim < 0) {
        if (graph->num_declared == graph->declared_capacity) {
            graph->declared_capacity = graph->declared_capacity ? graph->declared_capacity * 2 : 16;
            graph->declared = ct_realloc(graph->declared, (size_t)graph->declared_capacity * sizeof(*graph->declared));
        }
        dim = graph->num_declared++;
    }
    graph->declared[dim] = (ct_axis){interned, size};
}

int64_t ct_graph_axis_size(const ct_graph *graph, const char *name)
{
    for (int i = 0; i < graph->num_declared; i++)
        if (!strcmp(graph->declared[i].name, name)) return graph->declared[i].size;
    return 0;
}

int ct__find_axis(const ct_axis *axes, int rank, const char *interned_name)
{
    for (int i = 0; i < rank; i++)
        if (axes[i].name == interned_name) return i;
    return -1;
}

/* The next word of a list: [*start, *start + length); false at the end. */
static bool next_word(const char **cursor, const char **start, size_t *length)
{
    while (isspace((unsigned char)**cursor)) (*cursor)++;
    *start = *cursor;
    while (**cursor && !isspace((unsigned char)**cursor)) (*cursor)++;
    *length = (size_t)(*cursor - *start);
    return *length > 0;
}

bool ct__parse_axes(ct_graph *graph, const char *loc, const char *op, const char *text, ct_axis *out_axes,
                    int *out_rank)
{
    const char *cursor = text, *word;
    size_t length;
    int rank = 0;
    *out_rank = 0;
    while (next_word(&cursor, &word, &length)) {
        if (rank == CT_MAX_RANK) {
            ct__fail(graph, loc, op, "more than %d axes in \"%s\"", CT_MAX_RANK, text);
            return false;
        }
        const char *equals = memchr(word, '=', length);
        const char *name = ct__intern(graph, word, equals ? (size_t)(equals - word) : length);
        int64_t size = -1;
        if (equals) {
            char *end;
            size = strtoll(equals + 1, &end, 10);
            if (end != word + length || end == equals + 1 || size < 0) {
                ct__fail(graph, loc, op, "bad size in \"%s\": write name=SIZE", text);
                return false;
            }
        } else {
            int declared = ct__find_axis(graph->declared, graph->num_declared, name);
            if (declared >= 0) size = graph->declared[declared].size;
        }
        if (ct__find_axis(out_axes, rank, name) >= 0) {
            ct__fail(graph, loc, op, "axis %s occurs twice in \"%s\"", name, text);
            return false;
        }
        out_axes[rank++] = (ct_axis){name, size};
    }
    *out_rank = rank;
    return true;
}

bool ct__parse_dims(const ct_tensor *tensor, const char *loc, const char *op, const char *text, int *out_dims,
                    int *out_count)
{
    const char *cursor = text, *word;
    size_t length;
    int count = 0;
    *out_count = 0;
    while (next_word(&cursor, &word, &length)) {
        const char *name = ct__intern(tensor->graph, word, length);
        int dim = ct__find_axis(tensor->axes, tensor->rank, name);
        if (dim < 0) {
            ct__fail(tensor->graph, loc, op, "no axis %s in %s", name, ct_tensor_describe(tensor));
            return false;
        }
        for (int i = 0; i < count; i++)
            if (out_dims[i] == dim) {
                ct__fail(tensor->graph, loc, op, "axis %s is named twice in \"%s\"", name, text);
                return false;
            }
        out_dims[count++] = dim;
    }
    *out_count = count;
    return true;
}

int ct__parse_dim(const ct_tensor *tensor, const char *loc, const char *op, const char *axis)
{
    int dims[CT_MAX_RANK], count;
    if (!ct__parse_dims(tensor, loc, op, axis, dims, &count)) return -1;
    if (count == 1) return dims[0];
    ct__fail(tensor->graph, loc, op, "takes one axis, found \"%s\"", axis);
    return -1;
}

int64_t ct__num_elements(const ct_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++) /* too many is an error of the graph already */
        if (!ct_checked_mul(count, tensor->axes[i].size, &count)) return INT64_MAX;
    return count;
}

bool ct__same_type(const ct_tensor *a, const ct_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->axes[i].name != b->axes[i].name || a->axes[i].size != b->axes[i].size) return false;
    return true;
}

const char *ct__axes_text(ct_graph *graph, const ct_axis *axes, int rank)
{
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < rank; i++) ct_str_printf(&text, "%s%s", i ? " " : "", axes[i].name);
    const char *kept = ct__intern_z(graph, text.data);
    ct_str_deinit(&text);
    return kept;
}

const char *ct_tensor_describe(const ct_tensor *tensor)
{
    if (ct_tensor_is_poison(tensor)) return "poison";
    ct_str text;
    ct_str_init(&text);
    ct_str_printf(&text, "%s[", ct_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++)
        ct_str_printf(&text, "%s%s=%lld", i ? " " : "", tensor->axes[i].name, (long long)tensor->axes[i].size);
    ct_str_append_char(&text, ']');
    const char *kept = ct_arena_strdup(&tensor->graph->arena, text.data);
    ct_str_deinit(&text);
    return kept;
}

ct_graph *ct_graph_of(const ct_tensor *tensor)
{
    return tensor->graph;
}

ct_dtype ct_tensor_dtype(const ct_tensor *tensor)
{
    return tensor->dtype;
}

int ct_tensor_rank(const ct_tensor *tensor)
{
    return tensor->rank;
}

const char *ct_tensor_axis_name(const ct_tensor *tensor, int dim)
{
    CT_ASSERT(dim >= 0 && dim < tensor->rank);
    return tensor->axes[dim].name;
}

int64_t ct_tensor_size(const ct_tensor *tensor, int dim)
{
    CT_ASSERT(dim >= 0 && dim < tensor->rank);
    return tensor->axes[dim].size;
}

int ct_tensor_find_axis(const ct_tensor *tensor, const char *axis)
{
    for (int i = 0; i < tensor->rank; i++)
        if (!strcmp(tensor->axes[i].name, axis)) return i;
    return -1;
}

int64_t ct_tensor_axis_size(const ct_tensor *tensor, const char *axis)
{
    int dim = ct_tensor_find_axis(tensor, axis);
    return dim < 0 ? 0 : tensor->axes[dim].size;
}

bool ct_tensor_is_poison(const ct_tensor *tensor)
{
    return tensor == tensor->graph->poison;
}

void ct_graph_set_mesh(ct_graph *graph, const char *axes)
{
    ct_axis parsed[CT_MAX_RANK];
    int rank;
    if (!ct__parse_axes(graph, CT_LOC, "mesh", axes, parsed, &rank)) return;
    graph->mesh = ct_arena_dup(&graph->arena, parsed, (size_t)rank * sizeof(*parsed));
    graph->num_mesh_axes = rank;
}
