/* A memory that buffers can live in: a device's own ("device"), or the host's, pinned ("pinned_host") or not. Belongs
 * to its client. Immutable, so thread-safe.
 */
#ifndef CT_PJRT_MEMORY_H
#define CT_PJRT_MEMORY_H

typedef struct ct_memory ct_memory;

int ct_memory_id(const ct_memory *memory);
const char *ct_memory_kind(const ct_memory *memory);
const char *ct_memory_text(const ct_memory *memory); /* the plugin's description */

#endif
