/* Weights from one form to the other: saved steps and Hugging Face folders.
 *
 *   step-N, or a folder of steps (its newest whole one)  --+--> .../step-N        a step of weights alone
 *   Hugging Face folder                                  --+--> any other name    a Hugging Face folder
 *
 * Every tensor of the source is carried over, bit for bit unless its type is changed, moments left out. config.json,
 * generation_config.json and the tokenizer's files go along. A step of adapters (train/lora.h) becomes the weights that
 * they were trained on, W + alpha / rank B A where there are some, computed in f32 and rounded to W's type or dtype.
 */
#ifndef CT_TRAIN_CONVERT_H
#define CT_TRAIN_CONVERT_H

#include <stdbool.h>

#include "base/dtype.h"
#include "base/status.h"

typedef struct ct_convert_opts {
    const char *source, *target;
    const char *base;        /* of a step of adapters: where the weights are now that its info names; NULL: there */
    ct_dtype dtype;          /* of floating tensors; 0: as they are */
    int64_t max_shard_bytes; /* of one file; 0: 5 GB of a Hugging Face folder, 4 GiB of a step */
} ct_convert_opts;

typedef struct ct_convert_result {
    size_t num_tensors;
    int64_t size_bytes; /* of them */
    bool is_step;       /* what was written */
} ct_convert_result;

/* The target is written whole or not at all. Errors: NOT_FOUND when the source is neither; ALREADY_EXISTS for the
 * target; FAILED_PRECONDITION when the base is not what the adapters were trained on, or none is wanted; DATA_LOSS
 * naming a damaged file; those of config.json; a tensor of the model that is missing or has another shape. */
CT_MUST_USE ct_status *ct_convert(const ct_convert_opts *opts, ct_convert_result *out_result);

#endif
