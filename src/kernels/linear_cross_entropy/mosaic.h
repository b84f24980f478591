/* Fused linear cross-entropy on TPUs: its kernels as Mosaic text, for the arrays of one device.
 *
 *   x, dx                 [rows dim]     rows padded to whole blocks, with zeros
 *   w, dw                 [vocab dim]    the last block may reach beyond its end
 *   limit                 s32 [1]        columns of w that count; those after it are padding
 *   labels                s32 [1 rows]   columns of w; -1: none of them
 *   lse, picked, ..       f32 [1 rows]   a number per row, along lanes
 *
 * A tile is the logits of a block of the vocabulary (along sublanes) and a block of rows (along lanes), so that sums
 * over the vocabulary are sums of registers. Its products are summed in scratch over blocks of dim.
 */
#ifndef CT_KERNELS_LINEAR_CROSS_ENTROPY_MOSAIC_H
#define CT_KERNELS_LINEAR_CROSS_ENTROPY_MOSAIC_H

#include "kernels/kernel.h"
#include "kernels/mosaic/mosaic.h"

typedef struct ct__loss_mosaic {
    ct_mosaic_element element; /* of x and w: bf16 or f32 */
    int64_t rows, vocab, dim;  /* rows that there are: kernels pad them */
    bool is_padded;            /* limit may be less than vocab */
    double soft_cap;           /* 0: none */
    ct_loss_blocks blocks;
    int64_t vector_bytes; /* what a kernel may take */
} ct__loss_mosaic;

typedef enum ct__loss_kernel { CT__LOSS_FORWARD, CT__LOSS_DX, CT__LOSS_DW, CT__LOSS_KERNELS } ct__loss_kernel;

/* ---- sizes ---- */

/* Blocks of one kernel: as asked for, else tuned for the chip and made to fit its vector memory. */
ct_loss_blocks ct__loss_mosaic_blocks(const ct_kernels *kernels, const ct__loss_mosaic *s, ct__loss_kernel kernel);
/* Vector memory that a kernel takes with s->blocks, by estimate, in bytes. */
int64_t ct__loss_mosaic_bytes(const ct__loss_mosaic *s, ct__loss_kernel kernel);
/* What is wrong with the sizes asked for, naming some that fit; in the graph's memory; NULL: nothing. */
const char *ct__loss_mosaic_bad_blocks(ct_graph *graph, const ct_kernels *kernels, const ct__loss_mosaic *s);

/* ---- kernels, with operands in this order ----
 *
 *   forward   limit x w labels                           -> lse picked; lse -inf where no column counts
 *   dx, dw    limit x w labels lse of_softmax of_label   -> dx, or dw; lse times log2(e)
 *             d = (softmax of_softmax - [label] of_label) times the cap's slope
 *
 * Each pads rows to its own block.
 */
ct_mosaic *ct__loss_mosaic_kernel(const ct__loss_mosaic *s, ct__loss_kernel kernel);
int64_t ct__loss_mosaic_padded(const ct__loss_mosaic *s); /* rows */

#endif
