/* The rules of SimpleFSDP, checked collective by collective. */
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct {
    const traffic_rules *rules;
    ct_str *out;
    size_t num_problems;
    int64_t *gathers, *scatters; /* per weight, seen so far */
} checker;

static void problem(checker *c, const ct_hlo_collective *item, const char *what)
{
    ct_str_printf(c->out, "%s: %s %s of %lld elements of %s, %lld times (%s)\n", what,
                  ct_hlo_collective_kind_name(item->kind), item->name, (long long)item->num_elements, item->dtype,
                  (long long)item->times, item->op_name);
    c->num_problems++;
}

/* The weight of which item moves a part: item's size is the weight's, divided by some of the FSDP axes. libtpu pads
 * what it scatters by up to 7%. -1: none. *out_whole says whether it is the whole weight. */
static int find_weight(const traffic_rules *rules, const ct_hlo_collective *item, bool may_pad, bool *out_whole)
{
    for (size_t i = 0; i < rules->num_weights; i++)
        for (int subset = 0; subset < 1 << rules->num_fsdp_axes; subset++) {
            int64_t part = rules->weights[i];
            for (int a = 0; a < rules->num_fsdp_axes; a++)
                if (subset >> a & 1) part /= rules->sizes[a];
            bool fits = item->num_elements == part ||
                        (may_pad && item->num_elements > part && (double)item->num_elements < 1.07 * (double)part);
            *out_whole = !subset;
            if (fits) return (int)i;
        }
    return -1;
}

static void check_fsdp(checker *c, const ct_hlo_collective *item)
{
    bool whole, gathers = item->kind == CT_HLO_COLLECTIVE_ALL_GATHER;
    int weight = find_weight(c->rules, item, !gathers, &whole);
    if (weight < 0) {
        problem(c, item, "no weight has this size");
    } else {
        if (whole) (gathers ? c->gathers : c->scatters)[weight] += item->times;
        if (strcmp(item->dtype, "bf16")) problem(c, item, "not in bf16");
    }
}

size_t traffic_check(const ct_hlo_traffic *traffic, const traffic_rules *rules, ct_str *out_problems)
{
    checker c = {.rules = rules,
                 .out = out_problems,
                 .gathers = ct_alloc_zeroed(rules->num_weights, sizeof(int64_t)),
                 .scatters = ct_alloc_zeroed(rules->num_weights, sizeof(int64_t))};
    double total = 0, small = 0, permuted = 0;
    int64_t activations[CT_HLO_COLLECTIVE_NUM_KINDS] = {0};
    int fsdp_mask = (1 << rules->num_fsdp_axes) - 1;
    if (traffic->num_unknown_senders) {
        ct_str_printf(out_problems, "the turns of %zu loops with collectives are not known\n",
                      traffic->num_unknown_senders);
        c.num_problems++;
    }
    for (size_t i = 0; i < traffic->num_items; i++) {
        const ct_hlo_collective *item = &traffic->items[i];
        double wire = (double)item->wire_bytes * (double)item->times;
        int axes = ct_hlo_collective_axes(item, rules->num_axes, rules->sizes);
        total += wire;
        if (item->kind == CT_HLO_COLLECTIVE_PERMUTE) {
            permuted += wire;
        } else if (item->waste) {
            problem(&c, item,
                    strcmp(item->waste, "all-gather") ? "an all-reduce where a reduce-scatter would do"
                                                      : "an all-reduce where an all-gather would do");
        } else if (item->kind == CT_HLO_COLLECTIVE_ALL_REDUCE && item->num_elements <= rules->small_elements) {
            small += wire;
        } else if (axes < 0) {
            problem(&c, item, "along no axes of the mesh");
        } else if (!(axes & fsdp_mask) && item->num_elements == rules->activation_elements) {
            activations[item->kind] += item->times;
        } else if (item->kind == CT_HLO_COLLECTIVE_ALL_REDUCE) {
            problem(&c, item, "an all-reduce of more than norms and scalars");
        } else if (item->kind == CT_HLO_COLLECTIVE_ALL_TO_ALL || axes & ~fsdp_mask) {
            problem(&c, item, "not asked for");
        } else {
            check_fsdp(&c, item);
        }
    }
    for (size_t i = 0; i < rules->num_weights; i++)
        if (c.gathers[i] != rules->gathers[i] || c.scatters[i] != rules->scatters[i]) {
            ct_str_printf(out_problems,
                          "the weights of %lld elements are gathered %lld times and scattered %lld times, wanted %lld "
                          "and %lld\n",
                          (long long)rules->weights[i], (long long)c.gathers[i], (long long)c.scatters[i],
                          (long long)rules->gathers[i], (long long)rules->scatters[i]);
            c.num_problems++;
        }
    if (activations[CT_HLO_COLLECTIVE_ALL_GATHER] != rules->num_activation_gathers ||
        activations[CT_HLO_COLLECTIVE_REDUCE_SCATTER] != rules->num_activation_scatters ||
        activations[CT_HLO_COLLECTIVE_ALL_REDUCE] != rules->num_activation_reduces) {
        ct_str_printf(
            out_problems,
            "activations are gathered, scattered and reduced %lld, %lld and %lld times, wanted %lld, %lld and "
            "%lld\n",
            (long long)activations[CT_HLO_COLLECTIVE_ALL_GATHER],
            (long long)activations[CT_HLO_COLLECTIVE_REDUCE_SCATTER],
            (long long)activations[CT_HLO_COLLECTIVE_ALL_REDUCE], (long long)rules->num_activation_gathers,
            (long long)rules->num_activation_scatters, (long long)rules->num_activation_reduces);
        c.num_problems++;
    }
    if (small > 0.01 * total || permuted > 0.05 * total) {
        ct_str_printf(out_problems, "of %.0f bytes on the wire %.0f are small all-reduces and %.0f permutes\n", total,
                      small, permuted);
        c.num_problems++;
    }
    free(c.gathers);
    free(c.scatters);
    return c.num_problems;
}
