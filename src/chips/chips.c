#include "chips/chips.h"

#include <string.h>

#define GIB       (1024.0 * 1024 * 1024)
#define MIB       ((int64_t)1 << 20)
#define CLOUD     "docs.cloud.google.com/tpu/docs: "
#define LINKS     "; links: jax-ml.github.io/scaling-book, How to think about TPUs"
#define ESTIMATES "; flops per cycle and matrix rate: estimated_cycles of libtpu 0.0.52, docs/prediction.md"

/* What is not published: int8 and fp8 without units of their own run at the speed of bf16; f32 in full precision is six
 * passes of bf16. The clock is what makes flops_per_cycle the published peak. Efficiencies of attention are assumptions
 * that bracket the published steps of MaxText (docs/prediction.md). */
static const ct_chip chips[] = {
    {
        .name = "v4",
        .kind = "TPU v4",
        .sources = CLOUD "v4" LINKS ESTIMATES,
        .peak_flops = {137.5e12, 137.5e12, 137.5e12, 137.5e12 / 6},
        .flops_per_cycle = 131072,
        .clock_hz = 1.05e9,
        .hbm_bytes = (int64_t)(16 * GIB),
        .usable_bytes = (int64_t)(15.25 * GIB),
        .hbm_bytes_per_s = 1228e9 / 2,
        .vmem_bytes = 16 * MIB,
        .torus_dims = 3,
        .devices_per_chip = 2,
        .tensor_cores = 2,
        .sparse_cores = 4,
        .max_slice_devices = 8192,
        .links = 6,
        .link_bytes_per_s = 45e9,
        .die_bytes_per_s = 6 * 45e9,
        .host_bytes_per_s = 16e9 / 2,
        .dcn_bytes_per_s = 50e9 / 8 / 2,
        .matmul_rate = 0.93,
        .attention_efficiency = {.45, .60, .75},
    },
    {
        .name = "v5e",
        .kind = "TPU v5 lite",
        .sources = CLOUD "v5e" LINKS ESTIMATES,
        .peak_flops = {197e12, 393e12, 197e12, 197e12 / 6},
        .flops_per_cycle = 131072,
        .clock_hz = 1.50e9,
        .hbm_bytes = (int64_t)(16 * GIB),
        .usable_bytes = (int64_t)(15.75 * GIB),
        .hbm_bytes_per_s = 819e9,
        .vmem_bytes = 128 * MIB,
        .torus_dims = 2,
        .devices_per_chip = 1,
        .tensor_cores = 1,
        .sparse_cores = 0,
        .max_slice_devices = 256,
        .links = 4,
        .link_bytes_per_s = 45e9,
        .host_bytes_per_s = 16e9,
        .dcn_bytes_per_s = 2 * 100e9 / 8 / 8,
        .matmul_rate = 0.92,
        .attention_efficiency = {.35, .50, .65},
    },
    {
        .name = "v5p",
        .kind = "TPU v5p",
        .sources = CLOUD "v5p" LINKS ESTIMATES,
        .peak_flops = {459e12, 459e12 * 2, 459e12, 459e12 / 6},
        .flops_per_cycle = 262144,
        .clock_hz = 1.75e9,
        .hbm_bytes = (int64_t)(95 * GIB),
        .usable_bytes = (int64_t)(95.73 * GIB),
        .hbm_bytes_per_s = 2765e9,
        .vmem_bytes = 64 * MIB,
        .torus_dims = 3,
        .devices_per_chip = 1,
        .tensor_cores = 2,
        .sparse_cores = 4,
        .max_slice_devices = 8960,
        .links = 6,
        .link_bytes_per_s = 90e9,
        .host_bytes_per_s = 16e9,
        .dcn_bytes_per_s = 50e9 / 8,
        .matmul_rate = 0.93,
        .attention_efficiency = {.45, .60, .75},
    },
    {
        .name = "v6e",
        .kind = "TPU v6 lite",
        .sources = CLOUD "v6e" LINKS ESTIMATES,
        .peak_flops = {918e12, 1836e12, 918e12, 918e12 / 6},
        .flops_per_cycle = 524288,
        .clock_hz = 1.75e9,
        .hbm_bytes = (int64_t)(32 * GIB),
        .usable_bytes = (int64_t)(31.24 * GIB),
        .hbm_bytes_per_s = 1638e9,
        .vmem_bytes = 128 * MIB,
        .torus_dims = 2,
        .devices_per_chip = 1,
        .tensor_cores = 1,
        .sparse_cores = 2,
        .max_slice_devices = 256,
        .links = 4,
        .link_bytes_per_s = 90e9,
        .host_bytes_per_s = 16e9,
        .dcn_bytes_per_s = 100e9 / 8,
        .matmul_rate = 0.76,
        .attention_efficiency = {.16, .22, .40},
    },
    {
        .name = "tpu7x",
        .kind = "TPU7x",
        .sources = CLOUD "tpu7x; links: its published 1200 GB/s a chip over six" ESTIMATES,
        .peak_flops = {2307e12 / 2, 2307e12 / 2, 4614e12 / 2, 2307e12 / 12},
        .flops_per_cycle = 524288,
        .clock_hz = 2.2e9,
        .hbm_bytes = (int64_t)(96 * GIB),
        .usable_bytes = (int64_t)(94.74 * GIB),
        .hbm_bytes_per_s = 7380e9 / 2,
        .vmem_bytes = 64 * MIB,
        .torus_dims = 3,
        .devices_per_chip = 2,
        .tensor_cores = 2,
        .sparse_cores = 4,
        .max_slice_devices = 2 * 9216,
        .links = 6,
        .link_bytes_per_s = 90e9,
        .die_bytes_per_s = 6 * 90e9,
        .dcn_bytes_per_s = 100e9 / 8 / 2,
        .matmul_rate = 0.85,
        .attention_efficiency = {.30, .45, .60},
    },
};

/* Older plugins' names of the same chips. */
static const struct {
    const char *kind, *name;
} aliases[] = {{"TPU v5", "v5p"}, {"TPU v5e", "v5e"}, {"TPU v6e", "v6e"}, {"TPU v7x", "tpu7x"}};

const ct_chip *ct_chip_find(const char *kind_or_name)
{
    for (size_t i = 0; kind_or_name && i < CT_COUNT(aliases); i++)
        if (!strcmp(kind_or_name, aliases[i].kind)) kind_or_name = aliases[i].name;
    for (size_t i = 0; kind_or_name && i < CT_COUNT(chips); i++)
        if (!strcmp(kind_or_name, chips[i].name) || !strcmp(kind_or_name, chips[i].kind)) return &chips[i];
    return NULL;
}

const ct_chip *ct_chips(size_t *out_num_chips)
{
    *out_num_chips = CT_COUNT(chips);
    return chips;
}

const char *ct_chip_names(void)
{
    return "v4, v5e, v5p, v6e or tpu7x";
}
