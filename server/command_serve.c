/* penstock serve: options, devices, models, edge; then signals. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "devices/device.h"
#include "devices/pjrt_device.h"
#include "server/command.h"
#include "server/server.h"

#define DEVICES_MAX (2 * DEVICE_PJRT_DEVICES_MAX + 1)

typedef struct parts {
    device *devices[DEVICES_MAX];
    int device_count;
    char no_device_reason[STATUS_MESSAGE_BYTES_MAX]; /* "": every device that was wanted is there */
    repository *models;
    scheduler *work;
    server *edge;
} parts;

static int fail(const char *what)
{
    log_error("server", "%s: %s", what, status_message());
    return 1;
}

/* "cpu", or every device of "pjrt:PLUGIN.so". */
static status start_device(const config *c, const char *name, parts *p)
{
    status failure;
    int count = 1;
    if (strcmp(name, "cpu") == 0) {
        device_cpu_options options = {.threads = c->cpu_threads,
                                      .level = c->cpu_level,
                                      .cache_folder = c->repository.cache_folder};
        failure = device_cpu_create_with(&options, &p->devices[p->device_count]);
    } else if (strncmp(name, "pjrt:", 5) == 0) {
        device_pjrt_options options = {.plugin = name + 5,
                                       .cache_folder = c->repository.cache_folder,
                                       .is_cache_only = c->cache_only};
        if (p->device_count + DEVICE_PJRT_DEVICES_MAX >= DEVICES_MAX)
            return status_fail(STATUS_TOO_LARGE, "more than %d devices", DEVICES_MAX);
        failure =
            device_pjrt_create(&options, p->device_count, &p->devices[p->device_count], &count);
    } else {
        return status_fail(STATUS_UNSUPPORTED, "device \"%s\" is unknown: cpu or pjrt:PLUGIN.so",
                           name);
    }
    if (!failure)
        p->device_count += count;
    return failure;
}

static status start_devices(const config *c, parts *p)
{
    for (int i = 0; i < c->device_count; i++) {
        if (strcmp(c->devices[i], "cpu") == 0)
            continue; /* always there, and last: scheduler.h */
        status failure = start_device(c, c->devices[i], p);
        if (failure && c->require_device)
            return failure;
        if (failure) {
            snprintf(p->no_device_reason, sizeof p->no_device_reason, "%s", status_message());
            log_warning("server", "serving without a device: %s", p->no_device_reason);
        }
    }
    return start_device(c, "cpu", p);
}

static void stop(parts *p)
{
    /* Jobs hold models, models hold programs of devices: in this order. */
    if (p->work != NULL)
        scheduler_destroy(p->work);
    if (p->models != NULL)
        repository_destroy(p->models);
    for (int i = 0; i < p->device_count; i++)
        p->devices[i]->interface->destroy(p->devices[i]);
}

/* A model that was asked for at start and cannot load ends the server: nothing was served yet, and
 * who started it wants to know. */
static void *watch_loading(void *context)
{
    const parts *p = context;
    if (repository_wait(p->models)) {
        log_error("server", "models: %s", status_message());
        _exit(1);
    }
    return NULL;
}

static int serve(const config *c)
{
    parts p = {0};
    pthread_t watcher;
    server_block_signals();
    if (start_devices(c, &p))
        return fail("device");
    repository_options models = c->repository;
    if (p.no_device_reason[0] != 0)
        models.no_device_reason = p.no_device_reason;
    if (repository_create(&models, p.devices, p.device_count, &p.models)) {
        fail("models");
        stop(&p);
        return 1;
    }
    /* Tenant 0 is whoever is none of them. */
    uint32_t weights[SERVER_TENANTS_MAX + 1] = {1};
    scheduler_options options = c->scheduler;
    options.tenant_count = c->server.tenant_count + 1;
    options.tenant_weights = weights;
    for (int i = 0; i < c->server.tenant_count; i++)
        weights[i + 1] = c->server.tenants[i].weight;
    if (scheduler_create(&options, p.devices, p.device_count, &p.work)) {
        fail("scheduler");
        stop(&p);
        return 1;
    }
    if (server_start(&c->server, p.models, p.work, p.devices, p.device_count, &p.edge))
        return fail("server"); /* loading may be under way: the process ends as it is */
    if (pthread_create(&watcher, NULL, watch_loading, &p) != 0) {
        log_error("server", "no thread to watch the loading");
        return 1;
    }
    server_run(p.edge);
    pthread_join(watcher, NULL);
    stop(&p);
    return 0;
}

int command_serve(int argc, char **argv)
{
    config c;
    if (config_load(&c, argc - 1, argv + 1)) {
        fprintf(stderr, "penstock serve: %s\n", status_message());
        return 2;
    }
    int code;
    if (c.wants_help) {
        config_print_help(stdout);
        code = 0;
    } else if (c.wants_print) {
        code = config_print(&c, stdout) ? 1 : 0;
    } else {
        log_configure(c.log_level, c.log_format);
        code = serve(&c);
    }
    config_dispose(&c);
    return code;
}
