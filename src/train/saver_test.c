#include "pjrt/testing.h"

#include <sys/stat.h>
#include <unistd.h>

#include "models/lora.h"
#include "train/lora.h"
#include "train/saver.h"

/* A state whose next "step" comes as soon as the save has begun: buffers that the saver shares are left to it, all
 * others are gone at once, as if given away. What is on disk must be the state before. */
static ct_session *session;
static ct_model *model, *plain, *adapted;
static char *cache; /* of the programs that make states */

static int open_session(void **state)
{
    (void)state;
    cache = ct_test_folder_new();
    ct_session_opts opts = {.plugin = {.path = getenv("CTITAN_PLUGIN_PATH")}, .cache_folder = cache};
    expect_ok(ct_session_open(&opts, &session));
    const ct_model_family *family;
    ct_model_config config;
    expect_ok(ct_model_config_find("qwen3", "debugmodel", &family, &config));
    config.num_layers = 2;
    config.vocab_size = 300;
    config.dim = 32;
    config.ffn_dim = 48;
    expect_ok(ct_model_new(family, &config, true, &plain));
    expect_ok(ct_model_new(family, &config, true, &adapted));
    ct_lora lora = {.rank = 3,
                    .alpha = 6,
                    .targets = (const char *const[]){"q_proj", "down_proj"},
                    .num_targets = 2,
                    .frozen_dtype = CT_DTYPE_BF16};
    expect_ok(ct_model_adapt(adapted, &lora));
    model = plain;
    return 0;
}

static int close_session(void **state)
{
    (void)state;
    ct_model_free(plain);
    ct_model_free(adapted);
    ct_session_close(session);
    ct_test_folder_free(cache);
    return 0;
}

static void make_state(ct_train_state *state, uint64_t seed)
{
    ct_train_state_init(state, session, model, NULL, CT_DTYPE_F32, CT_DTYPE_F32);
    expect_ok(ct_train_state_from_seed(state, seed));
}

/* state becomes that of another seed. */
static void move_on(ct_saver *saver, ct_train_state *state, uint64_t seed)
{
    ct_train_state next;
    make_state(&next, seed);
    size_t num_frozen = (size_t)model->num_frozen; /* are never the saver's */
    ct_buffers_free(state->buffers, ct_saver_shares(saver) ? num_frozen : state->num_buffers);
    free(state->buffers);
    *state = next;
    ct_saver_state_moved(saver);
}

static void expect_step(const char *folder, int64_t step, uint64_t seed)
{
    ct_train_state wanted;
    make_state(&wanted, seed);
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(folder, step, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
    for (int i = 0; i < model->num_frozen; i++) {
        char buffer[256];
        assert_null(ct_checkpoint_find(checkpoint, ct_model_hf_name(&model->params[i], 0, buffer)));
    }
    for (int i = model->num_frozen; i < model->num_params; i++) {
        ct_array whole;
        expect_ok(ct_train_state_param(&wanted, i, &whole));
        const ct_model_param *param = &model->params[i];
        size_t layer_bytes = ct_array_bytes(&whole) / (size_t)ct_model_param_layers(model, param);
        for (int64_t layer = 0; layer < ct_model_param_layers(model, param); layer++) {
            char buffer[256];
            const ct_checkpoint_tensor *tensor = ct_checkpoint_find(checkpoint, ct_model_hf_name(param, layer, buffer));
            assert_non_null(tensor);
            char *bytes = ct_alloc(layer_bytes);
            expect_ok(ct_checkpoint_read(checkpoint, tensor, NULL, bytes));
            assert_memory_equal(bytes, (const char *)whole.data + (size_t)layer * layer_bytes, layer_bytes);
            free(bytes);
        }
        ct_array_free(&whole);
    }
    ct_checkpoint_close(checkpoint);
    ct_train_state_deinit(&wanted);
}

static const ct_saver_mode MODES[] = {CT_SAVER_WAITS, CT_SAVER_SHARED, CT_SAVER_PINNED, CT_SAVER_COPIED};

static void try_modes(void)
{
    for (size_t i = 0; i < CT_COUNT(MODES); i++) {
        char *folder = ct_test_folder_new();
        ct_saver *saver = ct_saver_new(&(ct_saver_opts){.folder = folder, .mode = MODES[i], .keep = 2});
        ct_train_state run;
        make_state(&run, 1);
        for (int64_t step = 1; step <= 3; step++) {
            char info[] = "{\"a\": 1}"; /* copied: it may change */
            ct_checkpoint_asset asset = {"config.json", "{}", 2};
            expect_ok(ct_saver_save(saver, &run,
                                    &(ct_saver_step){.step = step, .info = info, .assets = &asset, .num_assets = 1}));
            info[2] = 'b';
            assert_int_equal(ct_saver_shares(saver), MODES[i] == CT_SAVER_SHARED);
            move_on(saver, &run, (uint64_t)step + 1);
            assert_false(ct_saver_shares(saver));
            expect_ok(ct_saver_poll(saver));
        }
        expect_ok(ct_saver_wait(saver));
        for (int64_t step = 2; step <= 3; step++) expect_step(folder, step, (uint64_t)step);
        ct_checkpoint *checkpoint;
        expect_error(ct_checkpoint_open(folder, 1, NULL, &checkpoint), CT_CODE_NOT_FOUND, "has no step 1");
        expect_ok(ct_checkpoint_open(folder, 3, NULL, &checkpoint));
        assert_int_equal(ct_json_type_of(ct_json_get(ct_checkpoint_info(checkpoint), "a")), CT_JSON_NUMBER);
        assert_int_equal(ct_checkpoint_num_assets(checkpoint), 1);
        ct_checkpoint_close(checkpoint);

        /* the run ends while a save is under way: it is finished, and the state is its owner's */
        expect_ok(ct_saver_save(saver, &run, &(ct_saver_step){.step = 4, .info = "{}"}));
        ct_saver_free(saver);
        expect_step(folder, 4, 4);
        ct_train_state_deinit(&run);
        ct_test_folder_free(folder);
    }
}

static void test_modes(void **state)
{
    (void)state;
    try_modes();
}

/* Of a model with adapters nothing that is frozen is saved, or taken from the run. */
static void test_adapters(void **state)
{
    (void)state;
    model = adapted;
    try_modes();

    /* the last save in Hugging Face's form has what is frozen, with the adapters merged */
    char *folder = ct_test_folder_new();
    ct_saver *saver = ct_saver_new(&(ct_saver_opts){.folder = folder, .mode = CT_SAVER_SHARED});
    ct_train_state run;
    make_state(&run, 5);
    ct_saver_step step = {
        .step = 9, .info = "{}", .is_last = true, .is_hf = true, .model_only = true, .dtype = CT_DTYPE_F32};
    expect_ok(ct_saver_save(saver, &run, &step));
    ct_saver_free(saver);
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(folder, 9, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
    assert_int_equal(ct_checkpoint_num_tensors(checkpoint), 2 + 2 * 11 + 2 * 2 * 2);
    char *path = ct_checkpoint_path(folder, 9), *beside = ct_path_join(path, CT_ADAPTER_FILE);
    assert_true(ct_path_exists(beside));
    free(path);
    free(beside);
    ct_checkpoint_close(checkpoint);
    ct_train_state_deinit(&run);
    ct_test_folder_free(folder);
    model = plain;
}

/* A failure of files is told, and the next save tried; only of the last it is an error. */
static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < CT_COUNT(MODES); i++) {
        char *folder = ct_test_folder_new(), *steps = ct_path_join(folder, "steps");
        expect_ok(ct_file_write(steps, "a file, no folder", 4));
        ct_saver *saver = ct_saver_new(&(ct_saver_opts){.folder = steps, .mode = MODES[i]});
        ct_train_state run;
        make_state(&run, 1);
        expect_ok(ct_saver_save(saver, &run, &(ct_saver_step){.step = 1, .info = "{}"}));
        move_on(saver, &run, 2);
        expect_ok(ct_saver_wait(saver));
        ct_status *status = ct_saver_save(saver, &run, &(ct_saver_step){.step = 2, .info = "{}", .is_last = true});
        assert_non_null(strstr(ct_status_message(status), "steps"));
        ct_status_free(status);
        assert_int_equal(unlink(steps), 0);
        expect_ok(ct_saver_save(saver, &run, &(ct_saver_step){.step = 2, .info = "{}", .is_last = true}));
        ct_saver_free(saver);
        expect_step(steps, 2, 2);
        ct_train_state_deinit(&run);
        free(steps);
        ct_test_folder_free(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_modes), cmocka_unit_test(test_adapters),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, open_session, close_session);
}
