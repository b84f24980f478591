/* Readers by kind. */
#include "data/record.h"

#include "formats/byte_stream.h"
#include "formats/parquet/parquet.h"

static ct_status *of_stream(ct_data_kind kind, const ct__columns *columns, ct_byte_stream *stream,
                            ct__record_reader **out_reader)
{
    *out_reader = kind == CT_DATA_JSON ? ct__json_lines_new(stream) : ct__tar_samples_new(columns, stream);
    return NULL;
}

ct_status *ct__record_reader_open(ct_data_kind kind, const ct__columns *columns, const char *path,
                                  ct__record_reader **out_reader)
{
    *out_reader = NULL;
    if (kind == CT_DATA_PARQUET) {
        ct_parquet *file;
        CT_TRY(ct_parquet_open(path, &file));
        return ct__parquet_rows_new(columns, path, file, out_reader);
    }
    ct_byte_stream *stream;
    CT_TRY(ct_byte_stream_open(path, &stream));
    return of_stream(kind, columns, stream, out_reader);
}

ct_status *ct__record_reader_from_memory(ct_data_kind kind, const ct__columns *columns, const char *name,
                                         const void *bytes, size_t size_bytes, ct__record_reader **out_reader)
{
    *out_reader = NULL;
    if (kind == CT_DATA_PARQUET) {
        ct_parquet *file;
        CT_TRY(ct_parquet_from_memory(name, bytes, size_bytes, &file));
        return ct__parquet_rows_new(columns, name, file, out_reader);
    }
    return of_stream(kind, columns, ct_byte_stream_from_memory(name, bytes, size_bytes), out_reader);
}

void ct__record_reader_close(ct__record_reader *reader)
{
    if (reader) reader->class->close(reader);
}

ct_status *ct__record_reader_skip_to(ct__record_reader *reader, int64_t offset)
{
    return reader->class->skip_to(reader, offset);
}

ct_status *ct__record_reader_next(ct__record_reader *reader, ct_arena *arena, ct__record *out_record, bool *out_ended)
{
    *out_record = (ct__record){0};
    *out_ended = false;
    return reader->class->next(reader, arena, out_record, out_ended);
}
