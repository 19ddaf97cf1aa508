#include "server/infer/infer.h"

#include <string.h>

#include "server/infer/admit.h"
#include "server/infer/parse.h"
#include "server/infer/refuse.h"
#include "server/infer/results.h"
#include "server/request/respond.h"

static void choose_outputs(const infer_request *q)
{
    for (int i = 0; i < q->job_count; i++) {
        job *j = q->jobs[i];
        memset(j->output_wanted, 0, (size_t)q->model->output_count * sizeof(j->output_wanted[0]));
        for (int o = 0; o < q->output_count; o++)
            j->output_wanted[q->outputs[o].index] = true;
    }
}

static void admit_and_submit(request *r, status failure)
{
    uint64_t retry_after_ns = 0;
    if (!failure)
        failure = admit_request(r, &retry_after_ns);
    if (failure) {
        respond_refusal(r, failure, status_message(), retry_after_ns);
        return;
    }
    choose_outputs(&r->infer);
    request_submit(r, respond_with_results);
}

/* A helper thread has parsed the body. */
static void on_parsed(request *r)
{
    status failure = parse_finish(r);
    if (!request_has_ended(r))
        admit_and_submit(r, failure);
}

void infer_handle(request *r)
{
    const model *m;
    bool is_later = false;
    uint64_t retry_after_ns = 0;
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
        admit_and_submit(r, failure);
}
