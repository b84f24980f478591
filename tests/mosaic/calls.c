/* The interpreter behind XLA's FFI. */
#include "calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "pjrt/ffi.h"
#include "predict/internal.h"

/* By kernel; calls run on several threads. */
static pthread_mutex_t busy_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char kernel[48];
    int64_t steps;
} busy[16];

static void add_busy_steps(const char *kernel, int64_t steps)
{
    pthread_mutex_lock(&busy_mutex);
    for (size_t i = 0; i < CT_COUNT(busy); i++) {
        if (busy[i].kernel[0] && strcmp(busy[i].kernel, kernel) != 0) continue;
        snprintf(busy[i].kernel, sizeof(busy[i].kernel), "%s", kernel);
        busy[i].steps += steps;
        break;
    }
    pthread_mutex_unlock(&busy_mutex);
}

int64_t mosaic_take_busy_steps(const char *kernel)
{
    int64_t steps = 0;
    pthread_mutex_lock(&busy_mutex);
    for (size_t i = 0; i < CT_COUNT(busy); i++) {
        if (strncmp(busy[i].kernel, kernel, strlen(kernel)) != 0) continue;
        steps += busy[i].steps;
        busy[i].steps = 0;
    }
    pthread_mutex_unlock(&busy_mutex);
    return steps;
}

static char *decode_base64(const char *text, size_t length)
{
    size_t size_bytes;
    return ct_base64_decode(text, length, &size_bytes);
}

enum { MAX_ARRAYS = 32 };

/* What a prediction counts of the text must be what ran: all of it, or, where memory decides, at most as much. */
static ct_status *check_count(const char *text, const mosaic_module *module)
{
    ct__body_count count;
    double ran = mosaic_num_flops(module);
    if (!ct__body_count_of(text, strlen(text), &count))
        return ct_error(CT_CODE_INTERNAL, "%s: a prediction cannot count it", mosaic_name(module));
    if (count.is_exact ? count.flops != ran : count.flops < ran)
        return ct_error(CT_CODE_INTERNAL, "%s: counted %.0f FLOPs, ran %.0f", mosaic_name(module), count.flops, ran);
    return NULL;
}

static ct_status *interpret_in(ct_arena *arena, const ct_ffi_call *call)
{
    const char *body;
    size_t length;
    CT_TRY(ct_ffi_attribute_text(call, "body", &body, &length));
    ct_array operands[MAX_ARRAYS], results[MAX_ARRAYS];
    int num_operands = (int)ct_ffi_num_arguments(call), num_results = (int)ct_ffi_num_results(call);
    if (num_operands > MAX_ARRAYS || num_results > MAX_ARRAYS)
        return ct_error(CT_CODE_UNIMPLEMENTED, "%d operands and %d results", num_operands, num_results);
    for (int i = 0; i < num_operands; i++) CT_TRY(ct_ffi_argument(call, (size_t)i, &operands[i]));
    for (int i = 0; i < num_results; i++) CT_TRY(ct_ffi_result(call, (size_t)i, &results[i]));
    char *text = decode_base64(body, length);
    mosaic_module *module;
    ct_status *status = mosaic_parse(arena, text, strlen(text), &module);
    if (!status) status = mosaic_run(module, num_operands, operands, num_results, results);
    if (!status) add_busy_steps(mosaic_name(module), mosaic_num_busy_steps(module));
    if (!status) status = check_count(text, module);
    free(text);
    return status;
}

static ct_status *interpret(const ct_ffi_call *call)
{
    ct_arena arena;
    ct_arena_init(&arena);
    ct_status *status = interpret_in(&arena, call);
    ct_arena_deinit(&arena);
    return status;
}
CT_FFI_HANDLER(interpret_handler, interpret);

ct_status *mosaic_register(ct_plugin *plugin)
{
    return ct_ffi_register(plugin, "ct_mosaic_interpreter", interpret_handler);
}

static const char CALL[] = "call_target_name = \"tpu_custom_call\"", BODY[] = "\\22body\\22: \\22";

/* The base64 text of the call at `at`, and the configuration's end (its closing quote). */
static const char *find_body(const char *at, size_t *out_length, const char **out_end)
{
    const char *body = strstr(at, BODY) + strlen(BODY);
    *out_length = strcspn(body, "\\\"");
    *out_end = strchr(body, '"');
    return body;
}

char *mosaic_rewrite(const char *program, int *out_num_calls)
{
    ct_str out;
    ct_str_init(&out);
    *out_num_calls = 0;
    const char *at;
    while ((at = strstr(program, CALL))) {
        size_t length;
        const char *end, *body = find_body(at, &length, &end);
        ct_str_append_n(&out, program, (size_t)(at - program));
        ct_str_append(&out, "call_target_name = \"ct_mosaic_interpreter\", api_version = 4 : i32, "
                            "has_side_effect = false, backend_config = {body = \"");
        ct_str_append_n(&out, body, length);
        ct_str_append(&out, "\"}");
        program = end + 1;
        ++*out_num_calls;
    }
    ct_str_append(&out, program);
    return ct_str_release(&out);
}

char *mosaic_kernel_text(const char *program, int index)
{
    for (const char *at = program; (at = strstr(at, CALL)); at++) {
        if (index--) continue;
        size_t length;
        const char *end, *body = find_body(at, &length, &end);
        return decode_base64(body, length);
    }
    return NULL;
}
