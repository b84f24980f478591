/* A recipe prints as a recipe: that text, loaded with the changes. */
#include "plan/vary.h"

#include <string.h>

static bool names(const char *override, const char *key)
{
    return !strncmp(override, "--", 2) && !strncmp(override + 2, key, strlen(key));
}

ct_status *ct__recipe_vary(const ct_recipe *recipe, const char *const *overrides, size_t num_overrides,
                           ct_recipe **out_recipe)
{
    *out_recipe = NULL;
    ct_str text;
    ct_arena arena;
    ct_str_init(&text);
    ct_arena_init(&arena);
    ct_recipe_print(recipe, &text);
    const char **all = CT_ARENA_ARRAY(&arena, const char *, num_overrides + 1);
    size_t count = 0;
    bool has_count = false, has_topology = false;
    for (size_t i = 0; i < num_overrides; i++) {
        all[count++] = overrides[i];
        has_count |= names(overrides[i], "device.count");
        has_topology |= names(overrides[i], "device.topology") || names(overrides[i], "device.num_slices");
    }
    if (has_topology && !has_count) all[count++] = "--device.count=none"; /* again as many as the topology has */
    const char *name = recipe->path ? recipe->path : "recipe";
    ct_recipe_load_opts opts = {.overrides = all, .num_overrides = count};
    ct_status *status = ct_recipe_parse(name, text.data, text.length, &opts, out_recipe);
    ct_arena_deinit(&arena);
    ct_str_deinit(&text);
    return status;
}
