/* A table of policies, by the names of chips/chips.h. */
#include "train/chip.h"

#include <string.h>

#include "chips/chips.h"

/* Collectives on SparseCores run beside computation, and there, alone, a reduce-scatter over two axes of the torus is
 * one, with parts that walk them in both orders; elsewhere libtpu makes an all-reduce and a slice of it. */
#define OFFLOAD "xla_tpu_enable_sparse_core_collective_offload_"
static const char *const sparse_cores[] = {
    OFFLOAD "all_gather",
    OFFLOAD "2d_all_gather",
    OFFLOAD "3d_all_gather",
    OFFLOAD "reduce_scatter",
    OFFLOAD "nd_reduce_scatter",
    "xla_tpu_enable_sparse_core_reduce_scatter_v2",
    "xla_tpu_use_tc_device_shape_on_sc",
    NULL,
};
/* v5e has none: gathers are cut in steps that are fused with computation. */
static const char *const fused_gathers[] = {
    "xla_tpu_enable_async_collective_fusion",
    "xla_tpu_enable_async_collective_fusion_fuse_all_gather",
    "xla_tpu_enable_async_collective_fusion_multiple_steps",
    NULL,
};
static const char *const none[] = {NULL}; /* tpu7x offloads as it is */

static const struct {
    const char *name;
    ct_collective_form gather, reduce;
    const char *const *flags; /* all true */
} policies[] = {
    {"v5e", CT_FORM_JOINT, CT_FORM_PER_AXIS, fused_gathers},
    {"v5p", CT_FORM_JOINT, CT_FORM_PAIRS, sparse_cores},
    {"v6e", CT_FORM_JOINT, CT_FORM_PAIRS, sparse_cores},
    {"tpu7x", CT_FORM_JOINT, CT_FORM_PAIRS, none},
};

static int find(const char *kind)
{
    const ct_chip *chip = ct_chip_find(kind);
    for (size_t i = 0; chip && i < CT_COUNT(policies); i++)
        if (!strcmp(chip->name, policies[i].name)) return (int)i;
    return -1;
}

const char *ct_chip_name(const char *device_kind)
{
    int policy = find(device_kind);
    return policy < 0 ? NULL : policies[policy].name;
}

const char *ct_chip_platform(const char *device_kind, const char *named)
{
    return device_kind && !strncmp(device_kind, "TPU", 3) ? "tpu" : named;
}

void ct_chip_forms(const char *device_kind, ct_collective_form *out_gather, ct_collective_form *out_reduce)
{
    int policy = find(device_kind);
    *out_gather = policy < 0 ? CT_FORM_PER_AXIS : policies[policy].gather;
    *out_reduce = policy < 0 ? CT_FORM_PER_AXIS : policies[policy].reduce;
}

const ct_named_value *ct_chip_flags(ct_arena *arena, const char *device_kind, const ct_named_value *flags,
                                    size_t num_flags, size_t *out_num_flags)
{
    int policy = find(device_kind);
    *out_num_flags = num_flags;
    if (policy < 0) return flags;
    size_t num_own = 0, count = 0;
    while (policies[policy].flags[num_own]) num_own++;
    ct_named_value *all = CT_ARENA_ARRAY(arena, ct_named_value, num_own + num_flags);
    for (size_t i = 0; i < num_own; i++)
        if (!ct_named_value_find(flags, num_flags, policies[policy].flags[i]))
            all[count++] = (ct_named_value){.name = policies[policy].flags[i], .type = CT_VALUE_BOOL, .boolean = true};
    for (size_t i = 0; i < num_flags; i++) all[count++] = flags[i];
    *out_num_flags = count;
    return all;
}
