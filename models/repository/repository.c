#include "models/repository/repository.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "models/manifest/triton.h"
#include "models/repository/internal.h"

/* The loading thread: everything at start, then one command after another. */

#define ORDERS_MAX 16
#define SECOND_POLL_NS 1000000000u

const char *repository_load_result_name(repository_load_result result)
{
    static const char *const names[REPOSITORY_LOAD_RESULTS] = {"ok", "failed", "time_limit",
                                                               "cancelled", "rejected"};
    return names[result];
}

static void count_load(repository *r, status result)
{
    repository_load_result as = result == STATUS_OK                  ? REPOSITORY_LOAD_OK
                                : result == STATUS_CANCELLED         ? REPOSITORY_LOAD_CANCELLED
                                : result == STATUS_DEADLINE_EXCEEDED ? REPOSITORY_LOAD_TIME_LIMIT
                                                                     : REPOSITORY_LOAD_FAILED;
    atomic_fetch_add_explicit(&r->loads[as], 1, memory_order_relaxed);
}

void repository_note_failure(repository *r, status failure)
{
    pthread_mutex_lock(&r->mutex);
    if (!r->first_failure) {
        r->first_failure = failure;
        snprintf(r->first_error, sizeof r->first_error, "%s", status_message());
    }
    pthread_mutex_unlock(&r->mutex);
}

/* Under the mutex, before a load begins that somebody waits for. */
static void begin_load(repository *r)
{
    uint64_t limit_ns = r->options.load_limit_ns;
    r->load_token.deadline_ns = limit_ns ? clock_now_ns() + limit_ns : 0;
    atomic_store(&r->load_token.is_requested, r->is_stopping);
}

status repository_load_now(repository *r, served_name *n, bool only_changed)
{
    pthread_mutex_lock(&r->mutex);
    begin_load(r);
    pthread_mutex_unlock(&r->mutex);
    status failure = repository_load_name(r, n, only_changed);
    count_load(r, failure);
    return failure;
}

/* At the start a folder that may be a model is taken for one. */
static void on_found(repository *r, const char *name, const char *path)
{
    served_name *n;
    if (repository_add_name(r, name, path, NULL, &n))
        log_error("models", "repository: %s", status_message());
}

/* The models that the options name, and those of the folder. False: the options are wrong. */
static bool add_names(repository *r)
{
    served_name *n;
    bool is_right = true;
    for (int i = 0; i < r->options.model_count; i++) {
        const repository_model_options *o = &r->options.models[i];
        status failure = repository_add_name(r, o->name, o->path, o, &n);
        if (failure)
            repository_note_failure(r, failure);
        is_right &= !failure;
    }
    status failure = r->options.folder ? repository_scan(r, on_found) : STATUS_OK;
    if (failure)
        repository_note_failure(r, failure);
    return is_right && !failure;
}

static void load_everything(repository *r)
{
    bool is_right = add_names(r);
    status failure = STATUS_OK;
    repository_publish(r);
    pthread_mutex_lock(&r->mutex);
    r->has_names = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    for (int i = 0; i < r->name_count && failure != STATUS_CANCELLED; i++) {
        failure = repository_load_now(r, r->names[i], false);
        if (failure)
            repository_note_failure(r, failure);
    }
    r->is_start_over = true;
    repository_publish(r);
    bool has_ready = repository_ready_models(r, NULL, 0) > 0;
    pthread_mutex_lock(&r->mutex);
    bool has_failed = r->first_failure != STATUS_OK;
    bool may_come = r->first_failure == STATUS_UNAVAILABLE && r->options.waits_for_device;
    r->has_loaded = true;
    r->must_exit = !is_right || (has_failed && r->options.exits_on_error) ||
                   (has_failed && !has_ready && r->options.folder == NULL && !may_come);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

/* With the settings that the client sent, or, without any, with those on disk. Takes `config`. What
 * fails leaves the settings that were. */
static status load_name_with(repository *r, served_name *n, char *config)
{
    char *before = n->config;
    n->config = config;
    status failure = repository_load_name(r, n, false);
    if (failure) {
        n->config = before;
        before = config;
    }
    free(before);
    return failure;
}

static status load(repository *r, const repository_command *c)
{
    const char *name = c->name;
    served_name *n = repository_find_name(r, name);
    char *config = NULL;
    status failure = STATUS_OK;
    if (c->config != NULL)
        failure = triton_read_config(c->config, strlen(c->config), &config);
    if (failure)
        return status_prefix(failure, "model \"%s\"", name);
    if (n != NULL)
        return load_name_with(r, n, config);
    char path[REPOSITORY_PATH_BYTES_MAX];
    struct stat s;
    /* The name comes from a client: it must not leave the folder. */
    if (r->options.folder == NULL || strchr(name, '/') != NULL || name[0] == '.' ||
        snprintf(path, sizeof path, "%s/%s", r->options.folder, name) >= (int)sizeof path ||
        stat(path, &s) != 0 || !S_ISDIR(s.st_mode)) {
        free(config);
        return status_fail(STATUS_NOT_FOUND, "no model \"%s\" in the repository", name);
    }
    /* SageMaker unpacks a model into NAME/model. */
    char inner[REPOSITORY_PATH_BYTES_MAX];
    if (!repository_holds_model(path) &&
        snprintf(inner, sizeof inner, "%s/model", path) < (int)sizeof inner &&
        repository_holds_model(inner))
        strcpy(path, inner);
    repository_forget_ignored(r, name);
    failure = repository_add_name(r, name, path, NULL, &n);
    if (failure) {
        free(config);
        return failure;
    }
    return load_name_with(r, n, config);
}

static void tell(repository_order *orders, status result, const char *error)
{
    for (repository_order *o = orders, *next; o != NULL; o = next) {
        next = o->next;
        o->on_done(o, result, error);
    }
}

static void execute(repository *r, const repository_command *c, bool stop)
{
    status result = stop         ? status_fail(STATUS_UNAVAILABLE, "the server is stopping")
                    : c->is_load ? load(r, c)
                                 : repository_unload_name(r, c->name);
    if (c->is_load && !stop)
        count_load(r, result);
    char error[STATUS_MESSAGE_BYTES_MAX] = "";
    if (result) {
        snprintf(error, sizeof error, "%s", status_message());
        repository_hide_folders(r, repository_find_name(r, c->name), error, sizeof error);
    }
    pthread_mutex_lock(&r->mutex);
    repository_order *orders = repository_commands_finish(&r->commands);
    pthread_mutex_unlock(&r->mutex);
    tell(orders, result, error);
}

/* One at a time: a load that was ordered meanwhile goes before the next. */
static void ask_for_wanted(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    r->has_wanted = true;
    pthread_mutex_unlock(&r->mutex);
}

static void poll_disk(repository *r, bool is_asked_for)
{
    uint64_t poll_ns = r->options.poll_ns, pause_ns = poll_ns;
    bool is_unsettled = repository_poll(r);
    if (is_unsettled && (is_asked_for || poll_ns == 0))
        pause_ns = poll_ns > 0 && poll_ns < SECOND_POLL_NS ? poll_ns : SECOND_POLL_NS;
    r->next_poll_ns = pause_ns > 0 ? clock_now_ns() + pause_ns : 0;
}

/* Under the mutex. Sleeps until there is something to do, or the disk is to be looked at. */
static void wait_for_work(repository *r)
{
    while (r->commands.first == NULL && r->unused_count == 0 && !r->has_wanted && !r->is_stopping &&
           !r->wants_poll && r->joined_end == 0) {
        if (r->next_poll_ns == 0) {
            pthread_cond_wait(&r->changed, &r->mutex);
            continue;
        }
        struct timespec until = {.tv_sec = (time_t)(r->next_poll_ns / 1000000000),
                                 .tv_nsec = (long)(r->next_poll_ns % 1000000000)};
        if (pthread_cond_timedwait(&r->changed, &r->mutex, &until) == ETIMEDOUT)
            return;
    }
}

static void *loading_main(void *repository_pointer)
{
    repository *r = repository_pointer;
    pthread_setname_np(pthread_self(), "loading");
    load_everything(r);
    r->next_poll_ns = r->options.poll_ns > 0 ? clock_now_ns() + r->options.poll_ns : 0;
    for (;;) {
        repository_free_unused(r);
        pthread_mutex_lock(&r->mutex);
        wait_for_work(r);
        bool stop = r->is_stopping, has_wanted = r->has_wanted, wants_poll = r->wants_poll;
        const repository_command *c = repository_commands_begin(&r->commands);
        bool polls = c == NULL && !stop && r->joined_end == 0 &&
                     (wants_poll || (r->next_poll_ns > 0 && clock_now_ns() >= r->next_poll_ns));
        r->has_wanted =
            has_wanted && (c != NULL || polls || r->joined_end > 0); /* loads go first */
        r->wants_poll = wants_poll && !polls;
        int joined_first = r->joined_first, joined_end = r->joined_end;
        if (c == NULL)
            r->joined_end = 0;
        begin_load(r);
        pthread_mutex_unlock(&r->mutex);
        if (c != NULL)
            execute(r, c, stop);
        else if (stop)
            return NULL;
        else if (joined_end > 0)
            repository_join(r, joined_first, joined_end);
        else if (polls)
            poll_disk(r, wants_poll);
        else if (has_wanted && repository_make_wanted(r))
            ask_for_wanted(r);
    }
}

void repository_rescan(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    r->wants_poll = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

void repository_join_devices(repository *r, int first, int count)
{
    int end = first + count;
    assert(first >= 0 && count > 0 && end < r->device_count);
    pthread_mutex_lock(&r->mutex);
    bool is_alone = r->joined_end == 0;
    r->joined_first = is_alone || first < r->joined_first ? first : r->joined_first;
    r->joined_end = is_alone || end > r->joined_end ? end : r->joined_end;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

static status add(repository *r, bool is_load, const char *name, const char *config,
                  repository_order *o)
{
    pthread_mutex_lock(&r->mutex);
    status failure = r->is_stopping
                         ? status_fail(STATUS_UNAVAILABLE, "the server is stopping")
                         : repository_commands_add(&r->commands, is_load, name, config, o);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    if (failure == STATUS_RESOURCE_EXHAUSTED)
        atomic_fetch_add_explicit(&r->loads[REPOSITORY_LOAD_REJECTED], 1, memory_order_relaxed);
    return failure;
}

status repository_load(repository *r, const char *name, repository_order *o)
{
    return add(r, true, name, NULL, o);
}

status repository_load_with(repository *r, const char *name, const char *config,
                            repository_order *o)
{
    return add(r, true, name, config, o);
}

status repository_unload(repository *r, const char *name, repository_order *o)
{
    return add(r, false, name, NULL, o);
}

void repository_cancel(repository *r, repository_order *o)
{
    bool is_running_unwanted;
    pthread_mutex_lock(&r->mutex);
    bool is_out = repository_commands_cancel(&r->commands, o, &is_running_unwanted);
    if (is_running_unwanted)
        cancel_request(&r->load_token);
    pthread_mutex_unlock(&r->mutex);
    if (is_out)
        o->on_done(o, STATUS_CANCELLED, "cancelled");
}

int repository_waiting(repository *r, bool *is_one_under_way)
{
    pthread_mutex_lock(&r->mutex);
    int count = r->commands.count;
    *is_one_under_way = r->commands.running != NULL || !r->has_loaded;
    pthread_mutex_unlock(&r->mutex);
    return count;
}

uint64_t repository_loads(repository *r, repository_load_result result)
{
    return atomic_load_explicit(&r->loads[result], memory_order_relaxed);
}

void repository_stop(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    r->is_stopping = true;
    cancel_request(&r->load_token);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

status repository_create(const repository_options *options, device *const *devices,
                         int device_count, repository **out)
{
    assert(device_count > 0);
    repository *r = calloc(1, sizeof *r);
    if (r == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the repository");
    r->options = *options;
    r->options.load.copies_files = options->load.copies_files || options->poll_ns > 0;
    r->devices = devices;
    r->device_count = device_count;
    r->commands.count_max = options->orders_max ? options->orders_max : ORDERS_MAX;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_condattr_t monotonic; /* as clock_now_ns() */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    snprintf(r->progress, sizeof r->progress, "starting");
    if (pthread_create(&r->thread, NULL, loading_main, r) != 0) {
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->mutex);
        free(r);
        return status_fail(STATUS_RESOURCE_EXHAUSTED, "cannot start the loading thread");
    }
    *out = r;
    return STATUS_OK;
}

void repository_destroy(repository *r)
{
    if (r == NULL)
        return;
    repository_stop(r);
    pthread_join(r->thread, NULL);
    for (int i = 0; i < r->name_count; i++) {
        repository_release_versions(r->names[i]->versions, r->names[i]->version_count);
        free(r->names[i]->config);
        free(r->names[i]);
    }
    r->name_count = 0;
    snapshot_replace(&r->box, NULL); /* releases the references of the last one */
    repository_free_unused(r);
    assert(r->models_alive == 0);
    free(r->names);
    free(r->ignored);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
