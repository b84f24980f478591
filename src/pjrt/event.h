/* An event: the moment when asynchronous work of a device or a transfer is done, with its error.
 *
 * Nothing here blocks but ct_event_await. An event may be freed before it is ready: the work goes on. An event is
 * used by one thread at a time; a callback comes on a thread of the plugin.
 */
#ifndef CT_PJRT_EVENT_H
#define CT_PJRT_EVENT_H

#include <stdbool.h>

#include "base/status.h"

typedef struct ct_event ct_event;

/* Blocks until the event is ready; the error is that of the work. */
CT_MUST_USE ct_status *ct_event_await(ct_event *event);

/* Whether the event is ready, without waiting. */
CT_MUST_USE ct_status *ct_event_is_ready(ct_event *event, bool *out_ready);

/* Calls function(user, error) once, when the event is ready (at once, if it is); the callee owns error, NULL is
 * success. The event itself may be freed before. The callback must be short: it holds up a thread of the plugin. If
 * this returns an error, the function is never called.
 */
typedef void (*ct_event_function)(void *user, ct_status *error);
CT_MUST_USE ct_status *ct_event_on_ready(ct_event *event, ct_event_function function, void *user);

/* Awaits all, also after an error, and gives the first error; NULL entries are skipped. Frees them and NULLs them. */
CT_MUST_USE ct_status *ct_events_await_free(ct_event **events, size_t num_events);

void ct_event_free(ct_event *event); /* NULL is allowed */

#endif
