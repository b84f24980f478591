/* What must hold between the keys of a recipe, once each value is fine by itself. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "chips/slice.h"
#include "spmd/mesh.h"
#include "train/recipe_schema.h"

typedef struct check {
    const ct_recipe *recipe;
    ct__recipe_mistakes *mistakes;
} check;

static size_t index_of(const char *name)
{
    size_t point = strcspn(name, ".");
    const ct__recipe_key *key = ct__recipe_find(name, point, name + point + 1);
    CT_ASSERT(key);
    return (size_t)(key - ct__recipe_keys);
}

/* A rule is checked only if no value that it speaks of is wrong by itself. */
static bool are_fine(const check *c, const char *a, const char *b)
{
    return !c->mistakes->is_broken[index_of(a)] && (!b || !c->mistakes->is_broken[index_of(b)]);
}

static bool is_given(const check *c, const char *name)
{
    return c->recipe->origins[index_of(name)] != NULL;
}

static const char *where(const check *c, const char *name)
{
    return ct_recipe_where(c->recipe, name);
}

static void check_profiler(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    if (!are_fine(c, "profiler.profiler_active", "profiler.profile_freq") ||
        recipe->profiler.profiler_active <= recipe->profiler.profile_freq)
        return;
    ct__recipe_mistake(c->mistakes, where(c, "profiler.profiler_active"),
                       "profiler.profiler_active must be at most profiler.profile_freq = %lld, found %lld",
                       (long long)recipe->profiler.profile_freq, (long long)recipe->profiler.profiler_active);
}

static void check_batch(const check *c, int64_t data_parallel_count)
{
    const ct_recipe *recipe = c->recipe;
    int64_t global = recipe->training.global_batch_size, local = recipe->training.local_batch_size, unit;
    if (!are_fine(c, "training.global_batch_size", "training.local_batch_size") || global == -1) return;
    if (ct_checked_mul(local, data_parallel_count, &unit) && global > 0 && global % unit == 0) return;
    ct__recipe_mistake(
        c->mistakes, where(c, "training.global_batch_size"),
        "training.global_batch_size must be -1 or a multiple of training.local_batch_size x data parallel "
        "ranks = %lld x %lld, found %lld",
        (long long)local, (long long)data_parallel_count, (long long)global);
}

/* No count of tokens overflows after this. */
static void check_tokens(const check *c, int64_t data_parallel_count)
{
    const ct_recipe *recipe = c->recipe;
    int64_t batch = recipe->training.global_batch_size, tokens;
    if (!are_fine(c, "training.global_batch_size", "training.local_batch_size") ||
        !are_fine(c, "training.seq_len", "training.steps"))
        return;
    bool fits = true;
    if (batch == -1) fits = ct_checked_mul(recipe->training.local_batch_size, data_parallel_count, &batch);
    if (fits && ct_checked_mul(batch, recipe->training.seq_len, &tokens) &&
        ct_checked_mul(tokens, recipe->training.steps, &tokens))
        return;
    bool is_local = recipe->training.global_batch_size == -1;
    ct__recipe_mistake(c->mistakes, where(c, "training.seq_len"),
                       "training.steps x sequences x training.seq_len must be less than 2^63 tokens, found %lld x "
                       "%lld%s x %lld; lower one",
                       (long long)recipe->training.steps,
                       (long long)(is_local ? recipe->training.local_batch_size : batch),
                       is_local ? " per data parallel rank" : "", (long long)recipe->training.seq_len);
}

static const char *const DEGREES[] = {
    "parallelism.tensor_parallel_degree",
    "parallelism.context_parallel_degree",
    "parallelism.data_parallel_shard_degree",
    "parallelism.data_parallel_replicate_degree",
    "device.count",
};

/* The degrees against device.count, then what they share out; what needs the model is checked with it (setup.c). */
static void check_parallelism(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    const char *given = NULL;
    for (size_t i = 0; i < CT_COUNT(DEGREES); i++) {
        if (!are_fine(c, DEGREES[i], NULL)) return;
        if (!given && is_given(c, DEGREES[i])) given = DEGREES[i];
    }
    ct_mesh_opts opts = {.degrees = {[CT_MESH_DP_REPLICATE] = recipe->parallelism.data_parallel_replicate_degree,
                                     [CT_MESH_DP_SHARD] = recipe->parallelism.data_parallel_shard_degree,
                                     [CT_MESH_CP] = recipe->parallelism.context_parallel_degree,
                                     [CT_MESH_TP] = recipe->parallelism.tensor_parallel_degree},
                         .num_devices = recipe->device.count};
    ct_mesh mesh;
    ct_status *status = ct_mesh_init(&opts, &mesh);
    if (status) {
        ct__recipe_mistake(c->mistakes, where(c, given ? given : "device.count"),
                           "%s (device.count); change a degree or device.count", ct_status_message(status));
        ct_status_free(status);
        return;
    }
    check_batch(c, mesh.degrees[CT_MESH_DP_REPLICATE] * mesh.degrees[CT_MESH_DP_SHARD]);
    check_tokens(c, mesh.degrees[CT_MESH_DP_REPLICATE] * mesh.degrees[CT_MESH_DP_SHARD]);
    int64_t cp = mesh.degrees[CT_MESH_CP], tp = mesh.degrees[CT_MESH_TP], seq_len = recipe->training.seq_len;
    if (!recipe->parallelism.enable_sequence_parallel) tp = 1;
    int64_t unit = (cp > 1 ? 2 * cp : 1) * tp;
    if (are_fine(c, "training.seq_len", "parallelism.enable_sequence_parallel") && seq_len % unit)
        ct__recipe_mistake(c->mistakes, where(c, "training.seq_len"),
                           "training.seq_len must be a multiple of %lld, found %lld: 2 x context_parallel_degree %lld "
                           "when that is more than 1, x tensor_parallel_degree %lld when enable_sequence_parallel",
                           (long long)unit, (long long)seq_len, (long long)cp, (long long)mesh.degrees[CT_MESH_TP]);
}

static void check_schedule(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    int64_t total = recipe->lr_scheduler.total_steps, steps = recipe->training.steps;
    if (!are_fine(c, "lr_scheduler.total_steps", "training.steps")) return;
    if (total > 0 && total < steps) {
        ct__recipe_mistake(c->mistakes, where(c, "lr_scheduler.total_steps"),
                           "lr_scheduler.total_steps must be at least training.steps = %lld, found %lld; raise it, or "
                           "leave it out to follow training.steps",
                           (long long)steps, (long long)total);
        return;
    }
    int64_t warmup = recipe->lr_scheduler.warmup_steps, length = total > 0 ? total : steps;
    if (are_fine(c, "lr_scheduler.warmup_steps", NULL) && !c->mistakes->count && warmup > length)
        ct_warning("lr_scheduler.warmup_steps = %lld (%s) exceeds the schedule's %lld steps; the warmup is cut to %lld",
                   (long long)warmup, where(c, "lr_scheduler.warmup_steps"), (long long)length, (long long)length);
}

/* key, which is on, does nothing unless `needed` is `value`. */
static void check_needs(const check *c, const char *key, bool is_on, const char *needed, bool needed_is, bool value)
{
    if (are_fine(c, key, needed) && is_on && needed_is != value)
        ct__recipe_mistake(c->mistakes, where(c, key), "%s = true needs %s = %s (%s)", key, needed,
                           value ? "true" : "false", where(c, needed));
}

static void check_exclusions(const check *c)
{
    static const char *const parts[] = {"optimizer", "lr_scheduler", "dataloader", "train_state"};
    const ct_recipe_list *list = &c->recipe->checkpoint.exclude_from_loading;
    for (size_t i = 0; i < list->num_items; i++) {
        bool is_known = false;
        for (size_t j = 0; j < CT_COUNT(parts); j++) is_known = is_known || !strcmp(list->items[i], parts[j]);
        const char *nearest = is_known ? NULL : ct_nearest_name(list->items[i], parts, CT_COUNT(parts));
        if (!is_known)
            ct__recipe_mistake(c->mistakes, where(c, "checkpoint.exclude_from_loading"),
                               "checkpoint.exclude_from_loading must name \"optimizer\", \"lr_scheduler\", "
                               "\"dataloader\" or \"train_state\", found \"%s\"%s%s%s",
                               list->items[i], nearest ? "; did you mean \"" : "", nearest ? nearest : "",
                               nearest ? "\"?" : "");
    }
}

static void check_checkpoint(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    bool enable = recipe->checkpoint.enable, has_path = recipe->checkpoint.initial_load_path;
    if (are_fine(c, "checkpoint.initial_load_in_hf", "checkpoint.initial_load_path") &&
        recipe->checkpoint.initial_load_in_hf && !has_path)
        ct__recipe_mistake(c->mistakes, where(c, "checkpoint.initial_load_in_hf"),
                           "checkpoint.initial_load_in_hf needs checkpoint.initial_load_path, the folder to load");
    if (are_fine(c, "checkpoint.initial_load_model_only", "checkpoint.initial_load_in_hf") && has_path &&
        recipe->checkpoint.initial_load_in_hf && !recipe->checkpoint.initial_load_model_only)
        ct__recipe_mistake(c->mistakes, where(c, "checkpoint.initial_load_model_only"),
                           "checkpoint.initial_load_model_only = false needs a saved step, but "
                           "checkpoint.initial_load_in_hf = true: a Hugging Face folder has weights alone");
    if (are_fine(c, "checkpoint.load_step", "checkpoint.enable") && recipe->checkpoint.load_step >= 0 && !enable)
        ct__recipe_mistake(c->mistakes, where(c, "checkpoint.load_step"),
                           "checkpoint.load_step = %lld needs checkpoint.enable = true",
                           (long long)recipe->checkpoint.load_step);
    if (are_fine(c, "checkpoint.keep_latest_k", NULL) && recipe->checkpoint.keep_latest_k == 1)
        ct__recipe_mistake(c->mistakes, where(c, "checkpoint.keep_latest_k"),
                           "checkpoint.keep_latest_k must be 0 (all) or at least 2, found 1: while the next is being "
                           "written, or if it is damaged, the one before it is needed");
    check_needs(c, "checkpoint.last_save_in_hf", recipe->checkpoint.last_save_in_hf, "checkpoint.last_save_model_only",
                recipe->checkpoint.last_save_model_only, true);
    check_needs(c, "checkpoint.create_seed_checkpoint", recipe->checkpoint.create_seed_checkpoint, "checkpoint.enable",
                enable, true);
    check_needs(c, "checkpoint.create_seed_checkpoint", recipe->checkpoint.create_seed_checkpoint,
                "checkpoint.load_only", recipe->checkpoint.load_only, false);
    check_exclusions(c);
}

static void check_lora(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    if (!are_fine(c, "lora.rank", NULL)) return;
    bool has = recipe->lora.rank > 0;
    if (!has && recipe->lora.adapter_path && are_fine(c, "lora.adapter_path", NULL))
        ct__recipe_mistake(c->mistakes, where(c, "lora.adapter_path"),
                           "lora.adapter_path needs lora.rank, that of the adapters in it, found 0 (%s)",
                           where(c, "lora.rank"));
    if (!has) return;
    if (are_fine(c, "lora.target_modules", NULL) && !recipe->lora.target_modules.num_items)
        ct__recipe_mistake(c->mistakes, where(c, "lora.target_modules"),
                           "lora.target_modules must name a module at least, as lora.rank = %lld (%s)",
                           (long long)recipe->lora.rank, where(c, "lora.rank"));
    if (are_fine(c, "checkpoint.create_seed_checkpoint", NULL) && recipe->checkpoint.create_seed_checkpoint)
        ct__recipe_mistake(c->mistakes, where(c, "checkpoint.create_seed_checkpoint"),
                           "checkpoint.create_seed_checkpoint = true needs lora.rank = 0 (%s): a step of a run with "
                           "adapters has no other weights",
                           where(c, "lora.rank"));
    if (are_fine(c, "checkpoint.initial_load_model_only", NULL) && recipe->checkpoint.initial_load_path &&
        !recipe->checkpoint.initial_load_model_only)
        ct__recipe_mistake(c->mistakes, where(c, "checkpoint.initial_load_model_only"),
                           "checkpoint.initial_load_model_only = false needs lora.rank = 0 (%s): the moments of "
                           "frozen weights have no use",
                           where(c, "lora.rank"));
}

/* A name says one thing only. */
static void check_remat_names(const check *c)
{
    const struct {
        const char *key;
        const ct_recipe_list *list;
    } lists[] = {{"activation_checkpoint.save", &c->recipe->activation_checkpoint.save},
                 {"activation_checkpoint.offload", &c->recipe->activation_checkpoint.offload},
                 {"activation_checkpoint.recompute", &c->recipe->activation_checkpoint.recompute}};
    for (size_t a = 0; a < CT_COUNT(lists); a++)
        for (size_t b = a + 1; b < CT_COUNT(lists) && are_fine(c, lists[a].key, lists[b].key); b++)
            for (size_t i = 0; i < lists[a].list->num_items; i++)
                for (size_t j = 0; j < lists[b].list->num_items; j++)
                    if (!strcmp(lists[a].list->items[i], lists[b].list->items[j]))
                        ct__recipe_mistake(c->mistakes, where(c, lists[b].key),
                                           "\"%s\" must be in one list at most, found it in %s and %s; take it out of "
                                           "one",
                                           lists[a].list->items[i], lists[a].key, lists[b].key);
}

static void check_remat(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    check_remat_names(c);
    if (are_fine(c, "activation_checkpoint.save", "activation_checkpoint.mode") &&
        recipe->activation_checkpoint.save.num_items && recipe->activation_checkpoint.mode == CT_REMAT_NONE)
        ct__recipe_mistake(c->mistakes, where(c, "activation_checkpoint.save"),
                           "activation_checkpoint.save needs activation_checkpoint.mode = \"selective\" or \"full\"");
}

/* A flag that asks for a lean form against a key that asks for the definition. */
static void check_kernel(const check *c, const char *flag, bool is_set, const char *key, ct_kernel_form form)
{
    if (are_fine(c, flag, key) && is_set && form == CT_KERNEL_DEFINITION)
        ct__recipe_mistake(c->mistakes, where(c, flag), "%s = true does not go with %s = \"definition\" (%s)", flag,
                           key, where(c, key));
}

/* A block is done in steps of equal size. */
static void check_steps(const check *c, const char *block_key, int64_t block, const char *step_key, int64_t step)
{
    if (are_fine(c, block_key, step_key) && block && step && block % step)
        ct__recipe_mistake(c->mistakes, where(c, block_key), "%s = %lld must be a multiple of %s = %lld (%s)",
                           block_key, (long long)block, step_key, (long long)step, where(c, step_key));
}

#define SPLASH "splash_attention_kernel."

static void check_kernels(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    check_kernel(c, SPLASH "use_splash_attention_kernel", recipe->splash_attention_kernel.use_splash_attention_kernel,
                 "kernels.attention", recipe->kernels.attention);
    check_kernel(c, "loss_kernel.use_loss_kernel", recipe->loss_kernel.use_loss_kernel, "kernels.loss",
                 recipe->kernels.loss);
    check_steps(c, SPLASH "sa_block_kv", recipe->splash_attention_kernel.sa_block_kv, SPLASH "sa_block_kv_compute",
                recipe->splash_attention_kernel.sa_block_kv_compute);
    check_steps(c, SPLASH "sa_block_kv_dkv", recipe->splash_attention_kernel.sa_block_kv_dkv,
                SPLASH "sa_block_kv_dkv_compute", recipe->splash_attention_kernel.sa_block_kv_dkv_compute);
}

static void check_device(const check *c)
{
    static const char *const platforms[] = {"cpu", "cuda", "tpu"};
    const char *platform = c->recipe->device.platform;
    if (!are_fine(c, "device.platform", NULL)) return;
    for (size_t i = 0; i < CT_COUNT(platforms); i++)
        if (strcmp(platform, platforms[i]) == 0) return;
    bool is_path = strchr(platform, '/') || strstr(platform, ".so");
    if (!is_path) {
        const char *nearest = ct_nearest_name(platform, platforms, CT_COUNT(platforms));
        ct__recipe_mistake(
            c->mistakes, where(c, "device.platform"),
            "device.platform must be \"cpu\", \"cuda\", \"tpu\" or the path of a plugin, found \"%s\"%s%s%s", platform,
            nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    } else if (is_given(c, "device.plugin_path") && c->recipe->device.plugin_path) {
        ct__recipe_mistake(
            c->mistakes, where(c, "device.plugin_path"),
            "device.plugin_path needs device.platform = \"cpu\", \"cuda\" or \"tpu\", found the path \"%s\"; "
            "leave one of the two out",
            platform);
    }
}

/* What a topology's name says of device.count. */
static void check_topology(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    const char *name = recipe->device.topology;
    if (!name || !are_fine(c, "device.topology", "device.num_slices")) return;
    ct_chip_slice slice;
    ct_status *status = ct_chip_slice_parse(name, &slice);
    if (status)
        ct__recipe_mistake(c->mistakes, where(c, "device.topology"), "device.topology: %s", ct_status_message(status));
    else if (are_fine(c, "device.count", NULL) && slice.num_devices * recipe->device.num_slices != recipe->device.count)
        ct__recipe_mistake(
            c->mistakes, where(c, "device.count"),
            "device.count must be the %lld devices of device.topology = \"%s\"%s, found %lld; leave it out, "
            "or set device.topology=none",
            (long long)(slice.num_devices * recipe->device.num_slices), name,
            recipe->device.num_slices > 1 ? " times device.num_slices" : "", (long long)recipe->device.count);
    ct_status_free(status);
}

void ct__recipe_resolve(ct_recipe *recipe)
{
    if (recipe->device.count > 0) return;
    ct_chip_slice slice = {0};
    if (recipe->device.topology) ct_status_free(ct_chip_slice_parse(recipe->device.topology, &slice)); /* told later */
    recipe->device.count = CT_MAX(slice.num_devices, 1) * recipe->device.num_slices;
}

/* Two keys of [dataloader] that do not go together. */
static void check_columns(const check *c, const char *a, const char *a_value, const char *b, const char *b_value)
{
    if (are_fine(c, a, b) && a_value && b_value)
        ct__recipe_mistake(c->mistakes, where(c, b), "%s and %s (%s) are two kinds of data; leave one of them out", b,
                           a, where(c, a));
}

static void check_data(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    size_t num_paths = recipe->training.dataset_path.num_items, num_weights = recipe->dataloader.weights.num_items;
    if (are_fine(c, "dataloader.weights", "training.dataset_path") && num_weights && num_weights != num_paths)
        ct__recipe_mistake(c->mistakes, where(c, "dataloader.weights"),
                           "dataloader.weights must have one weight per training.dataset_path, %zu, found %zu",
                           num_paths, num_weights);
    const char *text = recipe->dataloader.text_column, *messages = recipe->dataloader.messages_column;
    const char *prompt = recipe->dataloader.prompt_column, *completion = recipe->dataloader.completion_column;
    check_columns(c, "dataloader.text_column", text, "dataloader.messages_column", messages);
    check_columns(c, "dataloader.text_column", text, "dataloader.prompt_column", prompt);
    check_columns(c, "dataloader.messages_column", messages, "dataloader.prompt_column", prompt);
    if (are_fine(c, "dataloader.prompt_column", "dataloader.completion_column") && !prompt != !completion)
        ct__recipe_mistake(c->mistakes, where(c, prompt ? "dataloader.prompt_column" : "dataloader.completion_column"),
                           "dataloader.%s_column needs dataloader.%s_column too", prompt ? "prompt" : "completion",
                           prompt ? "completion" : "prompt");
}

static void check_validation(const check *c)
{
    const ct_recipe *recipe = c->recipe;
    if (!are_fine(c, "validation.enable", "validation.steps") || !recipe->validation.enable) return;
    if (are_fine(c, "validation.dataset_path", NULL) && !recipe->validation.dataset_path.num_items)
        ct__recipe_mistake(c->mistakes, where(c, "validation.enable"),
                           "validation.enable = true needs validation.dataset_path, the data to validate on");
    if (recipe->validation.steps == 0)
        ct__recipe_mistake(c->mistakes, where(c, "validation.steps"),
                           "validation.steps must be -1 (all of the data) or at least 1, found 0");
}

void ct__recipe_check(const ct_recipe *recipe, const ct_recipe_load_opts *opts, ct__recipe_mistakes *mistakes)
{
    check c = {recipe, mistakes};
    if (opts->needs_data && !recipe->training.dataset_path.num_items && are_fine(&c, "training.dataset_path", NULL))
        ct__recipe_mistake(mistakes, recipe->path ? recipe->path : "recipe",
                           "training.dataset_path is required: files, folders or patterns of the data");
    check_data(&c);
    check_validation(&c);
    check_topology(&c);
    check_parallelism(&c);
    check_profiler(&c);
    check_checkpoint(&c);
    check_lora(&c);
    check_remat(&c);
    check_kernels(&c);
    check_device(&c);
    check_schedule(&c);
}
