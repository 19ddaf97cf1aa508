#include "models/repository/snapshot.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

snapshot *snapshot_create(int entry_count, int label_count)
{
    snapshot *s = calloc(1, sizeof *s + (size_t)entry_count * sizeof *s->entries);
    if (s == NULL)
        return NULL;
    s->labels = calloc((size_t)(label_count ? label_count : 1), sizeof *s->labels);
    if (s->labels == NULL) {
        free(s);
        return NULL;
    }
    s->entry_count = entry_count;
    s->label_count = label_count;
    return s;
}

const snapshot *snapshot_enter(snapshot_box *box, int *token)
{
    *token = (int)(atomic_load(&box->epoch) & 1);
    atomic_fetch_add(&box->readers[*token], 1);
    return atomic_load(&box->current);
}

void snapshot_leave(snapshot_box *box, int token)
{
    int64_t before = atomic_fetch_sub(&box->readers[token], 1);
    assert(before > 0);
}

/* A reader is inside for well under a microsecond, unless it is preempted. */
static void wait_empty(snapshot_box *box, int epoch)
{
    while (atomic_load(&box->readers[epoch]) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

void snapshot_replace(snapshot_box *box, snapshot *next)
{
    snapshot *old = atomic_exchange(&box->current, next);
    if (old == NULL)
        return;
    /* Twice: a reader may have read the epoch before the first turn and count itself in after we
     * looked; by the second turn it has been waited for, or it saw `next`. */
    for (int turn = 0; turn < 2; turn++) {
        int epoch = (int)(atomic_fetch_add(&box->epoch, 1) & 1);
        wait_empty(box, epoch);
    }
    for (int i = 0; i < old->entry_count; i++)
        if (old->entries[i].model != NULL)
            model_release(old->entries[i].model);
    free(old->labels);
    free(old);
}
