#include "server/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/edge.h"
#include "server/http/overrides/chunked.h"
#include "server/http/overrides/head_parse.h"
#include "server/http/overrides/late.h"
#include "server/http/overrides/reset.h"

/* Connections that only wait are left open this long after GOAWAY and Connection: close. */
#define IDLE_GRACE_NS 2000000000ull
#define DRAIN_STEP_MS 20

static int default_loops(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int loops = (int)(cores / 2);
    return loops < 1 ? 1 : loops > SERVER_LOOPS_MAX ? SERVER_LOOPS_MAX : loops;
}

static void configure_library(server *s)
{
    const server_options *o = s->options;
    h2o_config_init(&s->config);
    s->config.server_name = h2o_iovec_init(H2O_STRLIT("penstock"));
    s->config.max_request_entity_size = o->limits.body_bytes_max;
    s->config.http1.req_timeout = o->timeouts.request_ms;
    s->config.http2.idle_timeout = o->timeouts.idle_ms;
    s->config.handshake_timeout = o->timeouts.handshake_ms;
    if (o->drain.limit_ms > 0)
        s->config.http2.graceful_shutdown_timeout = o->drain.limit_ms;
    /* Bodies stay in memory: the library would move 32 MiB and more to the temporary folder. */
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
    s->host = h2o_config_register_host(&s->config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_pathconf_t *path = h2o_config_register_path(s->host, "/", 0);
    h2o_create_handler(path, sizeof(h2o_handler_t))->on_req = handle_request;
    handle_library_errors(s->host);
}

static status open_log(server *s)
{
    const char *file = s->options->access_log;
    s->log_fd = -1;
    if (file == NULL)
        return STATUS_OK;
    if (strcmp(file, "-") == 0) {
        s->log_fd = STDOUT_FILENO;
        return STATUS_OK;
    }
    s->log_fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (s->log_fd < 0)
        return status_fail(STATUS_IO, "access_log %s: %s", file, strerror(errno));
    return STATUS_OK;
}

static bool wants_tls(const server_options *o)
{
    for (int i = 0; i < o->listener_count; i++) {
        if (o->listeners[i].is_tls)
            return true;
    }
    return false;
}

static server *the_server; /* for handlers, which get no context of ours but the loop's */

status server_start(const server_options *options, server **out)
{
    assert(the_server == NULL);
    assert(chunked_is_in_place()); /* else smuggling forms would pass */
    reset_find_library();
    head_parse_find_library();
    late_find_library();
    server *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the server");
    the_server = s;
    s->options = options;
    s->loop_count = options->loops > 0 ? options->loops : default_loops();
    if (s->loop_count > SERVER_LOOPS_MAX)
        s->loop_count = SERVER_LOOPS_MAX;
    s->start_ns = clock_now_ns();
    pthread_mutex_init(&s->tls_lock, NULL);
    pthread_mutex_init(&s->progress_lock, NULL);
    s->loops = calloc((size_t)s->loop_count, sizeof(loop));
    s->recorder = recorder_create(s->loop_count);
    if (s->loops == NULL || s->recorder == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d loops", s->loop_count);
    status failure = open_log(s);
    if (!failure && wants_tls(options))
        failure = tls_load(&options->tls, &s->tls);
    if (!failure)
        failure = server_listen(s);
    if (failure)
        return failure;
    configure_library(s);
    h2o_barrier_init(&s->started, (size_t)s->loop_count + 1);
    h2o_barrier_init(&s->ended, (size_t)s->loop_count + 1);
    for (int i = 0; i < s->loop_count; i++) {
        if ((failure = loop_init(&s->loops[i], s, i)))
            return failure;
    }
    for (int i = 0; i < s->loop_count; i++) {
        if (pthread_create(&s->loops[i].thread, NULL, loop_run, &s->loops[i]) != 0)
            return status_fail(STATUS_IO, "no thread for loop %d", i);
    }
    h2o_barrier_wait(&s->started);
    for (int i = 0; i < options->listener_count; i++)
        log_info("server", "listening on %s://%s:%u",
                 options->listeners[i].is_tls ? "https" : "http", options->listeners[i].host,
                 s->ports[i]);
    *out = s;
    return STATUS_OK;
}

void server_open(server *s, const server_backend *backend)
{
    assert(!server_is_open(s));
    s->models = backend->models;
    s->work = backend->work;
    s->devices = backend->devices;
    s->device_count = backend->device_count;
    s->missing_device = backend->missing;
    atomic_store_explicit(&s->is_open, true, memory_order_release);
}

bool server_is_open(const server *s)
{
    return atomic_load_explicit(&s->is_open, memory_order_acquire);
}

void server_say(server *s, const char *progress)
{
    pthread_mutex_lock(&s->progress_lock);
    snprintf(s->progress, sizeof(s->progress), "%s", progress);
    pthread_mutex_unlock(&s->progress_lock);
}

void server_count_start_failure(server *s)
{
    atomic_fetch_add(&s->start_failures, 1);
}

uint16_t server_port(const server *s, int index)
{
    return s->ports[index];
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

static void command_all(server *s, unsigned command)
{
    for (int i = 0; i < s->loop_count; i++)
        loop_command(&s->loops[i], command);
}

static void reload_tls(server *s)
{
    SSL_CTX *fresh;
    if (s->tls == NULL)
        return;
    if (tls_load(&s->options->tls, &fresh)) {
        log_error("server", "TLS files not reloaded, the old ones stay: %s", status_message());
        return;
    }
    pthread_mutex_lock(&s->tls_lock);
    unsigned slot = s->tls_reloads++ % SERVER_TLS_RETIRED;
    SSL_CTX_free(s->retired_tls[slot]);
    s->retired_tls[slot] = s->tls;
    s->tls = fresh;
    pthread_mutex_unlock(&s->tls_lock);
    command_all(s, COMMAND_TLS);
    log_info("server", "TLS files reloaded");
}

/* Sleeps, unless a second signal says: now. */
static void wait_or_exit(uint64_t ms)
{
    sigset_t set = our_signals();
    sigdelset(&set, SIGHUP);
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    if (sigtimedwait(&set, NULL, &time) > 0) {
        log_warning("server", "second signal: leaving at once");
        _exit(1);
    }
}

static int open_requests(const server *s)
{
    int n = 0;
    for (int i = 0; i < s->loop_count; i++)
        n += atomic_load(&s->loops[i].exchange_count);
    return n;
}

static bool is_quiet(const server *s, uint64_t now_ns)
{
    for (int i = 0; i < s->loop_count; i++) {
        if (now_ns - atomic_load(&s->loops[i].last_request_ns) < IDLE_GRACE_NS)
            return false;
    }
    return open_requests(s) == 0;
}

/* Ready turns off at once, so balancers look elsewhere; requests that still come are served. */
static void drain(server *s)
{
    const server_drain *d = &s->options->drain;
    log_info("server", "draining: not ready now, connections end in %llu ms",
             (unsigned long long)d->delay_ms);
    atomic_store(&s->is_draining, true);
    wait_or_exit(d->delay_ms);
    atomic_store(&s->is_stopping, true);
    command_all(s, COMMAND_CLOSE_LISTENERS | COMMAND_SHUTDOWN);
    uint64_t begin_ns = clock_now_ns();
    for (;;) {
        uint64_t now_ns = clock_now_ns();
        if (atomic_load(&s->connection_count) == 0 && open_requests(s) == 0)
            break;
        if (now_ns - begin_ns > IDLE_GRACE_NS && is_quiet(s, now_ns))
            break;
        if (d->limit_ms > 0 && now_ns - begin_ns > d->limit_ms * 1000000ull) {
            log_warning("server", "drain limit passed with %d requests open", open_requests(s));
            break;
        }
        wait_or_exit(DRAIN_STEP_MS);
    }
    command_all(s, COMMAND_END);
    h2o_barrier_wait(&s->ended);
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
            continue;
        }
        drain(s);
        return;
    }
}
