/* Plans: a recipe's training step, compiled for devices that need not be here, and what that says: does it fit, how
 * long will it take, where does the time go, what would have to change.
 *
 *   recipe --- child process: graph, libtpu ---> entry on disk (program, memory, seconds) --- predict ---> ct_plan
 *                                                  ^ kept by everything that decides what is compiled
 *
 * Compiling happens in a child process (base/child.h), so this one must have no threads and no plugin when it is asked
 * to: memory and time are then those of one compilation, and a compiler that aborts is an error like others.
 * Plans are read-only once made; a plan owns all that it points to, but not its recipe.
 */
#ifndef CT_PLAN_H
#define CT_PLAN_H

#include "plan/entry.h"
#include "predict/predict.h"
#include "train/recipe.h"
#include "train/session.h"

/* What only the command knows. The first runs in the child and may change the environment. */
typedef struct ct_plan_host {
    /* How to open the recipe's devices or, if is_offline, libtpu to compile for them. */
    ct_session_opts (*session)(void *context, ct_arena *arena, const ct_recipe *recipe, bool is_offline);
    void (*progress)(void *context, const char *what, double seconds); /* about once a second; may be NULL */
    void *context;
} ct_plan_host;

typedef struct ct_plan_opts {
    ct_plan_host host;
    const char *folder;    /* where entries are kept; NULL: nowhere */
    bool recompile;        /* even if there is an entry */
    const char *save_path; /* NULL, or where the executable goes, for compile.executable */
    int num_lines;         /* of lists of the largest; 0: 10 */
} ct_plan_opts;

/* An array that lies in memory when most of it is in use. */
typedef struct ct_plan_array {
    const char *name;  /* of the parameter, or where the program's text has it from */
    const char *shape; /* of all alike, one of them */
    int64_t bytes;     /* of all alike */
    int count;
    bool is_argument;
} ct_plan_array;

typedef enum ct_plan_verdict {
    CT_PLAN_FITS,
    CT_PLAN_TOO_LARGE,        /* compiled, but more than a device has, or refused for that */
    CT_PLAN_KERNEL_TOO_LARGE, /* refused: a kernel takes more vector memory than it may; used and usable are of that */
    CT_PLAN_UNKNOWN,          /* how much memory a device has is not known */
} ct_plan_verdict;

/* A change of the recipe that may make it fit, or did. */
typedef struct ct_plan_change {
    const char *text;     /* "activation_checkpoint.mode = \"full\"" */
    const char *override; /* "--activation_checkpoint.mode=full" */
    int64_t bytes;        /* of a device, after it: estimated or compiled; 0: not known */
    bool is_compiled, fits;
} ct_plan_change;

typedef struct ct_plan {
    ct_arena arena;
    const char *name;  /* the recipe's file, or the program's */
    const char *model; /* "llama3 8B"; NULL for a program without a recipe */
    const char *kernels;
    int64_t num_params;
    double flops_per_token, tokens, model_flops; /* of a step; 0: not known */
    double state_bytes;                          /* of parameters and moments on one device */
    const ct_plan_entry *compiled;               /* NULL for a program from a file */

    ct_plan_verdict verdict;
    int64_t used_bytes, usable_bytes; /* of one device */
    ct_plan_array *arrays;            /* largest first */
    size_t num_arrays;
    ct_plan_change *changes; /* when it does not fit, nearest first */
    size_t num_changes;

    const ct_hlo_module *module; /* NULL for a refused program */
    ct_prediction *prediction;   /* NULL: see why_no_prediction */
    const char *why_no_prediction;
    const ct_hlo_traffic *traffic; /* what is sent, when there is no prediction that says so; NULL without a program */
    ct_mesh mesh;                  /* of the recipe */
    const char **notes;
    size_t num_notes;
} ct_plan;

/* Builds, compiles (or finds) and predicts the recipe's step: for device.topology if there is one, else for the devices
 * of device.platform. A program that is too large is a plan whose verdict says so. Errors: those of the model and mesh,
 * of the plugin, and the compiler's for other reasons. */
CT_MUST_USE ct_status *ct_plan_make(const ct_recipe *recipe, const ct_plan_opts *opts, ct_plan **out_plan);

/* A compiled program of whatever origin, from a file as ct_hlo_read_file takes it, on a chip ("v6e") or slice
 * ("v6e:4x4"). Errors: INVALID_ARGUMENT for the chip; those of reading. */
CT_MUST_USE ct_status *ct_plan_from_program(const char *path, const char *chip_or_slice, int num_slices,
                                            ct_plan **out_plan);

void ct_plan_free(ct_plan *plan); /* NULL is allowed */

/* Fills plan->changes: what may make it fit by estimate, nearest first, and compiles them in that order until one fits
 * or seconds are spent. Nothing to do if it fits. */
CT_MUST_USE ct_status *ct_plan_find_changes(ct_plan *plan, const ct_recipe *recipe, const ct_plan_opts *opts,
                                            double seconds);

/* For people to read. */
void ct_plan_print(const ct_plan *plan, const ct_plan_opts *opts, ct_str *out);
/* One object; key is the member's name, NULL in an array and at the top. */
void ct_plan_json(const ct_plan *plan, const ct_plan_opts *opts, const char *key, ct_json_writer *writer);

#endif
