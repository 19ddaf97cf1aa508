#ifndef MODELS_REPOSITORY_CATALOGUE_H
#define MODELS_REPOSITORY_CATALOGUE_H

#include <stddef.h>

#include "base/status.h"

/* Ready-made models by short name: the Python package that ./serve installs, and the folder to
 * serve from it. */
typedef struct catalogue_entry {
    const char *name;   /* "minilm" */
    const char *source; /* Python package that holds it, or NULL: bundled with the repository */
    const char *folder; /* the model's folder inside the package, or in the repository */
    const char *description; /* one line */
    const char *precision;   /* advised */
} catalogue_entry;

/* NULL when there is none of that name. Static. */
const catalogue_entry *catalogue_find(const char *name);
/* Entry `index`, or NULL beyond the last. */
const catalogue_entry *catalogue_at(int index);

/* The entry's model folder below `root` (where packages were unpacked, or the repository's own
 * root): exactly `folder`, or else the first folder below it that holds a model file, because
 * packages move their data between releases. STATUS_NOT_FOUND. */
status catalogue_locate(const catalogue_entry *entry, const char *root, char *path,
                        size_t path_bytes) MUST_CHECK;

#endif
