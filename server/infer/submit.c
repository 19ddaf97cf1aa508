#include "server/infer/submit.h"

#include <string.h>

#include "server/infer/admit.h"
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

void infer_submit(request *r, status failure)
{
    uint64_t retry_after_ns = 0;
    if (!failure)
        failure = request_hold_jobs(r);
    if (!failure)
        failure = admit_request(r, &retry_after_ns);
    if (failure) {
        respond_refusal(r, failure, status_message(), retry_after_ns);
        return;
    }
    choose_outputs(&r->infer);
    request_submit(r, respond_with_results);
}
