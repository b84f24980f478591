/* What to change when a program is too large.
 *
 * The nearest change is the one that costs least: computing more again, a smaller batch, lower precision of moments,
 * host memory, more chips, in that order; two together when none is enough. What each leaves in memory is estimated
 * from the program that was compiled: its temporaries grow and shrink as what the block saves and works on, its
 * arguments are the state. The first that should fit is compiled to see whether it does.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "chips/slice.h"
#include "plan/compile.h"
#include "plan/fit.h"
#include "plan/vary.h"
#include "train/setup.h"
#include "train/state.h"

enum { MAX_CHANGES = 24 };

/* Bytes of one device by a rule of thumb: only ratios of temporaries are used. */
typedef struct {
    double state, temporaries;
} estimate;

static ct_status *estimate_recipe(const ct_recipe *recipe, const char *kind, estimate *out)
{
    *out = (estimate){0};
    ct_model *model;
    ct_parallel parallel;
    CT_TRY(ct_recipe_model(recipe, &model));
    ct_status *status = ct_recipe_parallel(recipe, model, 0, NULL, kind, &parallel);
    if (!status) {
        const ct_model_config *c = &model->config;
        ct_step_opts step = ct_recipe_step(recipe, &parallel, kind);
        double total, tp = (double)recipe->parallelism.tensor_parallel_degree;
        double tokens = (double)(recipe->training.local_batch_size * recipe->training.seq_len) /
                        (double)recipe->parallelism.context_parallel_degree / tp;
        double width = (double)ct_dtype_bytes(step.compute_dtype), dim = (double)c->dim, ffn = (double)c->ffn_dim;
        double heads = (double)((c->num_heads + 2 * c->num_kv_heads) * c->head_dim);
        double kept = step.remat.mode == CT_REMAT_FULL        ? dim
                      : step.remat.mode == CT_REMAT_SELECTIVE ? 2 * dim + heads + 2 * ffn
                                                              : 6 * dim + 2 * heads + 4 * ffn;
        bool is_offloaded = false;
        for (int i = 0; i < step.remat.num_offload; i++) is_offloaded |= !strcmp(step.remat.offload[i], "block_in");
        if (is_offloaded) kept -= dim;
        double params = (double)ct_model_num_params(c, model->family), layers = (double)c->num_layers;
        double trained = (double)ct_model_num_trained(model);
        double shards = (double)parallel.mesh.degrees[CT_MESH_DP_SHARD] * tp;
        out->state = ct_train_state_bytes(model, &parallel, step.param_dtype, step.moment_dtype, &total);
        if (step.moments_on_host) out->state -= 2 * trained / shards * (double)ct_dtype_bytes(step.moment_dtype);
        out->temporaries = tokens * width * (layers * kept + 8 * dim + 2 * heads + 5 * ffn) + /* saved, worked on */
                           4 * trained / shards + 3 * width * params / layers / tp; /* gradients, gathered weights */
    }
    ct_model_free(model);
    return status;
}

typedef struct {
    ct_plan *plan;
    const ct_recipe *recipe;
    estimate now;
    double temporaries; /* of the program that was compiled or refused */
} search;

/* Adds a change of some keys, if it is one and the recipe goes with it. */
static void add(search *s, const char *text, const char *first, const char *second)
{
    ct_plan *plan = s->plan;
    if (plan->num_changes == MAX_CHANGES) return;
    const char *overrides[] = {first, second};
    ct_recipe *changed;
    estimate then;
    ct_status *status = ct__recipe_vary(s->recipe, overrides, second ? 2 : 1, &changed);
    if (!status) status = estimate_recipe(changed, plan->compiled->kind, &then);
    if (!status) {
        ct_plan_change *change = &plan->changes[plan->num_changes++];
        *change = (ct_plan_change){.text = text,
                                   .override = second ? ct_arena_printf(&plan->arena, "%s %s", first, second) : first};
        double ratio = s->now.temporaries > 0 ? then.temporaries / s->now.temporaries : 1;
        change->bytes = (int64_t)(then.state + s->temporaries * ratio);
        change->fits = change->bytes <= plan->usable_bytes;
    }
    ct_recipe_free(changed);
    ct_status_free(status);
}

/* The next larger slice: the smallest axis doubled. NULL: there is none. */
static const char *larger_slice(ct_arena *arena, const char *name)
{
    ct_chip_slice slice, larger;
    if (!name) return NULL;
    ct_status *status = ct_chip_slice_parse(name, &slice);
    ct_str text;
    ct_str_init(&text);
    if (!status) {
        int least = slice.num_axes - 1;
        for (int i = slice.num_axes; i--;)
            if (slice.sizes[i] < slice.sizes[least]) least = i;
        slice.sizes[least] *= 2;
        for (int i = 0; i < slice.num_axes; i++)
            ct_str_printf(&text, "%s%lld", i ? "x" : ":", (long long)slice.sizes[i]);
        status = ct_chip_slice_parse(ct_arena_printf(arena, "%s%s", slice.chip->name, text.data), &larger);
    }
    const char *found = status ? NULL : ct_arena_printf(arena, "%s%s", slice.chip->name, text.data);
    ct_str_deinit(&text);
    ct_status_free(status);
    return found;
}

/* A smaller batch; keeps it only if it fits by estimate, or is the smallest. */
static bool add_batch(search *s, int64_t batch, int64_t smaller)
{
    ct_arena *arena = &s->plan->arena;
    size_t before = s->plan->num_changes;
    add(s,
        ct_arena_printf(arena, "%lld sequences per device at a time in place of %lld: training.local_batch_size = %lld",
                        (long long)smaller, (long long)batch, (long long)smaller),
        ct_arena_printf(arena, "--training.local_batch_size=%lld", (long long)smaller), NULL);
    bool fits = s->plan->num_changes > before && s->plan->changes[before].fits;
    if (!fits && smaller > 1) s->plan->num_changes = before;
    return fits;
}

/* The largest batch that fits by estimate: found by halves, then between the last two. */
static void propose_batch(search *s, int64_t batch)
{
    if (batch == 1) return;
    int64_t too_large = batch, fits = 0;
    for (int64_t smaller = batch / 2; smaller >= 1 && !fits; smaller /= 2) {
        if (add_batch(s, batch, smaller))
            fits = smaller;
        else
            too_large = smaller;
    }
    while (fits && too_large - fits > CT_MAX(fits / 16, 1)) {
        int64_t middle = fits + (too_large - fits) / 2;
        s->plan->num_changes--; /* of the one that fits: the next takes its place, or it comes back */
        if (add_batch(s, batch, middle)) {
            fits = middle;
        } else {
            too_large = middle;
            (void)add_batch(s, batch, fits);
        }
    }
}

/* More vector memory, as much as published recipes give on the chip, or smaller blocks. Sizes are not known. */
static void propose_for_kernel(search *s)
{
    static const char flag[] = "xla_tpu_scoped_vmem_limit_kib";
    ct_plan *plan = s->plan;
    ct_arena *arena = &plan->arena;
    const ct_chip *chip = ct_chip_find(plan->compiled->kind);
    const ct_recipe_flags *flags = &s->recipe->compile.xla_flags;
    const ct_named_value *now = ct_named_value_find(flags->items, flags->num_items, flag);
    int64_t vmem_kib = chip ? chip->vmem_bytes >> 10 : 0, most_kib = vmem_kib / 16 * (vmem_kib > 65536 ? 12 : 15);
    if (!now || now->integer < most_kib)
        plan->changes[plan->num_changes++] = (ct_plan_change){
            .text = ct_arena_printf(arena, "let kernels take %lld MiB of vector memory: compile.xla_flags.%s = %lld",
                                    (long long)(most_kib >> 10), flag, (long long)most_kib),
            .override = ct_arena_printf(arena, "--compile.xla_flags.%s=%lld", flag, (long long)most_kib),
            .fits = true};
    plan->changes[plan->num_changes++] = (ct_plan_change){
        .text = "smaller blocks of attention's backward kernel: splash_attention_kernel.sa_block_q_dkv = 512, "
                "sa_block_kv_dkv = 512",
        .override = "--splash_attention_kernel.sa_block_q_dkv=512 --splash_attention_kernel.sa_block_kv_dkv=512",
        .fits = true};
}

/* Layers shared out between devices that work on each sequence together, with as many tokens for each as before. */
static void propose_tensor_parallel(search *s)
{
    ct_arena *arena = &s->plan->arena;
    const ct_recipe *recipe = s->recipe;
    for (int64_t tp = 2 * recipe->parallelism.tensor_parallel_degree; tp <= 16; tp *= 2) {
        int64_t batch = recipe->training.local_batch_size * tp / recipe->parallelism.tensor_parallel_degree;
        size_t before = s->plan->num_changes;
        add(s,
            ct_arena_printf(arena,
                            "each layer shared between %lld devices: parallelism.tensor_parallel_degree = %lld, "
                            "training.local_batch_size = %lld",
                            (long long)tp, (long long)tp, (long long)batch),
            ct_arena_printf(arena, "--parallelism.tensor_parallel_degree=%lld", (long long)tp),
            ct_arena_printf(arena, "--training.local_batch_size=%lld", (long long)batch));
        if (s->plan->num_changes > before && s->plan->changes[before].fits) return;
    }
}

static void propose(search *s)
{
    const ct_recipe *recipe = s->recipe;
    ct_arena *arena = &s->plan->arena;
    bool is_full = recipe->activation_checkpoint.mode == CT_REMAT_FULL;
    const char *full = "--activation_checkpoint.mode=full";
    int64_t batch = recipe->training.local_batch_size;
    if (!is_full)
        add(s, "compute every block again in the backward pass: activation_checkpoint.mode = \"full\"", full, NULL);
    propose_batch(s, batch);
    if (recipe->optimizer.implementation == CT_OPTIMIZER_FUSED)
        add(s, "moments in bfloat16: optimizer.implementation = \"fused_opt_states_bf16\"",
            "--optimizer.implementation=fused_opt_states_bf16", NULL);
    if (is_full && !recipe->activation_checkpoint.offload.num_items)
        add(s, "what blocks save goes to host memory: activation_checkpoint.offload = [\"block_in\"]",
            "--activation_checkpoint.offload=block_in", NULL);
    if (!recipe->optimizer.offload_state)
        add(s, "moments in host memory between steps: optimizer.offload_state = true", "--optimizer.offload_state=true",
            NULL);
    const char *slice = larger_slice(arena, recipe->device.topology);
    if (slice)
        add(s, ct_arena_printf(arena, "more chips: device.topology = \"%s\"", slice),
            ct_arena_printf(arena, "--device.topology=%s", slice), NULL);
    bool any = false;
    for (size_t i = 0; i < s->plan->num_changes; i++) any |= s->plan->changes[i].fits;
    if (any) return;
    if (!is_full && batch > 1)
        add(s, "full recomputation and one sequence per device at a time", full, "--training.local_batch_size=1");
    propose_tensor_parallel(s);
    if (s->plan->num_changes && s->plan->changes[s->plan->num_changes - 1].fits) return;
    for (int doublings = 1; slice && doublings < 6; doublings++) {
        slice = larger_slice(arena, slice);
        if (!slice) break;
        add(s,
            ct_arena_printf(arena, "many more chips: device.topology = \"%s\"%s", slice,
                            batch > 1 ? ", one sequence per device" : ""),
            ct_arena_printf(arena, "--device.topology=%s", slice), batch > 1 ? "--training.local_batch_size=1" : NULL);
        if (s->plan->changes[s->plan->num_changes - 1].fits) break;
    }
}

/* Compiles a change and sees. */
static ct_status *try_change(ct_plan *plan, const ct_recipe *recipe, const ct_plan_opts *opts, ct_plan_change *change)
{
    const char *overrides[2] = {change->override};
    size_t length = strcspn(change->override, " "), count = 1;
    if (change->override[length]) {
        overrides[0] = ct_arena_strndup(&plan->arena, change->override, length);
        overrides[count++] = change->override + length + 1;
    }
    ct_recipe *changed;
    ct_plan *other = NULL;
    ct_plan_opts quiet = *opts;
    quiet.save_path = NULL;
    CT_TRY(ct__recipe_vary(recipe, overrides, count, &changed));
    ct_status *status = ct_plan_make(changed, &quiet, &other);
    if (!status) {
        change->is_compiled = true;
        change->bytes = other->used_bytes;
        change->fits = other->verdict == CT_PLAN_FITS;
    }
    ct_plan_free(other);
    ct_recipe_free(changed);
    return status;
}

ct_status *ct_plan_find_changes(ct_plan *plan, const ct_recipe *recipe, const ct_plan_opts *opts, double seconds)
{
    bool is_kernel = plan->verdict == CT_PLAN_KERNEL_TOO_LARGE;
    if ((plan->verdict != CT_PLAN_TOO_LARGE && !is_kernel) || plan->num_changes) return NULL;
    search s = {.plan = plan, .recipe = recipe};
    CT_TRY(estimate_recipe(recipe, plan->compiled->kind, &s.now));
    s.temporaries = (double)plan->used_bytes - s.now.state;
    plan->changes = CT_ARENA_ARRAY(&plan->arena, ct_plan_change, MAX_CHANGES);
    if (is_kernel)
        propose_for_kernel(&s);
    else
        propose(&s);
    double start = ct_clock_seconds(), last = plan->compiled->compile_seconds;
    for (size_t i = 0; i < plan->num_changes; i++) {
        ct_plan_change *change = &plan->changes[i];
        if (!change->fits) continue;
        double spent = ct_clock_seconds() - start;
        if (spent + last > seconds) break;
        ct_status *status = try_change(plan, recipe, opts, change);
        if (status) { /* one that the compiler does not take is no change to name */
            ct_warning("%s: %s", change->override, ct_status_message(status));
            ct_status_free(status);
            change->fits = false;
        }
        last = CT_MAX(last, ct_clock_seconds() - start - spent);
        if (change->fits) break;
    }
    return NULL;
}
