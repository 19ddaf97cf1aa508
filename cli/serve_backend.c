#include "cli/serve_backend.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/device_watch.h"
#include "devices/device.h"
#include "devices/pjrt/device.h"

#define DEVICES_MAX (2 * DEVICE_PJRT_DEVICES_MAX + 1)
#define RETRY_MIN_NS 250000000u
#define RETRY_MAX_NS 5000000000u

struct serve_backend {
    const config *config;
    server *edge;
    pthread_t thread;
    device *devices[DEVICES_MAX];
    int device_count;
    device_watch_missing missing[CONFIG_DEVICES_MAX]; /* plugins that could not be opened */
    int missing_count;
    char no_device_reason[STATUS_MESSAGE_BYTES_MAX]; /* "": every device started */
    device_watch *watch;
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

static void set_progress(serve_backend *b, const char *text, const char *plugin)
{
    char shown[STATUS_MESSAGE_BYTES_MAX];
    snprintf(shown, sizeof shown, "%s", text);
    device_watch_hide_folder(shown, sizeof shown, plugin);
    server_set_progress(b->edge, shown);
}

/* Opens a plugin's devices. Retries with growing pauses while the device is unavailable, most often
 * because the previous process has not released the TPU yet. */
static status start_plugin(serve_backend *b, const device_pjrt_options *options, int *count)
{
    uint64_t begin_ns = clock_now_ns(), limit_ns = b->config->device_start_timeout_ns;
    uint64_t pause_ns = RETRY_MIN_NS;
    for (int tries = 1;; tries++) {
        status s =
            device_pjrt_create(options, b->device_count, &b->devices[b->device_count], count);
        if (s == STATUS_OK)
            return s;
        server_count_start_failure(b->edge);
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
        snprintf(text, sizeof text,
                 "%.800s; try %d failed after %.1f s of %.0f s, next try in %.2f s", why, tries,
                 (double)waited_ns * 1e-9, (double)limit_ns * 1e-9, (double)pause_ns * 1e-9);
        log_warning("server", "%s", text);
        set_progress(b, text, options->plugin);
        sleep_ns(pause_ns);
        pause_ns = 2 * pause_ns < RETRY_MAX_NS ? 2 * pause_ns : RETRY_MAX_NS;
    }
}

static device_pjrt_options options_of(const config *c, const char *plugin)
{
    return (device_pjrt_options){.plugin = plugin,
                                 .cache_folder = c->repository.load.cache_folder,
                                 .is_cache_only = c->cache_only,
                                 .memory_bytes = c->device_memory_bytes};
}

/* "cpu", or every device of "pjrt:PLUGIN.so". */
static status start_device(serve_backend *b, const char *name)
{
    const config *c = b->config;
    status failure;
    int count = 1;
    if (strcmp(name, "cpu") == 0) {
        const device_memory memory = server_device_memory(b->edge);
        device_cpu_options options = {.threads = c->cpu_threads,
                                      .level = c->cpu_level,
                                      .memory = &memory,
                                      .cache_folder = c->repository.load.cache_folder};
        failure = device_cpu_create_with(&options, &b->devices[b->device_count]);
    } else if (strncmp(name, "pjrt:", 5) == 0) {
        device_pjrt_options options = options_of(c, name + 5);
        if (b->device_count + DEVICE_PJRT_DEVICES_MAX >= DEVICES_MAX)
            return status_fail(STATUS_TOO_LARGE, "more than %d devices", DEVICES_MAX);
        failure = start_plugin(b, &options, &count);
    } else {
        return status_fail(STATUS_UNSUPPORTED, "\"%s\" is not a device: use cpu or pjrt:PLUGIN.so",
                           name);
    }
    if (!failure)
        b->device_count += count;
    return failure;
}

/* The server goes on without the plugin; its devices may come later. */
static void do_without(serve_backend *b, const char *plugin, status failure)
{
    char why[STATUS_MESSAGE_BYTES_MAX];
    snprintf(why, sizeof why, "%s", status_message());
    log_warning("server", "serving without a device: %s", why);
    device_watch_hide_folder(why, sizeof why, plugin);
    memcpy(b->no_device_reason, why, sizeof why);
    server_set_missing(b->edge, why);
    if (b->config->device_retry_ns == 0 || b->device_count + DEVICE_PJRT_RESERVED >= DEVICES_MAX)
        return;
    device_watch_missing *m = &b->missing[b->missing_count++];
    *m = (device_watch_missing){.plugin = plugin,
                                .first = b->device_count,
                                .count = DEVICE_PJRT_RESERVED,
                                .is_permanent = failure != STATUS_UNAVAILABLE};
    memcpy(m->why, why, sizeof why);
    device_pjrt_options options = options_of(b->config, plugin);
    device_pjrt_reserve(&options, b->device_count, DEVICE_PJRT_RESERVED,
                        &b->devices[b->device_count]);
    b->device_count += DEVICE_PJRT_RESERVED;
}

static status start_devices(serve_backend *b)
{
    const config *c = b->config;
    for (int i = 0; i < c->device_count; i++) {
        if (strcmp(c->devices[i], "cpu") == 0)
            continue; /* the scheduler wants the CPU last */
        char text[256];
        snprintf(text, sizeof text, "starting %.240s", c->devices[i]);
        const char *colon = strchr(c->devices[i], ':'), *plugin = colon ? colon + 1 : c->devices[i];
        set_progress(b, text, plugin);
        status failure = start_device(b, c->devices[i]);
        if (failure && c->require_device)
            return failure;
        if (failure)
            do_without(b, plugin, failure);
    }
    server_set_progress(b->edge, "starting cpu");
    return start_device(b, "cpu");
}

static status start_watch(serve_backend *b)
{
    device_watch_options options = {.config = b->config,
                                    .edge = b->edge,
                                    .devices = b->devices,
                                    .device_count = b->device_count,
                                    .models = b->models,
                                    .work = b->work,
                                    .missing = b->missing,
                                    .missing_count = b->missing_count};
    return device_watch_start(&options, &b->watch);
}

static void set_prices(serve_backend *b)
{
    for (int i = 0; i < b->device_count; i++)
        b->devices[i]->cost_per_hour = i + 1 < b->device_count ? b->config->device_cost_per_hour
                                                               : b->config->cpu_cost_per_hour;
}

static status start_scheduler(serve_backend *b)
{
    const server_options *o = &b->config->server;
    scheduler_options options = b->config->scheduler;
    options.tenant_count = o->tenant_count + 1;
    options.tenant_weights = b->tenant_weights;
    for (int i = 0; i <= o->tenant_count; i++)
        b->tenant_weights[i] = server_tenant_of(o, i)->weight;
    return scheduler_create(&options, b->devices, b->device_count, &b->work);
}

/* What the server cannot do without. */
static void exit_with_failure(const char *what)
{
    log_error("server", "%s: %s", what, status_message());
    _exit(1);
}

/* Devices, models that begin to load, scheduler; then the edge serves. */
static void open_all(serve_backend *b)
{
    if (start_devices(b))
        exit_with_failure("device");
    set_prices(b);
    b->model_options = b->config->repository;
    for (int i = 0; i < b->missing_count; i++)
        b->model_options.waits_for_device |= !b->missing[i].is_permanent;
    if (b->no_device_reason[0] != 0)
        b->model_options.load.no_device_reason = b->no_device_reason;
    if (repository_create(&b->model_options, b->devices, b->device_count, &b->models))
        exit_with_failure("models");
    if (start_scheduler(b))
        exit_with_failure("scheduler");
    repository_wait_names(b->models); /* before, a model would be answered with 404 */
    server_open(b->edge, &(server_backend){.models = b->models,
                                           .work = b->work,
                                           .devices = b->devices,
                                           .device_count = b->device_count});
    if (start_watch(b))
        exit_with_failure("devices");
}

static void *start_all(void *context)
{
    serve_backend *b = context;
    if (!server_is_open(b->edge))
        open_all(b);
    status failure = repository_wait(b->models);
    if (failure && failure != STATUS_CANCELLED && /* that is serve_backend_stop() */
        repository_must_exit(b->models))
        exit_with_failure("models");
    return NULL;
}

static bool has_plugins(const config *c)
{
    for (int i = 0; i < c->device_count; i++) {
        if (strcmp(c->devices[i], "cpu") != 0)
            return true;
    }
    return false;
}

status serve_backend_start(const config *c, server *edge, serve_backend **out)
{
    serve_backend *b = calloc(1, sizeof *b);
    assert(b != NULL);
    b->config = c;
    b->edge = edge;
    /* A plugin may take minutes, and signals are waited for on this thread; the CPU takes none. */
    if (!has_plugins(c))
        open_all(b);
    if (pthread_create(&b->thread, NULL, start_all, b) != 0) {
        status failure =
            status_fail(STATUS_IO, "cannot create the thread that starts devices and models");
        if (server_is_open(edge))
            exit_with_failure("devices and models");
        free(b);
        return failure;
    }
    *out = b;
    return STATUS_OK;
}

void serve_backend_stop(serve_backend *b)
{
    if (!server_is_open(b->edge)) {
        log_info("server", "stopped by a signal before the devices had started");
        _exit(0); /* opening a plugin may take long; its process ends with this one */
    }
    repository_stop(b->models);
    pthread_join(b->thread, NULL);
    if (!device_watch_stop(b->watch)) {
        log_info("server", "stopped while a plugin was being opened");
        _exit(0); /* its process ends with this one */
    }
    /* In this order: jobs hold models, and models hold programs of devices. */
    scheduler_destroy(b->work);
    server_collect(b->edge);
    repository_destroy(b->models);
    for (int i = 0; i < b->device_count; i++)
        b->devices[i]->interface->destroy(b->devices[i]);
    free(b);
}
