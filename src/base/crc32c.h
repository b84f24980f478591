/* CRC-32C (Castagnoli), the checksum of TFRecord files and of many network formats. */
#ifndef CT_BASE_CRC32C_H
#define CT_BASE_CRC32C_H

#include "base/macros.h"

/* Of "123456789" it is 0xe3069283. */
uint32_t ct_crc32c(const void *data, size_t size_bytes);

#endif
