#include "plan/fit.h"

#include <stdlib.h>
#include <string.h>

/* "24.27G": binary units. 0 if it is no size. */
static int64_t parse_size(const char *text)
{
    char *end;
    double number = strtod(text, &end);
    const char *units = "BKMGT", *unit = *end ? strchr(units, *end) : NULL;
    if (end == text || !unit || number <= 0 || number > 1e6) return 0;
    for (; unit > units; unit--) number *= 1024;
    return (int64_t)number;
}

/* The size after the last of two marks. */
static int64_t size_after(const char *message, const char *mark, const char *next)
{
    const char *at = strstr(message, mark);
    if (at && next) at = strstr(at + strlen(mark), next);
    return at ? parse_size(at + strlen(next ? next : mark)) : 0;
}

ct__plan_refusal ct__plan_parse_refusal(const char *message)
{
    if (strstr(message, "memory space vmem") || strstr(message, "ScopedVmem"))
        return (ct__plan_refusal){.is_kernel = true,
                                  .wanted_bytes = size_after(message, "llocation with size ", NULL),
                                  .usable_bytes = size_after(message, "llocation with size ", "limit ")};
    int64_t wanted = size_after(message, "total memory required", "(");
    if (wanted)
        return (ct__plan_refusal){.wanted_bytes = wanted,
                                  .usable_bytes = size_after(message, "exceeds available", "("),
                                  .is_temp = strstr(message, "HLO temporaries") != NULL};
    return (ct__plan_refusal){.wanted_bytes = size_after(message, "Used ", NULL),
                              .usable_bytes = size_after(message, "Used ", " of ")};
}

void ct__plan_judge(ct_plan *plan)
{
    const ct_plan_entry *entry = plan->compiled;
    const ct_executable_memory *memory = &entry->memory;
    const ct_chip *chip = ct_chip_find(entry->kind);
    plan->usable_bytes = chip ? chip->usable_bytes : 0;
    if (entry->refusal) {
        ct__plan_refusal refusal = ct__plan_parse_refusal(entry->refusal);
        if (refusal.usable_bytes || refusal.is_kernel) plan->usable_bytes = refusal.usable_bytes;
        plan->used_bytes = refusal.wanted_bytes + (refusal.is_temp ? (int64_t)plan->state_bytes : 0);
        plan->verdict = refusal.is_kernel ? CT_PLAN_KERNEL_TOO_LARGE : CT_PLAN_TOO_LARGE;
        return;
    }
    plan->used_bytes =
        memory->argument_bytes + memory->temp_bytes + memory->output_bytes - memory->alias_bytes + memory->code_bytes;
    plan->verdict = !plan->usable_bytes                      ? CT_PLAN_UNKNOWN
                    : plan->used_bytes <= plan->usable_bytes ? CT_PLAN_FITS
                                                             : CT_PLAN_TOO_LARGE;
}
