/* Runs a Mosaic kernel's text on the host: the grid step by step, windows as their transforms place them, scratch,
 * prefetched scalars. It reads the text alone, so what a TPU is given is what is checked.
 *
 * Beside wrong types and shapes it refuses
 *
 *   a tile that leaves its window; a window that shows nothing of its array
 *   scratch or an output read before it is written (scratch is empty after a parallel index has moved on)
 *   an output's block visited again after its window has moved on, left before all of it is written, or never visited
 *   a value used outside of the branch that makes it
 *
 * Where a window reaches beyond its array it reads NaN and writes nothing. Arithmetic is that of the chips: f32 and i32
 * element by element, bf16 only stored, converted and multiplied, products summed in f32.
 */
#ifndef CT_TESTS_MOSAIC_INTERPRETER_H
#define CT_TESTS_MOSAIC_INTERPRETER_H

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"

typedef struct mosaic_module mosaic_module;

/* Errors: INVALID_ARGUMENT naming the line. The module lives in arena and runs on one thread at a time. */
CT_MUST_USE ct_status *mosaic_parse(ct_arena *arena, const char *text, size_t length, mosaic_module **out_module);

/* operands: prefetched scalars, then inputs; results: whole arrays, overwritten. */
CT_MUST_USE ct_status *mosaic_run(mosaic_module *module, int num_operands, const ct_array *operands, int num_results,
                                  ct_array *results);

const char *mosaic_name(const mosaic_module *module);
int mosaic_num_prefetched(const mosaic_module *module);
/* Steps of the last run in which a matmul ran; and all steps. */
int64_t mosaic_num_busy_steps(const mosaic_module *module);
int64_t mosaic_num_steps(const mosaic_module *module);
/* Of the last run's matmuls. */
double mosaic_num_flops(const mosaic_module *module);
/* How often the last run brought a new block to an input's window. */
int64_t mosaic_num_fetches(const mosaic_module *module, int input);

#endif
