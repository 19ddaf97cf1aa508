/* Part of the fault plugin: a profiler. What it records is an XSpace
 * (tsl/profiler/protobuf/xplane.proto) with a plane of the device, whose only line has an event of
 * a microsecond for each execution. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devices/pjrt/plugin/abi_extensions.h"
#include "tests/pjrt/fault.h"

#define EVENTS_MAX 1000

static atomic_bool is_recording;
static atomic_int events;
static atomic_llong starts_ns[EVENTS_MAX];
static long long began_ns;

/* The error says why; there is only one. */
static char no_start;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- protobuf --- */

typedef struct message {
    unsigned char data[EVENTS_MAX * 40 + 400];
    size_t bytes;
} message;

static void put_varint(message *m, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        m->data[m->bytes++] = (unsigned char)(value | 128);
    m->data[m->bytes++] = (unsigned char)value;
}

static void put_number(message *m, int field, uint64_t value)
{
    put_varint(m, (uint64_t)field << 3);
    put_varint(m, value);
}

static void put_bytes(message *m, int field, const void *data, size_t bytes)
{
    put_varint(m, (uint64_t)field << 3 | 2);
    put_varint(m, bytes);
    memcpy(m->data + m->bytes, data, bytes);
    m->bytes += bytes;
}

static void put_text(message *m, int field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static void put_line(message *plane)
{
    static message line, event;
    line.bytes = 0;
    put_number(&line, 1, 1);
    put_text(&line, 2, "XLA Ops");
    put_number(&line, 3, (uint64_t)began_ns);
    int count = events < EVENTS_MAX ? events : EVENTS_MAX;
    for (int i = 0; i < count; i++) {
        event.bytes = 0;
        put_number(&event, 1, 1);
        put_number(&event, 2, (uint64_t)(starts_ns[i] - began_ns) * 1000);
        put_number(&event, 3, 1000000);
        put_bytes(&line, 4, event.data, event.bytes);
    }
    put_bytes(plane, 3, line.data, line.bytes);
}

static void make_space(message *space)
{
    static message plane, entry, metadata;
    space->bytes = plane.bytes = entry.bytes = metadata.bytes = 0;
    put_number(&metadata, 1, 1);
    put_text(&metadata, 2, "execution");
    put_number(&entry, 1, 1);
    put_bytes(&entry, 2, metadata.data, metadata.bytes);
    put_number(&plane, 1, 1);
    put_text(&plane, 2, "/device:TPU:0");
    put_line(&plane);
    put_bytes(&plane, 4, entry.data, entry.bytes);
    put_bytes(space, 1, plane.data, plane.bytes);
}

/* --- the extension --- */

static void error_destroy(pjrt_profiler_error_args *a)
{
    a->error = NULL;
}

static void error_message(pjrt_profiler_error_message_args *a)
{
    a->message = "ordered to fail by PENSTOCK_FAULT";
    a->message_size = strlen(a->message);
}

static pjrt_profiler_error *create(pjrt_profiler_create_args *a)
{
    a->profiler = (pjrt_profiler *)&events;
    return NULL;
}

static pjrt_profiler_error *destroy(pjrt_profiler_args *a)
{
    a->profiler = NULL;
    return NULL;
}

static pjrt_profiler_error *start(pjrt_profiler_args *a)
{
    (void)a;
    if (strcmp(fault_order("PROFILE"), "fail") == 0)
        return (pjrt_profiler_error *)&no_start;
    events = 0;
    began_ns = now_ns();
    is_recording = true;
    return NULL;
}

static pjrt_profiler_error *stop(pjrt_profiler_args *a)
{
    (void)a;
    is_recording = false;
    return NULL;
}

static pjrt_profiler_error *collect(pjrt_profiler_collect_args *a)
{
    static message space;
    bool is_libtpu = strcmp(fault_order("PROFILE"), "libtpu") == 0;
    if (a->buffer == NULL)
        make_space(&space);
    if (is_libtpu && a->buffer == NULL) {
        space.data[space.bytes++] = 0;
        a->buffer = space.data;
    } else if (!is_libtpu && a->buffer != NULL) {
        memcpy(a->buffer, space.data, space.bytes);
    }
    a->buffer_bytes = space.bytes;
    return NULL;
}

static pjrt_error *(*next_execute)(pjrt_execute_args *);

static pjrt_error *execute(pjrt_execute_args *a)
{
    if (is_recording) {
        int i = atomic_fetch_add(&events, 1);
        if (i < EVENTS_MAX)
            starts_ns[i] = now_ns();
    }
    return next_execute(a);
}

void fault_profile(pjrt_api *outer)
{
    static const pjrt_profiler_api api = {.struct_size = sizeof api,
                                          .error_destroy = error_destroy,
                                          .error_message = error_message,
                                          .create = create,
                                          .destroy = destroy,
                                          .start = start,
                                          .stop = stop,
                                          .collect = collect};
    static pjrt_profiler_extension extension = {
        .base = {.struct_size = sizeof extension, .type = PJRT_EXTENSION_PROFILER}, .api = &api};
    if (fault_order("PROFILE") == NULL)
        return;
    extension.base.next = outer->extension_start;
    outer->extension_start = &extension.base;
    next_execute = outer->loaded_executable_execute;
    outer->loaded_executable_execute = execute;
}
