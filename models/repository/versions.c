#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "models/loading/file_state.h"
#include "models/loading/load.h"
#include "models/loading/model_files.h"
#include "models/repository/settings.h"

/* The loading thread's: the versions of a name, on disk and in memory. */

#define FOLDER_BYTES_MAX (REPOSITORY_PATH_BYTES_MAX + 32)

/* What a name holds on disk. */
typedef struct found_versions {
    int64_t versions[REPOSITORY_VERSIONS_MAX]; /* highest first */
    int count;
    bool is_own_folder; /* the name's path is the model file, or holds it: version 1 */
} found_versions;

static int compare_versions(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Keeps the highest, when there are more than may be served. */
static void add_version(found_versions *f, int64_t version)
{
    int lowest = 0;
    if (f->count < REPOSITORY_VERSIONS_MAX) {
        f->versions[f->count++] = version;
        return;
    }
    for (int i = 1; i < f->count; i++)
        lowest = f->versions[i] < f->versions[lowest] ? i : lowest;
    if (version > f->versions[lowest])
        f->versions[lowest] = version;
}

/* Folders named by a positive number. */
static void find_numbered(const char *path, found_versions *out)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char *end;
        errno = 0;
        long long version = strtoll(e->d_name, &end, 10);
        char below[REPOSITORY_PATH_BYTES_MAX + 300];
        struct stat s;
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && *end == 0 && errno == 0 &&
            stat(below, &s) == 0 && S_ISDIR(s.st_mode))
            add_version(out, version);
    }
    if (d != NULL)
        closedir(d);
    qsort(out->versions, (size_t)out->count, sizeof *out->versions, compare_versions);
}

static void find_versions(const char *path, found_versions *out)
{
    struct stat s;
    *out = (found_versions){.count = 0};
    if (stat(path, &s) != 0)
        return;
    out->is_own_folder = S_ISREG(s.st_mode) || model_files_exist(path);
    if (out->is_own_folder)
        out->versions[out->count++] = 1;
    else
        find_numbered(path, out);
}

bool repository_holds_model(const char *path)
{
    found_versions found;
    find_versions(path, &found);
    return found.count > 0;
}

static void version_folder(const served_name *n, int64_t version, bool is_own_folder,
                           char out[FOLDER_BYTES_MAX])
{
    if (is_own_folder)
        snprintf(out, FOLDER_BYTES_MAX, "%s", n->path);
    else
        snprintf(out, FOLDER_BYTES_MAX, "%s/%lld", n->path, (long long)version);
}

static uint64_t version_state(const served_name *n, int64_t version, bool is_own_folder)
{
    char folder[FOLDER_BYTES_MAX];
    version_folder(n, version, is_own_folder, folder);
    return file_state(folder);
}

static uint64_t state_of(const served_name *n, const found_versions *found)
{
    uint64_t state = settings_state(n);
    for (int i = 0; i < found->count; i++) {
        state = file_state_add_number(state, (uint64_t)found->versions[i]);
        state = file_state_add_number(state,
                                      version_state(n, found->versions[i], found->is_own_folder));
    }
    return state;
}

uint64_t repository_name_state(const served_name *n)
{
    found_versions found;
    find_versions(n->path, &found);
    return found.count > 0 ? state_of(n, &found) : 0;
}

/* The entry of a version that did not load, with the failure just told. */
static void set_reason(const repository *r, const served_name *n, const char *before,
                       repository_entry *entry)
{
    char text[STATUS_MESSAGE_BYTES_MAX];
    snprintf(text, sizeof text, "%s%.900s", before, status_message());
    repository_hide_folders(r, n, text, sizeof text);
    snprintf(entry->reason, sizeof entry->reason, "%.255s", text);
}

static served new_entry(const served_name *n, int64_t version, model_state state)
{
    served made = {.entry = {.version = version, .state = state}};
    snprintf(made.entry.name, sizeof made.entry.name, "%s", n->name);
    return made;
}

static status load_version(repository *r, const served_name *n, int64_t version, bool is_own_folder,
                           served *out)
{
    char folder[FOLDER_BYTES_MAX];
    settings_source source = {.text = NULL};
    version_folder(n, version, is_own_folder, folder);
    bool has_precision = n->own != NULL && n->own->has_precision;
    load_request request = {.name = n->name,
                            .version = version,
                            .folder = folder,
                            .manifest = source.path,
                            .options = &r->options.load,
                            .precision = has_precision ? &n->own->precision : NULL,
                            .devices = r->devices,
                            .device_count = r->device_count,
                            .report = repository_report,
                            .context = r,
                            .cancel = &r->load_token};
    *out = new_entry(n, version, MODEL_FAILED);
    out->file_state = version_state(n, version, is_own_folder);
    model *m;
    status failure = settings_find(n, folder, false, &source);
    request.manifest_text = source.text;
    if (!failure)
        failure = load_model(&request, &m);
    free(source.text);
    if (!failure)
        failure = repository_register_model(r, m);
    if (failure == STATUS_DEADLINE_EXCEEDED)
        status_fail(failure, "it was not loaded within %.3g s, the time limit of a load",
                    (double)r->options.load_limit_ns / 1e9);
    if (failure) {
        status_prefix(failure, "model \"%s\" version %lld", n->name, (long long)version);
        set_reason(r, n, "", &out->entry);
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

static void read_labels(served_name *n, const manifest *file)
{
    n->label_count = 0;
    for (int i = 0; i < file->label_count; i++) {
        snapshot_label *l = &n->labels[n->label_count++];
        *l = (snapshot_label){.version = file->labels[i].version};
        memcpy(l->name, n->name, sizeof l->name);
        snprintf(l->label, sizeof l->label, "%s", file->labels[i].name);
    }
}

static served *find_served(served_name *n, int64_t version)
{
    for (int i = 0; i < n->version_count; i++)
        if (n->versions[i].entry.version == version)
            return &n->versions[i];
    return NULL;
}

/* It is what its files say already, served or not. */
static bool is_up_to_date(const served *v, uint64_t state)
{
    bool is_done = v->model != NULL || v->entry.state == MODEL_FAILED;
    return is_done && v->file_state == state;
}

/* The new one has failed: what served goes on serving, and says so. */
static void keep_old(const repository *r, const served_name *n, const served *old, served *fresh)
{
    uint64_t tried = fresh->file_state;
    *fresh = *old;
    fresh->file_state = tried;
    model_retain(fresh->model);
    set_reason(r, n, "a reload failed, and what was loaded before is served: ", &fresh->entry);
}

/* A load of one name. */
typedef struct name_load {
    repository *repository;
    served_name *name;
    const found_versions *found;
    const manifest *settings;
    bool only_changed;
    served fresh[REPOSITORY_VERSIONS_MAX];
    int count, ready_count;
    status failure; /* the first one, and its message */
    char error[STATUS_MESSAGE_BYTES_MAX];
} name_load;

static void load_one(name_load *l, int64_t version)
{
    served_name *n = l->name;
    served *old = find_served(n, version), *fresh = &l->fresh[l->count++];
    bool is_own_folder = l->found->is_own_folder;
    if (old != NULL && l->only_changed &&
        is_up_to_date(old, version_state(n, version, is_own_folder))) {
        *fresh = *old;
        if (fresh->model != NULL)
            model_retain(fresh->model);
    } else {
        status failure = load_version(l->repository, n, version, is_own_folder, fresh);
        if (failure && !l->failure) {
            l->failure = failure;
            snprintf(l->error, sizeof l->error, "%s", status_message());
        }
        if (failure && old != NULL && old->model != NULL)
            keep_old(l->repository, n, old, fresh);
    }
    l->ready_count += fresh->model != NULL;
}

static bool is_wanted(const name_load *l, int64_t version)
{
    const manifest_policy *policy = &l->settings->policy;
    if (policy->kind == POLICY_LATEST) /* where one fails, the next lower one stands in for it */
        return l->ready_count < policy->latest;
    for (int i = 0; policy->kind == POLICY_SPECIFIC && i < policy->count; i++)
        if (policy->versions[i] == version)
            return true;
    return policy->kind == POLICY_ALL;
}

static bool is_found(const found_versions *found, int64_t version)
{
    for (int i = 0; i < found->count; i++)
        if (found->versions[i] == version)
            return true;
    return false;
}

/* Versions that model.json names and that are not there. */
static void note_missing(name_load *l)
{
    const manifest_policy *policy = &l->settings->policy;
    for (int i = 0;
         policy->kind == POLICY_SPECIFIC && i < policy->count && l->count < REPOSITORY_VERSIONS_MAX;
         i++) {
        if (is_found(l->found, policy->versions[i]))
            continue;
        served *fresh = &l->fresh[l->count++];
        *fresh = new_entry(l->name, policy->versions[i], MODEL_FAILED);
        status failure =
            status_fail(STATUS_NOT_FOUND,
                        "model \"%s\" version %lld: version_policy names it, and there is no "
                        "such folder",
                        l->name->name, (long long)policy->versions[i]);
        set_reason(l->repository, l->name, "", &fresh->entry);
        log_error("models", "%s", status_message());
        if (!l->failure) {
            l->failure = failure;
            snprintf(l->error, sizeof l->error, "%s", status_message());
        }
    }
}

/* There is nothing to load. */
static status fail_name(repository *r, served_name *n)
{
    struct stat s;
    status failure = stat(n->path, &s) != 0
                         ? status_fail(STATUS_NOT_FOUND, "model \"%s\": %s: %s", n->name, n->path,
                                       strerror(errno))
                         : status_fail(STATUS_NOT_FOUND,
                                       "model \"%s\": %s holds neither a model file nor a folder "
                                       "named by a version number%s",
                                       n->name, n->path, model_files_hint(n->path));
    if (n->version_count == 0 || n->versions[0].model == NULL) {
        n->version_count = 1;
        n->versions[0] = new_entry(n, 1, MODEL_FAILED);
        set_reason(r, n, "", &n->versions[0].entry);
    }
    log_error("models", "%s", status_message());
    repository_publish(r);
    return failure;
}

status repository_load_name(repository *r, served_name *n, bool only_changed)
{
    found_versions found;
    find_versions(n->path, &found);
    n->is_unloaded = false;
    n->loaded_state = n->seen_state = found.count > 0 ? state_of(n, &found) : 0;
    if (found.count == 0)
        return fail_name(r, n);
    name_load *l = calloc(1, sizeof *l);
    if (l == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for model \"%s\"", n->name);
    manifest settings;
    uint64_t state = settings_state(n);
    settings_read(n, &settings);
    *l = (name_load){.repository = r,
                     .name = n,
                     .found = &found,
                     .settings = &settings,
                     .only_changed = only_changed && n->settings_state == state};
    n->settings_state = state;
    for (int i = 0; i < found.count; i++)
        if (is_wanted(l, found.versions[i]))
            load_one(l, found.versions[i]);
    note_missing(l);
    repository_release_versions(n->versions, n->version_count);
    memcpy(n->versions, l->fresh, (size_t)l->count * sizeof *l->fresh);
    n->version_count = l->count;
    read_labels(n, &settings);
    manifest_dispose(&settings);
    repository_publish(r);
    pthread_mutex_lock(&r->mutex);
    r->has_wanted = true; /* what was prepared is to be kept */
    pthread_mutex_unlock(&r->mutex);
    status failure = l->failure ? status_fail(l->failure, "%s", l->error) : STATUS_OK;
    free(l);
    return failure;
}
