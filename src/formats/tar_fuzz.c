/* Fuzz target: any bytes give members and an end, or an error; members that were seen can be gone back to. */
#include <stdlib.h>
#include <string.h>

#include "formats/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ct_tar *tar = ct_tar_new(ct_byte_stream_from_memory("fuzz", bytes, size)), *again;
    ct_tar_member member;
    ct_str contents;
    ct_str_init(&contents);
    ct_status *status = NULL;
    for (int count = 0; count < 1000 && !status; count++) {
        status = ct_tar_next(tar, &member);
        if (status || !member.name) break;
        ct_tar_member same;
        again = ct_tar_new(ct_byte_stream_from_memory("fuzz", bytes, size));
        ct_status *second = ct_tar_skip_to(again, member.offset);
        if (!second) second = ct_tar_next(again, &same);
        if (second || !same.name || strcmp(same.name, member.name) != 0 || same.size != member.size) abort();
        ct_tar_free(again);
        ct_str_reset(&contents);
        if (count % 2) continue; /* contents may be left unread */
        status = ct_tar_read(tar, &contents);
        if (!status && contents.length != (size_t)member.size) abort();
    }
    ct_status_free(status);
    ct_str_deinit(&contents);
    ct_tar_free(tar);
    return 0;
}
