/* States: what a checkpoint keeps of a dataset.
 *
 *   {"seq_len": 2048, "shuffle": true, "seed": 42, ..., "sources": [
 *     {"kind": "json", "files": hash, "num_bytes": n, "num_files": n,          what must be the same again
 *      "num_samples": n, "epoch": n, "place": n, "offset": n, ...,             where it stands
 *      "shuffle_buffer": [file, offset, file, offset, ...],                    documents in hand
 *      "packing": [sample, file, offset, from, ...]}]}
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/dataset_internal.h"

enum { MAX_SETTINGS = 6, MAX_IDENTITY = 3 };

typedef struct source_part {
    ct_data_kind kind;
    ct__identity identity[MAX_IDENTITY];
    size_t num_identity;
    ct__source_state state;
} source_part;

struct ct_data_state {
    ct__identity settings[MAX_SETTINGS];
    size_t num_settings;
    source_part *sources;
    size_t num_sources;
};

void ct__source_state_hold(ct__source_state *state, ct__held held)
{
    if (state->num_held == state->held_capacity) {
        state->held_capacity = state->held_capacity ? state->held_capacity * 2 : 64;
        state->held = ct_realloc(state->held, state->held_capacity * sizeof(*state->held));
    }
    state->held[state->num_held++] = held;
}

/* What else a place depends on. */
static size_t settings_of(const ct_dataset_opts *opts, ct__identity *out)
{
    size_t count = 0;
    out[count++] = (ct__identity){"seq_len", opts->seq_len};
    out[count++] = (ct__identity){"shuffle", opts->shuffle};
    if (opts->shuffle) out[count++] = (ct__identity){"seed", (int64_t)opts->seed};
    out[count++] = (ct__identity){"document_mask", opts->document_mask};
    out[count++] = (ct__identity){"packing", opts->packing};
    return count;
}

ct_data_state *ct_dataset_state(const ct_dataset *dataset)
{
    ct_data_state *state = ct_alloc_zeroed(1, sizeof(*state));
    state->num_settings = settings_of(&dataset->opts, state->settings);
    state->num_sources = dataset->num_sources;
    state->sources = ct_alloc_zeroed(state->num_sources, sizeof(*state->sources));
    for (size_t i = 0; i < state->num_sources; i++) {
        const ct__source *source = dataset->sources[i];
        source_part *part = &state->sources[i];
        part->kind = source->kind;
        memcpy(part->identity, source->identity, sizeof(part->identity));
        part->num_identity = source->num_identity;
        source->class->save(source, &part->state);
        part->state.num_samples = source->num_taken;
        part->state.ended = source->ended;
    }
    return state;
}

ct_data_state *ct_data_state_copy(const ct_data_state *state)
{
    ct_data_state *copy = ct_alloc(sizeof(*copy));
    *copy = *state;
    copy->sources = ct_alloc(state->num_sources * sizeof(*copy->sources));
    memcpy(copy->sources, state->sources, state->num_sources * sizeof(*copy->sources));
    for (size_t i = 0; i < copy->num_sources; i++) {
        ct__source_state *s = &copy->sources[i].state;
        s->held_capacity = s->num_held;
        ct__held *held = ct_alloc(s->num_held * sizeof(*held));
        if (s->num_held) memcpy(held, s->held, s->num_held * sizeof(*held));
        s->held = held;
    }
    return copy;
}

void ct_data_state_free(ct_data_state *state)
{
    if (!state) return;
    for (size_t i = 0; i < state->num_sources; i++) free(state->sources[i].state.held);
    free(state->sources);
    free(state);
}

int64_t ct__data_state_epoch(const ct_data_state *state)
{
    const ct__source_state *s = &state->sources[0].state;
    bool has_rest = s->draining && s->num_held && s->held[0].slot == CT__IN_SHUFFLE_BUFFER;
    return s->epoch - has_rest;
}

void ct_data_state_left_out(const ct_data_state *state, int64_t *out_num_broken, int64_t *out_num_too_long)
{
    *out_num_broken = *out_num_too_long = 0;
    for (size_t i = 0; i < state->num_sources; i++) {
        *out_num_broken += state->sources[i].state.num_broken;
        *out_num_too_long += state->sources[i].state.num_too_long;
    }
}

/* ---- JSON ---- */

/* The numbers of a state, by name. */
typedef struct field {
    const char *name;
    size_t offset;
} field;

static const field FIELDS[] = {
    {"num_samples", offsetof(ct__source_state, num_samples)},
    {"epoch", offsetof(ct__source_state, epoch)},
    {"place", offsetof(ct__source_state, place)},
    {"offset", offsetof(ct__source_state, offset)},
    {"num_draws", offsetof(ct__source_state, num_draws)},
    {"num_documents", offsetof(ct__source_state, num_documents)},
    {"last_token", offsetof(ct__source_state, last_token)},
    {"num_broken", offsetof(ct__source_state, num_broken)},
    {"num_too_long", offsetof(ct__source_state, num_too_long)},
};

static int64_t *at_field(ct__source_state *state, const field *f)
{
    return (int64_t *)(void *)((char *)state + f->offset);
}

static void write_source(const source_part *part, ct_json_writer *writer)
{
    ct__source_state s = part->state;
    ct_json_begin_object(writer, NULL);
    ct_json_put_string(writer, "kind", ct__kind_name(part->kind));
    for (size_t i = 0; i < part->num_identity; i++)
        ct_json_put_int(writer, part->identity[i].name, part->identity[i].value);
    for (size_t i = 0; i < CT_COUNT(FIELDS); i++) ct_json_put_int(writer, FIELDS[i].name, *at_field(&s, &FIELDS[i]));
    ct_json_put_bool(writer, "draining", s.draining);
    ct_json_put_bool(writer, "ended", s.ended);
    for (int is_packing = 0; is_packing < 2; is_packing++) {
        ct_json_begin_array(writer, is_packing ? "packing" : "shuffle_buffer");
        for (size_t i = 0; i < s.num_held; i++) {
            const ct__held *held = &s.held[i];
            if ((held->slot != CT__IN_SHUFFLE_BUFFER) != is_packing) continue;
            if (is_packing) ct_json_put_int(writer, NULL, held->slot);
            ct_json_put_int(writer, NULL, held->file);
            ct_json_put_int(writer, NULL, held->offset);
            if (is_packing) ct_json_put_int(writer, NULL, held->from);
        }
        ct_json_end(writer);
    }
    ct_json_end(writer);
}

void ct_data_state_write(const ct_data_state *state, ct_json_writer *writer, const char *key)
{
    ct_json_begin_object(writer, key);
    for (size_t i = 0; i < state->num_settings; i++)
        ct_json_put_int(writer, state->settings[i].name, state->settings[i].value);
    ct_json_put_int(writer, "num_sources", (int64_t)state->num_sources);
    ct_json_begin_array(writer, "sources");
    for (size_t i = 0; i < state->num_sources; i++) write_source(&state->sources[i], writer);
    ct_json_end(writer);
    ct_json_end(writer);
}

static ct_status *check_same(ct_json_value value, const ct__identity *now)
{
    int64_t saved;
    CT_TRY(ct_json_need_int(value, now->name, &saved));
    if (saved == now->value) return NULL;
    return ct_error(CT_CODE_FAILED_PRECONDITION,
                    "the data state was saved with %s = %lld, but now it is %lld; resume with the data and settings of "
                    "the save, or start the data anew",
                    now->name, (long long)saved, (long long)now->value);
}

/* Groups of numbers: of the shuffle buffer [file, offset], of packing [sample, file, offset, from]. */
static ct_status *read_held(ct_json_value value, bool is_packing, ct__source_state *state)
{
    ct_json_value array;
    CT_TRY(ct_json_need_array(value, is_packing ? "packing" : "shuffle_buffer", &array));
    int64_t numbers[4];
    size_t count = 0, group = is_packing ? 4 : 2;
    ct_json_iter iter = ct_json_iterate(array);
    while (ct_json_next(&iter)) {
        CT_TRY(ct_json_as_int(iter.value, &numbers[count++]));
        if (count < group) continue;
        count = 0;
        ct__source_state_hold(state, is_packing ? (ct__held){numbers[0], numbers[1], numbers[2], numbers[3]}
                                                : (ct__held){CT__IN_SHUFFLE_BUFFER, numbers[0], numbers[1], 0});
    }
    if (count)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the data state's %s must have a multiple of %zu numbers",
                        is_packing ? "packing" : "shuffle_buffer", group);
    return NULL;
}

static ct_status *read_source(const ct__source *source, ct_json_value value, ct__source_state *out)
{
    const char *kind;
    CT_TRY(ct_json_need_string(value, "kind", &kind));
    if (strcmp(kind, ct__kind_name(source->kind)) != 0)
        return ct_error(CT_CODE_FAILED_PRECONDITION,
                        "the data state was saved with dataset \"%s\", but now it is \"%s\"", kind,
                        ct__kind_name(source->kind));
    for (size_t i = 0; i < source->num_identity; i++) CT_TRY(check_same(value, &source->identity[i]));
    for (size_t i = 0; i < CT_COUNT(FIELDS); i++) {
        int64_t number;
        CT_TRY(ct_json_need_int(value, FIELDS[i].name, &number));
        if (number < (FIELDS[i].offset == offsetof(ct__source_state, last_token) ? -1 : 0) ||
            (FIELDS[i].offset == offsetof(ct__source_state, last_token) && number >= source->opts->vocab_size))
            return ct_error(CT_CODE_OUT_OF_RANGE, "the data state's %s must not be %lld", FIELDS[i].name,
                            (long long)number);
        *at_field(out, &FIELDS[i]) = number;
    }
    CT_TRY(ct_json_need_bool(value, "draining", &out->draining));
    CT_TRY(ct_json_need_bool(value, "ended", &out->ended));
    CT_TRY(read_held(value, false, out));
    return read_held(value, true, out);
}

ct_status *ct_dataset_restore(ct_dataset *dataset, ct_json_value value)
{
    ct__identity settings[MAX_SETTINGS];
    size_t num_settings = settings_of(&dataset->opts, settings);
    for (size_t i = 0; i < num_settings; i++) CT_TRY(check_same(value, &settings[i]));
    ct_json_value sources;
    CT_TRY(ct_json_need_array(value, "sources", &sources));
    CT_TRY(check_same(value, &(ct__identity){"num_sources", (int64_t)dataset->num_sources}));
    for (size_t i = 0; i < dataset->num_sources; i++) {
        ct__source *source = dataset->sources[i];
        ct__source_state state = {0};
        ct_status *status = read_source(source, ct_json_at(sources, i), &state);
        if (!status) status = source->class->restore(source, &state);
        source->num_taken = state.num_samples;
        source->ended = state.ended;
        free(state.held);
        CT_TRY_NOTE(status, "restoring the place in %s", source->path);
    }
    ct_data_state *state = ct_dataset_state(dataset);
    dataset->epoch = ct__data_state_epoch(state);
    ct_data_state_free(state);
    return NULL;
}
