#include "base/testing.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/half.h"
#include "formats/safetensors.h"

#include "formats/safetensors_fuzz.c" /* its corpus is replayed below */

/* A file made of a header and data_bytes zero bytes, parsed. */
static ct_status *parse(const char *header, size_t data_bytes, ct_safetensors **out_file)
{
    static unsigned char bytes[4096];
    uint64_t length = strlen(header);
    assert_true(8 + length + data_bytes <= sizeof(bytes));
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    return ct_safetensors_parse(bytes, 8 + length + data_bytes, "x.safetensors", out_file);
}

static void refused(const char *header, size_t data_bytes, const char *text)
{
    ct_safetensors *file;
    expect_error(parse(header, data_bytes, &file), CT_CODE_INVALID_ARGUMENT, text);
    assert_null(file);
}

#define ENTRY(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void test_accepts(void **state)
{
    (void)state;
    ct_safetensors *file;
    expect_ok(
        parse("{\"b\":" ENTRY("F32", "[2,3]", "[4,28]") ",\"a\":" ENTRY("F8_E4M3", "[4]", "[0,4]") ",\"scalar\":" ENTRY(
                  "I64", "[]", "[28,36]") ",\"none\":" ENTRY("F32", "[0,5]",
                                                             "[28,28]") ",\"__metadata__\":{\"format\":\"pt\"}}   ",
              36, &file));
    assert_int_equal(ct_safetensors_num_tensors(file), 4);
    assert_string_equal(ct_safetensors_at(file, 0)->name, "a"); /* order of the data */
    assert_string_equal(ct_safetensors_at(file, 3)->name, "scalar");
    assert_string_equal(ct_safetensors_metadata(file, "format"), "pt");
    assert_null(ct_safetensors_metadata(file, "other"));

    const ct_safetensors_tensor *tensor;
    expect_ok(ct_safetensors_find(file, "b", &tensor));
    assert_int_equal(tensor->dtype, CT_DTYPE_F32);
    assert_int_equal(tensor->rank, 2);
    expect_ok(ct_safetensors_check_shape(tensor, (int64_t[]){2, 3}, 2));
    expect_ok(ct_safetensors_check_shape(tensor, (int64_t[]){-1, 3}, 2));
    expect_error(ct_safetensors_check_shape(tensor, (int64_t[]){-1, 4}, 2), CT_CODE_INVALID_ARGUMENT,
                 "tensor b must have the shape [any, 4], but has [2, 3] in x.safetensors");
    assert_int_equal(ct_safetensors_get(file, "scalar")->rank, 0);

    /* A type that we do not have: listed, an error on use. */
    expect_ok(ct_safetensors_find(file, "a", &tensor));
    assert_int_equal(tensor->dtype, CT_DTYPE_INVALID);
    assert_string_equal(tensor->dtype_name, "F8_E4M3");
    float values[4];
    ct_array array;
    expect_error(ct_safetensors_read_f32(tensor, values, 4), CT_CODE_INVALID_ARGUMENT, "tensor a");
    expect_error(ct_safetensors_load(tensor, &array), CT_CODE_UNIMPLEMENTED, "tensor a in x.safetensors is of F8_E4M3");
    expect_error(ct_safetensors_find(file, "scaler", &tensor), CT_CODE_NOT_FOUND, "nearest of its 4 names is scalar");
    assert_null(tensor);
    ct_safetensors_close(file);

    expect_ok(parse("{}", 0, &file));
    assert_int_equal(ct_safetensors_num_tensors(file), 0);
    expect_error(ct_safetensors_find(file, "a", &tensor), CT_CODE_NOT_FOUND, "has no tensor a among its 0");
    ct_safetensors_close(file);
    expect_ok(parse("{\"a\":" ENTRY("F4", "[3,2]", "[0,3]") "}", 3, &file)); /* half a byte each */
    ct_safetensors_close(file);
}

static void test_refuses(void **state)
{
    (void)state;
    refused("{\"a\":" ENTRY("F32", "[2]", "[0,8]") "}", 7, "tensor a lies at [0, 8), outside the 7 bytes");
    refused("{\"a\":" ENTRY("F32", "[2]", "[0,8]") "}", 9, "ends at byte 8 of the data, but the file has 9");
    refused("{\"a\":" ENTRY("F32", "[2]", "[8,0]") "}", 8, "outside");
    refused("{\"a\":" ENTRY("F32", "[2]", "[-8,0]") "}", 8, "outside");
    refused("{\"a\":" ENTRY("F32", "[2]", "[0,18446744073709551615]") "}", 8, "a.data_offsets[1] must be an integer");
    refused("{\"a\":" ENTRY("F32", "[3]", "[0,8]") "}", 8, "tensor a needs 12 bytes by its dtype and shape, but has 8");
    refused("{\"a\":" ENTRY("F32", "[4611686018427387904,2]", "[0,8]") "}", 8, "more bits than 2^63");
    refused("{\"a\":" ENTRY("F32", "[-2]", "[0,8]") "}", 8, "size -2 of dim 0 is negative");
    refused("{\"a\":" ENTRY("F32", "[1.5]", "[0,8]") "}", 8, "a.shape[0] must be an integer");
    refused("{\"a\":" ENTRY("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") "}", 8, "at most 8 dims, but has 9");
    refused("{\"a\":" ENTRY("F99", "[2]", "[0,8]") "}", 8, "tensor a has the unknown dtype \"F99\"");
    refused("{\"a\":" ENTRY("F4", "[3]", "[0,2]") "}", 2, "tensor a needs 2 bytes"); /* not whole bytes */
    refused("{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"b\":" ENTRY("F32", "[1]", "[8,12]") "}", 12, "a gap");
    refused("{\"a\":" ENTRY("F32", "[2]", "[0,8]") ",\"b\":" ENTRY("F32", "[2]", "[4,12]") "}", 12, "they overlap");
    refused("{\"a\":" ENTRY("F32", "[1]", "[4,8]") "}", 8, "but the data begins at 0");
    refused("{\"a\":" ENTRY("F32", "[1]", "[0,4]") ",\"a\":" ENTRY("F32", "[1]", "[4,8]") "}", 8, "a stands twice");
    refused("{\"a\\u0000b\":" ENTRY("F32", "[1]", "[0,4]") "}", 4, "holds a zero character");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "must be [begin, end], but has 1");
    refused("{\"a\":3}", 0, "a must be an object, but is 3");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__.a must be a string");
    refused("{\"a\":}", 0, "not valid JSON");
    refused("", 0, "must begin with '{'");
    refused("[]", 0, "must begin with '{'");

    ct_safetensors *file;
    expect_error(ct_safetensors_parse("\0\0\0", 3, "x", &file), CT_CODE_INVALID_ARGUMENT,
                 "at least 8 bytes, but this has 3");
    expect_error(ct_safetensors_parse("\x09\0\0\0\0\0\0\0{}      ", 16, "x", &file), CT_CODE_INVALID_ARGUMENT,
                 "within the file's 16 bytes, but is 9");
    expect_error(ct_safetensors_parse("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "x", &file), CT_CODE_INVALID_ARGUMENT,
                 "but is 18446744073709551615");
    expect_error(ct_safetensors_open("/nowhere/x.safetensors", &file), CT_CODE_NOT_FOUND, "/nowhere/x.safetensors");
    expect_error(ct_safetensors_open("/tmp", &file), CT_CODE_INVALID_ARGUMENT, "/tmp must be a regular file");
}

static void test_missing_member(void **state)
{
    (void)state;
    ct_safetensors *file;
    expect_error(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, &file), CT_CODE_NOT_FOUND,
                 "a.data_offsets is required");
}

static void test_conversions(void **state)
{
    (void)state;
    const double values[] = {0, -1.5, 3.140625, 65504, 1.0 / 0.0};
    const ct_dtype dtypes[] = {CT_DTYPE_F32, CT_DTYPE_BF16, CT_DTYPE_F16, CT_DTYPE_F64};
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "x.safetensors");
    for (size_t d = 0; d < CT_COUNT(dtypes); d++) {
        ct_safetensors_entry entry = {"x", ct_array_new(dtypes[d], (int64_t[]){5}, 1)};
        for (int64_t i = 0; i < 5; i++) ct_array_set(&entry.array, i, values[i]);
        expect_ok(ct_safetensors_save(path, &entry, 1));
        ct_safetensors *file;
        expect_ok(ct_safetensors_open(path, &file));
        float read[5];
        expect_ok(ct_safetensors_read_f32(ct_safetensors_get(file, "x"), read, 5));
        for (int64_t i = 0; i < 5; i++) assert_true((double)read[i] == ct_array_get(&entry.array, i));
        expect_error(ct_safetensors_read_f32(ct_safetensors_get(file, "x"), read, 4), CT_CODE_INVALID_ARGUMENT,
                     "must have 4 elements, but has 5");
        ct_safetensors_close(file);
        ct_array_free(&entry.array);
    }
    free(path);
    ct_test_folder_free(folder);
}

static void test_unaligned_data(void **state)
{
    (void)state;
    const char *header = "{\"a\":" ENTRY("U8", "[1]", "[0,1]") ",\"b\":" ENTRY("F32", "[1]", "[1,5]") "}       ";
    _Alignas(16) unsigned char bytes[256] = {0};
    uint64_t length = strlen(header) / 8 * 8;
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    const float value = 2.5f;
    memcpy(bytes + 8 + length + 1, &value, 4);
    ct_safetensors *file;
    expect_ok(ct_safetensors_parse(bytes, 8 + length + 5, "x", &file));
    ct_array array;
    float read;
    expect_error(ct_safetensors_borrow(ct_safetensors_get(file, "b"), &array), CT_CODE_FAILED_PRECONDITION,
                 "tensor b in x is not aligned");
    expect_ok(ct_safetensors_read_f32(ct_safetensors_get(file, "b"), &read, 1));
    assert_true(read == value);
    expect_ok(ct_safetensors_load(ct_safetensors_get(file, "b"), &array));
    assert_true(*(float *)array.data == value);
    ct_array_free(&array);
    expect_ok(ct_safetensors_borrow(ct_safetensors_get(file, "a"), &array));
    assert_int_equal(*(uint8_t *)array.data, 0);
    ct_safetensors_close(file);
}

typedef struct {
    char bytes[8192];
    size_t size;
} copy;

static void observe(void *context, const void *bytes, size_t size_bytes)
{
    copy *seen = context;
    assert_true(seen->size + size_bytes <= sizeof(seen->bytes));
    memcpy(seen->bytes + seen->size, bytes, size_bytes);
    seen->size += size_bytes;
}

static void test_writer_streams(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "x.safetensors");
    expect_ok(ct_file_write(path, "old", 3));
    static copy seen;
    ct_safetensors_writer *writer;
    expect_ok(ct_safetensors_writer_new(path, &(ct_safetensors_writer_opts){observe, &seen}, &writer));
    ct_safetensors_writer_metadata(writer, "format", "ct");
    ct_safetensors_writer_metadata(writer, "format", "pt");
    expect_ok(ct_safetensors_writer_add(writer, "a", CT_DTYPE_S32, (int64_t[]){2, 2}, 2));
    expect_ok(ct_safetensors_writer_add(writer, "empty", CT_DTYPE_F32, (int64_t[]){0}, 1));
    expect_ok(ct_safetensors_writer_add(writer, "b", CT_DTYPE_BF16, NULL, 0));
    expect_error(ct_safetensors_writer_add(writer, "a", CT_DTYPE_F32, NULL, 0), CT_CODE_INVALID_ARGUMENT,
                 "given twice");
    expect_error(ct_safetensors_writer_add(writer, "__metadata__", CT_DTYPE_F32, NULL, 0), CT_CODE_INVALID_ARGUMENT,
                 "reserved");
    expect_error(ct_safetensors_writer_add(writer, "c", CT_DTYPE_F32, (int64_t[]){INT64_MAX, 2}, 2),
                 CT_CODE_INVALID_ARGUMENT, "more bytes than 2^63");
    const int32_t a[4] = {1, -2, 3, 4};
    expect_ok(ct_safetensors_writer_write(writer, "a", a, 4));
    expect_ok(ct_safetensors_writer_write(writer, "a", a + 1, 8));
    expect_error(ct_safetensors_writer_write(writer, "b", a, 2), CT_CODE_FAILED_PRECONDITION, "must be those of a");
    expect_error(ct_safetensors_writer_write(writer, "a", a, 8), CT_CODE_FAILED_PRECONDITION,
                 "has 4 bytes left, but got 8");
    expect_ok(ct_safetensors_writer_write(writer, "a", a + 3, 4));
    expect_ok(ct_safetensors_writer_write(writer, "empty", a, 0));
    int64_t offset = ct_safetensors_writer_offset(writer, "b");
    expect_ok(ct_safetensors_writer_write(writer, "b", &(uint16_t){0x3f80}, 2));
    expect_error(ct_safetensors_writer_write(writer, "b", a, 1), CT_CODE_FAILED_PRECONDITION,
                 "must be those of no tensor");

    char *bytes;
    size_t size;
    expect_ok(ct_file_read(path, &bytes, &size)); /* until the end, path is as it was */
    assert_string_equal(bytes, "old");
    free(bytes);
    expect_ok(ct_safetensors_writer_finish(writer));
    expect_ok(ct_file_read(path, &bytes, &size));
    assert_int_equal(size, seen.size);
    assert_memory_equal(bytes, seen.bytes, size);
    assert_int_equal((size - 18) % 64, 0); /* the data begins at a multiple of 64 */
    assert_int_equal(((uint16_t *)(void *)(bytes + offset))[0], 0x3f80);
    free(bytes);

    ct_safetensors *file;
    expect_ok(ct_safetensors_open(path, &file));
    assert_string_equal(ct_safetensors_metadata(file, "format"), "pt");
    assert_memory_equal(ct_safetensors_get(file, "a")->data, a, sizeof(a));
    assert_int_equal(ct_safetensors_get(file, "empty")->size_bytes, 0);
    ct_safetensors_close(file);
    char **names;
    expect_ok(ct_dir_list(folder, &names, &size));
    assert_int_equal(size, 1); /* the temporary is gone */
    ct_names_free(names, size);
    free(path);
    ct_test_folder_free(folder);
}

static void assert_only(const char *folder, size_t wanted)
{
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    assert_int_equal(num_names, wanted);
    ct_names_free(names, num_names);
}

static void test_writer_gives_up(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "x.safetensors");
    ct_safetensors_writer *writer;
    expect_ok(ct_safetensors_writer_new(path, NULL, &writer));
    expect_ok(ct_safetensors_writer_add(writer, "a", CT_DTYPE_F32, (int64_t[]){2}, 1));
    assert_only(folder, 1);
    expect_error(ct_safetensors_writer_finish(writer), CT_CODE_FAILED_PRECONDITION, "0 of 8 bytes of data were given");
    assert_only(folder, 0);
    expect_ok(ct_safetensors_writer_new(path, NULL, &writer));
    ct_safetensors_writer_free(writer);
    assert_only(folder, 0);
    char *lost = ct_path_join(folder, "no/x.safetensors");
    expect_error(ct_safetensors_writer_new(lost, NULL, &writer), CT_CODE_NOT_FOUND, lost);
    free(lost);

    /* A disk that is full after 64 KiB. */
    struct rlimit limit, small;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = (struct rlimit){.rlim_cur = 65536, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    ct_safetensors_entry entry = {"a", ct_array_new(CT_DTYPE_F32, (int64_t[]){100000}, 1)};
    ct_status *status = ct_safetensors_save(path, &entry, 1);
    setrlimit(RLIMIT_FSIZE, &limit);
    expect_error(status, CT_CODE_RESOURCE_EXHAUSTED, path);
    assert_only(folder, 0);
    ct_array_free(&entry.array);
    free(path);
    ct_test_folder_free(folder);
}

static void add_up(void *context, const void *bytes, size_t size_bytes)
{
    uint64_t *sums = context; /* bytes, and a checksum of them in order */
    for (size_t i = 0; i < size_bytes; i++) sums[1] = sums[1] * 31 + ((const unsigned char *)bytes)[i];
    sums[0] += size_bytes;
}

/* A file that is large enough to be written past the page cache, in pieces of all sizes. */
static void test_large_file(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "large.safetensors"), *bytes;
    const int64_t sizes[2] = {20 << 20, 333};
    unsigned char *data = ct_alloc((size_t)sizes[0]);
    for (int64_t i = 0; i < sizes[0]; i++) data[i] = (unsigned char)(i * 2654435761u >> 11);
    uint64_t observed[2] = {0}, found[2] = {0};
    ct_safetensors_writer *writer;
    expect_ok(ct_safetensors_writer_new(path, &(ct_safetensors_writer_opts){add_up, observed}, &writer));
    expect_ok(ct_safetensors_writer_add(writer, "a", CT_DTYPE_U8, &sizes[0], 1));
    expect_ok(ct_safetensors_writer_add(writer, "b", CT_DTYPE_U8, &sizes[1], 1));
    for (int64_t done = 0, part = 1; done < sizes[0]; done += part, part = CT_MIN(part * 5, sizes[0] - done))
        expect_ok(ct_safetensors_writer_write(writer, "a", data + done, (size_t)part));
    expect_ok(ct_safetensors_writer_write(writer, "b", data + 7, (size_t)sizes[1]));
    expect_ok(ct_safetensors_writer_finish(writer));
    size_t size;
    expect_ok(ct_file_read(path, &bytes, &size));
    add_up(found, bytes, size);
    assert_memory_equal(observed, found, sizeof(found));
    free(bytes);
    ct_safetensors *file;
    expect_ok(ct_safetensors_open(path, &file));
    assert_memory_equal(ct_safetensors_get(file, "a")->data, data, (size_t)sizes[0]);
    assert_memory_equal(ct_safetensors_get(file, "b")->data, data + 7, (size_t)sizes[1]);
    ct_safetensors_close(file);
    free(data);
    free(path);
    ct_test_folder_free(folder);
}

static void test_save_puts_large_elements_first(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new(), *path = ct_path_join(folder, "x.safetensors");
    ct_safetensors_entry entries[3] = {{"byte", ct_array_new(CT_DTYPE_U8, (int64_t[]){3}, 1)},
                                       {"half", ct_array_new(CT_DTYPE_F16, (int64_t[]){1}, 1)},
                                       {"long", ct_array_new(CT_DTYPE_S64, (int64_t[]){1}, 1)}};
    expect_ok(ct_safetensors_save(path, entries, 3));
    ct_safetensors *file;
    expect_ok(ct_safetensors_open(path, &file));
    assert_string_equal(ct_safetensors_at(file, 0)->name, "long");
    for (size_t i = 0; i < 3; i++) {
        ct_array array;
        expect_ok(ct_safetensors_borrow(ct_safetensors_at(file, i), &array));
        ct_array_free(&entries[i].array);
    }
    ct_safetensors_close(file);
    free(path);
    ct_test_folder_free(folder);
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char *path = ct_path_join(folder, name);
    expect_ok(ct_file_write(path, text, strlen(text)));
    free(path);
}

static void write_shard(const char *folder, const char *name, const char *tensor, float value)
{
    char *path = ct_path_join(folder, name);
    ct_safetensors_entry entry = {tensor, ct_array_new(CT_DTYPE_F32, NULL, 0)};
    ct_array_set(&entry.array, 0, (double)value);
    expect_ok(ct_safetensors_save(path, &entry, 1));
    ct_array_free(&entry.array);
    free(path);
}

static void test_folder(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_safetensors *file;
    expect_error(ct_safetensors_dir_open(folder, &file), CT_CODE_NOT_FOUND, "has neither");
    expect_error(ct_safetensors_dir_open("/nowhere", &file), CT_CODE_NOT_FOUND, "is not a folder");

    write_shard(folder, "one.safetensors", "a", 1);
    write_shard(folder, "two.safetensors", "b", 2);
    write_text(folder, "model.safetensors.index.json",
               "{\"metadata\":{},\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}");
    expect_ok(ct_safetensors_dir_open(folder, &file));
    assert_int_equal(ct_safetensors_num_tensors(file), 2);
    float value;
    expect_ok(ct_safetensors_read_f32(ct_safetensors_get(file, "b"), &value, 1));
    assert_true(value == 2);
    assert_non_null(strstr(ct_safetensors_get(file, "b")->path, "two.safetensors"));
    ct_safetensors_close(file);

    write_text(folder, "model.safetensors.index.json", "{\"weight_map\":{\"b\":\"one.safetensors\"}}");
    expect_error(ct_safetensors_dir_open(folder, &file), CT_CODE_INVALID_ARGUMENT,
                 "places tensor b in one.safetensors, which does not have it");
    write_text(folder, "model.safetensors.index.json",
               "{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"one.safetensors\"}}");
    expect_error(ct_safetensors_dir_open(folder, &file), CT_CODE_INVALID_ARGUMENT, "lists tensor a twice");
    write_text(folder, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"three.safetensors\"}}");
    expect_error(ct_safetensors_dir_open(folder, &file), CT_CODE_NOT_FOUND, "three.safetensors");
    write_text(folder, "model.safetensors.index.json", "{\"weight_map\":{\"a\":\"../one.safetensors\"}}");
    expect_error(ct_safetensors_dir_open(folder, &file), CT_CODE_INVALID_ARGUMENT, "which is not in the folder");
    write_text(folder, "model.safetensors.index.json", "{}");
    expect_error(ct_safetensors_dir_open(folder, &file), CT_CODE_NOT_FOUND, "weight_map is required");

    write_shard(folder, "model.safetensors", "whole", 3);
    expect_ok(ct_safetensors_dir_open(folder, &file));
    assert_non_null(ct_safetensors_get(file, "whole"));
    ct_safetensors_close(file);
    ct_test_folder_free(folder);
}

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "safetensors", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),         cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_missing_member),  cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_unaligned_data),  cmocka_unit_test(test_writer_streams),
        cmocka_unit_test(test_writer_gives_up), cmocka_unit_test(test_save_puts_large_elements_first),
        cmocka_unit_test(test_large_file),      cmocka_unit_test(test_folder),
        cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
