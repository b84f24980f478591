#include "train/recipe.h"

#include <math.h>

#include "base/testing.h"
#include "train/recipe_fuzz.c" /* replayed below, on the corpus of TOML */

#define MODEL "[model]\nname = \"qwen3\"\nflavor = \"debugmodel\"\n"

static ct_status *parse(const char *text, const char *const *overrides, size_t num_overrides, ct_recipe **out_recipe)
{
    ct_recipe_load_opts opts = {.overrides = overrides, .num_overrides = num_overrides};
    return ct_recipe_parse("r.toml", text, strlen(text), &opts, out_recipe);
}

static ct_recipe *parse_ok(const char *text, const char *const *overrides, size_t num_overrides)
{
    ct_recipe *recipe;
    ct_status *status = parse(text, overrides, num_overrides, &recipe);
    expect_ok(status);
    return recipe;
}

/* The whole message of a recipe that must fail. */
static void expect_mistakes(ct_status *status, const char *message)
{
    assert_int_equal(ct_status_code(status), CT_CODE_INVALID_ARGUMENT);
    assert_string_equal(ct_status_message(status), message);
    ct_status_free(status);
}

static void expect_one(const char *text, const char *argument, const char *mistake)
{
    ct_recipe *recipe;
    char *message = ct_asprintf("r.toml: 1 mistake in the recipe:\n  %s", mistake);
    expect_mistakes(parse(text, &argument, argument ? 1 : 0, &recipe), message);
    assert_null(recipe);
    free(message);
}

static void test_defaults(void **state)
{
    (void)state;
    ct_recipe *recipe = parse_ok(MODEL, NULL, 0);
    assert_string_equal(recipe->dump_folder, "./outputs");
    assert_string_equal(recipe->model.name, "qwen3");
    assert_true(recipe->model.scan_layers);
    assert_int_equal(recipe->training.local_batch_size, 8);
    assert_int_equal(recipe->training.global_batch_size, -1);
    assert_int_equal(recipe->training.seq_len, 2048);
    assert_int_equal(recipe->training.steps, 10000);
    assert_int_equal(recipe->training.dataset_path.num_items, 0);
    assert_int_equal(recipe->training.dtype, CT_DTYPE_F32);
    assert_int_equal(recipe->training.mixed_precision_param, CT_DTYPE_BF16);
    assert_true(recipe->training.max_norm == 1.0);
    assert_true(recipe->optimizer.lr == 8e-4 && recipe->optimizer.beta1 == 0.9 && recipe->optimizer.beta2 == 0.95);
    assert_true(recipe->optimizer.eps == 1e-8 && recipe->optimizer.weight_decay == 0.1);
    assert_int_equal(recipe->optimizer.implementation, CT_OPTIMIZER_FUSED);
    assert_int_equal(recipe->lr_scheduler.warmup_steps, 200);
    assert_int_equal(recipe->training.mixed_precision_reduce, CT_DTYPE_F32);
    assert_int_equal(recipe->parallelism.data_parallel_replicate_degree, 1);
    assert_int_equal(recipe->parallelism.data_parallel_shard_degree, -1);
    assert_int_equal(recipe->parallelism.zero_stage, 3);
    assert_int_equal(recipe->parallelism.fsdp_prefetch, 1);
    assert_true(recipe->parallelism.enable_sequence_parallel && recipe->parallelism.reduce_each_microbatch);
    assert_int_equal(recipe->parallelism.partitioner, CT_PARTITION_MANUAL);
    assert_int_equal(ct_recipe_num_data_parallel(recipe), 1);
    assert_int_equal(recipe->lr_scheduler.total_steps, -1);
    assert_true(recipe->lr_scheduler.decay_ratio == -1);
    assert_int_equal(recipe->metrics.log_freq, 10);
    assert_int_equal(recipe->checkpoint.load_step, -1);
    assert_int_equal(recipe->activation_checkpoint.mode, CT_REMAT_SELECTIVE);
    assert_int_equal(recipe->activation_checkpoint.save.num_items, 0);
    assert_null(recipe->compile.cache_dir);
    assert_string_equal(recipe->device.platform, "cpu");
    assert_int_equal(recipe->debug.seed, 42);
    assert_int_equal(ct_recipe_num_microbatches(recipe), 1);
    assert_int_equal(ct_recipe_lr_schedule(recipe).total_steps, 10000);
    ct_recipe_free(recipe);
}

static void test_every_kind_of_value(void **state)
{
    (void)state;
    ct_recipe *recipe =
        parse_ok("dump_folder = \"out\"\n" MODEL "scan_layers = false\n"
                 "[training]\nglobal_batch_size = 32\nlocal_batch_size = 4\ndataset = \"tokens\"\n"
                 "dataset_path = \"t.safetensors\"\nmax_norm = inf\nmixed_precision_param = \"float32\"\n"
                 "[optimizer]\nlr = 1\nimplementation = \"fused_opt_states_bf16\"\n"
                 "[lr_scheduler]\ndecay_ratio = 0.8\ndecay_type = \"cosine\"\nwarmup_steps = 2\n"
                 "[activation_checkpoint]\nsave = [\"attention_out\", \"ffn_in\"]\n"
                 "[device]\ncount = 2\n"
                 "[compile]\ncache_dir = \"\"\n"
                 "xla_flags = { xla_a = true, xla_b = 3, xla_c = 0.5, xla_d = \"x\" }\n",
                 NULL, 0);
    assert_string_equal(recipe->dump_folder, "out");
    assert_false(recipe->model.scan_layers);
    assert_int_equal(recipe->training.dataset, CT_DATA_TOKENS);
    assert_int_equal(recipe->training.dataset_path.num_items, 1);
    assert_string_equal(recipe->training.dataset_path.items[0], "t.safetensors");
    assert_true(isinf(recipe->training.max_norm));
    assert_int_equal(recipe->training.mixed_precision_param, CT_DTYPE_F32);
    assert_true(recipe->optimizer.lr == 1);
    assert_int_equal(recipe->optimizer.implementation, CT_OPTIMIZER_FUSED_OPT_STATES_BF16);
    assert_int_equal(recipe->lr_scheduler.decay_type, CT_LR_DECAY_COSINE);
    assert_int_equal(recipe->activation_checkpoint.save.num_items, 2);
    assert_string_equal(recipe->activation_checkpoint.save.items[1], "ffn_in");
    assert_string_equal(recipe->compile.cache_dir, "");
    const ct_named_value *flags = recipe->compile.xla_flags.items;
    assert_int_equal(recipe->compile.xla_flags.num_items, 4);
    assert_true(flags[0].type == CT_VALUE_BOOL && flags[0].boolean);
    assert_true(flags[1].type == CT_VALUE_INT && flags[1].integer == 3);
    assert_true(flags[2].type == CT_VALUE_FLOAT && flags[2].number == 0.5);
    assert_true(flags[3].type == CT_VALUE_TEXT && strcmp(flags[3].text, "x") == 0);
    assert_int_equal(ct_recipe_num_microbatches(recipe), 4);
    assert_string_equal(ct_recipe_where(recipe, "training.dataset"), "r.toml:9");
    assert_string_equal(ct_recipe_where(recipe, "dump_folder"), "r.toml:1");
    assert_string_equal(ct_recipe_where(recipe, "training.seq_len"), "default");
    ct_recipe_free(recipe);
}

static void test_overrides(void **state)
{
    (void)state;
    const char *const arguments[] = {"--training.steps=1_000",
                                     "--training.local-batch-size",
                                     "2",
                                     "--model.no-scan-layers",
                                     "--checkpoint.enable",
                                     "--training.shuffle=False",
                                     "--metrics.disable_color_printing",
                                     "true",
                                     "--activation-checkpoint.save=a,b",
                                     "--lr_scheduler.decay_ratio=none",
                                     "--training.global_batch_size",
                                     "-1",
                                     "--dump-folder=/tmp/a.b",
                                     "--optimizer.lr=1e-3",
                                     "--compile.xla_flags.xla_a=false",
                                     "--compile.xla_flags.xla_new=7",
                                     "--device.platform=/opt/p=1.so",
                                     "--training.steps=12"};
    ct_recipe *recipe = parse_ok(MODEL "[lr_scheduler]\ndecay_ratio = 0.5\n[training]\nglobal_batch_size = 64\n"
                                       "[compile.xla_flags]\nxla_a = true\nxla_keep = 1\n",
                                 arguments, CT_COUNT(arguments));
    assert_int_equal(recipe->training.steps, 12);
    assert_string_equal(ct_recipe_where(recipe, "training.steps"), "--training.steps=12");
    assert_int_equal(recipe->training.local_batch_size, 2);
    assert_string_equal(ct_recipe_where(recipe, "training.local_batch_size"), "--training.local-batch-size 2");
    assert_false(recipe->model.scan_layers);
    assert_true(recipe->checkpoint.enable);
    assert_false(recipe->dataloader.shuffle);
    assert_true(recipe->metrics.disable_color_printing);
    assert_string_equal(recipe->activation_checkpoint.save.items[0], "a");
    assert_string_equal(recipe->activation_checkpoint.save.items[1], "b");
    assert_true(recipe->lr_scheduler.decay_ratio == -1);
    assert_int_equal(recipe->training.global_batch_size, -1);
    assert_string_equal(recipe->dump_folder, "/tmp/a.b");
    assert_true(recipe->optimizer.lr == 1e-3);
    assert_string_equal(recipe->device.platform, "/opt/p=1.so");
    const ct_recipe_flags *flags = &recipe->compile.xla_flags;
    assert_int_equal(flags->num_items, 3);
    assert_string_equal(flags->items[0].name, "xla_keep");
    assert_true(!flags->items[1].boolean && flags->items[1].type == CT_VALUE_BOOL);
    assert_true(flags->items[2].integer == 7);
    ct_recipe_free(recipe);
}

static size_t length_of(const char *first, const char *second)
{
    const char *const arguments[] = {first, second};
    return ct_recipe_override_length(arguments, second ? 2 : 1);
}

static void test_what_is_an_override(void **state)
{
    (void)state;
    assert_int_equal(length_of("recipes/qwen3/debug.toml", NULL), 0);
    assert_int_equal(length_of("--config=a.toml", NULL), 0); /* the point is behind the '=' */
    assert_int_equal(length_of("--help", "x"), 0);
    assert_int_equal(length_of("--", "x"), 0);
    assert_int_equal(length_of("-training.steps=3", NULL), 0);
    assert_int_equal(length_of("--training.steps=3", "x"), 1);
    assert_int_equal(length_of("--training.steps", "3"), 2);
    assert_int_equal(length_of("--training.steps", NULL), 1);
    assert_int_equal(length_of("--training.steps", "--checkpoint.enable"), 1);
    assert_int_equal(length_of("--checkpoint.enable", "recipe.toml"), 1);
    assert_int_equal(length_of("--checkpoint.enable", "false"), 2);
    assert_int_equal(length_of("--checkpoint.no-enable", "false"), 1);
    assert_int_equal(length_of("--dump_folder", "out"), 2);
    assert_int_equal(length_of("--training.stpes", "3"), 2);
    assert_int_equal(length_of("--training.stpes", "recipe.toml"), 1);
}

static void test_aliases(void **state)
{
    (void)state;
    ct_recipe *recipe = parse_ok(MODEL "[job]\ndump_folder = \"o\"\n[training]\nseed = 7\nmax_context_length = 64\n"
                                       "batch_size = 3\n",
                                 NULL, 0);
    assert_string_equal(recipe->dump_folder, "o");
    assert_int_equal(recipe->debug.seed, 7);
    assert_int_equal(recipe->training.seq_len, 64);
    assert_int_equal(recipe->training.local_batch_size, 3);
    ct_recipe_free(recipe);
    expect_one(MODEL "[training]\nseed = 7\n[debug]\nseed = 8\n", NULL,
               "r.toml:7: debug.seed sets debug.seed again, after r.toml:5; keep one of them");
    expect_one(MODEL "[job]\nconfig_file = \"x\"\n", NULL, "r.toml:5: unknown key job.config_file");
}

static void test_ten_mistakes(void **state)
{
    (void)state;
    const char *const arguments[] = {"--metrics.log_freq=often"};
    ct_recipe *recipe;
    ct_status *status = parse("[model]\n"
                              "flavor = \"debugmodel\"\n" /* 1: name is missing */
                              "[trainnig]\n"              /* 2 */
                              "steps = 10\n"              /* not looked at */
                              "[training]\n"              /*  */
                              "stpes = 10\n"              /* 3 */
                              "seq_len = \"long\"\n"      /* 4 */
                              "local_batch_size = 4\n"    /*  */
                              "global_batch_size = 10\n"  /* 5: not a multiple of 4 */
                              "warmup_steps = 3\n"        /* 6: of another section */
                              "[optimizer]\n"             /*  */
                              "lr = nan\n"                /* 7 */
                              "beta2 = 1\n"               /* 8 */
                              "[activation_checkpoint]\n" /*  */
                              "mode = \"selectve\"\n",    /* 9; 10 is the argument */
                              arguments, 1, &recipe);
    expect_mistakes(
        status,
        "r.toml: 10 mistakes in the recipe:\n"
        "  r.toml:3: unknown section [trainnig]; did you mean [training]? There are [model], [training], "
        "[dataloader], [parallelism], [lora], [optimizer], "
        "[lr_scheduler], [metrics], [profiler], [checkpoint], [validation], [activation_checkpoint], [kernels], "
        "[splash_attention_kernel], "
        "[loss_kernel], [compile], [device], [sample], [debug]\n"
        "  r.toml:6: unknown key training.stpes; did you mean training.steps? [training] has local_batch_size, "
        "global_batch_size, seq_len, steps, dataset, dataset_path, document_mask, max_norm, dtype, "
        "mixed_precision_param, "
        "mixed_precision_reduce\n"
        "  r.toml:7: training.seq_len must be a whole number of at least 1 and at most 2147483647, found \"long\"\n"
        "  r.toml:10: unknown key training.warmup_steps; did you mean lr_scheduler.warmup_steps? [training] has "
        "local_batch_size, global_batch_size, seq_len, steps, dataset, dataset_path, document_mask, max_norm, dtype, "
        "mixed_precision_param, mixed_precision_reduce\n"
        "  r.toml:12: optimizer.lr must be a number of at least 0, found nan\n"
        "  r.toml:13: optimizer.beta2 must be a number from 0 to below 1, found 1\n"
        "  r.toml:15: activation_checkpoint.mode must be one of \"none\", \"selective\", \"full\", found \"selectve\"; "
        "did "
        "you mean \"selective\"?\n"
        "  --metrics.log_freq=often: metrics.log_freq must be a whole number of at least 1 and at most 2147483647, "
        "found "
        "\"often\"\n"
        "  r.toml: model.name is required: one of \"llama3\", \"qwen3\"\n"
        "  r.toml:9: training.global_batch_size must be -1 or a multiple of training.local_batch_size x data parallel "
        "ranks = 4 x 1, found 10");
    assert_null(recipe);
}

static void test_impossible_values(void **state)
{
    (void)state;
#define COUNT "must be a whole number of at least 1 and at most 2147483647, found "
    expect_one(MODEL "[training]\nsteps = 0\n", NULL, "r.toml:5: training.steps " COUNT "0");
    expect_one(MODEL "[training]\nsteps = 10.0\n", NULL, "r.toml:5: training.steps " COUNT "10.0");
    expect_one(MODEL, "--training.steps=", "--training.steps=: training.steps " COUNT "\"\"");
    expect_one(MODEL, "--training.steps=9999999999999999999999",
               "--training.steps=9999999999999999999999: training.steps " COUNT "\"9999999999999999999999\"");
    expect_one(MODEL, "--training.steps",
               "--training.steps: training.steps needs a value: a whole number of at least 1 and at most 2147483647");
    expect_one(MODEL, "--training.local_batch_size=-1",
               "--training.local_batch_size=-1: training.local_batch_size " COUNT "-1");
    expect_one(MODEL, "--training.global_batch_size=0",
               "--training.global_batch_size=0: training.global_batch_size must be -1 or a multiple of "
               "training.local_batch_size x data parallel ranks = 8 x 1, found 0");
    expect_one(MODEL, "--optimizer.lr=inf",
               "--optimizer.lr=inf: optimizer.lr must be a number of at least 0, found inf");
    expect_one(MODEL, "--optimizer.lr=-1e-3",
               "--optimizer.lr=-1e-3: optimizer.lr must be a number of at least 0, found -0.001");
    expect_one(MODEL, "--optimizer.eps=0", "--optimizer.eps=0: optimizer.eps must be a number above 0, found 0.0");
    expect_one(MODEL, "--lr_scheduler.decay_ratio=1.5",
               "--lr_scheduler.decay_ratio=1.5: lr_scheduler.decay_ratio must be a number from 0 to 1, found 1.5");
    expect_one(MODEL, "--training.dtype=float16",
               "--training.dtype=float16: training.dtype must be one of \"float32\", \"bfloat16\", found "
               "\"float16\"; did you mean \"bfloat16\"?");
    expect_one(MODEL "[checkpoint]\nkeep_latest_k = 1\n", NULL,
               "r.toml:5: checkpoint.keep_latest_k must be 0 (all) or at least 2, found 1: while the next is being "
               "written, or if it is damaged, the one before it is needed");
    expect_one(MODEL "[checkpoint]\nlast_save_in_hf = true\nlast_save_model_only = false\n", NULL,
               "r.toml:5: checkpoint.last_save_in_hf = true needs checkpoint.last_save_model_only = true (r.toml:6)");
    expect_one(MODEL "[checkpoint]\ncreate_seed_checkpoint = true\n", NULL,
               "r.toml:5: checkpoint.create_seed_checkpoint = true needs checkpoint.enable = true (default)");
    expect_one(MODEL "[checkpoint]\nexclude_from_loading = [\"optimiser\"]\n", NULL,
               "r.toml:5: checkpoint.exclude_from_loading must name \"optimizer\", \"lr_scheduler\", \"dataloader\" or "
               "\"train_state\", found \"optimiser\"; did you mean \"optimizer\"?");
    expect_one(MODEL "[checkpoint]\nenable = \"yes\"\n", NULL,
               "r.toml:5: checkpoint.enable must be true or false, found \"yes\"");
    expect_one(MODEL "[checkpoint]\nfolder = \"\"\n", NULL,
               "r.toml:5: checkpoint.folder must be a non-empty string, found \"\"");
    expect_one(MODEL "[activation_checkpoint]\nsave = [\"a\", 3]\n", NULL,
               "r.toml:5: activation_checkpoint.save must be an array of non-empty strings, found an array");
    expect_one(
        MODEL "[compile]\nxla_flags = 3\n", NULL,
        "r.toml:5: compile.xla_flags must be a table of flags, each true or false, a number or a string, found 3");
    expect_one("training = 3\n" MODEL, NULL, "r.toml:1: [training] must be a section, found a whole number");
    expect_one(MODEL "[[training]]\nsteps = 3\n", NULL, "r.toml:4: [training] must be a section, found an array");
    expect_one("steps = 3\n" MODEL, NULL, "r.toml:1: unknown key steps; did you mean training.steps?");
    expect_one("[model]\nname = \"quen3\"\nflavor = \"x\"\n", NULL,
               "r.toml:2: model.name must be one of \"llama3\", \"qwen3\", found \"quen3\"; did you mean \"qwen3\"?");
    expect_one(MODEL, "--checkpoint.no-enable=true",
               "--checkpoint.no-enable=true: a key with \"no-\" takes no value; write --checkpoint.enable=true or "
               "--checkpoint.enable=false");
    expect_one(MODEL, "stray", "stray: not of the form --section.key=value");
#undef COUNT
}

/* device.count is what the topology has, unless it is given. */
static void test_count_of_devices(void **state)
{
    (void)state;
    static const struct {
        const char *section;
        int64_t count;
    } rows[] = {
        {"", 1},
        {"num_slices = 2\n", 2},
        {"count = 3\n", 3},
        {"topology = \"tpu7x:2x2x1\"\n", 8},
        {"topology = \"v5p:4x4x8\"\nnum_slices = 2\n", 256},
        {"topology = \"v5p:4x4x8\"\ncount = 128\n", 128},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        char *text = ct_asprintf(MODEL "[device]\n%s", rows[i].section);
        ct_recipe *recipe;
        expect_ok(ct_recipe_parse("r.toml", text, strlen(text), NULL, &recipe));
        assert_int_equal(recipe->device.count, rows[i].count);
        ct_recipe_free(recipe);
        free(text);
    }
}

static void test_rules_between_keys(void **state)
{
    (void)state;
    expect_one(
        MODEL "[training]\nsteps = 10\n[lr_scheduler]\ntotal_steps = 9\n", NULL,
        "r.toml:7: lr_scheduler.total_steps must be at least training.steps = 10, found 9; raise it, or leave it "
        "out to follow training.steps");
    expect_one(MODEL, "--checkpoint.initial_load_in_hf",
               "--checkpoint.initial_load_in_hf: checkpoint.initial_load_in_hf needs checkpoint.initial_load_path, the "
               "folder to load");
    expect_one(MODEL, "--checkpoint.load_step=3",
               "--checkpoint.load_step=3: checkpoint.load_step = 3 needs checkpoint.enable = true");
    expect_one(
        MODEL, "--lora.adapter_path=a",
        "--lora.adapter_path=a: lora.adapter_path needs lora.rank, that of the adapters in it, found 0 (default)");
    expect_one(MODEL "[lora]\nrank = 8\ntarget_modules = []\n", NULL,
               "r.toml:6: lora.target_modules must name a module at least, as lora.rank = 8 (r.toml:5)");
    expect_one(
        MODEL "[lora]\nrank = 8\n[checkpoint]\nenable = true\ncreate_seed_checkpoint = true\n", NULL,
        "r.toml:8: checkpoint.create_seed_checkpoint = true needs lora.rank = 0 (r.toml:5): a step of a run with "
        "adapters has no other weights");
    expect_one(MODEL "[lora]\nrank = 8\n[checkpoint]\ninitial_load_path = \"a\"\ninitial_load_model_only = false\n",
               NULL,
               "r.toml:8: checkpoint.initial_load_model_only = false needs lora.rank = 0 (r.toml:5): the moments of "
               "frozen weights have no use");
    expect_one(MODEL "[activation_checkpoint]\nmode = \"none\"\nsave = [\"a\"]\n", NULL,
               "r.toml:6: activation_checkpoint.save needs activation_checkpoint.mode = \"selective\" or \"full\"");
    expect_one(
        MODEL, "--device.platform=gpu",
        "--device.platform=gpu: device.platform must be \"cpu\", \"cuda\", \"tpu\" or the path of a plugin, found "
        "\"gpu\"; did you mean \"cpu\"?");
    expect_one(MODEL "[device]\nplatform = \"/a/p.so\"\nplugin_path = \"/b/p.so\"\n", NULL,
               "r.toml:6: device.plugin_path needs device.platform = \"cpu\", \"cuda\" or \"tpu\", found the path "
               "\"/a/p.so\"; leave one of the two out");

    expect_one(MODEL "[device]\ntopology = \"v6e:4x4x4\"\n", NULL,
               "r.toml:5: device.topology: a topology of v6e has 2 sizes of 1 to 256, as 4x4, found \"v6e:4x4x4\"");
    expect_one(
        MODEL "[device]\ntopology = \"v6e:4x4\"\ncount = 8\n", NULL,
        "r.toml:6: device.count must be the 16 devices of device.topology = \"v6e:4x4\", found 8; leave it out, or "
        "set device.topology=none");
    expect_one(
        MODEL "[device]\ntopology = \"v6e:4x4\"\ncount = 16\n", "--device.num_slices=2",
        "r.toml:6: device.count must be the 32 devices of device.topology = \"v6e:4x4\" times device.num_slices, "
        "found 16; leave it out, or set device.topology=none");

    expect_one(MODEL "[parallelism]\ntensor_parallel_degree = 3\n[device]\ncount = 8\n", NULL,
               "r.toml:5: parallelism: data_parallel_replicate_degree 1 x data_parallel_shard_degree -1 x "
               "context_parallel_degree 1 x tensor_parallel_degree 3 (-1: what is left) does not divide 8, the number "
               "of devices (device.count); change a degree or device.count");
    expect_one(MODEL "[parallelism]\ncontext_parallel_degree = 2\ntensor_parallel_degree = 4\n[device]\ncount = 8\n",
               "--training.seq_len=24",
               "--training.seq_len=24: training.seq_len must be a multiple of 16, found 24: 2 x "
               "context_parallel_degree 2 when that is more than 1, x tensor_parallel_degree 4 when "
               "enable_sequence_parallel");
    expect_one(MODEL "[kernels]\nattention = \"definition\"\n[splash_attention_kernel]\n"
                     "use_tokamax_splash_attention_kernel = true\n",
               NULL,
               "r.toml:7: splash_attention_kernel.use_splash_attention_kernel = true does not go with "
               "kernels.attention = \"definition\" (r.toml:5)");
    expect_one(MODEL "[splash_attention_kernel]\nsa_block_kv = 384\nsa_block_kv_compute = 256\n", NULL,
               "r.toml:5: splash_attention_kernel.sa_block_kv = 384 must be a multiple of "
               "splash_attention_kernel.sa_block_kv_compute = 256 (r.toml:6)");
    /* tensor and context parallel devices share their sequences */
    expect_one(MODEL "[parallelism]\ntensor_parallel_degree = 2\ncontext_parallel_degree = 2\n[device]\ncount = 8\n",
               "--training.global_batch_size=24",
               "--training.global_batch_size=24: training.global_batch_size must be -1 or a multiple of "
               "training.local_batch_size x data parallel ranks = 8 x 2, found 24");

    expect_one(MODEL, "--device.count=2147483647",
               "--device.count=2147483647: device.count must be a whole number from 1 to 131072, found 2147483647");
    expect_one(MODEL "[training]\nlocal_batch_size = 2147483647\n", "--training.seq_len=2147483647",
               "--training.seq_len=2147483647: training.steps x sequences x training.seq_len must be less than 2^63 "
               "tokens, found 10000 x 2147483647 per data parallel rank x 2147483647; lower one");
    expect_one(MODEL "[activation_checkpoint]\nsave = [\"query\", \"key\"]\n",
               "--activation_checkpoint.recompute=value,key",
               "--activation_checkpoint.recompute=value,key: \"key\" must be in one list at most, found it in "
               "activation_checkpoint.save and activation_checkpoint.recompute; take it out of one");

    ct_recipe *recipe;
    ct_recipe_load_opts opts = {.needs_data = true};
    const char *text = MODEL "[training]\nglobal_batch_size = 32\n[device]\ncount = 3\n";
    expect_mistakes(
        ct_recipe_parse("r.toml", text, strlen(text), &opts, &recipe),
        "r.toml: 2 mistakes in the recipe:\n"
        "  r.toml: training.dataset_path is required: files, folders or patterns of the data\n"
        "  r.toml:5: training.global_batch_size must be -1 or a multiple of training.local_batch_size x data "
        "parallel ranks = 8 x 3, found 32");

    /* more warmup than steps is only a warning, as in TorchTitan */
    const char *argument = "--training.steps=10";
    recipe = parse_ok(MODEL, &argument, 1);
    assert_true(ct_lr_factor(&(ct_lr_schedule){.total_steps = 10, .num_warmup_steps = 200, .decay_ratio = -1}, 9) == 1);
    ct_lr_schedule schedule = ct_recipe_lr_schedule(recipe);
    assert_true(ct_lr_factor(&schedule, 9) == 1);
    ct_recipe_free(recipe);
}

static void test_a_later_value_counts(void **state)
{
    (void)state;
    /* A wrong value in the file stays a mistake, but no rule is judged by it. */
    const char *argument = "--training.steps=10";
    ct_recipe *recipe;
    expect_mistakes(
        parse(MODEL "[training]\nsteps = -4\n", &argument, 1, &recipe),
        "r.toml: 1 mistake in the recipe:\n  r.toml:5: training.steps must be a whole number of at least 1 and "
        "at most 2147483647, found -4");
}

static void test_files(void **state)
{
    (void)state;
    ct_recipe *recipe;
    expect_error(ct_recipe_load("/nonexistent/r.toml", NULL, &recipe), CT_CODE_NOT_FOUND, "/nonexistent/r.toml");
    assert_null(recipe);
    expect_error(ct_recipe_parse("r.toml", "[model\n", 7, NULL, &recipe), CT_CODE_INVALID_ARGUMENT, "r.toml:1:");

    const char *const arguments[] = {"--model.name=llama3", "--model.flavor=8B"};
    ct_recipe_load_opts opts = {.overrides = arguments, .num_overrides = 2};
    expect_ok(ct_recipe_load(NULL, &opts, &recipe)); /* the command line alone */
    assert_string_equal(recipe->model.flavor, "8B");
    ct_recipe_free(recipe);
}

static void test_print_loads_again(void **state)
{
    (void)state;
    const char *const arguments[] = {"--training.dataset_path=a \"b\"\\\n.txt", "--optimizer.lr=0.1",
                                     "--compile.xla_flags.xla_a=0.25",          "--compile.xla_flags.xla.b=x",
                                     "--compile.libtpu_init_args.xla_c=-1",     "--activation_checkpoint.save=p,q"};
    ct_recipe *recipe = parse_ok(MODEL, arguments, CT_COUNT(arguments));
    ct_str first, second;
    ct_str_init(&first);
    ct_str_init(&second);
    ct_recipe_print(recipe, &first);
    ct_recipe *again = parse_ok(first.data, NULL, 0);
    assert_string_equal(again->training.dataset_path.items[0], "a \"b\"\\\n.txt");
    assert_true(again->optimizer.lr == 0.1);
    assert_int_equal(again->compile.xla_flags.num_items, 2);
    assert_string_equal(again->compile.xla_flags.items[1].name, "xla.b");
    assert_null(again->compile.cache_dir);
    /* apart from the comments, printing again gives the same text */
    ct_recipe_print(again, &second);
    const char *a = first.data, *b = second.data;
    while (*a && *b) {
        size_t length_a = strcspn(a, "\n"), length_b = strcspn(b, "\n");
        const char *comment_a = strstr(a, "  # "), *comment_b = strstr(b, "  # ");
        size_t end_a = comment_a && comment_a < a + length_a ? (size_t)(comment_a - a) : length_a;
        size_t end_b = comment_b && comment_b < b + length_b ? (size_t)(comment_b - b) : length_b;
        if (end_a != end_b || memcmp(a, b, end_a) != 0)
            fail_msg("'%.*s' became '%.*s'", (int)length_a, a, (int)length_b, b);
        a += length_a + 1;
        b += length_b + 1;
    }
    assert_true(!*a && !*b);
    assert_non_null(strstr(first.data, "[optimizer]\nname = \"AdamW\"\nlr = 0.1  # --optimizer.lr=0.1\n"));
    assert_non_null(strstr(first.data, "# decay_ratio is not set\n"));
    ct_str_deinit(&first);
    ct_str_deinit(&second);
    ct_recipe_free(recipe);
    ct_recipe_free(again);
}

static void test_help(void **state)
{
    (void)state;
    ct_str text;
    ct_str_init(&text);
    ct_recipe_help(&text);
    assert_non_null(strstr(text.data, "[training]\n"));
    assert_non_null(strstr(text.data,
                           "  --training.steps=N\n      optimizer steps of the run; a whole number of at least 1 "
                           "and at most 2147483647; default 10000\n"));
    assert_non_null(strstr(text.data, "working directory"));
    ct_str_deinit(&text);
}

/* Every recipe in the repository loads without a mistake, its data being named. */
static void load_folder(const char *folder, size_t *num_recipes)
{
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    for (size_t i = 0; i < num_names; i++) {
        char *path = ct_path_join(folder, names[i]);
        if (ct_path_is_dir(path)) {
            load_folder(path, num_recipes);
        } else if (strstr(names[i], ".toml")) {
            ct_recipe *recipe;
            expect_ok(ct_recipe_load(path, &(ct_recipe_load_opts){.needs_data = true}, &recipe));
            ct_recipe_free(recipe);
            ++*num_recipes;
        }
        free(path);
    }
    ct_names_free(names, num_names);
}

static void test_the_repositorys_recipes(void **state)
{
    (void)state;
    size_t num_recipes = 0;
    load_folder(CT_SOURCE_DIR "/recipes", &num_recipes);
    assert_true(num_recipes >= 6);
}

static void test_fuzz_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "toml", LLVMFuzzerTestOneInput);
    ct_test_replay(CT_TEST_CORPORA, "recipe", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_kind_of_value),
        cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_what_is_an_override),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_ten_mistakes),
        cmocka_unit_test(test_impossible_values),
        cmocka_unit_test(test_count_of_devices),
        cmocka_unit_test(test_rules_between_keys),
        cmocka_unit_test(test_a_later_value_counts),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_print_loads_again),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_the_repositorys_recipes),
        cmocka_unit_test(test_fuzz_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
