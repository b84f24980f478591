/* The names of steps and of what saves leave behind. Only for files in this folder. */
#ifndef CT_CHECKPOINT_STEPS_H
#define CT_CHECKPOINT_STEPS_H

#include "checkpoint/checkpoint.h"

/* "{folder}/step-N.tmp-<pid of this process>", heap. */
char *ct__step_temporary(const char *folder, int64_t step);

/* Removes the temporaries of dead processes and of this one, and undoes a replacement that died half-way. */
CT_MUST_USE ct_status *ct__steps_clean(const char *folder);

/* Puts the finished folder `temporary` in the place of step-N, whether or not that exists, and flushes their parent. */
CT_MUST_USE ct_status *ct__step_install(const char *folder, int64_t step, const char *temporary);

#endif
