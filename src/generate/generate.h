/* Continuing prompts of token ids with a model on one device.
 *
 *   generator: weights on the device, the two programs compiled for the sizes at hand
 *   generate:  prompts -> prefill -> decode, some tokens per launch, until every row is done
 */
#ifndef CT_GENERATE_GENERATE_H
#define CT_GENERATE_GENERATE_H

#include "generate/program.h"
#include "train/session.h"

typedef struct ct_generator ct_generator;

/* The model of a Hugging Face folder. dtype: F32, BF16 or F16, of weights and computation. kernels' platform and chip
 * are the session's; session outlives the generator. Errors: those of reading the folder, and the plugin's. */
CT_MUST_USE ct_status *ct_generator_open(const char *folder, ct_dtype dtype, ct_session *session,
                                         ct_generator **out_generator);
/* The same of parameters that are on the device already. Takes params' buffers over, NULLing them; model is borrowed
 * and has unrolled layers. */
ct_generator *ct_generator_new(const ct_model *model, ct_dtype dtype, ct_session *session, ct_buffer **params);
void ct_generator_free(ct_generator *generator); /* NULL is allowed */
const ct_model *ct_generator_model(const ct_generator *generator);

typedef struct ct_prompt {
    const int32_t *ids;
    size_t num_ids;
} ct_prompt;

typedef struct ct_generation {
    const ct_prompt *prompts;
    size_t num_prompts;
    int64_t max_tokens;        /* new ones per prompt */
    int64_t tokens_per_launch; /* 0: 16 */
    ct_sampling sampling;
    const int32_t *stop_ids;
    size_t num_stop_ids;
    /* Called for each new token, in order within a row; the one that stops a row is reported like the others. Sets
     * *out_stop to end the row here. */
    ct_status *(*on_token)(void *context, size_t row, int32_t id, bool *out_stop);
    void *context;
} ct_generation;

/* A row ends with a stop id, with out_stop, or with max_tokens. Errors: INVALID_ARGUMENT for an empty prompt, wrong
 * settings, and what does not fit into the model's longest sequence; OUT_OF_RANGE for ids outside its vocabulary;
 * those of on_token. */
CT_MUST_USE ct_status *ct_generate(ct_generator *generator, const ct_generation *generation);

#endif
