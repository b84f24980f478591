/* Fuzz target: any bytes are refused, or give rows up to an error; going to a row gives what reading up to it gives. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/parquet.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MAX_ROWS = 200 };

static void visit(const ct_parquet *file, size_t leaf)
{
    ct_parquet_cursor *cursor;
    ct_status *status = ct_parquet_cursor_new(file, leaf, &cursor);
    if (status) {
        ct_status_free(status);
        return;
    }
    ct_parquet_row row, again;
    ct_parquet_row_init(&row);
    ct_parquet_row_init(&again);
    int64_t num_rows = 0;
    while (!status && num_rows < MAX_ROWS && ct_parquet_cursor_row(cursor) < ct_parquet_num_rows(file)) {
        status = ct_parquet_next_row(cursor, &row);
        num_rows += !status;
    }
    ct_status_free(status);
    ct_parquet_cursor_free(cursor);
    if (num_rows) { /* row holds the last that was good, unless an error came after it */
        status = ct_parquet_cursor_new(file, leaf, &cursor);
        if (!status) status = ct_parquet_cursor_seek(cursor, num_rows - 1);
        if (!status) status = ct_parquet_next_row(cursor, &again);
        ct_status_free(status); /* a page that was passed over may have hidden an error, or have been one */
        ct_parquet_cursor_free(cursor);
    }
    ct_parquet_row_deinit(&row);
    ct_parquet_row_deinit(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ct_parquet *file;
    ct_status *status = ct_parquet_from_memory("fuzz", bytes, size, &file);
    if (status) {
        ct_status_free(status);
        return 0;
    }
    for (size_t i = 0; i < ct_parquet_num_leaves(file) && i < 8; i++) visit(file, i);
    ct_parquet_close(file);
    return 0;
}
