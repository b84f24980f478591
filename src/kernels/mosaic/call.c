/* tpu_custom_call: the module's text in base64 within a JSON configuration. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "graph/custom_call.h"
#include "graph/node.h"
#include "kernels/mosaic/internal.h"

static char *config_of(ct_mosaic *k)
{
    const char *text = ct_mosaic_text(k);
    ct_str config;
    ct_str_init(&config);
    ct_str_append(&config, "{\"custom_call_config\": {\"body\": \"");
    ct_base64_append(&config, text, strlen(text));
    ct_str_printf(&config,
                  "\", \"serialization_format\": 1, \"needs_layout_passes\": true, \"cost_estimate\": "
                  "{\"flops\": %.0f, \"transcendentals\": %.0f, \"bytes_accessed\": %.0f}}",
                  k->flops, k->transcendentals, k->bytes);
    if (k->limit_bytes)
        ct_str_printf(&config, ", \"scoped_memory_configs\": [{\"memory_space\": 1, \"offset\": 0, \"size\": %lld}]",
                      (long long)k->limit_bytes);
    ct_str_append_char(&config, '}');
    return ct_str_release(&config);
}

static ct_dtype dtype_of(ct_mosaic_element element)
{
    return element == CT_MOSAIC_I32 ? CT_DTYPE_S32 : element == CT_MOSAIC_BF16 ? CT_DTYPE_BF16 : CT_DTYPE_F32;
}

/* An array must fit its window: dtype, rank; of prefetched scalars the count. */
static void check(const ct_mosaic *k, const ct_tensor *x, const ct_mosaic_value *window)
{
    bool fits = x->rank == window->rank && x->dtype == dtype_of(window->element);
    if (fits && window->kind == CT_MOSAIC_SMEM) fits = x->axes[0].size == window->sizes[0];
    if (fits) return;
    ct_str type;
    ct_str_init(&type);
    ct__mosaic_print_type(&type, window);
    CT_BUG("%s: %s does not fit the window %s", k->name, ct_tensor_describe(x), type.data);
}

void ct__mosaic_call(const char *loc, ct_mosaic *k, int num_operands, ct_tensor *const *operands, int num_results,
                     ct_tensor *const *results_like, ct_tensor **out_results)
{
    ct_graph *graph = operands[0]->graph;
    bool poison = ct__any_poison(num_operands, operands) || ct__any_poison(num_results, results_like);
    const ct_mosaic_value *args = k->args + k->counts[CT__GRID];
    CT_ASSERT(num_operands == k->counts[CT__PREFETCH] + k->counts[CT__INPUT] && num_results == k->counts[CT__OUTPUT]);
    for (int i = 0; !poison && i < num_operands; i++) check(k, operands[i], &args[i]);
    for (int i = 0; !poison && i < num_results; i++) check(k, results_like[i], &args[num_operands + i]);
    char *config = config_of(k);
    ct_custom_call_opts opts = {.api_version = 1, .config = config, .row_major = true};
    ct__custom_call(loc, graph, "tpu_custom_call", num_operands, operands, num_results, results_like, &opts,
                    out_results);
    free(config);
    ct_mosaic_free(k);
}
