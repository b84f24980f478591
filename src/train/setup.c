/* Recipes as models and step options. */
#include "train/setup.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "chips/slice.h"
#include "models/lora.h"
#include "train/chip.h"
#include "train/metrics_flops.h"

static ct_status *check_names(const ct_recipe *recipe, const char *key, const ct_recipe_list *list)
{
    size_t count;
    const char *const *names = ct_model_checkpoint_names(&count);
    for (size_t i = 0; i < list->num_items; i++) {
        bool is_known = false;
        for (size_t j = 0; j < count; j++) is_known |= !strcmp(names[j], list->items[i]);
        if (is_known) continue;
        ct_str text;
        ct_str_init(&text);
        for (size_t j = 0; j < count; j++) ct_str_printf(&text, "%s%s", j ? ", " : "", names[j]);
        ct_status *status =
            ct_error(CT_CODE_INVALID_ARGUMENT, "%s must list values that a block names (%s), found \"%s\" (%s)", key,
                     text.data, list->items[i], ct_recipe_where(recipe, key));
        ct_str_deinit(&text);
        return status;
    }
    return NULL;
}

/* Frozen weights are kept as they are computed with: nothing is ever added to them that a wider type would keep. */
static ct_status *add_adapters(const ct_recipe *recipe, ct_model *model)
{
    bool is_narrow = ct_dtype_bytes(recipe->training.dtype) < ct_dtype_bytes(recipe->training.mixed_precision_param);
    ct_lora lora = {.rank = recipe->lora.rank,
                    .alpha = recipe->lora.alpha,
                    .targets = recipe->lora.target_modules.items,
                    .num_targets = recipe->lora.target_modules.num_items,
                    .frozen_dtype = is_narrow ? recipe->training.dtype : recipe->training.mixed_precision_param};
    return ct_status_note(ct_model_adapt(model, &lora), "lora.target_modules (%s), lora.rank (%s)",
                          ct_recipe_where(recipe, "lora.target_modules"), ct_recipe_where(recipe, "lora.rank"));
}

ct_status *ct_recipe_model(const ct_recipe *recipe, ct_model **out_model)
{
    *out_model = NULL;
    const ct_model_family *family;
    ct_model_config config;
    const char *flavor = recipe->model.flavor;
    if (ct_path_is_dir(flavor)) {
        CT_TRY_NOTE(ct_model_config_read(flavor, &family, &config), "model.flavor is the folder %s (%s)", flavor,
                    ct_recipe_where(recipe, "model.flavor"));
        if (strcmp(ct_model_family_name(family), recipe->model.name) != 0)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "%s holds a %s model, but model.name = \"%s\" (%s)", flavor,
                            ct_model_family_name(family), recipe->model.name, ct_recipe_where(recipe, "model.name"));
    } else {
        CT_TRY_NOTE(ct_model_config_find(recipe->model.name, flavor, &family, &config), "%s",
                    ct_recipe_where(recipe, "model.flavor"));
    }
    if (recipe->training.seq_len > config.max_seq_len)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "training.seq_len = %lld exceeds the model's longest sequence, %lld (%s); lower it",
                        (long long)recipe->training.seq_len, (long long)config.max_seq_len,
                        ct_recipe_where(recipe, "training.seq_len"));
    CT_TRY(check_names(recipe, "activation_checkpoint.save", &recipe->activation_checkpoint.save));
    CT_TRY(check_names(recipe, "activation_checkpoint.offload", &recipe->activation_checkpoint.offload));
    CT_TRY(check_names(recipe, "activation_checkpoint.recompute", &recipe->activation_checkpoint.recompute));
    CT_TRY(ct_model_new(family, &config, recipe->model.scan_layers, out_model));
    ct_status *status = recipe->lora.rank ? add_adapters(recipe, *out_model) : NULL;
    if (!status) return NULL;
    ct_model_free(*out_model);
    *out_model = NULL;
    return status;
}

ct_status *ct_recipe_check_kind(const ct_recipe *recipe, const char *kind)
{
    const char *topology = recipe->device.topology, *chip = ct_chip_name(kind);
    size_t length = topology ? strcspn(topology, ":") : 0;
    if (!topology || (chip && strlen(chip) == length && !strncmp(chip, topology, length))) return NULL;
    return ct_error(
        CT_CODE_FAILED_PRECONDITION,
        "device.topology = \"%s\" (%s), but the devices are \"%s\"; name theirs, or set device.topology=none", topology,
        ct_recipe_where(recipe, "device.topology"), kind);
}

void ct_recipe_torus(const ct_recipe *recipe, ct_torus *out_torus, const char **out_kind)
{
    *out_torus = (ct_torus){0};
    *out_kind = NULL;
    if (!recipe->device.topology) return;
    ct_chip_slice slice;
    ct_status *status = ct_chip_slice_parse(recipe->device.topology, &slice);
    if (status) CT_BUG("checked at loading: %s", ct_status_message(status));
    ct_tpu_slice_torus(slice.num_axes, slice.sizes, slice.chip->devices_per_chip,
                       recipe->parallelism.tensor_parallel_degree, out_torus);
    *out_kind = slice.chip->kind;
}

double ct_model_flops_per_token(const ct_model *model, int64_t seq_len)
{
    const ct_model_config *config = &model->config;
    return ct_flops_per_token(
        &(ct_flops_model){.num_params = ct_model_num_params(config, model->family),
                          .num_adapter_params = model->lora ? ct_model_num_trained(model) : 0,
                          .num_embedding_params = ct_model_num_embedding_params(config, model->family),
                          .is_tied = config->tied,
                          .num_layers = config->num_layers,
                          .num_heads = config->num_heads,
                          .head_dim = config->head_dim,
                          .seq_len = seq_len});
}

/* A size of the model that tensor parallel shares out. */
static ct_status *check_shared(const ct_recipe *recipe, const char *what, int64_t size)
{
    int64_t tp = recipe->parallelism.tensor_parallel_degree;
    if (size % tp == 0) return NULL;
    return ct_error(CT_CODE_INVALID_ARGUMENT,
                    "parallelism.tensor_parallel_degree = %lld must divide the model's %s = %lld (%s)", (long long)tp,
                    what, (long long)size, ct_recipe_where(recipe, "parallelism.tensor_parallel_degree"));
}

ct_status *ct_recipe_parallel(const ct_recipe *recipe, const ct_model *model, int num_torus, const int64_t *torus,
                              const char *device_kind, ct_parallel *out_parallel)
{
    ct_mesh_opts mesh = {.degrees = {[CT_MESH_DP_REPLICATE] = recipe->parallelism.data_parallel_replicate_degree,
                                     [CT_MESH_DP_SHARD] = recipe->parallelism.data_parallel_shard_degree,
                                     [CT_MESH_CP] = recipe->parallelism.context_parallel_degree,
                                     [CT_MESH_TP] = recipe->parallelism.tensor_parallel_degree},
                         .num_devices = recipe->device.count,
                         .num_kv_heads = model->config.num_kv_heads};
    if (num_torus && recipe->device.num_slices > 1) mesh.torus[mesh.num_torus++] = recipe->device.num_slices;
    for (int i = 0; i < num_torus; i++) mesh.torus[mesh.num_torus++] = torus[i];
    bool is_gathered = recipe->parallelism.context_parallel_rotate_method == CT_RECIPE_ROTATE_ALLGATHER;
    *out_parallel = (ct_parallel){
        .table = ct_model_sharding(model),
        .sequence_parallel = recipe->parallelism.enable_sequence_parallel,
        .loss_parallel = !recipe->parallelism.disable_loss_parallel,
        .rotate = is_gathered ? CT_ROTATE_ALLGATHER : CT_ROTATE_RING,
        .reshard_after_forward = recipe->parallelism.fsdp_reshard_after_forward,
        .zero_stage = (int)recipe->parallelism.zero_stage,
        .reduce_once = !recipe->parallelism.reduce_each_microbatch && ct_recipe_num_microbatches(recipe) > 1,
        .prefetch = (int)recipe->parallelism.fsdp_prefetch,
        .gather_form = recipe->parallelism.fsdp_gather_form,
        .reduce_form = recipe->parallelism.fsdp_reduce_form,
        .reduce_dtype = recipe->training.mixed_precision_reduce,
        .partition = recipe->parallelism.partitioner,
        .replicate_below = recipe->parallelism.fsdp_replicate_below,
    };
    ct_collective_form gather, reduce;
    ct_chip_forms(device_kind, &gather, &reduce);
    if (out_parallel->gather_form == CT_FORM_AUTO) out_parallel->gather_form = gather;
    if (out_parallel->reduce_form == CT_FORM_AUTO) out_parallel->reduce_form = reduce;
    CT_TRY(check_shared(recipe, "heads", model->config.num_heads));
    CT_TRY(check_shared(recipe, "ffn", model->config.ffn_dim));
    CT_TRY_NOTE(ct_mesh_init(&mesh, &out_parallel->mesh), "%s",
                ct_recipe_where(recipe, "parallelism.tensor_parallel_degree"));
    return ct_model_check_parallel(model, out_parallel,
                                   recipe->training.local_batch_size * ct_recipe_num_data_parallel(recipe),
                                   recipe->training.seq_len);
}

/* What a flag of the TPU fork makes of a form that is left to us. */
static ct_kernel_form asked_form(ct_kernel_form form, bool has_flag, ct_kernel_form with_flag)
{
    return form == CT_KERNEL_AUTO && has_flag ? with_flag : form;
}

ct_kernels ct_recipe_kernels(const ct_recipe *recipe, const char *device_kind)
{
    const char *platform = ct_chip_platform(device_kind, recipe->device.platform);
    bool on_tpu = !strcmp(platform, "tpu"), use_splash = recipe->splash_attention_kernel.use_splash_attention_kernel;
    bool use_loss = recipe->loss_kernel.use_loss_kernel;
    ct_kernels kernels = {
        .attention = asked_form(recipe->kernels.attention, use_splash, on_tpu ? CT_KERNEL_MOSAIC : CT_KERNEL_PORTABLE),
        .loss =
            asked_form(recipe->kernels.loss, use_loss,
                       on_tpu && recipe->loss_kernel.enable_pallas_loss_kernel ? CT_KERNEL_AUTO : CT_KERNEL_PORTABLE),
        .platform = platform,
        .chip = ct_chip_name(device_kind),
        .attention_blocks = {.q = recipe->splash_attention_kernel.sa_block_q,
                             .kv = recipe->splash_attention_kernel.sa_block_kv,
                             .kv_compute = recipe->splash_attention_kernel.sa_block_kv_compute,
                             .q_dkv = recipe->splash_attention_kernel.sa_block_q_dkv,
                             .kv_dkv = recipe->splash_attention_kernel.sa_block_kv_dkv,
                             .kv_dkv_compute = recipe->splash_attention_kernel.sa_block_kv_dkv_compute,
                             .q_dq = recipe->splash_attention_kernel.sa_block_q_dq,
                             .kv_dq = recipe->splash_attention_kernel.sa_block_kv_dq,
                             .separate_backward = !recipe->splash_attention_kernel.sa_use_fused_bwd_kernel},
        .loss_blocks = {.rows = recipe->loss_kernel.loss_b_block_size,
                        .hidden = recipe->loss_kernel.loss_h_block_size,
                        .vocab = recipe->loss_kernel.loss_v_block_size},
    };
    return kernels;
}

const char *ct_recipe_tokenizer_path(const ct_recipe *recipe, const char **out_key)
{
    const char *path = recipe->model.hf_assets_path, *flavor = recipe->model.flavor;
    *out_key = path ? "model.hf_assets_path" : "model.flavor";
    if (path) return path;
    return ct_path_is_dir(flavor) && ct_tokenizer_is_in(flavor) ? flavor : "bytes";
}

ct_status *ct_recipe_tokenizer(const ct_recipe *recipe, ct_tokenizer **out_tokenizer)
{
    const char *key, *path = ct_recipe_tokenizer_path(recipe, &key);
    ct_status *status = ct_tokenizer_open(path, out_tokenizer);
    if (ct_status_code(status) == CT_CODE_NOT_FOUND)
        status = ct_status_note(status, "a tokenizer's folder or file is wanted; ctitan tokenizer train learns one");
    return ct_status_note(status, "%s (%s)", key, ct_recipe_where(recipe, key));
}

ct_dataset_opts ct_recipe_data(const ct_recipe *recipe, const ct_step_opts *step, const ct_model *model,
                               const ct_tokenizer *tokenizer, const ct_chat_renderer *chat)
{
    return (ct_dataset_opts){
        .paths = recipe->training.dataset_path.items,
        .num_paths = recipe->training.dataset_path.num_items,
        .weights = recipe->dataloader.weights.num_items ? recipe->dataloader.weights.items : NULL,
        .kind = recipe->training.dataset,
        .seq_len = recipe->training.seq_len,
        .batch_size = step->batch * step->num_microbatches,
        .vocab_size = model->config.vocab_size,
        .tokenizer = tokenizer,
        .chat = chat,
        .once = !recipe->dataloader.repeat,
        .shuffle = recipe->dataloader.shuffle,
        .shuffle_buffer = recipe->dataloader.streaming_shuffle_buffer,
        .seed = (uint64_t)recipe->debug.seed,
        .document_mask = recipe->training.document_mask,
        .packing = recipe->dataloader.packing,
        .packing_bins = recipe->dataloader.packing_bins,
        .text_column = recipe->dataloader.text_column,
        .messages_column = recipe->dataloader.messages_column,
        .prompt_column = recipe->dataloader.prompt_column,
        .completion_column = recipe->dataloader.completion_column,
        .fail_on_broken = recipe->dataloader.broken_records == CT_BROKEN_FAIL,
        .num_workers = (int)recipe->dataloader.num_workers,
    };
}

char *ct_step_kernels_text(const ct_step_opts *step, const ct_model *model)
{
    const char *attention_why, *loss_why;
    ct_kernel_form attention = ct_attention_form(&step->kernels, step->seq_len, &attention_why);
    ct_kernel_form loss =
        ct_loss_form(&step->kernels, step->batch * step->seq_len, model->config.vocab_size, &loss_why);
    return ct_asprintf("attention %s (%s), loss %s (%s)", ct_kernel_form_name(attention), attention_why,
                       ct_kernel_form_name(loss), loss_why);
}

ct_step_opts ct_recipe_step(const ct_recipe *recipe, const ct_parallel *parallel, const char *device_kind)
{
    bool bf16_moments = recipe->optimizer.implementation == CT_OPTIMIZER_FUSED_OPT_STATES_BF16;
    return (ct_step_opts){
        .batch = recipe->training.local_batch_size * ct_recipe_num_data_parallel(recipe),
        .seq_len = recipe->training.seq_len,
        .num_microbatches = ct_recipe_num_microbatches(recipe),
        .document_mask = recipe->training.document_mask,
        .parallel = parallel,
        .kernels = ct_recipe_kernels(recipe, device_kind),
        .param_dtype = recipe->training.dtype,
        .moment_dtype = bf16_moments ? CT_DTYPE_BF16 : CT_DTYPE_F32,
        .compute_dtype = recipe->training.mixed_precision_param,
        .remat = {.mode = recipe->activation_checkpoint.mode,
                  .num_save = (int)recipe->activation_checkpoint.save.num_items,
                  .save = recipe->activation_checkpoint.save.items,
                  .num_offload = (int)recipe->activation_checkpoint.offload.num_items,
                  .offload = recipe->activation_checkpoint.offload.items,
                  .num_recompute = (int)recipe->activation_checkpoint.recompute.num_items,
                  .recompute = recipe->activation_checkpoint.recompute.items},
        .moments_on_host = recipe->optimizer.offload_state,
        .max_norm = recipe->training.max_norm,
        .adamw = {.beta1 = recipe->optimizer.beta1,
                  .beta2 = recipe->optimizer.beta2,
                  .eps = recipe->optimizer.eps,
                  .weight_decay = recipe->optimizer.weight_decay},
    };
}
