#include "server/http/edge.h"

#include <stdlib.h>

#include "base/log.h"
#include "server/connection/library_calls.h"
#include "server/connection/relief.h"
#include "server/http/listen.h"
#include "server/http/loop.h"
#include "server/http1/handler.h"
#include "server/http1/library_errors.h"
#include "server/http1/state.h"
#include "server/http1/transport.h"

struct edge {
    loop_shared shared;
    uint16_t ports[SERVER_LISTENERS_MAX];
    int loop_count; /* initialised */
    loop loops[];
};

static void configure_library(h2o_globalconf_t *config, const server_options *o)
{
    h2o_config_init(config);
    config->server_name = h2o_iovec_init(H2O_STRLIT("penstock"));
    config->max_request_entity_size = o->limits.body_bytes_max;
    /* Ours are shorter (http1/check.c): the library has one for idle, head and body together. */
    config->http1.req_timeout = o->timeouts.idle_ms + o->timeouts.request_ms + 60000;
    config->http1.upgrade_to_http2 = 0; /* HTTP/2 is ours */
    config->handshake_timeout = o->timeouts.handshake_ms;
    /* Bodies stay in memory: the library would move 32 MiB and more to the temporary folder. */
    h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
    h2o_hostconf_t *host =
        h2o_config_register_host(config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_pathconf_t *path = h2o_config_register_path(host, "/", 0);
    http1_configure(path);
    http1_transport_configure(path);
    library_errors_configure(host);
}

static bool wants_tls(const server_options *o)
{
    for (int i = 0; i < o->listener_count; i++) {
        if (o->listeners[i].is_tls)
            return true;
    }
    return false;
}

static status listen_everywhere(edge *e, const server_options *o)
{
    for (int i = 0; i < o->listener_count; i++) {
        int fds[SERVER_LOOPS_MAX], served = e->shared.service->loop_count;
        int first = o->listeners[i].is_health ? served : 0;
        int count = o->listeners[i].is_health ? 1 : served;
        status failure = listen_open(&o->listeners[i], count, fds, &e->ports[i]);
        if (failure)
            return failure;
        for (int k = 0; k < count; k++)
            e->loops[first + k].listen_fds[i] = fds[k];
    }
    return STATUS_OK;
}

static void set_gate(loop_shared *shared, loop_gate gate)
{
    pthread_mutex_lock(&shared->gate_lock);
    shared->gate = gate;
    pthread_cond_broadcast(&shared->gate_changed);
    pthread_mutex_unlock(&shared->gate_lock);
}

/* All threads or none: those that were started wait at the gate. */
static status start_threads(edge *e)
{
    int started = 0;
    while (started < e->loop_count &&
           pthread_create(&e->loops[started].thread, NULL, loop_run, &e->loops[started]) == 0) {
        e->shared.service->loops[started].watch.thread = e->loops[started].thread;
        started++;
    }
    bool is_complete = started == e->loop_count;
    set_gate(&e->shared, is_complete ? LOOP_GATE_OPEN : LOOP_GATE_CANCELLED);
    if (is_complete) {
        h2o_barrier_wait(&e->shared.started);
        return STATUS_OK;
    }
    for (int i = 0; i < started; i++)
        pthread_join(e->loops[i].thread, NULL);
    return status_fail(STATUS_IO, "no thread for loop %d", started);
}

/* Of an edge whose threads do not run. */
static void destroy(edge *e)
{
    for (int i = 0; i < e->loop_count; i++)
        loop_dispose(&e->loops[i]);
    h2o_config_dispose(&e->shared.config);
    tls_dispose(&e->shared.tls);
    pthread_mutex_destroy(&e->shared.gate_lock);
    pthread_cond_destroy(&e->shared.gate_changed);
    free(e);
}

status edge_start(service *s, const request_routes *routes, const request_routes *health_routes,
                  edge **out)
{
    const server_options *o = s->options;
    int loops = s->loop_count + s->has_health;
    edge *e = calloc(1, sizeof(*e) + (size_t)loops * sizeof(loop));
    if (e == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d loops", loops);
    loop_shared *shared = &e->shared;
    shared->service = s;
    tls_init(&shared->tls);
    pthread_mutex_init(&shared->gate_lock, NULL);
    pthread_cond_init(&shared->gate_changed, NULL);
    h2o_barrier_init(&shared->started, (size_t)loops + 1);
    http1_install_hooks(o->limits.body_bytes_max);
    library_calls_install(&(library_calls_hooks){relief_on_shortage, connections_read_bytes_max});
    configure_library(&shared->config, o);
    status failure = wants_tls(o) ? tls_load(&shared->tls, &o->tls) : STATUS_OK;
    while (!failure && e->loop_count < loops) {
        bool is_health = service_is_health_loop(s, e->loop_count);
        failure = loop_init(&e->loops[e->loop_count], shared, is_health ? health_routes : routes,
                            e->loop_count);
        e->loop_count += !failure;
    }
    if (!failure)
        failure = listen_everywhere(e, o);
    if (!failure)
        failure = start_threads(e);
    if (failure) {
        destroy(e);
        return failure;
    }
    for (int i = 0; i < o->listener_count; i++)
        log_info("server", "listening on %s://%s:%u%s", o->listeners[i].is_tls ? "https" : "http",
                 o->listeners[i].host, e->ports[i],
                 o->listeners[i].is_health ? " for health and metrics" : "");
    *out = e;
    return STATUS_OK;
}

uint16_t edge_port(const edge *e, int index)
{
    return e->ports[index];
}

static void command_all(edge *e, int loops, unsigned command)
{
    for (int i = 0; i < loops; i++)
        loop_command(&e->loops[i], command);
}

status edge_reload_tls(edge *e, bool *has_tls)
{
    const server_options *o = e->shared.service->options;
    *has_tls = wants_tls(o);
    status failure = *has_tls ? tls_load(&e->shared.tls, &o->tls) : STATUS_OK;
    if (!failure && *has_tls)
        command_all(e, e->loop_count, LOOP_COMMAND_TLS);
    return failure;
}

void edge_close(edge *e)
{
    command_all(e, e->shared.service->loop_count,
                LOOP_COMMAND_CLOSE_LISTENERS | LOOP_COMMAND_SHUTDOWN);
}

void edge_end(edge *e)
{
    command_all(e, e->loop_count, LOOP_COMMAND_END);
}

bool edge_has_ended(edge *e)
{
    return atomic_load(&e->shared.ended) == e->loop_count;
}
