/* The table of recipe keys. A key stands here if and only if the trainer acts on it.
 *
 * Names and defaults are TorchTitan's (its TPU fork's where the two differ); scan_layers, activation_checkpoint.save,
 * .offload, .recompute, optimizer.offload_state, training.document_mask, dataloader's from weights to num_workers,
 * parallelism's from zero_stage on, kernels.*, compile.* and device.* are ours. Blocks are 0 by default where the fork
 * has 512: what is best differs from chip to chip. The keys of [lora] are PEFT's LoraConfig.
 */
#include "train/recipe_schema.h"

#include <stddef.h>
#include <string.h>

#define AT(field)   offsetof(ct_recipe, field)
#define MAX_COUNT   2147483647.0
#define MAX_DEVICES 131072 /* a program lists them, group by group */

/* clang-format off */
const ct__recipe_key ct__recipe_keys[] = {
    {"", "dump_folder", CT__RECIPE_STRING, AT(dump_folder), "./outputs", .aliases = "job.dump_folder",
     .help = "folder of all that the run writes"},

    {"model", "name", CT__RECIPE_STRING, AT(model.name), NULL, .is_required = true, .allowed = "llama3|qwen3",
     .help = "model family"},
    {"model", "flavor", CT__RECIPE_STRING, AT(model.flavor), NULL, .is_required = true,
     .help = "size of the model (\"debugmodel\", \"8B\"), or the path of a Hugging Face folder with its config.json"},
    {"model", "hf_assets_path", CT__RECIPE_STRING, AT(model.hf_assets_path), NULL,
     .aliases = "model.tokenizer_path training.tokenizer_path",
     .help = "folder or file of the tokenizer, or \"bytes\"; unset: that of model.flavor when it is a folder with one, "
             "else bytes"},
    {"model", "scan_layers", CT__RECIPE_BOOL, AT(model.scan_layers), "true",
     .help = "one loop over the layers in the program, in place of a copy of the block per layer"},

    {"training", "local_batch_size", CT__RECIPE_INT, AT(training.local_batch_size), "8", .min = 1, .max = MAX_COUNT,
     .aliases = "training.batch_size", .help = "sequences per data parallel rank in one forward pass"},
    {"training", "global_batch_size", CT__RECIPE_INT, AT(training.global_batch_size), "-1", .min = -1, .max = MAX_COUNT,
     .help = "sequences per step over all devices; gradients are accumulated to reach it; -1: no accumulation"},
    {"training", "seq_len", CT__RECIPE_INT, AT(training.seq_len), "2048", .min = 1, .max = MAX_COUNT,
     .aliases = "training.max_context_length", .help = "tokens per sequence"},
    {"training", "steps", CT__RECIPE_INT, AT(training.steps), "10000", .min = 1, .max = MAX_COUNT,
     .help = "optimizer steps of the run"},
    {"training", "dataset", CT__RECIPE_CHOICE, AT(training.dataset), "auto",
     .allowed = "auto|text|tokens|json|parquet|webdataset",
     .help = "kind of the data's files; auto: by their suffix, what has none that is known being text"},
    {"training", "dataset_path", CT__RECIPE_LIST, AT(training.dataset_path), "", .may_be_one = true,
     .help = "files, folders or patterns (\"web/*.jsonl.zst\") of the data; relative to the working directory"},
    {"training", "document_mask", CT__RECIPE_BOOL, AT(training.document_mask), "false",
     .help = "keep the documents of a sequence apart: attention within each, positions from 0 in each"},
    {"training", "max_norm", CT__RECIPE_FLOAT, AT(training.max_norm), "1.0", .min = 0, .above_min = true,
     .may_be_infinite = true, .help = "largest L2 norm of the gradient, which is scaled down to it; inf: never scaled"},
    {"training", "dtype", CT__RECIPE_DTYPE, AT(training.dtype), "float32", .allowed = "float32|bfloat16",
     .help = "type of the master weights"},
    {"training", "mixed_precision_param", CT__RECIPE_DTYPE, AT(training.mixed_precision_param), "bfloat16",
     .allowed = "bfloat16|float32", .help = "type of weights and activations in forward and backward"},
    {"training", "mixed_precision_reduce", CT__RECIPE_DTYPE, AT(training.mixed_precision_reduce), "float32",
     .allowed = "float32|bfloat16", .help = "type in which gradients are summed over devices"},

    {"dataloader", "shuffle", CT__RECIPE_BOOL, AT(dataloader.shuffle), "true", .aliases = "training.shuffle",
     .help = "visit the data in an order drawn from debug.seed"},
    {"dataloader", "streaming_shuffle_buffer", CT__RECIPE_INT, AT(dataloader.streaming_shuffle_buffer), "1000",
     .min = 1, .max = MAX_COUNT,
     .help = "documents of json, parquet and webdataset that are held to draw the next one from"},
    {"dataloader", "repeat", CT__RECIPE_BOOL, AT(dataloader.repeat), "true",
     .help = "begin the data anew at its end; else training ends there"},
    {"dataloader", "weights", CT__RECIPE_NUMBERS, AT(dataloader.weights), "",
     .help = "shares of a mixture, one per training.dataset_path, of any sum; none: all paths are one source"},
    {"dataloader", "text_column", CT__RECIPE_STRING, AT(dataloader.text_column), NULL,
     .help = "column of the text; unset, with no other column: text, of webdataset txt"},
    {"dataloader", "messages_column", CT__RECIPE_STRING, AT(dataloader.messages_column), NULL,
     .help = "column of conversations; the loss is on what the assistant says"},
    {"dataloader", "prompt_column", CT__RECIPE_STRING, AT(dataloader.prompt_column), NULL,
     .help = "column of prompts, which the loss leaves out"},
    {"dataloader", "completion_column", CT__RECIPE_STRING, AT(dataloader.completion_column), NULL,
     .help = "column of what follows the prompts"},
    {"dataloader", "packing", CT__RECIPE_CHOICE, AT(dataloader.packing), "auto",
     .allowed = "auto|concat_then_split|first_fit|none",
     .help = "documents into sequences: cut where a sequence is full, or whole, several or one in each; auto: the first "
             "for text, the second for prompts and messages"},
    {"dataloader", "packing_bins", CT__RECIPE_INT, AT(dataloader.packing_bins), "8", .min = 1, .max = 65536,
     .help = "sequences under way in first_fit"},
    {"dataloader", "broken_records", CT__RECIPE_CHOICE, AT(dataloader.broken_records), "skip", .allowed = "skip|fail",
     .help = "records that cannot be used are left out and counted, or end the run"},
    {"dataloader", "num_workers", CT__RECIPE_INT, AT(dataloader.num_workers), "1", .min = 0, .max = 256,
     .help = "threads that read and tokenise ahead, beside the one that makes batches"},
    {"dataloader", "prefetch", CT__RECIPE_INT, AT(dataloader.prefetch), "2", .min = 1, .max = 256,
     .aliases = "dataloader.prefetch_factor", .help = "batches made ahead"},

    {"parallelism", "data_parallel_replicate_degree", CT__RECIPE_INT, AT(parallelism.data_parallel_replicate_degree),
     "1", .min = 1, .max = MAX_COUNT,
     .help = "groups of devices with the whole state each, that share the batch (DDP; with sharding: HSDP)"},
    {"parallelism", "data_parallel_shard_degree", CT__RECIPE_INT, AT(parallelism.data_parallel_shard_degree), "-1",
     .min = -1, .max = MAX_COUNT,
     .help = "devices that share the batch and the state (FSDP); -1: device.count divided by the other degrees"},
    {"parallelism", "tensor_parallel_degree", CT__RECIPE_INT, AT(parallelism.tensor_parallel_degree), "1", .min = 1,
     .max = MAX_COUNT, .help = "devices that share heads, feed-forward and vocabulary of each layer"},
    {"parallelism", "context_parallel_degree", CT__RECIPE_INT, AT(parallelism.context_parallel_degree), "1", .min = 1,
     .max = MAX_COUNT, .help = "devices that share each sequence, head and tail balanced for the causal mask"},
    {"parallelism", "enable_sequence_parallel", CT__RECIPE_BOOL, AT(parallelism.enable_sequence_parallel), "true",
     .help = "with tensor parallel: what lies between layers is split along the sequence"},
    {"parallelism", "disable_loss_parallel", CT__RECIPE_BOOL, AT(parallelism.disable_loss_parallel), "false",
     .help = "with tensor parallel: logits are gathered over the vocabulary before the loss"},
    {"parallelism", "context_parallel_rotate_method", CT__RECIPE_CHOICE,
     AT(parallelism.context_parallel_rotate_method), "allgather", .allowed = "allgather|ring|alltoall",
     .help = "how attention sees other devices' keys: gathered, or passed around (alltoall is PyTorch's name of that)"},
    {"parallelism", "fsdp_reshard_after_forward", CT__RECIPE_CHOICE, AT(parallelism.fsdp_reshard_after_forward),
     "default", .allowed = "default|always|never",
     .help = "drop gathered weights after the forward pass and gather them again in the backward pass; default is always"},
    {"parallelism", "zero_stage", CT__RECIPE_INT, AT(parallelism.zero_stage), "3", .min = 1, .max = 3,
     .help = "what lies sharded: 1 moments, 2 gradients too, 3 parameters too (FSDP)"},
    {"parallelism", "fsdp_prefetch", CT__RECIPE_INT, AT(parallelism.fsdp_prefetch), "1", .min = 0, .max = 1,
     .help = "layers whose weights are gathered ahead of use"},
    {"parallelism", "fsdp_gather_form", CT__RECIPE_CHOICE, AT(parallelism.fsdp_gather_form), "auto",
     .allowed = "per_axis|joint|parts|pairs|auto",
     .help = "a weight over several axes of the torus: axis by axis, at once, in parts of different orders, two axes at a "
             "time; auto: what is best on the chip"},
    {"parallelism", "fsdp_reduce_form", CT__RECIPE_CHOICE, AT(parallelism.fsdp_reduce_form), "auto",
     .allowed = "per_axis|joint|parts|pairs|auto", .help = "the same of a gradient"},
    {"parallelism", "fsdp_replicate_below", CT__RECIPE_INT, AT(parallelism.fsdp_replicate_below), "65536", .min = 1,
     .max = MAX_COUNT, .help = "parameters of fewer elements per layer lie whole on each device"},
    {"parallelism", "reduce_each_microbatch", CT__RECIPE_BOOL, AT(parallelism.reduce_each_microbatch), "true",
     .help = "with accumulation: gradients are reduced in each microbatch, not held whole until the last"},
    {"parallelism", "partitioner", CT__RECIPE_CHOICE, AT(parallelism.partitioner), "manual",
     .allowed = "manual|shardy", .help = "who makes the local program: ctitan, or XLA's partitioner"},

    {"lora", "rank", CT__RECIPE_INT, AT(lora.rank), "0", .min = 0, .max = MAX_COUNT, .aliases = "lora.lora_rank",
     .help = "rank of low-rank adapters that are trained in place of the weights, which are frozen; 0: none"},
    {"lora", "alpha", CT__RECIPE_FLOAT, AT(lora.alpha), "16", .min = 0, .above_min = true, .aliases = "lora.lora_alpha",
     .help = "what an adapter adds is multiplied by alpha / rank"},
    {"lora", "target_modules", CT__RECIPE_LIST, AT(lora.target_modules),
     "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj", .may_be_one = true,
     .help = "the modules of each layer that get adapters, by their Hugging Face names"},
    {"lora", "adapter_path", CT__RECIPE_STRING, AT(lora.adapter_path), NULL,
     .help = "folder of adapters in PEFT's layout to start from, on the weights that they were trained on; unset: new "
             "ones"},

    {"optimizer", "name", CT__RECIPE_STRING, AT(optimizer.name), "AdamW", .allowed = "AdamW", .help = "optimizer"},
    {"optimizer", "lr", CT__RECIPE_FLOAT, AT(optimizer.lr), "8e-4", .min = 0,
     .help = "learning rate before the schedule"},
    {"optimizer", "beta1", CT__RECIPE_FLOAT, AT(optimizer.beta1), "0.9", .min = 0, .max = 1, .under_max = true,
     .help = "decay of the mean of the gradient"},
    {"optimizer", "beta2", CT__RECIPE_FLOAT, AT(optimizer.beta2), "0.95", .min = 0, .max = 1, .under_max = true,
     .help = "decay of the mean of its square"},
    {"optimizer", "eps", CT__RECIPE_FLOAT, AT(optimizer.eps), "1e-8", .min = 0, .above_min = true,
     .help = "added to the root of the mean square"},
    {"optimizer", "weight_decay", CT__RECIPE_FLOAT, AT(optimizer.weight_decay), "0.1", .min = 0,
     .help = "weight decay, of all parameters"},
    {"optimizer", "implementation", CT__RECIPE_CHOICE, AT(optimizer.implementation), "fused",
     .allowed = "fused|fused_opt_states_bf16", .help = "moments in float32, or in bfloat16"},
    {"optimizer", "offload_state", CT__RECIPE_BOOL, AT(optimizer.offload_state), "false",
     .help = "keep the moments in pinned host memory between steps"},

    {"lr_scheduler", "warmup_steps", CT__RECIPE_INT, AT(lr_scheduler.warmup_steps), "200", .min = 0, .max = MAX_COUNT,
     .help = "steps in which the learning rate rises from 0"},
    {"lr_scheduler", "total_steps", CT__RECIPE_INT, AT(lr_scheduler.total_steps), NULL, .min = 1, .max = MAX_COUNT,
     .help = "length of the schedule; unset: training.steps"},
    {"lr_scheduler", "decay_ratio", CT__RECIPE_FLOAT, AT(lr_scheduler.decay_ratio), NULL, .min = 0, .max = 1,
     .help = "share of the schedule spent in decay, 0: none; unset: all that the warmup leaves"},
    {"lr_scheduler", "decay_type", CT__RECIPE_CHOICE, AT(lr_scheduler.decay_type), "linear",
     .allowed = "linear|sqrt|cosine", .help = "shape of the decay"},
    {"lr_scheduler", "min_lr_factor", CT__RECIPE_FLOAT, AT(lr_scheduler.min_lr_factor), "0.0", .min = 0, .max = 1,
     .aliases = "lr_scheduler.lr_min", .help = "where the decay ends, as a share of optimizer.lr"},

    {"metrics", "log_freq", CT__RECIPE_INT, AT(metrics.log_freq), "10", .min = 1, .max = MAX_COUNT,
     .help = "steps from one log line to the next; the first step is always logged"},
    {"metrics", "disable_color_printing", CT__RECIPE_BOOL, AT(metrics.disable_color_printing), "false",
     .help = "log lines without colors"},
    {"metrics", "enable_tensorboard", CT__RECIPE_BOOL, AT(metrics.enable_tensorboard), "false",
     .help = "write TensorBoard's event files, too"},
    {"metrics", "save_tb_folder", CT__RECIPE_STRING, AT(metrics.save_tb_folder), "tb",
     .help = "folder of the event files, in dump_folder"},

    {"profiler", "enable_profiling", CT__RECIPE_BOOL, AT(profiler.enable_profiling), "false",
     .aliases = "profiling.enable_profiling", .help = "trace some steps, for Perfetto, XProf and TensorBoard"},
    {"profiler", "profile_freq", CT__RECIPE_INT, AT(profiler.profile_freq), "10", .min = 1, .max = MAX_COUNT,
     .aliases = "profiling.profile_freq", .help = "steps from one trace to the next; a trace ends with a multiple of it"},
    {"profiler", "profiler_active", CT__RECIPE_INT, AT(profiler.profiler_active), "1", .min = 1, .max = MAX_COUNT,
     .aliases = "profiling.profiler_active", .help = "steps in a trace"},
    {"profiler", "save_traces_folder", CT__RECIPE_STRING, AT(profiler.save_traces_folder), "profiling/traces",
     .aliases = "profiling.save_traces_folder", .help = "folder of the traces, in dump_folder"},

    {"checkpoint", "enable", CT__RECIPE_BOOL, AT(checkpoint.enable), "false", .aliases = "checkpoint.enable_checkpoint",
     .help = "save checkpoints, and resume from the newest at the start"},
    {"checkpoint", "interval", CT__RECIPE_INT, AT(checkpoint.interval), "500", .min = 1, .max = MAX_COUNT,
     .help = "steps from one checkpoint to the next; the last step is always saved"},
    {"checkpoint", "async_mode", CT__RECIPE_CHOICE, AT(checkpoint.async_mode), "disabled",
     .allowed = "disabled|async|async_with_pinned_mem",
     .help = "training waits for a save; or goes on meanwhile, and the state is saved from where it lies (twice for as "
             "long; on cpu: from a copy); or from a copy in pinned host memory"},
    {"checkpoint", "keep_latest_k", CT__RECIPE_INT, AT(checkpoint.keep_latest_k), "10", .min = 0, .max = MAX_COUNT,
     .help = "checkpoints that are kept, older ones are removed; 0: all; 1 is not allowed"},
    {"checkpoint", "folder", CT__RECIPE_STRING, AT(checkpoint.folder), "checkpoint",
     .help = "folder of the checkpoints, in dump_folder"},
    {"checkpoint", "load_step", CT__RECIPE_INT, AT(checkpoint.load_step), "-1", .min = -1, .max = MAX_COUNT,
     .help = "step to resume from; -1: the newest"},
    {"checkpoint", "initial_load_path", CT__RECIPE_STRING, AT(checkpoint.initial_load_path), NULL,
     .help = "folder of the weights to start from, when there is no checkpoint to resume"},
    {"checkpoint", "initial_load_model_only", CT__RECIPE_BOOL, AT(checkpoint.initial_load_model_only), "true",
     .help = "of initial_load_path the weights alone, not optimizer, schedule, data and step"},
    {"checkpoint", "initial_load_in_hf", CT__RECIPE_BOOL, AT(checkpoint.initial_load_in_hf), "false",
     .help = "initial_load_path is a Hugging Face folder"},
    {"checkpoint", "exclude_from_loading", CT__RECIPE_LIST, AT(checkpoint.exclude_from_loading), "",
     .help = "parts of a checkpoint that are not loaded: \"optimizer\", \"lr_scheduler\", \"dataloader\", "
             "\"train_state\" (step and tokens seen)"},
    {"checkpoint", "last_save_model_only", CT__RECIPE_BOOL, AT(checkpoint.last_save_model_only), "true",
     .help = "the last step is saved as weights alone, which training can't go on from"},
    {"checkpoint", "last_save_in_hf", CT__RECIPE_BOOL, AT(checkpoint.last_save_in_hf), "false",
     .help = "the last step is saved as a Hugging Face folder"},
    {"checkpoint", "export_dtype", CT__RECIPE_DTYPE, AT(checkpoint.export_dtype), "float32",
     .allowed = "float32|bfloat16|float16", .help = "type of the weights in a last step that is weights alone"},
    {"checkpoint", "enable_first_step_checkpoint", CT__RECIPE_BOOL, AT(checkpoint.enable_first_step_checkpoint),
     "false", .help = "save step 1, too"},
    {"checkpoint", "create_seed_checkpoint", CT__RECIPE_BOOL, AT(checkpoint.create_seed_checkpoint), "false",
     .help = "save the initial weights as step 0, and end"},
    {"checkpoint", "load_only", CT__RECIPE_BOOL, AT(checkpoint.load_only), "false",
     .help = "load checkpoints, save none"},

    {"validation", "enable", CT__RECIPE_BOOL, AT(validation.enable), "false", .aliases = "validator.enable",
     .help = "compute the loss on validation.dataset_path after step 1 and every validation.freq steps"},
    {"validation", "freq", CT__RECIPE_INT, AT(validation.freq), "10", .min = 1, .max = MAX_COUNT,
     .aliases = "validator.freq", .help = "steps from one validation to the next"},
    {"validation", "steps", CT__RECIPE_INT, AT(validation.steps), "-1", .min = -1, .max = MAX_COUNT,
     .aliases = "validator.steps", .help = "batches of a validation at most, from the start of the data; -1: all"},
    {"validation", "dataset", CT__RECIPE_CHOICE, AT(validation.dataset), "auto",
     .allowed = "auto|text|tokens|json|parquet|webdataset", .help = "kind of the files, as training.dataset"},
    {"validation", "dataset_path", CT__RECIPE_LIST, AT(validation.dataset_path), "", .may_be_one = true,
     .help = "files, folders or patterns of the data, with the columns that [dataloader] names"},
    {"validation", "local_batch_size", CT__RECIPE_INT, AT(validation.local_batch_size), NULL, .min = 1,
     .max = MAX_COUNT, .help = "sequences per data parallel rank; unset: training.local_batch_size"},
    {"validation", "seq_len", CT__RECIPE_INT, AT(validation.seq_len), NULL, .min = 1, .max = MAX_COUNT,
     .help = "tokens per sequence; unset: training.seq_len"},

    {"activation_checkpoint", "mode", CT__RECIPE_CHOICE, AT(activation_checkpoint.mode), "selective",
     .allowed = "none|selective|full", .help = "what the backward pass computes again: nothing, some, all of a block"},
    {"activation_checkpoint", "save", CT__RECIPE_LIST, AT(activation_checkpoint.save), "",
     .help = "names of values to save as well (\"attention_out\", \"attention_residual\"); not with mode \"none\""},
    {"activation_checkpoint", "offload", CT__RECIPE_LIST, AT(activation_checkpoint.offload), "",
     .help = "names of values to save in pinned host memory (\"block_in\")"},
    {"activation_checkpoint", "recompute", CT__RECIPE_LIST, AT(activation_checkpoint.recompute), "",
     .help = "names of values to compute again, whatever the mode"},

    {"kernels", "attention", CT__RECIPE_CHOICE, AT(kernels.attention), "auto",
     .allowed = "auto|definition|portable|mosaic",
     .help = "attention with the whole matrix of scores, block by block in StableHLO, or by ctitan's TPU kernels; auto: "
             "the best for platform and seq_len"},
    {"kernels", "loss", CT__RECIPE_CHOICE, AT(kernels.loss), "auto", .allowed = "auto|definition|portable|mosaic",
     .help = "the same of the head and the loss: with logits, tile by tile, or by TPU kernels"},

    {"splash_attention_kernel", "use_splash_attention_kernel", CT__RECIPE_BOOL,
     AT(splash_attention_kernel.use_splash_attention_kernel), "false",
     .aliases = "splash_attention_kernel.use_tokamax_splash_attention_kernel",
     .help = "attention block by block whatever seq_len: on tpu by ctitan's kernels, elsewhere portable"},
    {"splash_attention_kernel", "sa_block_q", CT__RECIPE_INT, AT(splash_attention_kernel.sa_block_q), "0", .min = 0,
     .max = MAX_COUNT, .help = "queries of a block, forward; 0, of all blocks: tuned for the chip"},
    {"splash_attention_kernel", "sa_block_kv", CT__RECIPE_INT, AT(splash_attention_kernel.sa_block_kv), "0", .min = 0,
     .max = MAX_COUNT, .help = "keys of a block, forward"},
    {"splash_attention_kernel", "sa_block_kv_compute", CT__RECIPE_INT, AT(splash_attention_kernel.sa_block_kv_compute),
     "0", .min = 0, .max = MAX_COUNT, .help = "keys of a step within the block (TPU kernels)"},
    {"splash_attention_kernel", "sa_block_q_dkv", CT__RECIPE_INT, AT(splash_attention_kernel.sa_block_q_dkv), "0",
     .min = 0, .max = MAX_COUNT, .help = "queries of a block, backward"},
    {"splash_attention_kernel", "sa_block_kv_dkv", CT__RECIPE_INT, AT(splash_attention_kernel.sa_block_kv_dkv), "0",
     .min = 0, .max = MAX_COUNT, .help = "keys of a block, backward"},
    {"splash_attention_kernel", "sa_block_kv_dkv_compute", CT__RECIPE_INT,
     AT(splash_attention_kernel.sa_block_kv_dkv_compute), "0", .min = 0, .max = MAX_COUNT,
     .help = "keys of a step within the block, backward (TPU kernels)"},
    {"splash_attention_kernel", "sa_block_q_dq", CT__RECIPE_INT, AT(splash_attention_kernel.sa_block_q_dq), "0",
     .min = 0, .max = MAX_COUNT, .help = "queries of a block in the kernel of dq, when backward is not fused (TPU)"},
    {"splash_attention_kernel", "sa_block_kv_dq", CT__RECIPE_INT, AT(splash_attention_kernel.sa_block_kv_dq), "0",
     .min = 0, .max = MAX_COUNT, .help = "keys of a block in the kernel of dq (TPU)"},
    {"splash_attention_kernel", "sa_use_fused_bwd_kernel", CT__RECIPE_BOOL,
     AT(splash_attention_kernel.sa_use_fused_bwd_kernel), "true",
     .help = "one backward kernel for dq, dk and dv; else one for dk and dv and one for dq (TPU)"},

    {"loss_kernel", "use_loss_kernel", CT__RECIPE_BOOL, AT(loss_kernel.use_loss_kernel), "false",
     .help = "head and loss without logits in memory, whatever the sizes"},
    {"loss_kernel", "loss_b_block_size", CT__RECIPE_INT, AT(loss_kernel.loss_b_block_size), "0", .min = 0,
     .max = MAX_COUNT, .help = "tokens of a tile; 0, of all tiles: tuned for the chip"},
    {"loss_kernel", "loss_h_block_size", CT__RECIPE_INT, AT(loss_kernel.loss_h_block_size), "0", .min = 0,
     .max = MAX_COUNT, .help = "part of the model dimension in a tile (TPU kernels)"},
    {"loss_kernel", "loss_v_block_size", CT__RECIPE_INT, AT(loss_kernel.loss_v_block_size), "0", .min = 0,
     .max = MAX_COUNT, .help = "part of the vocabulary in a tile"},
    {"loss_kernel", "enable_pallas_loss_kernel", CT__RECIPE_BOOL, AT(loss_kernel.enable_pallas_loss_kernel), "true",
     .help = "with use_loss_kernel on tpu: the TPU kernels where they can be had; else the portable form"},

    {"compile", "cache_dir", CT__RECIPE_STRING, AT(compile.cache_dir), NULL, .may_be_empty = true,
     .help = "folder of compiled programs; unset: the user's cache folder; empty: no cache"},
    {"compile", "executable", CT__RECIPE_STRING, AT(compile.executable), NULL,
     .help = "training step that ctitan plan --save compiled, in place of compiling it; it must be of this very recipe"},
    {"compile", "xla_flags", CT__RECIPE_FLAGS, AT(compile.xla_flags), NULL,
     .help = "XLA flags of the program, --compile.xla_flags.xla_some_flag=true"},
    {"compile", "libtpu_init_args", CT__RECIPE_FLAGS, AT(compile.libtpu_init_args), NULL,
     .help = "flags that libtpu takes for the whole process alone: they join LIBTPU_INIT_ARGS before it is loaded; what "
             "that has already stays"},

    {"device", "platform", CT__RECIPE_STRING, AT(device.platform), "cpu",
     .help = "\"cpu\", \"cuda\", \"tpu\", or the path of a PJRT plugin"},
    {"device", "count", CT__RECIPE_INT, AT(device.count), NULL, .min = 1, .max = MAX_DEVICES,
     .help = "number of devices, on cpu virtual ones; unset: as many as the topology has, or 1"},
    {"device", "topology", CT__RECIPE_STRING, AT(device.topology), NULL,
     .help = "slice of TPUs that the recipe is for (\"v6e:4x4\", \"v5p:4x4x8\"); plan and check need it not to be here"},
    {"device", "num_slices", CT__RECIPE_INT, AT(device.num_slices), "1", .min = 1, .max = 256,
     .help = "such slices, joined by the data center's network: the outermost of the mesh"},
    {"device", "plugin_path", CT__RECIPE_STRING, AT(device.plugin_path), NULL,
     .help = "plugin to use for the platform in place of the usual one"},

    {"sample", "prompt", CT__RECIPE_STRING, AT(sample.prompt), "", .may_be_empty = true,
     .help = "what the text sampled after training begins with"},
    {"sample", "max_tokens", CT__RECIPE_INT, AT(sample.max_tokens), "0", .min = 0, .max = MAX_COUNT,
     .help = "tokens to sample and print after training on text; 0: none"},
    {"sample", "temperature", CT__RECIPE_FLOAT, AT(sample.temperature), "0.8", .min = 0,
     .help = "temperature of the sample; 0: the likeliest token each time"},

    {"debug", "seed", CT__RECIPE_INT, AT(debug.seed), "42", .min = 0, .aliases = "training.seed",
     .help = "seed of initial weights and data order"},
};
/* clang-format on */
const size_t ct__recipe_num_keys = CT_COUNT(ct__recipe_keys);

static bool equals(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

/* Is "section.name" one of the space-separated aliases? A NULL name stands for any. */
static bool has_alias(const char *aliases, const char *section, size_t section_length, const char *name)
{
    while (aliases && *aliases) {
        size_t length = strcspn(aliases, " "), point = strcspn(aliases, ".");
        if (point == section_length && memcmp(aliases, section, point) == 0 &&
            (!name || equals(aliases + point + 1, length - point - 1, name)))
            return true;
        aliases += length + (aliases[length] == ' ');
    }
    return false;
}

const ct__recipe_key *ct__recipe_find(const char *section, size_t section_length, const char *name)
{
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const ct__recipe_key *key = &ct__recipe_keys[i];
        if (equals(section, section_length, key->section) && strcmp(key->name, name) == 0) return key;
    }
    for (size_t i = 0; i < ct__recipe_num_keys; i++)
        if (has_alias(ct__recipe_keys[i].aliases, section, section_length, name)) return &ct__recipe_keys[i];
    return NULL;
}

bool ct__recipe_has_section(const char *section, size_t section_length)
{
    for (size_t i = 0; i < ct__recipe_num_keys; i++) {
        const ct__recipe_key *key = &ct__recipe_keys[i];
        if (section_length && equals(section, section_length, key->section)) return true;
        if (has_alias(key->aliases, section, section_length, NULL)) return true;
    }
    return false;
}

const char *ct__recipe_full_name(ct_arena *arena, const ct__recipe_key *key)
{
    return key->section[0] ? ct_arena_printf(arena, "%s.%s", key->section, key->name) : key->name;
}

bool ct__recipe_can_unset(const ct__recipe_key *key)
{
    return !key->default_value && !key->is_required && key->type != CT__RECIPE_FLAGS;
}
