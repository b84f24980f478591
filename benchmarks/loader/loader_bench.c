/* Tokens per second of CPU time that the data loader makes of each kind of file: on one thread, and with workers.
 *
 *   loader_bench [text [tokenizer [file ...]]]
 *
 * A text (by default .deps/text/kjv.txt) is cut into documents of some hundred words, written as JSON lines, plain and
 * compressed, and as files of tokens, then read back, shuffled, in batches of 8 x 2048. The tokenizer is
 * bytes, or a file or folder. Further files are read as they are. The rate of one thread is over CPU time, which
 * scatters less than wall clock on a busy machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/testing.h"
#include "data/loader.h"
#include "formats/json.h"
#include "formats/safetensors.h"

enum { SEQ = 2048, BATCH = 8, DOCUMENT_BYTES = 3000, JSON_BYTES = 24 << 20, NUM_TOKENS = 32 << 20 };
static const double SECONDS = 2; /* per measurement, at least */

static ct_tokenizer *tokenizer;

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* ---- files ---- */

static char *make_json(const char *text, size_t size, size_t *out_size)
{
    ct_str lines;
    ct_str_init(&lines);
    for (size_t at = 0; lines.length < JSON_BYTES;) {
        size_t length = CT_MIN((size_t)DOCUMENT_BYTES / 2 + at * 7919 % DOCUMENT_BYTES, size - at);
        ct_json_writer *writer = ct_json_writer_new();
        char *document = ct_asprintf("%.*s", (int)length, text + at);
        ct_json_begin_object(writer, NULL);
        ct_json_put_int(writer, "id", (int64_t)at);
        ct_json_put_string(writer, "text", document);
        ct_json_end(writer);
        char *line = ct_json_writer_text(writer, false);
        ct_str_append(&lines, line);
        ct_str_append_char(&lines, '\n');
        free(line);
        free(document);
        ct_json_writer_free(writer);
        at += length;
        if (at == size) at = 0;
    }
    *out_size = lines.length;
    return ct_str_release(&lines);
}

static char *write_named(const char *folder, const char *name, const void *bytes, size_t size)
{
    char *path = ct_path_join(folder, name);
    expect_ok(ct_file_write(path, bytes, size));
    return path;
}

static char *write_gzip(const char *folder, const char *name, const char *bytes, size_t size)
{
    char *path = ct_path_join(folder, name);
    gzFile file = gzopen(path, "wb6");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)size), size);
    gzclose(file);
    return path;
}

static char *write_zstd(const char *folder, const char *name, const char *bytes, size_t size)
{
    size_t bound = ZSTD_compressBound(size);
    char *out = ct_alloc(bound), *path;
    size = ZSTD_compress(out, bound, bytes, size, 3);
    assert_false(ZSTD_isError(size));
    path = write_named(folder, name, out, size);
    free(out);
    return path;
}

static char *write_tokens(const char *folder, const char *name, const char *text, size_t size)
{
    ct_array tokens = ct_array_new(CT_DTYPE_S32, (int64_t[]){NUM_TOKENS / (SEQ + 1), SEQ + 1}, 2);
    int32_t *ids = tokens.data;
    for (int64_t i = 0; i < ct_array_num_elements(&tokens); i++) ids[i] = (unsigned char)text[(size_t)i % size];
    char *path = ct_path_join(folder, name);
    ct_safetensors_entry entry = {"tokens", tokens};
    if (strstr(name, "sequence")) {
        entry.array.rank = 1;
        entry.array.sizes[0] = ct_array_num_elements(&tokens);
    }
    expect_ok(ct_safetensors_save(path, &entry, 1));
    ct_array_free(&tokens);
    return path;
}

/* ---- measurements ---- */

typedef struct rate {
    double per_cpu, per_wall;
} rate;

static rate measure(const ct_dataset_opts *opts, bool in_background)
{
    ct_dataset *dataset;
    expect_ok(ct_dataset_open(opts, &dataset));
    ct_loader *loader = NULL;
    ct_batch own;
    ct_batch_init(&own, dataset);
    if (in_background) expect_ok(ct_loader_new(dataset, 2, &loader));
    double start = 0, start_cpu = 0;
    int64_t tokens = 0, checksum = 0;
    for (int i = 0;; i++) {
        const ct_batch *batch = &own;
        if (loader)
            expect_ok(ct_loader_next(loader, &batch));
        else
            expect_ok(ct_dataset_next(dataset, &own));
        checksum += ((const int32_t *)batch->inputs.data)[i % SEQ];
        if (i < 4) { /* the shuffle buffer is full, and pages are there */
            start = ct_clock_seconds();
            start_cpu = cpu_seconds();
            continue;
        }
        tokens += ct_array_num_elements(&batch->inputs);
        if (i % 8 == 0 && ct_clock_seconds() - start > SECONDS) break;
    }
    rate result = {(double)tokens / (cpu_seconds() - start_cpu), (double)tokens / (ct_clock_seconds() - start)};
    if (checksum < 0) printf("!"); /* keeps the reads */
    ct_batch_deinit(&own);
    ct_loader_free(loader);
    ct_dataset_close(dataset);
    return result;
}

static void report(const char *path, bool mask)
{
    ct_dataset_opts opts = {.paths = &path,
                            .num_paths = 1,
                            .seq_len = SEQ,
                            .batch_size = BATCH,
                            .vocab_size = INT32_MAX,
                            .tokenizer = tokenizer,
                            .shuffle = true,
                            .document_mask = mask};
    rate alone = measure(&opts, false);
    opts.num_workers = 1;
    rate threads = measure(&opts, true);
    const char *slash = strrchr(path, '/');
    printf("%-28s %-5s %12.1f %12.1f\n", slash ? slash + 1 : path, mask ? "mask" : "", alone.per_cpu / 1e6,
           threads.per_wall / 1e6);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char *text, *folder = ct_test_folder_new();
    size_t size, json_size;
    expect_ok(ct_file_read(argc > 1 ? argv[1] : ".deps/text/kjv.txt", &text, &size));
    expect_ok(ct_tokenizer_open(argc > 2 ? argv[2] : "bytes", &tokenizer));
    char *json = make_json(text, size, &json_size);
    char *paths[] = {
        write_tokens(folder, "rows.safetensors", text, size),
        write_tokens(folder, "sequence.safetensors", text, size),
        write_named(folder, "documents.jsonl", json, json_size),
        write_gzip(folder, "documents.jsonl.gz", json, json_size),
        write_zstd(folder, "documents.jsonl.zst", json, json_size),
    };
    free(json);
    free(text);
    printf("tokenizer %s; millions of tokens per second\n", ct_tokenizer_name(tokenizer));
    printf("%-28s %-5s %12s %12s\n", "file", "", "one core", "1 worker");
    for (size_t i = 0; i < CT_COUNT(paths); i++) {
        report(paths[i], false);
        report(paths[i], true);
        free(paths[i]);
    }
    for (int i = 3; i < argc; i++) report(argv[i], true);
    ct_tokenizer_free(tokenizer);
    ct_test_folder_free(folder);
    return 0;
}
