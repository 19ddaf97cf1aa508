#include "batcher/sleepers.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Workers of devices of one kind that follow each other are peers. */
static void find_peers(sleepers *s, device *const *devices, int device_count)
{
    for (int i = 0; i < s->count && s->of[i].device_index != device_count - 1; i++) {
        sleeper *own = &s->of[i];
        own->first_peer = i;
        if (i > 0 &&
            strcmp(devices[own->device_index]->kind, devices[s->of[i - 1].device_index]->kind) == 0)
            own->first_peer = s->of[i - 1].first_peer;
        for (int k = own->first_peer; k <= i; k++)
            s->of[k].peers = i - own->first_peer + 1;
    }
}

status sleepers_init(sleepers *s, device *const *devices, int device_count)
{
    *s = (sleepers){0};
    for (int i = 0; i < device_count; i++)
        s->count += devices[i]->slots;
    s->of = calloc((size_t)s->count, sizeof *s->of);
    if (s->of == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %d workers", s->count);
    for (int i = 0, n = 0; i < device_count; i++)
        for (int k = 0; k < devices[i]->slots; k++) {
            s->of[n].device = devices[i];
            s->of[n].device_index = i;
            s->of[n++].number = k;
        }
    find_peers(s, devices, device_count);
    return STATUS_OK;
}

void sleepers_join(sleepers *s, int first, int count)
{
    int begin = 0, end;
    while (begin < s->count && s->of[begin].device_index < first)
        begin++;
    for (end = begin; end < s->count && s->of[end].device_index < first + count;)
        end++;
    for (int i = begin; i < end; i++)
        atomic_store(&s->of[i].peers, end - s->of[i].first_peer);
}

void sleepers_dispose(sleepers *s)
{
    free(s->of);
    *s = (sleepers){0};
}

bool sleepers_is_parked(const sleepers *s, int worker)
{
    const sleeper *one = &s->of[worker];
    return one->number >= device_depth(one->device);
}

static bool wake(sleeper *one)
{
    /* A read-modify-write even where the worker is awake: it orders this thread's work before the
     * worker's last look for it. */
    if (!atomic_exchange(&one->is_asleep, 0))
        return false;
    syscall(SYS_futex, &one->is_asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return true;
}

/* The worker to try as number `i`. */
static int in_turn(const sleepers *s, int i, uint32_t turn)
{
    const sleeper *own = &s->of[i];
    int peers = atomic_load_explicit(&own->peers, memory_order_relaxed);
    if (peers == 0 || i >= own->first_peer + peers)
        return i;
    return own->first_peer + (int)(((uint32_t)(i - own->first_peer) + turn) % (uint32_t)peers);
}

void sleepers_wake_one(sleepers *s, int from, int except)
{
    uint32_t turn = from == 0 ? atomic_fetch_add_explicit(&s->turn, 1, memory_order_relaxed) : 0;
    for (int i = from; i < s->count; i++) {
        int worker = in_turn(s, i, turn);
        if (s->of[worker].device_index == except || sleepers_is_parked(s, worker))
            continue;
        if (wake(&s->of[worker]))
            return;
    }
}

void sleepers_wake_all(sleepers *s)
{
    for (int i = 0; i < s->count; i++)
        wake(&s->of[i]);
}

bool sleepers_has_other(const sleepers *s, int except)
{
    for (int i = 0; i < s->count; i++)
        if (s->of[i].device_index != except && !sleepers_is_parked(s, i) &&
            atomic_load_explicit(&s->of[i].is_asleep, memory_order_relaxed))
            return true;
    return false;
}

void sleepers_announce(sleepers *s, int worker)
{
    atomic_exchange(&s->of[worker].is_asleep, 1);
}

void sleepers_wait(sleepers *s, int worker, uint64_t until_ns)
{
    struct timespec timeout, *limit = NULL;
    if (until_ns != UINT64_MAX) {
        uint64_t now_ns = clock_now_ns();
        uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        timeout.tv_sec = (time_t)(left_ns / 1000000000);
        timeout.tv_nsec = (long)(left_ns % 1000000000);
        limit = &timeout;
    }
    syscall(SYS_futex, &s->of[worker].is_asleep, FUTEX_WAIT_PRIVATE, 1, limit, NULL, 0);
}

void sleepers_end(sleepers *s, int worker)
{
    atomic_exchange(&s->of[worker].is_asleep, 0);
}
