/* What `penstock serve` does once it listens: devices, models, scheduler; then requests are taken.
 */
#include "cli/start.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/device.h"
#include "devices/pjrt/device.h"

#define DEVICES_MAX (2 * DEVICE_PJRT_DEVICES_MAX + 1)
#define RETRY_MIN_NS 250000000u
#define RETRY_MAX_NS 5000000000u

struct server_parts {
    const config *config;
    server *edge;
    pthread_t thread;
    device *devices[DEVICES_MAX];
    int device_count;
    char no_device_reason[STATUS_MESSAGE_BYTES_MAX]; /* "": every device that was wanted is there */
    repository_options model_options;
    repository *models;
    uint32_t tenant_weights[SERVER_TENANTS_MAX + 1];
    scheduler *work;
};

static void sleep_ns(uint64_t ns)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                                 .tv_nsec = (long)(ns % 1000000000u)},
              NULL);
}

/* Opens a plugin's devices; again, with growing pauses, while a failure may pass: the commonest is
 * a TPU that the process before this one has not given back yet. */
static status start_plugin(server_parts *p, const device_pjrt_options *options, int *count)
{
    uint64_t begin_ns = clock_now_ns(), limit_ns = p->config->device_start_timeout_ns;
    uint64_t pause_ns = RETRY_MIN_NS;
    for (int tries = 1;; tries++) {
        status s =
            device_pjrt_create(options, p->device_count, &p->devices[p->device_count], count);
        if (s == STATUS_OK)
            return s;
        server_count_start_failure(p->edge);
        uint64_t waited_ns = clock_now_ns() - begin_ns;
        if (s != STATUS_UNAVAILABLE || limit_ns == 0)
            return s;
        char why[STATUS_MESSAGE_BYTES_MAX];
        snprintf(why, sizeof why, "%s", status_message());
        if (waited_ns >= limit_ns)
            return status_fail(s, "%.900s; given up after %d tries in %.1f s", why, tries,
                               (double)waited_ns * 1e-9);
        uint64_t left_ns = limit_ns - waited_ns;
        pause_ns = pause_ns < left_ns ? pause_ns : left_ns;
        char text[STATUS_MESSAGE_BYTES_MAX];
        snprintf(text, sizeof text, "%.800s; try %d after %.1f of %.0f s, next in %.2f s", why,
                 tries, (double)waited_ns * 1e-9, (double)limit_ns * 1e-9, (double)pause_ns * 1e-9);
        log_warning("server", "%s", text);
        server_say(p->edge, text);
        sleep_ns(pause_ns);
        pause_ns = 2 * pause_ns < RETRY_MAX_NS ? 2 * pause_ns : RETRY_MAX_NS;
    }
}

/* "cpu", or every device of "pjrt:PLUGIN.so". */
static status start_device(server_parts *p, const char *name)
{
    const config *c = p->config;
    status failure;
    int count = 1;
    if (strcmp(name, "cpu") == 0) {
        device_cpu_options options = {.threads = c->cpu_threads,
                                      .level = c->cpu_level,
                                      .cache_folder = c->repository.load.cache_folder};
        failure = device_cpu_create_with(&options, &p->devices[p->device_count]);
    } else if (strncmp(name, "pjrt:", 5) == 0) {
        device_pjrt_options options = {.plugin = name + 5,
                                       .cache_folder = c->repository.load.cache_folder,
                                       .is_cache_only = c->cache_only};
        if (p->device_count + DEVICE_PJRT_DEVICES_MAX >= DEVICES_MAX)
            return status_fail(STATUS_TOO_LARGE, "more than %d devices", DEVICES_MAX);
        failure = start_plugin(p, &options, &count);
    } else {
        return status_fail(STATUS_UNSUPPORTED, "device \"%s\" is unknown: cpu or pjrt:PLUGIN.so",
                           name);
    }
    if (!failure)
        p->device_count += count;
    return failure;
}

static status start_devices(server_parts *p)
{
    const config *c = p->config;
    for (int i = 0; i < c->device_count; i++) {
        if (strcmp(c->devices[i], "cpu") == 0)
            continue; /* always there, and last: scheduler.h */
        char text[256];
        snprintf(text, sizeof text, "starting %.240s", c->devices[i]);
        server_say(p->edge, text);
        status failure = start_device(p, c->devices[i]);
        if (failure && c->require_device)
            return failure;
        if (failure) {
            snprintf(p->no_device_reason, sizeof p->no_device_reason, "%s", status_message());
            log_warning("server", "serving without a device: %s", p->no_device_reason);
        }
    }
    server_say(p->edge, "starting cpu");
    return start_device(p, "cpu");
}

static status start_scheduler(server_parts *p)
{
    const server_options *o = &p->config->server;
    scheduler_options options = p->config->scheduler;
    /* Tenant 0 is whoever is none of them. */
    options.tenant_count = o->tenant_count + 1;
    options.tenant_weights = p->tenant_weights;
    p->tenant_weights[0] = 1;
    for (int i = 0; i < o->tenant_count; i++)
        p->tenant_weights[i + 1] = o->tenants[i].weight;
    return scheduler_create(&options, p->devices, p->device_count, &p->work);
}

/* Nothing was served yet, and who started the server wants to know. */
static void end(const char *what)
{
    log_error("server", "%s: %s", what, status_message());
    _exit(1);
}

static void *start_all(void *context)
{
    server_parts *p = context;
    if (start_devices(p))
        end("device");
    p->model_options = p->config->repository;
    if (p->no_device_reason[0] != 0)
        p->model_options.load.no_device_reason = p->no_device_reason;
    if (repository_create(&p->model_options, p->devices, p->device_count, &p->models))
        end("models");
    if (start_scheduler(p))
        end("scheduler");
    server_open(p->edge, &(server_backend){.models = p->models,
                                           .work = p->work,
                                           .devices = p->devices,
                                           .device_count = p->device_count,
                                           .missing = p->no_device_reason});
    if (repository_wait(p->models))
        end("models");
    return NULL;
}

status server_parts_start(const config *c, server *edge, server_parts **out)
{
    server_parts *p = calloc(1, sizeof *p);
    assert(p != NULL);
    p->config = c;
    p->edge = edge;
    if (pthread_create(&p->thread, NULL, start_all, p) != 0) {
        free(p);
        return status_fail(STATUS_IO, "no thread to start devices and models");
    }
    *out = p;
    return STATUS_OK;
}

void server_parts_stop(server_parts *p)
{
    if (!server_is_open(p->edge)) {
        log_info("server", "told to stop before the devices had started");
        _exit(0); /* a plugin may take long to open; its process ends with this one */
    }
    pthread_join(p->thread, NULL);
    /* Jobs hold models, models hold programs of devices: in this order. */
    scheduler_destroy(p->work);
    repository_destroy(p->models);
    for (int i = 0; i < p->device_count; i++)
        p->devices[i]->interface->destroy(p->devices[i]);
    free(p);
}
