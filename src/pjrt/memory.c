/* Memories: read once, when the client is made. */
#include "pjrt/memory.h"

#include "pjrt/internal.h"

ct_status *ct__memory_init(ct_client *client, PJRT_Memory *memory, ct_memory *out_memory)
{
    ct_plugin *plugin = client->plugin;
    PJRT_Memory_Id_Args id = {CT_PJRT_ARGS(PJRT_Memory_Id), .memory = memory};
    PJRT_Memory_Kind_Args kind = {CT_PJRT_ARGS(PJRT_Memory_Kind), .memory = memory};
    PJRT_Memory_ToString_Args text = {CT_PJRT_ARGS(PJRT_Memory_ToString), .memory = memory};
    CT_TRY(CT_PJRT(plugin, PJRT_Memory_Id, &id));
    CT_TRY(CT_PJRT(plugin, PJRT_Memory_Kind, &kind));
    CT_TRY(CT_PJRT(plugin, PJRT_Memory_ToString, &text));
    *out_memory = (ct_memory){
        .memory = memory,
        .id = id.id,
        .kind = ct_arena_strndup(&client->arena, kind.kind, kind.kind_size),
        .text = ct_arena_strndup(&client->arena, text.to_string, text.to_string_size),
    };
    return NULL;
}

int ct_memory_id(const ct_memory *memory)
{
    return memory->id;
}

const char *ct_memory_kind(const ct_memory *memory)
{
    return memory->kind;
}

const char *ct_memory_text(const ct_memory *memory)
{
    return memory->text;
}
