/* Events. A callback's closure is a heap block that lives from on_ready to the call. */
#include "pjrt/event.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "pjrt/internal.h"

typedef struct {
    ct_plugin *plugin;
    ct_event_function function;
    void *user;
} ready_call;

ct_status *ct__event_new(ct_plugin *plugin, PJRT_Event *event, ct_event **out_event)
{
    *out_event = NULL;
    if (!event) return ct_error(CT_CODE_INTERNAL, "the plugin %s gave no event for its work", plugin->path);
    ct_event *made = ct_alloc(sizeof(*made));
    *made = (ct_event){.plugin = plugin, .event = event};
    *out_event = made;
    return NULL;
}

ct_status *ct_event_await(ct_event *event)
{
    PJRT_Event_Await_Args args = {CT_PJRT_ARGS(PJRT_Event_Await), .event = event->event};
    return CT_PJRT(event->plugin, PJRT_Event_Await, &args);
}

ct_status *ct_event_is_ready(ct_event *event, bool *out_ready)
{
    *out_ready = false;
    PJRT_Event_IsReady_Args args = {CT_PJRT_ARGS(PJRT_Event_IsReady), .event = event->event};
    CT_TRY(CT_PJRT(event->plugin, PJRT_Event_IsReady, &args));
    *out_ready = args.is_ready;
    return NULL;
}

static void when_ready(PJRT_Error *error, void *user)
{
    ready_call call = *(ready_call *)user;
    free(user);
    call.function(call.user, ct__pjrt_status(call.plugin, error, "asynchronous work", __FILE__, __LINE__));
}

ct_status *ct_event_on_ready(ct_event *event, ct_event_function function, void *user)
{
    ready_call *call = ct_alloc(sizeof(*call));
    *call = (ready_call){.plugin = event->plugin, .function = function, .user = user};
    PJRT_Event_OnReady_Args args = {CT_PJRT_ARGS(PJRT_Event_OnReady), .event = event->event, .callback = when_ready,
                                    .user_arg = call};
    ct_status *status = CT_PJRT(event->plugin, PJRT_Event_OnReady, &args);
    if (status) free(call);
    return status;
}

ct_status *ct_events_await_free(ct_event **events, size_t num_events)
{
    ct_status *status = NULL;
    for (size_t i = 0; i < num_events; i++) {
        if (!events[i]) continue;
        status = ct_status_first(status, ct_event_await(events[i]));
        ct_event_free(events[i]);
        events[i] = NULL;
    }
    return status;
}

void ct_event_free(ct_event *event)
{
    if (!event) return;
    PJRT_Event_Destroy_Args args = {CT_PJRT_ARGS(PJRT_Event_Destroy), .event = event->event};
    CT_PJRT_IGNORE(event->plugin, PJRT_Event_Destroy, &args);
    free(event);
}
