#include "server/connection/room.h"

#define HEALTH_CONNECTIONS_MAX 256
/* Connections above the limit, while the ones they replace are closed; descriptors.c has room for
 * them. */
#define CLOSING_MAX 16
#define CLOSING_PART 16 /* and one for so many that may be open */

#define MS UINT64_C(1000000)
#define LONG_IDLE_NS (5000 * MS)

/* Who goes first: a connection that has never sent a request before one that has. Each has a while
 * in which nobody takes its place: the time that a TLS handshake needs from far away, and a pause
 * between two requests. Only if that finds nobody, the while is as short as what lies between a
 * connection and its request on a busy machine, and of those that have sent a request one goes only
 * if there is no other. Younger ones stay: newcomers wait. */
static const struct {
    bool is_client;
    uint64_t idle_ns; /* and longer */
} steps[] = {{false, 1000 * MS}, {true, LONG_IDLE_NS}, {false, 250 * MS}, {true, 250 * MS}};
enum { STEPS = sizeof steps / sizeof steps[0], LONG_STEPS = 2 };

/* The one of a list that is without progress longest, and that the server does not work for. */
static connection *oldest(h2o_linklist_t *anchor)
{
    for (h2o_linklist_t *at = anchor->next; at != anchor; at = at->next) {
        connection *c = H2O_STRUCT_FROM_MEMBER(connection, link, at);
        if (c->base.unanswered == 0 && c->ended_ns == 0)
            return c;
    }
    return NULL;
}

static connection *first_to_go(connections *all, uint64_t now_ns, int step_count)
{
    connection *of[] = {oldest(&all->newcomers), oldest(&all->clients)};
    for (int i = 0; i < step_count; i++) {
        connection *c = of[steps[i].is_client];
        bool is_spared = i == STEPS - 1 && of[0] != NULL;
        if (c != NULL && !is_spared && now_ns - c->progress_ns >= steps[i].idle_ns)
            return c;
    }
    return NULL;
}

void room_publish(connections *all, uint64_t now_ns)
{
    const connection *c = first_to_go(all, now_ns, STEPS);
    atomic_store_explicit(&all->loop->service->loops[all->loop->index].idle_since_ns,
                          c != NULL ? c->progress_ns : 0, memory_order_relaxed);
}

/* Asks the loop whose first to go has been idle longest, and so long at least. Each is asked once,
 * until it has published again. */
static bool ask_another(connections *all, uint64_t now_ns, uint64_t idle_ns)
{
    service *s = all->loop->service;
    service_loop *found = NULL;
    uint64_t since_ns = now_ns > idle_ns ? now_ns - idle_ns : 0;
    for (int i = 0; i < s->loop_count; i++) {
        uint64_t at_ns = atomic_load_explicit(&s->loops[i].idle_since_ns, memory_order_relaxed);
        if (i != all->loop->index && at_ns != 0 && at_ns <= since_ns) {
            found = &s->loops[i];
            since_ns = at_ns;
        }
    }
    if (found == NULL)
        return false;
    atomic_store_explicit(&found->idle_since_ns, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&found->rooms_wanted, 1, memory_order_relaxed);
    found->watch.wake(found->watch.context);
    return true;
}

void room_help(connections *all, uint64_t now_ns)
{
    service_loop *counters = &all->loop->service->loops[all->loop->index];
    int wanted = atomic_exchange_explicit(&counters->rooms_wanted, 0, memory_order_relaxed);
    for (int i = 0; i < wanted; i++) {
        connection *c = first_to_go(all, now_ns, STEPS);
        if (c != NULL)
            connection_end(c, CLOSURE_ROOM, now_ns);
    }
    room_publish(all, now_ns);
}

room room_find(connections *all, uint64_t now_ns, connection **replaced)
{
    service *s = all->loop->service;
    service_loop *counters = &s->loops[all->loop->index];
    bool is_health = service_is_health_loop(s, all->loop->index);
    int open = atomic_load_explicit(is_health ? &counters->connections : &s->connections,
                                    memory_order_relaxed);
    int closing =
        atomic_load_explicit(is_health ? &counters->closing : &s->closing, memory_order_relaxed);
    int most = is_health ? HEALTH_CONNECTIONS_MAX : s->connections_max;
    if (!reserve_fill(&all->reserve))
        return ROOM_NONE;
    if (open < most || (open - closing < most && closing < CLOSING_MAX + most / CLOSING_PART))
        return ROOM_FREE;
    if (closing >= CLOSING_MAX + most / CLOSING_PART)
        return ROOM_NONE;
    *replaced = first_to_go(all, now_ns, LONG_STEPS);
    if (*replaced == NULL && !is_health && ask_another(all, now_ns, LONG_IDLE_NS))
        return ROOM_NONE;
    if (*replaced == NULL)
        *replaced = first_to_go(all, now_ns, STEPS);
    if (*replaced == NULL && !is_health)
        (void)ask_another(all, now_ns, 0);
    return *replaced != NULL ? ROOM_REPLACE : ROOM_NONE;
}

bool room_make(connections *all, uint64_t now_ns)
{
    connection *c = oldest(&all->newcomers);
    if (c == NULL)
        c = oldest(&all->clients);
    if (c == NULL)
        return false;
    connection_end(c, CLOSURE_ROOM, now_ns);
    return true;
}
