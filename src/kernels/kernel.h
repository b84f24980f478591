/* Which implementation of a kernel a program uses.
 *
 *   definition   naive, differentiated by autodiff; in f64 the oracle of the tests
 *   portable     StableHLO, lean in memory, with a derivative of its own; on every plugin
 *   mosaic       TPU: Mosaic text in tpu_custom_call, made by this library; at local sizes
 *
 * A program's choice is attached to its graph before anything is built. Without one everything is the definition. What
 * is asked for and cannot be had is the graph's error, which says why; AUTO takes the best that can be had.
 */
#ifndef CT_KERNELS_KERNEL_H
#define CT_KERNELS_KERNEL_H

#include "graph/graph.h"

typedef enum ct_kernel_form {
    CT_KERNEL_AUTO,
    CT_KERNEL_DEFINITION,
    CT_KERNEL_PORTABLE,
    CT_KERNEL_MOSAIC
} ct_kernel_form;

/* Blocks of attention, in rows of queries and keys; 0: tuned for the chip. TorchTitan's splash_attention_kernel.sa_*.
 */
typedef struct ct_attention_blocks {
    int64_t q, kv, kv_compute;             /* forward */
    int64_t q_dkv, kv_dkv, kv_dkv_compute; /* backward: gradients of keys and values, all of them when fused */
    int64_t q_dq, kv_dq;                   /* gradient of queries, when not fused */
    bool separate_backward;                /* two kernels in place of the fused one */
} ct_attention_blocks;

/* Tiles of the fused linear cross-entropy; 0: tuned for the chip. TorchTitan's loss_kernel.loss_{b,h,v}_block_size. */
typedef struct ct_loss_blocks {
    int64_t rows, hidden, vocab;
} ct_loss_blocks;

typedef struct ct_kernels {
    ct_kernel_form attention, loss;
    const char *platform; /* "cpu", "cuda", "tpu" */
    const char *chip;     /* TPU: "v5e", "v5p", "v6e", "tpu7x"; NULL: not known */
    ct_attention_blocks attention_blocks;
    ct_loss_blocks loss_blocks;
    int64_t vector_bytes; /* of TPU vector memory that a kernel may take; 0: the chip's */
} ct_kernels;

/* kernels must outlive the graph. */
void ct_kernels_attach(ct_graph *graph, const ct_kernels *kernels);
const ct_kernels *ct_kernels_of(const ct_graph *graph); /* never NULL */

/* The form to take at these sizes and why, for the log: "asked for", or what decided where AUTO is asked for. */
ct_kernel_form ct_attention_form(const ct_kernels *kernels, int64_t num_keys, const char **out_why);
ct_kernel_form ct_loss_form(const ct_kernels *kernels, int64_t num_rows, int64_t vocab, const char **out_why);

/* Warns, once for a graph and kernel (a literal), that AUTO's best form cannot be had. */
void ct__kernels_fell_back(ct_graph *graph, const char *kernel, const char *why_not);

const char *ct_kernel_form_name(ct_kernel_form form);

#endif
