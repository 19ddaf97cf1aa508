#include <stdio.h>

#include "base/log.h"
#include "models/loading/file_state.h"
#include "models/repository/internal.h"

/* The loading thread's: what changes on disk while the server runs. A change counts when it looks
 * the same twice: what somebody is still copying does not. */

/* A folder that has come since the start. */
static void on_arrival(repository *r, const char *name, const char *path)
{
    uint64_t state = file_state(path);
    ignored_entry *known = repository_find_ignored(r, name, true);
    served_name *n;
    if (known == NULL)
        return;
    known->is_there = true;
    if (!known->is_arriving || known->seen_state != state) {
        known->is_arriving = true;
        known->seen_state = state;
        snprintf(known->entry.reason, sizeof known->entry.reason, "its files are still changing");
        return;
    }
    repository_forget_ignored(r, name);
    if (repository_add_name(r, name, path, NULL, &n)) {
        log_error("models", "repository: %s", status_message());
        return;
    }
    log_info("models", "%s has come: it is loaded", name);
    repository_load_now(r, n, true);
}

static bool has_arrivals(const repository *r)
{
    for (int i = 0; i < r->ignored_count; i++)
        if (r->ignored[i].is_arriving)
            return true;
    return false;
}

/* Returns whether it is not known yet what has become of it; `*is_gone`: it was removed. */
static bool poll_name(repository *r, served_name *n, bool *is_gone)
{
    uint64_t state = repository_name_state(n), seen = n->seen_state;
    n->seen_state = state;
    if (state == n->loaded_state || (n->is_unloaded && state != 0))
        return false;
    if (state != seen)
        return true;
    n->loaded_state = state;
    if (state == 0 && n->own == NULL) {
        *is_gone = true;
    } else if (state == 0) {
        log_warning("models", "%s: its files are gone; what was loaded is served", n->name);
    } else {
        log_info("models", "%s has changed: it is loaded", n->name);
        repository_load_now(r, n, true);
    }
    return false;
}

static bool is_stopping(repository *r)
{
    pthread_mutex_lock(&r->mutex);
    bool is = r->is_stopping;
    pthread_mutex_unlock(&r->mutex);
    return is;
}

bool repository_poll(repository *r)
{
    bool is_unsettled = false;
    for (int i = 0; i < r->name_count && !is_stopping(r); i++) {
        bool is_gone = false;
        is_unsettled |= poll_name(r, r->names[i], &is_gone);
        if (is_gone) {
            log_info("models", "%s has been removed: it is unloaded", r->names[i]->name);
            repository_remove_name(r, r->names[i--]);
        }
    }
    if (r->options.folder != NULL && repository_scan(r, on_arrival))
        log_warning("models", "%s: what is loaded is served", status_message());
    repository_publish(r);
    return is_unsettled || has_arrivals(r);
}
