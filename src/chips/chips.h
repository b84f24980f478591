/* What is known of each kind of TPU: one table, with its sources. Numbers of a chip's shape and speed stand here and
 * nowhere else; what to do with them (flags, forms of collectives, sizes of blocks) is each module's own.
 *
 * All figures are of one PJRT device, which is a chip, except on v4 and tpu7x, where it is half of one.
 */
#ifndef CT_CHIPS_H
#define CT_CHIPS_H

#include <stdbool.h>

#include "base/macros.h"

/* The number types that matrix units multiply at different speeds. */
typedef enum ct_chip_dtype { CT_CHIP_BF16, CT_CHIP_INT8, CT_CHIP_FP8, CT_CHIP_F32, CT_CHIP_NUM_DTYPES } ct_chip_dtype;

/* How well an attention kernel is assumed to use the matrix units: nobody here has measured, so three stated guesses.
 */
typedef enum ct_chip_efficiency { CT_CHIP_LOW, CT_CHIP_MID, CT_CHIP_HIGH, CT_CHIP_NUM_EFFICIENCIES } ct_chip_efficiency;

typedef struct ct_chip {
    const char *name;    /* "v6e" */
    const char *kind;    /* PJRT's device kind, "TPU v6 lite" */
    const char *sources; /* of the published figures */

    double peak_flops[CT_CHIP_NUM_DTYPES]; /* per second */
    double flops_per_cycle;                /* of bf16 */
    double clock_hz;                       /* of the compiler's estimated_cycles: peak over flops_per_cycle */
    int64_t hbm_bytes;
    int64_t usable_bytes; /* of them, for programs: what libtpu 0.0.52 names when it refuses one */
    double hbm_bytes_per_s;
    int64_t vmem_bytes; /* of one TensorCore */

    int torus_dims;          /* of the links between chips */
    int devices_per_chip;    /* as PJRT counts devices */
    int tensor_cores;        /* of a chip */
    int sparse_cores;        /* of a chip */
    int max_slice_devices;   /* of the largest pod */
    int links;               /* of a chip to its neighbours */
    double link_bytes_per_s; /* one link in one direction, 0.9 of the published peak */
    double die_bytes_per_s;  /* between the devices of one chip, one direction; 0 where there is one device */
    double host_bytes_per_s; /* one direction of the link to the host; 0: not published */
    double dcn_bytes_per_s;  /* one device's share of its host's network between slices */

    /* The rate of the compiler's own estimates of matrix products, over the peak of bf16: what a product inside a
     * kernel is priced at, so that moving one into a kernel does not change its price. The median over the products of
     * layers and heads (docs/prediction.md has the range). */
    double matmul_rate;
    double attention_efficiency[CT_CHIP_NUM_EFFICIENCIES];
} ct_chip;

/* By PJRT's device kind ("TPU v6 lite") or short name ("v6e"). NULL: not a chip of the table, or NULL. */
const ct_chip *ct_chip_find(const char *kind_or_name);

/* All chips, in the order of their years. */
const ct_chip *ct_chips(size_t *out_num_chips);

/* "v4, v5e, v5p, v6e or tpu7x", for messages. */
const char *ct_chip_names(void);

#endif
