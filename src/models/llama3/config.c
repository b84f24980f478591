/* Llama 3 sizes. Source: TorchTitan's llama3 flavors, which are Meta's. */
#include "models/llama3/llama3.h"

#define ROPE                                                                                                           \
    {                                                                                                                  \
        .theta = 500000, .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_max_position = 8192       \
    }
#define SIZE(name, d, l, h, kv, hd, f, v, t)                                                                           \
    {                                                                                                                  \
        .flavor = name, .dim = d, .num_layers = l, .num_heads = h, .num_kv_heads = kv, .head_dim = hd, .ffn_dim = f,   \
        .vocab_size = v, .max_seq_len = 131072, .tied = t, .norm_eps = 1e-5, .rope = ROPE                              \
    }

const ct_model_config ct__llama3_flavors[] = {
    /*   flavor       dim  layers heads kv head_dim  ffn   vocab  tied */
    SIZE("debugmodel", 256, 6, 16, 16, 16, 768, 2048, false),
    SIZE("1B", 2048, 16, 32, 8, 64, 8192, 128256, true),
    SIZE("3B", 3072, 28, 24, 8, 128, 8192, 128256, true),
    SIZE("8B", 4096, 32, 32, 8, 128, 14336, 128256, false),
    SIZE("70B", 8192, 80, 64, 8, 128, 28672, 128256, false),
    SIZE("405B", 16384, 126, 128, 8, 128, 53248, 128256, false),
};
_Static_assert(CT_COUNT(ct__llama3_flavors) == CT_LLAMA3_NUM_FLAVORS, "the count in llama3.h");
