/* Graphs, tensors, nodes and regions: making, naming, failing. Memory is one arena per graph. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "graph/group.h"

/* Interned strings: a chained table that lives in the arena, so nothing here is freed singly. */
typedef struct interned_string {
    struct interned_string *next;
    uint64_t hash;
    char text[];
} interned_string;
struct ct_interned {
    interned_string *buckets[512];
};

const char *ct__intern(ct_graph *graph, const char *text, size_t length)
{
    uint64_t hash = ct_hash_bytes(text, length);
    interned_string **bucket = &graph->interned->buckets[hash % CT_COUNT(graph->interned->buckets)];
    for (interned_string *s = *bucket; s; s = s->next)
        if (s->hash == hash && !strncmp(s->text, text, length) && !s->text[length]) return s->text;
    interned_string *s = ct_arena_alloc(&graph->arena, sizeof(*s) + length + 1);
    s->next = *bucket;
    s->hash = hash;
    memcpy(s->text, text, length);
    *bucket = s;
    return s->text;
}

const char *ct__intern_z(ct_graph *graph, const char *text)
{
    return ct__intern(graph, text, strlen(text));
}

ct_graph *ct_graph_new(const char *name)
{
    ct_graph *graph = ct_alloc_zeroed(1, sizeof(*graph));
    ct_arena_init(&graph->arena);
    graph->interned = CT_ARENA_NEW(&graph->arena, struct ct_interned);
    graph->name = ct_arena_strdup(&graph->arena, name);
    graph->scope = "";
    graph->main = ct__region_new(graph, NULL);
    graph->region = graph->main;
    graph->poison = CT_ARENA_NEW(&graph->arena, ct_tensor);
    *graph->poison = (ct_tensor){.graph = graph, .region = graph->main, .id = graph->num_tensors++};
    return graph;
}

void ct_graph_free(ct_graph *graph)
{
    if (!graph) return;
    ct_status_free(graph->error);
    free(graph->declared);
    free(graph->inputs);
    free(graph->outputs);
    ct_arena_deinit(&graph->arena);
    free(graph);
}

ct_status *ct_graph_check(const ct_graph *graph)
{
    if (!graph->error) return NULL;
    return ct_error(ct_status_code(graph->error), "%s", ct_status_message(graph->error));
}

bool ct_graph_has_failed(const ct_graph *graph)
{
    return graph->error != NULL;
}

ct_tensor *ct__fail(ct_graph *graph, const char *loc, const char *op, const char *format, ...)
{
    if (graph->error) return graph->poison;
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    const char *line = graph->loc_override ? graph->loc_override : loc;
    if (!strncmp(line, "src/", 4)) line += 4;
    graph->error = ct_error(CT_CODE_INVALID_ARGUMENT, "%s: %s: %s%s%s%s", line, op, text,
                            graph->scope[0] ? " (in " : "", graph->scope, graph->scope[0] ? ")" : "");
    return graph->poison;
}

void ct_scope_push(ct_graph *graph, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    CT_ASSERT(graph->scope_depth < (int)CT_COUNT(graph->scopes));
    graph->scopes[graph->scope_depth++] = graph->scope;
    graph->scope =
        ct__intern_z(graph, ct_arena_printf(&graph->arena, "%s%s%s", graph->scope, graph->scope[0] ? "." : "", text));
}

void ct_scope_pop(ct_graph *graph)
{
    CT_ASSERT(graph->scope_depth > 0);
    graph->scope = graph->scopes[--graph->scope_depth];
}

const char *ct__loc_enter(ct_graph *graph, const char *loc)
{
    const char *saved = graph->loc_override;
    if (!saved) graph->loc_override = loc;
    return saved;
}

void ct__loc_leave(ct_graph *graph, const char *saved)
{
    graph->loc_override = saved;
}

/* ---- tensors and nodes ---- */

static ct_tensor *tensor_new(ct_graph *graph, ct_node *node, ct_region *region, int index, ct_dtype dtype, int rank,
                             const ct_axis *axes)
{
    ct_tensor *tensor = CT_ARENA_NEW(&graph->arena, ct_tensor);
    *tensor = (ct_tensor){.graph = graph,
                          .node = node,
                          .region = region,
                          .index = index,
                          .id = graph->num_tensors++,
                          .dtype = dtype,
                          .rank = rank};
    CT_ASSERT(rank >= 0 && rank <= CT_MAX_RANK);
    for (int i = 0; i < rank; i++) tensor->axes[i] = axes[i];
    int64_t bytes = (int64_t)ct_dtype_bytes(dtype);
    bool fits = true; /* so that nobody after this need look whether counts of elements and bytes overflow */
    for (int i = 0; i < rank; i++) fits = fits && ct_checked_mul(bytes, axes[i].size, &bytes);
    if (!fits)
        ct__fail(graph, node ? node->loc : CT_LOC, node ? node->op->name : "input", "%s has more than 2^63 bytes",
                 ct_tensor_describe(tensor));
    return tensor;
}

/* Appends item to an arena array of count items, which grows at powers of two. */
static void *array_push(ct_graph *graph, void *array, int count, void *item)
{
    void **items = array;
    if ((count & (count - 1)) == 0) { /* 0, 1, 2, 4, ...: full */
        void **grown = CT_ARENA_ARRAY(&graph->arena, void *, count ? count * 2 : 1);
        if (count) memcpy(grown, items, (size_t)count * sizeof(*items));
        items = grown;
    }
    items[count] = item;
    return items;
}

static void node_link(ct_node *node)
{
    ct_graph *graph = node->graph;
    ct_region *region = node->region;
    ct_node *before = graph->insert_before;
    node->next = before;
    node->previous = before ? before->previous : region->last;
    *(node->previous ? &node->previous->next : &region->first) = node;
    *(before ? &before->previous : &region->last) = node;
}

ct_node *ct__node_new(ct_graph *graph, const ct_op *op, const char *loc, int num_operands, ct_tensor *const *operands)
{
    ct_node *node = CT_ARENA_NEW(&graph->arena, ct_node);
    *node = (ct_node){.op = op,
                      .graph = graph,
                      .region = graph->region,
                      .loc = graph->loc_override ? graph->loc_override : loc,
                      .scope = graph->scope,
                      .checkpoint = graph->checkpoint,
                      .custom = graph->custom};
    for (int i = 0; i < num_operands; i++) ct__node_add_operand(node, operands[i]);
    node_link(node);
    return node;
}

void ct__node_add_operand(ct_node *node, ct_tensor *operand)
{
    node->operands = array_push(node->graph, node->operands, node->num_operands, operand);
    node->num_operands++;
}

void ct__node_add_region(ct_node *node, ct_region *region)
{
    node->regions = array_push(node->graph, node->regions, node->num_regions, region);
    node->num_regions++;
}

ct_tensor *ct__result(ct_node *node, ct_dtype dtype, int rank, const ct_axis *axes)
{
    ct_tensor *tensor = tensor_new(node->graph, node, node->region, node->num_results, dtype, rank, axes);
    node->results = array_push(node->graph, node->results, node->num_results, tensor);
    node->num_results++;
    return tensor;
}

ct_tensor *ct__result_like(ct_node *node, const ct_tensor *type)
{
    return ct__result(node, type->dtype, type->rank, type->axes);
}

ct_graph *ct__common_graph(int num_operands, ct_tensor *const *operands)
{
    CT_ASSERT(num_operands > 0);
    for (int i = 0; i < num_operands; i++) {
        if (!operands[i]) CT_BUG("operand %d is NULL", i);
        if (operands[i]->graph != operands[0]->graph) CT_BUG("operand %d belongs to another graph", i);
    }
    return operands[0]->graph;
}

bool ct__any_poison(int num_operands, ct_tensor *const *operands)
{
    ct_graph *graph = ct__common_graph(num_operands, operands);
    for (int i = 0; i < num_operands; i++)
        if (operands[i] == graph->poison) return true;
    return graph->error != NULL;
}

/* ---- regions ---- */

ct_region *ct__region_new(ct_graph *graph, ct_region *parent)
{
    ct_region *region = CT_ARENA_NEW(&graph->arena, ct_region);
    region->graph = graph;
    region->parent = parent;
    return region;
}

ct_tensor *ct__region_add_arg(ct_region *region, ct_dtype dtype, int rank, const ct_axis *axes)
{
    ct_tensor *arg = tensor_new(region->graph, NULL, region, region->num_args, dtype, rank, axes);
    region->args = array_push(region->graph, region->args, region->num_args, arg);
    region->num_args++;
    return arg;
}

void ct__region_add_result(ct_region *region, ct_tensor *result)
{
    region->results = array_push(region->graph, region->results, region->num_results, result);
    region->num_results++;
}

ct_insertion ct__region_enter(ct_region *region)
{
    ct_graph *graph = region->graph;
    ct_insertion saved = {graph->region, graph->insert_before};
    graph->region = region;
    graph->insert_before = NULL;
    return saved;
}

void ct__region_leave(ct_graph *graph, ct_insertion saved)
{
    graph->region = saved.region;
    graph->insert_before = saved.before;
}

bool ct__region_contains(const ct_region *region, const ct_tensor *tensor)
{
    for (const ct_region *r = tensor->region; r; r = r->parent)
        if (r == region) return true;
    return false;
}

static void capture_one(ct_node *node, ct_tensor *tensor, int first_capture)
{
    for (int i = 0; i < node->num_regions; i++)
        if (ct__region_contains(node->regions[i], tensor)) return;
    for (int i = first_capture; i < node->num_operands; i++)
        if (node->operands[i] == tensor) return;
    ct__node_add_operand(node, tensor);
}

void ct__node_capture(ct_node *node)
{
    int first_capture = node->num_operands; /* an operand proper may be captured as well */
    for (int i = 0; i < node->num_regions; i++) {
        ct_region *region = node->regions[i];
        /* nodes inside list their own captures as operands, so one level is enough */
        for (ct_node *n = region->first; n; n = n->next)
            for (int j = 0; j < n->num_operands; j++) capture_one(node, n->operands[j], first_capture);
        for (int j = 0; j < region->num_results; j++) capture_one(node, region->results[j], first_capture);
    }
}

/* ---- copies ---- */

void ct__map_set(ct_tensor_map *map, const ct_tensor *from, ct_tensor *to)
{
    if (from->id >= map->count) {
        int count = CT_MAX(from->id + 1, map->count * 2);
        map->items = ct_realloc(map->items, (size_t)count * sizeof(*map->items));
        memset(map->items + map->count, 0, (size_t)(count - map->count) * sizeof(*map->items));
        map->count = count;
    }
    map->items[from->id] = to;
}

ct_tensor *ct__map_get(const ct_tensor_map *map, const ct_tensor *from)
{
    return from->id < map->count ? map->items[from->id] : NULL;
}

void ct__map_free(ct_tensor_map *map)
{
    free(map->items);
    *map = (ct_tensor_map){0};
}

static ct_tensor *mapped(const ct_tensor_map *map, ct_tensor *tensor)
{
    ct_tensor *to = ct__map_get(map, tensor);
    return to ? to : tensor;
}

static ct_region *region_clone(ct_region *region, ct_region *parent, ct_tensor_map *map)
{
    ct_region *copy = ct__region_new(region->graph, parent);
    for (int i = 0; i < region->num_args; i++) {
        ct_tensor *arg = region->args[i];
        ct__map_set(map, arg, ct__region_add_arg(copy, arg->dtype, arg->rank, arg->axes));
    }
    ct_insertion saved = ct__region_enter(copy);
    ct__region_inline(region, map);
    ct__region_leave(region->graph, saved);
    for (int i = 0; i < region->num_results; i++) ct__region_add_result(copy, mapped(map, region->results[i]));
    return copy;
}

ct_node *ct__node_clone(ct_node *node, ct_tensor_map *map)
{
    ct_graph *graph = node->graph;
    ct_node *copy = ct__node_new(graph, node->op, node->loc, 0, NULL);
    copy->loc = node->loc;
    copy->scope = node->scope;
    copy->attrs = node->attrs;
    for (int i = 0; i < node->num_operands; i++) ct__node_add_operand(copy, mapped(map, node->operands[i]));
    for (int i = 0; i < node->num_regions; i++)
        ct__node_add_region(copy, region_clone(node->regions[i], copy->region, map));
    for (int i = 0; i < node->num_results; i++) {
        ct_tensor *result = ct__result_like(copy, node->results[i]);
        result->checkpoint_name = node->results[i]->checkpoint_name;
        result->remat_role = node->results[i]->remat_role;
        ct__map_set(map, node->results[i], result);
    }
    return copy;
}

/* The copy of a custom derivative's group, once all its nodes are copied. */
static void group_finish(ct_group *copy, const ct_group *group, const ct_tensor_map *map)
{
    for (int i = 0; i < group->num_inputs; i++) copy->inputs[i] = mapped(map, group->inputs[i]);
    for (int i = 0; i < group->num_outputs; i++) copy->outputs[i] = mapped(map, group->outputs[i]);
}

void ct__region_inline(ct_region *region, ct_tensor_map *map)
{
    ct_arena *arena = &region->graph->arena;
    ct_group *group = NULL, *copy = NULL;
    for (ct_node *node = region->first; node; node = node->next) {
        if (node->custom != group) {
            if (copy) group_finish(copy, group, map);
            group = node->custom;
            copy = group ? ct_arena_dup(arena, group, sizeof(*group)) : NULL;
            if (copy) {
                copy->inputs = CT_ARENA_ARRAY(arena, ct_tensor *, group->num_inputs);
                copy->outputs = CT_ARENA_ARRAY(arena, ct_tensor *, group->num_outputs);
            }
        }
        ct__node_clone(node, map)->custom = copy;
    }
    if (copy) group_finish(copy, group, map);
}

bool ct__wants_gradient(const ct_tensor *operand)
{
    const ct_graph *graph = operand->graph;
    return !graph->wants_gradient || (operand->id < graph->num_wants_gradient && graph->wants_gradient[operand->id]);
}

/* ---- inputs and outputs ---- */

static ct_graph_port *port_push(ct_graph_port **ports, int *count, int *capacity)
{
    if (*count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 32;
        *ports = ct_realloc(*ports, (size_t)*capacity * sizeof(**ports));
    }
    ct_graph_port *port = &(*ports)[(*count)++];
    *port = (ct_graph_port){.donated_to = -1};
    return port;
}

ct_tensor *ct__input(const char *loc, ct_graph *graph, const char *name, ct_dtype dtype, const char *axes)
{
    ct_axis parsed[CT_MAX_RANK];
    int rank;
    if (!ct__parse_axes(graph, loc, "input", axes, parsed, &rank)) return graph->poison;
    for (int i = 0; i < rank; i++)
        if (parsed[i].size < 0)
            return ct__fail(graph, loc, "input", "axis %s of %s has no size: declare it or write %s=SIZE",
                            parsed[i].name, name, parsed[i].name);
    const char *interned = ct__intern_z(graph, name);
    for (int i = 0; i < graph->num_inputs; i++)
        if (graph->inputs[i].name == interned)
            return ct__fail(graph, loc, "input", "the name %s is taken by another input", name);
    ct_graph_port *port = port_push(&graph->inputs, &graph->num_inputs, &graph->input_capacity);
    port->name = interned;
    port->tensor = ct__region_add_arg(graph->main, dtype, rank, parsed);
    return port->tensor;
}

void ct_output(ct_graph *graph, const char *name, ct_tensor *tensor, ct_tensor *donated)
{
    if (ct__any_poison(1, &tensor)) return;
    if (tensor->region != graph->main) CT_BUG("output %s is not a tensor of the main region", name);
    int index = graph->num_outputs;
    ct_graph_port *port = port_push(&graph->outputs, &graph->num_outputs, &graph->output_capacity);
    port->name = ct__intern_z(graph, name);
    port->tensor = tensor;
    ct__region_add_result(graph->main, tensor);
    if (!donated) return;
    ct_graph_port *input = NULL;
    for (int i = 0; i < graph->num_inputs; i++)
        if (graph->inputs[i].tensor == donated) input = &graph->inputs[i];
    if (!input) CT_BUG("output %s: what is donated must be an input", name);
    if (!ct__same_type(tensor, donated)) {
        ct__fail(graph, CT_LOC, "output", "%s has type %s but the donated input %s has %s", name,
                 ct_tensor_describe(tensor), input->name, ct_tensor_describe(donated));
        return;
    }
    if (input->donated_to >= 0) CT_BUG("input %s is donated twice", input->name);
    input->donated_to = index;
}

int ct_graph_num_inputs(const ct_graph *graph)
{
    return graph->num_inputs;
}

int ct_graph_num_outputs(const ct_graph *graph)
{
    return graph->num_outputs;
}

const char *ct_graph_input_name(const ct_graph *graph, int index)
{
    return graph->inputs[index].name;
}

const char *ct_graph_output_name(const ct_graph *graph, int index)
{
    return graph->outputs[index].name;
}

ct_tensor *ct_graph_input_tensor(const ct_graph *graph, int index)
{
    return graph->inputs[index].tensor;
}

ct_tensor *ct_graph_output_tensor(const ct_graph *graph, int index)
{
    return graph->outputs[index].tensor;
}

int ct_graph_input_donated_to(const ct_graph *graph, int index)
{
    return graph->inputs[index].donated_to;
}
