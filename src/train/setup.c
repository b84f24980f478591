/* Recipes as models and step options. */
#include "train/setup.h"

#include <string.h>

#include "base/file.h"
#include "train/metrics_flops.h"

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
    return ct_model_new(family, &config, recipe->model.scan_layers, out_model);
}

double ct_model_flops_per_token(const ct_model *model, int64_t seq_len)
{
    const ct_model_config *config = &model->config;
    return ct_flops_per_token(
        &(ct_flops_model){.num_params = ct_model_num_params(config, model->family),
                          .num_embedding_params = ct_model_num_embedding_params(config, model->family),
                          .is_tied = config->tied,
                          .num_layers = config->num_layers,
                          .num_heads = config->num_heads,
                          .head_dim = config->head_dim,
                          .seq_len = seq_len});
}

ct_step_opts ct_recipe_step(const ct_recipe *recipe)
{
    bool bf16_moments = recipe->optimizer.implementation == CT_OPTIMIZER_FUSED_OPT_STATES_BF16;
    return (ct_step_opts){
        .batch = recipe->training.local_batch_size * recipe->device.count,
        .seq_len = recipe->training.seq_len,
        .num_microbatches = ct_recipe_num_microbatches(recipe),
        .num_devices = recipe->device.count,
        .param_dtype = recipe->training.dtype,
        .moment_dtype = bf16_moments ? CT_DTYPE_BF16 : CT_DTYPE_F32,
        .compute_dtype = recipe->training.mixed_precision_param,
        .remat = {.mode = recipe->activation_checkpoint.mode,
                  .num_save = (int)recipe->activation_checkpoint.save.num_items,
                  .save = recipe->activation_checkpoint.save.items},
        .max_norm = recipe->training.max_norm,
        .adamw = {.beta1 = recipe->optimizer.beta1,
                  .beta2 = recipe->optimizer.beta2,
                  .eps = recipe->optimizer.eps,
                  .weight_decay = recipe->optimizer.weight_decay},
    };
}
