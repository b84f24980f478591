/* Where devices lie on the torus of links between chips, and the order in which a mesh numbers them.
 *
 *   v5p:4x4x8      axes z=8 x=4 y=4          neighbours along y are numbered one after another
 *   tpu7x:2x2x2    axes x=2 y=2 z=2 c=2      the two devices of a chip come last: they are nearest to each other
 *
 * A mesh's innermost degree (tensor parallel) talks most, so it should have whole torus axes of its own, rings where
 * there are rings. The axes are ordered, largest first (x before y before z where they are equal), so that a suffix of
 * them has exactly `innermost` devices where one can. The cores of one chip are always last. Axes of size 1 are left
 * out. Devices of several slices are numbered slice by slice.
 */
#ifndef CT_PJRT_TORUS_H
#define CT_PJRT_TORUS_H

#include "pjrt/topology.h"

enum { CT_TORUS_MAX_AXES = 4 };

typedef struct ct_torus {
    int num_axes; /* at least 1 */
    int64_t sizes[CT_TORUS_MAX_AXES];
    char names[CT_TORUS_MAX_AXES]; /* 'x', 'y', 'z', 'c' for the devices of a chip, '-' without coordinates */
    bool wraps[CT_TORUS_MAX_AXES]; /* the last is linked to the first */
    int64_t num_slices;            /* such toruses, joined by the data center's network; at least 1 */
} ct_torus;

/* Fills out_torus and out_device_ids [num_devices] (may be NULL): the ids in row-major order of the axes, as
 * ct_compile_opts takes them. innermost 0: no wish. A plugin whose devices have no coordinates gives one axis of all
 * devices in their order. Errors: INTERNAL if the coordinates are not those of a full grid. */
CT_MUST_USE ct_status *ct_topology_torus(const ct_topology *topology, int64_t innermost, ct_torus *out_torus,
                                         int *out_device_ids);
CT_MUST_USE ct_status *ct_client_torus(const ct_client *client, int64_t innermost, ct_torus *out_torus,
                                       int *out_device_ids);

/* The torus of a slice of TPUs, of its sizes in chips, as ct_topology_torus gives it with libtpu. */
void ct_tpu_slice_torus(int num_axes, const int64_t *sizes, int devices_per_chip, int64_t innermost,
                        ct_torus *out_torus);

/* Which axes of a slice of TPUs are rings: on chips with three axes (v4, v5p, tpu7x) all, if every size is a multiple
 * of 4; on those with two (v5e, v6e) the ones of size 16. Source: the slice shapes in Google's documentation of each
 * chip. */
void ct_tpu_slice_wraps(int num_axes, const int64_t *sizes, bool *out_wraps);

/* What a process has in its environment before it loads libtpu to compile without TPUs: name, value pairs, then NULL.
 * Not for a process that is to run on TPUs. */
extern const char *const ct_tpu_offline_environment[];

#endif
