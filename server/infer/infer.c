#include "server/infer/infer.h"

#include <string.h>

#include "server/call/invocation.h"
#include "server/call/open.h"
#include "server/infer/admit.h"
#include "server/infer/parse.h"
#include "server/infer/refuse.h"
#include "server/infer/submit.h"
#include "server/infer/tokenize.h"
#include "server/protocol/grpc/call.h"
#include "server/protocol/grpc/predict_message.h"
#include "server/request/authorize.h"
#include "server/request/respond.h"

/* A helper thread has tokenized the texts. */
static void on_tokenized(request *r)
{
    status failure = tokenize_finish(r);
    if (!request_has_ended(r))
        infer_submit(r, failure);
}

/* The body has been parsed, or `failure` says why not. */
static void go_on(request *r, status failure)
{
    bool is_later = false;
    if (!failure && r->infer.texts.count > 0)
        failure = tokenize_request(r, on_tokenized, &is_later);
    if (!is_later)
        infer_submit(r, failure);
}

/* A helper thread has parsed the body. */
static void on_parsed(request *r)
{
    status failure = parse_finish(r);
    if (!request_has_ended(r))
        go_on(r, failure);
}

static status read_predict_name(request *r)
{
    grpc_predict_head head;
    status failure = grpc_read_predict_head(&head, r->body.data, r->body.bytes);
    if (failure)
        return failure;
    r->route.version = head.version;
    if (head.label.bytes > 0)
        failure = route_set_label(&r->route, "model_spec.version_label", head.label.text,
                                  head.label.bytes);
    return failure ? failure
                   : route_set_name(&r->route, "model_spec.name", head.model_name.text,
                                    head.model_name.bytes);
}

/* A gRPC call names its model in its message: it becomes the route's. */
static status read_name(request *r)
{
    grpc_infer_head head;
    if (r->route.kind == ROUTE_GRPC_TF_PREDICT)
        return read_predict_name(r);
    status failure = grpc_read_infer_head(&head, r->body.data, r->body.bytes);
    if (!failure)
        failure =
            grpc_read_version(head.model_version.text, head.model_version.bytes, &r->route.version);
    return failure ? failure
                   : route_set_name(&r->route, "model_name", head.model_name.text,
                                    head.model_name.bytes);
}

static void begin(request *r)
{
    const model *m;
    bool is_later = false;
    uint64_t retry_after_ns = 0;
    if (!authorize_find_model(r, &m))
        return;
    r->record = record_of_model(request_service(r)->recorder, m);
    status failure = admit_before_parsing(r, m, &retry_after_ns);
    if (failure) {
        model_release(m);
        refuse_request(r, failure, retry_after_ns);
        return;
    }
    failure = parse_request(r, m, on_parsed, &is_later);
    if (!is_later)
        go_on(r, failure);
}

static void begin_call(request *r, status failure)
{
    if (!failure)
        failure = read_name(r);
    if (failure)
        respond_status(r, failure, status_message());
    else
        begin(r);
}

static void begin_invocation(request *r)
{
    status failure = invocation_open(r);
    if (failure)
        respond_status(r, failure, status_message());
    else
        begin(r);
}

void infer_handle(request *r)
{
    if (r->route.kind == ROUTE_INVOCATIONS)
        begin_invocation(r);
    else if (route_is_grpc_infer(r->route.kind))
        call_open(r, begin_call);
    else
        begin(r);
}
