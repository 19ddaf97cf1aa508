#include "server/connection/relief.h"

#include "base/clock.h"

#define STALLED_NS UINT64_C(1000000000) /* without progress for so long */
#define HELD_BYTES_MIN ((size_t)65536)  /* less brings no relief */
#define ENDED_MAX 8                     /* at a time: each is looked for among all */

typedef struct search {
    uint64_t now_ns;
    connection *worst;
} search;

static void compare(connection *c, void *context)
{
    search *s = context;
    bool is_stalled = c->ended_ns == 0 && c->base.unanswered == 0 &&
                      s->now_ns - c->progress_ns >= STALLED_NS &&
                      c->base.held.bytes >= HELD_BYTES_MIN;
    if (is_stalled && (s->worst == NULL || c->base.held.bytes > s->worst->base.held.bytes))
        s->worst = c;
}

void connections_relieve(connections *all, uint64_t now_ns)
{
    size_t wanted = budget_excess(&all->loop->service->budget), freed = 0;
    wanted = wanted > all->refused_bytes ? wanted : all->refused_bytes;
    all->refused_bytes = 0;
    for (int i = 0; i < ENDED_MAX && freed < wanted; i++) {
        search s = {.now_ns = now_ns};
        connections_visit(all, compare, &s);
        if (s.worst == NULL)
            return;
        freed += s.worst->base.held.bytes;
        connection_end(s.worst, CLOSURE_MEMORY, now_ns);
    }
}

void relief_restore(connections *all)
{
    if (!reserve_fill(&all->reserve) && all->refused_bytes < RESERVE_BYTES)
        all->refused_bytes = RESERVE_BYTES;
}

void relief_on_timeout(h2o_timeout_entry_t *entry)
{
    connections *all = H2O_STRUCT_FROM_MEMBER(connections, relief_entry, entry);
    relief_restore(all);
    connections_relieve(all, clock_now_ns());
}

static void schedule_relief(connections *all)
{
    if (!h2o_timeout_is_linked(&all->relief_entry))
        h2o_timeout_link(h2o_socket_get_loop(all->hangup_socket), &all->soon, &all->relief_entry);
}

void connections_relieve_soon(connection *c, size_t bytes)
{
    const budget *b = &c->base.loop->service->budget;
    size_t held = atomic_load_explicit(&b->bytes, memory_order_relaxed);
    if (held <= b->limits.bytes_max && bytes <= b->limits.bytes_max - held)
        return;
    if (bytes > c->all->refused_bytes)
        c->all->refused_bytes = bytes;
    schedule_relief(c->all);
}

bool relief_on_shortage(size_t bytes)
{
    connections *all = connections_of_this_thread();
    if (all == NULL)
        return false; /* the start, or a thread that is no loop */
    service_loop *counters = &all->loop->service->loops[all->loop->index];
    atomic_fetch_add_explicit(&counters->shortages, 1, memory_order_relaxed);
    schedule_relief(all);
    return reserve_spend(&all->reserve, bytes);
}
