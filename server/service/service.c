#include "server/service/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/cores.h"
#include "base/log.h"
#include "server/budget/memory.h"
#include "server/offload/pool.h"

/* Of the memory there is, held for clients by default. */
#define HELD_FRACTION 4
#define HELD_BYTES_MIN ((size_t)16 << 20)

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t part(size_t bytes, int percent)
{
    return percent < 100 ? bytes / 100 * (size_t)percent : bytes;
}

static budget_limits limits_of(const server_limits *l)
{
    size_t bytes = l->held_bytes_max, two_bodies = SIZE_MAX;
    if (bytes == 0)
        bytes = memory_there_is() / HELD_FRACTION;
    bytes = bytes < HELD_BYTES_MIN ? HELD_BYTES_MIN : bytes;
    if (l->body_bytes_max < SIZE_MAX / 2)
        two_bodies = 2 * l->body_bytes_max;
    size_t connection = part(bytes, l->connection_held_percent);
    size_t address = part(bytes, l->address_held_percent);
    connection = connection < two_bodies ? two_bodies : connection;
    address = address < connection ? connection : address;
    return (budget_limits){.bytes_max = bytes,
                           .connection_bytes_max = least(connection, bytes),
                           .address_bytes_max = least(address, bytes),
                           .address_accounts_max = l->address_connections_max > 0
                                                       ? l->address_connections_max
                                                       : INT32_MAX};
}

service *service_create(const server_options *options, int loop_count)
{
    service *s = aligned_alloc(_Alignof(service), sizeof(*s));
    if (s == NULL)
        return NULL;
    *s = (service){.options = options,
                   .loop_count = loop_count,
                   .log_fd = -1,
                   .start_ns = clock_now_ns(),
                   .regions = shared_memory_create(options->limits.shared_memory_bytes_max),
                   .recorder = recorder_create(loop_count + 1)};
    for (int i = 0; i < options->listener_count; i++)
        s->has_health |= options->listeners[i].is_health;
    pthread_mutex_init(&s->progress_lock, NULL);
    pthread_mutex_init(&s->access_lock, NULL);
    s->connections_max = options->limits.connections_max;
    budget_limits held = limits_of(&options->limits);
    if (s->recorder == NULL || s->regions == NULL || budget_init(&s->budget, &held)) {
        service_destroy(s);
        return NULL;
    }
    log_info("server",
             "%d cores and %zu MiB of memory may be used; up to %zu MiB are held for clients",
             cores_there_are(), memory_there_is() >> 20, held.bytes_max >> 20);
    return s;
}

void service_destroy(service *s)
{
    if (s == NULL)
        return;
    offload_pool_destroy(s->helpers);
    text_scratches_dispose(&s->text_scratches);
    shared_memory_destroy(s->regions);
    recorder_destroy(s->recorder);
    if (s->budget.addresses != NULL && s->budget.address_count == 0)
        budget_dispose(&s->budget);
    if (s->log_fd >= 0)
        close(s->log_fd);
    access_table_release(s->access);
    pthread_mutex_destroy(&s->access_lock);
    pthread_mutex_destroy(&s->progress_lock);
    free(s);
}

status service_load_access(service *s)
{
    access_table *fresh;
    status failure = access_table_create(s->options, &fresh);
    if (failure)
        return failure;
    pthread_mutex_lock(&s->access_lock);
    access_table *replaced = s->access;
    s->access = fresh;
    pthread_mutex_unlock(&s->access_lock);
    access_table_release(replaced);
    return STATUS_OK;
}

access_table *service_acquire_access(service *s)
{
    pthread_mutex_lock(&s->access_lock);
    access_table *current = access_table_retain(s->access);
    pthread_mutex_unlock(&s->access_lock);
    return current;
}

bool service_is_open(const service *s)
{
    return atomic_load_explicit(&s->is_open, memory_order_acquire);
}

/* One of the two is a text of the service. */
static void set_text(service *s, char to[SERVICE_PROGRESS_BYTES], const char *from)
{
    pthread_mutex_lock(&s->progress_lock);
    snprintf(to, SERVICE_PROGRESS_BYTES, "%s", from);
    pthread_mutex_unlock(&s->progress_lock);
}

void service_set_progress(service *s, const char *progress)
{
    set_text(s, s->progress, progress);
}

void service_get_progress(service *s, char progress[SERVICE_PROGRESS_BYTES])
{
    set_text(s, progress, s->progress);
}

void service_set_missing(service *s, const char *why)
{
    set_text(s, s->missing, why);
}

void service_get_missing(service *s, char why[SERVICE_PROGRESS_BYTES])
{
    set_text(s, why, s->missing);
}

const double service_turn_bounds[SERVICE_TURN_CELLS - 1] = {0.001, 0.002, 0.005, 0.01,
                                                            0.02,  0.05,  0.1,   1};

void service_count_turn(service_loop *counters, uint64_t ms)
{
    int cell = 0;
    while (cell < SERVICE_TURN_CELLS - 1 && (double)ms > service_turn_bounds[cell] * 1000)
        cell++;
    uint64_t count = atomic_load_explicit(&counters->turn_cells[cell], memory_order_relaxed);
    atomic_store_explicit(&counters->turn_cells[cell], count + 1, memory_order_relaxed);
    if (ms > 0)
        atomic_fetch_add_explicit(&counters->turn_ms, ms, memory_order_relaxed);
}

uint64_t service_stuck_ns(const service *s)
{
    uint64_t longest_ns = 0;
    for (int i = 0; i < s->loop_count + s->has_health; i++) {
        uint64_t ns = atomic_load_explicit(&s->loops[i].watch.stuck_ns, memory_order_relaxed);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    return longest_ns;
}

bool service_is_live(const service *s)
{
    uint64_t limit_ns = s->options->timeouts.liveness_ms * 1000000;
    return limit_ns == 0 || service_stuck_ns(s) <= limit_ns;
}

bool service_is_ready(const service *s)
{
    char progress[SERVICE_PROGRESS_BYTES];
    return service_is_open(s) && !atomic_load(&s->is_draining) &&
           repository_is_ready(s->models, progress, sizeof progress);
}

int service_open_requests(const service *s)
{
    int open = 0;
    for (int i = 0; i < s->loop_count; i++)
        open += atomic_load_explicit(&s->loops[i].requests, memory_order_relaxed);
    return open;
}
