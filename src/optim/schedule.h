/* The learning rate's schedule: linear warmup, a stable stretch, decay. TorchTitan's, step for step.
 *
 *   factor
 *     1 |      _________
 *       |    /           \            T = total_steps
 *       |  /               \          W = min(num_warmup_steps, T)
 *   min |/                   \        D = T - W without a decay ratio, else min(round(T * decay_ratio), T - W)
 *       +-----|-----------|---|-> s   S = T + 1 - W - D; the extra step keeps the last learning rate above its minimum
 *        0    W         W + S T
 *
 *   s < W        (s + 1) / W
 *   s < W + S    1
 *   else         min + (1 - min) * x, with p = (s + 1 - W - S) / D and
 *                x = 1 - p (linear), 1 - sqrt(p) (sqrt), (1 + cos(pi p)) / 2 (cosine)
 *
 * Source: torchtitan/components/lr_scheduler.py; Hägele et al. 2024 (warmup, stable, decay).
 */
#ifndef CT_OPTIM_SCHEDULE_H
#define CT_OPTIM_SCHEDULE_H

#include "base/macros.h"

typedef enum ct_lr_decay { CT_LR_DECAY_LINEAR, CT_LR_DECAY_SQRT, CT_LR_DECAY_COSINE } ct_lr_decay;

typedef struct ct_lr_schedule {
    int64_t total_steps; /* > 0 */
    int64_t num_warmup_steps;
    double decay_ratio; /* share of total_steps spent in decay; negative: none given, all that warmup leaves */
    ct_lr_decay decay;
    double min_factor;
} ct_lr_schedule;

/* What the base learning rate is multiplied by in step s, counted from 0: the trainer's first step is s = 0. Beyond
 * total_steps it stays where the decay ends. Plain arithmetic in double precision; any thread. */
double ct_lr_factor(const ct_lr_schedule *schedule, int64_t step);

#endif
