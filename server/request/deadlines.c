#include "server/request/deadlines.h"

#include <assert.h>
#include <stdlib.h>

status deadlines_init(deadlines *d, size_t count_max)
{
    deadline **heap = malloc((count_max + 1) * sizeof(*heap));
    if (heap == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %zu deadlines", count_max);
    *d = (deadlines){.heap = heap, .count_max = count_max};
    return STATUS_OK;
}

void deadlines_dispose(deadlines *d)
{
    free(d->heap);
    *d = (deadlines){0};
}

static void put(deadlines *d, size_t place, deadline *e)
{
    d->heap[place] = e;
    e->place = place;
}

static void move_up(deadlines *d, deadline *e)
{
    size_t at = e->place;
    for (; at > 1 && d->heap[at / 2]->due_ns > e->due_ns; at /= 2)
        put(d, at, d->heap[at / 2]);
    put(d, at, e);
}

static void move_down(deadlines *d, deadline *e)
{
    size_t at = e->place;
    for (;;) {
        size_t child = 2 * at;
        if (child < d->count && d->heap[child + 1]->due_ns < d->heap[child]->due_ns)
            child++;
        if (child > d->count || d->heap[child]->due_ns >= e->due_ns)
            break;
        put(d, at, d->heap[child]);
        at = child;
    }
    put(d, at, e);
}

void deadlines_add(deadlines *d, deadline *e, uint64_t due_ns)
{
    assert(e->place == 0 && d->count < d->count_max);
    e->due_ns = due_ns;
    put(d, ++d->count, e);
    move_up(d, e);
}

void deadlines_remove(deadlines *d, deadline *e)
{
    size_t place = e->place;
    if (place == 0)
        return;
    assert(d->heap[place] == e);
    deadline *last = d->heap[d->count--];
    e->place = 0;
    if (last == e)
        return;
    put(d, place, last);
    move_up(d, last);
    move_down(d, last);
}

deadline *deadlines_pop_due(deadlines *d, uint64_t now_ns)
{
    if (d->count == 0 || d->heap[1]->due_ns > now_ns)
        return NULL;
    deadline *e = d->heap[1];
    deadlines_remove(d, e);
    return e;
}
