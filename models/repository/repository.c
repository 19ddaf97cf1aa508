#include "models/repository/repository.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "models/repository/internal.h"

/* The loading thread: everything at start, then one command after another. */

static void note_failure(repository *r, status failure)
{
    pthread_mutex_lock(&r->mutex);
    if (!r->first_failure) {
        r->first_failure = failure;
        snprintf(r->first_error, sizeof r->first_error, "%s", status_message());
    }
    pthread_mutex_unlock(&r->mutex);
}

static bool is_stopping(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    bool stop = r->is_stopping;
    pthread_mutex_unlock(&r->mutex);
    return stop;
}

static void load_everything(repository *r)
{
    served_name *n;
    for (int i = 0; i < r->options.model_count; i++) {
        const repository_model_options *o = &r->options.models[i];
        status failure = repository_add_name(r, o->name, o->path, o, &n);
        if (failure)
            note_failure(r, failure);
    }
    status failure = r->options.folder ? repository_scan(r) : STATUS_OK;
    if (failure)
        note_failure(r, failure);
    repository_publish(r);
    for (int i = 0; i < r->name_count && !is_stopping(r); i++) {
        failure = repository_load_name(r, r->names[i]);
        if (failure)
            note_failure(r, failure);
    }
    pthread_mutex_lock(&r->mutex);
    r->has_loaded = true;
    if (r->first_failure)
        snprintf(r->progress, sizeof r->progress, "%s", r->first_error);
    else
        atomic_store(&r->is_ready, true);
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

static status execute(repository *r, const repository_command *c)
{
    if (!c->is_load)
        return repository_unload_name(r, c->name);
    served_name *n = repository_find_name(r, c->name);
    if (n != NULL)
        return repository_load_name(r, n);
    char path[REPOSITORY_PATH_BYTES_MAX];
    struct stat s;
    /* The name comes from a client: it must not leave the folder. */
    if (r->options.folder == NULL || strchr(c->name, '/') != NULL || c->name[0] == '.' ||
        snprintf(path, sizeof path, "%s/%s", r->options.folder, c->name) >= (int)sizeof path ||
        stat(path, &s) != 0 || !S_ISDIR(s.st_mode))
        return status_fail(STATUS_NOT_FOUND, "no model \"%s\" in the repository", c->name);
    status failure = repository_add_name(r, c->name, path, NULL, &n);
    return failure ? failure : repository_load_name(r, n);
}

static void *loading_main(void *repository_pointer)
{
    repository *r = repository_pointer;
    pthread_setname_np(pthread_self(), "loading");
    load_everything(r);
    for (;;) {
        repository_free_unused(r);
        pthread_mutex_lock(&r->mutex);
        while (r->first == NULL && r->unused_count == 0 && !r->is_stopping)
            pthread_cond_wait(&r->changed, &r->mutex);
        repository_command *c = r->first;
        bool stop = r->is_stopping;
        if (c != NULL) {
            r->first = c->next;
            if (r->first == NULL)
                r->last = NULL;
        }
        pthread_mutex_unlock(&r->mutex);
        if (c != NULL) {
            status result =
                stop ? status_fail(STATUS_UNAVAILABLE, "the server is stopping") : execute(r, c);
            c->on_done(c->context, result, result ? status_message() : "");
            free(c);
        } else if (stop) {
            return NULL;
        }
    }
}

static void post(repository *r, bool is_load, const char *name,
                 void (*on_done)(void *context, status result, const char *error), void *context)
{
    repository_command *c = calloc(1, sizeof *c);
    if (c == NULL || strlen(name) >= sizeof c->name) {
        bool is_memory = c == NULL;
        free(c);
        on_done(context, is_memory ? STATUS_OUT_OF_MEMORY : STATUS_NOT_FOUND,
                is_memory ? "no memory for a command" : "no model of that name");
        return;
    }
    c->is_load = is_load;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->on_done = on_done;
    c->context = context;
    pthread_mutex_lock(&r->mutex);
    if (r->last != NULL)
        r->last->next = c;
    else
        r->first = c;
    r->last = c;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

void repository_load(repository *r, const char *name,
                     void (*on_done)(void *context, status result, const char *error),
                     void *context)
{
    post(r, true, name, on_done, context);
}

void repository_unload(repository *r, const char *name,
                       void (*on_done)(void *context, status result, const char *error),
                       void *context)
{
    post(r, false, name, on_done, context);
}

status repository_create(const repository_options *options, device *const *devices,
                         int device_count, repository **out)
{
    assert(device_count > 0);
    repository *r = calloc(1, sizeof *r);
    if (r == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the repository");
    r->options = *options;
    r->devices = devices;
    r->device_count = device_count;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->changed, NULL);
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
    pthread_mutex_lock(&r->mutex);
    r->is_stopping = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    pthread_join(r->thread, NULL);
    for (int i = 0; i < r->name_count; i++) {
        repository_release_versions(r->names[i]->versions, r->names[i]->version_count);
        free(r->names[i]);
    }
    r->name_count = 0;
    /* Publishes an empty snapshot, which releases the references of the last one. */
    repository_publish(r);
    free(atomic_load(&r->box.current)->labels);
    free(atomic_load(&r->box.current));
    repository_free_unused(r);
    assert(r->models_alive == 0);
    free(r->names);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
