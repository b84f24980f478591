/* The event files of a run, for TensorBoard: the steps of metrics.jsonl, under TorchTitan's tags.
 *
 *   {folder}/20261203-0131/events.out.tfevents.1796261475.host.4711.0       a start
 *                          events.out.tfevents.1796265075.host.4802.0       the run, resumed: the same folder
 *
 * A resumed file begins with the step that it goes on at, and readers drop what is known of that step and later ones
 * from the file before. Not thread-safe.
 */
#ifndef CT_TRAIN_TENSORBOARD_H
#define CT_TRAIN_TENSORBOARD_H

#include "formats/event_file.h"
#include "train/metrics.h"

typedef struct ct_tensorboard ct_tensorboard;

/* Makes a folder named by the time in folder, or takes the newest of such when first_step > 1, and a file in it.
 * Errors: those of files. */
CT_MUST_USE ct_status *ct_tensorboard_open(const char *folder, int64_t first_step, ct_tensorboard **out_board);

/* The values of a log line. On a full disk they wait, as with metrics.jsonl. Errors: those of writing. */
CT_MUST_USE ct_status *ct_tensorboard_values(ct_tensorboard *board, const ct_metrics_values *values);

/* Other scalars of a step. */
CT_MUST_USE ct_status *ct_tensorboard_scalars(ct_tensorboard *board, int64_t step, const ct_event_scalar *scalars,
                                              size_t num_scalars);

void ct_tensorboard_close(ct_tensorboard *board); /* NULL is allowed */

#endif
