#include "server/server.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/cores.h"
#include "base/log.h"
#include "server/http/edge.h"
#include "server/offload/pool.h"
#include "server/routes/routes.h"
#include "server/service/descriptors.h"
#include "server/service/service.h"

/* Connections that only wait are left open this long after GOAWAY and Connection: close. */
#define IDLE_GRACE_NS 2000000000ull
#define DRAIN_STEP_MS 20
#define END_STEP_MS 1
/* Given to loops that are told to end, even when the drain's limit has passed. */
#define END_GRACE_NS 1000000000ull
#define SAME_SIGNAL_NS 1000000000ull
#define HELPER_TASKS_MAX 256 /* that wait; a connection may have a quarter of them */

struct server {
    service *service;
    edge *edge;
    watchdog *watchdog;
};

static int loop_count(const server_options *o)
{
    int cores = cores_there_are();
    int loops = o->loops > 0 ? o->loops : cores / 2;
    return loops < 1 ? 1 : loops > SERVER_LOOPS_MAX ? SERVER_LOOPS_MAX : loops;
}

static int helper_count(const server_options *o)
{
    int cores = cores_there_are();
    int helpers = o->helpers > 0 ? o->helpers : cores / 2;
    return helpers < 2 && o->helpers == 0 ? 2
           : helpers > SERVER_HELPERS_MAX ? SERVER_HELPERS_MAX
                                          : helpers;
}

static status start_watchdog(server *s)
{
    service *of = s->service;
    watched *loops[SERVER_LOOPS_MAX + 1];
    int count = of->loop_count + of->has_health;
    for (int i = 0; i < count; i++)
        loops[i] = &of->loops[i].watch;
    return watchdog_create(loops, count, &s->watchdog);
}

status server_start(const server_options *options, server **out)
{
    server *s = calloc(1, sizeof(*s));
    if (s != NULL)
        s->service = service_create(options, loop_count(options));
    status failure = STATUS_OK;
    if (s == NULL || s->service == NULL)
        failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for the server");
    if (!failure)
        s->service->connections_max = descriptors_for_connections(options->limits.connections_max);
    if (!failure)
        failure = service_load_access(s->service);
    if (!failure)
        failure = access_log_open(options->access_log, &s->service->log_fd);
    if (!failure)
        failure =
            offload_pool_create(helper_count(options), HELPER_TASKS_MAX, &s->service->helpers);
    if (!failure)
        failure = edge_start(s->service, routes_table(), routes_health_table(), &s->edge);
    if (failure)
        goto fail;
    if (start_watchdog(s))
        log_warning("server", "loops are not watched: %s", status_message());
    *out = s;
    return STATUS_OK;
fail:
    if (s != NULL)
        service_destroy(s->service);
    free(s);
    return failure;
}

void server_open(server *s, const server_backend *backend)
{
    service *to = s->service;
    assert(!service_is_open(to));
    to->models = backend->models;
    to->work = backend->work;
    to->devices = backend->devices;
    to->device_count = backend->device_count;
    atomic_store_explicit(&to->is_open, true, memory_order_release);
}

bool server_is_open(const server *s)
{
    return service_is_open(s->service);
}

static bool take_memory(void *context, size_t bytes)
{
    return budget_take(context, bytes);
}

static void give_memory(void *context, size_t bytes)
{
    budget_give(context, bytes);
}

device_memory server_device_memory(server *s)
{
    budget *b = &s->service->budget;
    return (device_memory){b, b->limits.bytes_max, take_memory, give_memory};
}

void server_set_progress(server *s, const char *progress)
{
    service_set_progress(s->service, progress);
}

void server_set_missing(server *s, const char *why)
{
    service_set_missing(s->service, why);
}

void server_count_start_failure(server *s)
{
    atomic_fetch_add(&s->service->start_failures, 1);
}

static sigset_t our_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

void server_block_signals(void)
{
    sigset_t set = our_signals();
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void reload_tls(server *s)
{
    bool has_tls;
    if (edge_reload_tls(s->edge, &has_tls))
        log_error("server", "TLS files not reloaded, the old ones stay: %s", status_message());
    else if (has_tls)
        log_info("server", "TLS files reloaded");
}

static void reload_access(server *s)
{
    if (s->service->options->keys_file == NULL)
        return;
    if (service_load_access(s->service)) {
        log_error("server", "keys not read again, the old ones stay: %s", status_message());
        return;
    }
    edge_renew_access(s->edge);
    log_info("server", "keys read again");
}

/* When the first signal came. Others within a second of it are the same one: GNU timeout sends two.
 */
static _Atomic uint64_t told_ns;

static bool is_second_signal(void)
{
    return clock_now_ns() - atomic_load(&told_ns) >= SAME_SIGNAL_NS;
}

/* Sleeps, unless a second signal says: now. */
static void wait_or_exit(uint64_t ms)
{
    sigset_t set = our_signals();
    sigdelset(&set, SIGHUP);
    uint64_t now_ns = clock_now_ns(), end_ns = now_ns + ms * 1000000;
    for (; now_ns < end_ns; now_ns = clock_now_ns()) {
        uint64_t left_ns = end_ns - now_ns;
        struct timespec time = {.tv_sec = (time_t)(left_ns / 1000000000),
                                .tv_nsec = (long)(left_ns % 1000000000)};
        if (sigtimedwait(&set, NULL, &time) > 0 && is_second_signal()) {
            log_warning("server", "second signal: leaving at once");
            _exit(1);
        }
    }
}

/* The same where the main thread does not look any more. Async-signal-safe. */
static void on_second_signal(int number)
{
    static const char line[] = "penstock: second signal: leaving at once\n";
    (void)number;
    if (!is_second_signal())
        return;
    ssize_t n = write(STDERR_FILENO, line, sizeof(line) - 1);
    (void)n;
    _exit(1);
}

static void leave_at_second_signal(void)
{
    struct sigaction action = {.sa_handler = on_second_signal, .sa_flags = SA_RESTART};
    sigset_t set = our_signals();
    sigdelset(&set, SIGHUP);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static bool is_quiet(const service *s, uint64_t now_ns)
{
    for (int i = 0; i < s->loop_count; i++) {
        if (now_ns - atomic_load(&s->loops[i].last_request_ns) < IDLE_GRACE_NS)
            return false;
    }
    return service_open_requests(s) == 0;
}

/* A loop that is stuck does not end: the process leaves without it, when the limit has passed. */
static void end_loops(server *s, uint64_t begin_ns)
{
    const server_drain *d = &s->service->options->drain;
    uint64_t asked_ns = clock_now_ns(), now_ns = asked_ns;
    edge_end(s->edge);
    for (; !edge_has_ended(s->edge); now_ns = clock_now_ns()) {
        if (d->limit_ms > 0 && now_ns - begin_ns > d->limit_ms * 1000000ull &&
            now_ns - asked_ns > END_GRACE_NS) {
            log_error("server", "an event loop is stuck and does not end: leaving without it");
            _exit(1);
        }
        wait_or_exit(END_STEP_MS);
    }
}

/* Readiness turns off at once, so that load balancers look elsewhere; requests that still come are
 * served. */
static void drain(server *s)
{
    service *at = s->service;
    const server_drain *d = &at->options->drain;
    log_info("server", "draining: not ready now, connections end in %llu ms",
             (unsigned long long)d->delay_ms);
    atomic_store(&at->is_draining, true);
    wait_or_exit(d->delay_ms);
    atomic_store(&at->is_stopping, true);
    edge_close(s->edge);
    uint64_t begin_ns = clock_now_ns();
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        int open = service_open_requests(at);
        if (atomic_load(&at->connections) == 0 && open == 0)
            break;
        if (now_ns - begin_ns > IDLE_GRACE_NS && is_quiet(at, now_ns))
            break;
        if (d->limit_ms > 0 && now_ns - begin_ns > d->limit_ms * 1000000ull) {
            log_warning("server", "drain limit passed with %d requests open", open);
            break;
        }
        wait_or_exit(DRAIN_STEP_MS);
    }
    end_loops(s, begin_ns);
    offload_pool_destroy(at->helpers); /* what runs has been cancelled */
    at->helpers = NULL;
    watchdog_destroy(s->watchdog);
    s->watchdog = NULL;
    log_info("server", "drained");
}

void server_run(server *s)
{
    sigset_t set = our_signals();
    for (;;) {
        int signal = 0;
        if (sigwait(&set, &signal) != 0)
            continue;
        if (signal == SIGHUP) {
            reload_tls(s);
            reload_access(s);
            if (service_is_open(s->service))
                repository_rescan(s->service->models);
            continue;
        }
        atomic_store(&told_ns, clock_now_ns());
        drain(s);
        leave_at_second_signal();
        return;
    }
}

void server_collect(server *s)
{
    edge_collect(s->edge);
}

void server_release(server *s)
{
    free(s);
}
