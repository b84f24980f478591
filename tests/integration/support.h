/* What the integration tests share: a folder of files, the built command as a child process, and what it left behind as
 * numbers. A failure of these functions fails the test that called them.
 */
#ifndef CT_TESTS_INTEGRATION_SUPPORT_H
#define CT_TESTS_INTEGRATION_SUPPORT_H

#include "base/testing.h"

#include <sys/types.h>

#include "base/dtype.h"
#include "checkpoint/checkpoint.h"
#include "formats/safetensors.h"

#define CT_TEST_GOLDEN CT_SOURCE_DIR "/tests/golden"

/* ---- files ---- */

/* The folder of the test program, made when first asked for. Compiled programs are cached in it. */
const char *ct_test_world(void);
int ct_test_world_free(void **state); /* as the group's teardown */

/* "{world}/" and the formatted rest; lives as long as the world. */
char *ct_test_path(const char *format, ...) CT_PRINTF(1, 2);
/* Writes a formatted text to path, making its folder. */
void ct_test_write(const char *path, const char *format, ...) CT_PRINTF(2, 3);
/* The bytes of path, heap; fails when it is absent. */
char *ct_test_read(const char *path, size_t *out_size);
/* Does the folder hold a name that begins so? */
bool ct_test_folder_has(const char *folder, const char *prefix);

/* ---- the command ---- */

typedef struct ct_test_run {
    pid_t process;
    int code;         /* exit code, or 128 + signal */
    char *out, *err;  /* what it printed, on stdout and stderr */
    double seconds;   /* from start to end */
    int64_t peak_kib; /* of resident memory */
    char *out_path, *err_path;
    double started_s;
} ct_test_run;

/* Starts build/ctitan with arguments that are separated by spaces; _wait collects it, killing it after five minutes. */
ct_test_run ct_test_start(const char *format, ...) CT_PRINTF(1, 2);
void ct_test_wait(ct_test_run *run);
void ct_test_run_free(ct_test_run *run);

/* Runs the command to its end; it must exit with 0. */
void ct_test_ok(const char *format, ...) CT_PRINTF(1, 2);
/* Runs the command; it must exit with the code, and stderr hold the text. */
void ct_test_fails(int code, const char *text, const char *format, ...) CT_PRINTF(3, 4);
/* The same of a run that ended. */
void ct_test_expect(const ct_test_run *run, int code, const char *text);

/* ---- numbers ---- */

/* A tensor of a file as f64, heap. */
typedef struct ct_test_values {
    double *data;
    int64_t count;
} ct_test_values;
ct_test_values ct_test_tensor(const ct_safetensors *file, const char *name);
/* A tensor of a checkpoint, as its own bytes. */
ct_array ct_test_checkpoint_array(const ct_checkpoint *checkpoint, const char *name);
ct_test_values ct_test_checkpoint_tensor(const ct_checkpoint *checkpoint, const char *name);

/* The largest difference, relative to the largest expected value; infinite when any found value is not finite. */
double ct_test_error(const double *found, const double *expected, int64_t count);
/* That error must be at most tolerance; the largest seen so far is kept in *worst (may be NULL). */
void ct_test_close(const char *what, ct_test_values found, ct_test_values expected, double tolerance, double *worst);

/* One line of metrics.jsonl. */
typedef struct ct_test_step {
    int64_t step, n_tokens_seen;
    double loss, grad_norm, lr;
} ct_test_step;
/* All lines of steps, heap; those of validations, which have step and loss alone. */
ct_test_step *ct_test_metrics(const char *dump_folder, size_t *out_count);
ct_test_step *ct_test_validations(const char *dump_folder, size_t *out_count);

/* Writes model/, the configuration of a small Llama, and documents.jsonl, texts of 5 to 33 letters, to the test's
 * folder. */
#define CT_TEST_NUM_DOCUMENTS 12
void ct_test_documents(void);

/* ---- PyTorch's values of tests/golden; tolerances are those of its README.md ---- */

#define CT_TEST_FORWARD    1e-5
#define CT_TEST_GRADIENTS  1e-4
#define CT_TEST_PARAMETERS 2e-4

ct_safetensors *ct_test_reference(const char *model);
/* Five steps in dump_folder against the reference: losses and norms, worst in worst[0]; parameters of
 * checkpoint/step-5, worst in worst[1]. Returns how many parameters.
 *
 * first_step (may be NULL): a checkpoint of step 1 anywhere, for what float32 cannot tell: AdamW's first update is
 * lr g / (|g| + eps), so an element whose g is not above eps takes the noise of g, which is that of the sum that g is,
 * about an ulp of the largest g, into its place. It is allowed that much more. */
int ct_test_compare_training(const char *dump_folder, const ct_safetensors *reference, const ct_checkpoint *first_step,
                             double worst[2]);

/* All tensors of two checkpoints must have the same bits, and their info be the same text. */
void ct_test_same_checkpoints(const char *folder_a, const char *folder_b, int64_t step);

#endif
