/* Parsing and printing of placements, and the shardings of a program's inputs and outputs. */
#include "graph/placement.h"

#include <string.h>

static int find_mesh_axis(ct_graph *graph, const char *loc, const char *op, const char *name, size_t length)
{
    const char *interned = ct__intern(graph, name, length);
    int axis = ct__find_axis(graph->mesh, graph->num_mesh_axes, interned);
    if (axis < 0)
        ct__fail(graph, loc, op, "no axis %s in the mesh \"%s\"; ct_graph_set_mesh sets it", interned,
                 ct__axes_text(graph, graph->mesh, graph->num_mesh_axes));
    return axis;
}

bool ct__placement_uses(const ct_placement *placement, int mesh_axis)
{
    for (int i = 0; i < CT_MAX_RANK; i++)
        for (int j = 0; j < placement->count[i]; j++)
            if (placement->mesh_axes[i][j] == mesh_axis) return true;
    return false;
}

int64_t ct__placement_parts(const ct_graph *graph, const ct_placement *placement, int dim)
{
    int64_t parts = 1;
    for (int i = 0; i < placement->count[dim]; i++) parts *= graph->mesh[placement->mesh_axes[dim][i]].size;
    return parts;
}

/* One word, "axis=mesh_axis+mesh_axis". */
static bool parse_word(const ct_tensor *tensor, const char *loc, const char *op, const char *word, size_t length,
                       ct_placement *placement)
{
    ct_graph *graph = tensor->graph;
    const char *equals = memchr(word, '=', length);
    if (!equals) {
        ct__fail(graph, loc, op, "bad placement \"%.*s\": write axis=mesh_axis or axis=mesh_axis+mesh_axis",
                 (int)length, word);
        return false;
    }
    const char *name = ct__intern(graph, word, (size_t)(equals - word));
    int dim = ct__find_axis(tensor->axes, tensor->rank, name);
    if (dim < 0) {
        ct__fail(graph, loc, op, "no axis %s in %s", name, ct_tensor_describe(tensor));
        return false;
    }
    const char *start = equals + 1, *end = word + length;
    while (start <= end) {
        const char *plus = memchr(start, '+', (size_t)(end - start));
        const char *stop = plus ? plus : end;
        int axis = find_mesh_axis(graph, loc, op, start, (size_t)(stop - start));
        if (axis < 0) return false;
        if (ct__placement_uses(placement, axis)) {
            ct__fail(graph, loc, op, "mesh axis %s is used twice for %s", graph->mesh[axis].name,
                     ct_tensor_describe(tensor));
            return false;
        }
        placement->mesh_axes[dim][placement->count[dim]++] = axis;
        start = stop + 1;
    }
    return true;
}

bool ct__placement_divides(const ct_tensor *tensor, const char *loc, const char *op, const ct_placement *placement)
{
    for (int i = 0; i < tensor->rank; i++) {
        int64_t parts = ct__placement_parts(tensor->graph, placement, i);
        if (tensor->axes[i].size % parts == 0) continue;
        ct__fail(tensor->graph, loc, op, "axis %s of %s cannot be split into %lld equal parts", tensor->axes[i].name,
                 ct_tensor_describe(tensor), (long long)parts);
        return false;
    }
    return true;
}

bool ct__parse_placement(const ct_tensor *tensor, const char *loc, const char *op, const char *text,
                         ct_placement *out_placement)
{
    *out_placement = (ct_placement){0};
    for (const char *word = text + strspn(text, " "); *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        if (!parse_word(tensor, loc, op, word, length, out_placement)) return false;
        word += length;
    }
    return true;
}

bool ct__parse_mesh_axes(ct_graph *graph, const char *loc, const char *op, const char *text, int *out_axes,
                         int *out_count)
{
    *out_count = 0;
    for (const char *word = text + strspn(text, " "); *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        int axis = find_mesh_axis(graph, loc, op, word, length);
        if (axis < 0) return false;
        for (int i = 0; i < *out_count; i++)
            if (out_axes[i] == axis) {
                ct__fail(graph, loc, op, "mesh axis %s is named twice in \"%s\"", graph->mesh[axis].name, text);
                return false;
            }
        out_axes[(*out_count)++] = axis;
        word += length;
    }
    if (*out_count) return true;
    ct__fail(graph, loc, op, "no mesh axis named");
    return false;
}

void ct__print_placement(ct_printer *p, const ct_placement *placement, int rank)
{
    ct_str_append(p->out, "<@mesh, [");
    for (int i = 0; i < rank; i++) {
        ct_str_append(p->out, i ? ", {" : "{");
        for (int j = 0; j < placement->count[i]; j++)
            ct__print(p, "%s\"%s\"", j ? ", " : "", p->graph->mesh[placement->mesh_axes[i][j]].name);
        ct_str_append_char(p->out, '}');
    }
    ct_str_append(p->out, "]>");
}

static void set_sharding(ct_graph *graph, ct_graph_port *port, const char *op, const char *text)
{
    ct_placement placement;
    if (graph->error) return;
    if (!graph->num_mesh_axes) {
        ct__fail(graph, CT_LOC, op, "%s has a placement but the graph has no mesh: call ct_graph_set_mesh", port->name);
        return;
    }
    if (!ct__parse_placement(port->tensor, CT_LOC, op, text, &placement) ||
        !ct__placement_divides(port->tensor, CT_LOC, op, &placement))
        return;
    port->sharding = ct_arena_dup(&graph->arena, &placement, sizeof(placement));
}

void ct_graph_set_input_sharding(ct_graph *graph, const ct_tensor *input, const char *placement)
{
    if (ct_tensor_is_poison(input)) return;
    for (int i = 0; i < graph->num_inputs; i++)
        if (graph->inputs[i].tensor == input) {
            set_sharding(graph, &graph->inputs[i], "input_sharding", placement);
            return;
        }
    CT_BUG("%s is not an input", ct_tensor_describe(input));
}

void ct_graph_set_output_sharding(ct_graph *graph, int index, const char *placement)
{
    if (graph->error) return;
    CT_ASSERT(index >= 0 && index < graph->num_outputs);
    set_sharding(graph, &graph->outputs[index], "output_sharding", placement);
}
