/* The profiler's functions; its objects are the static text that they hand out, counted. */
#include "fake_profiler.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt/profiler_abi.h"

struct profiler_object {
    uint8_t seen[sizeof(FAKE_PROFILER_SEEN)]; /* and the zero behind it */
};

struct profiler_error {
    const char *message;
};

static int *count;

static bool is_asked_for(const char *wish)
{
    const char *given = getenv("FAKE_PLUGIN_PROFILER");
    return given && !strcmp(given, wish);
}

static profiler_error *error_new(const char *message)
{
    profiler_error *error = malloc(sizeof(*error));
    error->message = message;
    ++*count;
    return error;
}

static void error_destroy(profiler_error_args *args)
{
    --*count;
    free(args->error);
}

static void error_message(profiler_message_args *args)
{
    args->message = args->error->message;
    args->message_size = strlen(args->message);
}

/* Options are tensorflow.ProfileOptions; without a level for devices, a profiler sees none of them. */
static profiler_error *create(profiler_create_args *args)
{
    static const char device_level_1[] = "\x18\x01"; /* field 3 */
    if (!memmem(args->options, args->options_size, device_level_1, 2)) return error_new("devices are not to be traced");
    args->profiler = malloc(sizeof(*args->profiler));
    memcpy(args->profiler->seen, FAKE_PROFILER_SEEN, sizeof(args->profiler->seen));
    ++*count;
    return NULL;
}

static profiler_error *destroy(profiler_args *args)
{
    --*count;
    free(args->profiler);
    return NULL;
}

static profiler_error *start(profiler_args *args)
{
    (void)args;
    return is_asked_for("start") ? error_new("another one runs") : NULL;
}

static profiler_error *stop(profiler_args *args)
{
    (void)args;
    return NULL;
}

static profiler_error *collect_data(profiler_collect_args *args)
{
    if (is_asked_for("collect")) return error_new("nothing was seen");
    size_t size = sizeof(args->profiler->seen) - (is_asked_for("broken") ? 2 : 0);
    if (args->buffer && is_asked_for("copy")) memcpy(args->buffer, args->profiler->seen, size);
    if (!args->buffer && !is_asked_for("copy")) args->buffer = args->profiler->seen;
    args->buffer_size_in_bytes = size;
    return NULL;
}

struct profiler_extension *fake_profiler_extension(int *num_live)
{
    static const profiler_api api = {.struct_size = sizeof(api),
                                     .error_destroy = error_destroy,
                                     .error_message = error_message,
                                     .create = create,
                                     .destroy = destroy,
                                     .start = start,
                                     .stop = stop,
                                     .collect_data = collect_data};
    static profiler_extension extension = {
        .struct_size = sizeof(extension), .type = PROFILER_EXTENSION_TYPE, .api = &api};
    count = num_live;
    return &extension;
}
