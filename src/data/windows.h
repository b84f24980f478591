/* What files of tokens and texts give to windows.c. Only for files in this folder. */
#ifndef CT_DATA_WINDOWS_H
#define CT_DATA_WINDOWS_H

#include "data/source.h"
#include "formats/safetensors.h"

typedef enum ct__width { CT__WIDTH_S32, CT__WIDTH_U32, CT__WIDTH_U16 } ct__width;

/* A file's samples, or those of one long text. */
typedef struct ct__part {
    const char *path; /* borrowed */
    const void *ids;  /* num_tokens of width, where they lie; aligned */
    ct__width width;
    int64_t num_tokens, num_samples;
    int64_t stride;        /* from one sample to the next: seq_len + 1 of rows, seq_len of windows of a sequence */
    const int32_t *labels; /* [num_samples seq_len], or NULL: the next tokens */
    bool wraps;            /* a window may run on from the end to the begin */
    const bool *begins;    /* per token: a document begins; NULL: asked of the tokens themselves */

    ct_safetensors *file;
    ct_array tokens_array, labels_array;
    bool owns_tokens, owns_labels;
    int32_t *stream;
    bool *stream_begins;
} ct__part;

/* Fill a part whose path is set. */
CT_MUST_USE ct_status *ct__tokens_open(const ct_dataset_opts *opts, ct__part *part);
/* One part from all files. */
CT_MUST_USE ct_status *ct__text_open(const ct__source *source, ct__part *part);

#endif
