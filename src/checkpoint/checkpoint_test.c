#include "base/testing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hash.h"
#include "checkpoint/steps.h"
#include "formats/safetensors.h"

/* The state that these tests save: a bf16 vector, an f32 matrix in three shards, a scalar, an empty tensor. Element i
 * of a tensor is base + i. */
static const ct_checkpoint_shard MATRIX_SHARDS[] = {{{0, 0}, {2, 6}}, {{2, 0}, {2, 2}}, {{2, 2}, {2, 4}}};
static const ct_checkpoint_tensor TENSORS[] = {
    {"norm.weight", CT_DTYPE_BF16, 1, {5}, NULL, 0},
    {"matrix.weight", CT_DTYPE_F32, 2, {4, 6}, MATRIX_SHARDS, CT_COUNT(MATRIX_SHARDS)},
    {"step", CT_DTYPE_S64, 0, {0}, NULL, 0},
    {"empty", CT_DTYPE_F32, 2, {0, 3}, NULL, 0},
};

typedef struct state_source {
    double base;
    int fail_at; /* the call that fails; 0 never */
    bool exits;  /* fails by ending the process */
    int num_calls;
    double storage[64];
} state_source;

static void fill(double base, const ct_checkpoint_tensor *tensor, const ct_checkpoint_shard *box, void *out)
{
    ct_array array = {.dtype = tensor->dtype, .rank = tensor->rank, .data = out};
    int64_t count = 1, width = tensor->rank == 2 ? box->sizes[1] : 1;
    for (int i = 0; i < tensor->rank; i++) count *= box->sizes[i];
    for (int64_t i = 0; i < count; i++) {
        int64_t index =
            tensor->rank == 2 ? (box->offsets[0] + i / width) * tensor->sizes[1] + box->offsets[1] + i % width : i;
        ct_array_set(&array, i, base + (double)index);
    }
}

static ct_status *give(void *context, int lane, size_t tensor, size_t shard, const void **out_bytes)
{
    assert_int_equal(lane, 0);
    state_source *source = context;
    if (++source->num_calls == source->fail_at) {
        if (source->exits) _exit(7);
        return ct_error(CT_CODE_INTERNAL, "the device is gone");
    }
    const ct_checkpoint_tensor *t = &TENSORS[tensor];
    ct_checkpoint_shard whole = {{0}, {t->sizes[0], t->sizes[1]}};
    fill(source->base, t, t->num_shards ? &t->shards[shard] : &whole, source->storage);
    *out_bytes = source->storage;
    return NULL;
}

static ct_status *save(const char *folder, int64_t step, double base, int64_t max_file_bytes)
{
    state_source source = {.base = base};
    ct_checkpoint_save_opts opts = {.info = "{\"tokens\": 123, \"data\": {\"sample\": 5}}",
                                    .max_file_bytes = max_file_bytes};
    return ct_checkpoint_save(folder, step, TENSORS, CT_COUNT(TENSORS), give, &source, &opts);
}

/* Opens, verifies and compares everything with base. */
static void expect_state(const char *folder, int64_t step, double base)
{
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(folder, step, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
    assert_int_equal(ct_checkpoint_step(checkpoint), step);
    assert_int_equal(ct_checkpoint_num_tensors(checkpoint), CT_COUNT(TENSORS));
    int64_t tokens;
    expect_ok(ct_json_need_int(ct_checkpoint_info(checkpoint), "tokens", &tokens));
    assert_int_equal(tokens, 123);
    for (size_t i = 0; i < CT_COUNT(TENSORS); i++) {
        double read[64] = {0}, wanted[64] = {0};
        ct_checkpoint_shard whole = {{0}, {TENSORS[i].sizes[0], TENSORS[i].sizes[1]}};
        fill(base, &TENSORS[i], &whole, wanted);
        expect_ok(ct_checkpoint_read(checkpoint, &TENSORS[i], NULL, read));
        assert_memory_equal(read, wanted, sizeof(read));
    }
    ct_checkpoint_close(checkpoint);
}

static size_t count_entries(const char *folder)
{
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    ct_names_free(names, num_names);
    return num_names;
}

static void test_round_trip(void **state)
{
    (void)state;
    char *root = ct_test_folder_new(), *folder = ct_path_join(root, "a/checkpoint");
    const int64_t limits[] = {0, 1, 50, 100};
    const size_t num_files[] = {1, 5, 4, 2};
    for (size_t i = 0; i < CT_COUNT(limits); i++) {
        expect_ok(save(folder, (int64_t)i, 0.5 + (double)i, limits[i]));
        expect_state(folder, (int64_t)i, 0.5 + (double)i);
        char *step = ct_checkpoint_path(folder, (int64_t)i);
        assert_int_equal(count_entries(step), num_files[i] + 1);
        free(step);
    }
    assert_int_equal(count_entries(folder), 4);

    /* Files are ordinary safetensors, all aligned. */
    char *path = ct_path_join(folder, "step-0/state-00001.safetensors");
    ct_safetensors *file;
    expect_ok(ct_safetensors_open(path, &file));
    assert_int_equal(ct_safetensors_num_tensors(file), 6);
    for (size_t i = 0; i < 6; i++) {
        ct_array array;
        expect_ok(ct_safetensors_borrow(ct_safetensors_at(file, i), &array));
    }
    assert_non_null(ct_safetensors_get(file, "matrix.weight@2"));
    ct_safetensors_close(file);
    free(path);
    free(folder);
    ct_test_folder_free(root);
}

static void test_any_region(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    expect_ok(save(folder, 3, 10, 50));
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(folder, 3, NULL, &checkpoint));
    for (int64_t row = 0; row < 4; row++)
        for (int64_t column = 0; column < 6; column++)
            for (int64_t height = 1; row + height <= 4; height++)
                for (int64_t width = 1; column + width <= 6; width++) {
                    ct_checkpoint_shard region = {{row, column}, {height, width}};
                    float read[24] = {0}, wanted[24] = {0};
                    expect_ok(ct_checkpoint_read(checkpoint, &TENSORS[1], &region, read));
                    fill(10, &TENSORS[1], &region, wanted);
                    assert_memory_equal(read, wanted, sizeof(read));
                }
    ct_checkpoint_close(checkpoint);
    ct_test_folder_free(folder);
}

static void test_read_errors(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_checkpoint *checkpoint;
    expect_error(ct_checkpoint_open(folder, 3, NULL, &checkpoint), CT_CODE_NOT_FOUND, "has no step 3, nor any other");
    expect_ok(save(folder, 3, 10, 0));
    expect_error(ct_checkpoint_open(folder, 4, NULL, &checkpoint), CT_CODE_NOT_FOUND,
                 "has no step 4; it has 1 from step 3 to 3");
    assert_null(checkpoint);
    expect_ok(ct_checkpoint_open(folder, 3, NULL, &checkpoint));
    double read[64];
    ct_checkpoint_tensor wanted = TENSORS[1];
    wanted.name = "matrix.weights";
    expect_error(ct_checkpoint_read(checkpoint, &wanted, NULL, read), CT_CODE_NOT_FOUND,
                 "the nearest is matrix.weight");
    wanted = TENSORS[1];
    wanted.sizes[1] = 7;
    expect_error(ct_checkpoint_read(checkpoint, &wanted, NULL, read), CT_CODE_INVALID_ARGUMENT,
                 "tensor matrix.weight must be f32 [4, 7], but is f32 [4, 6] in ");
    wanted = TENSORS[1];
    wanted.dtype = CT_DTYPE_BF16;
    expect_error(ct_checkpoint_read(checkpoint, &wanted, NULL, read), CT_CODE_INVALID_ARGUMENT,
                 "must be bf16 [4, 6], but is f32 [4, 6]");
    ct_checkpoint_close(checkpoint);
    ct_test_folder_free(folder);
}

static void test_save_errors(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    state_source source = {.fail_at = 3};
    expect_error(ct_checkpoint_save(folder, 1, TENSORS, CT_COUNT(TENSORS), give, &source, NULL), CT_CODE_INTERNAL,
                 "the device is gone; saving matrix.weight@1");
    assert_int_equal(count_entries(folder), 0);
    source = (state_source){0};
    expect_error(ct_checkpoint_save(folder, 1, TENSORS, 4, give, &source, &(ct_checkpoint_save_opts){.info = "[]"}),
                 CT_CODE_INVALID_ARGUMENT, "must be an object");
    ct_checkpoint_tensor twice[2] = {TENSORS[0], TENSORS[0]};
    expect_error(ct_checkpoint_save(folder, 1, twice, 2, give, &source, NULL), CT_CODE_INVALID_ARGUMENT, "given twice");
    ct_checkpoint_tensor part = TENSORS[1];
    part.num_shards = 2;
    expect_error(ct_checkpoint_save(folder, 1, &part, 1, give, &source, NULL), CT_CODE_INVALID_ARGUMENT,
                 "must cover 24 elements, but cover 16");
    assert_int_equal(count_entries(folder), 0);

    /* No tensors at all is a checkpoint of its info. */
    expect_ok(ct_checkpoint_save(folder, 1, NULL, 0, give, &source, NULL));
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(folder, 1, NULL, &checkpoint));
    assert_int_equal(ct_json_size(ct_checkpoint_info(checkpoint)), 0);
    ct_checkpoint_close(checkpoint);
    ct_test_folder_free(folder);
}

static void test_replaces_a_step(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    expect_ok(save(folder, 5, 1, 0));
    expect_ok(save(folder, 5, 2, 40));
    expect_state(folder, 5, 2);
    assert_int_equal(count_entries(folder), 1);
    /* A failed save leaves the old one. */
    state_source source = {.fail_at = 2};
    expect_error(ct_checkpoint_save(folder, 5, TENSORS, CT_COUNT(TENSORS), give, &source, NULL), CT_CODE_INTERNAL,
                 "gone");
    expect_state(folder, 5, 2);
    assert_int_equal(count_entries(folder), 1);
    ct_test_folder_free(folder);
}

/* A process that dies at any shard of a save leaves the steps before as they were; the next save clears what it left.
 */
static void test_killed_while_saving(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    expect_ok(save(folder, 1, 1, 0));
    for (int call = 1; call <= 6; call++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            state_source source = {.base = 9, .fail_at = call, .exits = true};
            ct_status_free(ct_checkpoint_save(folder, call % 2 ? 1 : 2, TENSORS, CT_COUNT(TENSORS), give, &source,
                                              &(ct_checkpoint_save_opts){.max_file_bytes = 1}));
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        int64_t latest;
        expect_ok(ct_checkpoint_latest(folder, NULL, &latest));
        assert_int_equal(latest, 1);
        expect_state(folder, 1, 1);
        assert_int_equal(count_entries(folder), 2); /* and the leftover of the dead process */
    }
    expect_ok(save(folder, 3, 3, 0));
    assert_int_equal(count_entries(folder), 2);
    ct_test_folder_free(folder);
}

static void make_folder(const char *folder, const char *name)
{
    char *path = ct_path_join(folder, name);
    expect_ok(ct_dir_make(path));
    free(path);
}

static void test_leftovers(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), name[64];
    expect_ok(save(folder, 1, 1, 0));
    /* Of a live process: kept. Of a dead one that was replacing step 1: put back. Other names are not ours. */
    snprintf(name, sizeof(name), "step-9.tmp-%ld", (long)getppid());
    make_folder(folder, name);
    make_folder(folder, "step-9.tmp-notes");
    make_folder(folder, "step-08");
    make_folder(folder, "step-99999999999999999999");
    char *step = ct_path_join(folder, "step-1"), *old = ct_path_join(folder, "step-1.old-2000000000");
    assert_int_equal(rename(step, old), 0);
    make_folder(folder, "step-2.old-2000000000");
    make_folder(folder, "step-2");
    expect_ok(ct__steps_clean(folder));
    expect_state(folder, 1, 1);
    assert_int_equal(count_entries(folder), 6);
    int64_t *steps;
    size_t num_steps;
    expect_ok(ct_checkpoint_list(folder, &steps, &num_steps));
    assert_int_equal(num_steps, 2);
    assert_int_equal(steps[0], 1);
    assert_int_equal(steps[1], 2);
    free(steps);
    free(step);
    free(old);
    ct_test_folder_free(folder);
    expect_ok(ct_checkpoint_list("/nowhere", &steps, &num_steps));
    assert_int_equal(num_steps, 0);
    int64_t latest;
    expect_ok(ct_checkpoint_latest("/nowhere", NULL, &latest));
    assert_int_equal(latest, -1);
}

static void flip(const char *path, off_t offset)
{
    int descriptor = open(path, O_RDWR);
    unsigned char byte = 0;
    assert_true(descriptor >= 0 && pread(descriptor, &byte, 1, offset) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(descriptor, &byte, 1, offset), 1);
    close(descriptor);
}

/* Without a flush, for loops. */
static void rewrite(const char *path, const char *bytes, size_t size)
{
    int descriptor = open(path, O_WRONLY | O_TRUNC);
    assert_true(descriptor >= 0);
    expect_ok(ct_file_write_all(descriptor, path, bytes, size));
    close(descriptor);
}

static void test_damage(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    expect_ok(save(folder, 1, 1, 0));
    expect_ok(save(folder, 2, 2, 40));
    char *file = ct_path_join(folder, "step-2/state-00002.safetensors");
    char *manifest = ct_path_join(folder, "step-2/manifest.json");
    ct_checkpoint *checkpoint;
    char *bytes;
    size_t size;
    expect_ok(ct_file_read(file, &bytes, &size));

    flip(file, (off_t)size - 1); /* seen by its hash only */
    expect_ok(ct_checkpoint_open(folder, 2, NULL, &checkpoint));
    ct_checkpoint_close(checkpoint);
    expect_error(ct_checkpoint_open(folder, 2, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint),
                 CT_CODE_DATA_LOSS, "step-2/state-00002.safetensors was changed");
    int64_t latest;
    expect_ok(ct_checkpoint_latest(folder, NULL, &latest));
    assert_int_equal(latest, 2);
    expect_ok(ct_checkpoint_latest(folder, &(ct_checkpoint_open_opts){.verify = true}, &latest));
    assert_int_equal(latest, 1);

    assert_int_equal(truncate(file, (off_t)size - 1), 0);
    expect_error(ct_checkpoint_open(folder, 2, NULL, &checkpoint), CT_CODE_DATA_LOSS,
                 "step-2/state-00002.safetensors must have");
    expect_ok(ct_checkpoint_latest(folder, NULL, &latest));
    assert_int_equal(latest, 1);
    assert_int_equal(unlink(file), 0);
    expect_error(ct_checkpoint_open(folder, 2, NULL, &checkpoint), CT_CODE_DATA_LOSS,
                 "state-00002.safetensors is missing");
    expect_ok(ct_file_write(file, bytes, size));
    expect_state(folder, 2, 2);
    free(bytes);

    expect_ok(ct_file_read(manifest, &bytes, &size)); /* every byte of the manifest is guarded */
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 1;
        rewrite(manifest, bytes, size);
        ct_status *status = ct_checkpoint_open(folder, 2, NULL, &checkpoint);
        assert_int_equal(ct_status_code(status), CT_CODE_DATA_LOSS);
        ct_status_free(status);
        bytes[i] ^= 1;
    }
    expect_ok(ct_file_write(manifest, bytes, size / 2));
    expect_error(ct_checkpoint_open(folder, 2, NULL, &checkpoint), CT_CODE_DATA_LOSS, "manifest.json is cut short");
    assert_int_equal(unlink(manifest), 0);
    expect_error(ct_checkpoint_open(folder, 2, NULL, &checkpoint), CT_CODE_DATA_LOSS, "manifest.json is missing");
    free(bytes);
    free(file);
    free(manifest);

    char *wrong = ct_path_join(folder, "step-7"), *right = ct_path_join(folder, "step-1");
    assert_int_equal(rename(right, wrong), 0);
    expect_error(ct_checkpoint_open(folder, 7, NULL, &checkpoint), CT_CODE_DATA_LOSS, "is of step 1");
    expect_error(ct_checkpoint_latest(folder, NULL, &latest), CT_CODE_DATA_LOSS, "none of the 2 steps in");
    free(wrong);
    free(right);
    ct_test_folder_free(folder);
}

/* A manifest whose hash is right but whose numbers lie must be refused, not believed. */
static void test_lying_manifest(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text;
    } lies[] = {
        {"\"version\":2", "\"version\":1", "of version 1"},
        {"\"offset\":", "\"offset\":9", "lies outside its file"},
        {"\"file\":0", "\"file\":5", "lies in file 5 of 1"},
        {"\"shape\":[4,6]", "\"shape\":[4,7]", "must cover 28 elements"},
        {"\"shape\":[4,6]", "\"shape\":[4]", "offsets must have 1 numbers"},
        {"\"dtype\":\"f32\"", "\"dtype\":\"f99\"", "impossible dtype"},
        {"\"name\":\"state-", "\"name\":\"/etc/x", "impossible name"},
        {"\"tensors\":", "\"tensorz\":", "tensors is required"},
    };
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "step-1/manifest.json");
    for (size_t i = 0; i < CT_COUNT(lies); i++) {
        expect_ok(save(folder, 1, 1, 0));
        char *text;
        size_t size;
        expect_ok(ct_file_read(path, &text, &size));
        char *place = strstr(text, lies[i].from);
        assert_non_null(place);
        ct_str lie;
        ct_str_init(&lie);
        ct_str_append_n(&lie, text, (size_t)(place - text));
        ct_str_append(&lie, lies[i].to);
        ct_str_append(&lie, place + strlen(lies[i].from));
        char digits[CT__HASH_DIGITS + 1];
        memset(lie.data + lie.length - 2 - CT__HASH_DIGITS, '0', CT__HASH_DIGITS);
        ct__hash_bytes(lie.data, lie.length, digits);
        memcpy(lie.data + lie.length - 2 - CT__HASH_DIGITS, digits, CT__HASH_DIGITS);
        expect_ok(ct_file_write(path, lie.data, lie.length));
        ct_checkpoint *checkpoint;
        ct_status *status = ct_checkpoint_open(folder, 1, NULL, &checkpoint);
        assert_non_null(status);
        assert_non_null(strstr(ct_status_message(status), lies[i].text));
        ct_status_free(status);
        ct_str_deinit(&lie);
        free(text);
    }
    free(path);
    ct_test_folder_free(folder);
}

/* Saving 4 MB where only 1 MB fits. */
static ct_status *give_large(void *context, int lane, size_t tensor, size_t shard, const void **out_bytes)
{
    (void)lane, (void)tensor, (void)shard;
    *out_bytes = context;
    return NULL;
}

static void save_too_much(const char *folder)
{
    ct_checkpoint_tensor large = {.name = "large", .dtype = CT_DTYPE_F32, .rank = 1, .sizes = {1 << 20}};
    void *bytes = ct_alloc_zeroed(1 << 20, 4);
    ct_status *status = ct_checkpoint_save(folder, 2, &large, 1, give_large, bytes, NULL);
    free(bytes);
    expect_error(status, CT_CODE_RESOURCE_EXHAUSTED, "step-2.tmp-");
    assert_int_equal(count_entries(folder), 1);
    expect_state(folder, 1, 1);
}

static void test_full_disk(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    if (mount("none", folder, "tmpfs", 0, "size=1m") == 0) {
        expect_ok(save(folder, 1, 1, 0));
        save_too_much(folder);
        assert_int_equal(umount(folder), 0);
    } else {
        print_message("no right to mount: a limit on file sizes stands for the full disk\n");
    }
    expect_ok(save(folder, 1, 1, 0));
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1 << 20, .rlim_max = limit.rlim_max});
    save_too_much(folder);
    setrlimit(RLIMIT_FSIZE, &limit);
    ct_test_folder_free(folder);
}

/* ---- several files at once, Hugging Face's form, assets ---- */

enum { NUM_LAYERS = 12, LANES = 3 };

typedef struct lanes_source {
    float storage[LANES][64];
    int num_calls[LANES];
} lanes_source;

/* Tensor i, of 8 x 8 elements, holds i * 100 + its index. */
static ct_status *give_layer(void *context, int lane, size_t tensor, size_t shard, const void **out_bytes)
{
    lanes_source *source = context;
    assert_true(lane < LANES && shard == 0);
    source->num_calls[lane]++;
    for (int i = 0; i < 64; i++) source->storage[lane][i] = (float)tensor * 100 + (float)i;
    *out_bytes = source->storage[lane];
    return NULL;
}

static void make_layers(ct_checkpoint_tensor *tensors, char names[NUM_LAYERS][32])
{
    for (int i = 0; i < NUM_LAYERS; i++) {
        snprintf(names[i], 32, "layers.%d.weight", i);
        tensors[i] = (ct_checkpoint_tensor){.name = names[i], .dtype = CT_DTYPE_F32, .rank = 2, .sizes = {8, 8}};
    }
}

static void expect_layers(const ct_checkpoint *checkpoint, const ct_checkpoint_tensor *tensors)
{
    for (int i = 0; i < NUM_LAYERS; i++) {
        float values[64];
        expect_ok(ct_checkpoint_read(checkpoint, &tensors[i], NULL, values));
        for (int j = 0; j < 64; j++) assert_true(values[j] == (float)(i * 100 + j));
    }
}

static const ct_checkpoint_asset ASSETS[] = {{"config.json", "{\"a\": 1}", 8}, {"empty.txt", "", 0}};

static void test_lanes(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), names[NUM_LAYERS][32];
    ct_checkpoint_tensor tensors[NUM_LAYERS];
    make_layers(tensors, names);
    lanes_source source = {0};
    ct_checkpoint_save_opts opts = {
        .max_file_bytes = 300, .num_lanes = LANES, .assets = ASSETS, .num_assets = CT_COUNT(ASSETS)};
    expect_ok(ct_checkpoint_save(folder, 4, tensors, NUM_LAYERS, give_layer, &source, &opts));
    assert_int_equal(source.num_calls[0] + source.num_calls[1] + source.num_calls[2], NUM_LAYERS);
    char *step = ct_checkpoint_path(folder, 4);
    assert_int_equal(count_entries(step), NUM_LAYERS + 2 + 1);
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open_path(step, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
    assert_int_equal(ct_checkpoint_step(checkpoint), 4);
    expect_layers(checkpoint, tensors);
    assert_int_equal(ct_checkpoint_num_assets(checkpoint), 2);
    for (size_t i = 0; i < 2; i++) {
        ct_checkpoint_asset asset = ct_checkpoint_asset_at(checkpoint, i);
        assert_string_equal(asset.name, ASSETS[i].name);
        assert_int_equal(asset.size_bytes, ASSETS[i].size_bytes);
        assert_memory_equal(asset.bytes, ASSETS[i].bytes, asset.size_bytes);
    }
    ct_checkpoint_close(checkpoint);
    ct_checkpoint_asset bad = {"../config.json", "", 0};
    opts.assets = &bad;
    opts.num_assets = 1;
    expect_error(ct_checkpoint_save(folder, 5, tensors, NUM_LAYERS, give_layer, &source, &opts),
                 CT_CODE_INVALID_ARGUMENT, "../config.json");
    assert_int_equal(count_entries(folder), 1);
    free(step);
    ct_test_folder_free(folder);
}

/* A step in Hugging Face's form is a step and a folder of theirs; the exported folder is the same without a manifest.
 */
static void test_hf(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), names[NUM_LAYERS][32];
    ct_checkpoint_tensor tensors[NUM_LAYERS];
    make_layers(tensors, names);
    for (int sharded = 0; sharded < 2; sharded++) {
        lanes_source source = {0};
        ct_checkpoint_save_opts opts = {.max_file_bytes = sharded ? 1300 : 0,
                                        .num_lanes = LANES,
                                        .is_hf = true,
                                        .assets = ASSETS,
                                        .num_assets = CT_COUNT(ASSETS)};
        expect_ok(ct_checkpoint_save(folder, sharded, tensors, NUM_LAYERS, give_layer, &source, &opts));
        char *step = ct_checkpoint_path(folder, sharded), *export = ct_path_join(folder, sharded ? "x/many" : "x/one");
        expect_ok(ct_checkpoint_export(export, tensors, NUM_LAYERS, give_layer, &source, &opts));
        expect_error(ct_checkpoint_export(export, tensors, NUM_LAYERS, give_layer, &source, &opts),
                     CT_CODE_ALREADY_EXISTS, "exists already");
        size_t num_files = sharded ? 3 + 1 + 2 : 1 + 2; /* 5 tensors fit a file; index; assets */
        assert_int_equal(count_entries(step), num_files + 1);
        assert_int_equal(count_entries(export), num_files);
        ct_checkpoint *checkpoint;
        expect_ok(ct_checkpoint_open(folder, sharded, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
        expect_layers(checkpoint, tensors);
        assert_int_equal(ct_checkpoint_num_assets(checkpoint), 2); /* the index is none */
        ct_checkpoint_close(checkpoint);
        const char *folders[] = {step, export};
        for (size_t f = 0; f < 2; f++) {
            ct_safetensors *file;
            expect_ok(ct_safetensors_dir_open(folders[f], &file));
            assert_int_equal(ct_safetensors_num_tensors(file), NUM_LAYERS);
            assert_string_equal(ct_safetensors_metadata(file, "format"), "pt");
            for (int i = 0; i < NUM_LAYERS; i++) {
                const ct_safetensors_tensor *tensor;
                expect_ok(ct_safetensors_find(file, names[i], &tensor));
                assert_true(((const float *)tensor->data)[63] == (float)(i * 100 + 63));
            }
            ct_safetensors_close(file);
        }
        free(step);
        free(export);
    }
    char *parent = ct_path_join(folder, "x");
    assert_int_equal(count_entries(parent), 2); /* nothing aside is left */
    free(parent);
    ct_test_folder_free(folder);
}

/* The last tensors in a file of their own in a folder, beside which an asset lies. */
static void test_beside(void **state)
{
    (void)state;
    enum { BESIDE = 2 };
    char *folder = ct_test_folder_new(), names[NUM_LAYERS][32];
    ct_checkpoint_tensor tensors[NUM_LAYERS];
    make_layers(tensors, names);
    const ct_checkpoint_asset asset = {"adapter/config.json", "{}", 2};
    for (int hf = 0; hf < 2; hf++)
        for (int alone = 0; alone < 2; alone++) {
            lanes_source source = {0};
            ct_checkpoint_save_opts opts = {.max_file_bytes = 300, /* of no matter to the file beside */
                                            .num_lanes = LANES,
                                            .is_hf = hf,
                                            .assets = &asset,
                                            .num_assets = 1,
                                            .beside = "adapter/a.safetensors",
                                            .num_beside = alone ? NUM_LAYERS : BESIDE};
            size_t num_own = NUM_LAYERS - opts.num_beside;
            expect_ok(ct_checkpoint_save(folder, hf, tensors, NUM_LAYERS, give_layer, &source, &opts));
            char *step = ct_checkpoint_path(folder, hf), *file = ct_path_join(step, opts.beside);
            assert_int_equal(count_entries(step), num_own + (hf && num_own ? 1 : 0) + 1 + 1); /* folder, manifest */
            ct_checkpoint *checkpoint;
            expect_ok(ct_checkpoint_open(folder, hf, &(ct_checkpoint_open_opts){.verify = true}, &checkpoint));
            expect_layers(checkpoint, tensors);
            assert_int_equal(ct_checkpoint_num_assets(checkpoint), 1);
            assert_string_equal(ct_checkpoint_asset_at(checkpoint, 0).name, asset.name);
            ct_checkpoint_close(checkpoint);
            ct_safetensors *found;
            expect_ok(ct_safetensors_open(file, &found));
            assert_int_equal(ct_safetensors_num_tensors(found), opts.num_beside);
            assert_string_equal(ct_safetensors_at(found, 0)->name, names[num_own]);
            ct_safetensors_close(found);
            if (hf && num_own) {
                expect_ok(ct_safetensors_dir_open(step, &found)); /* by its index */
                assert_int_equal(ct_safetensors_num_tensors(found), num_own);
                ct_safetensors_close(found);
            }
            assert_int_equal(unlink(file), 0);
            expect_error(ct_checkpoint_open(folder, hf, NULL, &checkpoint), CT_CODE_DATA_LOSS,
                         "a.safetensors is missing");
            free(step);
            free(file);
        }
    static const char *const bad[] = {"/a", "a/", "a/b/c", "../a", "a/..", ".a/b"};
    for (size_t i = 0; i < CT_COUNT(bad); i++) {
        lanes_source source = {0};
        ct_checkpoint_save_opts opts = {.num_lanes = LANES, .beside = bad[i], .num_beside = 1};
        expect_error(ct_checkpoint_save(folder, 7, tensors, NUM_LAYERS, give_layer, &source, &opts),
                     CT_CODE_INVALID_ARGUMENT, bad[i]);
    }
    assert_int_equal(count_entries(folder), 2);
    ct_test_folder_free(folder);
}

/* ---- what is read was verified; old steps ---- */

/* A shard that was changed is never handed out: neither whole nor in parts, at the first read or after others. */
static void test_verified_reads(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *file = ct_path_join(folder, "step-2/state-00001.safetensors");
    expect_ok(save(folder, 2, 2, 0));
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(folder, 2, NULL, &checkpoint));
    ct_safetensors *found;
    expect_ok(ct_safetensors_open(file, &found));
    const char *base = ct_safetensors_at(found, 0)->data; /* step, at offset 0 of the data */
    off_t place = (const char *)ct_safetensors_get(found, "matrix.weight@1")->data - base;
    char *bytes;
    size_t size;
    expect_ok(ct_file_read(file, &bytes, &size));
    off_t data = (off_t)size - (8 + 96 + 10);
    ct_safetensors_close(found);
    free(bytes);
    flip(file, data + place + 3);
    float values[24];
    double scalar;
    const ct_checkpoint_shard inside = {{2, 0}, {1, 2}}, across = {{1, 1}, {2, 2}}, shard = {{2, 0}, {2, 2}};
    const ct_checkpoint_shard above = {{0, 1}, {2, 5}}, first = {{0, 0}, {2, 6}};
    ct_checkpoint_reader *reader = ct_checkpoint_reader_new(checkpoint);
    expect_ok(ct_checkpoint_reader_read(reader, &TENSORS[1], &above, values));
    expect_ok(ct_checkpoint_reader_read(reader, &TENSORS[1], &first, values));
    expect_ok(ct_checkpoint_reader_read(reader, &TENSORS[2], NULL, &scalar));
    const ct_checkpoint_shard *const regions[] = {&inside, &across, &shard, NULL, &inside};
    for (size_t i = 0; i < CT_COUNT(regions); i++)
        expect_error(ct_checkpoint_reader_read(reader, &TENSORS[1], regions[i], values), CT_CODE_DATA_LOSS,
                     "step-2/state-00001.safetensors was changed: the hash of matrix.weight must be");
    expect_ok(ct_checkpoint_reader_read(reader, &TENSORS[1], &above, values)); /* as right as before */
    float wanted[24];
    fill(2, &TENSORS[1], &above, wanted);
    assert_memory_equal(values, wanted, 10 * sizeof(float));
    ct_checkpoint_reader_free(reader);
    ct_checkpoint_close(checkpoint);
    char *nowhere = ct_path_join(folder, "step-9");
    expect_error(ct_checkpoint_open_path(nowhere, NULL, &checkpoint), CT_CODE_NOT_FOUND, "must be a saved step");
    free(nowhere);
    free(file);
    ct_test_folder_free(folder);
}

static void expect_steps(const char *folder, size_t count, const int64_t *wanted)
{
    int64_t *steps;
    size_t num_steps;
    expect_ok(ct_checkpoint_list(folder, &steps, &num_steps));
    assert_int_equal(num_steps, count);
    assert_memory_equal(steps, wanted, count * sizeof(*wanted));
    assert_int_equal(count_entries(folder), count);
    free(steps);
}

/* Steps after the newest are not looked at, and one that is not whole does not count. */
static void test_purge(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *manifest = ct_path_join(folder, "step-5/manifest.json");
    for (int64_t step = 1; step <= 7; step++) expect_ok(save(folder, step, 1, 0));
    expect_ok(ct_checkpoint_purge(folder, 6, 7));
    expect_steps(folder, 7, (int64_t[]){1, 2, 3, 4, 5, 6, 7});
    assert_int_equal(unlink(manifest), 0);
    expect_ok(ct_checkpoint_purge(folder, 6, 3));
    expect_steps(folder, 5, (int64_t[]){3, 4, 5, 6, 7});
    expect_ok(ct_checkpoint_purge(folder, 6, 2));
    expect_steps(folder, 4, (int64_t[]){4, 5, 6, 7});
    expect_state(folder, 4, 1);
    free(manifest);
    ct_test_folder_free(folder);
}

/* The hash must stay what it is for ever: the reference values of XXH3-128. */
static void test_hash(void **state)
{
    (void)state;
    char digits[CT__HASH_DIGITS + 1], pieces[CT__HASH_DIGITS + 1];
    ct__hash_bytes("", 0, digits);
    assert_string_equal(digits, "99aa06d3014798d86001c324468d497f");
    unsigned char bytes[3000];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (unsigned char)(i * 7);
    ct__hash_bytes(bytes, sizeof(bytes), digits);
    ct__hash *hash = ct__hash_new();
    for (size_t i = 0, step = 1; i < sizeof(bytes); i += step, step = CT_MIN(step * 2, sizeof(bytes) - i))
        ct__hash_update(hash, bytes + i, CT_MIN(step, sizeof(bytes) - i));
    ct__hash_finish(hash, pieces);
    assert_string_equal(pieces, digits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_any_region),
        cmocka_unit_test(test_read_errors),     cmocka_unit_test(test_save_errors),
        cmocka_unit_test(test_replaces_a_step), cmocka_unit_test(test_killed_while_saving),
        cmocka_unit_test(test_leftovers),       cmocka_unit_test(test_damage),
        cmocka_unit_test(test_lying_manifest),  cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_lanes),           cmocka_unit_test(test_hf),
        cmocka_unit_test(test_beside),          cmocka_unit_test(test_verified_reads),
        cmocka_unit_test(test_purge),           cmocka_unit_test(test_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
