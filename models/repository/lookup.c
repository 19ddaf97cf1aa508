#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/repository/internal.h"

/* Lookups: any thread. Only the two waits and progress texts take the lock. */

static bool is_named(const char *name, const char *text, size_t bytes)
{
    return strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

static status find_in(const snapshot *s, const char *name, size_t bytes, int64_t version,
                      const model **out)
{
    const snapshot_entry *unready = NULL;
    bool is_known = false;
    if (s == NULL)
        return status_fail(STATUS_UNAVAILABLE, "the server is starting: its models are not known");
    for (int i = 0; i < s->entry_count; i++) {
        const snapshot_entry *e = &s->entries[i];
        if (!is_named(e->entry.name, name, bytes))
            continue;
        is_known = true;
        if (version != 0 && e->entry.version != version)
            continue;
        if (e->model != NULL) {
            model_retain(e->model);
            *out = e->model;
            return STATUS_OK;
        }
        if (unready == NULL)
            unready = e;
    }
    if (unready != NULL) {
        static const char *const states[] = {"is loading", "is ready", "failed to load",
                                             "is unloaded", "is no model"};
        return status_fail(STATUS_UNAVAILABLE, "model \"%.*s\" version %lld %s%s%s", (int)bytes,
                           name, (long long)unready->entry.version, states[unready->entry.state],
                           unready->entry.reason[0] ? ": " : "", unready->entry.reason);
    }
    if (is_known)
        return status_fail(STATUS_NOT_FOUND, "model \"%.*s\" has no version %lld", (int)bytes, name,
                           (long long)version);
    return status_fail(STATUS_NOT_FOUND, "no model \"%.*s\"", (int)bytes, name);
}

status repository_find(repository *r, const char *name, size_t name_bytes, int64_t version,
                       const model **out)
{
    int token;
    const snapshot *s = snapshot_enter(&r->box, &token);
    status failure = find_in(s, name, name_bytes, version, out);
    snapshot_leave(&r->box, token);
    return failure;
}

status repository_find_label(repository *r, const char *name, size_t name_bytes, const char *label,
                             size_t label_bytes, const model **out)
{
    int token;
    const snapshot *s = snapshot_enter(&r->box, &token);
    int64_t version = 0;
    for (int i = 0; s != NULL && i < s->label_count; i++)
        if (is_named(s->labels[i].name, name, name_bytes) &&
            is_named(s->labels[i].label, label, label_bytes))
            version = s->labels[i].version;
    const model *any;
    status failure = find_in(s, name, name_bytes, version, version ? out : &any);
    if (!failure && version == 0) {
        model_release(any);
        failure = STATUS_NOT_FOUND;
    }
    if (failure == STATUS_NOT_FOUND && version == 0)
        status_fail(STATUS_NOT_FOUND, "model \"%.*s\" has no label \"%.*s\"", (int)name_bytes, name,
                    (int)label_bytes, label);
    snapshot_leave(&r->box, token);
    return failure;
}

int repository_list(repository *r, repository_entry *out, int capacity)
{
    int token;
    const snapshot *s = snapshot_enter(&r->box, &token);
    int count = s ? s->entry_count : 0;
    for (int i = 0; i < count && i < capacity; i++)
        out[i] = s->entries[i].entry;
    snapshot_leave(&r->box, token);
    return count;
}

repository_entry *repository_list_all(repository *r, int *count)
{
    int token;
    const snapshot *s = snapshot_enter(&r->box, &token);
    int all = s ? s->entry_count : 0;
    repository_entry *out = malloc((size_t)(all > 0 ? all : 1) * sizeof *out);
    for (int i = 0; out != NULL && i < all; i++)
        out[i] = s->entries[i].entry;
    snapshot_leave(&r->box, token);
    *count = out != NULL ? all : 0;
    return out;
}

int repository_count(repository *r, model_state state)
{
    int token, count = 0;
    const snapshot *s = snapshot_enter(&r->box, &token);
    for (int i = 0; s != NULL && i < s->entry_count; i++)
        count += s->entries[i].entry.state == state;
    snapshot_leave(&r->box, token);
    int ignored = atomic_load(&r->ignored_total);
    return state == MODEL_IGNORED && ignored > count ? ignored : count;
}

bool repository_is_starting(repository *r)
{
    int token;
    const snapshot *s = snapshot_enter(&r->box, &token);
    bool is_starting = s == NULL;
    for (int i = 0; s != NULL && i < s->entry_count; i++)
        is_starting |= s->entries[i].entry.state == MODEL_LOADING;
    snapshot_leave(&r->box, token);
    return is_starting;
}

static bool is_unavailable(const repository_entry *e)
{
    return e->state == MODEL_FAILED || e->state == MODEL_IGNORED;
}

int repository_unavailable(repository *r, repository_entry *out, int capacity)
{
    int token, count = 0;
    const snapshot *s = snapshot_enter(&r->box, &token);
    for (int i = 0; s != NULL && i < s->entry_count; i++) {
        if (!is_unavailable(&s->entries[i].entry))
            continue;
        if (count < capacity)
            out[count] = s->entries[i].entry;
        count++;
    }
    snapshot_leave(&r->box, token);
    return count;
}

int repository_ready_models(repository *r, const model **out, int capacity)
{
    int token, count = 0;
    const snapshot *s = snapshot_enter(&r->box, &token);
    for (int i = 0; s != NULL && i < s->entry_count; i++) {
        const model *m = s->entries[i].model;
        if (m == NULL)
            continue;
        if (count < capacity) {
            model_retain(m);
            out[count] = m;
        }
        count++;
    }
    snapshot_leave(&r->box, token);
    return count;
}

bool repository_is_ready(repository *r, char *progress, size_t progress_bytes)
{
    if (atomic_load(&r->is_ready))
        return true;
    if (progress != NULL && progress_bytes > 0) {
        pthread_mutex_lock(&r->mutex);
        snprintf(progress, progress_bytes, "%s", r->progress);
        pthread_mutex_unlock(&r->mutex);
    }
    return false;
}

bool repository_must_exit(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    bool must_exit = r->must_exit;
    pthread_mutex_unlock(&r->mutex);
    return must_exit;
}

void repository_wait_names(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    while (!r->has_names)
        pthread_cond_wait(&r->changed, &r->mutex);
    pthread_mutex_unlock(&r->mutex);
}

status repository_wait(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    while (!r->has_loaded)
        pthread_cond_wait(&r->changed, &r->mutex);
    status failure = r->first_failure;
    if (failure)
        status_fail(failure, "%s", r->first_error);
    pthread_mutex_unlock(&r->mutex);
    return failure;
}
