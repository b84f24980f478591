/* What the readers of HLO share. */
#ifndef CT_PJRT_INTERNAL_HLO_H
#define CT_PJRT_INTERNAL_HLO_H

#include "pjrt/hlo.h"

/* Grows an array of the arena for one more element. */
void *ct__hlo_grow(ct_arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes);

/* Groups in the forms of hlo_groups.c; order is empty or has num_dims entries. */
CT_MUST_USE ct_status *ct__hlo_iota_groups(ct_arena *arena, int64_t num_groups, int64_t group_size, const int64_t *dims,
                                           size_t num_dims, const int64_t *order, size_t num_order,
                                           ct_hlo_instruction *to);
/* "@mesh<a=2,b=4> {a}" as XLA prints groups along axes of a mesh; text need not end in a zero. */
CT_MUST_USE ct_status *ct__hlo_mesh_axes_text(ct_arena *arena, const char *text, size_t length, ct_hlo_instruction *to);

/* That no computation calls itself, over others either. Errors: DATA_LOSS. */
CT_MUST_USE ct_status *ct__hlo_check(const ct_hlo_module *module);

#endif
