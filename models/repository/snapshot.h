#ifndef MODELS_REPOSITORY_SNAPSHOT_H
#define MODELS_REPOSITORY_SNAPSHOT_H

#include "models/model.h"
#include "models/repository/entry.h"

/* What the repository serves at one moment: immutable, replaced whole. Readers take no lock: they
 * add themselves to the current epoch's count, read, and leave it (McKenney's sleepable
 * read-copy-update, with one counter per epoch). The writer swaps the pointer, then waits until
 * both epochs have been empty once; then nobody can still see the old one. */

typedef struct snapshot_entry {
    repository_entry entry;
    const model *model; /* holds a reference; NULL unless ready */
} snapshot_entry;

typedef struct snapshot_label {
    char name[128], label[64];
    int64_t version;
} snapshot_label;

typedef struct snapshot {
    int entry_count, label_count;
    snapshot_label *labels;
    snapshot_entry entries[]; /* of one name: highest version first */
} snapshot;

typedef struct snapshot_box {
    _Atomic(snapshot *) current;
    _Atomic uint64_t epoch;
    _Atomic int64_t readers[2];
} snapshot_box;

/* Room for so many; entries zeroed. NULL when memory is out. */
snapshot *snapshot_create(int entry_count, int label_count);

/* Between the two, `*token` and the result (may be NULL) are the reader's. Any thread. */
const snapshot *snapshot_enter(snapshot_box *box, int *token);
void snapshot_leave(snapshot_box *box, int token);

/* Makes `next` current, waits for readers of the one before, then frees that and gives back its
 * references. `next` is NULL when nobody reads any more. One writer at a time. */
void snapshot_replace(snapshot_box *box, snapshot *next);

#endif
