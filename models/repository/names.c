#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text/replace.h"
#include "models/loading/load.h"
#include "models/loading/model_files.h"
#include "models/loading/warm_up.h"
#include "models/repository/internal.h"
#include "models/start/deferred_buckets.h"

/* The loading thread's: the served names, their versions on disk and in memory, and publishing them
 * to lookups. */

static void report(void *context, const char *text)
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

/* The entry of a version that did not load, with the failure just told. */
static void set_reason(const repository *r, const served_name *n, repository_entry *entry)
{
    char text[STATUS_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text, "%s", status_message());
    repository_hide_folders(r, n, text, sizeof text);
    snprintf(entry->reason, sizeof entry->reason, "%.255s", text);
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
    return false;
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

/* Gives the model an index and a serial; destroys it when there is no index left. */
static status register_model(repository *r, model *m)
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

void repository_publish(repository *r)
{
    int entries = 0, labels = 0;
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
    snapshot_replace(&r->box, s);
    repository_free_unused(r);
}

void repository_release_versions(served *versions, int count)
{
    for (int i = 0; i < count; i++)
        if (versions[i].model != NULL)
            model_release(versions[i].model);
}

static int compare_versions(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Folders named by a positive number, highest first. */
static int find_versions(const char *path, int64_t versions[REPOSITORY_VERSIONS_MAX])
{
    int count = 0;
    DIR *d = opendir(path);
    for (struct dirent *e;
         d != NULL && count < REPOSITORY_VERSIONS_MAX && (e = readdir(d)) != NULL;) {
        char *end;
        errno = 0;
        long long version = strtoll(e->d_name, &end, 10);
        char below[REPOSITORY_PATH_BYTES_MAX + 300];
        struct stat s;
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && *end == 0 && errno == 0 &&
            stat(below, &s) == 0 && S_ISDIR(s.st_mode))
            versions[count++] = version;
    }
    if (d != NULL)
        closedir(d);
    qsort(versions, (size_t)count, sizeof *versions, compare_versions);
    return count;
}

static status load_version(repository *r, const served_name *n, int64_t version, bool is_own_folder,
                           served *out)
{
    char folder[REPOSITORY_PATH_BYTES_MAX + 32], file[REPOSITORY_PATH_BYTES_MAX + 64];
    if (is_own_folder)
        snprintf(folder, sizeof folder, "%s", n->path);
    else
        snprintf(folder, sizeof folder, "%s/%lld", n->path, (long long)version);
    /* A version's own model.json replaces that of the name. */
    snprintf(file, sizeof file, "%s/model.json", folder);
    if (access(file, F_OK) != 0)
        snprintf(file, sizeof file, "%s/model.json", n->path);
    bool has_precision = n->own != NULL && n->own->has_precision;
    load_request request = {.name = n->name,
                            .version = version,
                            .folder = folder,
                            .manifest = file,
                            .options = &r->options.load,
                            .precision = has_precision ? &n->own->precision : NULL,
                            .devices = r->devices,
                            .device_count = r->device_count,
                            .report = report,
                            .context = r,
                            .cancel = &r->load_token};
    *out = (served){.entry = {.version = version, .state = MODEL_FAILED}};
    snprintf(out->entry.name, sizeof out->entry.name, "%s", n->name);
    model *m;
    status failure = load_model(&request, &m);
    if (!failure)
        failure = register_model(r, m);
    if (failure == STATUS_DEADLINE_EXCEEDED)
        status_fail(failure, "it was not loaded within %.3g s, the time limit of a load",
                    (double)r->options.load_limit_ns / 1e9);
    if (failure) {
        status_prefix(failure, "model \"%s\" version %lld", n->name, (long long)version);
        set_reason(r, n, &out->entry);
        if (failure == STATUS_CANCELLED)
            log_info("models", "%s", status_message());
        else
            log_error("models", "%s", status_message());
        return failure;
    }
    out->model = m;
    out->entry.state = MODEL_READY;
    return STATUS_OK;
}

static void read_labels(served_name *n)
{
    char path[REPOSITORY_PATH_BYTES_MAX + 32];
    manifest file;
    snprintf(path, sizeof path, "%s/model.json", n->path);
    n->label_count = 0;
    if (manifest_read(path, &file) != STATUS_OK)
        return;
    for (int i = 0; i < file.label_count; i++) {
        snapshot_label *l = &n->labels[n->label_count++];
        *l = (snapshot_label){.version = file.labels[i].version};
        memcpy(l->name, n->name, sizeof l->name);
        snprintf(l->label, sizeof l->label, "%s", file.labels[i].name);
    }
    manifest_dispose(&file);
}

status repository_load_name(repository *r, served_name *n)
{
    int64_t versions[REPOSITORY_VERSIONS_MAX];
    int count = 1;
    struct stat s;
    status failure = STATUS_OK;
    bool is_own_folder = false;
    if (stat(n->path, &s) != 0)
        failure = status_fail(STATUS_NOT_FOUND, "model \"%s\": %s: %s", n->name, n->path,
                              strerror(errno));
    else
        is_own_folder = S_ISREG(s.st_mode) || model_files_exist(n->path);
    if (!failure && !is_own_folder) {
        count = find_versions(n->path, versions);
        if (count == 0)
            failure = status_fail(STATUS_NOT_FOUND,
                                  "model \"%s\": %s holds neither a model file nor a folder "
                                  "named by a version number%s",
                                  n->name, n->path, model_files_hint(n->path));
    } else {
        versions[0] = 1;
    }
    served *fresh = calloc(REPOSITORY_VERSIONS_MAX, sizeof *fresh);
    if (!failure && fresh == NULL)
        failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for model \"%s\"", n->name);
    if (failure) {
        free(fresh);
        if (n->version_count == 0 || n->versions[0].model == NULL) {
            n->version_count = 1;
            n->versions[0] = (served){.entry = {.version = 1, .state = MODEL_FAILED}};
            snprintf(n->versions[0].entry.name, sizeof n->name, "%s", n->name);
            set_reason(r, n, &n->versions[0].entry);
        }
        log_error("models", "%s", status_message());
        repository_publish(r);
        return failure;
    }
    char error[STATUS_MESSAGE_BYTES_MAX] = "";
    for (int i = 0; i < count; i++) {
        status one = load_version(r, n, versions[i], is_own_folder, &fresh[i]);
        if (one && !failure) {
            failure = one;
            snprintf(error, sizeof error, "%s", status_message());
        }
        for (int k = 0; one && k < n->version_count; k++) {
            if (n->versions[k].entry.version == versions[i] && n->versions[k].model != NULL) {
                fresh[i] = n->versions[k];
                model_retain(fresh[i].model);
            }
        }
    }
    repository_release_versions(n->versions, n->version_count);
    memcpy(n->versions, fresh, (size_t)count * sizeof *fresh);
    n->version_count = count;
    free(fresh);
    read_labels(n);
    repository_publish(r);
    return failure ? status_fail(failure, "%s", error) : STATUS_OK;
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

status repository_scan(repository *r)
{
    struct dirent **list;
    served_name *n;
    int count = scandir(r->options.folder, &list, NULL, alphasort);
    status failure = STATUS_OK;
    if (count < 0)
        return status_fail(STATUS_NOT_FOUND, "repository %s: %s", r->options.folder,
                           strerror(errno));
    for (int i = 0; i < count; i++) {
        char path[REPOSITORY_PATH_BYTES_MAX];
        struct stat s;
        const char *name = list[i]->d_name;
        int bytes = snprintf(path, sizeof path, "%s/%s", r->options.folder, name);
        /* A name given by --model hides a folder of that name. */
        if (!failure && name[0] != '.' && bytes < (int)sizeof path && stat(path, &s) == 0 &&
            S_ISDIR(s.st_mode) && repository_find_name(r, name) == NULL)
            failure = repository_add_name(r, name, path, NULL, &n);
        free(list[i]);
    }
    free(list);
    return failure;
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
    repository_publish(r);
    return STATUS_OK;
}
