/* What lies in a device's memory when most of it is in use, by name. Internal.
 *
 * The compiled program says what each instruction makes and in which order they run, not where it puts that. So this is
 * a count of our own: a value lives from the instruction that makes it to the last one that uses it, loops work in the
 * place of what they are given, updates of slices in the place of what they update, and results of the step in the
 * place of arguments of the same shape. It names what is large; the compiler's own sums are what counts.
 */
#ifndef CT_PLAN_ARRAYS_H
#define CT_PLAN_ARRAYS_H

#include "pjrt/hlo.h"
#include "plan/plan.h"

/* The arguments and the values that live at the fullest point of the schedule, alike ones together, largest first; in
 * arena, borrowing from module. */
ct_plan_array *ct__plan_arrays(ct_arena *arena, const ct_hlo_module *module, size_t *out_num_arrays);

#endif
