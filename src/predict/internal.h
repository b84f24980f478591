/* The parts of a prediction: instructions are priced (price.c, kernel.c, network.c), then run (timeline.c). */
#ifndef CT_PREDICT_INTERNAL_H
#define CT_PREDICT_INTERNAL_H

#include "predict/predict.h"

/* What asynchronous operations use, each of them one at a time: an index of ct__sim_clock.free_at. */
enum {
    CT__LINK = 0, /* + 2 * torus axis + direction */
    CT__MEMORY = 2 * CT_TORUS_MAX_AXES,
    CT__HOST_IN,
    CT__HOST_OUT,
    CT__SLICES,
    CT__SPARSE,
    CT__NUM_RESOURCES
};

typedef enum ct__role {
    CT__FREE,     /* takes no time */
    CT__COMPUTE,  /* keeps the TensorCore busy */
    CT__TRANSFER, /* a synchronous collective or transfer: the TensorCore waits for all of it */
    CT__START,    /* begins something beside the TensorCore */
    CT__DONE,     /* waits for it */
    CT__LOOP,
    CT__BRANCH,
    CT__CALL,
} ct__role;

typedef struct ct__priced {
    const ct_hlo_instruction *at;
    ct__role role;
    ct_predict_group group;
    double compute;     /* seconds of the TensorCore that do not depend on the efficiency */
    double at_peak;     /* seconds of the rest at the matrix units' peak: over the efficiency of attention */
    double least;       /* seconds that it takes at any efficiency: its bytes */
    double seconds;     /* of resources, once */
    unsigned resources; /* bit per resource */
    double bytes, flops;
    int64_t turns;                            /* of a loop; -1: not known */
    struct ct__priced *start;                 /* of DONE */
    bool continues;                           /* a fusion that moves on a collective which another has started */
    size_t first_collective, num_collectives; /* in ct_prediction.collectives */
    size_t kernel;                            /* of ct_prediction.kernels, from 1; 0: none */

    double finish; /* while it is simulated */
    double times;
    ct_predict_seconds busy, waited;
} ct__priced;

typedef struct ct__sim {
    ct_arena *arena;
    const ct_hlo_module *module;
    const ct_predict_opts *opts;
    const ct_chip *chip;
    ct_torus torus;
    ct_mesh torus_mesh; /* the torus as a mesh */
    int64_t num_devices, slice_devices;
    ct_prediction *result;
    ct__priced **priced; /* [computation][instruction] */
    size_t collective_capacity, kernel_capacity, unknown_capacity, note_capacity;
    int efficiency;      /* that is being simulated */
    ct__priced **flying; /* what has been started and may not have ended */
    size_t num_flying, flying_capacity;
} ct__sim;

/* Grows an array of the arena for one more element. */
void *ct__grow(ct_arena *arena, void *array, size_t count, size_t *capacity, size_t element_bytes);

void ct__note(ct__sim *sim, const char *format, ...) CT_PRINTF(2, 3);
/* times executions of something without a price. */
void ct__unknown(ct__sim *sim, const char *what, const char *example, double times, double bytes);

/* Sets everything of `to` but what the simulation finds. */
void ct__price(ct__sim *sim, const ct_hlo_computation *computation, const ct_hlo_instruction *at, ct__priced *to);

/* The same of an asynchronous operation, launched by `at`: a start, or an update that hands operands to one. */
void ct__price_start(ct__sim *sim, const ct_hlo_computation *computation, const ct_hlo_instruction *at, ct__priced *to);

/* Adds the collectives that `at` runs to the result and their time and resources to `to`. False: it has none. */
bool ct__price_collectives(ct__sim *sim, const ct_hlo_computation *computation, const ct_hlo_instruction *at,
                           ct__priced *to);

/* The instruction that sets off what a "-done" waits for. */
const ct_hlo_instruction *ct__launch_of(const ct_hlo_instruction *done);

/* A call of a Mosaic kernel. */
typedef struct ct__kernel_cost {
    const char *name;
    bool is_attention, has_flops;
    double flops, f32_flops, bytes; /* the second: of them, with operands of f32 */
} ct__kernel_cost;
void ct__kernel_cost_of(ct_arena *arena, const ct_hlo_instruction *call, ct__kernel_cost *out_cost);

/* Counts of a Mosaic module in text: what its products multiply over the whole grid, and the bytes of its windows as
 * they move. False: not such a text, or its control flow cannot be followed. */
typedef struct ct__body_count {
    char name[96];
    double flops, f32_flops; /* the second: of them, with operands of f32 */
    double window_bytes;     /* 0: not known, the windows' places depend on memory */
    bool is_exact;           /* no product stands under a condition that depends on memory */
} ct__body_count;
bool ct__body_count_of(const char *text, size_t length, ct__body_count *out_count);

/* Runs the priced program at sim->efficiency; adds to what the instructions have so far. Seconds of one execution. */
double ct__simulate(ct__sim *sim);

/* The priced instructions of a computation of the module; NULL: not of it. */
ct__priced *ct__priced_of(const ct__sim *sim, const ct_hlo_computation *computation);

#endif
