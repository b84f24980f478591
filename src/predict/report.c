/* A prediction as text and as JSON. */
#include <stdio.h>
#include <string.h>

#include "predict/internal.h"

const char *ct_predict_group_name(ct_predict_group group)
{
    static const char *const names[] = {"matrix products",         "element-wise",        "layout changes", "kernels",
                                        "waiting for collectives", "waiting for the host"};
    return names[group];
}

const char *ct_predict_group_key(ct_predict_group group)
{
    static const char *const keys[] = {"matmul",  "elementwise",         "layout",
                                       "kernels", "collectives_exposed", "host_exposed"};
    return keys[group];
}

/* ---- text ---- */

static void put_ms(const ct_predict_seconds *seconds, double step, ct_str *out)
{
    for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) ct_str_printf(out, " %10.3f", 1e3 * seconds->at[e]);
    if (step > 0) ct_str_printf(out, "  %5.1f%%", 100 * seconds->at[CT_CHIP_MID] / step);
}

static void put_count(double value, const char *unit, ct_str *out)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t prefix = 0;
    while (value >= 999.5 && prefix + 1 < CT_COUNT(prefixes)) value /= 1000, prefix++;
    char text[48];
    snprintf(text, sizeof(text), value < 99.5 && prefix ? "%.1f %s%s" : "%.0f %s%s", value, prefixes[prefix], unit);
    ct_str_printf(out, "%10s", text);
}

static void print_head(const ct_prediction *p, ct_str *out)
{
    const double *efficiency = p->chip->attention_efficiency, *step = p->step.at;
    ct_str_printf(out, "Predicted for %s %s, %lld devices; attention kernels at %.2f, %.2f and %.2f of the peak\n",
                  p->chip->name, p->topology, (long long)p->num_devices, efficiency[CT_CHIP_LOW],
                  efficiency[CT_CHIP_MID], efficiency[CT_CHIP_HIGH]);
    ct_str_printf(out, "  %-26s %10s %10s %10s\n  %-26s", "ms of a step", "low", "mid", "high", "all");
    put_ms(&p->step, 0, out);
    ct_str_append_char(out, '\n');
    for (int g = 0; g < CT_PREDICT_NUM_GROUPS; g++) {
        ct_str_printf(out, "    %-24s", ct_predict_group_name((ct_predict_group)g));
        put_ms(&p->groups[g], step[CT_CHIP_MID], out);
        ct_str_append_char(out, '\n');
    }
    if (p->tokens > 0) {
        ct_str_printf(out, "  %-26s", "tokens/s/chip");
        for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) ct_str_printf(out, " %10.0f", p->tokens_per_s_chip[e]);
        ct_str_append_char(out, '\n');
    }
    if (p->model_flops > 0) {
        ct_str_printf(out, "  %-26s", "MFU");
        for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) ct_str_printf(out, " %9.1f%%", 100 * p->mfu[e]);
        ct_str_append(out, "  of");
        put_count(p->model_flops, "FLOPs", out);
        ct_str_append_char(out, '\n');
    }
}

static void print_kernels(const ct_prediction *p, ct_str *out)
{
    if (p->num_kernels) ct_str_append(out, "Kernels\n");
    for (size_t i = 0; i < p->num_kernels; i++) {
        const ct_predict_kernel *kernel = &p->kernels[i];
        ct_str_printf(out, "  %-26s", kernel->name);
        put_ms(&kernel->seconds, p->step.at[CT_CHIP_MID], out);
        ct_str_printf(out, "  x %-5.0f", kernel->times);
        if (kernel->has_flops) put_count(kernel->flops, "FLOPs", out);
        put_count(kernel->bytes, "B", out);
        ct_str_append(out, !kernel->has_flops     ? "  FLOPs not known: bytes alone\n"
                           : kernel->is_attention ? "  attention\n"
                                                  : "  as the compiler's matrix products\n");
    }
}

/* Of one kind, what one device sends in a step, in all. */
static void print_kinds(const ct_prediction *p, ct_str *out)
{
    ct_str_append(out, "Sent by one device in a step, as compiled\n");
    double total = 0, busy[CT_HLO_COLLECTIVE_NUM_KINDS] = {0}, exposed[CT_HLO_COLLECTIVE_NUM_KINDS] = {0};
    for (size_t i = 0; i < p->num_collectives; i++) {
        busy[p->collectives[i].kind] += p->collectives[i].busy.at[CT_CHIP_MID];
        exposed[p->collectives[i].kind] += p->collectives[i].exposed.at[CT_CHIP_MID];
    }
    for (int k = 0; k < CT_HLO_COLLECTIVE_NUM_KINDS; k++) {
        total += p->wire_bytes[k];
        if (p->wire_bytes[k] > 0)
            ct_str_printf(out, "  %-26s %16.0f bytes %10.3f ms of the links, %.3f exposed\n",
                          ct_hlo_collective_kind_name((ct_hlo_collective_kind)k), p->wire_bytes[k], 1e3 * busy[k],
                          1e3 * exposed[k]);
    }
    ct_str_printf(out, "  %-26s %16.0f bytes %10.3f ms of the links, %.3f exposed\n", "all", total,
                  1e3 * p->links_busy.at[CT_CHIP_MID], 1e3 * p->links_exposed.at[CT_CHIP_MID]);
}

/* Those that differ in nothing but when they run. */
static bool is_alike(const ct_predict_collective *a, const ct_predict_collective *b)
{
    return a->kind == b->kind && a->is_async == b->is_async && a->wire_bytes == b->wire_bytes && a->waste == b->waste &&
           !strcmp(a->dtype, b->dtype) && !strcmp(a->axes, b->axes) && !strcmp(a->op_name, b->op_name);
}

static void print_collectives(const ct_prediction *p, ct_str *out)
{
    ct_str_append(out, "Collectives: bytes sent, ms of the links and, of them, exposed (mid)\n");
    for (size_t i = 0; i < p->num_collectives; i++) {
        ct_predict_collective item = p->collectives[i];
        bool is_first = item.times > 0;
        for (size_t j = 0; j < i && is_first; j++) is_first = !is_alike(&item, &p->collectives[j]);
        if (!is_first) continue;
        for (size_t j = i + 1; j < p->num_collectives; j++) {
            const ct_predict_collective *other = &p->collectives[j];
            if (!is_alike(&item, other)) continue;
            item.times += other->times;
            item.busy.at[CT_CHIP_MID] += other->busy.at[CT_CHIP_MID];
            item.exposed.at[CT_CHIP_MID] += other->exposed.at[CT_CHIP_MID];
        }
        ct_str_printf(out, "  %-14s %-5s", ct_hlo_collective_kind_name(item.kind), item.dtype);
        put_count(item.wire_bytes, "B", out);
        ct_str_printf(out, " x %-5.0f %9.3f %9.3f  %-5s %s  %s%s%s%s\n", item.times, 1e3 * item.busy.at[CT_CHIP_MID],
                      1e3 * item.exposed.at[CT_CHIP_MID], item.is_async ? "async" : "sync", item.axes,
                      item.op_name[0] ? item.op_name : item.name, item.waste ? " (wasted: " : "",
                      item.waste ? item.waste : "", item.waste ? " would do)" : "");
    }
}

static void print_items(const ct_prediction *p, size_t num_items, ct_str *out)
{
    if (num_items && p->num_items) ct_str_append(out, "Longest, ms of the step\n");
    for (size_t i = 0; i < p->num_items && i < num_items; i++) {
        const ct_predict_item *item = &p->items[i];
        if (item->waited.at[CT_CHIP_MID] <= 0) break;
        ct_str_printf(out, "  %10.3f  %5.1f%%  x %-5.0f", 1e3 * item->waited.at[CT_CHIP_MID],
                      100 * item->waited.at[CT_CHIP_MID] / p->step.at[CT_CHIP_MID], item->times);
        put_count(item->bytes, "B", out);
        ct_str_printf(out, "  %-22s %s  %s\n", ct_predict_group_name(item->group), item->name, item->op_name);
    }
}

void ct_prediction_print(const ct_prediction *p, size_t num_items, ct_str *out)
{
    print_head(p, out);
    print_kernels(p, out);
    if (p->num_collectives) print_kinds(p, out);
    if (p->num_collectives && num_items) print_collectives(p, out);
    if (p->host_bytes > 0) {
        ct_str_append(out, "To and from the host:");
        put_count(p->host_bytes, "B", out);
        ct_str_printf(out, ", %.3f ms, %.3f exposed\n", 1e3 * p->host_busy.at[CT_CHIP_MID],
                      1e3 * p->host_exposed.at[CT_CHIP_MID]);
    }
    print_items(p, num_items, out);
    if (p->num_unknowns) ct_str_append(out, "Without a price, counted as no time\n");
    for (size_t i = 0; i < p->num_unknowns; i++) {
        ct_str_printf(out, "  %6.0f", p->unknowns[i].count);
        put_count(p->unknowns[i].bytes, "B", out);
        ct_str_printf(out, "  %s, as %s\n", p->unknowns[i].what, p->unknowns[i].example);
    }
    for (size_t i = 0; i < p->num_notes; i++) ct_str_printf(out, "Note: %s\n", p->notes[i]);
}

/* ---- JSON ---- */

static void put_seconds(ct_json_writer *writer, const char *key, const double *at)
{
    static const char *const names[] = {"low", "mid", "high"};
    ct_json_begin_object(writer, key);
    for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) ct_json_put_double(writer, names[e], at[e]);
    ct_json_end(writer);
}

static void put_kernels(const ct_prediction *p, ct_json_writer *writer)
{
    ct_json_begin_array(writer, "kernels");
    for (size_t i = 0; i < p->num_kernels; i++) {
        const ct_predict_kernel *kernel = &p->kernels[i];
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "name", kernel->name);
        ct_json_put_string(writer, "class", kernel->is_attention ? "attention" : "matmul");
        ct_json_put_double(writer, "times", kernel->times);
        if (kernel->has_flops)
            ct_json_put_double(writer, "flops", kernel->flops);
        else
            ct_json_put_null(writer, "flops");
        ct_json_put_double(writer, "bytes", kernel->bytes);
        put_seconds(writer, "seconds", kernel->seconds.at);
        ct_json_end(writer);
    }
    ct_json_end(writer);
}

static void put_collectives(const ct_prediction *p, ct_json_writer *writer)
{
    ct_json_begin_array(writer, "collectives");
    for (size_t i = 0; i < p->num_collectives; i++) {
        const ct_predict_collective *item = &p->collectives[i];
        if (item->times <= 0) continue;
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "kind", ct_hlo_collective_kind_name(item->kind));
        ct_json_put_string(writer, "name", item->name);
        ct_json_put_string(writer, "op_name", item->op_name);
        ct_json_put_string(writer, "axes", item->axes);
        ct_json_put_string(writer, "dtype", item->dtype);
        ct_json_put_bool(writer, "async", item->is_async);
        if (item->waste) ct_json_put_string(writer, "would_do", item->waste);
        ct_json_put_double(writer, "times", item->times);
        ct_json_put_double(writer, "payload_bytes", item->payload_bytes);
        ct_json_put_double(writer, "wire_bytes", item->wire_bytes);
        put_seconds(writer, "seconds", item->busy.at);
        put_seconds(writer, "exposed_seconds", item->exposed.at);
        ct_json_end(writer);
    }
    ct_json_end(writer);
    ct_json_begin_object(writer, "wire_bytes");
    for (int k = 0; k < CT_HLO_COLLECTIVE_NUM_KINDS; k++)
        ct_json_put_double(writer, ct_hlo_collective_kind_name((ct_hlo_collective_kind)k), p->wire_bytes[k]);
    ct_json_end(writer);
}

static void put_items(const ct_prediction *p, size_t num_items, ct_json_writer *writer)
{
    ct_json_begin_array(writer, "longest");
    for (size_t i = 0; i < p->num_items && i < num_items; i++) {
        const ct_predict_item *item = &p->items[i];
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "name", item->name);
        ct_json_put_string(writer, "op_name", item->op_name);
        ct_json_put_string(writer, "opcode", item->opcode);
        ct_json_put_string(writer, "group", ct_predict_group_key(item->group));
        ct_json_put_double(writer, "times", item->times);
        ct_json_put_double(writer, "bytes", item->bytes);
        put_seconds(writer, "seconds", item->busy.at);
        put_seconds(writer, "step_seconds", item->waited.at);
        ct_json_end(writer);
    }
    ct_json_end(writer);
}

void ct_prediction_json(const ct_prediction *p, size_t num_items, ct_json_writer *writer)
{
    ct_json_put_string(writer, "program", p->program);
    ct_json_put_string(writer, "chip", p->chip->name);
    ct_json_put_string(writer, "topology", p->topology);
    ct_json_put_int(writer, "num_devices", p->num_devices);
    put_seconds(writer, "attention_efficiency", p->chip->attention_efficiency);
    put_seconds(writer, "step_seconds", p->step.at);
    ct_json_begin_object(writer, "groups");
    for (int g = 0; g < CT_PREDICT_NUM_GROUPS; g++)
        put_seconds(writer, ct_predict_group_key((ct_predict_group)g), p->groups[g].at);
    ct_json_end(writer);
    ct_json_put_double(writer, "estimate_seconds", p->estimate_seconds);
    if (p->tokens > 0) {
        ct_json_put_double(writer, "tokens", p->tokens);
        put_seconds(writer, "tokens_per_s_chip", p->tokens_per_s_chip);
    }
    if (p->model_flops > 0) {
        ct_json_put_double(writer, "model_flops", p->model_flops);
        put_seconds(writer, "mfu", p->mfu);
    }
    put_kernels(p, writer);
    put_collectives(p, writer);
    ct_json_put_double(writer, "host_bytes", p->host_bytes);
    put_seconds(writer, "host_seconds", p->host_busy.at);
    put_items(p, num_items, writer);
    ct_json_begin_array(writer, "without_price");
    for (size_t i = 0; i < p->num_unknowns; i++) {
        ct_json_begin_object(writer, NULL);
        ct_json_put_string(writer, "what", p->unknowns[i].what);
        ct_json_put_string(writer, "example", p->unknowns[i].example);
        ct_json_put_double(writer, "count", p->unknowns[i].count);
        ct_json_put_double(writer, "bytes", p->unknowns[i].bytes);
        ct_json_end(writer);
    }
    ct_json_end(writer);
    ct_json_begin_array(writer, "notes");
    for (size_t i = 0; i < p->num_notes; i++) ct_json_put_string(writer, NULL, p->notes[i]);
    ct_json_end(writer);
}
