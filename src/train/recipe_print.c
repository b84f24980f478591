/* The recipe as text: resolved, and as the list of what there is to set. */
#include <string.h>

#include "train/recipe_schema.h"

void ct_recipe_print(const ct_recipe *recipe, ct_str *out)
{
    const char *section = "";
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const ct__recipe_key *key = &ct__recipe_keys[i];
        if (strcmp(section, key->section) != 0) ct_str_printf(out, "\n[%s]\n", key->section);
        section = key->section;
        if (ct__recipe_is_unset(recipe, key)) {
            ct_str_printf(out, "# %s is not set\n", key->name);
            continue;
        }
        ct_str_printf(out, "%s = ", key->name);
        ct__recipe_format(recipe, key, out);
        if (recipe->origins[i]) {
            ct_str_append(out, "  # ");
            for (const char *at = recipe->origins[i]; *at; at++) /* a comment ends with its line */
                ct_str_append_char(out, (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at);
        }
        ct_str_append_char(out, '\n');
    }
}

static const char *placeholder(const ct__recipe_key *key)
{
    switch (key->type) {
    case CT__RECIPE_BOOL: return "";
    case CT__RECIPE_INT: return "=N";
    case CT__RECIPE_FLOAT: return "=X";
    case CT__RECIPE_LIST: return "=NAME,NAME";
    case CT__RECIPE_NUMBERS: return "=X,X";
    case CT__RECIPE_FLAGS: return ".FLAG=VALUE";
    case CT__RECIPE_STRING:
    case CT__RECIPE_CHOICE:
    case CT__RECIPE_DTYPE: break;
    }
    return key->allowed ? "=NAME" : "=TEXT";
}

void ct_recipe_help(ct_str *out)
{
    ct_str_append(out,
                  "Recipe keys, as overrides on the command line. --a.b and --a.no-b mean true and false; dashes and "
                  "underscores are equal;\nlists are comma separated; \"none\" unsets. Relative paths are relative to "
                  "the working directory.\n");
    const char *section = NULL;
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const ct__recipe_key *key = &ct__recipe_keys[i];
        if (!section || strcmp(section, key->section) != 0) {
            if (key->section[0])
                ct_str_printf(out, "\n[%s]\n", key->section);
            else
                ct_str_append_char(out, '\n');
        }
        section = key->section;
        ct_str_printf(out, "  --%s%s%s%s\n      %s; ", section, section[0] ? "." : "", key->name, placeholder(key),
                      key->help);
        ct__recipe_requirement(key, out);
        if (key->is_required)
            ct_str_append(out, "; required");
        else if (key->default_value)
            ct_str_printf(out, "; default %s", key->default_value[0] ? key->default_value : "empty");
        ct_str_append_char(out, '\n');
        if (key->aliases) ct_str_printf(out, "      also called %s\n", key->aliases);
    }
}
