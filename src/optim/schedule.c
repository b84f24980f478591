/* The schedule's formula, evaluated on the host: the factor enters the compiled step as an input. */
#include "optim/schedule.h"

#include <math.h>

static double decayed(ct_lr_decay decay, double progress)
{
    switch (decay) {
    case CT_LR_DECAY_LINEAR: return 1 - progress;
    case CT_LR_DECAY_SQRT: return 1 - sqrt(progress);
    case CT_LR_DECAY_COSINE: return 0.5 * (1 + cos(M_PI * progress));
    }
    CT_BUG("decay %d", (int)decay);
}

double ct_lr_factor(const ct_lr_schedule *schedule, int64_t step)
{
    CT_ASSERT(schedule->total_steps > 0 && step >= 0);
    int64_t total = schedule->total_steps;
    int64_t num_warmup = CT_MIN(schedule->num_warmup_steps, total);
    int64_t num_decay = total - num_warmup;
    if (schedule->decay_ratio >= 0) { /* rounded half to even, as Python does */
        double wanted = nearbyint((double)total * schedule->decay_ratio);
        if (wanted < (double)num_decay) num_decay = (int64_t)wanted;
    }
    int64_t decay_start = total + 1 - num_decay;
    if (step < num_warmup) return (double)(step + 1) / (double)num_warmup;
    if (step < decay_start || num_decay == 0) return 1;
    double progress = CT_MIN((double)(step + 1 - decay_start) / (double)num_decay, 1.0);
    return schedule->min_factor + (1 - schedule->min_factor) * decayed(schedule->decay, progress);
}
