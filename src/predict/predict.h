/* How long one execution of a compiled TPU program will take, predicted from the program alone: docs/prediction.md has
 * the method, its formulas and its limits.
 *
 *   TensorCore   | fusion | start | fusion | kernel |......done| fusion |      what it waits for is exposed
 *   links x, y            |==========================|
 *   host                           |=====|
 *
 * The schedule is walked instruction by instruction: fusions take the compiler's estimated cycles, kernels their FLOPs
 * and bytes, asynchronous operations run beside them over the links, host or memory that they use. Attention kernels
 * have no known speed, so everything is computed at three assumed efficiencies of theirs: low, mid and high.
 *
 * Predictions to compare programs by, on one chip. Nothing here was measured on a TPU.
 */
#ifndef CT_PREDICT_H
#define CT_PREDICT_H

#include "base/arena.h"
#include "chips/chips.h"
#include "formats/json.h"
#include "pjrt/collectives.h"
#include "pjrt/torus.h"
#include "spmd/mesh.h"

/* Seconds at each efficiency of attention kernels. */
typedef struct ct_predict_seconds {
    double at[CT_CHIP_NUM_EFFICIENCIES];
} ct_predict_seconds;

/* What a step's time is spent on. The groups' times add up to the step's. */
typedef enum ct_predict_group {
    CT_PREDICT_MATMUL,      /* fusions that hold a dot or a convolution */
    CT_PREDICT_ELEMENTWISE, /* all other fusions and operations */
    CT_PREDICT_LAYOUT,      /* copies and transposes: fusions that do nothing else, and waiting for copies in memory */
    CT_PREDICT_KERNEL,      /* Mosaic kernels */
    CT_PREDICT_COLLECTIVE,  /* waiting for collectives */
    CT_PREDICT_HOST,        /* waiting for the host */
    CT_PREDICT_NUM_GROUPS
} ct_predict_group;

const char *ct_predict_group_name(ct_predict_group group); /* "matrix products" */
const char *ct_predict_group_key(ct_predict_group group);  /* "matmul" */

/* One instruction of the program, over all its turns. */
typedef struct ct_predict_item {
    const char *name;    /* of the instruction */
    const char *op_name; /* where the program's text has it from; "" if it does not say */
    const char *opcode;
    ct_predict_group group;
    double times;              /* how often it runs */
    double bytes;              /* moved, once: operands and results; of a transfer what is transferred */
    double flops;              /* of a kernel, once; else 0 */
    ct_predict_seconds busy;   /* of what it runs on, all times together */
    ct_predict_seconds waited; /* of it, what the TensorCore spends or waits: its part of the step */
} ct_predict_item;

/* Calls of one kernel. */
typedef struct ct_predict_kernel {
    const char *name;
    bool is_attention;          /* priced at an assumed efficiency; else as the compiler's own matrix products */
    bool has_flops;             /* false: its FLOPs could not be found, and it is priced by its bytes alone */
    double times, flops, bytes; /* flops and bytes of all calls together */
    ct_predict_seconds seconds;
} ct_predict_kernel;

/* A collective, over all its turns. */
typedef struct ct_predict_collective {
    ct_hlo_collective_kind kind;
    const char *name, *op_name;
    const char *axes;  /* "dp_shard_0+dp_shard_1", "x+y", "16 of 64 devices", "between slices" */
    const char *waste; /* as in ct_hlo_collective */
    const char *dtype;
    bool is_async;
    double times;
    double payload_bytes, wire_bytes; /* once, as in ct_hlo_collective */
    ct_predict_seconds busy, exposed; /* busy: of the links, all times together */
} ct_predict_collective;

/* What could not be priced: by kind, so that nothing is dropped. It counts as no time. */
typedef struct ct_predict_unknown {
    const char *what; /* "fusions without an estimate" */
    const char *example;
    double count, bytes; /* executions, and what they move together */
} ct_predict_unknown;

typedef struct ct_predict_opts {
    const ct_chip *chip; /* required */
    /* The device numbers of the program run row-major over the torus, and over the mesh if there is one. Without a
     * torus one is made: ct_predict_torus. Without a mesh the axes are called by the torus' names. */
    const ct_torus *torus;
    const ct_mesh *mesh;
    int64_t num_devices; /* of all slices; 0: as many as the program's collectives name */
    int num_slices;      /* 0: one. Devices are numbered slice by slice; torus and mesh are those of one slice */
    double model_flops;  /* of one step on all devices, for MFU; 0: not known */
    double tokens;       /* of one step on all devices; 0: not known */
} ct_predict_opts;

typedef struct ct_prediction {
    const char *program;
    const ct_chip *chip;
    const char *topology; /* "x4 y4", rings with a star */
    int64_t num_devices;
    ct_predict_seconds step;
    ct_predict_seconds groups[CT_PREDICT_NUM_GROUPS];
    double estimate_seconds; /* the sum of the compiler's estimates, in the step's groups already */

    ct_predict_item *items; /* longest first, by waited at mid efficiency */
    size_t num_items;
    ct_predict_kernel *kernels;
    size_t num_kernels;
    ct_predict_collective *collectives; /* in the order of the program */
    size_t num_collectives;
    double wire_bytes[CT_HLO_COLLECTIVE_NUM_KINDS]; /* that one device sends in a step, by what is sent as executed */
    ct_predict_seconds links_busy, links_exposed;
    double host_bytes; /* to and from host memory */
    ct_predict_seconds host_busy, host_exposed;

    ct_predict_unknown *unknowns;
    size_t num_unknowns;
    const char **notes; /* assumptions that this program needed: a branch taken, a torus guessed, an absurd estimate */
    size_t num_notes;

    double model_flops, tokens;
    double tokens_per_s_chip[CT_CHIP_NUM_EFFICIENCIES]; /* 0: not known */
    double mfu[CT_CHIP_NUM_EFFICIENCIES];               /* of the chip's bf16 peak; 0: not known */
} ct_prediction;

/* Predicts one execution of module; everything is in arena and borrows from module. Errors: INVALID_ARGUMENT for a
 * torus that has not num_devices over num_slices devices, or no slice of the chip with so many. */
CT_MUST_USE ct_status *ct_predict(ct_arena *arena, const ct_hlo_module *module, const ct_predict_opts *opts,
                                  ct_prediction **out_prediction);

/* The torus of a slice: of a shape ("4x4", "v6e:4x4", "2x2x1"), or (NULL) the most compact one of num_devices devices.
 * Errors: INVALID_ARGUMENT for a shape that is none or that the chip has not. */
CT_MUST_USE ct_status *ct_predict_torus(const ct_chip *chip, const char *shape, int64_t num_devices,
                                        ct_torus *out_torus);

/* ---- results ---- */

/* Appends for people to read: the step, its groups, kernels, what is sent, what is not known; unless num_items is 0
 * also every collective and the num_items longest items. */
void ct_prediction_print(const ct_prediction *prediction, size_t num_items, ct_str *out);

/* Writes the members of an object that the caller has begun. num_items as above. */
void ct_prediction_json(const ct_prediction *prediction, size_t num_items, ct_json_writer *writer);

/* Where two programs' predictions differ: the step, each group, and the num_items largest differences by op_name.
 * Errors: INVALID_ARGUMENT for different chips, whose predictions cannot be compared. */
CT_MUST_USE ct_status *ct_prediction_compare(const ct_prediction *a, const ct_prediction *b, size_t num_items,
                                             ct_str *out);

#endif
