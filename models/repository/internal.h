#ifndef MODELS_REPOSITORY_INTERNAL_H
#define MODELS_REPOSITORY_INTERNAL_H

#include <pthread.h>

#include "models/manifest/manifest.h"
#include "models/repository/commands.h"
#include "models/repository/repository.h"
#include "models/repository/snapshot.h"

/* Shared by the files of this folder. */

#define REPOSITORY_VERSIONS_MAX 64 /* of one name */
#define REPOSITORY_PATH_BYTES_MAX 4096

typedef struct served {
    repository_entry entry;
    const model *model;
} served;

/* One name. Belongs to the loading thread. */
typedef struct served_name {
    char name[128];
    char path[REPOSITORY_PATH_BYTES_MAX];
    const repository_model_options *own;      /* or NULL */
    served versions[REPOSITORY_VERSIONS_MAX]; /* highest first */
    int version_count;
    snapshot_label labels[MANIFEST_LABELS_MAX];
    int label_count;
} served_name;

struct repository {
    repository_options options;
    device *const *devices;
    int device_count;
    snapshot_box box;
    _Atomic bool is_ready;
    cancel_token load_token; /* of the load under way */
    _Atomic uint64_t loads[REPOSITORY_LOAD_RESULTS];

    /* The loading thread's own. */
    served_name **names;
    int name_count, name_capacity;

    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows; requests never take it */
    pthread_cond_t changed;
    repository_commands commands;
    model *unused[MODEL_INDEX_MAX]; /* models whose last reference is gone */
    int unused_count;
    bool is_stopping, has_loaded;
    bool has_wanted; /* some model has a deferred bucket that traffic wants */
    status first_failure;
    char first_error[STATUS_MESSAGE_BYTES_MAX];       /* with paths: for who started it */
    char first_error_shown[STATUS_MESSAGE_BYTES_MAX]; /* to clients */
    char progress[STATUS_MESSAGE_BYTES_MAX];
    bool index_taken[MODEL_INDEX_MAX];
    uint64_t serial;
    int models_alive;
};

/* names.c: what is served, by name. The loading thread only. */

/* NULL: there is none. */
served_name *repository_find_name(repository *r, const char *name);
/* Adds a name, in state MODEL_LOADING. STATUS_INVALID_ARGUMENT: it is there already, or too long.
 */
status repository_add_name(repository *r, const char *name, const char *path,
                           const repository_model_options *own, served_name **out) MUST_CHECK;
/* Adds a name for each folder of the repository's folder. */
status repository_scan(repository *r) MUST_CHECK;
/* Loads all versions again while the old ones serve, then replaces these. Where a version fails to
 * load, the one that served stays. */
status repository_load_name(repository *r, served_name *n) MUST_CHECK;
status repository_unload_name(repository *r, const char *name) MUST_CHECK;
/* In a message for clients: names in the place of folders. The log has the paths. `n` or NULL. */
void repository_hide_folders(const repository *r, const served_name *n, char *text, size_t bytes);
void repository_release_versions(served *versions, int count);
/* Makes the present names and models visible to lookups. */
void repository_publish(repository *r);
/* Makes one deferred bucket that traffic wants. False: none is wanted. */
bool repository_make_wanted(repository *r);
/* Frees the models whose last reference is gone. */
void repository_free_unused(repository *r);

#endif
