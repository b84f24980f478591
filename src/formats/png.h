/* PNG: writing pictures of 8-bit RGB. */
#ifndef CT_FORMATS_PNG_H
#define CT_FORMATS_PNG_H

#include "base/str.h"

/* Appends a picture: width * height pixels of 3 bytes, row by row from the top. Sizes are above 0. */
void ct_png_append(ct_str *out, const unsigned char *rgb, uint32_t width, uint32_t height);

#endif
