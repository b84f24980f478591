/* Boxes of tensors. */
#include "checkpoint/box.h"

#include <string.h>

#include "base/alloc.h"
#include "base/box.h"

ct_checkpoint_shard ct__box_whole(const int64_t *sizes, int rank)
{
    ct_checkpoint_shard box = {0};
    for (int i = 0; i < rank; i++) box.sizes[i] = sizes[i];
    return box;
}

int64_t ct__box_volume(const ct_checkpoint_shard *box, int rank)
{
    return ct_num_elements(box->sizes, rank);
}

bool ct__box_within(const ct_checkpoint_shard *box, const int64_t *sizes, int rank)
{
    for (int i = 0; i < rank; i++)
        if (box->offsets[i] < 0 || box->sizes[i] < 0 || box->offsets[i] > sizes[i] ||
            box->sizes[i] > sizes[i] - box->offsets[i])
            return false;
    return true;
}

bool ct__box_intersect(const ct_checkpoint_shard *a, const ct_checkpoint_shard *b, int rank, ct_checkpoint_shard *out)
{
    *out = (ct_checkpoint_shard){0};
    for (int i = 0; i < rank; i++) {
        int64_t begin = CT_MAX(a->offsets[i], b->offsets[i]);
        int64_t end = CT_MIN(a->offsets[i] + a->sizes[i], b->offsets[i] + b->sizes[i]);
        if (begin >= end) return false;
        out->offsets[i] = begin;
        out->sizes[i] = end - begin;
    }
    return true;
}

void ct__box_copy(const ct_checkpoint_shard *part, int rank, size_t element_bytes, const ct_checkpoint_shard *from,
                  const void *from_bytes, const ct_checkpoint_shard *to, void *to_bytes)
{
    int64_t from_offsets[CT_MAX_RANK], to_offsets[CT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        from_offsets[i] = part->offsets[i] - from->offsets[i];
        to_offsets[i] = part->offsets[i] - to->offsets[i];
    }
    ct_box_copy(rank, part->sizes, element_bytes,
                &(ct_box_side){(void *)(uintptr_t)from_bytes, from->sizes, from_offsets},
                &(ct_box_side){to_bytes, to->sizes, to_offsets});
}

ct_status *ct__shards_check(const ct_checkpoint_tensor *tensor)
{
    int64_t volume = (int64_t)ct_dtype_bytes(tensor->dtype), covered = 0;
    for (int i = 0; i < tensor->rank; i++)
        if (tensor->sizes[i] < 0 || !ct_checked_mul(volume, tensor->sizes[i], &volume))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s: its sizes must be positive and its bytes below 2^63",
                            tensor->name);
    for (size_t i = 0; i < tensor->num_shards; i++) {
        const ct_checkpoint_shard *shard = &tensor->shards[i];
        if (!ct__box_within(shard, tensor->sizes, tensor->rank))
            return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s: shard %zu lies outside it", tensor->name, i);
        ct_checkpoint_shard common;
        for (size_t j = 0; j < i; j++)
            if (ct__box_intersect(shard, &tensor->shards[j], tensor->rank, &common))
                return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s: shards %zu and %zu overlap", tensor->name, j, i);
        covered += ct__box_volume(shard, tensor->rank);
    }
    int64_t wanted = ct_num_elements(tensor->sizes, tensor->rank);
    if (tensor->num_shards && covered != wanted)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "tensor %s: its shards must cover %lld elements, but cover %lld",
                        tensor->name, (long long)wanted, (long long)covered);
    return NULL;
}
