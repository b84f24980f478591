/* What a recipe amounts to, found without a device: the model's size, its arithmetic, the state's bytes, the program.
 */
#ifndef CT_TRAIN_REPORT_H
#define CT_TRAIN_REPORT_H

#include "train/recipe.h"

typedef struct ct_train_report {
    int64_t num_params;
    int64_t num_trained; /* all of them, or adapters, which num_params does not count */
    double flops_per_token;
    int64_t tokens_per_step;
    double state_bytes;            /* parameters and moments */
    double state_bytes_per_device; /* its parts, padding included */
    size_t program_bytes;          /* of StableHLO text */
    int num_operations;
    char kernels[160]; /* the forms that its kernels take, and why */
} ct_train_report;

/* Builds and prints the training step; program_path (may be NULL) gets its text. */
CT_MUST_USE ct_status *ct_train_report_make(const ct_recipe *recipe, const char *program_path,
                                            ct_train_report *out_report);

#endif
