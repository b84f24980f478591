/* The report of ctitan check. */
#include "train/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "train/setup.h"
#include "train/state.h"
#include "train/step.h"

static int count_operations(const char *text)
{
    int count = 0;
    for (const char *p = text; (p = strstr(p, "\"stablehlo.")); p++) count++;
    return count;
}

ct_status *ct_train_report_make(const ct_recipe *recipe, const char *program_path, ct_train_report *out_report)
{
    *out_report = (ct_train_report){0};
    ct_model *model = NULL;
    ct_graph *graph = NULL;
    ct_str text;
    ct_str_init(&text);
    ct_status *status = NULL;
    CT_TRY_OUT(ct_recipe_model(recipe, &model));
    ct_parallel parallel;
    ct_torus torus;
    const char *kind;
    ct_recipe_torus(recipe, &torus, &kind);
    CT_TRY_OUT(ct_recipe_parallel(recipe, model, torus.num_axes, torus.sizes, kind, &parallel));
    ct_step_opts step = ct_recipe_step(recipe, &parallel, kind);
    CT_TRY_OUT(ct_train_step_build(model, &step, &graph));
    CT_TRY_OUT(ct_graph_print(graph, &text));
    out_report->num_params = ct_model_num_params(&model->config, model->family);
    out_report->num_trained = ct_model_num_trained(model);
    out_report->flops_per_token = ct_model_flops_per_token(model, step.seq_len);
    out_report->tokens_per_step = step.batch * step.num_microbatches * step.seq_len;
    out_report->state_bytes_per_device =
        ct_train_state_bytes(model, &parallel, step.param_dtype, step.moment_dtype, &out_report->state_bytes);
    out_report->program_bytes = text.length;
    char *kernels = ct_step_kernels_text(&step, model);
    snprintf(out_report->kernels, sizeof(out_report->kernels), "%s", kernels);
    free(kernels);
    out_report->num_operations = count_operations(text.data);
    if (program_path) status = ct_file_write(program_path, text.data, text.length);
out:
    ct_str_deinit(&text);
    ct_graph_free(graph);
    ct_model_free(model);
    return status;
}
