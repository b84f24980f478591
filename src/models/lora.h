/* Low-rank adapters: a frozen weight W [out in] gets two small matrices that are trained in its place.
 *
 *   y = x W^T + alpha / rank (x A^T) B^T        A [rank in], B [out rank]
 *
 * A begins uniform in +-1/sqrt(in) (Kaiming's with a = sqrt 5), B zero, so a model begins as the one that it adapts.
 * The adapters are parameters behind all others, A and B of each target, layer by layer or stacked as the model's are,
 * under the names that PEFT gives them in a file: base_model.model.{name of the module}.lora_A.weight.
 * Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models"; PEFT's LoraConfig.
 */
#ifndef CT_MODELS_LORA_H
#define CT_MODELS_LORA_H

#include "models/model.h"

#define CT_LORA_PREFIX "base_model.model."

typedef struct ct_lora {
    int64_t rank; /* > 0 */
    double alpha;
    const char *const *targets; /* the modules that get adapters: "q_proj", ... */
    size_t num_targets;
    ct_dtype frozen_dtype; /* in which the frozen weights are kept */
} ct_lora;

/* Gives the model adapters and freezes all else; once per model. lora need not outlive it. Errors: INVALID_ARGUMENT for
 * a target that the family does not have, naming those that it has; for no target, for one that is named twice; for a
 * rank that is larger than a target's in or out. */
CT_MUST_USE ct_status *ct_model_adapt(ct_model *model, const ct_lora *lora);

/* The modules that have adapters, "q_proj", in the order of the family's table: out_names[CT_LORA_MAX_TARGETS]; returns
 * how many. Strings live as long as the model. */
enum { CT_LORA_MAX_TARGETS = 32 };
size_t ct_lora_targets(const ct_model *model, const char **out_names);

/* The adapters of a parameter that is not one itself: indices of A and B among the parameters; false: it has none. */
bool ct_model_adapters_of(const ct_model *model, int param, int *out_a, int *out_b);

/* alpha / rank */
double ct_model_lora_scale(const ct_model *model);

/* weight + scale B A for rows [0, out) of f32 arrays: weight [out in], a [rank in], b [out rank]. */
void ct_lora_merge(float *weight, const float *a, const float *b, int64_t out, int64_t in, int64_t rank, double scale);

#endif
