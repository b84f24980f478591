/* Event files: where they lie, and what is in them. */
#include "train/tensorboard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/append.h"
#include "base/file.h"

#define FILE_PREFIX "events.out.tfevents."

struct ct_tensorboard {
    ct_append_file *file;
};

static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Is name "YYYYMMDD-HHMM"? */
static bool is_dated(const char *name)
{
    return strlen(name) == 13 && strspn(name, "0123456789") == 8 && name[8] == '-' &&
           strspn(name + 9, "0123456789") == 4;
}

/* The newest dated folder in folder, heap; NULL when there is none. */
static ct_status *newest_folder(const char *folder, char **out_path)
{
    char **names;
    size_t num_names;
    *out_path = NULL;
    if (!ct_path_is_dir(folder)) return NULL;
    CT_TRY(ct_dir_list(folder, &names, &num_names)); /* sorted, so by time */
    for (size_t i = num_names; i-- > 0 && !*out_path;) {
        if (!is_dated(names[i])) continue;
        *out_path = ct_path_join(folder, names[i]);
        if (ct_path_is_dir(*out_path)) break;
        free(*out_path);
        *out_path = NULL;
    }
    ct_names_free(names, num_names);
    return NULL;
}

static char *dated_folder(const char *folder)
{
    char name[32];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(name, sizeof(name), "%Y%m%d-%H%M", &local);
    return ct_path_join(folder, name);
}

/* The time in a file's name. Readers take files in the order of their names, so it is later than that of any other. */
static ct_status *time_of_file(const char *folder, long long *out_time)
{
    char **names;
    size_t num_names;
    *out_time = (long long)time(NULL);
    CT_TRY(ct_dir_list(folder, &names, &num_names));
    for (size_t i = 0; i < num_names; i++) {
        if (strncmp(names[i], FILE_PREFIX, strlen(FILE_PREFIX)) != 0) continue;
        long long other = strtoll(names[i] + strlen(FILE_PREFIX), NULL, 10);
        if (other < 9999999999) *out_time = CT_MAX(*out_time, other + 1);
    }
    ct_names_free(names, num_names);
    return NULL;
}

ct_status *ct_tensorboard_open(const char *folder, int64_t first_step, ct_tensorboard **out_board)
{
    *out_board = NULL;
    char *dated = NULL, *path = NULL, host[256] = "host";
    ct_status *status = NULL;
    ct_tensorboard *board = ct_alloc_zeroed(1, sizeof(*board));
    ct_str start;
    ct_str_init(&start);
    if (first_step > 1) CT_TRY_OUT(newest_folder(folder, &dated));
    if (!dated) dated = dated_folder(folder);
    CT_TRY_OUT(ct_dir_make(dated));
    long long second;
    CT_TRY_OUT(time_of_file(dated, &second));
    gethostname(host, sizeof(host) - 1);
    path = ct_asprintf("%s/" FILE_PREFIX "%lld.%s.%lld.0", dated, second, host, (long long)getpid());
    CT_TRY_OUT(ct_append_open(path, &board->file));
    ct_event_append_version(&start, wall_time());
    if (first_step > 1) ct_event_append_start(&start, wall_time(), first_step);
    CT_TRY_OUT(ct_append_record(board->file, start.data, start.length));
    *out_board = board;
    board = NULL;
out:
    ct_tensorboard_close(board);
    ct_str_deinit(&start);
    free(dated);
    free(path);
    return status;
}

ct_status *ct_tensorboard_scalars(ct_tensorboard *board, int64_t step, const ct_event_scalar *scalars,
                                  size_t num_scalars)
{
    ct_str event;
    ct_str_init(&event);
    ct_event_append_scalars(&event, wall_time(), step, scalars, num_scalars);
    ct_status *status = ct_append_record(board->file, event.data, event.length);
    ct_str_deinit(&event);
    return status;
}

ct_status *ct_tensorboard_values(ct_tensorboard *board, const ct_metrics_values *values)
{
    const ct_event_scalar scalars[] = {
        {"loss_metrics/global_avg_loss", values->loss},
        {"grad_norm", values->grad_norm},
        {"lr/AdamW", values->lr},
        {"throughput(tps)", values->tps},
        {"tflops", values->tflops},
        {"mfu(%)", values->mfu},
        {"time_metrics/end_to_end(s)", values->step_s},
        {"time_metrics/data_loading(s)", values->data_loading_s},
        {"time_metrics/data_loading(%)", values->step_s > 0 ? 100 * values->data_loading_s / values->step_s : 0},
        {"n_tokens_seen", (double)values->n_tokens_seen},
        {"memory/max_active(GiB)", values->memory_gib},
        {"memory/max_active(%)", values->memory_pct},
    };
    /* the last two are 0 where the plugin does not say */
    size_t count = CT_COUNT(scalars) - (values->memory_gib > 0 ? 0 : 2);
    return ct_tensorboard_scalars(board, values->step, scalars, count);
}

void ct_tensorboard_close(ct_tensorboard *board)
{
    if (!board) return;
    ct_append_close(board->file);
    free(board);
}
