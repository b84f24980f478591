/* Qwen3's own parts, shared by the files of this folder. */
#ifndef CT_MODELS_QWEN3_QWEN3_H
#define CT_MODELS_QWEN3_QWEN3_H

#include "models/family.h"

enum { CT_QWEN3_NUM_FLAVORS = 9 };
extern const ct_model_config ct__qwen3_flavors[CT_QWEN3_NUM_FLAVORS];

#endif
