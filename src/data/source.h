/* What a dataset's file kinds give to dataset.c. Only for files in this folder. */
#ifndef CT_DATA_SOURCE_H
#define CT_DATA_SOURCE_H

#include "data/dataset.h"
#include "formats/safetensors.h"

struct ct_dataset {
    ct_dataset_opts opts; /* its strings are copies; the tokenizer is not kept */
    char *kind, *path;
    int64_t num_samples, num_tokens; /* per epoch */
    int64_t position;

    int32_t *stream; /* "text": num_tokens ids */

    ct_safetensors *file;    /* "tokens" */
    ct_array tokens, labels; /* labels.data is NULL when the file has none */
    bool owns_tokens, owns_labels;
};

/* Fill num_tokens, num_samples and the contents. */
CT_MUST_USE ct_status *ct__text_open(ct_dataset *dataset, const ct_tokenizer *tokenizer);
CT_MUST_USE ct_status *ct__tokens_open(ct_dataset *dataset);

#endif
