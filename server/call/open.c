#include "server/call/open.h"

#include <stdlib.h>
#include <string.h>

#include "server/protocol/compress.h"
#include "server/protocol/grpc/call.h"
#include "server/request/respond.h"
#include "server/request/work.h"

/* A message that is decompressed. */
typedef struct unpacking {
    request_work work; /* first */
    call_opened go_on;
    content_coding coding;
    const char *data;
    size_t bytes, bytes_max;
    budget_account held; /* the helper's */
    char *room;
    size_t capacity, unpacked_bytes;
    status result;
    char error[STATUS_MESSAGE_BYTES_MAX];
} unpacking;

/* On a helper thread. */
static void run(request_work *work)
{
    unpacking *u = (unpacking *)work;
    u->result = decompress(u->coding, u->data, u->bytes, u->bytes_max, &work->cancel, &u->held,
                           &u->room, &u->capacity, &u->unpacked_bytes);
    if (u->result)
        strncpy(u->error, status_message(), sizeof u->error - 1);
    budget_return(&u->held); /* the request counts it from here on */
}

static void take_unpacked(request *r, unpacking *u)
{
    r->unpacked = u->room;
    r->unpacked_capacity = u->capacity;
    budget_force(&r->connection->held, u->capacity);
    r->body = (request_text){u->room, u->unpacked_bytes};
}

static void on_unpacked(request *r)
{
    unpacking *u = r->waits_for;
    r->waits_for = NULL;
    r->on_cancel = NULL;
    r->reads_body = false;
    if (u->room != NULL)
        take_unpacked(r, u);
    status failure = u->result ? status_fail(u->result, "%s", u->error) : STATUS_OK;
    call_opened go_on = u->go_on;
    free(u);
    if (!request_has_ended(r))
        go_on(r, failure);
}

static status unpack(request *r, const grpc_message *message, content_coding coding,
                     call_opened go_on)
{
    service *s = request_service(r);
    unpacking *u = calloc(1, sizeof *u);
    if (u == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a message");
    u->go_on = go_on;
    u->coding = coding;
    u->data = message->data;
    u->bytes = message->bytes;
    u->bytes_max = s->options->limits.decompressed_bytes_max;
    u->work.run = run;
    budget_lend(&r->connection->held, &u->held);
    if (s->helpers == NULL || !request_offload(r, &u->work, false, on_unpacked)) {
        budget_return(&u->held);
        free(u);
        return status_fail(STATUS_UNAVAILABLE, "too many large bodies wait to be parsed");
    }
    r->reads_body = true;
    return STATUS_OK;
}

void call_open(request *r, call_opened go_on)
{
    grpc_message message;
    status failure = grpc_read_only_message(r->body.data, r->body.bytes, &message);
    if (failure || !message.is_compressed) {
        if (!failure)
            r->body = (request_text){message.data, message.bytes};
        go_on(r, failure);
        return;
    }
    request_text name = request_header(r, "grpc-encoding");
    content_coding coding =
        name.data != NULL ? content_coding_parse(name.data, name.bytes) : CODING_IDENTITY;
    if (coding == CODING_UNKNOWN) {
        respond_header(r, "grpc-accept-encoding", "identity,deflate,gzip", 21);
        respond_error(r, 501,
                      "this grpc-encoding is not supported: identity, deflate and gzip are");
        return;
    }
    if (coding == CODING_IDENTITY) {
        go_on(r, status_fail(STATUS_INVALID_ARGUMENT,
                             "the message is compressed, but there is no grpc-encoding"));
        return;
    }
    failure = unpack(r, &message, coding, go_on);
    if (failure)
        go_on(r, failure);
}
