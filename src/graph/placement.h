/* Where the parts of a tensor lie on the mesh: a list of axes with the mesh axes that they are split over, the first
 * slowest, "batch=dp_shard+cp dim=tp". Axes that are not named are whole; "" is a tensor that every device has whole.
 */
#ifndef CT_GRAPH_PLACEMENT_H
#define CT_GRAPH_PLACEMENT_H

#include "graph/node.h"

typedef struct ct_placement {
    int count[CT_MAX_RANK];                  /* mesh axes per dim */
    int mesh_axes[CT_MAX_RANK][CT_MAX_RANK]; /* indices into graph->mesh */
} ct_placement;

/* false: an error was kept: unknown axes, a mesh axis used twice. */
bool ct__parse_placement(const ct_tensor *tensor, const char *loc, const char *op, const char *text,
                         ct_placement *out_placement);
/* false: an error was kept: a size of tensor, a whole array, that does not split evenly. */
bool ct__placement_divides(const ct_tensor *tensor, const char *loc, const char *op, const ct_placement *placement);
/* Into how many parts dim is split. */
int64_t ct__placement_parts(const ct_graph *graph, const ct_placement *placement, int dim);
bool ct__placement_uses(const ct_placement *placement, int mesh_axis);
/* "<@mesh, [{"dp"}, {}]>" */
void ct__print_placement(ct_printer *p, const ct_placement *placement, int rank);

/* "dp tp" -> indices into the mesh, in the order of text. */
bool ct__parse_mesh_axes(ct_graph *graph, const char *loc, const char *op, const char *text, int *out_axes,
                         int *out_count);

#endif
