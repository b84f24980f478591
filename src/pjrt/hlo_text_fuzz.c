/* Fuzz target: any bytes either are refused or give a program that can be walked and printed. */
#include "pjrt/hlo_text.h"

#include "pjrt/collectives.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    ct_status *status = ct_hlo_parse(&arena, bytes, size, "fuzz", &module);
    if (!status) {
        ct_hlo_traffic traffic;
        ct_hlo_traffic_find(&arena, module, 8, &traffic);
        ct_str text;
        ct_str_init(&text);
        ct_hlo_print(module, &text);
        ct_str_deinit(&text);
    }
    ct_status_free(status);
    ct_arena_deinit(&arena);
    return 0;
}
