#include "data/testing.h"

#include <math.h>

#include "formats/safetensors.h"

/* A folder with files, and the dataset options of these tests. */
typedef struct fixture {
    char *folder;
    ct_tokenizer *tokenizer;
} fixture;

static int setup(void **state)
{
    fixture *f = ct_alloc_zeroed(1, sizeof(*f));
    f->folder = ct_test_folder_new();
    f->tokenizer = ct_tokenizer_bytes_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    ct_test_folder_free(f->folder);
    ct_tokenizer_free(f->tokenizer);
    free(f);
    return 0;
}

static char *write_file(const fixture *f, const char *name, const char *text)
{
    char *path = ct_path_join(f->folder, name), *parent = ct_path_parent(path);
    expect_ok(ct_dir_make(parent));
    expect_ok(ct_file_write(path, text, strlen(text)));
    free(parent);
    return path;
}

/* path points to the one path. */
static ct_dataset_opts text_opts(const fixture *f, const char *const *path)
{
    return (ct_dataset_opts){.kind = CT_DATA_TEXT,
                             .paths = path,
                             .num_paths = 1,
                             .seq_len = 4,
                             .batch_size = 2,
                             .vocab_size = 258,
                             .tokenizer = f->tokenizer};
}

static char *place_of(const ct_dataset *dataset)
{
    ct_data_state *state = ct_dataset_state(dataset);
    char *text = ct_test_state_text(state);
    ct_data_state_free(state);
    return text;
}

#define ROW(...) ((const int32_t[]){__VA_ARGS__})
enum { B = 256, E = 257 };

static void test_text_runs_on(void **state)
{
    const fixture *f = *state;
    const char *path = write_file(f, "a.txt", "abcdefgh"); /* B a b c d e f g h E: ten tokens */
    ct_dataset_opts opts = text_opts(f, &path);
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_tokens(dataset), 10);
    assert_int_equal(ct_dataset_num_samples(dataset), 2);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'b', 'c'));
    ct_test_expect_row(&batch.labels, 0, ROW('a', 'b', 'c', 'd'));
    ct_test_expect_row(&batch.inputs, 1, ROW('d', 'e', 'f', 'g'));
    ct_test_expect_row(&batch.labels, 1, ROW('e', 'f', 'g', 'h'));
    ct_test_expect_row(&batch.positions, 1, ROW(0, 1, 2, 3));
    ct_test_expect_row(&batch.segment_ids, 1, ROW(0, 0, 0, 0));
    assert_int_equal(batch.num_valid_labels, 8);
    assert_int_equal(batch.epoch, 0);
    expect_ok(ct_dataset_next(dataset, &batch)); /* over the end of the text */
    ct_test_expect_row(&batch.inputs, 0, ROW('h', E, B, 'a'));
    ct_test_expect_row(&batch.labels, 0, ROW(E, B, 'a', 'b'));
    ct_test_expect_row(&batch.inputs, 1, ROW('b', 'c', 'd', 'e'));
    assert_int_equal(batch.epoch, 0);
    expect_ok(ct_dataset_next(dataset, &batch));
    assert_int_equal(batch.epoch, 1); /* sample 4 begins at token 16 */
    assert_int_equal(batch.first_sample, 4);

    /* Far away: the number of tokens before overflows nothing; 10 samples are 4 rounds. */
    char *place = place_of(dataset), *number = strstr(place, "\"num_samples\":6");
    assert_non_null(number);
    char *far = ct_asprintf("%.*s\"num_samples\":%lld%s", (int)(number - place), place,
                            (long long)(INT64_MAX / 10 * 10 - 10), number + strlen("\"num_samples\":6"));
    expect_ok(ct_test_restore(dataset, far));
    free(place);
    free(far);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'b', 'c'));
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
}

static void test_text_paths(void **state)
{
    const fixture *f = *state;
    free(write_file(f, "t/b.txt", "bb"));
    free(write_file(f, "t/a/deep.txt", "aa"));
    free(write_file(f, "t/.hidden", "hidden"));
    free(write_file(f, "t/empty.txt", ""));
    const char *path = ct_path_join(f->folder, "t");
    ct_dataset_opts opts = text_opts(f, &path);
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_tokens(dataset), 8); /* B a a E B b b E */
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'a', E));
    ct_test_expect_row(&batch.inputs, 1, ROW(B, 'b', 'b', E));
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);

    opts.seq_len = 3;
    path = ct_path_join(f->folder, "t/b*.txt");
    dataset = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_tokens(dataset), 4);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
}

/* Ranges of numbers in braces, several in a path; a missing file is named. */
static void test_ranges(void **state)
{
    const fixture *f = *state;
    static const char *const names[] = {"r/x-08-a1.txt", "r/x-09-a1.txt", "r/x-10-a1.txt", "r/x-10-a2.txt"};
    for (size_t i = 0; i < CT_COUNT(names); i++) free(write_file(f, names[i], i == 3 ? "d" : i == 2 ? "c" : "b"));
    const char *path = ct_path_join(f->folder, "r/x-{08..10}-a1.txt");
    ct_dataset_opts opts = text_opts(f, &path);
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_tokens(dataset), 9); /* B b E B b E B c E */
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
    path = ct_path_join(f->folder, "r/x-{10..10}-a{1..2}.txt");
    dataset = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_tokens(dataset), 6);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
    path = ct_path_join(f->folder, "r/x-{09..11}-a1.txt");
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "x-11-a1.txt");
    free((char *)(uintptr_t)path);
    path = ct_path_join(f->folder, "r/x-{3..1}.txt"); /* no range: a name like any other */
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "x-{3..1}.txt");
    free((char *)(uintptr_t)path);
}

static void test_text_errors(void **state)
{
    const fixture *f = *state;
    ct_dataset *dataset;
    const char *path = "/nowhere/a.txt";
    ct_dataset_opts opts = text_opts(f, &path);
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "/nowhere/a.txt");
    assert_null(dataset);
    path = "/nowhere/*.txt";
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "no file matches");
    path = f->folder;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "the folder has none");
    path = "";
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "training.dataset_path is required");
    path = write_file(f, "short.txt", "ab");
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT,
                 "must have at least training.seq_len + 1 = 5 tokens, but has 4 in 1 file");
    opts.vocab_size = 256;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_OUT_OF_RANGE,
                 "token 0 is id 256, but the model's vocabulary has only 256 ids; tokenizer bytes needs 258");
    free((char *)(uintptr_t)path);
}

/* Shuffled, an epoch is a permutation of the windows; epochs and seeds differ; the same seed gives the same. */
static void test_shuffle(void **state)
{
    const fixture *f = *state;
    char text[4 * 50 + 1]; /* window i begins with the byte 'A' + i, after B and before E */
    memset(text, '.', sizeof(text));
    for (int i = 0; i < 50; i++) text[4 * i + 3] = (char)('A' + i);
    text[200] = 0;
    const char *path = write_file(f, "s.txt", text);
    ct_dataset_opts opts = text_opts(f, &path);
    opts.shuffle = true;
    opts.batch_size = 50;
    ct_dataset *dataset = ct_test_dataset_open(&opts), *again = ct_test_dataset_open(&opts);
    opts.seed = 7;
    ct_dataset *other = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_samples(dataset), 50);
    ct_batch batches[3][2];
    for (int e = 0; e < 2; e++) {
        ct_dataset *const all[3] = {dataset, again, other};
        for (int d = 0; d < 3; d++) {
            ct_batch_init(&batches[d][e], dataset);
            expect_ok(ct_dataset_next(all[d], &batches[d][e]));
        }
        assert_int_equal(batches[0][e].epoch, e);
        int seen[50] = {0}, in_place = 0;
        for (int i = 0; i < 50; i++) {
            int32_t first = ((int32_t *)batches[0][e].inputs.data)[4 * i], window = first == B ? 0 : first - 'A' + 1;
            assert_true(window >= 0 && window < 50);
            seen[window]++;
            in_place += window == i;
        }
        for (int i = 0; i < 50; i++) assert_int_equal(seen[i], 1);
        assert_true(in_place < 25);
    }
    size_t size = ct_array_bytes(&batches[0][0].inputs);
    assert_memory_equal(batches[0][0].inputs.data, batches[1][0].inputs.data, size);
    assert_memory_equal(batches[0][1].labels.data, batches[1][1].labels.data, size);
    assert_memory_not_equal(batches[0][0].inputs.data, batches[0][1].inputs.data, size);
    assert_memory_not_equal(batches[0][0].inputs.data, batches[2][0].inputs.data, size);
    for (int i = 0; i < 6; i++) ct_batch_deinit(&batches[i / 2][i % 2]);
    ct_dataset_close(dataset);
    ct_dataset_close(again);
    ct_dataset_close(other);
    free((char *)(uintptr_t)path);
}

static char *write_tokens(const fixture *f, const int64_t *sizes, int rank, const int64_t *label_sizes, ct_dtype dtype)
{
    char *path = ct_path_join(f->folder, "tokens.safetensors");
    ct_safetensors_entry entries[2] = {{"tokens", ct_array_new(dtype, sizes, rank)}};
    for (int64_t i = 0; i < ct_array_num_elements(&entries[0].array); i++)
        ct_array_set(&entries[0].array, i, (double)i);
    if (label_sizes) {
        entries[1] = (ct_safetensors_entry){"labels", ct_array_new(CT_DTYPE_S32, label_sizes, rank)};
        for (int64_t i = 0; i < ct_array_num_elements(&entries[1].array); i++)
            ct_array_set(&entries[1].array, i, i % 3 ? (double)(100 + i) : -100.0);
    }
    expect_ok(ct_safetensors_save(path, entries, label_sizes ? 2 : 1));
    ct_array_free(&entries[0].array);
    if (label_sizes) ct_array_free(&entries[1].array);
    return path;
}

static void test_tokens_in_order(void **state)
{
    const fixture *f = *state;
    const char *path = write_tokens(f, (int64_t[]){3, 5}, 2, NULL, CT_DTYPE_S32);
    ct_dataset_opts opts = text_opts(f, &path);
    opts.kind = CT_DATA_TOKENS;
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_test_expect_row(&batch.inputs, 1, ROW(5, 6, 7, 8));
    ct_test_expect_row(&batch.labels, 1, ROW(6, 7, 8, 9));
    expect_ok(ct_dataset_next(dataset, &batch)); /* the third row, then the first again */
    ct_test_expect_row(&batch.inputs, 0, ROW(10, 11, 12, 13));
    ct_test_expect_row(&batch.inputs, 1, ROW(0, 1, 2, 3));
    expect_ok(ct_dataset_next(dataset, &batch));
    assert_int_equal(batch.epoch, 1);
    assert_int_equal(batch.first_sample, 4);
    ct_dataset_close(dataset);

    opts.vocab_size = 8;
    dataset = ct_test_dataset_open(&opts);
    expect_error(ct_dataset_next(dataset, &batch), CT_CODE_OUT_OF_RANGE,
                 "tokens must be in [0, 8), the model's vocabulary, but row 1 has 8 at 3");
    expect_error(ct_dataset_next(dataset, &batch), CT_CODE_OUT_OF_RANGE, "row 1 has 8 at 3"); /* and ever after */
    assert_true(isnan(ct_dataset_unigram_entropy(dataset)));
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
}

static void test_tokens_with_labels(void **state)
{
    const fixture *f = *state;
    const char *path = write_tokens(f, (int64_t[]){2, 2, 5}, 3, (int64_t[]){2, 2, 4}, CT_DTYPE_S32);
    ct_dataset_opts opts = text_opts(f, &path);
    opts.kind = CT_DATA_TOKENS;
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_samples(dataset), 4);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_test_expect_row(&batch.inputs, 0, ROW(0, 1, 2, 3));
    ct_test_expect_row(&batch.labels, 0, ROW(-100, 101, 102, -100));
    ct_test_expect_row(&batch.labels, 1, ROW(104, 105, -100, 107));
    assert_int_equal(batch.num_valid_labels, 5);
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
}

static void test_tokens_errors(void **state)
{
    const fixture *f = *state;
    ct_dataset *dataset;
    const char *path = "/nowhere/x.safetensors";
    ct_dataset_opts opts = text_opts(f, &path);
    opts.kind = CT_DATA_TOKENS;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "/nowhere/x.safetensors");
    path = write_tokens(f, (int64_t[]){3, 6}, 2, NULL, CT_DTYPE_S32);
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT,
                 "tensor tokens must have the shape [any, 5], but has [3, 6]");
    free(write_tokens(f, (int64_t[]){4}, 1, NULL, CT_DTYPE_S32));
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "seq_len + 1 = 5 tokens, but has 4");
    free(write_tokens(f, (int64_t[]){9}, 1, NULL, CT_DTYPE_S64));
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "must be of I32, U32 or U16");
    free(write_tokens(f, (int64_t[]){3, 5}, 2, NULL, CT_DTYPE_S64));
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "must be of I32, but is of I64");
    free(write_tokens(f, (int64_t[]){0, 5}, 2, NULL, CT_DTYPE_S32));
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "at least one row");
    free(write_tokens(f, (int64_t[]){3, 5}, 2, (int64_t[]){2, 4}, CT_DTYPE_S32));
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "as many rows as tokens, 3, but has 2");
    free(write_tokens(f, (int64_t[]){3, 5}, 2, (int64_t[]){3, 5}, CT_DTYPE_S32));
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT,
                 "tensor labels must have the shape [any, 4]");
    ct_safetensors_entry entry = {"ids", ct_array_new(CT_DTYPE_S32, (int64_t[]){1, 5}, 2)};
    expect_ok(ct_safetensors_save(path, &entry, 1));
    ct_array_free(&entry.array);
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "has no tensor tokens");
    free((char *)(uintptr_t)path);
}

/* One long sequence, of each type: windows that share their last token with the next. */
static void test_sequence(void **state)
{
    const fixture *f = *state;
    static const struct {
        const char *type;
        int bytes;
    } types[] = {{"I32", 4}, {"U32", 4}, {"U16", 2}};
    const char *path = ct_path_join(f->folder, "sequence.safetensors");
    for (size_t t = 0; t < CT_COUNT(types); t++) {
        enum { COUNT = 11 };
        char file[256] = {0}, header[128];
        int length =
            snprintf(header, sizeof(header), "{\"tokens\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%d]}}",
                     types[t].type, COUNT, COUNT * types[t].bytes);
        while ((length + 8) % 4) header[length++] = ' ';
        file[0] = (char)length;
        memcpy(file + 8, header, (size_t)length);
        for (int i = 0; i < COUNT; i++) /* B 1 2 E B 5 6 7 8 E B */
            for (int b = 0; b < types[t].bytes; b++)
                file[8 + length + i * types[t].bytes + b] = (char)((i == 0 || i == 4 || i == 10 ? B
                                                                    : i == 3 || i == 9          ? E
                                                                                                : i) >>
                                                                   (8 * b));
        expect_ok(ct_file_write(path, file, (size_t)(8 + length + COUNT * types[t].bytes)));
        ct_dataset_opts opts = text_opts(f, &path);
        opts.kind = CT_DATA_AUTO;
        ct_dataset *dataset = ct_test_dataset_open(&opts);
        assert_int_equal(ct_dataset_num_samples(dataset), 2);
        assert_int_equal(ct_dataset_num_tokens(dataset), COUNT);
        ct_batch batch;
        ct_batch_init(&batch, dataset);
        expect_ok(ct_dataset_next(dataset, &batch));
        ct_test_expect_row(&batch.inputs, 0, ROW(B, 1, 2, E));
        ct_test_expect_row(&batch.labels, 0, ROW(1, 2, E, B));
        ct_test_expect_row(&batch.inputs, 1, ROW(B, 5, 6, 7));
        ct_test_expect_row(&batch.labels, 1, ROW(5, 6, 7, 8));
        expect_ok(ct_dataset_next(dataset, &batch)); /* the tokens that are left fill no window */
        ct_test_expect_row(&batch.inputs, 0, ROW(B, 1, 2, E));
        ct_dataset_close(dataset);

        opts.seq_len = 5;
        opts.document_mask = true;
        dataset = ct_test_dataset_open(&opts);
        ct_batch_deinit(&batch);
        ct_batch_init(&batch, dataset);
        expect_ok(ct_dataset_next(dataset, &batch));
        ct_test_expect_row(&batch.labels, 0, ROW(1, 2, E, -100, 5));
        ct_test_expect_row(&batch.segment_ids, 0, ROW(0, 0, 0, 0, 1));
        ct_test_expect_row(&batch.positions, 0, ROW(0, 1, 2, 3, 0));
        ct_test_expect_row(&batch.inputs, 1, ROW(5, 6, 7, 8, E));
        ct_test_expect_row(&batch.labels, 1, ROW(6, 7, 8, E, -100));
        ct_test_expect_row(&batch.positions, 1, ROW(0, 1, 2, 3, 4));
        ct_dataset_close(dataset);
        opts.vocab_size = 257;
        dataset = ct_test_dataset_open(&opts);
        expect_error(ct_dataset_next(dataset, &batch), CT_CODE_OUT_OF_RANGE, "but row 0 has 257 at 3");
        ct_dataset_close(dataset);
        opts.tokenizer = NULL;
        expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "training.document_mask needs");
        ct_batch_deinit(&batch);
    }
    free((char *)(uintptr_t)path);
}

/* Rows of several files in turn, then an end; documents of texts and rows kept apart. */
static void test_files_and_masks(void **state)
{
    const fixture *f = *state;
    const char *first = write_tokens(f, (int64_t[]){3, 5}, 2, NULL, CT_DTYPE_S32);
    const char *second = ct_path_join(f->folder, "more.safetensors");
    int32_t more[5] = {7, 7, B, 8, 9}, labels[4] = {-100, 8, 9, -100};
    ct_safetensors_entry entries[2] = {{"tokens", {CT_DTYPE_S32, 2, {1, 5}, more}},
                                       {"labels", {CT_DTYPE_S32, 2, {1, 4}, labels}}};
    expect_ok(ct_safetensors_save(second, entries, 2));
    const char *const paths[] = {first, second};
    ct_dataset_opts opts = text_opts(f, paths);
    opts.num_paths = 2;
    opts.kind = CT_DATA_TOKENS;
    opts.document_mask = opts.once = true;
    opts.batch_size = 3;
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    assert_int_equal(ct_dataset_num_samples(dataset), 4);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_test_expect_row(&batch.inputs, 2, ROW(10, 11, 12, 13));
    ct_test_expect_row(&batch.segment_ids, 2, ROW(0, 0, 0, 0));
    expect_ok(ct_dataset_next(dataset, &batch));
    assert_int_equal(batch.num_samples, 1);
    ct_test_expect_row(&batch.inputs, 0, ROW(7, 7, B, 8));
    ct_test_expect_row(&batch.labels, 0, ROW(-100, 8, 9, -100)); /* given ones are taken as they are */
    ct_test_expect_row(&batch.segment_ids, 0, ROW(0, 0, 1, 1));
    ct_test_expect_row(&batch.positions, 0, ROW(0, 1, 0, 1));
    ct_test_expect_row(&batch.labels, 2, ROW(-100, -100, -100, -100));
    assert_int_equal(batch.num_valid_labels, 2);
    expect_ok(ct_dataset_next(dataset, &batch));
    assert_int_equal(batch.num_samples, 0);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)first);
    free((char *)(uintptr_t)second);

    free(write_file(f, "d/a.txt", "ab")); /* B a b E B c d E: the text's own borders count, also over its end */
    free(write_file(f, "d/b.txt", "cd"));
    const char *folder = ct_path_join(f->folder, "d");
    opts = text_opts(f, &folder);
    opts.seq_len = 6;
    opts.document_mask = true;
    dataset = ct_test_dataset_open(&opts);
    ct_batch_deinit(&batch);
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'b', E, B, 'c'));
    ct_test_expect_row(&batch.labels, 0, ROW('a', 'b', E, -100, 'c', 'd'));
    ct_test_expect_row(&batch.inputs, 1, ROW('d', E, B, 'a', 'b', E));
    ct_test_expect_row(&batch.labels, 1, ROW(E, -100, 'a', 'b', E, -100));
    ct_test_expect_row(&batch.segment_ids, 1, ROW(0, 0, 1, 1, 1, 1));
    ct_test_expect_row(&batch.positions, 1, ROW(0, 1, 0, 1, 2, 3));
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)folder);
}

static void test_position(void **state)
{
    const fixture *f = *state;
    const char *path = write_file(f, "p.txt", "the quick brown fox jumps over the lazy dog and runs on");
    ct_dataset_opts opts = text_opts(f, &path);
    opts.shuffle = true;
    opts.seed = UINT64_MAX;
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    ct_batch batch, resumed;
    ct_batch_init(&batch, dataset);
    ct_batch_init(&resumed, dataset);
    for (int i = 0; i < 9; i++) expect_ok(ct_dataset_next(dataset, &batch));
    char *text = place_of(dataset);
    expect_ok(ct_dataset_next(dataset, &batch));

    ct_dataset *second = ct_test_dataset_open(&opts);
    expect_ok(ct_test_restore(second, text));
    expect_ok(ct_dataset_next(second, &resumed));
    assert_int_equal(resumed.first_sample, 18);
    assert_memory_equal(batch.inputs.data, resumed.inputs.data, ct_array_bytes(&batch.inputs));
    assert_int_equal(resumed.epoch, 1);
    ct_dataset_close(second);

    opts.seed = 1;
    second = ct_test_dataset_open(&opts);
    expect_error(ct_test_restore(second, text), CT_CODE_FAILED_PRECONDITION, "seed = -1, but now it is 1");
    ct_dataset_close(second);
    opts.shuffle = false;
    second = ct_test_dataset_open(&opts);
    expect_error(ct_test_restore(second, text), CT_CODE_FAILED_PRECONDITION, "shuffle = 1, but now it is 0");
    ct_dataset_close(second);
    opts.seq_len = 5;
    second = ct_test_dataset_open(&opts);
    expect_error(ct_test_restore(second, text), CT_CODE_FAILED_PRECONDITION, "seq_len = 4, but now it is 5");
    expect_error(ct_test_restore(second, "{}"), CT_CODE_NOT_FOUND, "seq_len is required");
    ct_dataset_close(second);
    free(text);
    ct_batch_deinit(&batch);
    ct_batch_deinit(&resumed);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
}

static void test_unigram_entropy(void **state)
{
    const fixture *f = *state;
    const char *path = write_file(f, "e.txt", "aaaabb"); /* with B and E: 4, 2, 1, 1 of 8 */
    ct_dataset_opts opts = text_opts(f, &path);
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    double nats = ct_dataset_unigram_entropy(dataset);
    assert_true(fabs(nats - 1.75 * log(2)) < 1e-12);
    ct_dataset_close(dataset);
    free((char *)(uintptr_t)path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_text_runs_on),       TEST(test_text_paths),    TEST(test_ranges),
        TEST(test_text_errors),        TEST(test_shuffle),       TEST(test_tokens_in_order),
        TEST(test_tokens_with_labels), TEST(test_tokens_errors), TEST(test_sequence),
        TEST(test_files_and_masks),    TEST(test_position),      TEST(test_unigram_entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
