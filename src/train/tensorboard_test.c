/* Event files are read back by a reader of the test's own, that knows frames and fields and checks every sum. */
#include "train/tensorboard.h"

#include "base/crc32c.h"
#include "base/testing.h"

typedef struct reader {
    const unsigned char *at, *end;
} reader;

static uint64_t take_fixed(reader *r, int num_bytes)
{
    uint64_t value = 0;
    assert_true(r->end - r->at >= num_bytes);
    for (int i = 0; i < num_bytes; i++) value |= (uint64_t)*r->at++ << 8 * i;
    return value;
}

static uint64_t take_varint(reader *r)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(r->at < r->end && shift < 64);
        value |= (uint64_t)(*r->at & 0x7f) << shift;
        if (!(*r->at++ & 0x80)) return value;
    }
}

static reader take_bytes(reader *r, uint64_t length)
{
    assert_true((uint64_t)(r->end - r->at) >= length);
    reader inner = {r->at, r->at + length};
    r->at += length;
    return inner;
}

static void check_sum(reader *r, const unsigned char *bytes, size_t length)
{
    uint32_t unmasked = (uint32_t)take_fixed(r, 4) - UINT32_C(0xa282ead8);
    assert_int_equal(unmasked << 15 | unmasked >> 17, ct_crc32c(bytes, length));
}

typedef struct event {
    double wall_time_s;
    int64_t step;
    char version[32];
    bool is_start;
    char tags[16][40];
    float values[16];
    size_t num_values;
} event;

static void take_value(reader r, event *e)
{
    assert_true(e->num_values < 16);
    while (r.at < r.end) {
        uint64_t key = take_varint(&r);
        if (key == (1 << 3 | 2)) {
            reader tag = take_bytes(&r, take_varint(&r));
            snprintf(e->tags[e->num_values], 40, "%.*s", (int)(tag.end - tag.at), (const char *)tag.at);
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            uint32_t bits = (uint32_t)take_fixed(&r, 4);
            memcpy(&e->values[e->num_values], &bits, sizeof(bits));
        }
    }
    e->num_values++;
}

static event take_event(reader *file)
{
    const unsigned char *head = file->at;
    uint64_t length = take_fixed(file, 8);
    check_sum(file, head, 8);
    reader r = take_bytes(file, length), inner;
    check_sum(file, r.at, length);
    event e = {0};
    while (r.at < r.end) {
        uint64_t key = take_varint(&r), bits;
        switch (key) {
        case 1 << 3 | 1:
            bits = take_fixed(&r, 8);
            memcpy(&e.wall_time_s, &bits, sizeof(bits));
            break;
        case 2 << 3 | 0: e.step = (int64_t)take_varint(&r); break;
        case 3 << 3 | 2:
            inner = take_bytes(&r, take_varint(&r));
            snprintf(e.version, sizeof(e.version), "%.*s", (int)(inner.end - inner.at), (const char *)inner.at);
            break;
        case 5 << 3 | 2:
            inner = take_bytes(&r, take_varint(&r));
            while (inner.at < inner.end) {
                assert_int_equal(take_varint(&inner), 1 << 3 | 2);
                take_value(take_bytes(&inner, take_varint(&inner)), &e);
            }
            break;
        case 7 << 3 | 2:
            inner = take_bytes(&r, take_varint(&r));
            assert_int_equal(take_varint(&inner), 1 << 3);
            e.is_start = take_varint(&inner) == 1;
            break;
        default: fail_msg("an event has no field %llu", (unsigned long long)key);
        }
    }
    return e;
}

static void expect_scalar(const event *e, const char *tag, double value)
{
    for (size_t i = 0; i < e->num_values; i++)
        if (!strcmp(e->tags[i], tag)) {
            if (e->values[i] != (float)value) fail_msg("%s is %g", tag, (double)e->values[i]);
            return;
        }
    fail_msg("no %s", tag);
}

/* The only folder in folder, and the files in that. */
static char *dated_folder(const char *folder, char ***out_names, size_t *out_num_names)
{
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    assert_int_equal(num_names, 1);
    char *dated = ct_path_join(folder, names[0]);
    ct_names_free(names, num_names);
    expect_ok(ct_dir_list(dated, out_names, out_num_names));
    return dated;
}

static const ct_metrics_values values = {.step = 10,
                                         .loss = 3.25,
                                         .grad_norm = 0.7,
                                         .lr = 3e-4,
                                         .tps = 1234,
                                         .tflops = 5,
                                         .mfu = 41.5,
                                         .memory_gib = 2,
                                         .memory_pct = 50,
                                         .data_loading_s = 0.5,
                                         .step_s = 2,
                                         .n_tokens_seen = INT64_C(1) << 33};

static void test_events_are_read_back(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_tensorboard *board;
    expect_ok(ct_tensorboard_open(folder, 1, &board));
    expect_ok(ct_tensorboard_values(board, &values));
    ct_metrics_values other = values;
    other.step = 300;
    other.memory_gib = 0;
    expect_ok(ct_tensorboard_values(board, &other));
    ct_event_scalar more = {"validation_metrics/loss", 2.5};
    expect_ok(ct_tensorboard_scalars(board, 300, &more, 1));
    ct_tensorboard_close(board);

    char **names;
    size_t num_names;
    char *dated = dated_folder(folder, &names, &num_names);
    assert_int_equal(num_names, 1);
    assert_int_equal(strncmp(names[0], "events.out.tfevents.", 20), 0);
    char *path = ct_path_join(dated, names[0]), *bytes;
    size_t size;
    expect_ok(ct_file_read(path, &bytes, &size));
    reader file = {(unsigned char *)bytes, (unsigned char *)bytes + size};
    event e = take_event(&file);
    assert_string_equal(e.version, "brain.Event:2");
    assert_true(e.wall_time_s > 1.7e9);
    e = take_event(&file);
    assert_int_equal(e.step, 10);
    assert_int_equal(e.num_values, 12);
    expect_scalar(&e, "loss_metrics/global_avg_loss", 3.25);
    expect_scalar(&e, "grad_norm", 0.7);
    expect_scalar(&e, "lr/AdamW", 3e-4);
    expect_scalar(&e, "throughput(tps)", 1234);
    expect_scalar(&e, "tflops", 5);
    expect_scalar(&e, "mfu(%)", 41.5);
    expect_scalar(&e, "memory/max_active(GiB)", 2);
    expect_scalar(&e, "memory/max_active(%)", 50);
    expect_scalar(&e, "time_metrics/end_to_end(s)", 2);
    expect_scalar(&e, "time_metrics/data_loading(s)", 0.5);
    expect_scalar(&e, "time_metrics/data_loading(%)", 25);
    expect_scalar(&e, "n_tokens_seen", 8589934592.0);
    e = take_event(&file);
    assert_int_equal(e.step, 300);
    assert_int_equal(e.num_values, 10); /* memory is not known */
    e = take_event(&file);
    expect_scalar(&e, "validation_metrics/loss", 2.5);
    assert_true(file.at == file.end);
    free(bytes);
    free(path);
    free(dated);
    ct_names_free(names, num_names);
    ct_test_folder_free(folder);
}

static void test_resume_joins(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_tensorboard *board;
    expect_ok(ct_tensorboard_open(folder, 1, &board));
    ct_tensorboard_close(board);
    expect_ok(ct_tensorboard_open(folder, 11, &board)); /* in the same second */
    ct_tensorboard_close(board);
    char **names;
    size_t num_names;
    char *dated = dated_folder(folder, &names, &num_names);
    assert_int_equal(num_names, 2);
    char *path = ct_path_join(dated, names[1]), *bytes; /* the later one */
    size_t size;
    expect_ok(ct_file_read(path, &bytes, &size));
    reader file = {(unsigned char *)bytes, (unsigned char *)bytes + size};
    assert_string_equal(take_event(&file).version, "brain.Event:2");
    event e = take_event(&file);
    assert_true(e.is_start);
    assert_int_equal(e.step, 11);
    assert_true(file.at == file.end);
    free(bytes);
    free(path);
    free(dated);
    ct_names_free(names, num_names);

    char *in_the_way = ct_path_join(folder, "file");
    expect_ok(ct_file_write(in_the_way, "x", 1));
    expect_error(ct_tensorboard_open(in_the_way, 1, &board), CT_CODE_ALREADY_EXISTS, in_the_way);
    assert_null(board);
    free(in_the_way);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_are_read_back),
        cmocka_unit_test(test_resume_joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
