#include "tests/unit/server/request/rig.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/request/respond.h"

struct request_rig rig;

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

void rig_begin(void)
{
    static const request_transport transport = {.header = no_header,
                                                .allocate = allocate,
                                                .add_header = add_header,
                                                .send = send_response,
                                                .watch = watch,
                                                .keep_body = keep_body,
                                                .drop_body = drop_body,
                                                .close = close_connection};
    memset(&rig, 0, sizeof(rig));
    server_options_default(&rig.options);
    rig.options.limits.connections_max = 1;
    fake_device_init(&rig.cpu, "cpu", 1);
    rig.devices[0] = &rig.cpu.base;
    rig.model = fake_model_create(rig.devices, 1, 0, true, true);
    rig.service = service_create(&rig.options, 1);
    cr_assert_eq(service_load_access(rig.service), STATUS_OK);
    cr_assert_eq(scheduler_create(&(scheduler_options){0}, rig.devices, 1, &rig.service->work), 0);
    cr_assert_eq(request_loop_init(&rig.loop, rig.service, NULL, 0), STATUS_OK);
    rig.connection = calloc(1, sizeof(*rig.connection));
    *rig.connection =
        (request_connection){.transport = &transport, .loop = &rig.loop, .references = 1};
}

void rig_end(void)
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

request *rig_arrive(void)
{
    static const char body[] =
        "{\"inputs\":[{\"name\":\"ids\",\"shape\":[1,2],\"datatype\":\"INT64\","
        "\"data\":[5,6]},{\"name\":\"attention_mask\",\"shape\":[1,2],\"datatype\":"
        "\"INT64\",\"data\":[1,1]}]}";
    request *r = request_begin(&rig.loop, rig.connection, &rig, clock_now_ns());
    cr_assert_not_null(r);
    r->route.kind = ROUTE_INFER;
    r->route.dialect = ROUTE_KSERVE;
    r->body = (request_text){body, sizeof(body) - 1};
    stage_stamp(r->sample.stage_ns, STAGE_ACCEPT, clock_now_ns());
    return r;
}

void rig_wait_returned(void)
{
    while (!request_has_returned(&rig.loop))
        usleep(1000);
    request_take_returned(&rig.loop);
}

void rig_hold_device(void)
{
    atomic_store(&rig.cpu.is_held, true);
}

void rig_wait_inside(void)
{
    while (atomic_load(&rig.cpu.inside) == 0)
        usleep(1000);
    cr_assert_eq(atomic_load(&rig.cpu.inside), 1);
}
