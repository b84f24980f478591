/* What test programs share: cmocka with the headers that it wants, statuses as checks, a folder to write in, and the
 * replay of a fuzz corpus. For _test.c files only.
 */
#ifndef CT_BASE_TESTING_H
#define CT_BASE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/status.h"

static inline void ct_test__ok(ct_status *status, const char *file, int line)
{
    if (!status) return;
    print_error("%s: %s\n", ct_code_name(ct_status_code(status)), ct_status_message(status));
    ct_status_free(status);
    _fail(file, line);
}
#define expect_ok(expression) ct_test__ok((expression), __FILE__, __LINE__)

/* The status must have the code, and its message must hold text. Frees it. */
static inline void ct_test__error(ct_status *status, ct_code code, const char *text, const char *file, int line)
{
    if (ct_status_code(status) != code || !strstr(ct_status_message(status), text)) {
        print_error("wanted %s with \"%s\", got %s: %s\n", ct_code_name(code), text,
                    ct_code_name(ct_status_code(status)), ct_status_message(status));
        ct_status_free(status);
        _fail(file, line);
    }
    ct_status_free(status);
}
#define expect_error(expression, code, text) ct_test__error((expression), (code), (text), __FILE__, __LINE__)

/* A new empty folder; removed and freed by ct_test_folder_free. */
static inline char *ct_test_folder_new(void)
{
    const char *parent = getenv("TMPDIR");
    char *folder = ct_asprintf("%s/ct_test.XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder)) fail_msg("cannot make %s", folder);
    return folder;
}

static inline void ct_test_folder_free(char *folder)
{
    expect_ok(ct_dir_remove(folder));
    free(folder);
}

/* Runs a fuzz target over every file of tests/fuzz_corpora/<name>; the number of files, at least one. */
static inline size_t ct_test_replay(const char *corpora, const char *name,
                                    int (*target)(const uint8_t *bytes, size_t size))
{
    char *folder = ct_path_join(corpora, name);
    char **names;
    size_t num_names;
    expect_ok(ct_dir_list(folder, &names, &num_names));
    assert_true(num_names > 0);
    for (size_t i = 0; i < num_names; i++) {
        char *path = ct_path_join(folder, names[i]), *bytes;
        size_t size;
        expect_ok(ct_file_read(path, &bytes, &size));
        /* An exact copy, so that the address sanitizer sees a read beyond the end. */
        uint8_t *exact = ct_alloc(size);
        memcpy(exact, bytes, size);
        target(exact, size);
        free(exact);
        free(bytes);
        free(path);
    }
    ct_names_free(names, num_names);
    free(folder);
    return num_names;
}
#define CT_TEST_CORPORA CT_SOURCE_DIR "/tests/fuzz_corpora"

#endif
