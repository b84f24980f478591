/* The same recipe with some keys changed. Internal. */
#ifndef CT_PLAN_VARY_H
#define CT_PLAN_VARY_H

#include "train/recipe.h"

/* overrides as ct_recipe_load takes them. A topology that is changed takes device.count with it. Errors: those of
 * loading. */
CT_MUST_USE ct_status *ct__recipe_vary(const ct_recipe *recipe, const char *const *overrides, size_t num_overrides,
                                       ct_recipe **out_recipe);

#endif
