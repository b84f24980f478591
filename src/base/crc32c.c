/* Byte by byte with a table; what is summed here is small. */
#include "base/crc32c.h"

#include <pthread.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* 0x1edc6f41, bits reversed */

static uint32_t table[256];
static pthread_once_t table_is_made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t byte = 0; byte < CT_COUNT(table); byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ POLYNOMIAL : rest >> 1;
        table[byte] = rest;
    }
}

uint32_t ct_crc32c(const void *data, size_t size_bytes)
{
    pthread_once(&table_is_made, make_table);
    const unsigned char *bytes = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size_bytes; i++) crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
    return ~crc;
}
