/* Spans are kept until the trace ends, and written at once. */
#include "train/profile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "formats/json.h"
#include "pjrt/profiler.h"

typedef struct span {
    const char *name;
    ct_profile_track track;
    int64_t step;
    double start_s, end_s;
} span;

struct ct_profile {
    ct_profile_opts opts;
    char *folder;
    bool is_active;
    double start_s;
    ct_profiler *profiler; /* of the plugin; NULL: none */
    span *spans;
    size_t num_spans, capacity;
};

ct_profile *ct_profile_new(const ct_profile_opts *opts)
{
    CT_ASSERT(opts->active > 0 && opts->active <= opts->freq);
    ct_profile *profile = ct_alloc_zeroed(1, sizeof(*profile));
    profile->opts = *opts;
    profile->folder = ct_strdup(opts->folder);
    if (opts->plugin && !ct_profiler_is_there(opts->plugin)) {
        ct_warning("%s has no profiler, so traces show what the host does, and devices from launch to readback alone",
                   ct_plugin_path(opts->plugin));
        profile->opts.plugin = NULL;
    }
    return profile;
}

void ct_profile_free(ct_profile *profile)
{
    if (!profile) return;
    if (profile->profiler) {
        ct_str dropped;
        ct_str_init(&dropped);
        ct_status_free(ct_profiler_stop(profile->profiler, &dropped));
        ct_str_deinit(&dropped);
    }
    free(profile->folder);
    free(profile->spans);
    free(profile);
}

bool ct_profile_begins(const ct_profile *profile, int64_t step)
{
    return profile && (step - 1) % profile->opts.freq == profile->opts.freq - profile->opts.active;
}

bool ct_profile_ends(const ct_profile *profile, int64_t step)
{
    return profile && profile->is_active && step % profile->opts.freq == 0;
}

ct_status *ct_profile_begin(ct_profile *profile)
{
    profile->is_active = true;
    profile->num_spans = 0;
    profile->start_s = ct_clock_seconds();
    return profile->opts.plugin ? ct_profiler_start(profile->opts.plugin, &profile->profiler) : NULL;
}

void ct_profile_span(ct_profile *profile, ct_profile_track track, const char *name, int64_t step, double start_s)
{
    if (!profile || !profile->is_active || start_s < profile->start_s) return;
    if (profile->num_spans == profile->capacity) {
        profile->capacity = 2 * profile->capacity + 64;
        profile->spans = ct_realloc(profile->spans, profile->capacity * sizeof(*profile->spans));
    }
    profile->spans[profile->num_spans++] = (span){name, track, step, start_s, ct_clock_seconds()};
}

static void put_track(ct_json_writer *writer, ct_profile_track track, const char *name)
{
    ct_json_begin_object(writer, NULL);
    ct_json_put_string(writer, "name", "thread_name");
    ct_json_put_string(writer, "ph", "M");
    ct_json_put_int(writer, "pid", 0);
    ct_json_put_int(writer, "tid", track);
    ct_json_begin_object(writer, "args");
    ct_json_put_string(writer, "name", name);
    ct_json_end(writer);
    ct_json_end(writer);
}

/* Chrome's trace events: complete ones ("X"), in microseconds since the trace began. */
static char *trace_text(const ct_profile *profile)
{
    ct_json_writer *writer = ct_json_writer_new();
    ct_json_begin_object(writer, NULL);
    ct_json_put_string(writer, "displayTimeUnit", "ms");
    ct_json_begin_array(writer, "traceEvents");
    put_track(writer, CT_PROFILE_HOST, "host");
    put_track(writer, CT_PROFILE_STEPS, "steps, launch to readback");
    for (size_t i = 0; i < profile->num_spans; i++) {
        const span *s = &profile->spans[i];
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "name", s->name);
        ct_json_put_string(writer, "ph", "X");
        ct_json_put_double(writer, "ts", 1e6 * (s->start_s - profile->start_s));
        ct_json_put_double(writer, "dur", 1e6 * (s->end_s - s->start_s));
        ct_json_put_int(writer, "pid", 0);
        ct_json_put_int(writer, "tid", s->track);
        ct_json_begin_object(writer, "args");
        ct_json_put_int(writer, "step", s->step);
        ct_json_end(writer);
        ct_json_end(writer);
    }
    ct_json_end(writer);
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, false);
    ct_json_writer_free(writer);
    return text;
}

static ct_status *write_in(const char *folder, const char *name, const char *bytes, size_t length)
{
    CT_TRY(ct_dir_make(folder));
    char *path = ct_path_join(folder, name);
    ct_status *status = ct_file_write(path, bytes, length);
    free(path);
    return status;
}

static ct_status *write_host_trace(const ct_profile *profile, int64_t step)
{
    char *text = trace_text(profile), *folder = ct_asprintf("%s/iteration_%lld", profile->folder, (long long)step);
    ct_status *status = write_in(folder, "rank0_trace.json", text, strlen(text));
    if (!status) ct_info("Trace of step %lld: %s/rank0_trace.json", (long long)step, folder);
    free(folder);
    free(text);
    return status;
}

static ct_status *write_device_trace(const ct_profile *profile, int64_t step, const ct_str *trace)
{
    char host[256] = "host";
    gethostname(host, sizeof(host) - 1);
    char *name = ct_asprintf("%s.xplane.pb", host),
         *folder = ct_asprintf("%s/plugins/profile/iteration_%lld", profile->folder, (long long)step);
    ct_status *status = write_in(folder, name, trace->data, trace->length);
    free(folder);
    free(name);
    return status;
}

ct_status *ct_profile_end(ct_profile *profile, int64_t step)
{
    profile->is_active = false;
    ct_str trace;
    ct_str_init(&trace);
    ct_status *status = NULL;
    if (profile->profiler) {
        status = ct_profiler_stop(profile->profiler, &trace);
        profile->profiler = NULL;
        if (!status) status = write_device_trace(profile, step, &trace);
    }
    ct_str_deinit(&trace);
    return ct_status_first(status, write_host_trace(profile, step));
}
