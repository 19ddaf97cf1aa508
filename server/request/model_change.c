#include "server/request/model_change.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct change {
    request_message message; /* first */
    repository_order order;
    model_change_done done;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
} change;

/* On the loading thread, or in cancel(). */
static void on_changed(repository_order *o, status result, const char *error)
{
    change *c = (change *)((char *)o - offsetof(change, order));
    c->result = result;
    strncpy(c->error, error, sizeof(c->error) - 1);
    request_post(&c->message);
}

static void cancel(request *r)
{
    change *c = r->waits_for;
    repository_cancel(request_service(r)->models, &c->order);
}

static void go_on(request *r)
{
    change *c = r->waits_for;
    r->on_cancel = NULL;
    /* A failure of ours while a model is loaded is the model's; so is its size, not the request's.
     */
    bool is_models = c->result == STATUS_INTERNAL || c->result == STATUS_TOO_LARGE;
    if (!request_has_ended(r))
        c->done(r, is_models ? STATUS_INVALID_ARGUMENT : c->result, c->error);
    free(c);
}

status model_change_begin(request *r, bool is_load, const char *config, model_change_done done)
{
    repository *models = request_service(r)->models;
    change *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a request");
    c->message.request = r;
    c->order.on_done = on_changed;
    c->done = done;
    status failure = is_load ? repository_load_with(models, r->route.name, config, &c->order)
                             : repository_unload(models, r->route.name, &c->order);
    if (failure) {
        free(c);
        return failure;
    }
    r->waits_for = c;
    r->resume = go_on;
    r->on_cancel = cancel;
    r->connection->transport->watch(r);
    return STATUS_OK;
}
