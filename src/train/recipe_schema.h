/* The table of recipe keys, from which parsing, checking, printing and help are made. Internal to the recipe's files.
 */
#ifndef CT_TRAIN_RECIPE_SCHEMA_H
#define CT_TRAIN_RECIPE_SCHEMA_H

#include "formats/toml.h"
#include "train/recipe.h"

typedef enum ct__recipe_type {
    CT__RECIPE_BOOL,    /* bool */
    CT__RECIPE_INT,     /* int64_t */
    CT__RECIPE_FLOAT,   /* double */
    CT__RECIPE_STRING,  /* const char * */
    CT__RECIPE_CHOICE,  /* an enum: the index into `allowed` */
    CT__RECIPE_DTYPE,   /* ct_dtype, one of `allowed` */
    CT__RECIPE_LIST,    /* ct_recipe_list */
    CT__RECIPE_NUMBERS, /* ct_recipe_numbers, each above 0 */
    CT__RECIPE_FLAGS,   /* ct_recipe_flags */
} ct__recipe_type;

typedef struct ct__recipe_key {
    const char *section; /* "" for the keys outside sections */
    const char *name;
    ct__recipe_type type;
    size_t offset;             /* in ct_recipe */
    const char *default_value; /* as on the command line; NULL: unset (NULL for text, -1 for numbers) */
    const char *help;
    const char *allowed;       /* "a|b|c", or NULL */
    const char *aliases;       /* other names, "section.key section.key", or NULL */
    double min, max;           /* of numbers; max 0 means unbounded */
    bool above_min, under_max; /* the bound itself is excluded */
    bool may_be_infinite, may_be_empty, is_required;
    bool may_be_one; /* of a list: a single string stands for a list of it */
} ct__recipe_key;

extern const ct__recipe_key ct__recipe_keys[];
extern const size_t ct__recipe_num_keys;

/* The key of a section and name, aliases included; NULL when there is none. */
const ct__recipe_key *ct__recipe_find(const char *section, size_t section_length, const char *name);
bool ct__recipe_has_section(const char *section, size_t section_length);

/* "training.steps", or "dump_folder"; in the arena. */
const char *ct__recipe_full_name(ct_arena *arena, const ct__recipe_key *key);

/* Can the key be without a value? */
bool ct__recipe_can_unset(const ct__recipe_key *key);

/* Set a key. On failure nothing is set and *problem is appended to: "must be ..., found ...". */
CT_MUST_USE bool ct__recipe_set(ct_recipe *recipe, const ct__recipe_key *key, const ct_toml *value, ct_str *problem);
CT_MUST_USE bool ct__recipe_set_text(ct_recipe *recipe, const ct__recipe_key *key, const char *text, ct_str *problem);
CT_MUST_USE bool ct__recipe_set_flag(ct_recipe *recipe, const ct__recipe_key *key, const char *flag, const char *text,
                                     ct_str *problem);

bool ct__recipe_is_unset(const ct_recipe *recipe, const ct__recipe_key *key);
void ct__recipe_format(const ct_recipe *recipe, const ct__recipe_key *key, ct_str *out); /* as TOML */
void ct__recipe_requirement(const ct__recipe_key *key, ct_str *out); /* "a whole number of at least 1" */

/* Mistakes found while loading. */
typedef struct ct__recipe_mistakes {
    ct_str text; /* one line each */
    size_t count;
    bool *is_broken; /* per key of the table: its value is not to be relied on */
} ct__recipe_mistakes;

void ct__recipe_mistake(ct__recipe_mistakes *mistakes, const char *where, const char *format, ...) CT_PRINTF(3, 4);

/* Fills in what is unset and follows from other keys: device.count. */
void ct__recipe_resolve(ct_recipe *recipe);

/* What must hold between keys. */
void ct__recipe_check(const ct_recipe *recipe, const ct_recipe_load_opts *opts, ct__recipe_mistakes *mistakes);

#endif
