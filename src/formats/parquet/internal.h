/* What the files of the Parquet reader share. Only for files in this folder. */
#ifndef CT_FORMATS_PARQUET_INTERNAL_H
#define CT_FORMATS_PARQUET_INTERNAL_H

#include "base/arena.h"
#include "base/file.h"
#include "formats/parquet/parquet.h"

/* ---- Thrift, compact protocol ---- */

/* A place in bytes; a read beyond them sets failed and gives zeros from then on. */
typedef struct ct__thrift {
    const uint8_t *at, *end;
    bool failed;
} ct__thrift;

typedef enum ct__thrift_type {
    CT__THRIFT_STOP,
    CT__THRIFT_TRUE,
    CT__THRIFT_FALSE,
    CT__THRIFT_BYTE,
    CT__THRIFT_I16,
    CT__THRIFT_I32,
    CT__THRIFT_I64,
    CT__THRIFT_DOUBLE,
    CT__THRIFT_BINARY,
    CT__THRIFT_LIST,
    CT__THRIFT_SET,
    CT__THRIFT_MAP,
    CT__THRIFT_STRUCT,
} ct__thrift_type;

typedef struct ct__thrift_field {
    ct__thrift_type type;
    int64_t id; /* 0 before the first */
} ct__thrift_field;

/* The next field of a struct; false at its end. The field's value must be read or skipped. */
bool ct__thrift_next(ct__thrift *t, ct__thrift_field *field);
int64_t ct__thrift_int(ct__thrift *t);     /* of I16, I32, I64 */
uint64_t ct__thrift_varint(ct__thrift *t); /* unsigned */
const uint8_t *ct__thrift_binary(ct__thrift *t, size_t *out_size);
size_t ct__thrift_list(ct__thrift *t, ct__thrift_type *out_type); /* number of elements, each at least a byte */
void ct__thrift_skip(ct__thrift *t, ct__thrift_type type);
/* A field that must be an integer (or a boolean), else failed. */
int64_t ct__thrift_field_int(ct__thrift *t, const ct__thrift_field *field);

/* ---- metadata ---- */

typedef enum ct__codec {
    CT__CODEC_NONE,
    CT__CODEC_SNAPPY,
    CT__CODEC_GZIP,
    CT__CODEC_LZO,
    CT__CODEC_BROTLI,
    CT__CODEC_LZ4_HADOOP,
    CT__CODEC_ZSTD,
    CT__CODEC_LZ4,
} ct__codec;

typedef struct ct__chunk {
    int64_t codec, num_values, offset, size; /* the pages lie in [offset, offset + size) of the file */
} ct__chunk;

typedef struct ct__row_group {
    int64_t num_rows, first_row;
    ct__chunk *chunks; /* per leaf */
} ct__row_group;

struct ct_parquet {
    char *path;
    ct_file_map map; /* of a file */
    const uint8_t *bytes;
    size_t size_bytes;
    ct_arena arena;
    ct_parquet_leaf *leaves;
    size_t num_leaves;
    ct__row_group *groups;
    size_t num_groups;
    int64_t num_rows;
};

CT_MUST_USE ct_status *ct__parquet_read_footer(ct_parquet *file);

/* ---- pages ---- */

typedef enum ct__page_type { CT__PAGE_DATA, CT__PAGE_INDEX, CT__PAGE_DICTIONARY, CT__PAGE_DATA_V2 } ct__page_type;

typedef struct ct__page_header {
    int64_t type, uncompressed_size, compressed_size;
    int64_t num_values, encoding;
    int64_t definition_encoding, repetition_encoding; /* of version 1 */
    int64_t definition_bytes, repetition_bytes;       /* of version 2 */
    bool is_compressed;
} ct__page_header;

/* False when there is none at *at; else *at moves behind it. */
bool ct__page_header_read(const uint8_t **at, const uint8_t *end, ct__page_header *out_header);

/* Exactly out_size bytes, or what is wrong; *out_unknown when the codec is none that we read. */
const char *ct__decompress(int64_t codec, const uint8_t *bytes, size_t size, uint8_t *out, size_t out_size);
bool ct__codec_is_known(int64_t codec);
const char *ct__codec_name(int64_t codec);

/* ---- levels and values ---- */

/* Runs of equal and of packed numbers (encoding RLE, and the indices of a dictionary). */
typedef struct ct__runs {
    const uint8_t *at, *end;
    unsigned width; /* bits of a number, at most 32 */
    uint64_t num_equal, num_packed;
    uint32_t equal;
    uint64_t bits; /* of packed ones: read, not used yet */
    unsigned num_bits;
} ct__runs;

void ct__runs_init(ct__runs *runs, const uint8_t *at, const uint8_t *end, unsigned width);
bool ct__runs_next(ct__runs *runs, uint32_t *out_number); /* false: there is none */

typedef struct ct__slice {
    const uint8_t *bytes;
    size_t size;
} ct__slice;

typedef enum ct__encoding {
    CT__ENCODING_PLAIN = 0,
    CT__ENCODING_PLAIN_DICTIONARY = 2,
    CT__ENCODING_RLE = 3,
    CT__ENCODING_DELTA_LENGTH = 6,
    CT__ENCODING_DELTA_BYTES = 7,
    CT__ENCODING_RLE_DICTIONARY = 8,
} ct__encoding;

/* The values of a page, in order. */
typedef struct ct__values {
    int64_t encoding;
    const uint8_t *at, *end;
    ct__runs indices;
    const ct__slice *dictionary;
    size_t num_dictionary;
    /* the delta encodings */
    int32_t *lengths, *prefixes;
    size_t num_lengths, next;
    ct_str last;
} ct__values;

bool ct__encoding_is_known(int64_t encoding);
/* False when the bytes are no such values. max_values bounds what is allocated. */
bool ct__values_init(ct__values *values, int64_t encoding, const uint8_t *at, const uint8_t *end, size_t max_values);
void ct__values_deinit(ct__values *values);
bool ct__values_next(ct__values *values, ct__slice *out); /* valid until the next call */

#endif
