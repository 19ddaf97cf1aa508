#include "server/infer/refuse.h"

#include <string.h>

#include "base/clock.h"
#include "server/request/respond.h"

/* In the stream's memory. */
typedef struct refusal {
    status why;
    uint64_t retry_after_ns;
    char message[];
} refusal;

static void refuse_now(request *r)
{
    refusal *f = r->waits_for;
    r->waits_for = NULL;
    r->on_cancel = NULL;
    respond_refusal(r, f->why, f->message, f->retry_after_ns);
}

/* Nobody waits for it any more. */
static void cancel(request *r)
{
    request_due(r, request_has_ended(r) ? NULL : refuse_now, 0);
    if (!request_has_ended(r))
        r->on_cancel = cancel; /* the stream may be closed before that */
    else
        request_advance(r, LIFE_WORK_DONE, clock_now_ns());
}

void refuse_request(request *r, status why, uint64_t retry_after_ns)
{
    const char *message = status_message();
    uint64_t now_ns = clock_now_ns();
    uint64_t delay_ns = why == STATUS_RESOURCE_EXHAUSTED
                            ? refusal_pace_delay_ns(&r->connection->refusals, now_ns)
                            : 0;
    size_t bytes = strlen(message) + 1;
    refusal *f = delay_ns > 0 ? r->connection->transport->allocate(r, sizeof *f + bytes) : NULL;
    if (f == NULL) {
        respond_refusal(r, why, message, retry_after_ns);
        return;
    }
    *f = (refusal){why, retry_after_ns};
    memcpy(f->message, message, bytes);
    r->waits_for = f;
    r->on_cancel = cancel;
    request_due(r, refuse_now, now_ns + delay_ns);
    r->connection->transport->watch(r);
}
