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
#define REPOSITORY_IGNORED_MAX 1024 /* that are listed; all are counted */

typedef struct served {
    repository_entry entry;
    const model *model;
    uint64_t file_state; /* of its files when it was last loaded, or was tried */
} served;

/* One name. Belongs to the loading thread. */
typedef struct served_name {
    char name[128];
    char path[REPOSITORY_PATH_BYTES_MAX];
    const repository_model_options *own;      /* or NULL: found in the repository's folder */
    served versions[REPOSITORY_VERSIONS_MAX]; /* highest first */
    int version_count;
    snapshot_label labels[MANIFEST_LABELS_MAX];
    int label_count;
    char *config;     /* what the client sent that asked for the load, as model.json; or NULL */
    bool is_unloaded; /* on request: what changes on disk does not bring it back */
    /* loading/file_state.h: of what its versions share, and of everything, when it was last
     * loaded; of everything, when somebody last looked. */
    uint64_t settings_state, loaded_state, seen_state;
} served_name;

/* What stands in the repository's folder and is no model. */
typedef struct ignored_entry {
    repository_entry entry;
    bool is_arriving; /* it is one, and its files are still being written */
    bool is_a_folder; /* that somebody may have meant to be a model */
    bool is_there;    /* since the last look */
    uint64_t seen_state;
} ignored_entry;

struct repository {
    repository_options options;
    device *const *devices;
    int device_count;
    snapshot_box box;
    _Atomic bool is_ready;
    cancel_token load_token; /* of the load under way */
    _Atomic uint64_t loads[REPOSITORY_LOAD_RESULTS];
    _Atomic int ignored_total;

    /* The loading thread's own. */
    served_name **names;
    int name_count, name_capacity;
    ignored_entry *ignored; /* REPOSITORY_IGNORED_MAX, or NULL */
    int ignored_count;
    bool is_start_over;
    uint64_t next_poll_ns; /* when the disk is looked at; 0: when somebody asks */

    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows; requests never take it */
    pthread_cond_t changed;
    repository_commands commands;
    model *unused[MODEL_INDEX_MAX]; /* models whose last reference is gone */
    int unused_count;
    bool is_stopping;
    bool has_names, has_loaded;   /* of the start: every model is known; is loaded */
    bool has_wanted;              /* some model has a deferred bucket that traffic wants */
    bool wants_poll;              /* at the disk, now */
    int joined_first, joined_end; /* devices that have come and have no programs yet */
    bool must_exit;
    status first_failure;
    char first_error[STATUS_MESSAGE_BYTES_MAX]; /* with paths: for who started it */
    char progress[STATUS_MESSAGE_BYTES_MAX];
    bool index_taken[MODEL_INDEX_MAX];
    uint64_t serial;
    int models_alive;
};

/* The loading thread only, all of them. */

/* names.c: what is served, by name. */

/* NULL: there is none. */
served_name *repository_find_name(repository *r, const char *name);
/* Adds a name, in state MODEL_LOADING. STATUS_INVALID_ARGUMENT: it is there already, or too long.
 */
status repository_add_name(repository *r, const char *name, const char *path,
                           const repository_model_options *own, served_name **out) MUST_CHECK;
/* Nothing of it is served any more. */
void repository_remove_name(repository *r, served_name *n);
status repository_unload_name(repository *r, const char *name) MUST_CHECK;
/* Makes the present names and models visible to lookups. */
void repository_publish(repository *r);
/* Makes one deferred bucket that traffic wants. False: none is wanted, and what later starts can
 * use is in the cache folder. */
bool repository_make_wanted(repository *r);
/* Makes the programs of devices that came later. */
void repository_join(repository *r, int first, int end);
/* Frees the models whose last reference is gone. */
void repository_free_unused(repository *r);
/* Gives the model an index and a serial; destroys it when there is no index left. */
status repository_register_model(repository *r, model *m) MUST_CHECK;
/* What is being done, for those who wait until it is ready. */
void repository_report(void *repository, const char *text);
/* In a message for clients: names in the place of folders. The log has the paths. `n` or NULL. */
void repository_hide_folders(const repository *r, const served_name *n, char *text, size_t bytes);
void repository_release_versions(served *versions, int count);

/* versions.c: the versions of a name, on disk and in memory. */

/* Is there anything to load: a model file, or a folder named by a version? */
bool repository_holds_model(const char *path);
/* Of everything that belongs to the name on disk. 0: it is gone. */
uint64_t repository_name_state(const served_name *n);
/* Loads the versions that its policy asks for while the old ones serve, then replaces these;
 * `only_changed`: those whose files have changed, the others stay. Where a version fails to load,
 * what served stays. */
status repository_load_name(repository *r, served_name *n, bool only_changed) MUST_CHECK;

/* scan.c: what stands in the repository's folder. */

/* Calls `found` for each folder that may be a model and has no name yet; notes what is none,
 * in the log once, and forgets what has gone. STATUS_NOT_FOUND: the folder cannot be read. */
typedef void repository_found(repository *r, const char *name, const char *path);
status repository_scan(repository *r, repository_found *found) MUST_CHECK;
/* The note of that name; made if `is_made`. NULL: there is none, or there are too many. */
ignored_entry *repository_find_ignored(repository *r, const char *name, bool is_made);
void repository_forget_ignored(repository *r, const char *name);

/* watch.c: what changes on disk while the server runs. */

/* Takes up what has changed and is stable: the same at two looks. Returns whether something has
 * changed since the last look, so that another one is needed. */
bool repository_poll(repository *r);
/* repository.c: the failure just told is the start's, if it is the first. */
void repository_note_failure(repository *r, status failure);
/* Loads for nobody in particular, within the time limit, and counts it. The log has
 * the failure. */
status repository_load_now(repository *r, served_name *n, bool only_changed);

#endif
