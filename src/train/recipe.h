/* A recipe: everything that a training run is told, read from TOML and overridden on the command line.
 *
 *   recipes/qwen3/debug.toml ---+
 *   --training.steps=10 --------+--> checked against one table (recipe_schema.c) --> ct_recipe
 *   defaults of the table ------+
 *
 * Sections and keys carry TorchTitan's names. One sub-struct per section, in the order of the table; the table holds
 * each key's type, default, range and meaning, and `ctitan train --help` prints it.
 * Relative paths are relative to the working directory.
 * All mistakes are reported at once, each with its line or argument. A recipe is not changed after loading, so any
 * thread may read it; its strings live as long as it does.
 */
#ifndef CT_TRAIN_RECIPE_H
#define CT_TRAIN_RECIPE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"
#include "base/str.h"
#include "data/dataset.h"
#include "graph/remat.h"
#include "kernels/kernel.h"
#include "optim/schedule.h"
#include "pjrt/value.h"
#include "spmd/parallel.h"

typedef enum ct_recipe_optimizer_implementation {
    CT_OPTIMIZER_FUSED,                 /* moments in float32 */
    CT_OPTIMIZER_FUSED_OPT_STATES_BF16, /* moments in bfloat16 */
} ct_recipe_optimizer_implementation;

typedef enum ct_recipe_rotate {
    CT_RECIPE_ROTATE_ALLGATHER,
    CT_RECIPE_ROTATE_RING,
    CT_RECIPE_ROTATE_ALLTOALL, /* PyTorch's name of its ring */
} ct_recipe_rotate;

typedef enum ct_recipe_async {
    CT_ASYNC_DISABLED,
    CT_ASYNC,             /* the next step leaves the saved buffers be */
    CT_ASYNC_PINNED_HOST, /* copies in pinned host memory are saved */
} ct_recipe_async;

typedef enum ct_recipe_broken { CT_BROKEN_SKIP, CT_BROKEN_FAIL } ct_recipe_broken;

typedef struct ct_recipe_list {
    const char *const *items;
    size_t num_items;
} ct_recipe_list;

typedef struct ct_recipe_numbers {
    const double *items;
    size_t num_items;
} ct_recipe_numbers;

typedef struct ct_recipe_flags {
    const ct_named_value *items;
    size_t num_items;
} ct_recipe_flags;

typedef struct ct_recipe {
    const char *dump_folder;
    struct {
        const char *name;           /* "llama3", "qwen3" */
        const char *flavor;         /* a row of the model's table, or the path of a Hugging Face folder */
        const char *hf_assets_path; /* of the tokenizer; NULL: see ct_recipe_tokenizer */
        bool scan_layers;
    } model;
    struct {
        int64_t local_batch_size;  /* sequences per data parallel rank and microbatch */
        int64_t global_batch_size; /* -1: no accumulation; see ct_recipe_num_microbatches */
        int64_t seq_len;
        int64_t steps;
        ct_data_kind dataset;
        ct_recipe_list dataset_path; /* empty only when the loader did not ask for data */
        bool document_mask;
        double max_norm; /* infinite: no clipping */
        ct_dtype dtype;
        ct_dtype mixed_precision_param;
        ct_dtype mixed_precision_reduce;
    } training;
    struct {
        bool shuffle, repeat;
        int64_t streaming_shuffle_buffer;
        int64_t prefetch;
        int64_t num_workers;
        ct_recipe_numbers weights; /* empty: all paths are one source */
        ct_data_packing packing;
        int64_t packing_bins;
        const char *text_column, *messages_column, *prompt_column, *completion_column; /* NULL: unset */
        ct_recipe_broken broken_records;
    } dataloader;
    struct {
        int64_t data_parallel_replicate_degree;
        int64_t data_parallel_shard_degree; /* -1: what is left of device.count */
        int64_t tensor_parallel_degree;
        int64_t context_parallel_degree;
        bool enable_sequence_parallel;
        bool disable_loss_parallel;
        ct_recipe_rotate context_parallel_rotate_method;
        ct_reshard fsdp_reshard_after_forward;
        int64_t zero_stage;
        int64_t fsdp_prefetch;
        ct_collective_form fsdp_gather_form, fsdp_reduce_form;
        int64_t fsdp_replicate_below;
        bool reduce_each_microbatch;
        ct_partition partitioner;
    } parallelism;
    struct {
        int64_t rank; /* 0: all weights are trained */
        double alpha;
        ct_recipe_list target_modules;
        const char *adapter_path; /* NULL: new ones */
    } lora;
    struct {
        const char *name; /* "AdamW" */
        double lr, beta1, beta2, eps, weight_decay;
        ct_recipe_optimizer_implementation implementation;
        bool offload_state;
    } optimizer;
    struct {
        int64_t warmup_steps;
        int64_t total_steps; /* -1: training.steps */
        double decay_ratio;  /* -1: none */
        ct_lr_decay decay_type;
        double min_lr_factor;
    } lr_scheduler;
    struct {
        int64_t log_freq;
        bool disable_color_printing;
        bool enable_tensorboard;
        const char *save_tb_folder;
    } metrics;
    struct {
        bool enable_profiling;
        int64_t profile_freq, profiler_active;
        const char *save_traces_folder;
    } profiler;
    struct {
        bool enable;
        int64_t interval;
        const char *folder;
        ct_recipe_async async_mode;
        int64_t keep_latest_k;         /* 0: all */
        int64_t load_step;             /* -1: the newest, if there is one */
        const char *initial_load_path; /* NULL: none */
        bool initial_load_model_only, initial_load_in_hf;
        bool last_save_model_only, last_save_in_hf;
        ct_dtype export_dtype;
        ct_recipe_list exclude_from_loading;
        bool enable_first_step_checkpoint, create_seed_checkpoint, load_only;
    } checkpoint;
    struct {
        bool enable;
        int64_t freq;
        int64_t steps; /* -1: all of the data */
        ct_data_kind dataset;
        ct_recipe_list dataset_path;
        int64_t local_batch_size, seq_len; /* -1: those of training */
    } validation;
    struct {
        ct_remat_mode mode;
        ct_recipe_list save, offload, recompute; /* names, of ct_model_checkpoint_names */
    } activation_checkpoint;
    struct {
        ct_kernel_form attention, loss; /* as given; ct_recipe_kernels says what comes of them */
    } kernels;
    struct {
        bool use_splash_attention_kernel;
        int64_t sa_block_q, sa_block_kv, sa_block_kv_compute; /* 0: tuned */
        int64_t sa_block_q_dkv, sa_block_kv_dkv, sa_block_kv_dkv_compute;
        int64_t sa_block_q_dq, sa_block_kv_dq;
        bool sa_use_fused_bwd_kernel;
    } splash_attention_kernel;
    struct {
        bool use_loss_kernel;
        int64_t loss_b_block_size, loss_h_block_size, loss_v_block_size; /* 0: tuned */
        bool enable_pallas_loss_kernel;
    } loss_kernel;
    struct {
        const char *cache_dir;            /* NULL: the user's cache folder; "": no cache */
        const char *executable;           /* a saved training step; NULL: it is compiled */
        ct_recipe_flags xla_flags;        /* of each program */
        ct_recipe_flags libtpu_init_args; /* of the process */
    } compile;
    struct {
        const char *platform; /* "cpu", "cuda", "tpu", or the path of a plugin */
        int64_t count;        /* all slices together */
        const char *topology; /* "v6e:4x4": a slice; NULL: not said */
        int64_t num_slices;
        const char *plugin_path; /* NULL: the platform's usual plugin */
    } device;
    struct {
        const char *prompt; /* what the sample after training begins with */
        int64_t max_tokens; /* of the sample; 0: none */
        double temperature; /* 0: the most likely token each time */
    } sample;
    struct {
        int64_t seed;
    } debug;

    const char *path;     /* of the file, or NULL */
    const char **origins; /* per key of the table: "file:line", the argument, or NULL for a default */
    ct_arena arena;
} ct_recipe;

typedef struct ct_recipe_load_opts {
    const char *const *overrides; /* arguments as ct_recipe_override_length takes them */
    size_t num_overrides;
    bool needs_data; /* training.dataset_path must be given */
} ct_recipe_load_opts;

/* Reads path, applies overrides, checks everything. Errors: INVALID_ARGUMENT whose message counts and lists all
 * mistakes, one per line, each with "file:line" or the argument, what was required and what was found; those of
 * ct_file_read. */
CT_MUST_USE ct_status *ct_recipe_load(const char *path, const ct_recipe_load_opts *opts, ct_recipe **out_recipe);

/* The same from memory; name stands for the file in messages. */
CT_MUST_USE ct_status *ct_recipe_parse(const char *name, const char *text, size_t size_bytes,
                                       const ct_recipe_load_opts *opts, ct_recipe **out_recipe);

void ct_recipe_free(ct_recipe *recipe); /* NULL is allowed */

/* How many of the arguments at args[0] on are one override: 0 when args[0] is none, 2 when the value stands apart
 * ("--training.steps 10"), else 1. An argument is an override if it starts with "--" and has a '.' before any '=', or
 * names a key outside the sections (--dump_folder). Dashes and underscores are equal; --x.y and --x.no-y mean true and
 * false; lists are comma separated; "none" unsets a key that can be unset. */
size_t ct_recipe_override_length(const char *const *args, size_t num_args);

/* Where a key ("training.seq_len") got its value, for messages: "recipes/x.toml:14", "--training.seq_len=8",
 * "default". The key must exist. */
const char *ct_recipe_where(const ct_recipe *recipe, const char *key);

/* Microbatches per step (gradient accumulation): 1 for global_batch_size = -1. Checked at loading to divide. */
int64_t ct_recipe_num_microbatches(const ct_recipe *recipe);

/* Data parallel ranks, replicated and sharded: each has its own sequences. */
int64_t ct_recipe_num_data_parallel(const ct_recipe *recipe);

/* The recipe's learning rate schedule. */
ct_lr_schedule ct_recipe_lr_schedule(const ct_recipe *recipe);

/* Appends the resolved recipe as TOML that loads to the same recipe; a comment says where a value came from. */
void ct_recipe_print(const ct_recipe *recipe, ct_str *out);

/* Appends the list of all keys: override, meaning, what is allowed, default. */
void ct_recipe_help(ct_str *out);

#endif
