/* Which form a kernel takes: what the recipe asked for, or the best for platform and size. */
#include "kernels/kernel.h"

#include <string.h>

#include "base/log.h"
#include "base/macros.h"
#include "graph/node.h"

/* From here on the lean forms are no slower (benchmarks/attention, benchmarks/loss); below, one matrix is cheaper than
 * many small ones. */
enum { LEAN_ATTENTION_KEYS = 512, LEAN_LOSS_LOGITS = 1 << 22 };

void ct_kernels_attach(ct_graph *graph, const ct_kernels *kernels)
{
    graph->kernels = kernels;
}

const ct_kernels *ct_kernels_of(const ct_graph *graph)
{
    static const ct_kernels none = {.attention = CT_KERNEL_DEFINITION, .loss = CT_KERNEL_DEFINITION, .platform = "cpu"};
    return graph->kernels ? graph->kernels : &none;
}

static ct_kernel_form best_form(const ct_kernels *kernels, bool is_large, const char *large, const char *small,
                                const char **out_why)
{
    if (kernels->platform && !strcmp(kernels->platform, "tpu")) {
        *out_why = "TPU";
        return CT_KERNEL_MOSAIC;
    }
    *out_why = is_large ? large : small;
    return is_large ? CT_KERNEL_PORTABLE : CT_KERNEL_DEFINITION;
}

ct_kernel_form ct_attention_form(const ct_kernels *kernels, int64_t num_keys, const char **out_why)
{
    *out_why = "asked for";
    if (kernels->attention != CT_KERNEL_AUTO) return kernels->attention;
    return best_form(kernels, num_keys >= LEAN_ATTENTION_KEYS, "512 keys or more", "fewer than 512 keys", out_why);
}

ct_kernel_form ct_loss_form(const ct_kernels *kernels, int64_t num_rows, int64_t vocab, const char **out_why)
{
    *out_why = "asked for";
    if (kernels->loss != CT_KERNEL_AUTO) return kernels->loss;
    return best_form(kernels, num_rows >= LEAN_LOSS_LOGITS / vocab, "2^22 logits or more", "fewer than 2^22 logits",
                     out_why);
}

void ct__kernels_fell_back(ct_graph *graph, const char *kernel, const char *why_not)
{
    for (size_t i = 0; i < CT_COUNT(graph->kernels_warned); i++) {
        const char *warned = graph->kernels_warned[i];
        if (warned && !strcmp(warned, kernel)) return;
        if (warned) continue;
        ct_warning("%s takes the portable form: %s", kernel, why_not);
        graph->kernels_warned[i] = kernel;
        return;
    }
}

const char *ct_kernel_form_name(ct_kernel_form form)
{
    static const char *const names[] = {
        [CT_KERNEL_AUTO] = "auto",
        [CT_KERNEL_DEFINITION] = "definition",
        [CT_KERNEL_PORTABLE] = "portable",
        [CT_KERNEL_MOSAIC] = "mosaic",
    };
    return names[form];
}
