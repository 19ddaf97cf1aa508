/* Part of the fault plugin: a device of which each copy takes PENSTOCK_FAULT_TRANSFER_MS and each
 * execution PENSTOCK_FAULT_COMPUTE_MS. It has a queue for copies to it, one for executions and one
 * for copies from it. Each takes one at a time, in the order of the calls, when what it needs is
 * there; no call waits, only its event does. The inner plugin makes the results. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/pjrt/fault.h"

#define EVENT_MARK UINT64_C(0x70656e6576656e74)
#define BUFFERS_MAX 4096
#define DEVICES_MAX 64
#define RANGES_MAX 64

typedef struct simulated_event {
    uint64_t mark; /* distinguishes it from events of the inner plugin */
    uint64_t due_ns;
    pjrt_event *inner; /* or NULL */
    void *from, *to;   /* copied when it is awaited: nobody gets data before; `from` is malloc'd */
    size_t bytes;
} simulated_event;

typedef struct simulated_device {
    pjrt_device_handle *handle;
    uint64_t to_free_ns, compute_free_ns, from_free_ns; /* when each queue is empty */
} simulated_device;

typedef struct simulated_buffer {
    pjrt_buffer *buffer; /* NULL: the place is free */
    simulated_device *device;
    uint64_t ready_ns;
} simulated_buffer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static simulated_device devices[DEVICES_MAX];
static simulated_buffer buffers[BUFFERS_MAX];
static struct {
    char *data;
    size_t bytes;
} ranges[RANGES_MAX]; /* pinned */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static simulated_device *find_device(pjrt_device_handle *handle)
{
    int i = 0;
    while (devices[i].handle != NULL && devices[i].handle != handle)
        if (++i == DEVICES_MAX)
            abort();
    devices[i].handle = handle;
    return &devices[i];
}

static simulated_buffer *find_buffer(const pjrt_buffer *b)
{
    for (int i = 0; i < BUFFERS_MAX; i++)
        if (buffers[i].buffer == b)
            return &buffers[i];
    return NULL;
}

static void add_buffer(pjrt_buffer *b, simulated_device *d, uint64_t ready_ns)
{
    simulated_buffer *place = find_buffer(NULL);
    if (place == NULL)
        abort();
    *place = (simulated_buffer){b, d, ready_ns};
}

/* A queue's work: begins when the queue is free and at `ready_ns`, and takes the order's time.
 * Returns when it ends. */
static uint64_t take_turn(uint64_t *free_ns, uint64_t ready_ns, const char *order)
{
    uint64_t now = now_ns(), begin = ready_ns > now ? ready_ns : now;
    begin = *free_ns > begin ? *free_ns : begin;
    return *free_ns = begin + fault_number(order) * 1000000u;
}

static pjrt_event *make_event(uint64_t due_ns, pjrt_event *inner)
{
    simulated_event *e = malloc(sizeof *e);
    *e = (simulated_event){EVENT_MARK, due_ns, inner, NULL, NULL, 0};
    return (pjrt_event *)e;
}

static simulated_event *ours(pjrt_event *e)
{
    simulated_event *s = (simulated_event *)e;
    return s != NULL && s->mark == EVENT_MARK ? s : NULL;
}

static pjrt_error *event_await(pjrt_event_args *a)
{
    simulated_event *e = ours(a->event);
    if (e == NULL)
        return fault_inner->event_await(a);
    struct timespec due = {.tv_sec = (time_t)(e->due_ns / 1000000000u),
                           .tv_nsec = (long)(e->due_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0)
        continue;
    pjrt_event_args inner = {.struct_size = sizeof inner, .event = e->inner};
    pjrt_error *failure = e->inner != NULL ? fault_inner->event_await(&inner) : NULL;
    if (failure == NULL && e->from != NULL)
        memcpy(e->to, e->from, e->bytes);
    return failure;
}

static pjrt_error *event_destroy(pjrt_event_args *a)
{
    simulated_event *e = ours(a->event);
    if (e == NULL)
        return fault_inner->event_destroy(a);
    pjrt_event_args inner = {.struct_size = sizeof inner, .event = e->inner};
    free(e->from);
    free(e);
    return inner.event != NULL ? fault_inner->event_destroy(&inner) : NULL;
}

static bool is_pinned(const char *data)
{
    for (int i = 0; i < RANGES_MAX; i++)
        if (data >= ranges[i].data && data < ranges[i].data + ranges[i].bytes)
            return true;
    return false;
}

static pjrt_error *(*next_upload)(pjrt_client_buffer_from_host_args *);

static pjrt_error *upload(pjrt_client_buffer_from_host_args *a)
{
    pjrt_error *failure = next_upload(a);
    if (failure != NULL)
        return failure;
    pthread_mutex_lock(&lock);
    simulated_device *d = find_device(a->device);
    uint64_t done_ns = take_turn(&d->to_free_ns, 0, "TRANSFER_MS");
    add_buffer(a->buffer, d, done_ns);
    fault_tell("DMA", "upload %s", is_pinned(a->data) ? "pinned" : "copied");
    pthread_mutex_unlock(&lock);
    a->done_with_host_buffer = make_event(done_ns, a->done_with_host_buffer);
    return NULL;
}

static pjrt_error *(*next_execute)(pjrt_execute_args *);

static pjrt_error *execute(pjrt_execute_args *a)
{
    pjrt_executable *executable = NULL;
    pjrt_loaded_executable_get_executable_args get = {.struct_size = sizeof get,
                                                      .loaded_executable = a->executable};
    pjrt_executable_num_outputs_args outputs = {.struct_size = sizeof outputs};
    pjrt_error *failure = fault_inner->loaded_executable_get_executable(&get);
    if (failure == NULL) {
        outputs.executable = executable = get.executable;
        failure = fault_inner->executable_num_outputs(&outputs);
    }
    if (failure == NULL)
        failure = next_execute(a);
    if (failure != NULL)
        return failure;
    pthread_mutex_lock(&lock);
    simulated_device *d = find_device(a->execute_device);
    uint64_t ready_ns = 0;
    for (size_t i = 0; i < a->num_args; i++) {
        simulated_buffer *b = find_buffer(a->argument_lists[0][i]);
        if (b != NULL && b->ready_ns > ready_ns)
            ready_ns = b->ready_ns;
    }
    uint64_t done_ns = take_turn(&d->compute_free_ns, ready_ns, "COMPUTE_MS");
    for (size_t i = 0; i < outputs.num_outputs; i++)
        add_buffer(a->output_lists[0][i], d, done_ns);
    fault_tell("TRACE", "%d %llu %llu", (int)(d - devices),
               (unsigned long long)(done_ns / 1000 - fault_number("COMPUTE_MS") * 1000),
               (unsigned long long)(done_ns / 1000));
    pthread_mutex_unlock(&lock);
    a->device_complete_events[0] = make_event(done_ns, a->device_complete_events[0]);
    pjrt_executable_args destroy = {.struct_size = sizeof destroy, .executable = executable};
    return fault_inner->executable_destroy(&destroy);
}

static pjrt_error *download(pjrt_buffer_to_host_args *a)
{
    void *to = a->dst, *from = to != NULL ? malloc(a->dst_size + 1) : NULL;
    a->dst = from;
    pjrt_error *failure = fault_inner->buffer_to_host(a);
    a->dst = to;
    if (failure != NULL || to == NULL) {
        free(from);
        return failure;
    }
    pthread_mutex_lock(&lock);
    simulated_buffer *b = find_buffer(a->src);
    uint64_t done_ns =
        b != NULL ? take_turn(&b->device->from_free_ns, b->ready_ns, "TRANSFER_MS") : 0;
    pthread_mutex_unlock(&lock);
    a->event = make_event(done_ns, a->event);
    simulated_event *e = ours(a->event);
    e->from = from;
    e->to = to;
    e->bytes = a->dst_size;
    return NULL;
}

static pjrt_error *buffer_destroy(pjrt_buffer_args *a)
{
    pthread_mutex_lock(&lock);
    simulated_buffer *b = find_buffer(a->buffer);
    if (b != NULL)
        b->buffer = NULL;
    pthread_mutex_unlock(&lock);
    return fault_inner->buffer_destroy(a);
}

/* --- pinned memory --- */

static pjrt_error *dma_map(pjrt_client_dma_map_args *a)
{
    int i = 0;
    if (((uintptr_t)a->data | a->size) % 4096 != 0)
        return fault_error_make(PJRT_CODE_INVALID_ARGUMENT, "not whole pages");
    pthread_mutex_lock(&lock);
    while (ranges[i].data != NULL)
        if (++i == RANGES_MAX)
            abort();
    ranges[i].data = a->data;
    ranges[i].bytes = a->size;
    fault_tell("DMA", "map %zu", a->size);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static pjrt_error *dma_unmap(pjrt_client_dma_unmap_args *a)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < RANGES_MAX && ranges[i].data != a->data)
        i++;
    fault_tell("DMA", "unmap %zu", i < RANGES_MAX ? ranges[i].bytes : 0);
    if (i < RANGES_MAX)
        ranges[i].data = NULL, ranges[i].bytes = 0;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static pjrt_error *dma_map_fails(pjrt_client_dma_map_args *a)
{
    (void)a;
    return fault_error_make(PJRT_CODE_RESOURCE_EXHAUSTED, "no memory can be pinned");
}

void fault_simulate(pjrt_api *outer)
{
    if (fault_order("DMA") != NULL) {
        outer->client_dma_map = dma_map;
        outer->client_dma_unmap = dma_unmap;
    }
    if (fault_order("DMA_FAILS") != NULL)
        outer->client_dma_map = dma_map_fails;
    if (fault_order("DMA") == NULL && fault_order("COMPUTE_MS") == NULL)
        return;
    outer->event_await = event_await;
    outer->event_destroy = event_destroy;
    next_upload = outer->client_buffer_from_host;
    outer->client_buffer_from_host = upload;
    next_execute = outer->loaded_executable_execute;
    outer->loaded_executable_execute = execute;
    outer->buffer_to_host = download;
    outer->buffer_destroy = buffer_destroy;
}
