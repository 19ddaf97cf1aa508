/* The life of requests on a transport that does nothing, with a real batcher and a device that the
 * test holds. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/infer/admit.h"
#include "server/infer/parse.h"
#include "server/infer/results.h"
#include "server/request/expire.h"
#include "server/request/respond.h"
#include "tests/unit/server/request/rig.h"

static uint64_t deadline_ns;
static bool is_later;

static void infer(request *r)
{
    uint64_t retry_after_ns;
    model_retain(rig.model);
    r->record = record_of_model(rig.service->recorder, rig.model);
    cr_assert_eq(parse_request(r, rig.model, NULL, &is_later), STATUS_OK, "%s", status_message());
    cr_assert_eq(r->life.state, LIFE_PARSED);
    cr_assert_eq(admit_request(r, &retry_after_ns), STATUS_OK, "%s", status_message());
    cr_assert_eq(r->life.state, LIFE_ADMITTED);
    r->deadline_ns = deadline_ns;
    request_submit(r, respond_with_results);
    cr_assert_eq(r->life.state, LIFE_QUEUED);
}

static void say_hello(request *r)
{
    respond_text(r, 200, "text/plain", "hello", 5);
}

static uint64_t count_code(int code)
{
    record_totals totals;
    uint64_t count = 0;
    for (const model_record *m = record_first(rig.service->recorder); m; m = record_next(m)) {
        record_read_totals(rig.service->recorder, m, &totals);
        for (int k = 0; k < RECORD_PROTOCOLS; k++)
            for (int i = 0; i < RECORD_CODES; i++)
                count += record_code(i) == code ? totals.codes[k][i] : 0;
    }
    return count;
}

static void forget_deadline(void)
{
    deadline_ns = UINT64_MAX;
    rig_begin();
}

TestSuite(request, .init = forget_deadline, .fini = rig_end);

Test(request, answered_at_once)
{
    request *r = rig_arrive();
    request_run(r, say_hello);
    cr_assert(rig.sent == 1 && rig.last_code == 200 && rig.last_bytes == 5);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_ANSWER);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
    cr_assert_eq(rig_arrive(), r, "the pool gives it again");
    request_run(r, say_hello);
    request_stream_closed(r);
}

Test(request, inference_is_answered_and_not_cancelled)
{
    request *r = rig_arrive();
    request_run(r, infer);
    cr_assert(rig.connection->jobs == 1 && rig.watched == 1);
    job *j = r->infer.jobs[0];
    rig_wait_returned();
    cr_assert(rig.sent == 1 && rig.last_code == 200 && rig.last_bytes > 20);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_ANSWER);
    cr_assert_not(atomic_load(&j->is_cancelled));
    uint64_t before_ns = 0;
    for (int s = STAGE_ACCEPT; s < STAGE_COUNT; s++) {
        if (s == STAGE_TOKENIZE)
            continue; /* there was no text */
        cr_assert(r->sample.stage_ns[s] != 0 && r->sample.stage_ns[s] >= before_ns, "stage %s",
                  stage_name((stage)s));
        before_ns = r->sample.stage_ns[s];
    }
    cr_assert_eq(r->sample.stage_ns[STAGE_TOKENIZE], 0);
    cr_assert_eq(count_code(200), 1);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(request, the_client_goes_while_a_job_executes)
{
    rig_hold_device();
    request *r = rig_arrive();
    request_run(r, infer);
    rig_wait_inside();
    job *j = r->infer.jobs[0];
    request_stream_closed(r);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_CLIENT_GONE);
    cr_assert(atomic_load(&j->is_cancelled));
    cr_assert_eq(rig.connection->jobs, 1, "it still runs, and counts");
    cr_assert_eq(count_code(499), 1);
    atomic_store(&rig.cpu.is_held, false);
    rig_wait_returned();
    cr_assert(r->life.state == LIFE_RELEASED && rig.sent == 0);
}

Test(request, the_deadline_passes_while_a_job_reads_the_body)
{
    rig_hold_device();
    uint64_t now_ns = clock_now_ns();
    deadline_ns = now_ns + 3600000000000ull;
    request *r = rig_arrive();
    request_run(r, infer);
    rig_wait_inside();
    r->infer.borrows_body = true;
    request_expire(&rig.loop, deadline_ns - 1);
    cr_assert_eq(rig.sent, 0);
    request_expire(&rig.loop, deadline_ns);
    cr_assert(rig.last_code == 504 && rig.kept == 1 && rig.dropped == 0);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_DEADLINE);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_ANSWERED, "the job is still out");
    cr_assert_eq(rig.dropped, 0);
    atomic_store(&rig.cpu.is_held, false);
    rig_wait_returned();
    cr_assert(r->life.state == LIFE_RELEASED && rig.dropped == 1 && rig.sent == 1);
}

Test(request, a_stream_that_closes_while_the_response_is_sent)
{
    rig.closes_while_sending = true;
    request *r = rig_arrive();
    request_run(r, infer);
    rig_wait_returned();
    cr_assert(rig.last_code == 200 && r->life.state == LIFE_RELEASED);
    cr_assert_eq(count_code(200), 1);
    r = rig_arrive();
    request_run(r, say_hello);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(request, a_refusal_after_parsing_gives_everything_back)
{
    request *r = rig_arrive();
    rig.connection->jobs = rig.service->options->limits.connection_jobs_max;
    uint64_t retry_after_ns;
    model_retain(rig.model);
    cr_assert_eq(parse_request(r, rig.model, NULL, &is_later), STATUS_OK);
    cr_assert_eq(admit_request(r, &retry_after_ns), STATUS_RESOURCE_EXHAUSTED);
    cr_assert_eq(rig.closed, 1, "so many jobs for one request: their clients have gone");
    respond_refusal(r, STATUS_RESOURCE_EXHAUSTED, "full", 0);
    cr_assert(rig.last_code == 429 && r->life.reason == LIFE_REFUSE);
    request_stream_closed(r);
    request_advance(r, LIFE_WORK_DONE, clock_now_ns());
    cr_assert_eq(r->life.state, LIFE_RELEASED);
    rig.connection->jobs = 0;
}

Test(request, a_body_that_is_refused_gives_everything_back)
{
    request *r = rig_arrive();
    r->body = (request_text){"{}", 2};
    model_retain(rig.model);
    cr_assert_eq(parse_request(r, rig.model, NULL, &is_later), STATUS_INVALID_ARGUMENT);
    respond_status(r, STATUS_INVALID_ARGUMENT, status_message());
    request_stream_closed(r);
    request_advance(r, LIFE_WORK_DONE, clock_now_ns());
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(request, there_is_a_ceiling_of_open_requests)
{
    request *first = NULL, *r;
    int count = 0;
    while ((r = request_begin(&rig.loop, rig.connection, &rig, 1)) != NULL) {
        r->waits_for = first;
        first = r;
        count++;
    }
    cr_assert_eq(count, rig.loop.capacity.requests_max);
    for (request *next; first != NULL; first = next) {
        next = first->waits_for;
        first->route.kind = ROUTE_LIVE;
        request_run(first, say_hello);
        request_stream_closed(first);
    }
    cr_assert_eq(rig.loop.request_count, count, "idle, and ready for the next ones");
}

Test(request, a_loop_that_ends_ends_its_requests)
{
    rig_hold_device();
    request *r = rig_arrive(), *idle = rig_arrive();
    request_run(idle, say_hello);
    request_stream_closed(idle);
    request_run(r, infer);
    rig_wait_inside();
    request_end_all(&rig.loop);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_SHUTDOWN);
    atomic_store(&rig.cpu.is_held, false);
    rig_wait_returned();
    request_stream_closed(r);
    cr_assert(r->life.state == LIFE_RELEASED && rig.sent == 1, "only the other was answered");
}

static request_message message;

static void wait_for_message(request *r)
{
    message.request = r;
    r->resume = say_hello;
}

static void do_nothing(request *r)
{
    (void)r;
}

Test(request, a_message_resumes_a_request)
{
    request *r = rig_arrive();
    request_run(r, wait_for_message);
    cr_assert_eq(r->life.state, LIFE_RECEIVED);
    request_post(&message);
    rig_wait_returned();
    cr_assert(rig.sent == 1 && r->life.state == LIFE_ANSWERED);
    request_stream_closed(r);
    r = rig_arrive();
    request_run(r, wait_for_message);
    r->resume = do_nothing;
    request_stream_closed(r);
    cr_assert_eq(r->life.reason, LIFE_CLIENT_GONE);
    request_post(&message);
    rig_wait_returned();
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(request, codes_come_from_the_status_alone)
{
    static const struct {
        status s;
        int code, tensorflow_code;
    } cases[] = {{STATUS_OK, 200, 200},
                 {STATUS_INVALID_ARGUMENT, 400, 400},
                 {STATUS_NOT_FOUND, 404, 404},
                 {STATUS_UNSUPPORTED, 400, 400},
                 {STATUS_UNSUPPORTED_CODING, 415, 415},
                 {STATUS_TOO_LARGE, 413, 413},
                 {STATUS_RESOURCE_EXHAUSTED, 429, 503},
                 {STATUS_UNAVAILABLE, 503, 503},
                 {STATUS_DEADLINE_EXCEEDED, 504, 504},
                 {STATUS_CANCELLED, 499, 499},
                 {STATUS_CORRUPT, 500, 500},
                 {STATUS_IO, 500, 500},
                 {STATUS_OUT_OF_MEMORY, 503, 503},
                 {STATUS_INTERNAL, 500, 500}};
    cr_assert_eq(sizeof(cases) / sizeof(cases[0]), STATUS_COUNT);
    for (int i = 0; i < STATUS_COUNT; i++) {
        cr_assert_eq(respond_code(cases[i].s, false), cases[i].code, "%s", status_name(cases[i].s));
        cr_assert_eq(respond_code(cases[i].s, true), cases[i].tensorflow_code, "%s",
                     status_name(cases[i].s));
    }
}
