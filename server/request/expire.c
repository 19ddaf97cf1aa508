#include "server/request/expire.h"

#include "server/request/request.h"
#include "server/request/respond.h"

#define REQUEST_OF(entry) ((request *)((char *)(entry)-offsetof(request, deadline)))

void request_expire(request_loop *l, uint64_t now_ns)
{
    for (deadline *d; (d = deadlines_pop_due(&l->deadlines, now_ns)) != NULL;) {
        request *r = REQUEST_OF(d);
        if (r->on_due != NULL) {
            request_handler handle = r->on_due;
            r->on_due = r->resume = NULL;
            request_run(r, handle);
            continue;
        }
        if (request_needs_body(r))
            r->connection->transport->keep_body(r);
        respond_status(r, STATUS_DEADLINE_EXCEEDED, "the deadline has passed");
    }
}
