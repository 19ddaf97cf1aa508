#include "server/http/edge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/http/library.h"
#include "server/http/listen.h"
#include "server/http/loop.h"
#include "server/request/request.h"

struct edge {
    loop_shared shared;
    uint16_t ports[SERVER_LISTENERS_MAX];
    int loop_count; /* initialised */
    loop loops[];
};

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
        int count = o->listeners[i].is_health || o->listeners[i].is_admin ? 1 : served;
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

static void tell_listener(const server_listener *l, uint16_t port)
{
    if (l->path != NULL)
        log_info("server", "listening on the socket %s for administration", l->path);
    else
        log_info("server", "listening on %s://%s:%u%s", l->is_tls ? "https" : "http", l->host, port,
                 l->is_health  ? " for health and metrics"
                 : l->is_admin ? " for administration"
                 : l->is_grpc  ? " for gRPC"
                               : "");
}

static bool is_loopback(const server_listener *l)
{
    const char *host = l->host;
    return l->path != NULL || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           strncmp(host, "127.", 4) == 0;
}

/* Once, at the start. */
static void warn_without_keys(const server_options *o)
{
    for (int i = 0; o->keys_file == NULL && i < o->listener_count; i++) {
        const server_listener *l = &o->listeners[i];
        if (l->is_health || is_loopback(l))
            continue;
        log_warning("server",
                    "no keys are set (access.keys_file): whoever reaches %s may use every model%s",
                    l->host[0] ? l->host : "*",
                    o->repository_control || l->is_admin ? ", and load and unload models" : "");
        return;
    }
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
    library_configure(&shared->config, o);
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
        tell_listener(&o->listeners[i], e->ports[i]);
    warn_without_keys(o);
    *out = e;
    return STATUS_OK;
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

void edge_renew_access(edge *e)
{
    command_all(e, e->loop_count, LOOP_COMMAND_ACCESS);
}

void edge_close(edge *e)
{
    const server_options *o = e->shared.service->options;
    for (int i = 0; i < o->listener_count; i++)
        if (o->listeners[i].path != NULL)
            unlink(o->listeners[i].path);
    command_all(e, e->shared.service->loop_count,
                LOOP_COMMAND_CLOSE_LISTENERS | LOOP_COMMAND_SHUTDOWN);
}

void edge_end(edge *e)
{
    command_all(e, e->loop_count, LOOP_COMMAND_END);
}

void edge_collect(edge *e)
{
    for (int i = 0; i < e->loop_count; i++)
        request_take_returned(&e->loops[i].requests);
}

bool edge_has_ended(edge *e)
{
    return atomic_load(&e->shared.ended) == e->loop_count;
}
