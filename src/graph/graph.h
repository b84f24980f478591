/* The graph: a program of named-axis tensors that prints as StableHLO.
 *
 *   ct_graph -- main region: args (inputs) -> nodes -> results (outputs)
 *                              node: one StableHLO op, its operands, results, regions, location, scope
 *
 * Every op is a function from tensors to tensors that appends nodes to the graph's current region.
 *
 * Axes. A tensor has a dtype and an ordered list of axes, each with a name and a size; a name occurs once in a tensor.
 * Lists of axes are written as text, "batch seq dim"; where sizes are wanted they come from ct_graph_declare_axis or
 * are written in place, "batch=8 seq=16". Binary ops broadcast by name: the operand that lacks an axis is repeated
 * along it; one of the two must have all axes of the other.
 *
 * Errors. Ops never fail on their own: the first mistake is kept in the graph with op, operands, scope and source line,
 * and every op given the poison tensor returns it. The exits (ct_graph_check, ct_graph_print, ct_grad) report it.
 * Operands that are NULL or of two graphs are bugs and abort.
 *
 * A graph belongs to one thread at a time. All tensors live as long as their graph.
 */
#ifndef CT_GRAPH_GRAPH_H
#define CT_GRAPH_GRAPH_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"
#include "base/str.h"

typedef struct ct_graph ct_graph;
typedef struct ct_tensor ct_tensor;
typedef struct ct_node ct_node;
typedef struct ct_region ct_region;

#define CT_STRINGIFY_(x) #x
#define CT_STRINGIFY(x)  CT_STRINGIFY_(x)
/* The source line of a call, kept with every node: ops are macros that pass it to the function ct__<op>. */
#define CT_LOC (__FILE__ ":" CT_STRINGIFY(__LINE__))

ct_graph *ct_graph_new(const char *name);
void ct_graph_free(ct_graph *graph);

/* NULL, or a copy of the first error. */
CT_MUST_USE ct_status *ct_graph_check(const ct_graph *graph);
bool ct_graph_has_failed(const ct_graph *graph);

/* Keeps an error of the caller's own, for layers and models; returns the poison tensor. */
#define ct_graph_fail(graph, ...) ct__fail((graph), CT_LOC, __VA_ARGS__)
ct_tensor *ct__fail(ct_graph *graph, const char *loc, const char *op, const char *format, ...) CT_PRINTF(4, 5);

/* From now on `name` in an axis list without a size means this size. */
void ct_graph_declare_axis(ct_graph *graph, const char *name, int64_t size);
int64_t ct_graph_axis_size(const ct_graph *graph, const char *name); /* 0 when not declared */

/* Scopes name the module that nodes belong to ("layers.3.attention"); printed, so that profiles show them. */
void ct_scope_push(ct_graph *graph, const char *format, ...) CT_PRINTF(2, 3);
void ct_scope_pop(ct_graph *graph);

/* An input of the program. Names must be unique. */
#define ct_input(graph, name, dtype, axes) ct__input(CT_LOC, (graph), (name), (dtype), (axes))
ct_tensor *ct__input(const char *loc, ct_graph *graph, const char *name, ct_dtype dtype, const char *axes);

/* An output of the program. donated (may be NULL) is an input of the same type whose memory the output takes over. */
void ct_output(ct_graph *graph, const char *name, ct_tensor *tensor, ct_tensor *donated);

int ct_graph_num_inputs(const ct_graph *graph);
int ct_graph_num_outputs(const ct_graph *graph);
const char *ct_graph_input_name(const ct_graph *graph, int index);
const char *ct_graph_output_name(const ct_graph *graph, int index);
ct_tensor *ct_graph_input_tensor(const ct_graph *graph, int index);
ct_tensor *ct_graph_output_tensor(const ct_graph *graph, int index);
int ct_graph_input_donated_to(const ct_graph *graph, int index); /* output index or -1 */

/* Appends the program as StableHLO text, generic form, with locations; nodes that no output needs are left out. */
CT_MUST_USE ct_status *ct_graph_print(ct_graph *graph, ct_str *out_text);

/* A mesh of devices, printed as sdy.mesh @mesh; needed by manual regions. axes: "dp=2 tp=4". */
void ct_graph_set_mesh(ct_graph *graph, const char *axes);

/* Where an input or output lies on the mesh: "batch=dp dim=tp" (placement.h); "" is whole on every device. Without a
 * placement the partitioner chooses. What is donated wants the same placement at both ends. */
void ct_graph_set_input_sharding(ct_graph *graph, const ct_tensor *input, const char *placement);
void ct_graph_set_output_sharding(ct_graph *graph, int index, const char *placement);

/* What a tensor is. */
ct_graph *ct_graph_of(const ct_tensor *tensor);
ct_dtype ct_tensor_dtype(const ct_tensor *tensor);
int ct_tensor_rank(const ct_tensor *tensor);
const char *ct_tensor_axis_name(const ct_tensor *tensor, int dim);
int64_t ct_tensor_size(const ct_tensor *tensor, int dim);
int ct_tensor_find_axis(const ct_tensor *tensor, const char *axis);     /* dim, or -1 */
int64_t ct_tensor_axis_size(const ct_tensor *tensor, const char *axis); /* size, or 0 when absent */
bool ct_tensor_is_poison(const ct_tensor *tensor);
/* "f32[batch=8 seq=16]", in the graph's memory */
const char *ct_tensor_describe(const ct_tensor *tensor);

#endif
