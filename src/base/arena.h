/* An arena: memory that lives and dies together, named by its lifetime (process, run, graph, step, request).
 *
 *   first -> [block|used....|free] -> [block|used..|free] -> NULL      blocks double in size
 *
 * Nothing in it is freed singly. Not thread-safe. All memory is zeroed and aligned to 16 bytes.
 */
#ifndef CT_BASE_ARENA_H
#define CT_BASE_ARENA_H

#include "base/macros.h"

typedef struct ct_arena_block ct_arena_block;

typedef struct ct_arena {
    ct_arena_block *blocks; /* newest first */
    size_t next_bytes;      /* size of the next block */
    size_t total_bytes;     /* handed out since the last reset */
} ct_arena;

void ct_arena_init(ct_arena *arena);
void ct_arena_deinit(ct_arena *arena);
void ct_arena_reset(ct_arena *arena); /* forget all contents; usable again */

void *ct_arena_alloc(ct_arena *arena, size_t size_bytes);
void *ct_arena_dup(ct_arena *arena, const void *bytes, size_t size_bytes);
char *ct_arena_strdup(ct_arena *arena, const char *text);
char *ct_arena_strndup(ct_arena *arena, const char *text, size_t length);
char *ct_arena_printf(ct_arena *arena, const char *format, ...) CT_PRINTF(2, 3);

#define CT_ARENA_NEW(arena, type)          ((type *)ct_arena_alloc((arena), sizeof(type)))
#define CT_ARENA_ARRAY(arena, type, count) ((type *)ct_arena_alloc((arena), sizeof(type) * (size_t)(count)))

#endif
