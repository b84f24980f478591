/* Steps as folders. The one idea: a name step-N only ever appears or changes by rename, when all it holds is on disk.
 */
#include "checkpoint/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"

char *ct_checkpoint_path(const char *folder, int64_t step)
{
    char name[32];
    snprintf(name, sizeof(name), "step-%lld", (long long)step);
    return ct_path_join(folder, name);
}

char *ct__step_temporary(const char *folder, int64_t step)
{
    char name[64];
    snprintf(name, sizeof(name), "step-%lld.tmp-%ld", (long long)step, (long)getpid());
    return ct_path_join(folder, name);
}

/* Digits at *text, as a number, and *text moved behind them; false unless it is written as we write it. */
static bool parse_number(const char **text, int64_t *out_number)
{
    const char *p = *text;
    int64_t number = 0;
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9')) return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (!ct_checked_mul(number, 10, &number) || !ct_checked_add(number, *p - '0', &number)) return false;
    *text = p;
    *out_number = number;
    return true;
}

/* "step-N", "step-N.tmp-PID" or "step-N.old-PID": out_kind is 0, 't' or 'o'. */
static bool parse_name(const char *name, int64_t *out_step, char *out_kind, int64_t *out_process)
{
    *out_kind = 0;
    *out_process = 0;
    if (strncmp(name, "step-", 5) != 0) return false;
    name += 5;
    if (!parse_number(&name, out_step)) return false;
    if (!*name) return true;
    if (strncmp(name, ".tmp-", 5) != 0 && strncmp(name, ".old-", 5) != 0) return false;
    *out_kind = name[1];
    name += 5;
    return parse_number(&name, out_process) && !*name;
}

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

ct_status *ct_checkpoint_list(const char *folder, int64_t **out_steps, size_t *out_num_steps)
{
    *out_steps = NULL;
    *out_num_steps = 0;
    if (!ct_path_exists(folder)) return NULL;
    char **names;
    size_t num_names;
    CT_TRY(ct_dir_list(folder, &names, &num_names));
    int64_t *steps = ct_alloc((num_names + 1) * sizeof(*steps));
    size_t num_steps = 0;
    for (size_t i = 0; i < num_names; i++) {
        int64_t process;
        char kind;
        if (parse_name(names[i], &steps[num_steps], &kind, &process) && !kind) num_steps++;
    }
    qsort(steps, num_steps, sizeof(*steps), compare_steps);
    ct_names_free(names, num_names);
    *out_steps = steps;
    *out_num_steps = num_steps;
    return NULL;
}

ct_status *ct_checkpoint_latest(const char *folder, const ct_checkpoint_open_opts *opts, int64_t *out_step)
{
    *out_step = -1;
    int64_t *steps;
    size_t num_steps;
    CT_TRY(ct_checkpoint_list(folder, &steps, &num_steps));
    ct_status *status = NULL;
    for (size_t i = num_steps; i-- > 0 && *out_step < 0;) {
        ct_checkpoint *checkpoint;
        status = ct_checkpoint_open(folder, steps[i], opts, &checkpoint);
        if (!status) {
            ct_checkpoint_close(checkpoint);
            *out_step = steps[i];
        } else if (i) {
            ct_warning("skipping step %lld: %s", (long long)steps[i], ct_status_message(status));
            ct_status_free(status);
            status = NULL;
        }
    }
    if (status)
        status = ct_status_note(status, "none of the %zu steps in %s can be loaded; move them away to start over",
                                num_steps, folder);
    free(steps);
    return status;
}

static bool is_alive(int64_t process)
{
    if (process == getpid() || process <= 0 || process > INT32_MAX) return false;
    return kill((pid_t)process, 0) == 0 || errno == EPERM;
}

ct_status *ct__steps_clean(const char *folder)
{
    char **names;
    size_t num_names;
    CT_TRY(ct_dir_list(folder, &names, &num_names));
    ct_status *status = NULL;
    for (size_t i = 0; i < num_names && !status; i++) {
        int64_t step, process;
        char kind;
        if (!parse_name(names[i], &step, &kind, &process) || !kind || is_alive(process)) continue;
        char *leftover = ct_path_join(folder, names[i]), *final = ct_checkpoint_path(folder, step);
        if (kind == 'o' && !ct_path_exists(final)) {
            if (rename(leftover, final)) status = ct_errno_error("cannot rename %s to %s", leftover, final);
        } else {
            status = ct_dir_remove(leftover);
        }
        free(leftover);
        free(final);
    }
    ct_names_free(names, num_names);
    return status;
}

/* Renames temporary over an existing folder: in one exchange where the file system can, else through step-N.old-PID,
 * which ct__steps_clean puts back if we die between the two renames. */
static ct_status *replace(const char *folder, int64_t step, const char *temporary, const char *final)
{
    const char *replaced = temporary;
    char *old = ct_asprintf("%s.old-%ld", final, (long)getpid());
    ct_status *status = NULL;
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, final, RENAME_EXCHANGE)) {
        replaced = old;
        if (errno != EINVAL && errno != ENOSYS)
            status = ct_errno_error("cannot exchange %s and %s", temporary, final);
        else if (rename(final, old))
            status = ct_errno_error("cannot rename %s to %s", final, old);
        else if (rename(temporary, final))
            status = ct_errno_error("cannot rename %s to %s", temporary, final);
        if (status && !ct_path_exists(final) && rename(old, final))
            status = ct_status_note(status, "the step before is now %s", old);
    }
    if (!status) status = ct_dir_sync(folder);
    if (!status) {
        ct_status *removed = ct_dir_remove(replaced);
        if (removed)
            ct_warning("step %lld was saved, but what it replaced is left: %s", (long long)step,
                       ct_status_message(removed));
        ct_status_free(removed);
    }
    free(old);
    return status;
}

ct_status *ct__step_install(const char *folder, int64_t step, const char *temporary)
{
    char *final = ct_checkpoint_path(folder, step);
    ct_status *status;
    if (ct_path_exists(final))
        status = replace(folder, step, temporary, final);
    else if (rename(temporary, final))
        status = ct_errno_error("cannot rename %s to %s", temporary, final);
    else
        status = ct_dir_sync(folder);
    free(final);
    return status;
}

/* Under a temporary's name first, so that what is left of it after a crash is taken for one and cleared. */
static ct_status *remove_step(const char *folder, int64_t step)
{
    char *final = ct_checkpoint_path(folder, step), *temporary = ct__step_temporary(folder, step);
    ct_status *status = ct_dir_remove(temporary);
    if (!status && rename(final, temporary)) status = ct_errno_error("cannot rename %s to %s", final, temporary);
    if (!status) status = ct_dir_remove(temporary);
    free(final);
    free(temporary);
    return status;
}

ct_status *ct_checkpoint_purge(const char *folder, int64_t newest_step, int64_t keep)
{
    int64_t *steps;
    size_t num_steps;
    CT_TRY(ct_checkpoint_list(folder, &steps, &num_steps));
    ct_status *status = NULL;
    int64_t num_kept = 1;
    for (size_t i = num_steps; i-- > 0 && !status;) {
        if (steps[i] >= newest_step) continue;
        if (num_kept >= keep) {
            status = remove_step(folder, steps[i]);
            continue;
        }
        ct_checkpoint *checkpoint;
        ct_status *broken = ct_checkpoint_open(folder, steps[i], NULL, &checkpoint);
        if (!broken) num_kept++;
        ct_status_free(broken);
        ct_checkpoint_close(checkpoint);
    }
    free(steps);
    return status;
}
