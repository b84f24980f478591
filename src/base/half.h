/* bf16 and f16 on the host. Rounding is to nearest even; NaN stays NaN (quiet), overflow becomes infinity. */
#ifndef CT_BASE_HALF_H
#define CT_BASE_HALF_H

#include "base/macros.h"

float ct_bf16_to_f32(uint16_t bits);
uint16_t ct_f32_to_bf16(float value);
float ct_f16_to_f32(uint16_t bits);
uint16_t ct_f32_to_f16(float value);

#endif
