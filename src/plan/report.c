/* Plans as text and as JSON. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

#define GIB (double)(1 << 30)

static const struct {
    const char *label, *key;
    size_t offset;
} rows[] = {
#define ROW(label, field)                                                                                              \
    {                                                                                                                  \
        label, #field, offsetof(ct_executable_memory, field)                                                           \
    }
    ROW("arguments", argument_bytes),          ROW("outputs", output_bytes),
    ROW("  in arguments' place", alias_bytes), ROW("temporaries", temp_bytes),
    ROW("generated code", code_bytes),         ROW("host arguments", host_argument_bytes),
    ROW("host outputs", host_output_bytes),    ROW("  in arguments' place", host_alias_bytes),
    ROW("host temporaries", host_temp_bytes),  ROW("peak, as the compiler says", peak_bytes),
#undef ROW
};

static int64_t memory_of(const ct_plan *plan, size_t row)
{
    return *(const int64_t *)(const void *)((const char *)&plan->compiled->memory + rows[row].offset);
}

static size_t num_lines(const ct_plan_opts *opts)
{
    return opts && opts->num_lines ? (size_t)opts->num_lines : 10;
}

static void print_head(const ct_plan *plan, ct_str *out)
{
    ct_str_printf(out, "Plan of %s", plan->name);
    if (plan->model) ct_str_printf(out, ": %s, %lld parameters", plan->model, (long long)plan->num_params);
    if (plan->compiled)
        ct_str_printf(out, ", on %s%s%lld %s of the kind %s", plan->compiled->topology ? plan->compiled->topology : "",
                      plan->compiled->topology ? ", " : "", (long long)plan->compiled->num_devices,
                      plan->compiled->num_devices == 1 ? "device" : "devices", plan->compiled->kind);
    ct_str_append_char(out, '\n');
    if (plan->kernels) ct_str_printf(out, "Kernels: %s\n", plan->kernels);
}

static void print_verdict(const ct_plan *plan, ct_str *out)
{
    double used = (double)plan->used_bytes / GIB, usable = (double)plan->usable_bytes / GIB;
    if (!plan->compiled) return;
    switch (plan->verdict) {
    case CT_PLAN_FITS:
        ct_str_printf(out, "It fits: %.2f of the %.2f GiB that a device has for programs (%.0f%%), %.2f GiB are left\n",
                      used, usable, 100 * used / usable, usable - used);
        return;
    case CT_PLAN_TOO_LARGE:
        if (plan->used_bytes)
            ct_str_printf(out,
                          "It does not fit: a device needs %s%.2f GiB and has %.2f GiB for programs, %.2f too few\n",
                          plan->compiled->refusal ? "about " : "", used, usable, used - usable);
        else
            ct_str_append(out, "It does not fit\n");
        if (plan->compiled->refusal) ct_str_printf(out, "The compiler refused it: %s\n", plan->compiled->refusal);
        return;
    case CT_PLAN_KERNEL_TOO_LARGE:
        ct_str_append(out, "It does not compile: a kernel needs more of a core's vector memory than it may take");
        if (plan->used_bytes) ct_str_printf(out, ", %.2f MiB and not %.2f", used * 1024, usable * 1024);
        ct_str_printf(out, "\nThe compiler refused it: %s\n", plan->compiled->refusal);
        return;
    case CT_PLAN_UNKNOWN:
        ct_str_printf(out, "It takes %.2f GiB of a device; how much \"%s\" has is not known\n", used,
                      plan->compiled->kind);
        return;
    }
}

static void print_memory(const ct_plan *plan, size_t lines, ct_str *out)
{
    if (plan->compiled && !plan->compiled->refusal) {
        ct_str_append(out, "Memory of one device\n");
        for (size_t i = 0; i < CT_COUNT(rows); i++)
            ct_str_printf(out, "  %-26s %16lld bytes (%.3f GiB)\n", rows[i].label, (long long)memory_of(plan, i),
                          (double)memory_of(plan, i) / GIB);
    }
    if (plan->num_arrays) ct_str_append(out, "Largest arrays at the fullest point of the schedule\n");
    for (size_t i = 0; i < plan->num_arrays && i < lines; i++) {
        const ct_plan_array *array = &plan->arrays[i];
        ct_str_printf(out, "  %9.3f GiB  %-9s %s", (double)array->bytes / GIB,
                      array->is_argument ? "argument" : "temporary", array->shape);
        if (array->count > 1) ct_str_printf(out, " x %d", array->count);
        ct_str_printf(out, "  %s\n", array->name);
    }
}

static void print_changes(const ct_plan *plan, ct_str *out)
{
    if (!plan->changes) return;
    const ct_plan_change *nearest = NULL;
    for (size_t i = 0; i < plan->num_changes; i++) {
        const ct_plan_change *change = &plan->changes[i];
        bool is_better = change->fits && (!nearest || (change->is_compiled && !nearest->is_compiled));
        if (is_better) nearest = change;
    }
    if (nearest)
        ct_str_printf(out, "The nearest change that fits%s: %s (%s)\n",
                      nearest->is_compiled ? ", compiled" : " by estimate, not compiled", nearest->text,
                      nearest->override);
    else
        ct_str_append(out, "No change was found that fits: use more chips\n");
    ct_str_append(out, "Changes that were looked at\n");
    for (size_t i = 0; i < plan->num_changes; i++) {
        const ct_plan_change *change = &plan->changes[i];
        if (change->bytes)
            ct_str_printf(out, "  %9.2f GiB", (double)change->bytes / GIB);
        else
            ct_str_printf(out, "  %9s    ", "-");
        ct_str_printf(out, "  %-9s  %-8s  %s\n", change->is_compiled ? "compiled" : "estimated",
                      change->fits ? "fits" : "too much", change->text);
    }
}

static void print_traffic(const ct_plan *plan, ct_str *out)
{
    if (!plan->traffic) return;
    int64_t wire_bytes[CT_HLO_COLLECTIVE_NUM_KINDS], sizes[CT_MAX_MESH_AXES] = {0}, total = 0;
    ct_hlo_traffic_sum(plan->traffic, wire_bytes);
    ct_str_append(out, "Sent by one device in a step, as compiled\n");
    for (int k = 0; k < CT_HLO_COLLECTIVE_NUM_KINDS; k++) {
        total += wire_bytes[k];
        if (wire_bytes[k])
            ct_str_printf(out, "  %-26s %16lld bytes\n", ct_hlo_collective_kind_name((ct_hlo_collective_kind)k),
                          (long long)wire_bytes[k]);
    }
    ct_str_printf(out, "  %-26s %16lld bytes\n", "all", (long long)total);
    if (plan->traffic->num_unknown_loops)
        ct_str_printf(out, "  the turns of %zu loops are not known: they are counted once\n",
                      plan->traffic->num_unknown_loops);
    for (int a = 0; a < plan->mesh.num_axes; a++) sizes[a] = plan->mesh.axes[a].size;
    ct_hlo_traffic_print(plan->traffic, plan->mesh.num_axes, sizes, out);
}

static void print_compiled(const ct_plan *plan, ct_str *out)
{
    const ct_plan_entry *entry = plan->compiled;
    if (!entry) return;
    ct_str_append(out, "Flags:");
    for (size_t i = 0; i < entry->num_flags; i++) ct_str_printf(out, " %s", entry->flags[i]);
    ct_str_printf(out, "%s%s%s\n", entry->num_flags ? "" : " none", entry->init_args[0] ? "; LIBTPU_INIT_ARGS " : "",
                  entry->init_args);
    ct_str_printf(out, "Compiled in %.1f s (%.1f s of processors, %.2f GiB of host memory)%s; entry %s\n",
                  entry->compile_seconds, entry->cpu_seconds, (double)entry->host_peak_bytes / GIB,
                  entry->was_there ? ", at an earlier time" : "", entry->key);
}

void ct_plan_print(const ct_plan *plan, const ct_plan_opts *opts, ct_str *out)
{
    print_head(plan, out);
    print_verdict(plan, out);
    print_changes(plan, out);
    print_memory(plan, num_lines(opts), out);
    if (plan->prediction)
        ct_prediction_print(plan->prediction, num_lines(opts), out);
    else
        ct_str_printf(out, "No prediction: %s\n", plan->why_no_prediction);
    print_traffic(plan, out);
    print_compiled(plan, out);
    for (size_t i = 0; i < plan->num_notes; i++) ct_str_printf(out, "Note: %s\n", plan->notes[i]);
}

/* ---- JSON ---- */

static const char *verdict_name(ct_plan_verdict verdict)
{
    static const char *const names[] = {[CT_PLAN_FITS] = "fits",
                                        [CT_PLAN_TOO_LARGE] = "too large",
                                        [CT_PLAN_KERNEL_TOO_LARGE] = "kernel too large",
                                        [CT_PLAN_UNKNOWN] = "unknown"};
    return names[verdict];
}

static void put_compiled(const ct_plan *plan, ct_json_writer *json)
{
    const ct_plan_entry *entry = plan->compiled;
    if (entry->topology) ct_json_put_string(json, "topology", entry->topology);
    ct_json_put_string(json, "device_kind", entry->kind);
    ct_json_put_int(json, "num_devices", entry->num_devices);
    ct_json_put_int(json, "num_slices", entry->num_slices);
    ct_json_put_string(json, "compiler", entry->compiler);
    ct_json_put_string(json, "entry", entry->key);
    ct_json_put_bool(json, "was_there", entry->was_there);
    ct_json_put_double(json, "compile_seconds", entry->compile_seconds);
    ct_json_put_double(json, "compile_cpu_seconds", entry->cpu_seconds);
    ct_json_put_int(json, "compile_host_bytes", entry->host_peak_bytes);
    ct_json_put_int(json, "stablehlo_bytes", entry->program_bytes);
    ct_json_begin_array(json, "flags");
    for (size_t i = 0; i < entry->num_flags; i++) ct_json_put_string(json, NULL, entry->flags[i]);
    ct_json_end(json);
    ct_json_put_string(json, "libtpu_init_args", entry->init_args);
    if (entry->refusal) {
        ct_json_put_string(json, "refusal", entry->refusal);
        return;
    }
    ct_json_begin_object(json, "memory");
    for (size_t i = 0; i < CT_COUNT(rows); i++) ct_json_put_int(json, rows[i].key, memory_of(plan, i));
    ct_json_end(json);
}

static void put_arrays(const ct_plan *plan, size_t lines, ct_json_writer *json)
{
    ct_json_begin_array(json, "largest_arrays");
    for (size_t i = 0; i < plan->num_arrays && i < lines; i++) {
        const ct_plan_array *array = &plan->arrays[i];
        ct_json_begin_object(json, NULL);
        ct_json_put_string(json, "name", array->name);
        ct_json_put_string(json, "shape", array->shape);
        ct_json_put_int(json, "bytes", array->bytes);
        ct_json_put_int(json, "count", array->count);
        ct_json_put_bool(json, "is_argument", array->is_argument);
        ct_json_end(json);
    }
    ct_json_end(json);
}

static void put_changes(const ct_plan *plan, ct_json_writer *json)
{
    ct_json_begin_array(json, "changes");
    for (size_t i = 0; i < plan->num_changes; i++) {
        const ct_plan_change *change = &plan->changes[i];
        ct_json_begin_object(json, NULL);
        ct_json_put_string(json, "text", change->text);
        ct_json_put_string(json, "override", change->override);
        ct_json_put_int(json, "bytes", change->bytes);
        ct_json_put_bool(json, "is_compiled", change->is_compiled);
        ct_json_put_bool(json, "fits", change->fits);
        ct_json_end(json);
    }
    ct_json_end(json);
}

void ct_plan_json(const ct_plan *plan, const ct_plan_opts *opts, const char *key, ct_json_writer *json)
{
    ct_json_begin_object(json, key);
    ct_json_put_string(json, "name", plan->name);
    if (plan->model) {
        ct_json_put_string(json, "model", plan->model);
        ct_json_put_string(json, "kernels", plan->kernels);
        ct_json_put_int(json, "num_params", plan->num_params);
        ct_json_put_double(json, "flops_per_token", plan->flops_per_token);
        ct_json_put_double(json, "tokens_per_step", plan->tokens);
        ct_json_put_double(json, "model_flops_per_step", plan->model_flops);
        ct_json_put_double(json, "state_bytes", plan->state_bytes);
        ct_json_put_string(json, "verdict", verdict_name(plan->verdict));
        ct_json_put_int(json, "used_bytes", plan->used_bytes);
    }
    if (plan->usable_bytes) ct_json_put_int(json, "usable_bytes", plan->usable_bytes);
    if (plan->compiled) put_compiled(plan, json);
    put_arrays(plan, num_lines(opts), json);
    if (plan->changes) put_changes(plan, json);
    if (plan->prediction) {
        ct_json_begin_object(json, "prediction");
        ct_prediction_json(plan->prediction, num_lines(opts), json);
        ct_json_end(json);
    } else {
        ct_json_put_string(json, "why_no_prediction", plan->why_no_prediction);
    }
    if (plan->traffic) {
        int64_t wire_bytes[CT_HLO_COLLECTIVE_NUM_KINDS];
        ct_hlo_traffic_sum(plan->traffic, wire_bytes);
        ct_json_begin_object(json, "wire_bytes");
        for (int k = 0; k < CT_HLO_COLLECTIVE_NUM_KINDS; k++)
            ct_json_put_int(json, ct_hlo_collective_kind_name((ct_hlo_collective_kind)k), wire_bytes[k]);
        ct_json_end(json);
    }
    ct_json_begin_array(json, "notes");
    for (size_t i = 0; i < plan->num_notes; i++) ct_json_put_string(json, NULL, plan->notes[i]);
    ct_json_end(json);
    ct_json_end(json);
}
