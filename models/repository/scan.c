#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "models/loading/foreign_files.h"
#include "models/loading/model_files.h"
#include "models/repository/internal.h"

/* The loading thread's: what stands in the repository's folder. Whatever it is, the models beside
 * it are served. */

typedef enum folder_kind {
    FOLDER_OF_MODEL,
    FOLDER_WITHOUT_MODEL, /* somebody may have meant it to be one */
    FOLDER_OF_OTHERS,     /* or it is none, and nobody did */
} folder_kind;

ignored_entry *repository_find_ignored(repository *r, const char *name, bool is_made)
{
    for (int i = 0; i < r->ignored_count; i++)
        if (strcmp(r->ignored[i].entry.name, name) == 0)
            return &r->ignored[i];
    if (r->ignored == NULL && is_made)
        r->ignored = calloc(REPOSITORY_IGNORED_MAX, sizeof *r->ignored);
    if (!is_made || r->ignored == NULL || r->ignored_count == REPOSITORY_IGNORED_MAX)
        return NULL;
    ignored_entry *made = &r->ignored[r->ignored_count++];
    *made = (ignored_entry){.entry = {.version = 1, .state = MODEL_IGNORED}};
    snprintf(made->entry.name, sizeof made->entry.name, "%s", name);
    return made;
}

static void remove_ignored(repository *r, ignored_entry *gone)
{
    *gone = r->ignored[--r->ignored_count];
}

void repository_forget_ignored(repository *r, const char *name)
{
    ignored_entry *known = repository_find_ignored(r, name, false);
    if (known != NULL)
        remove_ignored(r, known);
}

/* Names are parts of URLs, labels and lines of the log. */
static bool is_good_name(const char *name)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)name[i] < ' ' || (unsigned char)name[i] >= 0x7f)
            return false;
    return bytes < sizeof((served_name *)NULL)->name;
}

static folder_kind tell(char why[256], folder_kind kind, const char *text, const char *more)
{
    snprintf(why, 256, "%s%s", text, more);
    return kind;
}

static folder_kind examine(const char *name, const char *path, char why[256])
{
    struct stat s;
    if (name[0] == '.')
        return tell(why, FOLDER_OF_OTHERS, "hidden: its name begins with a dot", "");
    if (!is_good_name(name))
        return tell(why, FOLDER_OF_OTHERS,
                    "its name is no model's: use 1 to 127 printable ASCII characters", "");
    if (stat(path, &s) != 0)
        return tell(why, FOLDER_OF_OTHERS, "it cannot be read: ", strerror(errno));
    if (S_ISREG(s.st_mode))
        return tell(why, FOLDER_OF_OTHERS, "a file, where a model is a folder NAME/VERSION/",
                    foreign_files_advice(path));
    if (!S_ISDIR(s.st_mode))
        return tell(why, FOLDER_OF_OTHERS, "not a folder", "");
    DIR *d = opendir(path);
    if (d == NULL)
        return tell(why, FOLDER_WITHOUT_MODEL, "it cannot be read: ", strerror(errno));
    closedir(d);
    if (repository_holds_model(path))
        return FOLDER_OF_MODEL;
    return tell(why, strcmp(name, "lost+found") == 0 ? FOLDER_OF_OTHERS : FOLDER_WITHOUT_MODEL,
                "it holds neither a model file nor a folder named by a version number",
                model_files_hint(path));
}

/* What may be told of any name. */
static void readable_name(const char *name, char out[128])
{
    snprintf(out, 128, "%.127s", name);
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
            *c = '?';
}

static void note_ignored(repository *r, const char *name, folder_kind kind, const char *why)
{
    char shown[128];
    readable_name(name, shown);
    atomic_fetch_add(&r->ignored_total, 1);
    ignored_entry *known = repository_find_ignored(r, shown, true);
    if (known == NULL)
        return;
    if (known->is_arriving || strcmp(known->entry.reason, why) != 0)
        log_warning("models", "repository: \"%s\" is ignored: %s", shown, why);
    if (!r->is_start_over && kind == FOLDER_WITHOUT_MODEL)
        repository_note_failure(
            r, status_fail(STATUS_NOT_FOUND, "%s/%s: %s", r->options.folder, name, why));
    snprintf(known->entry.reason, sizeof known->entry.reason, "%s", why);
    known->is_arriving = false;
    known->is_a_folder = kind == FOLDER_WITHOUT_MODEL;
    known->is_there = true;
    known->seen_state = 0;
}

static void examine_entry(repository *r, const char *name, repository_found *found)
{
    char path[REPOSITORY_PATH_BYTES_MAX], why[256];
    /* A name given by --model hides a folder of that name. */
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || repository_find_name(r, name) != NULL)
        return;
    if (snprintf(path, sizeof path, "%s/%s", r->options.folder, name) >= (int)sizeof path) {
        note_ignored(r, name, FOLDER_OF_OTHERS, "its path is too long");
        return;
    }
    folder_kind kind = examine(name, path, why);
    if (kind == FOLDER_OF_MODEL)
        found(r, name, path);
    else
        note_ignored(r, name, kind, why);
}

status repository_scan(repository *r, repository_found *found)
{
    struct dirent **list;
    int count = scandir(r->options.folder, &list, NULL, alphasort);
    if (count < 0)
        return status_fail(STATUS_NOT_FOUND, "repository %s: %s", r->options.folder,
                           strerror(errno));
    for (int i = 0; i < r->ignored_count; i++)
        r->ignored[i].is_there = false;
    atomic_store(&r->ignored_total, 0);
    for (int i = 0; i < count; i++) {
        examine_entry(r, list[i]->d_name, found);
        free(list[i]);
    }
    free(list);
    for (int i = r->ignored_count - 1; i >= 0; i--)
        if (!r->ignored[i].is_there)
            remove_ignored(r, &r->ignored[i]);
    return STATUS_OK;
}
