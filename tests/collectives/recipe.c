/* Recipe to program to traffic. The sizes have different odd factors (3, 1, 7, 15; activations 5), so that a part of
 * one array is never as large as a part of another.
 */
#include "recipe.h"

#include "pjrt/testing.h"
#include "train/chip.h"
#include "train/setup.h"

enum { DIM = 4096, HEADS = 12, KV_HEADS = 4, HEAD_DIM = 128, FFN = 7168, VOCAB = 61440, LAYERS = 2, SEQ = 320 };

static ct_recipe *load_recipe(const char *folder, size_t num_devices, int64_t tp, const char *const *options,
                              size_t num_options)
{
    char *config = ct_path_join(folder, "config.json"), *path = ct_path_join(folder, "recipe.toml");
    char *text = ct_asprintf("{\"model_type\": \"qwen3\", \"hidden_size\": %d, \"num_hidden_layers\": %d, "
                             "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": %d, "
                             "\"intermediate_size\": %d, \"vocab_size\": %d, \"tie_word_embeddings\": false}",
                             DIM, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB);
    expect_ok(ct_file_write(config, text, strlen(text)));
    free(text);
    text = ct_asprintf("[model]\nname = \"qwen3\"\nflavor = \"%s\"\n[training]\nlocal_batch_size = 1\nseq_len = %d\n"
                       "mixed_precision_param = \"bfloat16\"\nmixed_precision_reduce = \"bfloat16\"\n"
                       "[activation_checkpoint]\nmode = \"full\"\n"
                       "[parallelism]\ntensor_parallel_degree = %lld\nfsdp_prefetch = 0\n[device]\ncount = %zu\n",
                       folder, SEQ, (long long)tp, num_devices);
    expect_ok(ct_file_write(path, text, strlen(text)));
    ct_recipe *recipe;
    expect_ok(
        ct_recipe_load(path, &(ct_recipe_load_opts){.overrides = options, .num_overrides = num_options}, &recipe));
    free(text);
    free(path);
    free(config);
    return recipe;
}

/* One device's share of parameters and moments, f32, as good as evenly. */
static double state_bytes(size_t num_devices)
{
    double layer = 2.0 * HEADS * HEAD_DIM * DIM + 2.0 * KV_HEADS * HEAD_DIM * DIM + 3.0 * FFN * DIM;
    return 12 * (LAYERS * layer + 2.0 * VOCAB * DIM) / (double)num_devices;
}

static void check(const ct_executable *executable, const ct_mesh *mesh, int64_t tp, const char *name)
{
    ct_arena arena;
    ct_arena_init(&arena);
    ct_hlo_module *module;
    expect_ok(ct_executable_hlo(executable, &arena, &module));
    ct_hlo_traffic traffic;
    ct_hlo_traffic_find(&arena, module, mesh->num_devices, &traffic);

    int64_t sizes[CT_MAX_MESH_AXES];
    traffic_rules rules = {.num_axes = mesh->num_axes, .sizes = sizes, .num_weights = 4, .small_elements = 2 * DIM};
    for (int a = 0; a < mesh->num_axes; a++) {
        sizes[a] = mesh->axes[a].size;
        if (mesh->axes[a].group == CT_MESH_DP_SHARD) rules.num_fsdp_axes++;
    }
    /* wq and wo; wk and wv; the three of the feed-forward; embedding and head. Layers twice: forward and backward. */
    const int64_t weights[] = {HEADS * HEAD_DIM * DIM / tp, KV_HEADS * HEAD_DIM * DIM / tp, (int64_t)FFN * DIM / tp,
                               (int64_t)VOCAB * DIM / tp};
    const int64_t gathers[] = {2 * 2 * LAYERS, 2 * 2 * LAYERS, 2 * 3 * LAYERS, 2};
    const int64_t scatters[] = {2 * LAYERS, 2 * LAYERS, 3 * LAYERS, 2};
    rules.weights = weights;
    rules.gathers = gathers;
    rules.scatters = scatters;
    if (tp > 1) {
        /* Megatron with sequence parallel, per layer: two gathers and two scatters forward, the same turned round
         * backward, and what full remat makes again: both gathers, and the scatter between attention and feed-forward.
         * Around the layers a scatter after the embedding, a gather before the head, and each turned round. */
        rules.activation_elements = (int64_t)SEQ * DIM;
        rules.num_activation_gathers = 6 * LAYERS + 2;
        rules.num_activation_scatters = 5 * LAYERS + 2;
    }
    ct_str problems;
    ct_str_init(&problems);
    size_t num_problems = traffic_check(&traffic, &rules, &problems);
    if (num_problems) {
        ct_hlo_traffic_print(&traffic, rules.num_axes, sizes, &problems);
        print_error("%s, tp %lld: %zu problems\n%s", name, (long long)tp, num_problems, problems.data);
        fail();
    }
    ct_str_deinit(&problems);
    ct_arena_deinit(&arena);
}

void check_recipe(const char *topology_name, int64_t tp, const char *const *options, size_t num_options)
{
    ct_topology *topology;
    expect_ok(ct_topology_new(ct_test_libtpu(), topology_name, NULL, 0, &topology));
    size_t num_devices = ct_topology_num_devices(topology);
    int *ids = ct_alloc_zeroed(num_devices, sizeof(*ids));
    ct_torus torus;
    expect_ok(ct_topology_torus(topology, tp, &torus, ids));
    const char *kind = ct_topology_device_kind(topology, 0);

    char *folder = ct_test_folder_new();
    ct_recipe *recipe = load_recipe(folder, num_devices, tp, options, num_options);
    ct_model *model;
    ct_parallel parallel;
    ct_graph *graph;
    expect_ok(ct_recipe_model(recipe, &model));
    expect_ok(ct_recipe_parallel(recipe, model, torus.num_axes, torus.sizes, kind, &parallel));
    ct_step_opts step = ct_recipe_step(recipe, &parallel, kind);
    expect_ok(ct_train_step_build(model, &step, &graph));
    ct_str text;
    ct_str_init(&text);
    expect_ok(ct_graph_print(graph, &text));

    ct_arena arena;
    ct_arena_init(&arena);
    ct_compile_opts compile = {.num_partitions = (int)num_devices, .device_ids = ids};
    compile.flags = ct_chip_flags(&arena, kind, NULL, 0, &compile.num_flags);
    ct_executable *executable;
    expect_ok(ct_topology_compile(topology, text.data, text.length, &compile, &executable));
    ct_executable_memory memory;
    expect_ok(ct_executable_memory_stats(executable, &memory));
    print_message("%s, tp %lld: arguments %lld bytes, temporaries %lld bytes\n", topology_name, (long long)tp,
                  (long long)memory.argument_bytes, (long long)memory.temp_bytes);
    check(executable, &parallel.mesh, tp, topology_name);
    double share = (double)memory.argument_bytes / state_bytes(num_devices);
    if (share < 1 || share > 1.05) fail_msg("arguments are %.3f of the state's share of a device", share);

    ct_executable_free(executable);
    ct_arena_deinit(&arena);
    ct_str_deinit(&text);
    ct_graph_free(graph);
    ct_model_free(model);
    ct_recipe_free(recipe);
    ct_test_folder_free(folder);
    free(ids);
    ct_topology_free(topology);
}
