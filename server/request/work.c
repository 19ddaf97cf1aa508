#include "server/request/work.h"

#include <stddef.h>

static void run_task(offload_task *task)
{
    request_work *w = (request_work *)((char *)task - offsetof(request_work, task));
    w->run(w);
    request_post(&w->message);
}

static void cancel_work(request *r)
{
    request_work *w = r->waits_for;
    cancel_request(&w->cancel);
}

bool request_offload(request *r, request_work *w, bool is_urgent, request_handler resume)
{
    w->message.request = r;
    w->task = (offload_task){.source = r->connection, .run = run_task};
    if (!offload_pool_submit(request_service(r)->helpers, &w->task, is_urgent))
        return false;
    r->waits_for = w;
    r->resume = resume;
    r->on_cancel = cancel_work;
    r->connection->transport->watch(r);
    return true;
}
