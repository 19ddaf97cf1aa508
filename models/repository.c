#include "models/repository.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "models/load.h"
#include "models/manifest.h"
#include "models/snapshot.h"

#define VERSIONS_MAX 64 /* of one name */
#define PATH_BYTES_MAX 4096

typedef struct served {
    repository_entry entry;
    model *model;
} served;

/* One name. Belongs to the loading thread. */
typedef struct served_name {
    char name[128];
    char path[PATH_BYTES_MAX];
    const repository_model_options *own; /* or NULL */
    served versions[VERSIONS_MAX];       /* highest first */
    int version_count;
    snapshot_label labels[MANIFEST_LABELS_MAX];
    int label_count;
} served_name;

typedef struct command {
    struct command *next;
    bool is_load;
    char name[128];
    void (*on_done)(void *context, status result, const char *error);
    void *context;
} command;

struct repository {
    repository_options options;
    device *const *devices;
    int device_count;
    snapshot_box box;
    _Atomic bool is_ready;

    /* The loading thread's own. */
    served_name **names;
    int name_count, name_capacity;

    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows; never on the way of a request */
    pthread_cond_t changed;
    command *first, *last;
    model *unused; /* models whose last reference is gone, linked through their `owner` */
    bool is_stopping, has_loaded;
    status first_failure;
    char first_error[STATUS_MESSAGE_BYTES_MAX];
    char progress[STATUS_MESSAGE_BYTES_MAX];
    bool index_taken[MODEL_INDEX_MAX];
    uint64_t serial;
    int models_alive;
};

static void say(void *context, const char *text)
{
    repository *r = context;
    pthread_mutex_lock(&r->mutex);
    snprintf(r->progress, sizeof r->progress, "%s", text);
    pthread_mutex_unlock(&r->mutex);
}

/* ---- Lookups: any thread. ---- */

static bool is_named(const char *name, const char *text, size_t bytes)
{
    return strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

static status find_in(const snapshot *s, const char *name, size_t bytes, int64_t version,
                      model **out)
{
    const snapshot_entry *unready = NULL;
    bool is_known = false;
    for (int i = 0; s != NULL && i < s->entry_count; i++) {
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
                                             "is unloaded"};
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
                       model **out)
{
    int token;
    const snapshot *s = snapshot_enter(&r->box, &token);
    status failure = find_in(s, name, name_bytes, version, out);
    snapshot_leave(&r->box, token);
    return failure;
}

status repository_find_label(repository *r, const char *name, size_t name_bytes, const char *label,
                             size_t label_bytes, model **out)
{
    int token;
    const snapshot *s = snapshot_enter(&r->box, &token);
    int64_t version = 0;
    for (int i = 0; s != NULL && i < s->label_count; i++)
        if (is_named(s->labels[i].name, name, name_bytes) &&
            is_named(s->labels[i].label, label, label_bytes))
            version = s->labels[i].version;
    model *any;
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

int repository_ready_models(repository *r, model **out, int capacity)
{
    int token, count = 0;
    const snapshot *s = snapshot_enter(&r->box, &token);
    for (int i = 0; s != NULL && i < s->entry_count; i++) {
        model *m = s->entries[i].model;
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

/* ---- The loading thread. ---- */

/* The last reference of a model is gone; on whichever thread. */
static void on_unused(model *m)
{
    repository *r = m->owner;
    pthread_mutex_lock(&r->mutex);
    m->owner = r->unused;
    r->unused = m;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

static void bury(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    model *m = r->unused;
    r->unused = NULL;
    pthread_mutex_unlock(&r->mutex);
    while (m != NULL) {
        model *next = m->owner;
        int index = m->index;
        load_destroy(m);
        pthread_mutex_lock(&r->mutex);
        r->index_taken[index] = false;
        r->models_alive--;
        pthread_mutex_unlock(&r->mutex);
        m = next;
    }
}

static status adopt(repository *r, model *m)
{
    pthread_mutex_lock(&r->mutex);
    int index = 0;
    while (index < MODEL_INDEX_MAX && r->index_taken[index])
        index++;
    if (index < MODEL_INDEX_MAX) {
        r->index_taken[index] = true;
        m->index = index;
        m->serial = ++r->serial;
        m->owner = r;
        m->on_unused = on_unused;
        r->models_alive++;
    }
    pthread_mutex_unlock(&r->mutex);
    if (index < MODEL_INDEX_MAX)
        return STATUS_OK;
    load_destroy(m);
    return status_fail(STATUS_RESOURCE_EXHAUSTED, "over %d models are loaded", MODEL_INDEX_MAX);
}

static void publish(repository *r)
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
    bury(r);
}

static void release_versions(served *versions, int count)
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
static int find_versions(const char *path, int64_t versions[VERSIONS_MAX])
{
    int count = 0;
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && count < VERSIONS_MAX && (e = readdir(d)) != NULL;) {
        char *end;
        errno = 0;
        long long version = strtoll(e->d_name, &end, 10);
        char below[PATH_BYTES_MAX + 300];
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
    char folder[PATH_BYTES_MAX + 32], file[PATH_BYTES_MAX + 64];
    if (is_own_folder)
        snprintf(folder, sizeof folder, "%s", n->path);
    else
        snprintf(folder, sizeof folder, "%s/%lld", n->path, (long long)version);
    /* A version's own model.json, where it has one, takes the place of the name's. */
    snprintf(file, sizeof file, "%s/model.json", folder);
    if (access(file, F_OK) != 0)
        snprintf(file, sizeof file, "%s/model.json", n->path);
    load_request request = {.name = n->name,
                            .version = version,
                            .folder = folder,
                            .manifest = file,
                            .options = &r->options,
                            .own = n->own,
                            .devices = r->devices,
                            .device_count = r->device_count,
                            .say = say,
                            .context = r};
    *out = (served){.entry = {.version = version, .state = MODEL_FAILED}};
    snprintf(out->entry.name, sizeof out->entry.name, "%s", n->name);
    status failure = load_model(&request, &out->model);
    if (!failure) {
        failure = adopt(r, out->model);
        if (failure)
            out->model = NULL;
    }
    if (failure) {
        status_prefix(failure, "model \"%s\" version %lld", n->name, (long long)version);
        snprintf(out->entry.reason, sizeof out->entry.reason, "%.255s", status_message());
        log_error("models", "%s", status_message());
        return failure;
    }
    out->entry.state = MODEL_READY;
    return STATUS_OK;
}

static void read_labels(served_name *n)
{
    char path[PATH_BYTES_MAX + 32];
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

/* Loads all versions anew beside those that serve; only then do they take their place. A version
 * that fails leaves the one that served, if there is one. */
static status load_name(repository *r, served_name *n)
{
    int64_t versions[VERSIONS_MAX];
    int count = 1;
    struct stat s;
    status failure = STATUS_OK;
    bool is_own_folder = false;
    if (stat(n->path, &s) != 0)
        failure = status_fail(STATUS_NOT_FOUND, "model \"%s\": %s: %s", n->name, n->path,
                              strerror(errno));
    else
        is_own_folder = S_ISREG(s.st_mode) || load_has_model_file(n->path);
    if (!failure && !is_own_folder) {
        count = find_versions(n->path, versions);
        if (count == 0)
            failure = status_fail(STATUS_NOT_FOUND,
                                  "model \"%s\": %s holds neither a model file nor a folder "
                                  "named by a version number%s",
                                  n->name, n->path, load_hint(n->path));
    } else {
        versions[0] = 1;
    }
    served *fresh = calloc(VERSIONS_MAX, sizeof *fresh);
    if (!failure && fresh == NULL)
        failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for model \"%s\"", n->name);
    if (failure) {
        free(fresh);
        if (n->version_count == 0 || n->versions[0].model == NULL) {
            n->version_count = 1;
            n->versions[0] = (served){.entry = {.version = 1, .state = MODEL_FAILED}};
            snprintf(n->versions[0].entry.name, sizeof n->name, "%s", n->name);
            snprintf(n->versions[0].entry.reason, sizeof n->versions[0].entry.reason, "%.255s",
                     status_message());
        }
        log_error("models", "%s", status_message());
        publish(r);
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
    release_versions(n->versions, n->version_count);
    memcpy(n->versions, fresh, (size_t)count * sizeof *fresh);
    n->version_count = count;
    free(fresh);
    read_labels(n);
    publish(r);
    return failure ? status_fail(failure, "%s", error) : STATUS_OK;
}

static served_name *find_name(repository *r, const char *name)
{
    for (int i = 0; i < r->name_count; i++)
        if (strcmp(r->names[i]->name, name) == 0)
            return r->names[i];
    return NULL;
}

static status add_name(repository *r, const char *name, const char *path,
                       const repository_model_options *own, served_name **out)
{
    if (strlen(name) == 0 || strlen(name) >= sizeof(*out)->name ||
        strlen(path) >= sizeof(*out)->path)
        return status_fail(STATUS_INVALID_ARGUMENT, "model name or path is empty or too long: %s",
                           name);
    if (find_name(r, name) != NULL)
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

static status scan_folder(repository *r)
{
    struct dirent **list;
    served_name *n;
    int count = scandir(r->options.folder, &list, NULL, alphasort);
    status failure = STATUS_OK;
    if (count < 0)
        return status_fail(STATUS_NOT_FOUND, "repository %s: %s", r->options.folder,
                           strerror(errno));
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES_MAX];
        struct stat s;
        const char *name = list[i]->d_name;
        int bytes = snprintf(path, sizeof path, "%s/%s", r->options.folder, name);
        /* A name given by --model stands before one of the folder. */
        if (!failure && name[0] != '.' && bytes < (int)sizeof path && stat(path, &s) == 0 &&
            S_ISDIR(s.st_mode) && find_name(r, name) == NULL)
            failure = add_name(r, name, path, NULL, &n);
        free(list[i]);
    }
    free(list);
    return failure;
}

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
        status failure = add_name(r, o->name, o->path, o, &n);
        if (failure)
            note_failure(r, failure);
    }
    status failure = r->options.folder ? scan_folder(r) : STATUS_OK;
    if (failure)
        note_failure(r, failure);
    publish(r);
    for (int i = 0; i < r->name_count && !is_stopping(r); i++) {
        failure = load_name(r, r->names[i]);
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

static status unload_name(repository *r, const char *name)
{
    served_name *n = find_name(r, name);
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
    publish(r);
    return STATUS_OK;
}

static status execute(repository *r, const command *c)
{
    if (!c->is_load)
        return unload_name(r, c->name);
    served_name *n = find_name(r, c->name);
    if (n != NULL)
        return load_name(r, n);
    char path[PATH_BYTES_MAX];
    struct stat s;
    /* The name comes from a client: it must not lead out of the folder. */
    if (r->options.folder == NULL || strchr(c->name, '/') != NULL || c->name[0] == '.' ||
        snprintf(path, sizeof path, "%s/%s", r->options.folder, c->name) >= (int)sizeof path ||
        stat(path, &s) != 0 || !S_ISDIR(s.st_mode))
        return status_fail(STATUS_NOT_FOUND, "no model \"%s\" in the repository", c->name);
    status failure = add_name(r, c->name, path, NULL, &n);
    return failure ? failure : load_name(r, n);
}

static void *loading_main(void *repository_pointer)
{
    repository *r = repository_pointer;
    pthread_setname_np(pthread_self(), "loading");
    load_everything(r);
    for (;;) {
        bury(r);
        pthread_mutex_lock(&r->mutex);
        while (r->first == NULL && r->unused == NULL && !r->is_stopping)
            pthread_cond_wait(&r->changed, &r->mutex);
        command *c = r->first;
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
    command *c = calloc(1, sizeof *c);
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
        release_versions(r->names[i]->versions, r->names[i]->version_count);
        free(r->names[i]);
    }
    r->name_count = 0;
    /* An empty one takes the place of the last: its references go. */
    publish(r);
    free(atomic_load(&r->box.current)->labels);
    free(atomic_load(&r->box.current));
    bury(r);
    assert(r->models_alive == 0);
    free(r->names);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
