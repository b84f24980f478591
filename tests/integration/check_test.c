/* `ctitan check` on every recipe: what it prints, how fast, in how little memory; a scanned program does not grow with
 * the number of layers.
 */
#include <ctype.h>

#include "support.h"

/* The number behind a label of the report. */
static int64_t number(const ct_test_run *run, const char *label)
{
    const char *at = strstr(run->out, label);
    if (!at) fail_msg("no \"%s\" in:\n%s", label, run->out);
    for (at += strlen(label); isspace((unsigned char)*at); at++) {
    }
    return strtoll(at, NULL, 10);
}

/* What a recipe's name begins with, and how many parameters that is. */
static const struct {
    const char *prefix;
    int64_t num_params;
} SIZES[] = {
    {"llama3/debug.", 6163712},     {"llama3/8b-", 8030261248}, {"llama3/70b-", 70553706496},
    {"llama3/405b-", 405853388800}, {"qwen3/demo.", 1968064},   {"qwen3/debug", 31987968},
    {"qwen3/0.6b-", 596049920},     {"qwen3/8b-", 8190735360},  {"qwen3/14b-", 14768307200},
    {"qwen3/32b-", 32762123264},
};

static void check_recipe(const char *name, int64_t num_params)
{
    /* The folder that recipes for fine-tuning start from is the user's. */
    bool has_adapters = strstr(name, "-lora.") != NULL, is_fine_tuning = strstr(name, "-sft.") || has_adapters;
    const char *flavor = is_fine_tuning && strstr(name, "0.6b") ? "--model.flavor=0.6B" : "";
    ct_test_run run = ct_test_start("check " CT_SOURCE_DIR "/recipes/%s %s", name, flavor);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    assert_int_equal(number(&run, "\nparameters"), num_params);
    int64_t state = number(&run, "\nstate  "), of_adapters = has_adapters ? 12 * number(&run, "\ntrained") : 0;
    int64_t per_parameter = (state - of_adapters) / num_params;
    assert_int_equal((state - of_adapters) % num_params, 0);
    if (has_adapters)
        assert_true(of_adapters > 0 && (per_parameter == 2 || per_parameter == 4)); /* frozen, in bf16 or f32 */
    else
        assert_true(per_parameter == 12 || per_parameter == 8); /* f32 weights; two moments in f32 or bf16 */
    double devices = (double)number(&run, "\ndevices"), replicas = strstr(name, "405b-v6e") ? 2 : 1;
    double share = (double)number(&run, "\nstate per device") * devices / replicas / (double)state;
    assert_true(share >= 1 && share < 1.02); /* norms are whole */
    assert_true(number(&run, "\nFLOPs per token") > 6 * num_params / 2);
    bool is_for_tpu = strchr(name, '-') != NULL && !is_fine_tuning;
    assert_int_equal(strstr(run.out, "attention mosaic") != NULL && strstr(run.out, "loss mosaic") != NULL, is_for_tpu);
    print_message("%-24s %.2f s, %lld MiB\n", name, run.seconds, (long long)run.peak_kib / 1024);
#if !defined(__SANITIZE_ADDRESS__)
    assert_true(run.peak_kib < 300 * 1000);
    assert_true(run.seconds < 3);
#endif
    ct_test_run_free(&run);
}

/* All recipes, each for its slice, and every size is there. */
static void test_recipes(void **state)
{
    (void)state;
    static const char *const families[] = {"llama3", "qwen3"};
    size_t num_of[CT_COUNT(SIZES)] = {0};
    for (size_t i = 0; i < CT_COUNT(families); i++) {
        char *folder = ct_asprintf(CT_SOURCE_DIR "/recipes/%s", families[i]), **names;
        size_t num_names;
        expect_ok(ct_dir_list(folder, &names, &num_names));
        for (size_t j = 0; j < num_names; j++) {
            char *name = ct_asprintf("%s/%s", families[i], names[j]);
            size_t size = 0;
            while (size < CT_COUNT(SIZES) && strncmp(name, SIZES[size].prefix, strlen(SIZES[size].prefix))) size++;
            if (size == CT_COUNT(SIZES)) fail_msg("recipes/%s is of no known size", name);
            num_of[size]++;
            check_recipe(name, SIZES[size].num_params);
            free(name);
        }
        ct_names_free(names, num_names);
        free(folder);
    }
    for (size_t i = 0; i < CT_COUNT(SIZES); i++) assert_true(num_of[i] >= (strchr(SIZES[i].prefix, '-') ? 3 : 1));
}

static ct_test_run check_layers(int num_layers, bool scan)
{
    const char *folder = ct_test_path("layers%d", num_layers), *recipe = ct_test_path("layers%d.toml", num_layers);
    char *config = ct_path_join(folder, "config.json");
    ct_test_write(config,
                  "{\"model_type\": \"qwen3\", \"hidden_size\": 64, \"num_hidden_layers\": %d, "
                  "\"num_attention_heads\": 4, \"intermediate_size\": 48, \"vocab_size\": 90}",
                  num_layers);
    free(config);
    ct_test_write(recipe, "[model]\nname = \"qwen3\"\nflavor = \"%s\"\n[training]\nseq_len = 32\n", folder);
    ct_test_run run = ct_test_start("check %s --model.scan_layers=%s --program=%s", recipe, scan ? "true" : "false",
                                    ct_test_path("program%d.mlir", num_layers));
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    return run;
}

static void test_program_size(void **state)
{
    (void)state;
    ct_test_run few = check_layers(10, true), many = check_layers(90, true);
    size_t size;
    char *text = ct_test_read(ct_test_path("program90.mlir"), &size);
    assert_int_equal(number(&many, "\nprogram"), size);
    assert_true(!strncmp(text, "module", 6));
    assert_in_range(number(&few, "\nprogram"), size - 8, size); /* digits: the last layer is 9, or 89 */
    ct_test_run_free(&few);
    ct_test_run_free(&many);
    free(text);
    many = check_layers(90, false);
    assert_true(number(&many, "\nprogram") > 20 * (int64_t)size);
    ct_test_run_free(&many);
    ct_test_fails(1, "/nowhere/program", "check %s --program=/nowhere/program", ct_test_path("layers10.toml"));
}

static void expect_text(const ct_test_run *run, const char *text)
{
    if (!strstr(run->out, text)) fail_msg("wanted \"%s\" in:\n%s", text, run->out);
}

/* On a mesh the state shrinks by the shard degree, and the report says where everything lies and what moves. */
static void test_sharding(void **state)
{
    (void)state;
    static const char line[] = "check " CT_SOURCE_DIR "/recipes/qwen3/8b-v6e.toml --sharding --device.topology=none "
                               "--training.local_batch_size=6 --training.seq_len=2048 "
                               "--training.mixed_precision_reduce=float32 --device.count=%d "
                               "--parallelism.tensor_parallel_degree=%d %s";
    ct_test_run run = ct_test_start(line, 16, 4, "");
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    double share = (double)number(&run, "\nstate  ") / (double)number(&run, "\nstate per device");
    assert_true(share > 0.95 * 16 && share <= 16); /* norms are whole */
    expect_text(&run, "Mesh: dp_shard=4 tp=4, 16 devices");
    expect_text(&run, "model.layers.*.mlp.down_proj.weight f32[layers=36 dim=4096 ffn=12288]\n"
                      "    stored dim=dp_shard ffn=tp                [36 1024 3072] 452984832 bytes\n"
                      "    used   ffn=tp                             [4096 3072] 25165824 bytes\n");
    expect_text(&run, "residual bf16[batch=24 seq=2048 dim=4096]\n"
                      "    batch=dp_shard seq=tp              [6 512 4096] 25165824 bytes\n");
    expect_text(&run, "reduce_scatter     dp_shard                 f32      50331648 x 36   "
                      "f32[dim=4096 ffn=3072], gradient; layers");
    assert_null(strstr(run.out, "f32[layers=36 dim=4096 ffn=12288], ")); /* no gradient is reduced stacked */
    ct_test_run_free(&run);
    ct_test_fails(1, "parallelism.partitioner = \"shardy\"", line, 16, 4, "--parallelism.partitioner=shardy");
    ct_test_fails(1, "parallelism.tensor_parallel_degree = 64 must divide the model's heads = 32", line, 64, 64, "");
    ct_test_fails(1, "tensor_parallel_degree 3 (-1: what is left) does not divide 16", line, 16, 3, "");
}

/* The same step on 8 and on 512 devices: as many operations, and no time to speak of. */
static void test_number_of_devices(void **state)
{
    (void)state;
    static const struct {
        int devices, cp, tp;
    } meshes[] = {{8, 2, 2}, {512, 4, 8}};
    static const char *const rotations[] = {"allgather", "ring"};
    for (size_t r = 0; r < CT_COUNT(rotations); r++) {
        int64_t operations[2];
        for (size_t i = 0; i < CT_COUNT(meshes); i++) {
            ct_test_run run = ct_test_start(
                "check " CT_SOURCE_DIR
                "/recipes/llama3/70b-v5p.toml --device.topology=none --device.count=%d --training.seq_len=8192 "
                "--parallelism.context_parallel_degree=%d --parallelism.tensor_parallel_degree=%d "
                "--parallelism.context_parallel_rotate_method=%s --training.global_batch_size=-1",
                meshes[i].devices, meshes[i].cp, meshes[i].tp, rotations[r]);
            ct_test_wait(&run);
            ct_test_expect(&run, 0, "");
            const char *line = strstr(run.out, "\nprogram"), *comma = line ? strchr(line, ',') : NULL;
            assert_non_null(comma);
            operations[i] = strtoll(comma + 1, NULL, 10);
            print_message("%d devices, %s: %lld operations, %.2f s\n", meshes[i].devices, rotations[r],
                          (long long)operations[i], run.seconds);
#if !defined(__SANITIZE_ADDRESS__)
            assert_true(run.seconds < 2);
#endif
            ct_test_run_free(&run);
        }
        assert_true(operations[0] > 1000);
        assert_int_equal(operations[0], operations[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recipes), cmocka_unit_test(test_program_size),
                                       cmocka_unit_test(test_sharding), cmocka_unit_test(test_number_of_devices)};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
