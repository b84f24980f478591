/* Stop ids of a folder, stop texts in a stream. */
#include "generate/stops.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "formats/json.h"

static void add(ct_stop_ids *stop_ids, int32_t id)
{
    if (id < 0 || ct_stop_ids_has(stop_ids, id)) return;
    stop_ids->ids = ct_realloc(stop_ids->ids, (stop_ids->num_ids + 1) * sizeof(*stop_ids->ids));
    stop_ids->ids[stop_ids->num_ids++] = id;
}

static ct_status *add_value(ct_stop_ids *stop_ids, ct_json_value value)
{
    int64_t id;
    CT_TRY(ct_json_as_int(value, &id));
    if (id < 0 || id > INT32_MAX) {
        char *where = ct_json_where(value);
        ct_status *status =
            ct_error(CT_CODE_INVALID_ARGUMENT, "%s must be a token's id, found %lld", where, (long long)id);
        free(where);
        return status;
    }
    add(stop_ids, (int32_t)id);
    return NULL;
}

/* out_found: does the file say something of it? */
static ct_status *add_file(ct_stop_ids *stop_ids, const char *folder, const char *name, bool *out_found)
{
    *out_found = false;
    char *path = ct_path_join(folder, name);
    ct_json *json = NULL;
    ct_status *status = ct_json_read(path, &json);
    free(path);
    if (ct_status_code(status) == CT_CODE_NOT_FOUND) {
        ct_status_free(status);
        return NULL;
    }
    CT_TRY(status);
    ct_json_value value = ct_json_get(ct_json_root(json), "eos_token_id");
    *out_found = !ct_json_is_null(value);
    if (ct_json_type_of(value) == CT_JSON_ARRAY) {
        ct_json_iter iter = ct_json_iterate(value);
        while (!status && ct_json_next(&iter)) status = add_value(stop_ids, iter.value);
    } else if (*out_found) {
        status = add_value(stop_ids, value);
    }
    ct_json_free(json);
    return status;
}

ct_status *ct_stop_ids_read(const char *folder, const ct_tokenizer *tokenizer, ct_stop_ids *out_stop_ids)
{
    *out_stop_ids = (ct_stop_ids){0};
    bool found;
    ct_status *status = add_file(out_stop_ids, folder, "generation_config.json", &found);
    if (!status && !found) status = add_file(out_stop_ids, folder, "config.json", &found);
    if (status) {
        free(out_stop_ids->ids);
        *out_stop_ids = (ct_stop_ids){0};
        return status;
    }
    add(out_stop_ids, ct_tokenizer_eos(tokenizer));
    return NULL;
}

bool ct_stop_ids_has(const ct_stop_ids *stop_ids, int32_t id)
{
    for (size_t i = 0; i < stop_ids->num_ids; i++)
        if (stop_ids->ids[i] == id) return true;
    return false;
}

bool ct_stop_find(const ct_str *text, const char *const *stops, size_t num_stops, size_t *out_length)
{
    *out_length = text->length;
    for (size_t at = 0; at < text->length; at++)
        for (size_t i = 0; i < num_stops; i++) {
            size_t rest = text->length - at, length = strlen(stops[i]);
            if (memcmp(text->data + at, stops[i], CT_MIN(rest, length)) != 0) continue;
            if (length > rest) {
                *out_length = CT_MIN(*out_length, at);
                continue;
            }
            *out_length = at;
            return true;
        }
    return false;
}
