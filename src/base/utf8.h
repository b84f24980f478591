/* UTF-8, strictly: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef CT_BASE_UTF8_H
#define CT_BASE_UTF8_H

#include "base/macros.h"
#include "base/str.h"

/* Looks at the first character of length > 0 bytes: its number of bytes, 0 when they begin no character, -1 when they
 * are the beginning of one that is cut off. */
int ct_utf8_next(const char *bytes, size_t length);

/* Where _next gives 0 or -1: how many bytes are wrong together, which is the longest beginning of a character there, or
 * one byte. */
size_t ct_utf8_bad(const char *bytes, size_t length);

/* Appends bytes with U+FFFD in place of what is no character, one for each ct_utf8_bad (as Python's errors="replace").
 */
void ct_utf8_append(ct_str *str, const char *bytes, size_t length);

#endif
