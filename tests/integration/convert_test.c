/* ctitan convert: round trips are equal byte for byte, trained steps become folders that score and transformers read.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/json.h"
#include "reference.h"
#include "support.h"
#include "tokenizer/tokenizer.h"

enum { DIM = 16, FFN = 40, VOCAB = 96, HEADS = 4, KV_HEADS = 2, LAYERS = 2 };

/* ---- a Hugging Face folder, as others write them ---- */

typedef struct writer {
    ct_safetensors_entry entries[64];
    size_t num_entries;
    ct_dtype dtype;
    uint32_t seed;
} writer;

/* Every bit pattern may come, NaNs and infinities as well: conversion is no judge of values. */
static void add(writer *w, const char *name, int rank, int64_t rows, int64_t columns)
{
    int64_t sizes[2] = {rows, columns};
    ct_array array = ct_array_new(w->dtype, sizes, rank);
    unsigned char *bytes = array.data;
    for (size_t i = 0; i < ct_array_bytes(&array); i++)
        bytes[i] = (unsigned char)((ct_test_random(w->seed, (uint32_t)i) + 1) * 127.9);
    w->seed++;
    w->entries[w->num_entries++] = (ct_safetensors_entry){.name = strdup(name), .array = array};
}

static void add_model(writer *w, bool tied)
{
    int64_t head_dim = DIM / HEADS;
    add(w, "model.embed_tokens.weight", 2, VOCAB, DIM);
    for (int i = 0; i < LAYERS; i++) {
        const struct {
            const char *name;
            int rank;
            int64_t rows, columns;
        } parts[] = {{"input_layernorm", 1, DIM, 0},
                     {"self_attn.q_proj", 2, HEADS * head_dim, DIM},
                     {"self_attn.k_proj", 2, KV_HEADS * head_dim, DIM},
                     {"self_attn.v_proj", 2, KV_HEADS * head_dim, DIM},
                     {"self_attn.o_proj", 2, DIM, HEADS * head_dim},
                     {"post_attention_layernorm", 1, DIM, 0},
                     {"mlp.gate_proj", 2, FFN, DIM},
                     {"mlp.up_proj", 2, FFN, DIM},
                     {"mlp.down_proj", 2, DIM, FFN}};
        for (size_t j = 0; j < CT_COUNT(parts); j++) {
            char name[128];
            snprintf(name, sizeof(name), "model.layers.%d.%s.weight", i, parts[j].name);
            add(w, name, parts[j].rank, parts[j].rows, parts[j].columns);
        }
    }
    add(w, "model.norm.weight", 1, DIM, 0);
    add(w, "lm_head.weight", 2, VOCAB, DIM); /* tied models have it too, as some writers repeat it */
    if (tied) return;
    ct_dtype dtype = w->dtype;
    w->dtype = CT_DTYPE_S64; /* something that is no part of the model */
    add(w, "extra.positions", 1, 7, 0);
    w->dtype = dtype;
}

/* In one file, or in three with their index. */
static const char *make_folder(const char *name, ct_dtype dtype, bool tied, bool sharded)
{
    const char *folder = ct_test_path("%s", name);
    ct_test_write(ct_test_path("%s/config.json", name),
                  "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n  \"model_type\": \"llama\", \"hidden_size\": %d, "
                  "\"num_hidden_layers\": %d, \"num_attention_heads\": %d, \"num_key_value_heads\": %d, "
                  "\"intermediate_size\": %d, \"vocab_size\": %d,\n \"max_position_embeddings\": 64, "
                  "\"tie_word_embeddings\": %s, \"torch_dtype\": \"%s\", \"an_unknown_key\": [1, {\"b\": null}] }",
                  DIM, LAYERS, HEADS, KV_HEADS, FFN, VOCAB, tied ? "true" : "false", ct_dtype_torch(dtype));
    ct_test_write(ct_test_path("%s/generation_config.json", name), "{ \"eos_token_id\": [2, 3]   }");
    ct_test_write(ct_test_path("%s/tokenizer.json", name), "{\"version\": \"1.0\", \"model\": {}}\n");
    ct_test_write(ct_test_path("%s/tokenizer_config.json", name), "{}");
    ct_test_write(ct_test_path("%s/chat_template.jinja", name), "{{ messages }}");
    ct_test_write(ct_test_path("%s/README.md", name), "not taken along");
    writer w = {.dtype = dtype, .seed = 1};
    add_model(&w, tied);
    if (sharded) {
        ct_json_writer *index = ct_json_writer_new();
        ct_json_begin_object(index, NULL);
        ct_json_begin_object(index, "weight_map");
        size_t per_file = w.num_entries / 3 + 1;
        for (int i = 0; i < 3; i++) {
            char file[64];
            snprintf(file, sizeof(file), "model-%05d-of-00003.safetensors", i + 1);
            size_t begin = (size_t)i * per_file, end = CT_MIN(begin + per_file, w.num_entries);
            expect_ok(ct_safetensors_save(ct_test_path("%s/%s", name, file), w.entries + begin, end - begin));
            for (size_t j = begin; j < end; j++) ct_json_put_string(index, w.entries[j].name, file);
        }
        ct_json_end(index);
        ct_json_end(index);
        char *text = ct_json_writer_text(index, true);
        ct_json_writer_free(index);
        ct_test_write(ct_test_path("%s/model.safetensors.index.json", name), "%s", text);
        free(text);
    } else {
        expect_ok(ct_safetensors_save(ct_test_path("%s/model.safetensors", name), w.entries, w.num_entries));
    }
    for (size_t i = 0; i < w.num_entries; i++) {
        free((char *)(uintptr_t)w.entries[i].name);
        ct_array_free(&w.entries[i].array);
    }
    return folder;
}

/* ---- comparisons ---- */

static void expect_same_tensors(const char *folder_a, const char *folder_b)
{
    ct_safetensors *a, *b;
    expect_ok(ct_safetensors_dir_open(folder_a, &a));
    expect_ok(ct_safetensors_dir_open(folder_b, &b));
    assert_int_equal(ct_safetensors_num_tensors(a), ct_safetensors_num_tensors(b));
    for (size_t i = 0; i < ct_safetensors_num_tensors(a); i++) {
        const ct_safetensors_tensor *x = ct_safetensors_at(a, i), *y;
        expect_ok(ct_safetensors_find(b, x->name, &y));
        assert_string_equal(x->dtype_name, y->dtype_name);
        assert_int_equal(x->rank, y->rank);
        assert_memory_equal(x->sizes, y->sizes, (size_t)x->rank * sizeof(x->sizes[0]));
        assert_memory_equal(x->data, y->data, x->size_bytes);
    }
    ct_safetensors_close(a);
    ct_safetensors_close(b);
}

static void expect_same_file(const char *folder_a, const char *folder_b, const char *name)
{
    char *path_a = ct_path_join(folder_a, name), *path_b = ct_path_join(folder_b, name);
    size_t size_a, size_b;
    char *a = ct_test_read(path_a, &size_a), *b = ct_test_read(path_b, &size_b);
    assert_int_equal(size_a, size_b);
    assert_memory_equal(a, b, size_a);
    free(a);
    free(b);
    free(path_a);
    free(path_b);
}

static void expect_same_folders(const char *a, const char *b)
{
    static const char *const files[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        "tokenizer_config.json", "chat_template.jinja"};
    expect_same_tensors(a, b);
    for (size_t i = 0; i < CT_COUNT(files); i++) expect_same_file(a, b, files[i]);
}

/* ---- tests ---- */

static void test_round_trips(void **state)
{
    (void)state;
    static const struct {
        ct_dtype dtype;
        bool tied, sharded_source, sharded_target;
    } kinds[] = {{CT_DTYPE_BF16, true, true, true},
                 {CT_DTYPE_F32, false, false, true},
                 {CT_DTYPE_F16, false, true, false},
                 {CT_DTYPE_BF16, false, false, false}};
    for (int i = 0; i < (int)CT_COUNT(kinds); i++) {
        char name[32];
        snprintf(name, sizeof(name), "round.%d", i);
        const char *source = make_folder(name, kinds[i].dtype, kinds[i].tied, kinds[i].sharded_source);
        const char *step = ct_test_path("%s.steps/step-%d", name, i), *back = ct_test_path("%s.back", name);
        ct_test_ok("convert %s %s", source, step);
        ct_test_ok("convert %s %s%s", i % 2 ? step : ct_test_path("%s.steps", name), back,
                   kinds[i].sharded_target ? " --max-shard-size=8KB" : "");
        expect_same_folders(source, back);
        assert_int_equal(ct_test_folder_has(back, "model.safetensors.index.json"), kinds[i].sharded_target);
        assert_false(ct_test_folder_has(back, "manifest.json"));
        assert_false(ct_test_folder_has(back, "README.md"));
    }
    /* sharded another way */
    ct_test_ok("convert %s %s --max-shard-size=6000B", ct_test_path("round.0.back"), ct_test_path("round.0.again"));
    expect_same_folders(ct_test_path("round.0"), ct_test_path("round.0.again"));
}

static void test_types(void **state)
{
    (void)state;
    const char *source = make_folder("types", CT_DTYPE_F32, false, false);
    static const ct_dtype dtypes[] = {CT_DTYPE_BF16, CT_DTYPE_F16};
    ct_safetensors *wide, *narrow;
    expect_ok(ct_safetensors_dir_open(source, &wide));
    for (size_t i = 0; i < CT_COUNT(dtypes); i++) {
        const char *step = ct_test_path("types.%zu/step-1", i), *target = ct_test_path("types.%zu/hf", i);
        ct_test_ok("convert %s %s", source, step);
        ct_test_ok("convert %s %s --dtype=%s", step, target, ct_dtype_torch(dtypes[i]));
        expect_ok(ct_safetensors_dir_open(target, &narrow));
        for (size_t j = 0; j < ct_safetensors_num_tensors(wide); j++) {
            const ct_safetensors_tensor *x = ct_safetensors_at(wide, j), *y;
            expect_ok(ct_safetensors_find(narrow, x->name, &y));
            ct_array from, to;
            expect_ok(ct_safetensors_load(x, &from));
            expect_ok(ct_safetensors_load(y, &to));
            bool is_float = ct_dtype_is_float(x->dtype);
            assert_int_equal(y->dtype, is_float ? dtypes[i] : x->dtype);
            ct_array wanted = ct_array_new(to.dtype, to.sizes, to.rank);
            for (int64_t k = 0; k < ct_array_num_elements(&from) && is_float; k++)
                ct_array_set(&wanted, k, ct_array_get(&from, k));
            assert_memory_equal(to.data, is_float ? wanted.data : from.data, ct_array_bytes(&to));
            ct_array_free(&from);
            ct_array_free(&to);
            ct_array_free(&wanted);
        }
        ct_safetensors_close(narrow);
        char *config = ct_test_read(ct_test_path("types.%zu/hf/config.json", i), NULL), wanted[64];
        snprintf(wanted, sizeof(wanted), "\"torch_dtype\": \"%s\"", ct_dtype_torch(dtypes[i]));
        assert_non_null(strstr(config, wanted));
        assert_non_null(strstr(config, "an_unknown_key"));
        free(config);
    }
    ct_safetensors_close(wide);
}

static void flip(const char *path)
{
    int descriptor = open(path, O_RDWR);
    unsigned char byte = 0;
    assert_true(descriptor >= 0 && pread(descriptor, &byte, 1, 3000) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(descriptor, &byte, 1, 3000), 1);
    close(descriptor);
}

static void test_errors(void **state)
{
    (void)state;
    const char *source = make_folder("errors", CT_DTYPE_BF16, false, false), *out = ct_test_path("errors.out");
    ct_test_fails(1, "must be a folder", "convert %s %s", ct_test_path("nowhere"), out);
    ct_test_fails(1, "must be a saved step", "convert %s %s", ct_test_world(), out);
    ct_test_fails(2, "--dtype must be", "convert %s %s --dtype=int8", source, out);
    ct_test_fails(2, "--max-shard-size must be", "convert %s %s --max-shard-size=5XB", source, out);
    ct_test_fails(2, "", "convert %s", source);
    ct_test_ok("convert %s %s", source, ct_test_path("errors.steps/step-3"));
    ct_test_fails(1, "step-3 exists already", "convert %s %s", source, ct_test_path("errors.steps/step-3"));
    ct_test_ok("convert %s %s", source, ct_test_path("errors.steps/step-4"));
    flip(ct_test_path("errors.steps/step-4/state-00001.safetensors"));
    ct_test_fails(1, "step-4/state-00001.safetensors was changed", "convert %s %s", ct_test_path("errors.steps/step-4"),
                  out);
    ct_test_run run = ct_test_start("convert %s %s", ct_test_path("errors.steps"), out); /* the one before it */
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "skipping step 4");
    ct_test_run_free(&run);
    expect_same_folders(source, out);
    ct_test_fails(1, "errors.out exists already", "convert %s %s", ct_test_path("errors.steps"), out);

    /* a folder that is not what its config.json says */
    ct_test_write(ct_test_path("lacks/config.json"),
                  "{\"model_type\": \"llama\", \"hidden_size\": %d, \"num_hidden_layers\": 3, "
                  "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"intermediate_size\": %d, "
                  "\"vocab_size\": %d}",
                  DIM, HEADS, KV_HEADS, FFN, VOCAB);
    assert_int_equal(symlink(ct_test_path("errors/model.safetensors"), ct_test_path("lacks/model.safetensors")), 0);
    ct_test_fails(1, "must hold tensor model.layers.2.input_layernorm.weight", "convert %s %s", ct_test_path("lacks"),
                  ct_test_path("lacks.out"));
    assert_false(ct_test_folder_has(ct_test_world(), "lacks.out"));
    ct_test_fails(1, "No such file", "convert %s /proc/none/out", source);
}

/* ---- trained weights, and transformers ---- */

static const char *const FAMILIES[] = {"llama3", "qwen3"};
static const char *const FLAVORS[] = {"debugmodel", "debugmodel"};
static const char *const TOKENIZERS[] = {"bytes", CT_SOURCE_DIR "/tests/data/tokenizer"};

/* Trains a little; the last step, converted, is a folder whose config.json ctitan wrote from the table of sizes, and
 * generation_config.json from the tokenizer. */
static int train(void **state)
{
    (void)state;
    ct_test_world();
    char text[1200];
    for (uint32_t i = 0; i < sizeof(text) - 1; i++)
        text[i] = "etaoin shrdlu\n"[(int)((ct_test_random(5, i) + 1) * 6.999)];
    text[sizeof(text) - 1] = 0;
    ct_test_write(ct_test_path("text.txt"), "%s", text);
    for (size_t i = 0; i < CT_COUNT(FAMILIES); i++) {
        const char *recipe = ct_test_path("%s.toml", FAMILIES[i]);
        ct_test_write(recipe,
                      "[model]\nname = \"%s\"\nflavor = \"%s\"\nhf_assets_path = \"%s\"\n"
                      "[training]\nlocal_batch_size = 1\nseq_len = 32\nsteps = 2\n"
                      "dataset = \"text\"\ndataset_path = \"%s\"\n[lr_scheduler]\nwarmup_steps = 0\n"
                      "[checkpoint]\nenable = true\nlast_save_model_only = false\n",
                      FAMILIES[i], FLAVORS[i], TOKENIZERS[i], ct_test_path("text.txt"));
        ct_test_ok("train %s --dump_folder=%s", recipe, ct_test_path("%s", FAMILIES[i]));
        ct_test_ok("convert %s %s", ct_test_path("%s/checkpoint", FAMILIES[i]), ct_test_path("%s.hf", FAMILIES[i]));
    }
    int32_t ids[2 * 33];
    for (uint32_t i = 0; i < CT_COUNT(ids); i++) ids[i] = (int32_t)((ct_test_random(8, i) + 1) * 1000);
    ct_safetensors_entry entry = {"tokens", {.dtype = CT_DTYPE_S32, .rank = 2, .sizes = {2, 33}, .data = ids}};
    expect_ok(ct_safetensors_save(ct_test_path("tokens.safetensors"), &entry, 1));
    return 0;
}

/* The folder's tensors are the step's. */
static void test_trained(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_COUNT(FAMILIES); i++) {
        ct_checkpoint *step;
        ct_safetensors *file;
        expect_ok(ct_checkpoint_open(ct_test_path("%s/checkpoint", FAMILIES[i]), 2, NULL, &step));
        expect_ok(ct_safetensors_dir_open(ct_test_path("%s.hf", FAMILIES[i]), &file));
        assert_int_equal(3 * ct_safetensors_num_tensors(file), ct_checkpoint_num_tensors(step));
        for (size_t j = 0; j < ct_safetensors_num_tensors(file); j++) {
            const ct_safetensors_tensor *tensor = ct_safetensors_at(file, j);
            ct_array array = ct_test_checkpoint_array(step, tensor->name);
            assert_memory_equal(array.data, tensor->data, ct_array_bytes(&array));
            ct_array_free(&array);
        }
        ct_safetensors_close(file);
        ct_checkpoint_close(step);
        /* and a step again, from which a run starts with the same weights */
        const char *seed = ct_test_path("%s.seed/checkpoint/step-0", FAMILIES[i]);
        ct_test_ok("convert %s %s", ct_test_path("%s.hf", FAMILIES[i]), seed);
        ct_test_run run = ct_test_start("train %s --dump_folder=%s", ct_test_path("%s.toml", FAMILIES[i]),
                                        ct_test_path("%s.seed", FAMILIES[i]));
        ct_test_wait(&run);
        ct_test_expect(&run, 0, "seed/checkpoint/step-0");
        ct_test_run_free(&run);
        size_t count;
        ct_test_step *before = ct_test_metrics(ct_test_path("%s", FAMILIES[i]), &count),
                     *after = ct_test_metrics(ct_test_path("%s.seed", FAMILIES[i]), &count);
        assert_true(after[0].step == 1 && after[0].loss < before[0].loss);
        free(before);
        free(after);
    }
}

/* The ids are those that the tokenizer's own files name; of bytes there is no tokenizer that transformers could load.
 */
static void test_generation_config(void **state)
{
    (void)state;
    assert_false(ct_test_folder_has(ct_test_path("llama3.hf"), "generation_config.json"));
    const char *folder = ct_test_path("qwen3.hf");
    assert_true(ct_test_folder_has(folder, "tokenizer.json") && ct_test_folder_has(folder, "tokenizer_config.json"));
    ct_tokenizer *tokenizer;
    expect_ok(ct_tokenizer_open(folder, &tokenizer));
    ct_json *json;
    int64_t bos = -1, eos = -1;
    expect_ok(ct_json_read(ct_test_path("qwen3.hf/generation_config.json"), &json));
    expect_ok(ct_json_need_int(ct_json_root(json), "eos_token_id", &eos));
    ct_json_value bos_value = ct_json_get(ct_json_root(json), "bos_token_id");
    if (!ct_json_is_null(bos_value)) expect_ok(ct_json_as_int(bos_value, &bos));
    assert_int_equal(eos, ct_tokenizer_eos(tokenizer));
    assert_int_equal(bos, ct_tokenizer_bos(tokenizer));
    assert_true(eos >= 0);
    ct_json_free(json);
    ct_tokenizer_free(tokenizer);
}

static void test_step_as_folder(void **state)
{
    (void)state;
    const char *step = ct_test_path("qwen3/checkpoint/step-2");
    ct_test_fails(1, "it is a saved step of a run; ctitan convert", "generate --model=%s --prompt=a", step);
    ct_test_fails(1, "it is a saved step of a run; ctitan convert",
                  "train %s --dump_folder=%s --checkpoint.initial_load_path=%s --checkpoint.initial_load_in_hf",
                  ct_test_path("qwen3.toml"), ct_test_path("refused"), step);
}

/* The model has 2,048 rows for the tokenizer's 320 tokens, and has learned next to nothing: most ids have no text. */
static void test_padded_vocabulary(void **state)
{
    (void)state;
    ct_test_fails(0, "of the ids are not below 320", "generate --model=%s --prompt=a --max-tokens=12 --temperature=2",
                  ct_test_path("qwen3.hf"));
    ct_test_ok("train %s --dump_folder=%s --training.steps=1 --sample.prompt=a --sample.max_tokens=12 "
               "--sample.temperature=2",
               ct_test_path("qwen3.toml"), ct_test_path("sampled"));
}

/* transformers loads the folder and computes the logits that ctitan score does. */
static void test_transformers(void **state)
{
    (void)state;
    const char *python = getenv("CTITAN_TEST_PYTHON");
    if (!python) python = "python3";
    char *probe = ct_asprintf("%s -c 'import torch, transformers, safetensors' 2>/dev/null", python);
    int missing = system(probe);
    free(probe);
    if (missing) {
        print_message("no torch and transformers in %s (CTITAN_TEST_PYTHON names another)\n", python);
        skip();
    }
    for (size_t i = 0; i < CT_COUNT(FAMILIES); i++) {
        const char *folder = ct_test_path("%s.hf", FAMILIES[i]), *tokens = ct_test_path("tokens.safetensors");
        const char *ours = ct_test_path("%s.ours", FAMILIES[i]), *theirs = ct_test_path("%s.theirs", FAMILIES[i]);
        ct_test_ok("score --model=%s --tokens=%s --output=%s --logits", folder, tokens, ours);
        char *command = ct_asprintf("%s " CT_SOURCE_DIR "/tests/integration/transformers_logits.py %s %s %s", python,
                                    folder, tokens, theirs);
        assert_int_equal(system(command), 0);
        free(command);
        ct_safetensors *a, *b;
        expect_ok(ct_safetensors_open(ours, &a));
        expect_ok(ct_safetensors_open(theirs, &b));
        double worst = 0;
        ct_test_values found = ct_test_tensor(a, "logits"), expected = ct_test_tensor(b, "logits");
        ct_test_close("logits", found, expected, CT_TEST_FORWARD, &worst);
        print_message("%s: logits differ by %.2g\n", FAMILIES[i], worst);
        free(found.data);
        free(expected.data);
        ct_safetensors_close(a);
        ct_safetensors_close(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_trained),
        cmocka_unit_test(test_generation_config),
        cmocka_unit_test(test_step_as_folder),
        cmocka_unit_test(test_padded_vocabulary),
        cmocka_unit_test(test_transformers),
    };
    return cmocka_run_group_tests(tests, train, ct_test_world_free);
}
