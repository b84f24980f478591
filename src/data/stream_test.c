/* Sources of documents: what comes, the same for any number of threads and from any place that was saved. */
#include "data/testing.h"

#include "base/log.h"
#include "data/loader.h"
#include "formats/json.h"

#define DATA CT_SOURCE_DIR "/tests/data/"
enum { B = 256, E = 257, SEQ = 24, BATCH = 3 };

static ct_tokenizer *tokenizer;

static int setup(void **state)
{
    (void)state;
    tokenizer = ct_tokenizer_bytes_new();
    ct_log_set_level(CT_LOG_ERROR);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ct_tokenizer_free(tokenizer);
    return 0;
}

static ct_dataset_opts options(const char *const *path)
{
    return (ct_dataset_opts){.paths = path,
                             .num_paths = 1,
                             .seq_len = SEQ,
                             .batch_size = BATCH,
                             .vocab_size = 258,
                             .tokenizer = tokenizer,
                             .seed = 3,
                             .shuffle_buffer = 7,
                             .packing_bins = 3};
}

/* Batches as they come, and the state behind each. */
typedef struct record {
    int32_t *rows; /* [batch][input, label, position, segment][sample][token] */
    char **states; /* states[0] is before the first */
    int count;
} record;

static size_t array_bytes(const ct_batch *batch)
{
    return ct_array_bytes(&batch->inputs);
}

static void copy_batch(const ct_batch *batch, int32_t *out)
{
    const ct_array *arrays[4] = {&batch->inputs, &batch->labels, &batch->positions, &batch->segment_ids};
    for (int i = 0; i < 4; i++)
        memcpy((char *)out + (size_t)i * array_bytes(batch), arrays[i]->data, array_bytes(batch));
}

static record take(const ct_dataset_opts *opts, int count)
{
    ct_dataset *dataset = ct_test_dataset_open(opts);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    size_t numbers = 4 * array_bytes(&batch) / sizeof(int32_t);
    record all = {ct_alloc((size_t)count * numbers * sizeof(int32_t)), ct_alloc((size_t)(count + 1) * sizeof(char *)),
                  count};
    ct_data_state *state = ct_dataset_state(dataset);
    all.states[0] = ct_test_state_text(state);
    ct_data_state_free(state);
    for (int i = 0; i < count; i++) {
        expect_ok(ct_dataset_next(dataset, &batch));
        copy_batch(&batch, all.rows + (size_t)i * numbers);
        all.states[i + 1] = ct_test_state_text(batch.state);
    }
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    return all;
}

static void free_record(record *all)
{
    for (int i = 0; i <= all->count; i++) free(all->states[i]);
    free(all->states);
    free(all->rows);
}

static size_t batch_numbers(const ct_dataset_opts *opts)
{
    return 4 * (size_t)(opts->batch_size * opts->seq_len);
}

/* The batches of a loader with threads, and the states, are those of the record. */
static void expect_threads(const ct_dataset_opts *opts, const record *all, int num_workers)
{
    ct_dataset_opts with = *opts;
    with.num_workers = num_workers;
    ct_dataset *dataset = ct_test_dataset_open(&with);
    ct_loader *loader;
    expect_ok(ct_loader_new(dataset, 2, &loader));
    int32_t *numbers = ct_alloc(batch_numbers(opts) * sizeof(int32_t));
    for (int i = 0; i < all->count; i++) {
        const ct_batch *batch;
        expect_ok(ct_loader_next(loader, &batch));
        copy_batch(batch, numbers);
        assert_memory_equal(numbers, all->rows + (size_t)i * batch_numbers(opts),
                            batch_numbers(opts) * sizeof(int32_t));
        char *text = ct_test_state_text(batch->state);
        assert_string_equal(text, all->states[i + 1]);
        free(text);
    }
    free(numbers);
    ct_loader_free(loader);
    ct_dataset_close(dataset);
}

/* From the state behind batch `from` the rest follows, states included; with batches of one sample each as well, as on
 * fewer devices. */
static void expect_resumed(const ct_dataset_opts *opts, const record *all, int from, int count, int64_t batch_size)
{
    ct_dataset_opts with = *opts;
    with.batch_size = batch_size;
    with.num_workers = from % 3;
    ct_dataset *dataset = ct_test_dataset_open(&with);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    if (from % 2) expect_ok(ct_dataset_next(dataset, &batch)); /* wherever it stood before */
    expect_ok(ct_test_restore(dataset, all->states[from]));
    size_t row = (size_t)opts->seq_len, batch_rows = (size_t)opts->batch_size;
    for (size_t sample = 0; sample < (size_t)count * batch_rows; sample += (size_t)batch_size) {
        expect_ok(ct_dataset_next(dataset, &batch));
        const ct_array *arrays[4] = {&batch.inputs, &batch.labels, &batch.positions, &batch.segment_ids};
        for (size_t s = 0; s < (size_t)batch_size; s++)
            for (size_t a = 0; a < 4; a++) {
                const int32_t *wanted = all->rows + ((size_t)from + (sample + s) / batch_rows) * batch_numbers(opts) +
                                        (a * batch_rows + (sample + s) % batch_rows) * row;
                assert_memory_equal((const int32_t *)arrays[a]->data + s * row, wanted, row * sizeof(int32_t));
            }
        if ((sample + (size_t)batch_size) % batch_rows == 0) {
            char *text = ct_test_state_text(batch.state);
            assert_string_equal(text, all->states[(size_t)from + (sample + (size_t)batch_size) / batch_rows]);
            free(text);
        }
    }
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
}

static const char *const FILES[] = {
    DATA "texts.jsonl",
    DATA "texts.jsonl.gz",
    DATA "texts.jsonl.zst",
    DATA "texts.json",
    DATA "texts_snappy.parquet",
    DATA "texts_zstd_v2.parquet",
    DATA "texts_gzip_dictionary.parquet",
    DATA "texts_ustar.tar.gz",
    DATA "texts_gnu.tar.gz",
    DATA "texts_pax.tar.gz",
};

/* Every kind of file gives the same samples in file order. */
static void test_kinds(void **state)
{
    (void)state;
    record all = {0};
    for (size_t f = 0; f < CT_COUNT(FILES); f++) {
        ct_dataset_opts opts = options(&FILES[f]);
        record own = take(&opts, 40); /* more than two epochs */
        if (f) {
            assert_memory_equal(own.rows, all.rows, 40 * batch_numbers(&opts) * sizeof(int32_t));
            free_record(&own);
        } else {
            all = own;
        }
    }
    free_record(&all);
}

static void test_threads(void **state)
{
    (void)state;
    for (size_t f = 0; f < CT_COUNT(FILES); f += 2) {
        ct_dataset_opts opts = options(&FILES[f]);
        opts.shuffle = true;
        opts.document_mask = f % 4 == 0;
        record all = take(&opts, 40);
        for (int num_workers = 0; num_workers <= 5; num_workers++) expect_threads(&opts, &all, num_workers);
        free_record(&all);
    }
}

/* At every boundary, for every kind of file and each way of packing. */
static void test_resume(void **state)
{
    (void)state;
    static const ct_data_packing packings[] = {CT_PACKING_CONCAT, CT_PACKING_FIRST_FIT, CT_PACKING_NONE};
    for (size_t f = 0; f < CT_COUNT(FILES); f++)
        for (size_t p = 0; p < CT_COUNT(packings); p++)
            for (int way = 0; way < 4; way++) {
                ct_dataset_opts opts = options(&FILES[f]);
                opts.packing = packings[p];
                opts.shuffle = way & 1;
                opts.document_mask = way & 2;
                enum { COUNT = 30, AHEAD = 3 };
                record all = take(&opts, COUNT);
                for (int from = 0; from + AHEAD <= COUNT; from += f ? 5 : 1)
                    expect_resumed(&opts, &all, from, AHEAD, from % 2 ? 1 : BATCH);
                expect_resumed(&opts, &all, 1, COUNT - 1, 1);
                free_record(&all);
            }
}

/* A mixture: shares at any moment, threads, resuming in the middle. */
static void test_mixture(void **state)
{
    (void)state;
    const char *const paths[] = {DATA "texts.jsonl", DATA "texts_snappy.parquet", DATA "texts_ustar.tar.gz"};
    ct_dataset_opts opts = options(paths);
    opts.num_paths = 3;
    opts.weights = (const double[]){1, 5, 2};
    opts.batch_size = 1;
    opts.shuffle = true;
    enum { COUNT = 64 };
    record all = take(&opts, COUNT);
    for (int i = 1; i <= COUNT; i++) {
        ct_json *json;
        expect_ok(ct_json_parse(all.states[i], strlen(all.states[i]), "state", &json));
        ct_json_value sources;
        expect_ok(ct_json_need_array(ct_json_root(json), "sources", &sources));
        for (size_t s = 0; s < 3; s++) {
            int64_t taken;
            expect_ok(ct_json_need_int(ct_json_at(sources, s), "num_samples", &taken));
            double share = opts.weights[s] / 8 * i;
            assert_true((double)taken > share - 1.5 && (double)taken < share + 1.5);
            if (i % 8 == 0) assert_int_equal(taken, i * (int)opts.weights[s] / 8);
        }
        ct_json_free(json);
    }
    for (int num_workers = 0; num_workers < 4; num_workers++) expect_threads(&opts, &all, num_workers);
    for (int from = 0; from < COUNT - 8; from += 5) expect_resumed(&opts, &all, from, 8, 1);
    free_record(&all);

    opts.weights = NULL;
    ct_dataset *dataset;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "files of several kinds");
    opts.weights = (const double[]){1, 0, 2};
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "weight 1 is 0");
}

/* ---- what stands in a sample ---- */

static char *write_lines(const char *folder, const char *name, const char *text)
{
    char *path = ct_path_join(folder, name);
    expect_ok(ct_file_write(path, text, strlen(text)));
    return path;
}

#define ROW(...) ((const int32_t[]){__VA_ARGS__})
enum { I = CT_IGNORED_LABEL };

static ct_batch first_batch(const ct_dataset_opts *opts)
{
    ct_dataset *dataset = ct_test_dataset_open(opts);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    ct_dataset_close(dataset);
    return batch;
}

static const char TEXTS[] = "{\"text\":\"ab\"}\n\n  \n{\"text\":\"\"}\n{\"text\":\"cdefgh\"}\n{\"text\":\"i\"}";

static void test_concat(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    const char *path = write_lines(folder, "t.jsonl", TEXTS);
    ct_dataset_opts opts = options(&path);
    opts.seq_len = 5;
    ct_batch batch = first_batch(&opts); /* B a b E B c d e f g h E B i E B a b ... */
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'b', E, B));
    ct_test_expect_row(&batch.labels, 0, ROW('a', 'b', E, B, 'c'));
    ct_test_expect_row(&batch.positions, 0, ROW(0, 1, 2, 3, 4));
    ct_test_expect_row(&batch.segment_ids, 0, ROW(0, 0, 0, 0, 0));
    ct_test_expect_row(&batch.inputs, 1, ROW('c', 'd', 'e', 'f', 'g'));
    ct_test_expect_row(&batch.inputs, 2, ROW('h', E, B, 'i', E));
    ct_test_expect_row(&batch.labels, 2, ROW(E, B, 'i', E, B));
    ct_batch_deinit(&batch);

    opts.document_mask = true; /* pairs within documents: ba ab bE | Bc cd de ef fg gh hE | Bi iE */
    batch = first_batch(&opts);
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'b', B, 'c'));
    ct_test_expect_row(&batch.labels, 0, ROW('a', 'b', E, 'c', 'd'));
    ct_test_expect_row(&batch.positions, 0, ROW(0, 1, 2, 0, 1));
    ct_test_expect_row(&batch.segment_ids, 0, ROW(0, 0, 0, 1, 1));
    ct_test_expect_row(&batch.inputs, 1, ROW('d', 'e', 'f', 'g', 'h'));
    ct_test_expect_row(&batch.positions, 1, ROW(0, 1, 2, 3, 4));
    ct_test_expect_row(&batch.labels, 2, ROW('i', E, 'a', 'b', E));
    ct_batch_deinit(&batch);

    opts.once = true; /* 12 pairs: the third sample is filled up */
    batch = first_batch(&opts);
    assert_int_equal(batch.num_samples, 3);
    assert_int_equal(batch.num_valid_labels, 12);
    ct_test_expect_row(&batch.labels, 2, ROW('i', E, I, I, I));
    ct_test_expect_row(&batch.segment_ids, 2, ROW(0, 0, 1, 1, 1));
    ct_batch_deinit(&batch);
    free((char *)(uintptr_t)path);
    ct_test_folder_free(folder);
}

static void test_first_fit(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    const char *path = write_lines(folder, "t.jsonl",
                                   "{\"text\":\"abcd\"}\n{\"text\":\"efghijklm\"}\n{\"text\":\"nop\"}\n"
                                   "{\"text\":\"q\"}\n{\"text\":\"rstuv\"}\n{\"text\":\"wx\"}\n");
    ct_dataset_opts opts = options(&path); /* pairs: 5, 10 (too long), 4, 2, 6, 3 */
    opts.seq_len = 8;
    opts.packing = CT_PACKING_FIRST_FIT;
    opts.packing_bins = 2;
    opts.once = true;
    opts.document_mask = true;
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    expect_ok(ct_dataset_next(dataset, &batch));
    /* abcd and q in the first (7 pairs), nop in the second; rstuv fits in none, so the first goes; wx to nop. */
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'b', 'c', 'd', B, 'q', E));
    ct_test_expect_row(&batch.labels, 0, ROW('a', 'b', 'c', 'd', E, 'q', E, I));
    ct_test_expect_row(&batch.segment_ids, 0, ROW(0, 0, 0, 0, 0, 1, 1, 2));
    ct_test_expect_row(&batch.positions, 0, ROW(0, 1, 2, 3, 4, 0, 1, 0));
    ct_test_expect_row(&batch.inputs, 1, ROW(B, 'r', 's', 't', 'u', 'v', E, E));
    ct_test_expect_row(&batch.inputs, 2, ROW(B, 'n', 'o', 'p', B, 'w', 'x', E));
    assert_int_equal(batch.num_samples, 3);
    int64_t num_broken, num_too_long;
    ct_data_state_left_out(batch.state, &num_broken, &num_too_long);
    assert_int_equal(num_broken, 0);
    assert_int_equal(num_too_long, 1);
    char *text = ct_test_state_text(batch.state);
    for (int i = 0; i < 2; i++) {
        expect_ok(ct_dataset_next(dataset, &batch));
        assert_int_equal(batch.num_samples, 0);
        assert_int_equal(batch.num_valid_labels, 0);
    }
    ct_dataset *again = ct_test_dataset_open(&opts); /* the end is a place too */
    expect_ok(ct_test_restore(again, text));
    expect_ok(ct_dataset_next(again, &batch));
    assert_int_equal(batch.num_samples, 0);
    ct_dataset_close(again);
    free(text);
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);

    opts.packing = CT_PACKING_NONE;
    batch = first_batch(&opts);
    ct_test_expect_row(&batch.labels, 0, ROW('a', 'b', 'c', 'd', E, I, I, I));
    ct_test_expect_row(&batch.labels, 1, ROW('n', 'o', 'p', E, I, I, I, I));
    ct_batch_deinit(&batch);
    free((char *)(uintptr_t)path);
    ct_test_folder_free(folder);
}

/* Each document once per epoch, in an order that differs from epoch to epoch and from seed to seed. */
static void test_shuffle(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    for (int file = 0; file < 4; file++) { /* documents A..Z of 26 letters, over four files */
        char name[32], text[400] = "";
        snprintf(name, sizeof(name), "%d.jsonl", file);
        for (int i = file * 7; i < CT_MIN(26, file * 7 + 7); i++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "{\"text\":\"%c\"}\n", 'A' + i);
        free(write_lines(folder, name, text));
    }
    const char *path = folder;
    ct_dataset_opts opts = options(&path);
    opts.seq_len = 2;
    opts.batch_size = 26;
    opts.packing = CT_PACKING_NONE;
    opts.shuffle = true;
    char orders[4][27] = {{0}};
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    for (int e = 0; e < 4; e++) {
        if (e == 3) { /* another seed */
            ct_dataset_close(dataset);
            opts.seed++;
            dataset = ct_test_dataset_open(&opts);
        }
        expect_ok(ct_dataset_next(dataset, &batch));
        int seen[26] = {0}, in_place = 0;
        for (int i = 0; i < 26; i++) {
            orders[e][i] = (char)((int32_t *)batch.inputs.data)[2 * i + 1];
            seen[orders[e][i] - 'A']++;
            in_place += orders[e][i] == 'A' + i;
        }
        for (int i = 0; i < 26; i++) assert_int_equal(seen[i], 1);
        assert_true(in_place < 13);
        if (e < 3) assert_int_equal(batch.epoch, e);
        for (int before = 0; before < e; before++) assert_string_not_equal(orders[before], orders[e]);
    }
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    ct_test_folder_free(folder);
}

/* ---- fine-tuning ---- */

static void test_prompts(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    const char *path =
        write_lines(folder, "p.jsonl", "{\"q\":{\"a\":\"ab\"},\"c\":\"xy\"}\n{\"q\":{\"a\":\"\"},\"c\":\"z\"}\n");
    ct_dataset_opts opts = options(&path);
    opts.seq_len = 8;
    opts.prompt_column = "q.a";
    opts.completion_column = "c";
    opts.document_mask = true;
    opts.once = true;
    ct_batch batch = first_batch(&opts);
    ct_test_expect_row(&batch.inputs, 0, ROW(B, 'a', 'b', 'x', 'y', B, 'z', E));
    ct_test_expect_row(&batch.labels, 0, ROW(I, I, 'x', 'y', E, 'z', E, I));
    assert_int_equal(batch.num_valid_labels, 5);
    ct_batch_deinit(&batch);
    ct_dataset *dataset;
    opts.completion_column = NULL;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "go together");
    opts.completion_column = "c";
    opts.text_column = "text";
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "only one may be given");
    free((char *)(uintptr_t)path);
    ct_test_folder_free(folder);
}

/* As templates do: trims, and drops what a turn that is not the last has in parentheses. */
static ct_status *render(void *context, ct_json_value messages, ct_str *out)
{
    assert_ptr_equal(context, &tokenizer);
    ct_json_iter iter = ct_json_iterate(messages);
    while (ct_json_next(&iter)) {
        const char *role, *content = "";
        CT_TRY(ct_json_need_string(iter.value, "role", &role));
        CT_TRY(ct_json_get_string(iter.value, "content", &content));
        if (iter.num_left && content[0] == '(') content = strchr(content, ')') + 1;
        while (*content == ' ') content++;
        ct_str_printf(out, "%c:%s;", role[0], content);
    }
    return NULL;
}

/* The text of a sample, with what is not in the loss as dots; labels stand one place before. */
static void expect_loss(const ct_batch *batch, const char *text, const char *loss)
{
    const int32_t *inputs = batch->inputs.data, *labels = batch->labels.data;
    for (size_t i = 0; text[i + 1]; i++) {
        assert_int_equal(inputs[i], (unsigned char)text[i]);
        assert_int_equal(labels[i], loss[i + 1] == '.' ? I : (unsigned char)loss[i + 1]);
    }
}

static void test_chat(void **state)
{
    (void)state;
    static const ct_chat_renderer chat = {render, &tokenizer};
    char *folder = ct_test_folder_new();
    static const struct {
        const char *line, *text, *loss;
    } cases[] = {
        {"[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Yes\"}]", "u:Hi;a:Yes;",
         ".......Yes."},
        /* several turns, a thought that the template drops, one that it keeps, and content that repeats */
        {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"(t)a\"},"
         "{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"(u) a\"}]",
         "u:a;a:a;u:a;a:(u) a;", "......a.......(u) a."},
        {"[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\" b \xc3\xa9\"}]", "u:a;a:b \xc3\xa9;",
         "......b \xc3\xa9."},
    };
    for (size_t i = 0; i < CT_COUNT(cases); i++)
        for (int is_text = 0; is_text < 2; is_text++) { /* as an array, and as the text of one */
            ct_json_writer *writer = ct_json_writer_new();
            ct_json *json;
            expect_ok(ct_json_parse(cases[i].line, strlen(cases[i].line), "case", &json));
            ct_json_begin_object(writer, NULL);
            if (is_text)
                ct_json_put_string(writer, "messages", cases[i].line);
            else
                ct_json_put_value(writer, "messages", ct_json_root(json));
            ct_json_end(writer);
            char *text = ct_json_writer_text(writer, false);
            const char *path = write_lines(folder, "c.jsonl", text);
            ct_dataset_opts opts = options(&path);
            opts.messages_column = "messages";
            opts.chat = &chat;
            opts.batch_size = 1;
            ct_batch batch = first_batch(&opts);
            expect_loss(&batch, cases[i].text, cases[i].loss);
            ct_batch_deinit(&batch);
            free(text);
            free((char *)(uintptr_t)path);
            ct_json_free(json);
            ct_json_writer_free(writer);
        }
    const char *path = DATA "chat.jsonl";
    ct_dataset_opts opts = options(&path);
    opts.messages_column = "messages";
    ct_dataset *dataset;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_INVALID_ARGUMENT, "needs a tokenizer with a chat template");

    /* Parquet's lists give what JSON gives; resumed anywhere. */
    opts.chat = &chat;
    opts.seq_len = 200;
    opts.shuffle = true;
    record all = take(&opts, 12);
    for (int from = 0; from < 9; from++) expect_resumed(&opts, &all, from, 3, BATCH);
    path = DATA "chat.parquet";
    record own = take(&opts, 12);
    assert_memory_equal(own.rows, all.rows, 12 * batch_numbers(&opts) * sizeof(int32_t));
    for (int from = 0; from < 9; from++) expect_resumed(&opts, &own, from, 3, BATCH);
    free_record(&all);
    free_record(&own);
    ct_test_folder_free(folder);
}

static ct_status *render_chatml(void *context, ct_json_value messages, ct_str *out)
{
    (void)context;
    ct_json_iter iter = ct_json_iterate(messages);
    while (ct_json_next(&iter)) {
        const char *role, *content;
        CT_TRY(ct_json_need_string(iter.value, "role", &role));
        CT_TRY(ct_json_need_string(iter.value, "content", &content));
        ct_str_printf(out, "<|im_start|>%s\n%s<|im_end|>\n", role, content);
    }
    return NULL;
}

/* With a real tokenizer: the labels of each conversation spell what the assistant says, each time with the token that
 * ends the turn, and nothing else. */
static void test_chat_tokens(void **state)
{
    (void)state;
    static const ct_chat_renderer chat = {render_chatml, NULL};
    const char *path = DATA "chat.jsonl";
    ct_tokenizer *bpe;
    expect_ok(ct_tokenizer_open(DATA "tokenizer", &bpe));
    ct_dataset_opts opts = options(&path);
    opts.tokenizer = bpe;
    opts.vocab_size = 320;
    opts.messages_column = "messages";
    opts.chat = &chat;
    opts.packing = CT_PACKING_NONE;
    opts.seq_len = 500;
    opts.batch_size = 1;
    opts.once = true;
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    char *text, *rest = NULL;
    size_t size;
    int count = 0;
    expect_ok(ct_file_read(path, &text, &size));
    ct_str wanted, found;
    ct_str_init(&wanted);
    ct_str_init(&found);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), count++) {
        ct_json *json;
        expect_ok(ct_json_parse(line, strlen(line), path, &json));
        ct_str_reset(&wanted);
        ct_str_reset(&found);
        ct_json_iter iter = ct_json_iterate(ct_json_get(ct_json_root(json), "messages"));
        while (ct_json_next(&iter)) {
            const char *role, *content;
            expect_ok(ct_json_need_string(iter.value, "role", &role));
            expect_ok(ct_json_need_string(iter.value, "content", &content));
            if (!strcmp(role, "assistant")) ct_str_printf(&wanted, "%s<|im_end|>", content);
        }
        expect_ok(ct_dataset_next(dataset, &batch));
        const int32_t *labels = batch.labels.data;
        for (int64_t i = 0; i < opts.seq_len; i++)
            if (labels[i] != CT_IGNORED_LABEL) expect_ok(ct_tokenizer_decode_all(bpe, &labels[i], 1, &found));
        assert_string_equal(found.data, wanted.data);
        ct_json_free(json);
    }
    assert_int_equal(count, 25);
    expect_ok(ct_dataset_next(dataset, &batch));
    assert_int_equal(batch.num_samples, 0);
    ct_str_deinit(&wanted);
    ct_str_deinit(&found);
    free(text);
    ct_batch_deinit(&batch);
    ct_dataset_close(dataset);
    ct_tokenizer_free(bpe);
}

/* ---- broken records ---- */

static void test_broken(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    const char *path = write_lines(folder, "b.jsonl",
                                   "{\"text\":\"ab\"}\n{\"text\":}\n{\"txt\":\"x\"}\n{\"text\":7}\n[1]\n"
                                   "{\"text\":\"cd\"}\n{\"text\":\"bad \xff\"}\n");
    ct_dataset_opts opts = options(&path);
    opts.seq_len = 3;
    opts.batch_size = 1;
    opts.document_mask = true;
    ct_dataset *dataset = ct_test_dataset_open(&opts);
    ct_batch batch;
    ct_batch_init(&batch, dataset);
    static const int wanted_broken[] = {0, 4, 5, 9, 10}; /* at each epoch's end there is one behind the last text */
    for (int i = 0; i < 5; i++) {
        expect_ok(ct_dataset_next(dataset, &batch));
        ct_test_expect_row(&batch.inputs, 0, i % 2 ? ROW(B, 'c', 'd') : ROW(B, 'a', 'b'));
        int64_t num_broken, num_too_long;
        ct_data_state_left_out(batch.state, &num_broken, &num_too_long);
        assert_int_equal(num_broken, wanted_broken[i]);
    }
    ct_dataset_close(dataset);
    record all = take(&opts, 10);
    for (int from = 0; from < 7; from++) expect_resumed(&opts, &all, from, 3, 1);
    expect_threads(&opts, &all, 3);
    free_record(&all);

    opts.fail_on_broken = true;
    dataset = ct_test_dataset_open(&opts);
    expect_ok(ct_dataset_next(dataset, &batch));
    for (int i = 0; i < 2; i++)
        expect_error(ct_dataset_next(dataset, &batch), CT_CODE_DATA_LOSS, "b.jsonl, byte 14:1:9: not valid JSON");
    ct_dataset_close(dataset);
    opts.fail_on_broken = false;

    /* nothing that can be used */
    free(write_lines(folder, "b.jsonl", "{\"txt\":\"ab\"}\n{\"txt\":\"cd\"}\n"));
    dataset = ct_test_dataset_open(&opts);
    expect_error(ct_dataset_next(dataset, &batch), CT_CODE_INVALID_ARGUMENT,
                 "has no record that can be used; the first that is broken: the record has no \"text\"");
    ct_dataset_close(dataset);
    free(write_lines(folder, "b.jsonl", ""));
    dataset = ct_test_dataset_open(&opts);
    expect_error(ct_dataset_next(dataset, &batch), CT_CODE_INVALID_ARGUMENT, "has no record that can be used");
    ct_dataset_close(dataset);
    /* an id beyond the vocabulary is nobody's fault but the recipe's */
    free(write_lines(folder, "b.jsonl", "{\"text\":\"ab\"}\n"));
    opts.vocab_size = 257;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_OUT_OF_RANGE,
                 "tokenizer bytes has 258 ids, but the model's vocabulary only 257");
    ct_batch_deinit(&batch);
    free((char *)(uintptr_t)path);
    ct_test_folder_free(folder);
}

/* The rest of a file that cannot be read is left out, or ends the run; a missing one always does. */
static void test_broken_files(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    static const char *const names[] = {"texts.jsonl.gz", "texts_snappy.parquet", "texts_ustar.tar.gz"};
    for (size_t n = 0; n < CT_COUNT(names); n++) {
        char *from = ct_path_join(DATA, names[n]), *bytes;
        size_t size;
        expect_ok(ct_file_read(from, &bytes, &size));
        char *name = ct_asprintf("0-%s", names[n]), *bad = ct_path_join(folder, name);
        if (n == 1) memset(bytes + 500, 0xff, 300); /* a page; cut short it would have no footer */
        expect_ok(ct_file_write(bad, bytes, n == 1 ? size : size / 2));
        const char *paths[] = {bad, from};
        ct_dataset_opts opts = options(paths);
        opts.num_paths = 2;
        record all = take(&opts, 60);
        for (int i = 0; i < 50; i += 7) expect_resumed(&opts, &all, i, 3, BATCH);
        expect_threads(&opts, &all, 2);
        assert_non_null(strstr(all.states[59], "\"num_broken\":"));
        assert_null(strstr(all.states[59], "\"num_broken\":0"));
        free_record(&all);
        opts.fail_on_broken = true;
        ct_dataset *dataset = ct_test_dataset_open(&opts);
        ct_batch batch;
        ct_batch_init(&batch, dataset);
        ct_status *status = NULL;
        for (int i = 0; i < 60 && !status; i++) status = ct_dataset_next(dataset, &batch);
        expect_error(status, CT_CODE_DATA_LOSS, bad);
        ct_dataset_close(dataset);

        opts.fail_on_broken = false;
        dataset = ct_test_dataset_open(&opts);
        expect_ok(ct_dataset_next(dataset, &batch));
        char *text = ct_test_state_text(batch.state);
        ct_dataset_close(dataset);
        expect_ok(ct_file_write(bad, bytes, size)); /* other files than those of the state */
        dataset = ct_test_dataset_open(&opts);
        if (n != 1) expect_error(ct_test_restore(dataset, text), CT_CODE_FAILED_PRECONDITION, "saved with files = ");
        ct_dataset_close(dataset);
        ct_batch_deinit(&batch);
        free(text);
        free(bytes);
        free(from);
        free(name);
        free(bad);
    }
    const char *missing = "/nowhere/x.jsonl";
    ct_dataset_opts opts = options(&missing);
    ct_dataset *dataset;
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND, "/nowhere/x.jsonl");
    const char *table = DATA "texts_snappy.parquet";
    opts = options(&table);
    opts.text_column = "body";
    expect_error(ct_dataset_open(&opts, &dataset), CT_CODE_NOT_FOUND,
                 "must have a column \"body\" of strings, but has: id (not of strings), text, maybe, meta.kind");
    ct_test_folder_free(folder);
}

/* ---- states ---- */

static void test_bad_states(void **state)
{
    (void)state;
    const char *path = DATA "texts.jsonl";
    ct_dataset_opts opts = options(&path);
    opts.shuffle = true;
    record all = take(&opts, 4);
    static const struct {
        const char *from, *to, *error;
    } changes[] = {
        {"\"seq_len\":24", "\"seq_len\":25", "seq_len = 25, but now it is 24"},
        {"\"packing\":0", "\"packing\":1", "packing = 1, but now it is 0"},
        {"\"kind\":\"json\"", "\"kind\":\"text\"", "dataset \"text\", but now it is \"json\""},
        {"\"shuffle_buffer\":[0,", "\"shuffle_buffer\":[9,", "names file 9 of 1"},
        {"\"shuffle_buffer\":[0,", "\"shuffle_buffer\":[0,1,0,", "held a document at 1 when the state was saved"},
        {"\"shuffle_buffer\":[0,", "\"shuffle_buffer\":[0,0,0,0,0,", "more documents in its shuffle buffer"},
        {"\"shuffle_buffer\":[0,", "\"shuffle_buffer\":[", "must have a multiple of 2"},
        {"\"packing\":[0,", "\"packing\":[5,", "does not go on in sample 5"},
        {"\"place\":0", "\"place\":1", "stands in file 1 of 1"},
        {"\"last_token\":", "\"last_token\":99", "last_token must not be"},
        {"\"num_draws\":", "\"num_draws\":-", "num_draws must not be"},
        {"\"draining\":false", "\"draining\":3", "must be"},
    };
    for (size_t i = 0; i < CT_COUNT(changes); i++) {
        const char *at = strstr(all.states[4], changes[i].from);
        assert_non_null(at);
        char *text = ct_asprintf("%.*s%s%s", (int)(at - all.states[4]), all.states[4], changes[i].to,
                                 at + strlen(changes[i].from));
        ct_dataset *dataset = ct_test_dataset_open(&opts);
        ct_status *status = ct_test_restore(dataset, text);
        if (!status || !strstr(ct_status_message(status), changes[i].error))
            fail_msg("%s: %s", changes[i].to, ct_status_message(status));
        ct_status_free(status);
        ct_dataset_close(dataset);
        free(text);
    }
    free_record(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),       cmocka_unit_test(test_threads), cmocka_unit_test(test_resume),
        cmocka_unit_test(test_mixture),     cmocka_unit_test(test_concat),  cmocka_unit_test(test_first_fit),
        cmocka_unit_test(test_shuffle),     cmocka_unit_test(test_prompts), cmocka_unit_test(test_chat),
        cmocka_unit_test(test_chat_tokens), cmocka_unit_test(test_broken),  cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_bad_states),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
