/* What is best on each kind of chip, as far as it differs: docs/adr/0003-collectives.md says what was found. */
#ifndef CT_TRAIN_CHIP_H
#define CT_TRAIN_CHIP_H

#include "pjrt/value.h"
#include "spmd/parallel.h"

/* The forms that CT_FORM_AUTO stands for on devices of a kind ("TPU v6 lite"); per axis where the kind is not known. */
void ct_chip_forms(const char *device_kind, ct_collective_form *out_gather, ct_collective_form *out_reduce);

/* "v5e", "v5p", "v6e" or "tpu7x"; NULL: another kind, or NULL. */
const char *ct_chip_name(const char *device_kind);

/* "tpu" for a TPU of any kind, else the platform that the user named. */
const char *ct_chip_platform(const char *device_kind, const char *named);

/* XLA flags for programs on devices of a kind: the chip's own, then the user's, which replace those of the same name.
 * In arena; flags are borrowed. */
const ct_named_value *ct_chip_flags(ct_arena *arena, const char *device_kind, const ct_named_value *flags,
                                    size_t num_flags, size_t *out_num_flags);

#endif
