/* tokenizer_bench TOKENIZER FILE BYTES [ROUNDS]: encodes the file in documents of about BYTES (whole lines), in one
 * thread, and prints "seconds ids hash" of the fastest round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "tokenizer/tokenizer.h"

static ct_status *run(const char *path, const char *file, size_t document_bytes, int rounds)
{
    ct_tokenizer *tokenizer;
    char *text;
    size_t length;
    CT_TRY(ct_tokenizer_open(path, &tokenizer));
    CT_TRY(ct_file_read(file, &text, &length));
    double best = 1e9;
    size_t total = 0;
    uint64_t hash = 0;
    for (int round = 0; round < rounds; round++) {
        total = 0;
        hash = 0;
        double begin = ct_clock_seconds();
        for (size_t at = 0; at < length;) {
            size_t end = CT_MIN(at + document_bytes, length);
            const char *newline = end < length ? memchr(text + end, '\n', length - end) : NULL;
            if (end < length) end = newline ? (size_t)(newline + 1 - text) : length;
            int32_t *ids;
            size_t num_ids;
            CT_TRY(ct_tokenizer_encode(tokenizer, text + at, end - at, NULL, &ids, &num_ids));
            total += num_ids;
            for (size_t i = 0; i < num_ids; i += 97) hash = hash * 31 + (uint32_t)ids[i];
            free(ids);
            at = end;
        }
        best = CT_MIN(best, ct_clock_seconds() - begin);
    }
    printf("%.4f %zu %llu\n", best, total, (unsigned long long)hash);
    free(text);
    ct_tokenizer_free(tokenizer);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: tokenizer_bench TOKENIZER FILE BYTES [ROUNDS]\n");
        return 2;
    }
    ct_status *status = run(argv[1], argv[2], (size_t)atoll(argv[3]), argc > 4 ? atoi(argv[4]) : 1);
    if (!status) return 0;
    fprintf(stderr, "%s\n", ct_status_message(status));
    ct_status_free(status);
    return 1;
}
