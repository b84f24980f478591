/* How rows and vocabulary lie on a mesh, for the manual regions of the portable forms. */
#include <stdlib.h>

#include "kernels/linear_cross_entropy/loss.h"
#include "spmd/parallel.h"

static const char *placement_of(ct_graph *graph, const ct_sharding *sharding, int rank, const ct_axis *axes)
{
    char *text = ct_sharding_text(&ct_parallel_of(graph)->mesh, sharding, rank, axes);
    const char *copy = ct_arena_strdup(&graph->arena, text ? text : "");
    free(text);
    return copy;
}

static const char *mesh_axes_of(ct_graph *graph, const ct_sharding *sharding, int rank)
{
    const ct_mesh *mesh = &ct_parallel_of(graph)->mesh;
    const char *text = "";
    for (int d = 0; d < rank; d++)
        for (int i = 0; i < sharding->at.count[d]; i++)
            text = ct_arena_printf(&graph->arena, "%s%s%s", text, *text ? " " : "",
                                   mesh->axes[sharding->at.mesh_axes[d][i]].name);
    return text;
}

void ct__loss_place(ct__loss *loss, const ct_tensor *weight, const ct_tensor *labels)
{
    ct_graph *graph = weight->graph;
    const ct_parallel *parallel = ct_parallel_of(graph);
    if (!parallel || graph->manual_depth) return;
    ct_sharding rows = ct_parallel_activation(parallel, labels->rank, labels->axes);
    ct_sharding used = ct_parallel_used(parallel, weight->rank, weight->axes);
    loss->rows_placement = placement_of(graph, &rows, labels->rank, labels->axes);
    loss->rows_axes = mesh_axes_of(graph, &rows, labels->rank);
    loss->weight_placement = placement_of(graph, &used, weight->rank, weight->axes);
    loss->vocab_axes = mesh_axes_of(graph, &used, weight->rank);
    loss->is_padded = used.padded[0] != 0;
}
