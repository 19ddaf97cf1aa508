/* Bodies that a helper thread parses: what may happen to the request meanwhile. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "server/infer/admit.h"
#include "server/infer/parse.h"
#include "server/infer/results.h"
#include "server/offload/pool.h"
#include "server/request/expire.h"
#include "server/request/respond.h"
#include "tests/unit/server/request/rig.h"

#define BODY_BYTES 200000
#define TASKS_MAX 8

static char *body;
static bool is_later;
static status parsed_as;

/* Holds the only helper thread. */
static struct {
    offload_task task;
    sem_t go_on;
} blocker;

static void block(offload_task *task)
{
    (void)task;
    sem_wait(&blocker.go_on);
}

static void hold_helper(void)
{
    sem_init(&blocker.go_on, 0, 0);
    blocker.task = (offload_task){.source = &blocker, .run = block};
    cr_assert(offload_pool_submit(rig.service->helpers, &blocker.task, true));
    while (offload_pool_waiting(rig.service->helpers) > 0)
        ;
}

static void begin(void)
{
    rig_begin();
    cr_assert_eq(offload_pool_create(1, TASKS_MAX, &rig.service->helpers), STATUS_OK);
    body = malloc(BODY_BYTES);
    parsed_as = STATUS_COUNT;
}

static void end(void)
{
    rig_end();
    free(body);
}

TestSuite(parse, .init = begin, .fini = end, .timeout = 300);

static void on_parsed(request *r)
{
    uint64_t retry_after_ns;
    parsed_as = parse_finish(r);
    if (request_has_ended(r))
        return;
    if (parsed_as) {
        respond_status(r, parsed_as, status_message());
        return;
    }
    cr_assert_eq(admit_request(r, &retry_after_ns), STATUS_OK);
    request_submit(r, respond_with_results);
}

static void infer(request *r)
{
    model_retain(rig.model);
    r->record = record_of_model(rig.service->recorder, rig.model);
    status failure = parse_request(r, rig.model, on_parsed, &is_later);
    if (failure)
        respond_status(r, failure, status_message());
    else
        cr_assert(is_later);
}

/* The usual request, with white space before it. */
static request *arrive(void)
{
    request *r = rig_arrive();
    memset(body, ' ', BODY_BYTES);
    memcpy(body + BODY_BYTES - r->body.bytes, r->body.data, r->body.bytes);
    r->body = (request_text){body, BODY_BYTES};
    return r;
}

/* As a transport does it when the client resets its stream. */
static void close_stream(request *r)
{
    if (request_needs_body(r) && r->kept_body == NULL)
        rig.connection->transport->keep_body(r);
    request_stream_closed(r);
}

Test(parse, a_large_body_is_parsed_beside_the_loop)
{
    request *r = arrive();
    request_run(r, infer);
    cr_assert(r->life.state == LIFE_RECEIVED && request_needs_body(r) && rig.watched == 1);
    rig_wait_returned();
    cr_assert(parsed_as == STATUS_OK && r->life.state >= LIFE_QUEUED);
    cr_assert_not(r->reads_body);
    rig_wait_returned();
    cr_assert(rig.sent == 1 && rig.last_code == 200);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(parse, a_body_that_is_wrong_gives_everything_back)
{
    request *r = arrive();
    body[BODY_BYTES - 1] = ']';
    request_run(r, infer);
    rig_wait_returned();
    cr_assert(parsed_as == STATUS_INVALID_ARGUMENT && rig.last_code == 400);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(parse, the_client_goes_while_its_body_waits)
{
    hold_helper();
    request *r = arrive();
    request_run(r, infer);
    close_stream(r);
    cr_assert(r->life.reason == LIFE_CLIENT_GONE && rig.kept == 1 && rig.dropped == 0);
    cr_assert_eq(r->life.state, LIFE_ANSWERED, "the helper may read its body");
    sem_post(&blocker.go_on);
    rig_wait_returned();
    cr_assert(r->life.state == LIFE_RELEASED && rig.dropped == 1 && rig.sent == 0);
    cr_assert_eq(parsed_as, STATUS_CANCELLED, "it was not parsed any more");
}

Test(parse, a_client_that_hangs_up_without_its_stream_being_closed)
{
    hold_helper();
    request *r = arrive();
    request_run(r, infer);
    request_cancel(r);
    sem_post(&blocker.go_on);
    rig_wait_returned();
    cr_assert(parsed_as == STATUS_CANCELLED && rig.last_code == 499);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(parse, the_deadline_passes_while_its_body_waits)
{
    rig.options.timeouts.deadline_ms = 3600000;
    hold_helper();
    request *r = arrive();
    request_run(r, infer);
    request_expire(&rig.loop, r->deadline_ns - 1);
    cr_assert_eq(rig.sent, 0);
    request_expire(&rig.loop, r->deadline_ns);
    cr_assert(rig.last_code == 504 && r->life.reason == LIFE_DEADLINE && rig.kept == 1);
    request_stream_closed(r);
    sem_post(&blocker.go_on);
    rig_wait_returned();
    cr_assert(r->life.state == LIFE_RELEASED && rig.dropped == 1 && rig.sent == 1);
}

Test(parse, the_loop_ends_while_a_body_waits)
{
    hold_helper();
    request *r = arrive();
    request_run(r, infer);
    request_end_all(&rig.loop);
    cr_assert_eq(r->life.reason, LIFE_SHUTDOWN);
    sem_post(&blocker.go_on);
    rig_wait_returned();
    close_stream(r);
    cr_assert(r->life.state == LIFE_RELEASED && rig.sent == 0);
}

Test(parse, too_many_bodies_wait)
{
    hold_helper();
    request *waiting[TASKS_MAX / 4], *r;
    for (int i = 0; i < TASKS_MAX / 4; i++) {
        waiting[i] = arrive();
        request_run(waiting[i], infer);
    }
    r = arrive();
    request_run(r, infer);
    cr_assert(rig.last_code == 503 && r->life.reason == LIFE_REFUSE);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
    for (int i = 0; i < TASKS_MAX / 4; i++)
        close_stream(waiting[i]);
    sem_post(&blocker.go_on);
    for (int i = 0; i < TASKS_MAX / 4; i++)
        while (waiting[i]->life.state != LIFE_RELEASED)
            rig_wait_returned();
}

/* Rows of different lengths, each a job that the helper creates. */
Test(parse, jobs_that_a_helper_creates_go_to_the_pool_of_the_loop)
{
    static const char rows[] =
        "{\"instances\":[{\"ids\":[1],\"attention_mask\":[1]},{\"ids\":[1,2],\"attention_mask\":"
        "[1,1]},{\"ids\":[1,2,3],\"attention_mask\":[1,1,1]}]}";
    request *r = arrive();
    r->route.kind = ROUTE_TF_PREDICT;
    r->route.dialect = ROUTE_TENSORFLOW;
    memset(body, ' ', BODY_BYTES);
    memcpy(body, rows, sizeof rows - 1);
    request_run(r, infer);
    rig_wait_returned();
    cr_assert_eq(parsed_as, STATUS_OK, "%s", status_message());
    cr_assert_eq(r->infer.job_count, 3);
    cr_assert_eq(rig.loop.jobs.job_count, 3, "what was reserved beyond that is given back");
    while (rig.sent == 0)
        rig_wait_returned();
    cr_assert_eq(rig.last_code, 200);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}
