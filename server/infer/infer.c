#include "server/infer/infer.h"

#include "server/infer/admit.h"
#include "server/infer/parse.h"
#include "server/infer/refuse.h"
#include "server/infer/submit.h"
#include "server/infer/tokenize.h"
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

void infer_handle(request *r)
{
    const model *m;
    bool is_later = false;
    uint64_t retry_after_ns = 0;
    if (!authorize_model(r, r->route.name, r->route.name_bytes)) {
        authorize_refuse(r);
        return;
    }
    status failure = request_find_model(r, &m);
    if (failure) {
        respond_status(r, failure, status_message());
        return;
    }
    r->record = record_of_model(request_service(r)->recorder, m);
    failure = admit_before_parsing(r, m, &retry_after_ns);
    if (failure) {
        model_release(m);
        refuse_request(r, failure, retry_after_ns);
        return;
    }
    failure = parse_request(r, m, on_parsed, &is_later);
    if (!is_later)
        go_on(r, failure);
}
