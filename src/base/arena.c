/* Bump allocation in blocks of doubling size. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct ct_arena_block {
    ct_arena_block *next;
    size_t size, used;
    _Alignas(16) unsigned char bytes[];
};

enum { FIRST_BLOCK_BYTES = 4096, LARGEST_BLOCK_BYTES = 1 << 20 };

void ct_arena_init(ct_arena *arena)
{
    *arena = (ct_arena){.next_bytes = FIRST_BLOCK_BYTES};
}

void ct_arena_deinit(ct_arena *arena)
{
    for (ct_arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (ct_arena){0};
}

void ct_arena_reset(ct_arena *arena)
{
    ct_arena_deinit(arena);
    ct_arena_init(arena);
}

void *ct_arena_alloc(ct_arena *arena, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX / 2) CT_BUG("arena: %zu bytes wanted", size_bytes);
    size_t size = (size_bytes + 15) & ~(size_t)15;
    ct_arena_block *block = arena->blocks;
    if (!block || block->size - block->used < size) {
        size_t block_bytes = CT_MAX(size, arena->next_bytes ? arena->next_bytes : FIRST_BLOCK_BYTES);
        block = ct_alloc(sizeof(*block) + block_bytes);
        *block = (ct_arena_block){.next = arena->blocks, .size = block_bytes};
        arena->blocks = block;
        arena->next_bytes = CT_MIN(block_bytes * 2, (size_t)LARGEST_BLOCK_BYTES);
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    arena->total_bytes += size;
    return memset(memory, 0, size);
}

void *ct_arena_dup(ct_arena *arena, const void *bytes, size_t size_bytes)
{
    void *copy = ct_arena_alloc(arena, size_bytes);
    return size_bytes ? memcpy(copy, bytes, size_bytes) : copy;
}

char *ct_arena_strndup(ct_arena *arena, const char *text, size_t length)
{
    char *copy = ct_arena_alloc(arena, length + 1);
    if (length) memcpy(copy, text, length);
    return copy;
}

char *ct_arena_strdup(ct_arena *arena, const char *text)
{
    return ct_arena_strndup(arena, text, strlen(text));
}

char *ct_arena_printf(ct_arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    CT_ASSERT(length >= 0);
    char *text = ct_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}
