/* A prediction: prices all instructions, simulates at each efficiency, and collects what came out. */
#include "predict/predict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict/internal.h"

void *ct__grow(ct_arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity) return array;
    *capacity = CT_MAX(2 * *capacity, (size_t)16);
    void *grown = ct_arena_alloc(arena, *capacity * element_bytes);
    if (count) memcpy(grown, array, count * element_bytes);
    return grown;
}

void ct__note(ct__sim *sim, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    ct_prediction *result = sim->result;
    for (size_t i = 0; i < result->num_notes; i++)
        if (!strcmp(result->notes[i], text)) return;
    result->notes = ct__grow(sim->arena, result->notes, result->num_notes, &sim->note_capacity, sizeof(*result->notes));
    result->notes[result->num_notes++] = ct_arena_strdup(sim->arena, text);
}

void ct__unknown(ct__sim *sim, const char *what, const char *example, double times, double bytes)
{
    ct_prediction *result = sim->result;
    size_t i = 0;
    while (i < result->num_unknowns && strcmp(result->unknowns[i].what, what) != 0) i++;
    if (i == result->num_unknowns) {
        result->unknowns = ct__grow(sim->arena, result->unknowns, result->num_unknowns, &sim->unknown_capacity,
                                    sizeof(*result->unknowns));
        result->unknowns[result->num_unknowns++] = (ct_predict_unknown){.what = what, .example = example};
    }
    result->unknowns[i].count += times;
    result->unknowns[i].bytes += times * bytes;
}

/* ---- before ---- */

static int64_t count_devices(const ct_hlo_module *module)
{
    int64_t most = 0;
    for (size_t c = 0; c < module->num_computations; c++)
        for (size_t i = 0; i < module->computations[c].num_instructions; i++) {
            const ct_hlo_instruction *at = &module->computations[c].instructions[i];
            for (size_t g = 0; g < at->num_groups * at->group_size; g++) most = CT_MAX(most, at->groups[g]);
        }
    return most + 1;
}

static ct_status *set_torus(ct__sim *sim)
{
    const ct_predict_opts *opts = sim->opts;
    int64_t num_slices = CT_MAX(opts->num_slices, 1);
    sim->num_devices = opts->num_devices;
    if (!sim->num_devices && opts->torus) {
        sim->num_devices = num_slices;
        for (int t = 0; t < opts->torus->num_axes; t++) sim->num_devices *= opts->torus->sizes[t];
    }
    if (!sim->num_devices) sim->num_devices = count_devices(sim->module);
    if (sim->num_devices % num_slices)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "%lld devices are not %lld equal slices", (long long)sim->num_devices,
                        (long long)num_slices);
    sim->slice_devices = sim->num_devices / num_slices;
    if (opts->torus) {
        sim->torus = *opts->torus;
        int64_t total = 1;
        for (int t = 0; t < sim->torus.num_axes; t++) total *= sim->torus.sizes[t];
        if (total != sim->slice_devices)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "the program has %lld devices a slice, the topology %lld",
                            (long long)sim->slice_devices, (long long)total);
    } else {
        /* A program without collectives has as many devices as a chip may have. */
        int64_t devices = CT_MAX(sim->slice_devices, 1);
        if (devices == 1 && sim->chip->devices_per_chip > 1)
            sim->torus = (ct_torus){.num_axes = 1, .sizes = {1}, .names = {'c'}};
        else
            CT_TRY(ct_predict_torus(sim->chip, NULL, devices, &sim->torus));
        if (devices > 1) ct__note(sim, "the topology was not given: taken as the most compact one");
    }
    ct_mesh *mesh = &sim->torus_mesh;
    *mesh = (ct_mesh){.num_axes = sim->torus.num_axes, .num_torus = sim->torus.num_axes, .num_devices = 1};
    ct_str text;
    ct_str_init(&text);
    for (int t = 0; t < sim->torus.num_axes; t++) {
        mesh->torus[t] = sim->torus.sizes[t];
        mesh->num_devices *= sim->torus.sizes[t];
        mesh->axes[t] = (ct_mesh_axis){.size = sim->torus.sizes[t], .torus_axis = t};
        mesh->axes[t].name[0] = sim->torus.names[t];
        ct_str_printf(&text, "%s%c%lld%s", t ? " " : "", sim->torus.names[t], (long long)sim->torus.sizes[t],
                      sim->torus.wraps[t] ? "*" : "");
    }
    if (num_slices > 1) ct_str_printf(&text, " in %lld slices", (long long)num_slices);
    sim->result->topology = ct_arena_strdup(sim->arena, text.data);
    ct_str_deinit(&text);
    return NULL;
}

static ct__priced *priced_at(const ct_hlo_computation *computation, ct__priced *priced, const ct_hlo_instruction *at)
{
    size_t index = (size_t)(at - computation->instructions);
    return at >= computation->instructions && index < computation->num_instructions ? &priced[index] : NULL;
}

/* The last of the fusions that move a collective on waits for it; of those before it only the first is of interest. */
static void join_steps(const ct_hlo_computation *computation, ct__priced *priced, size_t index)
{
    ct__priced *step = &priced[index];
    for (size_t i = 0; i < step->at->num_operands; i++) {
        const ct_hlo_instruction *from = step->at->operands[i];
        if (!strcmp(from->opcode, "get-tuple-element") && from->num_operands) from = from->operands[0];
        ct__priced *before = priced_at(computation, priced, from);
        if (!before || (before->role != CT__START && !before->continues)) continue;
        step->start = before->role == CT__START ? before : before->start;
        step->role = CT__DONE;
        if (before->continues) {
            before->role = CT__COMPUTE;
            before->start = NULL;
        }
        return;
    }
}

/* Only what can run is priced: bodies of fusions and reductions are not walked. */
static void price_computation(ct__sim *sim, const ct_hlo_computation *computation)
{
    size_t index = (size_t)(computation - sim->module->computations);
    if (sim->priced[index]) return;
    ct__priced *priced = CT_ARENA_ARRAY(sim->arena, ct__priced, CT_MAX(computation->num_instructions, (size_t)1));
    sim->priced[index] = priced;
    for (size_t i = 0; i < computation->num_instructions; i++) {
        const ct_hlo_instruction *at = &computation->instructions[i];
        ct__price(sim, computation, at, &priced[i]);
        if (priced[i].role == CT__LOOP || priced[i].role == CT__BRANCH || priced[i].role == CT__CALL)
            for (size_t c = 0; c < at->num_calls; c++) price_computation(sim, at->calls[c]);
    }
    for (size_t i = 0; i < computation->num_instructions; i++) {
        if (priced[i].continues) join_steps(computation, priced, i);
        if (priced[i].role != CT__DONE || priced[i].continues) continue;
        ct__priced *launch = priced_at(computation, priced, ct__launch_of(&computation->instructions[i]));
        if (launch && launch->role == CT__FREE) ct__price_start(sim, computation, launch->at, launch);
        priced[i].start = launch;
    }
}

/* ---- after ---- */

static const char *why_unknown(const ct__sim *sim, const ct__priced *p)
{
    const char *opcode = p->at->opcode;
    bool scalar = p->bytes <= 64;
    switch (p->role) {
    case CT__LOOP: return p->turns < 0 ? "loops of unknown turns, taken as one" : NULL;
    case CT__START:
        if (p->seconds > 0 || p->num_collectives || p->bytes == 0) return NULL;
        return p->resources >> CT__SPARSE & 1 ? "SparseCore programs without an estimate"
                                              : "host transfers on a chip whose host link is not published";
    case CT__COMPUTE:
        if (p->kernel) return sim->result->kernels[p->kernel - 1].has_flops ? NULL : "kernels priced by bytes alone";
        if (p->compute > 0) return NULL;
        if (scalar) return "operations on scalars without an estimate";
        return !strcmp(opcode, "fusion")        ? "fusions without an estimate"
               : !strcmp(opcode, "custom-call") ? "custom calls without an estimate"
               : !strcmp(opcode, "copy")        ? "copies without an estimate"
                                                : "other operations without an estimate";
    default: return NULL;
    }
}

static void add_seconds(ct_predict_seconds *to, const ct_predict_seconds *from)
{
    for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) to->at[e] += from->at[e];
}

/* A collective's part of its instruction, which may have several. */
static void share_collectives(ct__sim *sim, const ct__priced *p)
{
    ct_prediction *result = sim->result;
    for (size_t i = 0; i < p->num_collectives; i++) {
        ct_predict_collective *item = &result->collectives[p->first_collective + i];
        double share = p->seconds > 0 ? item->busy.at[0] / p->seconds : 0;
        item->times = p->times;
        result->wire_bytes[item->kind] += p->times * item->wire_bytes;
        for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) {
            item->busy.at[e] = share * p->busy.at[e];
            item->exposed.at[e] = share * (p->waited.at[e] - p->times * p->compute);
        }
        add_seconds(&result->links_busy, &item->busy);
        add_seconds(&result->links_exposed, &item->exposed);
    }
}

static void collect(ct__sim *sim, const ct__priced *p, size_t *capacity)
{
    ct_prediction *result = sim->result;
    if (p->times <= 0) return;
    const char *unknown = why_unknown(sim, p);
    if (unknown) ct__unknown(sim, unknown, p->at->name, p->times, p->bytes);
    share_collectives(sim, p);
    if (p->role == CT__BRANCH && p->at->num_calls > 1)
        ct__note(sim, "%s: the dearest of its %zu branches is taken", p->at->name, p->at->num_calls);
    bool is_step = p->role == CT__DONE && p->continues;
    if (p->role == CT__LOOP || p->role == CT__BRANCH || p->role == CT__CALL || p->role == CT__FREE ||
        (p->role == CT__DONE && !is_step))
        return;
    if (p->kernel) {
        ct_predict_kernel *kernel = &result->kernels[p->kernel - 1];
        kernel->times += p->times;
        kernel->flops += p->times * p->flops;
        kernel->bytes += p->times * p->bytes;
        add_seconds(&kernel->seconds, &p->waited);
    } else if (p->role == CT__COMPUTE || p->num_collectives || is_step) {
        result->estimate_seconds += p->times * p->compute;
    }
    if (p->group == CT_PREDICT_HOST) {
        result->host_bytes += p->times * p->bytes;
        add_seconds(&result->host_busy, &p->busy);
        add_seconds(&result->host_exposed, &p->waited);
    }
    add_seconds(&result->groups[p->group], &p->waited);
    result->items = ct__grow(sim->arena, result->items, result->num_items, capacity, sizeof(*result->items));
    result->items[result->num_items++] = (ct_predict_item){
        .name = p->at->name,
        .op_name = p->at->op_name,
        .opcode = p->at->opcode,
        .group = p->group,
        .times = p->times,
        .bytes = p->bytes,
        .flops = p->flops,
        .busy = p->busy,
        .waited = p->waited,
    };
    if (p->num_collectives && !p->at->op_name[0])
        result->items[result->num_items - 1].op_name = result->collectives[p->first_collective].op_name;
}

static int longer_first(const void *a, const void *b)
{
    const ct_predict_item *x = a, *y = b;
    double difference = y->waited.at[CT_CHIP_MID] - x->waited.at[CT_CHIP_MID];
    if (difference == 0) return strcmp(x->name, y->name);
    return difference > 0 ? 1 : -1;
}

static void finish(ct__sim *sim)
{
    ct_prediction *result = sim->result;
    size_t capacity = 0;
    for (size_t c = 0; c < sim->module->num_computations; c++)
        for (size_t i = 0; sim->priced[c] && i < sim->module->computations[c].num_instructions; i++)
            collect(sim, &sim->priced[c][i], &capacity);
    if (result->num_items) qsort(result->items, result->num_items, sizeof(*result->items), longer_first);
    double chips = (double)result->num_devices / sim->chip->devices_per_chip;
    double peak = (double)result->num_devices * sim->chip->peak_flops[CT_CHIP_BF16];
    for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) {
        if (result->step.at[e] <= 0) continue;
        result->tokens_per_s_chip[e] = result->tokens / result->step.at[e] / chips;
        result->mfu[e] = result->model_flops / result->step.at[e] / peak;
    }
}

ct_status *ct_predict(ct_arena *arena, const ct_hlo_module *module, const ct_predict_opts *opts,
                      ct_prediction **out_prediction)
{
    *out_prediction = NULL;
    CT_ASSERT(opts && opts->chip);
    ct_prediction *result = CT_ARENA_NEW(arena, ct_prediction);
    ct__sim sim = {.arena = arena, .module = module, .opts = opts, .chip = opts->chip, .result = result};
    *result = (ct_prediction){
        .program = module->name, .chip = opts->chip, .model_flops = opts->model_flops, .tokens = opts->tokens};
    CT_TRY(set_torus(&sim));
    result->num_devices = sim.num_devices;
    if (!module->is_scheduled)
        ct__note(&sim, "the program has no schedule: its order and what overlaps are not the compiler's last word");
    sim.priced = CT_ARENA_ARRAY(arena, ct__priced *, CT_MAX(module->num_computations, (size_t)1));
    price_computation(&sim, module->entry);
    for (sim.efficiency = 0; sim.efficiency < CT_CHIP_NUM_EFFICIENCIES; sim.efficiency++)
        result->step.at[sim.efficiency] = ct__simulate(&sim);
    finish(&sim);
    *out_prediction = result;
    return NULL;
}
