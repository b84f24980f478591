/* Llama 3's own parts, shared by the files of this folder. */
#ifndef CT_MODELS_LLAMA3_LLAMA3_H
#define CT_MODELS_LLAMA3_LLAMA3_H

#include "models/family.h"

enum { CT_LLAMA3_NUM_FLAVORS = 6 };
extern const ct_model_config ct__llama3_flavors[CT_LLAMA3_NUM_FLAVORS];

#endif
