/* Fuzz target: the bytes are a manifest up to its hash, which is made right here, so that the fuzzer meets the checks
 * behind it. What is accepted has shards inside its files, and comes out of the writer and the reader as it went in. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "checkpoint/box.h"
#include "checkpoint/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_places(const ct__manifest *manifest)
{
    for (size_t i = 0; i < manifest->num_tensors; i++) {
        const ct_checkpoint_tensor *tensor = &manifest->tensors[i];
        for (size_t j = 0; j < tensor->num_shards; j++) {
            const ct__manifest_place *place = &manifest->places[i][j];
            int64_t bytes = ct__box_volume(&tensor->shards[j], tensor->rank) * (int64_t)ct_dtype_bytes(tensor->dtype);
            if (place->file >= manifest->num_files || place->offset < 0) abort();
            if (bytes > manifest->files[place->file].size_bytes - place->offset) abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ct_str text;
    ct_arena arena;
    ct__manifest manifest;
    ct_json *json;
    char digits[CT__HASH_DIGITS + 1];
    ct_str_init(&text);
    ct_arena_init(&arena);
    ct_str_append_n(&text, (const char *)bytes, size);
    ct_str_append(&text, "\"manifest_xxh3_128\":\"00000000000000000000000000000000\"}");
    ct__hash_bytes(text.data, text.length, digits);
    memcpy(text.data + text.length - 2 - CT__HASH_DIGITS, digits, CT__HASH_DIGITS);
    ct_status *status = ct__manifest_parse("fuzz", text.data, text.length, &arena, &manifest, &json);
    if (!status) {
        check_places(&manifest);
        char *again = ct__manifest_text(&manifest, ct_json_get(ct_json_root(json), "info"));
        ct__manifest second;
        ct_json *second_json;
        status = ct__manifest_parse("again", again, strlen(again), &arena, &second, &second_json);
        if (status || second.num_tensors != manifest.num_tensors || second.num_files != manifest.num_files) abort();
        ct_json_free(second_json);
        ct_json_free(json);
        free(again);
    }
    ct_status_free(status);
    ct_arena_deinit(&arena);
    ct_str_deinit(&text);
    return 0;
}
