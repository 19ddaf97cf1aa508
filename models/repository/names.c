#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text/replace.h"
#include "models/loading/cache_limit.h"
#include "models/loading/load.h"
#include "models/loading/warm_up.h"
#include "models/repository/internal.h"
#include "models/start/deferred_buckets.h"

/* The loading thread's: the served names, and publishing them to lookups. */

void repository_report(void *context, const char *text)
{
    repository *r = context;
    pthread_mutex_lock(&r->mutex);
    snprintf(r->progress, sizeof r->progress, "%s", text);
    pthread_mutex_unlock(&r->mutex);
}

void repository_hide_folders(const repository *r, const served_name *n, char *text, size_t bytes)
{
    const char *folder = r->options.folder, *cache = r->options.load.cache_folder;
    if (n != NULL && n->path[0] != 0)
        text_replace(text, bytes, n->path, n->name);
    if (folder != NULL && folder[0] != 0)
        text_replace(text, bytes, folder, "REPOSITORY");
    if (cache != NULL && cache[0] != 0)
        text_replace(text, bytes, cache, "CACHE");
}

/* The last reference of a model is gone. Any thread. */
static void on_unused(void *owner, model *m)
{
    repository *r = owner;
    pthread_mutex_lock(&r->mutex);
    r->unused[r->unused_count++] = m;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

/* Traffic wants a bucket that was deferred. Any thread. */
static void on_wanted(void *owner)
{
    repository *r = owner;
    pthread_mutex_lock(&r->mutex);
    r->has_wanted = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

bool repository_make_wanted(repository *r)
{
    for (int i = 0; i < r->name_count; i++)
        for (int v = 0; v < r->names[i]->version_count; v++)
            if (r->names[i]->versions[v].model != NULL &&
                warm_up_make_wanted(r->names[i]->versions[v].model))
                return true;
    for (int i = 0; i < r->name_count; i++)
        for (int v = 0; v < r->names[i]->version_count; v++)
            if (r->names[i]->versions[v].model != NULL)
                load_keep(r->names[i]->versions[v].model);
    cache_limit_apply(r->options.load.cache_folder, r->options.load.cache_bytes_max);
    return false;
}

/* Without a device it could not be loaded, perhaps. */
static bool has_failed(const served_name *n)
{
    for (int v = 0; v < n->version_count; v++)
        if (n->versions[v].entry.state == MODEL_FAILED && n->versions[v].model == NULL)
            return true;
    return false;
}

void repository_join(repository *r, int first, int end)
{
    for (int i = 0; i < r->name_count; i++) {
        served_name *n = r->names[i];
        if (has_failed(n)) {
            if (repository_load_now(r, n, false) == STATUS_OK)
                log_info("models", "%s: loaded, now that a device has come", n->name);
            continue;
        }
        for (int v = 0; v < n->version_count; v++)
            if (n->versions[v].model != NULL)
                warm_up_join(n->versions[v].model, first, end - first, &r->load_token);
    }
}

void repository_free_unused(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    while (r->unused_count > 0) {
        model *m = r->unused[--r->unused_count];
        pthread_mutex_unlock(&r->mutex);
        int index = m->index;
        load_destroy(m);
        pthread_mutex_lock(&r->mutex);
        r->index_taken[index] = false;
        r->models_alive--;
    }
    pthread_mutex_unlock(&r->mutex);
}

status repository_register_model(repository *r, model *m)
{
    pthread_mutex_lock(&r->mutex);
    int index = 0;
    while (index < MODEL_INDEX_MAX && r->index_taken[index])
        index++;
    if (index < MODEL_INDEX_MAX) {
        r->index_taken[index] = true;
        m->index = index;
        m->serial = ++r->serial;
        m->references->owner = r;
        m->references->on_unused = on_unused;
        if (m->deferred != NULL) {
            m->deferred->owner = r;
            m->deferred->on_wanted = on_wanted;
        }
        r->models_alive++;
    }
    pthread_mutex_unlock(&r->mutex);
    if (index < MODEL_INDEX_MAX)
        return STATUS_OK;
    load_destroy(m);
    return status_fail(STATUS_RESOURCE_EXHAUSTED, "over %d models are loaded", MODEL_INDEX_MAX);
}

/* The first that may be a model and has failed. */
static const repository_entry *find_failed(const repository *r)
{
    for (int i = 0; i < r->name_count; i++)
        for (int v = 0; v < r->names[i]->version_count; v++)
            if (r->names[i]->versions[v].entry.state == MODEL_FAILED)
                return &r->names[i]->versions[v].entry;
    for (int i = 0; i < r->ignored_count; i++)
        if (r->ignored[i].is_a_folder)
            return &r->ignored[i].entry;
    return NULL;
}

static bool has_ready(const served_name *n)
{
    for (int v = 0; n != NULL && v < n->version_count; v++)
        if (n->versions[v].model != NULL)
            return true;
    return false;
}

/* Are those of the list? If not, the first that is missing. */
static bool is_list_ready(repository *r, const char **missing)
{
    const repository_readiness *wanted = &r->options.readiness;
    for (int i = 0; i < wanted->name_count; i++) {
        *missing = wanted->names[i];
        if (!has_ready(repository_find_name(r, wanted->names[i])))
            return false;
    }
    return true;
}

/* Whether options.readiness is met; if not, what is missing. */
static bool is_met(repository *r, char *missing, size_t bytes)
{
    repository_readiness_kind kind = r->options.readiness.kind;
    const repository_entry *failed = find_failed(r);
    const char *name;
    int ready = 0;
    if (kind == READINESS_LIST) {
        bool is_ready = is_list_ready(r, &name);
        if (!is_ready)
            snprintf(missing, bytes, "model \"%s\" is not ready", name);
        return is_ready;
    }
    for (int i = 0; i < r->name_count; i++)
        ready += has_ready(r->names[i]);
    if (failed != NULL)
        snprintf(missing, bytes, "model \"%s\" is not ready: %s", failed->name, failed->reason);
    else
        snprintf(missing, bytes, "no model is ready");
    if (kind == READINESS_ANY)
        return ready > 0;
    return r->is_start_over && (failed == NULL || (kind == READINESS_STARTED && ready > 0));
}

static void update_readiness(repository *r)
{
    char missing[STATUS_MESSAGE_BYTES_MAX];
    bool is_ready = is_met(r, missing, sizeof missing);
    if (!is_ready && r->is_start_over)
        repository_report(r, missing);
    atomic_store(&r->is_ready, is_ready);
}

void repository_publish(repository *r)
{
    int entries = r->ignored_count, labels = 0;
    for (int i = 0; i < r->name_count; i++) {
        entries += r->names[i]->version_count;
        labels += r->names[i]->label_count;
    }
    snapshot *s = snapshot_create(entries, labels);
    if (s == NULL) {
        log_error("models", "no memory to publish %d models", entries);
        return;
    }
    snapshot_entry *e = s->entries;
    snapshot_label *l = s->labels;
    for (int i = 0; i < r->name_count; i++) {
        const served_name *n = r->names[i];
        for (int k = 0; k < n->version_count; k++, e++) {
            e->entry = n->versions[k].entry;
            e->model = n->versions[k].model;
            if (e->model != NULL)
                model_retain(e->model);
        }
        memcpy(l, n->labels, (size_t)n->label_count * sizeof *l);
        l += n->label_count;
    }
    for (int i = 0; i < r->ignored_count; i++, e++)
        e->entry = r->ignored[i].entry;
    update_readiness(r);
    snapshot_replace(&r->box, s);
    repository_free_unused(r);
}

void repository_release_versions(served *versions, int count)
{
    for (int i = 0; i < count; i++)
        if (versions[i].model != NULL)
            model_release(versions[i].model);
}

served_name *repository_find_name(repository *r, const char *name)
{
    for (int i = 0; i < r->name_count; i++)
        if (strcmp(r->names[i]->name, name) == 0)
            return r->names[i];
    return NULL;
}

status repository_add_name(repository *r, const char *name, const char *path,
                           const repository_model_options *own, served_name **out)
{
    if (strlen(name) == 0 || strlen(name) >= sizeof(*out)->name ||
        strlen(path) >= sizeof(*out)->path)
        return status_fail(STATUS_INVALID_ARGUMENT, "model name or path is empty or too long: %s",
                           name);
    if (repository_find_name(r, name) != NULL)
        return status_fail(STATUS_INVALID_ARGUMENT, "two models are called \"%s\"", name);
    if (r->name_count == r->name_capacity) {
        int capacity = r->name_capacity ? r->name_capacity * 2 : 16;
        served_name **names = realloc(r->names, (size_t)capacity * sizeof(served_name *));
        if (names == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for model names");
        r->names = names;
        r->name_capacity = capacity;
    }
    served_name *n = calloc(1, sizeof *n);
    if (n == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for model names");
    snprintf(n->name, sizeof n->name, "%s", name);
    snprintf(n->path, sizeof n->path, "%s", path);
    n->own = own;
    n->version_count = 1;
    n->versions[0] = (served){.entry = {.version = 1, .state = MODEL_LOADING}};
    snprintf(n->versions[0].entry.name, sizeof n->versions[0].entry.name, "%s", name);
    r->names[r->name_count++] = n;
    *out = n;
    return STATUS_OK;
}

void repository_remove_name(repository *r, served_name *n)
{
    int at = 0;
    while (r->names[at] != n)
        at++;
    memmove(&r->names[at], &r->names[at + 1], (size_t)(r->name_count - at - 1) * sizeof *r->names);
    r->name_count--;
    repository_release_versions(n->versions, n->version_count);
    free(n->config);
    free(n);
}

status repository_unload_name(repository *r, const char *name)
{
    served_name *n = repository_find_name(r, name);
    if (n == NULL)
        return status_fail(STATUS_NOT_FOUND, "no model \"%s\"", name);
    for (int i = 0; i < n->version_count; i++) {
        served *v = &n->versions[i];
        if (v->model != NULL)
            model_release(v->model);
        v->model = NULL;
        v->entry.state = MODEL_UNLOADED;
        snprintf(v->entry.reason, sizeof v->entry.reason, "unloaded on request");
    }
    n->is_unloaded = true;
    repository_publish(r);
    return STATUS_OK;
}
