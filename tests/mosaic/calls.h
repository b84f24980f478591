/* Whole programs with Mosaic kernels on the CPU plugin: their tpu_custom_calls become calls of the interpreter. */
#ifndef CT_TESTS_MOSAIC_CALLS_H
#define CT_TESTS_MOSAIC_CALLS_H

#include "interpreter.h"
#include "pjrt/plugin.h"

/* Makes the interpreter known to the plugin. */
CT_MUST_USE ct_status *mosaic_register(ct_plugin *plugin);

/* The program with its kernels interpreted, heap; out_num_calls: how many there are. */
char *mosaic_rewrite(const char *program, int *out_num_calls);

/* The text of the index-th kernel of a program, heap. NULL: there are fewer. */
char *mosaic_kernel_text(const char *program, int index);

/* Steps in which kernels whose names begin so have computed since the last time it was asked. */
int64_t mosaic_take_busy_steps(const char *kernel);

#endif
