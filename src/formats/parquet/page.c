/* Page headers. */
#include "formats/parquet/internal.h"

static void read_data(ct__thrift *t, ct__page_header *h)
{
    ct__thrift_field field = {0};
    while (ct__thrift_next(t, &field)) switch (field.id) {
        case 1: h->num_values = ct__thrift_field_int(t, &field); break;
        case 2: h->encoding = ct__thrift_field_int(t, &field); break;
        case 3: h->definition_encoding = ct__thrift_field_int(t, &field); break;
        case 4: h->repetition_encoding = ct__thrift_field_int(t, &field); break;
        default: ct__thrift_skip(t, field.type);
        }
}

static void read_data_v2(ct__thrift *t, ct__page_header *h)
{
    ct__thrift_field field = {0};
    while (ct__thrift_next(t, &field)) switch (field.id) {
        case 1: h->num_values = ct__thrift_field_int(t, &field); break;
        case 4: h->encoding = ct__thrift_field_int(t, &field); break;
        case 5: h->definition_bytes = ct__thrift_field_int(t, &field); break;
        case 6: h->repetition_bytes = ct__thrift_field_int(t, &field); break;
        case 7: h->is_compressed = ct__thrift_field_int(t, &field) != 0; break;
        default: ct__thrift_skip(t, field.type);
        }
}

bool ct__page_header_read(const uint8_t **at, const uint8_t *end, ct__page_header *out_header)
{
    *out_header = (ct__page_header){.type = -1, .is_compressed = true, .num_values = -1};
    ct__page_header *h = out_header;
    ct__thrift t = {.at = *at, .end = end};
    ct__thrift_field field = {0};
    while (ct__thrift_next(&t, &field)) {
        bool is_struct = field.type == CT__THRIFT_STRUCT;
        if (field.id == 1)
            h->type = ct__thrift_field_int(&t, &field);
        else if (field.id == 2)
            h->uncompressed_size = ct__thrift_field_int(&t, &field);
        else if (field.id == 3)
            h->compressed_size = ct__thrift_field_int(&t, &field);
        else if ((field.id == 5 || field.id == 7) && is_struct) /* a dictionary's begins as a data page's */
            read_data(&t, h);
        else if (field.id == 8 && is_struct)
            read_data_v2(&t, h);
        else
            ct__thrift_skip(&t, field.type);
    }
    *at = t.at;
    return !t.failed && h->compressed_size >= 0 && h->compressed_size <= end - t.at && h->uncompressed_size >= 0 &&
           h->uncompressed_size <= INT32_MAX && h->definition_bytes >= 0 && h->definition_bytes <= INT32_MAX &&
           h->repetition_bytes >= 0 && h->repetition_bytes <= INT32_MAX;
}
