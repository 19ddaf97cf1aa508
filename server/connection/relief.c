#include "server/connection/relief.h"

#include "base/clock.h"

#define HELD_BYTES_MIN ((size_t)65536)       /* less brings no relief */
#define UNREAD_MIN 8                         /* the same of requests */
#define ENDED_MAX 8                          /* at a time: each is looked for among all */
#define REFUSED_KEEP_NS UINT64_C(4000000000) /* who is stalled is known after three seconds */

/* Loops look once a second, each at its own time. So each tells the others of a connection when it
 * has looked stalled once, and it goes when it has twice: then they all know of those that stopped
 * at the same time and hold more. */
enum { TICKS_TO_TELL = 1, TICKS_TO_GO = 2 };

/* What the end of a stalled connection would free. */
static size_t relief_bytes(const connection *c, int ticks)
{
    const request_connection *base = &c->base;
    if (c->ended_ns != 0 || c->stalled_ticks < ticks || base->held.bytes < base->worked_bytes)
        return 0;
    size_t bytes = base->held.bytes - base->worked_bytes;
    return bytes >= HELD_BYTES_MIN ? bytes : 0;
}

typedef struct search {
    connection *worst; /* that may go */
    size_t bytes, told_bytes;
} search;

static void compare(connection *c, void *context)
{
    search *s = context;
    size_t told = relief_bytes(c, TICKS_TO_TELL), bytes = relief_bytes(c, TICKS_TO_GO);
    s->told_bytes = told > s->told_bytes ? told : s->told_bytes;
    if (bytes > s->bytes) {
        s->worst = c;
        s->bytes = bytes;
    }
}

static service_loop *counters_of(const connections *all)
{
    return &all->loop->service->loops[all->loop->index];
}

static search find_worst(connections *all)
{
    search s = {NULL, 0, 0};
    connections_visit(all, compare, &s);
    atomic_store(&counters_of(all)->stalled_bytes, s.told_bytes);
    return s;
}

/* The loop that has one which holds more, or NULL. */
static service_loop *find_worse(const connections *all, size_t bytes)
{
    service *s = all->loop->service;
    service_loop *worse = NULL;
    for (int i = 0; i < s->loop_count; i++) {
        size_t at = atomic_load(&s->loops[i].stalled_bytes);
        if (i != all->loop->index && at > bytes) {
            worse = &s->loops[i];
            bytes = at;
        }
    }
    return worse;
}

/* Bytes above what the process may hold, beside those that are about to be free. */
static size_t excess_bytes(const service *s)
{
    size_t excess = budget_excess(&s->budget), leaving = atomic_load(&s->leaving_bytes);
    return excess > leaving ? excess - leaving : 0;
}

static size_t refused_bytes(const service *s, uint64_t now_ns)
{
    uint64_t then_ns = atomic_load(&s->refused_ns);
    return now_ns > then_ns + REFUSED_KEEP_NS ? 0 : atomic_load(&s->refused_bytes);
}

/* Loops may look at the same time: each claims what it frees, before it tells what it has left.
 * False: no more is needed. */
static bool claim(service *s, size_t bytes, uint64_t now_ns)
{
    size_t refused = refused_bytes(s, now_ns);
    while (refused > 0 && !atomic_compare_exchange_weak(&s->refused_bytes, &refused,
                                                        refused > bytes ? refused - bytes : 0))
        ;
    if (refused == 0 && excess_bytes(s) == 0)
        return false;
    atomic_fetch_add(&s->leaving_bytes, bytes);
    return true;
}

static void ask(service_loop *other)
{
    atomic_store_explicit(&other->is_relief_wanted, true, memory_order_relaxed);
    other->watch.wake(other->watch.context);
}

void relief_relieve(connections *all, uint64_t now_ns, bool asks_others)
{
    service *s = all->loop->service;
    for (int i = 0; i < ENDED_MAX; i++) {
        search found = find_worst(all);
        if (refused_bytes(s, now_ns) == 0 && excess_bytes(s) == 0)
            return;
        service_loop *worse = find_worse(all, found.told_bytes);
        if (worse != NULL && asks_others)
            ask(worse);
        if (worse != NULL || found.worst == NULL || found.bytes < found.told_bytes ||
            !claim(s, found.bytes, now_ns))
            return;
        found.worst->leaving_bytes = found.bytes;
        connection_end(found.worst, CLOSURE_MEMORY, now_ns);
    }
    (void)find_worst(all);
}

void relief_help(connections *all, uint64_t now_ns)
{
    atomic_store_explicit(&counters_of(all)->is_relief_wanted, false, memory_order_relaxed);
    relief_relieve(all, now_ns, false);
}

/* Requests that were answered, and whose responses the peer does not take. */
static int unread_of(const connection *c)
{
    return c->ended_ns != 0 ? 0 : c->base.requests - c->base.unanswered;
}

static void compare_unread(connection *c, void *context)
{
    connection **worst = context;
    if (*worst == NULL || unread_of(c) > unread_of(*worst))
        *worst = c;
}

bool relief_of_requests(connection *asker)
{
    connection *worst = NULL;
    connections_visit(asker->all, compare_unread, &worst);
    if (worst == NULL || worst == asker || unread_of(worst) < UNREAD_MIN)
        return false;
    connection_end(worst, CLOSURE_MEMORY, clock_now_ns());
    return true;
}

static void note_refused(connections *all, size_t bytes)
{
    service *s = all->loop->service;
    if (bytes > atomic_load_explicit(&s->refused_bytes, memory_order_relaxed))
        atomic_store_explicit(&s->refused_bytes, bytes, memory_order_relaxed);
    atomic_store(&s->refused_ns, clock_now_ns());
}

void relief_restore(connections *all)
{
    if (!reserve_fill(&all->reserve))
        note_refused(all, RESERVE_BYTES);
}

void relief_on_timeout(h2o_timeout_entry_t *entry)
{
    connections *all = H2O_STRUCT_FROM_MEMBER(connections, relief_entry, entry);
    relief_restore(all);
    relief_relieve(all, clock_now_ns(), true);
}

static void schedule_relief(connections *all)
{
    if (!h2o_timeout_is_linked(&all->relief_entry))
        h2o_timeout_link(h2o_socket_get_loop(all->hangup_socket), &all->soon, &all->relief_entry);
}

void connections_relieve_soon(connection *c, size_t bytes)
{
    const service *s = c->base.loop->service;
    const budget *b = &s->budget;
    size_t held = atomic_load_explicit(&b->bytes, memory_order_relaxed);
    size_t leaving = atomic_load(&s->leaving_bytes);
    held -= leaving < held ? leaving : held;
    if (held <= b->limits.bytes_max && bytes <= b->limits.bytes_max - held)
        return;
    note_refused(c->all, bytes);
    schedule_relief(c->all);
}

bool relief_on_shortage(size_t bytes)
{
    connections *all = connections_of_this_thread();
    if (all == NULL)
        return false; /* the start, or a thread that is no loop */
    atomic_fetch_add_explicit(&counters_of(all)->shortages, 1, memory_order_relaxed);
    schedule_relief(all);
    return reserve_spend(&all->reserve, bytes);
}
