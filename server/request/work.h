#ifndef SERVER_REQUEST_WORK_H
#define SERVER_REQUEST_WORK_H

#include "base/cancel.h"
#include "server/offload/pool.h"
#include "server/request/request.h"

/* Work on a request beside its loop, on a helper thread of the service's pool: what would hold the
 * loop for more than a moment. Embedded in what the work needs; that is the work's alone until the
 * request is resumed. */
typedef struct request_work {
    request_message message; /* first */
    offload_task task;
    cancel_token cancel; /* requested when nobody waits for the response any more */
    /* On a helper thread. Touches neither the request's own fields nor its loop. */
    void (*run)(struct request_work *w);
} request_work;

/* Hands over `w`, with `run` and cancel.deadline_ns set, as r->waits_for; `resume` is called on the
 * loop when it is done. False: the pool's queue is full, and nothing has happened; never if
 * `is_urgent`. */
bool request_offload(request *r, request_work *w, bool is_urgent,
                     request_handler resume) MUST_CHECK;

#endif
