/* How decoders of attention and feed-forward blocks lie on a mesh: Megatron's tensor parallelism with sequence
 * parallel residuals, FSDP in the stored column.
 * Source: Shoeybi et al. 2019, Korthikanti et al. 2022; TorchTitan's llama3 parallelize plan.
 */
#include "models/family.h"

static const ct_sharding_axis AXES[] = {
    /* axis, activation, stored */
    {"batch", "dp", NULL, false},
    {"seq", "cp", NULL, false},
    {"kv_seq", NULL, NULL, false},
    {"heads", "tp", "tp", false},
    {"kv_heads", "tp_kv", "tp_kv", false},
    {"head_dim", NULL, NULL, false},
    {"ffn", "tp", "tp", false},
    {"vocab", "tp", "tp", true},
    {"dim", NULL, NULL, true},
    {"lora", NULL, NULL, false},
};

static const ct_sharding_point POINTS[] = {
    /* between blocks, and between attention and feed-forward */
    {"residual", "batch=dp seq=cp", .sequence_parallel = "batch=dp seq=cp+tp"},
    /* between an adapter's matrices: small, so it is whole along tp, and what comes of it joins sums that are pending
       there instead of having each made before it is added */
    {"lora", .placement = "batch=dp seq=cp"},
    {"logits", "batch=dp seq=cp vocab=tp", .no_loss_parallel = "batch=dp seq=cp"},
};

const ct_sharding_table ct__decoder_sharding = {
    .axes = AXES,
    .num_axes = CT_COUNT(AXES),
    .points = POINTS,
    .num_points = CT_COUNT(POINTS),
    .fsdp_axes = "vocab dim ffn heads kv_heads",
};
