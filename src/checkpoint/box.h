/* Boxes of row-major tensors: overlap, cover and copies from one to another. Only for files in this folder. */
#ifndef CT_CHECKPOINT_BOX_H
#define CT_CHECKPOINT_BOX_H

#include "checkpoint/checkpoint.h"

ct_checkpoint_shard ct__box_whole(const int64_t *sizes, int rank);
int64_t ct__box_volume(const ct_checkpoint_shard *box, int rank);
bool ct__box_within(const ct_checkpoint_shard *box, const int64_t *sizes, int rank);

/* The common part of two boxes; false when it is empty. */
bool ct__box_intersect(const ct_checkpoint_shard *a, const ct_checkpoint_shard *b, int rank, ct_checkpoint_shard *out);

/* Copies the box `part`, which lies in both, from the bytes of box `from` to those of box `to`. */
void ct__box_copy(const ct_checkpoint_shard *part, int rank, size_t element_bytes, const ct_checkpoint_shard *from,
                  const void *from_bytes, const ct_checkpoint_shard *to, void *to_bytes);

/* NULL when the tensor's shards lie in it and cover each element exactly once, else INVALID_ARGUMENT naming tensor and
 * shard. Also checks rank and sizes with checked arithmetic. */
CT_MUST_USE ct_status *ct__shards_check(const ct_checkpoint_tensor *tensor);

#endif
