/* The steps of a normalizer, each from one buffer to the other; a step that changes nothing copies nothing. */
#include "tokenizer/normalizer.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/alloc.h"
#include "tokenizer/added.h"
#include "tokenizer/base64.h"
#include "tokenizer/json_help.h"
#include "tokenizer/unicode.h"

void ct__normal_scratch_init(ct__normal_scratch *scratch)
{
    *scratch = (ct__normal_scratch){0};
    for (size_t i = 0; i < CT_COUNT(scratch->edits); i++) ct__edit_init(&scratch->edits[i]);
}

void ct__normal_scratch_deinit(ct__normal_scratch *scratch)
{
    for (size_t i = 0; i < CT_COUNT(scratch->edits); i++) ct__edit_deinit(&scratch->edits[i]);
    free(scratch->points);
}

void ct__normalizer_add(ct__normalizer *normalizer, ct__normal_step step)
{
    normalizer->steps = ct_realloc(normalizer->steps, (normalizer->num_steps + 1) * sizeof(step));
    normalizer->steps[normalizer->num_steps++] = step;
}

void ct__normalizer_deinit(ct__normalizer *normalizer)
{
    for (size_t i = 0; i < normalizer->num_steps; i++) {
        ct__normal_step *step = &normalizer->steps[i];
        free(step->content);
        free(step->needle);
        ct__pattern_free(step->pattern);
        ct__charsmap_free(step->charsmap);
    }
    free(normalizer->steps);
    *normalizer = (ct__normalizer){0};
}

/* ---- From JSON ---- */

static ct_status *add_replace(ct__normalizer *normalizer, ct_json_value value)
{
    ct_json_value pattern;
    const char *content, *needle = NULL, *regex = NULL;
    CT_TRY(ct_json_need_object(value, "pattern", &pattern));
    CT_TRY(ct_json_get_string(pattern, "String", &needle));
    CT_TRY(ct_json_get_string(pattern, "Regex", &regex));
    CT_TRY(ct_json_need_string(value, "content", &content));
    if (!needle && !regex) return ct__json_unsupported(pattern, "a pattern that is neither String nor Regex");
    ct__normal_step step = {.kind = CT__NORMAL_REPLACE};
    if (regex) CT_TRY(ct__pattern_new(regex, CT__DIALECT_ONIGURUMA, true, &step.pattern));
    step.content = ct_strdup(content);
    if (needle) step.needle = ct_strdup(needle);
    ct__normalizer_add(normalizer, step);
    return NULL;
}

static ct_status *add_charsmap(ct__normalizer *normalizer, ct_json_value value)
{
    const char *text = NULL;
    CT_TRY(ct_json_get_string(value, "precompiled_charsmap", &text));
    if (!text || !*text) return NULL; /* T5 files without a map have null here */
    char *bytes;
    size_t length;
    CT_TRY(ct__base64_decode(text, strlen(text), &bytes, &length));
    ct__normal_step step = {.kind = CT__NORMAL_CHARSMAP};
    ct_status *status = ct__charsmap_new(bytes, length, &step.charsmap);
    free(bytes);
    CT_TRY(status);
    ct__normalizer_add(normalizer, step);
    return NULL;
}

static ct_status *add_strip(ct__normalizer *normalizer, ct_json_value value)
{
    ct__normal_step step = {.kind = CT__NORMAL_STRIP, .left = true, .right = true};
    CT_TRY(ct_json_get_bool(value, "strip_left", &step.left));
    CT_TRY(ct_json_get_bool(value, "strip_right", &step.right));
    ct__normalizer_add(normalizer, step);
    return NULL;
}

ct_status *ct__normalizer_add_json(ct__normalizer *normalizer, ct_json_value value)
{
    if (ct_json_is_null(value)) return NULL;
    static const struct {
        const char *name;
        ct__normal_kind kind;
    } plain[] = {{"NFC", CT__NORMAL_NFC},
                 {"NFD", CT__NORMAL_NFD},
                 {"NFKC", CT__NORMAL_NFKC},
                 {"NFKD", CT__NORMAL_NFKD},
                 {"Lowercase", CT__NORMAL_LOWERCASE}};
    const char *type;
    CT_TRY(ct_json_need_string(value, "type", &type));
    for (size_t i = 0; i < CT_COUNT(plain); i++) {
        if (strcmp(type, plain[i].name) != 0) continue;
        ct__normalizer_add(normalizer, (ct__normal_step){.kind = plain[i].kind});
        return NULL;
    }
    if (!strcmp(type, "Sequence")) {
        ct_json_value list;
        CT_TRY(ct_json_need_array(value, "normalizers", &list));
        ct_json_iter iter = ct_json_iterate(list);
        while (ct_json_next(&iter)) CT_TRY(ct__normalizer_add_json(normalizer, iter.value));
        return NULL;
    }
    if (!strcmp(type, "Prepend")) {
        const char *content;
        CT_TRY(ct_json_need_string(value, "prepend", &content));
        ct__normalizer_add(normalizer, (ct__normal_step){.kind = CT__NORMAL_PREPEND, .content = ct_strdup(content)});
        return NULL;
    }
    if (!strcmp(type, "Replace")) return add_replace(normalizer, value);
    if (!strcmp(type, "Precompiled")) return add_charsmap(normalizer, value);
    if (!strcmp(type, "Strip")) return add_strip(normalizer, value);
    return ct__json_unsupported(value, "a normalizer of this type");
}

/* ---- Steps ---- */

static void lowercase(const ct__text *text, ct__edit *edit)
{
    const unsigned char *data = (const unsigned char *)text->data;
    size_t size;
    for (size_t at = 0; at < text->length; at += size) {
        uint32_t point = ct__utf8_decode(data + at, &size);
        uint32_t lower[2] = {(uint32_t)utf8proc_tolower((utf8proc_int32_t)point), 0};
        if (point < 0x80) lower[0] = point >= 'A' && point <= 'Z' ? point + 32 : point;
        for (size_t i = 0; i < ct__unicode_num_lowercases && point >= 0x80; i++)
            if (ct__unicode_lowercases[i].point == point) memcpy(lower, ct__unicode_lowercases[i].lower, sizeof(lower));
        char bytes[4];
        ct_token_range origin = ct__text_range(text, at, at + size);
        ct__edit_put(edit, bytes, ct__utf8_encode(lower[0], bytes), origin);
        if (lower[1]) ct__edit_put(edit, bytes, ct__utf8_encode(lower[1], bytes), origin);
    }
}

static ct_status *replace(const ct__normal_step *step, ct__matcher *matcher, const ct__text *text, ct__edit *edit)
{
    size_t done = 0, begin, end, content_length = strlen(step->content);
    size_t needle_length = step->needle ? strlen(step->needle) : 0;
    for (;;) {
        if (step->pattern) {
            bool found;
            CT_TRY(ct__pattern_match(step->pattern, matcher, text->data, text->length, done, &found, &begin, &end));
            if (!found) break;
        } else {
            const char *found =
                needle_length ? memmem(text->data + done, text->length - done, step->needle, needle_length) : NULL;
            if (!found) break;
            begin = (size_t)(found - text->data);
            end = begin + needle_length;
        }
        ct__edit_keep(edit, text, done, begin);
        ct__edit_put(edit, step->content, content_length, ct__text_range(text, begin, end));
        done = end;
    }
    ct__edit_keep(edit, text, done, text->length);
    return NULL;
}

static void strip(const ct__normal_step *step, const ct__text *text, ct__edit *edit)
{
    const ct__unicode *unicode = ct__unicode_get();
    const unsigned char *data = (const unsigned char *)text->data;
    size_t begin = 0, end = text->length, size;
    while (step->left && begin < end && (ct__unicode_class(unicode, ct__utf8_decode(data + begin, &size)) & CT__SPACE))
        begin += size;
    while (step->right && end > begin) {
        const unsigned char *last = ct__utf8_back(data + end);
        if (!(ct__unicode_class(unicode, ct__utf8_decode(last, &size)) & CT__SPACE)) break;
        end = (size_t)(last - data);
    }
    ct__edit_keep(edit, text, begin, end);
}

/* Hugging Face maps whole graphemes of less than six bytes by the shortest key that begins them, others by character.
 */
static void map_graphemes(const ct__charsmap *map, const ct__text *text, ct__edit *edit)
{
    const unsigned char *data = (const unsigned char *)text->data;
    size_t size = 0, used;
    for (size_t at = 0; at < text->length;) {
        size_t end;
        utf8proc_int32_t state = 0, previous = (utf8proc_int32_t)ct__utf8_decode(data + at, &size);
        for (end = at + size; end < text->length; end += size) {
            utf8proc_int32_t point = (utf8proc_int32_t)ct__utf8_decode(data + end, &size);
            if (utf8proc_grapheme_break_stateful(previous, point, &state)) break;
            previous = point;
        }
        const char *mapped = end - at < 6 ? ct__charsmap_shortest(map, text->data + at, end - at, &used) : NULL;
        if (mapped) {
            ct__edit_put(edit, mapped, strlen(mapped), ct__text_range(text, at, end));
            at = end;
        }
        for (; at < end; at += size) {
            size = ct__utf8_size(data[at]);
            mapped = ct__charsmap_shortest(map, text->data + at, size, &used);
            if (mapped)
                ct__edit_put(edit, mapped, strlen(mapped), ct__text_range(text, at, at + size));
            else
                ct__edit_keep(edit, text, at, at + size);
        }
    }
}

#define SPACE_SYMBOL "\xe2\x96\x81" /* U+2581 */

/* SentencePiece's own normalizer: the map by longest match, runs of spaces to one, none at the ends, one put in front,
 * and all of them shown as U+2581. */
static void sentencepiece(const ct__normal_step *step, const ct__text *text, ct__edit *edit)
{
    const char *space = step->escape_spaces ? SPACE_SYMBOL : " ";
    size_t space_length = strlen(space), pending = SIZE_MAX; /* where a space begins that is not yet written */
    bool after_space = step->remove_extra_spaces, begun = false;
    size_t size;
    for (size_t at = 0; at < text->length; at += size) {
        const char *mapped = NULL;
        size_t mapped_length = 0, kept_end;
        if (step->kept && ct__added_at(step->kept, text->data, text->length, at, &kept_end)) {
            mapped = text->data + at;
            mapped_length = size = kept_end - at;
        } else if (step->charsmap)
            mapped = ct__charsmap_longest(step->charsmap, text->data + at, text->length - at, &size);
        if (mapped && mapped != text->data + at) {
            mapped_length = strlen(mapped);
        } else if (!mapped) {
            mapped = text->data + at;
            mapped_length = size = ct__utf8_size((unsigned char)text->data[at]);
        }
        ct_token_range origin = ct__text_range(text, at, at + size);
        for (size_t i = 0; i < mapped_length; i++) {
            bool is_space = mapped[i] == ' ';
            if (is_space && after_space) continue;
            if (is_space && step->remove_extra_spaces) {
                pending = at;
                after_space = true;
                continue;
            }
            if (!begun && step->add_prefix && !step->prefix_is_suffix) ct__edit_put(edit, space, space_length, origin);
            begun = true;
            if (pending != SIZE_MAX)
                ct__edit_put(edit, space, space_length, ct__text_range(text, pending, pending + 1));
            pending = SIZE_MAX;
            after_space = false;
            if (is_space)
                ct__edit_put(edit, space, space_length, origin);
            else
                ct__edit_put(edit, mapped + i, 1, origin);
        }
    }
    if (begun && step->add_prefix && step->prefix_is_suffix)
        ct__edit_put(edit, space, space_length, (ct_token_range){text->base + text->length, text->base + text->length});
}

static ct_status *apply(const ct__normal_step *step, ct__normal_scratch *scratch, ct__matcher *matcher,
                        const ct__text *text, ct__edit *edit)
{
    switch (step->kind) {
    case CT__NORMAL_NFC:
    case CT__NORMAL_NFD:
    case CT__NORMAL_NFKC:
    case CT__NORMAL_NFKD: ct__normal_form(step->kind, scratch, text, edit); break;
    case CT__NORMAL_LOWERCASE: lowercase(text, edit); break;
    case CT__NORMAL_PREPEND: {
        ct_token_range first = ct__text_range(text, 0, ct__utf8_size((unsigned char)text->data[0]));
        ct__edit_put(edit, step->content, strlen(step->content), first);
        ct__edit_keep(edit, text, 0, text->length);
        break;
    }
    case CT__NORMAL_REPLACE: return replace(step, matcher, text, edit);
    case CT__NORMAL_STRIP: strip(step, text, edit); break;
    case CT__NORMAL_CHARSMAP: map_graphemes(step->charsmap, text, edit); break;
    case CT__NORMAL_SENTENCEPIECE: sentencepiece(step, text, edit); break;
    }
    return NULL;
}

ct_status *ct__normalize(const ct__normalizer *normalizer, ct__normal_scratch *scratch, ct__matcher *matcher,
                         const ct__text *text, bool track, ct__text *out_text)
{
    *out_text = *text;
    size_t next = 0;
    for (size_t i = 0; i < normalizer->num_steps && out_text->length; i++) {
        const ct__normal_step *step = &normalizer->steps[i];
        if (step->kind <= CT__NORMAL_NFKD && !ct__normal_form_changes(step->kind, out_text)) continue;
        ct__edit *edit = &scratch->edits[next];
        ct__edit_reset(edit, track);
        CT_TRY(apply(step, scratch, matcher, out_text, edit));
        *out_text = ct__edit_text(edit);
        next = 1 - next;
    }
    return NULL;
}
