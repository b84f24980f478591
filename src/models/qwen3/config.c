/* Qwen3 dense sizes. Source: TorchTitan's qwen3 flavors, which are Alibaba's; demo and bench30m are ours. */
#include "models/qwen3/qwen3.h"

#define SIZE(name, d, l, h, kv, hd, f, v, ctx, t)                                                                      \
    {                                                                                                                  \
        .flavor = name, .dim = d, .num_layers = l, .num_heads = h, .num_kv_heads = kv, .head_dim = hd, .ffn_dim = f,   \
        .vocab_size = v, .max_seq_len = ctx, .tied = t, .norm_eps = 1e-6, .rope = {                                    \
            .theta = 1e6                                                                                               \
        }                                                                                                              \
    }

const ct_model_config ct__qwen3_flavors[] = {
    /*   flavor       dim  layers heads kv head_dim  ffn   vocab  context  tied */
    SIZE("demo", 192, 4, 6, 2, 32, 512, 2048, 1024, true),
    SIZE("bench30m", 512, 8, 8, 4, 64, 1536, 8192, 4096, true),
    SIZE("debugmodel", 256, 8, 16, 8, 128, 3072, 2048, 4096, true),
    SIZE("0.6B", 1024, 28, 16, 8, 128, 3072, 151936, 40960, true),
    SIZE("1.7B", 2048, 28, 16, 8, 128, 6144, 151936, 40960, true),
    SIZE("4B", 2560, 36, 32, 8, 128, 9728, 151936, 40960, true),
    SIZE("8B", 4096, 36, 32, 8, 128, 12288, 151936, 40960, false),
    SIZE("14B", 5120, 40, 40, 8, 128, 17408, 151936, 40960, false),
    SIZE("32B", 5120, 64, 64, 8, 128, 25600, 151936, 40960, false),
};
_Static_assert(CT_COUNT(ct__qwen3_flavors) == CT_QWEN3_NUM_FLAVORS, "the count in qwen3.h");
