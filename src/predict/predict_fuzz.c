/* Fuzz target: a program that can be read can be priced on every chip: no time is negative, and the groups add up. */
#include <math.h>
#include <stdlib.h>

#include "pjrt/hlo_text.h"
#include "predict/predict.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const ct_prediction *prediction)
{
    for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) {
        double sum = 0, step = prediction->step.at[e];
        for (int g = 0; g < CT_PREDICT_NUM_GROUPS; g++) {
            if (!(prediction->groups[g].at[e] >= 0)) abort();
            sum += prediction->groups[g].at[e];
        }
        if (isfinite(step) && fabs(sum - step) > 1e-6 * step) abort();
    }
    ct_str text;
    ct_str_init(&text);
    ct_prediction_print(prediction, 5, &text);
    ct_status_free(ct_prediction_compare(prediction, prediction, 5, &text));
    ct_str_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const chips[] = {"v6e", "tpu7x"};
    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    ct_status *status = ct_hlo_parse(&arena, bytes, size, "fuzz", &module);
    for (size_t i = 0; !status && i < CT_COUNT(chips); i++) {
        ct_prediction *prediction;
        ct_predict_opts opts = {.chip = ct_chip_find(chips[i]), .num_devices = i ? 8 : 0};
        ct_status *refused = ct_predict(&arena, module, &opts, &prediction);
        if (!refused) check(prediction);
        ct_status_free(refused);
    }
    ct_status_free(status);
    ct_arena_deinit(&arena);
    return 0;
}
