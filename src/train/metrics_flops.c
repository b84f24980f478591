/* Operation counts and the table of chips. */
#include "train/metrics_flops.h"

#include <string.h>
#include <strings.h>

#include "chips/chips.h"

double ct_flops_per_token(const ct_flops_model *model)
{
    double num_multiplied = (double)model->num_params;
    if (!model->is_tied) num_multiplied -= (double)model->num_embedding_params;
    double attention = (double)model->num_layers * (double)model->num_heads * (double)model->head_dim;
    double per_param = model->num_adapter_params ? 4 : 6;
    return per_param * num_multiplied + 6 * (double)model->num_adapter_params + 12 * attention * (double)model->seq_len;
}

typedef struct chip {
    const char *name, *variant; /* both must occur in the device's name; variant may be NULL */
    double teraflops;
} chip;

/* Beside chips/chips.h. On running TPUs the two cores of a v4 are one device. The first row that fits counts, so a name
 * stands before those that it contains. Makers' figures, dense bf16. */
static const chip chips[] = {
    {"TPU v4", NULL, 275}, {"GB300", NULL, 2500},  {"GB200", NULL, 2500},  {"B300", NULL, 2250},
    {"B200", NULL, 2250},  {"H200", NULL, 989},    {"H100", "NVL", 835},   {"H100", "PCIe", 756},
    {"H100", NULL, 989},   {"H20", NULL, 148},     {"A100", NULL, 312},    {"A6000", NULL, 154.85},
    {"L40S", NULL, 362},   {"MI355X", NULL, 2500}, {"MI300X", NULL, 1300},
};

double ct_peak_flops(const char *device_kind, bool *out_is_known)
{
    if (out_is_known) *out_is_known = true;
    for (size_t i = 0; i < CT_COUNT(chips); i++)
        if (strcasestr(device_kind, chips[i].name) && (!chips[i].variant || strcasestr(device_kind, chips[i].variant)))
            return chips[i].teraflops * 1e12;
    const ct_chip *tpu = ct_chip_find(device_kind);
    if (tpu) return tpu->peak_flops[CT_CHIP_BF16];
    if (out_is_known) *out_is_known = false;
    return 312e12;
}
