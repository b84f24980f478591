/* The class table, spread out once from the runs of unicode_tables.c. */
#include "tokenizer/unicode.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/alloc.h"

static ct__unicode table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint8_t class_of_category(uint32_t category)
{
    switch (category) {
    case CT__LU:
    case CT__LL:
    case CT__LT:
    case CT__LM:
    case CT__LO: return CT__LETTER | CT__WORD;
    case CT__ND:
    case CT__NL: return CT__NUMBER | CT__WORD;
    case CT__NO: return CT__NUMBER;
    case CT__MN:
    case CT__MC:
    case CT__ME: return CT__WORD;
    case CT__PC: return CT__PUNCT | CT__WORD;
    case CT__PD:
    case CT__PS:
    case CT__PE:
    case CT__PI:
    case CT__PF:
    case CT__PO: return CT__PUNCT;
    default: return 0;
    }
}

static void fill(uint8_t *classes, uint32_t first, uint32_t last, uint8_t bits)
{
    for (uint32_t point = first; point <= last; point++) classes[point] |= bits;
}

/* Marks combining characters, what NFC takes apart or puts behind another, and what begins with such in any form. */
static void mark_active(uint8_t *classes)
{
    for (utf8proc_int32_t point = 0x80; point < 0x110000; point++) {
        const utf8proc_property_t *property = utf8proc_get_property(point);
        if (property->combining_class) classes[point] |= CT__NFC_ACTIVE;
        if (property->decomp_seqindex == UINT16_MAX) continue;
        utf8proc_int32_t points[32];
        int boundary = 0;
        utf8proc_ssize_t count = utf8proc_decompose_char(
            point, points, CT_COUNT(points), (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &boundary);
        if (count == 1 && points[0] == point) continue; /* a compatibility form */
        for (utf8proc_ssize_t i = 1; i < count; i++) classes[points[i]] |= CT__NFC_ACTIVE;
        count = utf8proc_normalize_utf32(points, count, (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        if (count != 1 || points[0] != point) classes[point] |= CT__NFC_ACTIVE;
    }
    fill(classes, 0x1161, 0x1175, CT__NFC_ACTIVE); /* the second and third letters of Hangul syllables */
    fill(classes, 0x11a8, 0x11c2, CT__NFC_ACTIVE);
    for (utf8proc_int32_t point = 0x80; point < 0x110000; point++) {
        if (utf8proc_get_property(point)->decomp_seqindex == UINT16_MAX) continue;
        utf8proc_int32_t points[32];
        int boundary = 0;
        utf8proc_ssize_t count = utf8proc_decompose_char(
            point, points, CT_COUNT(points),
            (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE), &boundary);
        if (count > 0 && classes[points[0]] & CT__NFC_ACTIVE) classes[point] |= CT__NFC_ACTIVE;
    }
}

static void make(void)
{
    uint8_t *classes = ct_alloc_zeroed(0x110000, 1);
    for (size_t i = 0; i < ct__unicode_num_runs; i++) {
        uint32_t end = i + 1 < ct__unicode_num_runs ? ct__unicode_runs[i + 1] / 32 : 0x110000;
        memset(classes + ct__unicode_runs[i] / 32, class_of_category(ct__unicode_runs[i] % 32),
               end - ct__unicode_runs[i] / 32);
    }
    for (size_t i = 0; i < ct__unicode_num_spaces; i++) classes[ct__unicode_spaces[i]] |= CT__SPACE;
    for (size_t i = 0; i < ct__unicode_num_other_punctuation; i++)
        classes[ct__unicode_other_punctuation[i]] ^= CT__PUNCT;
    classes['\r'] |= CT__NEWLINE;
    classes['\n'] |= CT__NEWLINE;
    /* \w beyond the categories: Other_Alphabetic symbols and Join_Control. */
    fill(classes, 0x24b6, 0x24e9, CT__WORD);
    fill(classes, 0x1f130, 0x1f149, CT__WORD);
    fill(classes, 0x1f150, 0x1f169, CT__WORD);
    fill(classes, 0x1f170, 0x1f189, CT__WORD);
    fill(classes, 0x200c, 0x200d, CT__WORD);

    mark_active(classes);

    memset(table.bytes, CT__BEYOND, sizeof(table.bytes));
    memcpy(table.bytes, classes, 128);
    table.blocks = ct_alloc(0x110000);
    size_t num_blocks = 0;
    for (size_t i = 0; i < CT_COUNT(table.index); i++) {
        size_t block = 0;
        while (block < num_blocks && memcmp(table.blocks[block], classes + i * 256, 256) != 0) block++;
        if (block == num_blocks) memcpy(table.blocks[num_blocks++], classes + i * 256, 256);
        table.index[i] = (uint16_t)block;
    }
    table.blocks = ct_realloc(table.blocks, num_blocks * 256);
    free(classes);
}

const ct__unicode *ct__unicode_get(void)
{
    pthread_once(&once, make);
    return &table;
}

ct__category ct__unicode_category(uint32_t point)
{
    size_t low = 0, high = ct__unicode_num_runs;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (ct__unicode_runs[middle] / 32 <= point)
            low = middle;
        else
            high = middle;
    }
    return (ct__category)(ct__unicode_runs[low] % 32);
}

size_t ct__utf8_encode(uint32_t point, char out_bytes[4])
{
    if (point < 0x80) {
        out_bytes[0] = (char)point;
        return 1;
    }
    size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--) {
        out_bytes[i] = (char)(unsigned char)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out_bytes[0] = (char)(unsigned char)(first[size] | point);
    return size;
}
