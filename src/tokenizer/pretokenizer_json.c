/* The pre-tokenizers of a tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/json_help.h"
#include "tokenizer/pretokenizer.h"

static ct_status *add_stage(ct__pretokenizer *pretokenizer, ct_json_value value, ct__stage stage)
{
    if (pretokenizer->num_stages == CT__MAX_STAGES || pretokenizer->byte_level) {
        ct__pattern_free(stage.pattern);
        free(stage.needle);
        return ct__json_unsupported(value, pretokenizer->byte_level ? "a pre-tokenizer behind ByteLevel"
                                                                    : "a sequence of more than 16 pre-tokenizers");
    }
    pretokenizer->stages[pretokenizer->num_stages++] = stage;
    return NULL;
}

static ct_status *read_behavior(ct_json_value value, ct__behavior *behavior)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const char *name = NULL;
    CT_TRY(ct_json_get_string(value, "behavior", &name));
    for (size_t i = 0; name && i < CT_COUNT(names); i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *behavior = (ct__behavior)i;
        return NULL;
    }
    return name ? ct__json_unsupported(ct_json_get(value, "behavior"), "this behavior") : NULL;
}

static ct_status *add_split(ct__pretokenizer *pretokenizer, ct_json_value value)
{
    ct_json_value pattern;
    const char *needle = NULL, *regex = NULL;
    ct__stage stage = {.kind = CT__STAGE_SPLIT, .behavior = CT__BEHAVIOR_ISOLATED};
    CT_TRY(ct_json_need_object(value, "pattern", &pattern));
    CT_TRY(ct_json_get_string(pattern, "String", &needle));
    CT_TRY(ct_json_get_string(pattern, "Regex", &regex));
    CT_TRY(read_behavior(value, &stage.behavior));
    CT_TRY(ct_json_get_bool(value, "invert", &stage.invert));
    if (regex)
        CT_TRY(ct__pattern_new(regex, CT__DIALECT_ONIGURUMA, false, &stage.pattern));
    else if (needle && *needle)
        stage.needle = ct_strdup(needle);
    else
        return ct__json_unsupported(pattern, "a pattern that is neither String nor Regex, or empty");
    return add_stage(pretokenizer, value, stage);
}

static ct_status *add_byte_level(ct__pretokenizer *pretokenizer, ct_json_value value)
{
    bool prefix = true, use_regex = true;
    CT_TRY(ct_json_get_bool(value, "add_prefix_space", &prefix));
    CT_TRY(ct_json_get_bool(value, "use_regex", &use_regex));
    if (prefix) CT_TRY(add_stage(pretokenizer, value, (ct__stage){.kind = CT__STAGE_PREFIX}));
    if (use_regex) {
        ct__stage stage = {.kind = CT__STAGE_SPLIT, .behavior = CT__BEHAVIOR_ISOLATED};
        CT_TRY(ct__pattern_new(ct__pattern_gpt2, CT__DIALECT_ONIGURUMA, false, &stage.pattern));
        CT_TRY(add_stage(pretokenizer, value, stage));
    }
    pretokenizer->byte_level = true;
    return NULL;
}

static ct_status *add_metaspace(ct__pretokenizer *pretokenizer, ct_json_value value)
{
    const char *replacement = "\xe2\x96\x81", *scheme = "always";
    bool add_prefix_space = true;
    ct__stage stage = {.kind = CT__STAGE_METASPACE, .split = true};
    CT_TRY(ct_json_get_string(value, "replacement", &replacement));
    CT_TRY(ct_json_get_bool(value, "add_prefix_space", &add_prefix_space)); /* before prepend_scheme there was this */
    if (!add_prefix_space) scheme = "never";
    CT_TRY(ct_json_get_string(value, "prepend_scheme", &scheme));
    CT_TRY(ct_json_get_bool(value, "split", &stage.split));
    if (!strcmp(scheme, "always"))
        stage.prepend = CT__PREPEND_ALWAYS;
    else if (!strcmp(scheme, "first"))
        stage.prepend = CT__PREPEND_FIRST;
    else if (!strcmp(scheme, "never"))
        stage.prepend = CT__PREPEND_NEVER;
    else
        return ct__json_unsupported(ct_json_get(value, "prepend_scheme"), "this scheme");
    if (!*replacement) return ct__json_unsupported(value, "an empty replacement");
    stage.needle = ct_strdup(replacement);
    return add_stage(pretokenizer, value, stage);
}

ct_status *ct__pretokenizer_add_json(ct__pretokenizer *pretokenizer, ct_json_value value)
{
    if (ct_json_is_null(value)) return NULL;
    const char *type;
    CT_TRY(ct_json_need_string(value, "type", &type));
    if (!strcmp(type, "Sequence")) {
        ct_json_value list;
        CT_TRY(ct_json_need_array(value, "pretokenizers", &list));
        ct_json_iter iter = ct_json_iterate(list);
        while (ct_json_next(&iter)) CT_TRY(ct__pretokenizer_add_json(pretokenizer, iter.value));
        return NULL;
    }
    if (!strcmp(type, "Split")) return add_split(pretokenizer, value);
    if (!strcmp(type, "ByteLevel")) return add_byte_level(pretokenizer, value);
    if (!strcmp(type, "Metaspace")) return add_metaspace(pretokenizer, value);
    if (!strcmp(type, "Digits")) {
        bool individual = false;
        CT_TRY(ct_json_get_bool(value, "individual_digits", &individual));
        return add_stage(pretokenizer, value,
                         (ct__stage){.kind = CT__STAGE_DIGITS,
                                     .behavior = individual ? CT__BEHAVIOR_ISOLATED : CT__BEHAVIOR_CONTIGUOUS});
    }
    if (!strcmp(type, "Punctuation")) {
        ct__stage stage = {.kind = CT__STAGE_PUNCTUATION, .behavior = CT__BEHAVIOR_ISOLATED};
        CT_TRY(read_behavior(value, &stage.behavior));
        return add_stage(pretokenizer, value, stage);
    }
    if (!strcmp(type, "WhitespaceSplit"))
        return add_stage(pretokenizer, value,
                         (ct__stage){.kind = CT__STAGE_WHITESPACE, .behavior = CT__BEHAVIOR_REMOVED});
    return ct__json_unsupported(value, "a pre-tokenizer of this type");
}

ct_status *ct__pretokenizer_add_pattern(ct__pretokenizer *pretokenizer, const char *regex, ct__dialect dialect)
{
    ct__stage stage = {.kind = CT__STAGE_SPLIT, .behavior = CT__BEHAVIOR_ISOLATED};
    CT_TRY(ct__pattern_new(regex, dialect, false, &stage.pattern));
    CT_ASSERT(pretokenizer->num_stages < CT__MAX_STAGES);
    pretokenizer->stages[pretokenizer->num_stages++] = stage;
    return NULL;
}

void ct__pretokenizer_deinit(ct__pretokenizer *pretokenizer)
{
    for (size_t i = 0; i < pretokenizer->num_stages; i++) {
        ct__pattern_free(pretokenizer->stages[i].pattern);
        free(pretokenizer->stages[i].needle);
    }
    pretokenizer->num_stages = 0;
}
