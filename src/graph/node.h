/* The inside of a graph, for op families, the printer and autodiff.
 *
 * An op family file holds everything about its ops: builders (ct__<op>), shape inference and its checks (with
 * StableHLO's constraint numbers), the attributes as printed, and the derivative. An op is one static ct_op.
 */
#ifndef CT_GRAPH_NODE_H
#define CT_GRAPH_NODE_H

#include "base/arena.h"
#include "graph/graph.h"

typedef struct ct_axis {
    const char *name; /* interned in the graph: compare pointers */
    int64_t size;
} ct_axis;

struct ct_tensor {
    ct_graph *graph;
    ct_node *node;     /* the producer; NULL for an argument of a region */
    ct_region *region; /* where it is defined */
    int index;         /* among the node's results or the region's arguments */
    int id;            /* dense over the graph */
    ct_dtype dtype;
    int rank;
    ct_axis axes[CT_MAX_RANK];
    const char *checkpoint_name;                                        /* ct_checkpoint_name; NULL when unnamed */
    enum { CT__REMAT_PLAIN, CT__REMAT_TERM, CT__REMAT_SUM } remat_role; /* ct_checkpoint_sum */
};

typedef struct ct_printer ct_printer;

/* The derivative of a node: cotangents has one entry per result (NULL is zero); set gradients, one per operand (NULL,
 * its value on entry, is zero). Operands that ct__wants_gradient denies need none. */
typedef void ct_vjp_fn(ct_node *node, ct_tensor *const *cotangents, ct_tensor **gradients);

struct ct_factors; /* factor.h */
struct ct_local;

typedef struct ct_op {
    const char *name;                                        /* "stablehlo.add" */
    void (*print_attrs)(ct_printer *p, const ct_node *node); /* inside <{ }>; NULL: none */
    void (*print)(ct_printer *p, const ct_node *node);       /* the whole node; NULL: generic form */
    ct_vjp_fn *vjp;                                          /* NULL: see zero_gradient */
    bool zero_gradient; /* constant almost everywhere or of integers: the sweep stops here; else an error */
    bool cheap;         /* always recomputed rather than saved for the backward pass */
    bool side_effect;   /* kept even when unused */
    bool always_saved;  /* kept for the backward pass whatever the remat policy */
    bool structured;    /* autodiff itself knows it (scan, cond, call, manual) */
    void (*factors)(const ct_node *node, struct ct_factors *out_factors); /* placement rule; NULL: all must be whole */
    void (*local)(const struct ct_local *local);                          /* NULL: a clone over local operands */
} ct_op;

/* Ops that share one checkpoint group or custom derivative (autodiff's business). */
typedef struct ct_group ct_group;

struct ct_node {
    const ct_op *op;
    ct_graph *graph;
    ct_region *region;
    ct_node *previous, *next;
    int num_operands, num_results, num_regions;
    ct_tensor **operands;
    ct_tensor **results;
    ct_region **regions;
    void *attrs; /* op-specific, in the graph's arena, never changed once shared with a clone */
    const char *loc;
    const char *scope;
    ct_group *checkpoint; /* ct_checkpoint group or NULL */
    ct_group *custom;     /* ct_custom_vjp group or NULL */
};

struct ct_region {
    ct_graph *graph;
    ct_region *parent; /* NULL: main or a function */
    ct_node *first, *last;
    int num_args, num_results;
    ct_tensor **args;
    ct_tensor **results;
};

/* A function: a region without a parent that calls refer to by name. */
typedef struct ct_function {
    const char *name;
    ct_region *region;
    struct ct_function *next;
    struct ct_derivative *derivatives; /* autodiff's, made when first wanted */
    bool live;                         /* the printer's: called from what is printed */
} ct_function;

typedef struct ct_graph_port {
    const char *name;
    ct_tensor *tensor;
    int donated_to;                      /* inputs: output index or -1 */
    const struct ct_placement *sharding; /* NULL: none given */
    bool on_host;                        /* in pinned host memory */
    const int64_t *padded;               /* per dim, the size that sharding divides, 0 the dim's own; NULL: all 0 */
} ct_graph_port;

struct ct_graph {
    ct_arena arena;
    const char *name;
    ct_status *error;
    ct_tensor *poison;
    ct_region *main;
    ct_region *region;      /* where new nodes go */
    ct_node *insert_before; /* NULL: at the end */
    int num_tensors;
    const char *scope;
    const char *scopes[32]; /* the enclosing ones */
    int scope_depth;
    const char *loc_override; /* layers and the backward pass: the line that new nodes get */
    ct_group *checkpoint, *custom;
    ct_function *functions;
    int num_functions;
    ct_node *tables; /* constant arrays, newest first */
    struct ct_interned *interned;
    ct_axis *declared;
    int num_declared, declared_capacity;
    ct_graph_port *inputs, *outputs;
    int num_inputs, num_outputs, input_capacity, output_capacity;
    ct_axis *mesh;
    int num_mesh_axes;
    const struct ct_parallel *parallel; /* spmd's: how the model lies on the mesh; NULL: one device */
    const struct ct_kernels *kernels;   /* kernels': which forms its kernels take; NULL: their definitions */
    const char *kernels_warned[2];      /* those that took another form than the best, and said so */
    int num_channels;                   /* the printer's: channel handles given out */
    int manual_depth;                   /* 1 while the body of a manual region is being made */
    const bool *wants_gradient;         /* by tensor id, during a sweep; NULL: all */
    int num_wants_gradient;
};

/* ---- names and axes ---- */
const char *ct__intern(ct_graph *graph, const char *text, size_t length);
const char *ct__intern_z(ct_graph *graph, const char *text);
/* "a b=4 c" -> axes; a size that is neither given nor declared is -1. false: an error was kept. */
bool ct__parse_axes(ct_graph *graph, const char *loc, const char *op, const char *text, ct_axis *out_axes,
                    int *out_rank);
/* Names only -> dims of tensor, in the order of text; each must exist and be named once. */
bool ct__parse_dims(const ct_tensor *tensor, const char *loc, const char *op, const char *text, int *out_dims,
                    int *out_count);
/* One name -> its dim; -1: an error was kept. */
int ct__parse_dim(const ct_tensor *tensor, const char *loc, const char *op, const char *axis);
int ct__find_axis(const ct_axis *axes, int rank, const char *interned_name);
int64_t ct__num_elements(const ct_tensor *tensor);
bool ct__same_type(const ct_tensor *a, const ct_tensor *b); /* dtype and axes, names included */
/* The names of some dims as a list, for building on derivatives: "seq dim". */
const char *ct__axes_text(ct_graph *graph, const ct_axis *axes, int rank);

/* ---- nodes ---- */
/* Appends a node to the current region; operands are copied. Results are then added in order with ct__result. */
ct_node *ct__node_new(ct_graph *graph, const ct_op *op, const char *loc, int num_operands, ct_tensor *const *operands);
ct_tensor *ct__result(ct_node *node, ct_dtype dtype, int rank, const ct_axis *axes);
ct_tensor *ct__result_like(ct_node *node, const ct_tensor *type);
void ct__node_add_operand(ct_node *node, ct_tensor *operand);
void ct__node_add_region(ct_node *node, ct_region *region);
/* True when any operand is poison (or the graph has failed), so that the op must return graph->poison. */
bool ct__any_poison(int num_operands, ct_tensor *const *operands);
/* Aborts on NULL or foreign operands; gives the graph. */
ct_graph *ct__common_graph(int num_operands, ct_tensor *const *operands);

/* ---- regions ---- */
ct_region *ct__region_new(ct_graph *graph, ct_region *parent);
ct_tensor *ct__region_add_arg(ct_region *region, ct_dtype dtype, int rank, const ct_axis *axes);
void ct__region_add_result(ct_region *region, ct_tensor *result);
/* Makes region the place where nodes go; returns what ct__region_leave needs. */
typedef struct ct_insertion {
    ct_region *region;
    ct_node *before;
} ct_insertion;
ct_insertion ct__region_enter(ct_region *region);
void ct__region_leave(ct_graph *graph, ct_insertion saved);
/* Is the tensor defined in region or in a region inside it? */
bool ct__region_contains(const ct_region *region, const ct_tensor *tensor);
/* Appends to node's operands every outer tensor that its regions use (once each). Call when regions are complete. */
void ct__node_capture(ct_node *node);

/* Copies of nodes. map[tensor id] is the replacement of a tensor, or NULL; grown as needed. */
typedef struct ct_tensor_map {
    ct_tensor **items;
    int count;
} ct_tensor_map;
void ct__map_set(ct_tensor_map *map, const ct_tensor *from, ct_tensor *to);
ct_tensor *ct__map_get(const ct_tensor_map *map, const ct_tensor *from); /* from's replacement, or NULL */
void ct__map_free(ct_tensor_map *map);
/* A copy of node at the insertion point, operands mapped (unmapped ones stay), regions copied whole; results mapped. */
ct_node *ct__node_clone(ct_node *node, ct_tensor_map *map);
/* Copies all nodes of region to the insertion point; its args must be mapped before. */
void ct__region_inline(ct_region *region, ct_tensor_map *map);

/* Derivative helper: false when no one asked for this operand's gradient. */
bool ct__wants_gradient(const ct_tensor *operand);

/* Layers written from ops: nodes made between enter and leave carry the caller's line. */
const char *ct__loc_enter(ct_graph *graph, const char *loc);
void ct__loc_leave(ct_graph *graph, const char *saved);

/* Marks the tensors that the outputs need, by id; live is of graph->num_tensors, all false. */
void ct__graph_mark_live(ct_graph *graph, bool *live);

/* ---- printing, for ops' print functions ---- */
struct ct_printer {
    ct_str *out;
    ct_graph *graph;
    int indent;
    int *names; /* by tensor id: SSA number, or -1 */
    int num_names;
    int next_name;
    const bool *live; /* by tensor id */
};
void ct__print(ct_printer *p, const char *format, ...) CT_PRINTF(2, 3);
void ct__print_line(ct_printer *p); /* a new line with the indent */
void ct__print_value(ct_printer *p, const ct_tensor *tensor);
int ct__print_new_name(ct_printer *p); /* a fresh SSA number for helper values: print it as %N */
void ct__print_alias(ct_printer *p, const ct_tensor *tensor, const ct_tensor *of); /* tensor reads as of */
void ct__print_bind(ct_printer *p, const ct_tensor *tensor, int name);
void ct__print_type(ct_printer *p, const ct_tensor *tensor);
void ct__print_types(ct_printer *p, ct_tensor *const *tensors, int count); /* "t, t" */
void ct__print_results(ct_printer *p, const ct_node *node);                /* "%3 = " or "%3, %4 = " with fresh names */
void ct__print_operands(ct_printer *p, ct_tensor *const *operands, int count); /* "(%1, %2)" */
void ct__print_signature(ct_printer *p, const ct_node *node);                  /* " : (types) -> types loc(..)" */
void ct__print_loc(ct_printer *p, const ct_node *node);
void ct__print_dims(ct_printer *p, const char *name, const int64_t *values, int count); /* name = array<i64: ..> */
void ct__print_region_nodes(ct_printer *p, const ct_region *region);
void ct__print_constant_value(ct_printer *p, ct_dtype dtype, const void *element);

#endif
