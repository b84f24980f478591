/* Any bytes parse or give an error; the tree is walked, so that every pointer and length in it is read. */
#include <string.h>

#include "formats/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t walk(const ct_toml *value)
{
    size_t sum = (size_t)value->line;
    switch (value->type) {
    case CT_TOML_TABLE:
        for (size_t i = 0; i < value->table.num_entries; i++) {
            const ct_toml_entry *entry = &value->table.entries[i];
            if (strlen(entry->key) > entry->key_length) CT_BUG("key %zu is not terminated", i);
            sum += entry->key_length + walk(&entry->value);
        }
        break;
    case CT_TOML_ARRAY:
        for (size_t i = 0; i < value->array.num_items; i++) sum += walk(&value->array.items[i]);
        break;
    case CT_TOML_STRING:
    case CT_TOML_DATE:
        if (value->string.data[value->string.length]) CT_BUG("string is not terminated");
        sum += value->string.length;
        break;
    case CT_TOML_INTEGER:
    case CT_TOML_FLOAT:
    case CT_TOML_BOOLEAN: sum++; break;
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ct_arena arena;
    ct_arena_init(&arena);
    const ct_toml *root;
    ct_status *status = ct_toml_parse(&arena, "input", (const char *)data, size, &root);
    if (!status && walk(root) == 0) CT_BUG("a table without a line");
    if (status && root) CT_BUG("an error with a tree");
    ct_status_free(status);
    ct_arena_deinit(&arena);
    return 0;
}
