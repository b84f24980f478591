/* The dataset itself. Only for files in this folder. */
#ifndef CT_DATA_DATASET_INTERNAL_H
#define CT_DATA_DATASET_INTERNAL_H

#include "data/source.h"

struct ct_dataset {
    ct_dataset_opts opts;
    ct__workers *workers;
    ct__source **sources;
    size_t num_sources;
    int64_t epoch;     /* of the first source's next sample */
    ct_status *failed; /* the batch after the last that was given */
};

int64_t ct__data_state_epoch(const ct_data_state *state); /* of the first source */

#endif
