/* What one instruction costs. */
#include <stdlib.h>
#include <string.h>

#include "predict/internal.h"

static bool is(const ct_hlo_instruction *at, const char *opcode)
{
    return !strcmp(at->opcode, opcode);
}

static bool is_one_of(const ct_hlo_instruction *at, const char *const *opcodes)
{
    for (; *opcodes; opcodes++)
        if (is(at, *opcodes)) return true;
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && !strcmp(text + length - end_length, end);
}

static double shape_bytes(const ct_hlo_instruction *at)
{
    char type[16];
    return (double)ct_hlo_shape_bytes(at->shape, type);
}

/* ---- bytes: of an operand that is only sliced, the slices; of a result that is updated in place, the update ---- */

static double used_bytes(const ct_hlo_computation *fused, const ct_hlo_instruction *parameter)
{
    static const char *const slicing[] = {"dynamic-slice", "slice", "gather", NULL};
    double bytes = 0;
    for (size_t i = 0; i < fused->num_instructions; i++) {
        const ct_hlo_instruction *user = &fused->instructions[i];
        for (size_t j = 0; j < user->num_operands; j++) {
            if (user->operands[j] != parameter) continue;
            bool slices = is_one_of(user, slicing) && j == 0, updates = is(user, "dynamic-update-slice") && j == 0;
            if (!slices && !updates) return shape_bytes(parameter);
            if (slices) bytes += shape_bytes(user);
        }
    }
    return CT_MIN(bytes, shape_bytes(parameter));
}

static double result_bytes(const ct_hlo_instruction *result)
{
    if (is(result, "dynamic-update-slice") && result->num_operands > 1) return shape_bytes(result->operands[1]);
    if (is(result, "bitcast") && result->num_operands) return result_bytes(result->operands[0]);
    if (!is(result, "tuple")) return shape_bytes(result);
    double bytes = 0;
    for (size_t i = 0; i < result->num_operands; i++) bytes += result_bytes(result->operands[i]);
    return bytes;
}

static double moved_bytes(const ct_hlo_instruction *at)
{
    double bytes = 0;
    if (is(at, "fusion") && at->num_calls) {
        const ct_hlo_computation *fused = at->calls[0];
        for (size_t i = 0; i < fused->num_instructions; i++)
            if (is(&fused->instructions[i], "parameter")) bytes += used_bytes(fused, &fused->instructions[i]);
        return bytes + result_bytes(fused->root);
    }
    if (is(at, "dynamic-slice") || is(at, "slice") || is(at, "gather")) return 2 * shape_bytes(at);
    if (is(at, "dynamic-update-slice") && at->num_operands > 1) return 2 * shape_bytes(at->operands[1]);
    for (size_t i = 0; i < at->num_operands; i++) bytes += shape_bytes(at->operands[i]);
    return bytes + shape_bytes(at);
}

/* ---- what a fusion is ---- */

typedef enum { ONLY_LAYOUT = 1, MOVES = 2, MULTIPLIES = 4 } contents;

static int contents_of(const ct_hlo_computation *computation, int depth)
{
    static const char *const moving[] = {"copy", "transpose", "reshape", "reverse", NULL};
    static const char *const harmless[] = {"parameter", "tuple", "get-tuple-element", "bitcast", "constant", NULL};
    int found = ONLY_LAYOUT;
    for (size_t i = 0; i < computation->num_instructions; i++) {
        const ct_hlo_instruction *at = &computation->instructions[i];
        if (is(at, "dot") || is(at, "convolution")) found |= MULTIPLIES;
        if (is_one_of(at, moving)) {
            found |= MOVES;
        } else if (is(at, "fusion") && at->num_calls && depth < 8) {
            int inner = contents_of(at->calls[0], depth + 1);
            found |= inner & (MOVES | MULTIPLIES);
            if (!(inner & ONLY_LAYOUT)) found &= ~ONLY_LAYOUT;
        } else if (!is_one_of(at, harmless)) {
            found &= ~ONLY_LAYOUT;
        }
    }
    return found;
}

static ct_predict_group group_of(const ct_hlo_instruction *at)
{
    if (is(at, "dot") || is(at, "convolution")) return CT_PREDICT_MATMUL;
    if (is(at, "copy") || is(at, "transpose") || is(at, "reshape")) return CT_PREDICT_LAYOUT;
    if (!is(at, "fusion") || !at->num_calls) return CT_PREDICT_ELEMENTWISE;
    int found = contents_of(at->calls[0], 0);
    if (found & MULTIPLIES) return CT_PREDICT_MATMUL;
    return (found & ONLY_LAYOUT) && (found & MOVES) ? CT_PREDICT_LAYOUT : CT_PREDICT_ELEMENTWISE;
}

/* ---- the compiler's estimates ---- */

static double estimate(ct__sim *sim, const ct_hlo_instruction *at)
{
    double stated, cycles = ct_hlo_estimated_cycles(at, &stated);
    if (stated < 0)
        ct__note(sim, "%s has an estimate of %.0f cycles: taken as none", at->name, stated);
    else if (stated > 0 && cycles == 0 && stated < 9e18)
        ct__note(sim, "%s has an estimate of %.3g cycles, which is absurd: taken as none", at->name, stated);
    return cycles / sim->chip->clock_hz;
}

/* The estimates of what runs beside the TensorCore. */
static double inner_estimate(ct__sim *sim, const ct_hlo_computation *computation, int depth)
{
    double seconds = 0;
    for (size_t i = 0; i < computation->num_instructions; i++) {
        const ct_hlo_instruction *at = &computation->instructions[i];
        seconds += estimate(sim, at);
        for (size_t j = 0; j < at->num_calls && !is(at, "fusion") && depth < 8; j++)
            seconds += inner_estimate(sim, at->calls[j], depth + 1);
    }
    return seconds;
}

/* ---- asynchronous operations ---- */

/* What a start wraps: async-start has it in a computation of its own, "slice-start" in its name. */
static const ct_hlo_instruction *wrapped(const ct_hlo_instruction *at)
{
    return is(at, "async-start") && at->num_calls ? at->calls[0]->root : at;
}

static bool wraps(const ct_hlo_instruction *at, const char *opcode)
{
    const ct_hlo_instruction *inner = wrapped(at);
    size_t length = strlen(opcode);
    return is(inner, opcode) || (!strncmp(inner->opcode, opcode, length) && !strcmp(inner->opcode + length, "-start"));
}

/* The instruction that began what `at` updates or waits for. */
static const ct_hlo_instruction *start_of(const ct_hlo_instruction *at)
{
    for (int i = 0; i < 8 && at->num_operands && (ends_with(at->opcode, "-update") || ends_with(at->opcode, "-done"));
         i++)
        at = at->operands[0];
    return at;
}

/* A SparseCore's program is loaded by a start without operands; it runs when an update hands it operands. */
const ct_hlo_instruction *ct__launch_of(const ct_hlo_instruction *done)
{
    const ct_hlo_instruction *start = start_of(done), *at = done;
    if (start->num_operands) return start;
    for (int i = 0; i < 8 && at != start && at->num_operands; i++) {
        if (ends_with(at->opcode, "-update") && at->num_operands > 1) return at;
        at = at->operands[0];
    }
    return start;
}

static bool is_on_host(const char *shape)
{
    return strstr(shape, "S(5)") != NULL;
}

static void price_copy(ct__sim *sim, const ct_hlo_instruction *start, ct__priced *to)
{
    const ct_hlo_instruction *inner = wrapped(start);
    size_t moved = wraps(start, "dynamic-update-slice") ? 1 : 0;
    bool from_host = start->num_operands > moved && is_on_host(start->operands[moved]->shape), to_host = false;
    if (wraps(start, "dynamic-update-slice") && start->num_operands > 1) {
        to->bytes = shape_bytes(start->operands[1]);
        to_host = is_on_host(start->operands[0]->shape);
    } else if (wraps(start, "copy") && start->num_operands) {
        to->bytes = shape_bytes(start->operands[0]);
        to_host = is_on_host(start->shape) && !from_host;
    } else if (inner != start) {
        to->bytes = shape_bytes(inner);
        to_host = is_on_host(inner->shape) && !from_host;
    } else { /* "slice-start": its shape has the operands, the result and what belongs to the compiler */
        to->bytes = shape_bytes(start) - (start->num_operands ? shape_bytes(start->operands[0]) : 0);
        to_host = is_on_host(start->shape) && !from_host;
    }
    if (from_host || to_host) {
        to->group = CT_PREDICT_HOST;
        to->resources = 1u << (from_host ? CT__HOST_IN : CT__HOST_OUT);
        if (sim->chip->host_bytes_per_s > 0) to->seconds = to->bytes / sim->chip->host_bytes_per_s;
        return;
    }
    to->group = CT_PREDICT_LAYOUT;
    to->resources = 1u << CT__MEMORY;
    to->seconds = to->bytes / sim->chip->hbm_bytes_per_s;
}

void ct__price_start(ct__sim *sim, const ct_hlo_computation *computation, const ct_hlo_instruction *at, ct__priced *to)
{
    const ct_hlo_instruction *start = start_of(at);
    to->role = CT__START;
    if (ct__price_collectives(sim, computation, start, to)) return;
    if (wraps(start, "copy") || wraps(start, "slice") || wraps(start, "dynamic-slice") ||
        wraps(start, "dynamic-update-slice")) {
        price_copy(sim, start, to);
        return;
    }
    to->bytes = shape_bytes(wrapped(start));
    if (is(start, "send") || is(start, "recv")) { /* of a transfer the host is the other end, or another slice */
        bool between = sim->num_devices > sim->slice_devices;
        to->bytes = is(start, "send") && start->num_operands ? shape_bytes(start->operands[0]) : to->bytes;
        to->group = between ? CT_PREDICT_COLLECTIVE : CT_PREDICT_HOST;
        to->resources = 1u << (between ? CT__SLICES : is(start, "send") ? CT__HOST_OUT : CT__HOST_IN);
        double rate = between ? sim->chip->dcn_bytes_per_s : sim->chip->host_bytes_per_s;
        if (rate > 0) to->seconds = to->bytes / rate;
        return;
    }
    to->group = CT_PREDICT_ELEMENTWISE;
    to->resources = 1u << CT__SPARSE;
    for (size_t i = 0; i < start->num_calls; i++) to->seconds += inner_estimate(sim, start->calls[i], 0);
}

/* On chips without SparseCores a collective may be cut into steps of several fusions, which compute beside it: the
 * first starts it, "flag_start" tells the others. */
static bool continues_collective(const ct_hlo_instruction *at)
{
    static const char key[] = "\"async_collective_fusion_config\":{\"flag_start\":\"";
    if (!is(at, "fusion") || !at->num_calls) return false;
    const ct_hlo_computation *fused = at->calls[0];
    for (size_t i = 0; i < fused->num_instructions; i++) {
        const char *found = strstr(fused->instructions[i].backend_config, key);
        if (found && found[sizeof(key) - 1] != '-') return true;
    }
    return false;
}

/* ---- kernels ---- */

static void price_kernel(ct__sim *sim, const ct_hlo_instruction *at, ct__priced *to)
{
    ct__kernel_cost cost;
    ct__kernel_cost_of(sim->arena, at, &cost);
    to->role = CT__COMPUTE;
    to->group = CT_PREDICT_KERNEL;
    to->bytes = cost.bytes;
    to->flops = cost.flops;
    to->least = cost.bytes / sim->chip->hbm_bytes_per_s;
    const double *peak = sim->chip->peak_flops;
    double at_peak = (cost.flops - cost.f32_flops) / peak[CT_CHIP_BF16] + cost.f32_flops / peak[CT_CHIP_F32];
    if (cost.is_attention)
        to->at_peak = at_peak;
    else
        to->compute = CT_MAX(at_peak / sim->chip->matmul_rate, to->least);
    ct_prediction *result = sim->result;
    for (size_t i = 0; i < result->num_kernels && !to->kernel; i++)
        if (!strcmp(result->kernels[i].name, cost.name)) to->kernel = i + 1;
    if (to->kernel) return;
    result->kernels =
        ct__grow(sim->arena, result->kernels, result->num_kernels, &sim->kernel_capacity, sizeof(*result->kernels));
    result->kernels[result->num_kernels++] =
        (ct_predict_kernel){.name = cost.name, .is_attention = cost.is_attention, .has_flops = cost.has_flops};
    to->kernel = result->num_kernels;
}

/* ---- all ---- */

void ct__price(ct__sim *sim, const ct_hlo_computation *computation, const ct_hlo_instruction *at, ct__priced *to)
{
    static const char *const free_ones[] = {"parameter", "constant",     "tuple",          "get-tuple-element",
                                            "bitcast",   "after-all",    "opt-barrier",    "optimization-barrier",
                                            "domain",    "partition-id", "add-dependency", "replica-id",
                                            NULL};
    static const char *const nothing_moves[] = {"target=ConcatBitcast", "target=AllocateBuffer",
                                                "target=AssumeGatherIndicesInBound", NULL};
    *to = (ct__priced){.at = at, .role = CT__FREE, .group = CT_PREDICT_ELEMENTWISE, .turns = 1};
    if (is_one_of(at, free_ones)) return;
    if (is(at, "while")) {
        to->role = CT__LOOP;
        to->turns = ct_hlo_loop_turns(at);
        return;
    }
    if (is(at, "conditional") || is(at, "call")) {
        to->role = is(at, "call") ? CT__CALL : CT__BRANCH;
        return;
    }
    if (ends_with(at->opcode, "-done")) {
        to->role = CT__DONE;
        return;
    }
    if (ends_with(at->opcode, "-start") || is(at, "send") || is(at, "recv")) {
        /* One without operands loads a SparseCore's program, and runs when it gets them (ct__launch_of). */
        if (at->num_operands) ct__price_start(sim, computation, at, to);
        return;
    }
    if (ends_with(at->opcode, "-update")) {
        if (!start_of(at)->num_operands && at->num_operands > 1) ct__price_start(sim, computation, at, to);
        return;
    }
    if (is(at, "custom-call") && strstr(at->details, "target=tpu_custom_call")) {
        price_kernel(sim, at, to);
        return;
    }
    for (const char *const *name = nothing_moves; *name; name++)
        if (is(at, "custom-call") && !strcmp(at->details, *name)) return;
    to->role = CT__COMPUTE;
    to->group = group_of(at);
    to->compute = estimate(sim, at);
    to->bytes = moved_bytes(at);
    to->continues = continues_collective(at);
    ct__priced inside = *to;
    if (ct__price_collectives(sim, computation, at, &inside)) {
        bool is_async = sim->result->collectives[inside.first_collective].is_async;
        inside.role = is_async ? CT__START : CT__TRANSFER;
        *to = inside;
    }
}

ct__priced *ct__priced_of(const ct__sim *sim, const ct_hlo_computation *computation)
{
    const ct_hlo_module *module = sim->module;
    size_t index = (size_t)(computation - module->computations);
    return computation >= module->computations && index < module->num_computations ? sim->priced[index] : NULL;
}
