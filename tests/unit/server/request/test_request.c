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
#include "tests/unit/batcher/fake_device.h"

static struct {
    fake_device cpu;
    device *devices[1];
    model *model;
    service *service;
    request_loop loop;
    request_connection *connection;
    arena memory;
    bool closes_while_sending;
    int sent, last_code, watched, kept, dropped, closed;
    size_t last_bytes;
} rig;

static request_text no_header(const request *r, const char *name, size_t name_bytes)
{
    (void)r, (void)name, (void)name_bytes;
    return (request_text){NULL, 0};
}

static void *allocate(request *r, size_t bytes)
{
    (void)r;
    return arena_allocate(&rig.memory, bytes);
}

static void add_header(request *r, request_text name, request_text value)
{
    (void)r, (void)name, (void)value;
}

static void send_response(request *r, int code, const char *reason, const request_text *pieces,
                          int count)
{
    (void)reason;
    rig.sent++;
    rig.last_code = code;
    rig.last_bytes = 0;
    for (int i = 0; i < count; i++)
        rig.last_bytes += pieces[i].bytes;
    if (rig.closes_while_sending)
        request_stream_closed(r);
}

static void watch(request *r)
{
    (void)r;
    rig.watched++;
}

static void keep_body(request *r)
{
    rig.kept++;
    r->kept_body = &rig;
}

static void drop_body(request *r)
{
    rig.dropped++;
    r->kept_body = NULL;
}

static void close_connection(request_connection *c)
{
    (void)c;
    rig.closed++;
}

static void begin(void)
{
    static const request_transport transport = {.header = no_header,
                                                .allocate = allocate,
                                                .add_header = add_header,
                                                .send = send_response,
                                                .watch = watch,
                                                .keep_body = keep_body,
                                                .drop_body = drop_body,
                                                .close = close_connection};
    static server_options options;
    server_options_default(&options);
    options.limits.connections_max = 1;
    memset(&rig, 0, sizeof(rig));
    fake_device_init(&rig.cpu, "cpu", 1);
    rig.devices[0] = &rig.cpu.base;
    rig.model = fake_model_create(rig.devices, 1, 0, true, true);
    rig.service = service_create(&options, 1);
    cr_assert_eq(scheduler_create(&(scheduler_options){0}, rig.devices, 1, &rig.service->work), 0);
    cr_assert_eq(request_loop_init(&rig.loop, rig.service, NULL, 0), STATUS_OK);
    rig.connection = calloc(1, sizeof(*rig.connection));
    *rig.connection =
        (request_connection){.transport = &transport, .loop = &rig.loop, .references = 1};
}

/* Everything that was taken has come back. */
static void end(void)
{
    scheduler_destroy(rig.service->work);
    cr_assert_eq(rig.connection->references, 1);
    cr_assert(rig.connection->requests == 0 && rig.connection->jobs == 0);
    cr_assert_eq(service_open_requests(rig.service), 0);
    cr_assert_eq(rig.loop.deadlines.count, 0);
    cr_assert_eq(atomic_load(&rig.model->references->count), 1);
    cr_assert_eq(rig.kept, rig.dropped);
    request_connection_release(rig.connection);
    request_loop_dispose(&rig.loop);
    service_destroy(rig.service);
    fake_model_destroy(rig.model);
    arena_dispose(&rig.memory);
}

static request *arrive(void)
{
    static const char body[] =
        "{\"inputs\":[{\"name\":\"ids\",\"shape\":[1,2],\"datatype\":\"INT64\","
        "\"data\":[5,6]},{\"name\":\"attention_mask\",\"shape\":[1,2],\"datatype\":"
        "\"INT64\",\"data\":[1,1]}]}";
    request *r = request_begin(&rig.loop, rig.connection, &rig, clock_now_ns());
    cr_assert_not_null(r);
    r->route.kind = ROUTE_INFER;
    r->route.is_tensorflow = false;
    r->body = (request_text){body, sizeof(body) - 1};
    stage_stamp(r->sample.stage_ns, STAGE_ACCEPT, clock_now_ns());
    return r;
}

static uint64_t deadline_ns;

static void infer(request *r)
{
    uint64_t retry_after_ns;
    model_retain(rig.model);
    r->record = record_of_model(rig.service->recorder, rig.model);
    cr_assert_eq(parse_request(r, rig.model), STATUS_OK, "%s", status_message());
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

static void wait_returned(void)
{
    for (int i = 0; i < 5000 && !request_has_returned(&rig.loop); i++)
        usleep(1000);
    cr_assert(request_has_returned(&rig.loop));
    request_take_returned(&rig.loop);
}

static void hold_device(void)
{
    atomic_store(&rig.cpu.is_held, true);
}

static void wait_inside(void)
{
    for (int i = 0; i < 5000 && atomic_load(&rig.cpu.inside) == 0; i++)
        usleep(1000);
    cr_assert_eq(atomic_load(&rig.cpu.inside), 1);
}

static uint64_t count_code(int code)
{
    record_totals totals;
    uint64_t count = 0;
    for (const model_record *m = record_first(rig.service->recorder); m; m = record_next(m)) {
        record_read_totals(rig.service->recorder, m, &totals);
        for (int i = 0; i < RECORD_CODES; i++)
            count += record_code(i) == code ? totals.codes[i] : 0;
    }
    return count;
}

static void forget_deadline(void)
{
    deadline_ns = UINT64_MAX;
    begin();
}

TestSuite(request, .init = forget_deadline, .fini = end);

Test(request, answered_at_once)
{
    request *r = arrive();
    request_run(r, say_hello);
    cr_assert(rig.sent == 1 && rig.last_code == 200 && rig.last_bytes == 5);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_ANSWER);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
    cr_assert_eq(arrive(), r, "the pool gives it again");
    request_run(r, say_hello);
    request_stream_closed(r);
}

Test(request, inference_is_answered_and_not_cancelled)
{
    request *r = arrive();
    request_run(r, infer);
    cr_assert(rig.connection->jobs == 1 && rig.watched == 1);
    job *j = r->infer.jobs[0];
    wait_returned();
    cr_assert(rig.sent == 1 && rig.last_code == 200 && rig.last_bytes > 20);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_ANSWER);
    cr_assert_not(atomic_load(&j->is_cancelled));
    for (int s = STAGE_ACCEPT; s < STAGE_COUNT; s++)
        cr_assert(r->sample.stage_ns[s] != 0 &&
                      (s == 0 || r->sample.stage_ns[s] >= r->sample.stage_ns[s - 1]),
                  "stage %s", stage_name((stage)s));
    cr_assert_eq(count_code(200), 1);
    request_stream_closed(r);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(request, the_client_goes_while_a_job_executes)
{
    hold_device();
    request *r = arrive();
    request_run(r, infer);
    wait_inside();
    job *j = r->infer.jobs[0];
    request_stream_closed(r);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_CLIENT_GONE);
    cr_assert(atomic_load(&j->is_cancelled));
    cr_assert_eq(rig.connection->jobs, 1, "it still runs, and counts");
    cr_assert_eq(count_code(499), 1);
    atomic_store(&rig.cpu.is_held, false);
    wait_returned();
    cr_assert(r->life.state == LIFE_RELEASED && rig.sent == 0);
}

Test(request, the_deadline_passes_while_a_job_reads_the_body)
{
    hold_device();
    uint64_t now_ns = clock_now_ns();
    deadline_ns = now_ns + 3600000000000ull;
    request *r = arrive();
    request_run(r, infer);
    wait_inside();
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
    wait_returned();
    cr_assert(r->life.state == LIFE_RELEASED && rig.dropped == 1 && rig.sent == 1);
}

Test(request, a_stream_that_closes_while_the_response_is_sent)
{
    rig.closes_while_sending = true;
    request *r = arrive();
    request_run(r, infer);
    wait_returned();
    cr_assert(rig.last_code == 200 && r->life.state == LIFE_RELEASED);
    cr_assert_eq(count_code(200), 1);
    r = arrive();
    request_run(r, say_hello);
    cr_assert_eq(r->life.state, LIFE_RELEASED);
}

Test(request, a_refusal_after_parsing_gives_everything_back)
{
    request *r = arrive();
    rig.connection->jobs = rig.service->options->limits.connection_jobs_max;
    uint64_t retry_after_ns;
    model_retain(rig.model);
    cr_assert_eq(parse_request(r, rig.model), STATUS_OK);
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
    request *r = arrive();
    r->body = (request_text){"{}", 2};
    model_retain(rig.model);
    cr_assert_eq(parse_request(r, rig.model), STATUS_INVALID_ARGUMENT);
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
    hold_device();
    request *r = arrive(), *idle = arrive();
    request_run(idle, say_hello);
    request_stream_closed(idle);
    request_run(r, infer);
    wait_inside();
    request_end_all(&rig.loop);
    cr_assert(r->life.state == LIFE_ANSWERED && r->life.reason == LIFE_SHUTDOWN);
    atomic_store(&rig.cpu.is_held, false);
    wait_returned();
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
    request *r = arrive();
    request_run(r, wait_for_message);
    cr_assert_eq(r->life.state, LIFE_RECEIVED);
    request_post(&message);
    wait_returned();
    cr_assert(rig.sent == 1 && r->life.state == LIFE_ANSWERED);
    request_stream_closed(r);
    r = arrive();
    request_run(r, wait_for_message);
    r->resume = do_nothing;
    request_stream_closed(r);
    cr_assert_eq(r->life.reason, LIFE_CLIENT_GONE);
    request_post(&message);
    wait_returned();
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
                 {STATUS_OUT_OF_MEMORY, 500, 500},
                 {STATUS_INTERNAL, 500, 500}};
    cr_assert_eq(sizeof(cases) / sizeof(cases[0]), STATUS_COUNT);
    for (int i = 0; i < STATUS_COUNT; i++) {
        cr_assert_eq(respond_code(cases[i].s, false), cases[i].code, "%s", status_name(cases[i].s));
        cr_assert_eq(respond_code(cases[i].s, true), cases[i].tensorflow_code, "%s",
                     status_name(cases[i].s));
    }
}
