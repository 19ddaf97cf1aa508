#ifndef SERVER_SERVICE_SERVICE_H
#define SERVER_SERVICE_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "batcher/scheduler.h"
#include "models/repository/repository.h"
#include "server/access/table.h"
#include "server/budget/budget.h"
#include "server/options/options.h"
#include "server/service/closure.h"
#include "server/service/shared_memory.h"
#include "server/service/tenant.h"
#include "server/service/text_scratches.h"
#include "server/telemetry/record.h"
#include "server/watchdog/watchdog.h"

/* What requests are served with, apart from how they arrive: models, scheduler, devices, tenants'
 * quotas, counters, and whether the server is starting, open or draining. One for the process.
 * Fields without _Atomic are constant once `is_open` is set, those of the options always. */

#define SERVICE_PROGRESS_BYTES 512

/* How long turns of the loop took, good to a millisecond: cells by upper bound, the last one
 * without.
 */
#define SERVICE_TURN_CELLS 9
extern const double service_turn_bounds[SERVICE_TURN_CELLS - 1]; /* seconds */

/* Counters of one event loop; its thread writes them, anybody reads. */
typedef struct service_loop {
    _Atomic int requests; /* open */
    _Atomic int connections;
    _Atomic int
        closing; /* of these: ended for others, and open until the library has closed them */
    /* For other loops (server/connection/room.h, relief.h), published once a second: since when its
     * connection that is next to make room has been idle, 0: none has been for long; the most that
     * is held for one that is stalled. */
    _Atomic uint64_t idle_since_ns;
    _Atomic size_t stalled_bytes;
    _Atomic int rooms_wanted;      /* by other loops */
    _Atomic bool is_relief_wanted; /* by another loop */
    _Atomic uint64_t last_request_ns;
    _Atomic uint64_t closures[CLOSURE_COUNT]; /* connections that the server ended */
    watched watch;
    _Atomic uint64_t turn_cells[SERVICE_TURN_CELLS], turn_ms;
    _Atomic uint64_t yields;      /* times that a connection had used up its share of a turn */
    _Atomic uint64_t shortages;   /* times that libh2o found no memory */
    _Atomic uint64_t log_dropped; /* lines of the access log that were not written */
} __attribute__((aligned(64))) service_loop;

/* Why a request was refused before it was looked at. */
typedef enum service_refusal {
    SERVICE_REFUSED_NO_KEY,
    SERVICE_REFUSED_WRONG_KEY,
    SERVICE_REFUSED_NO_RIGHT,
    SERVICE_REFUSALS
} service_refusal;

typedef struct service {
    const server_options *options; /* borrowed */
    _Atomic bool is_open;          /* what requests are served with is there */
    repository *models;
    scheduler *work;
    device *const *devices;
    int device_count;

    _Atomic bool is_draining; /* not ready any more, and still serving */
    _Atomic bool is_stopping; /* connections end with their next response */
    uint64_t start_ns;
    _Atomic uint64_t start_failures;
    pthread_mutex_t progress_lock;         /* of the two texts that follow */
    char progress[SERVICE_PROGRESS_BYTES]; /* what the start is doing, before it is open */
    char missing[SERVICE_PROGRESS_BYTES];  /* why a device is not there; "": none is missing */

    pthread_mutex_t access_lock; /* of `access`; taken when a loop starts and after a reload */
    access_table *access;        /* who is known; a reference */
    _Atomic uint64_t refusals[SERVICE_REFUSALS];

    struct offload_pool *helpers; /* threads for what would hold a loop; NULL in tests */
    text_scratches text_scratches;
    shared_memory *regions; /* that clients share */
    budget budget;          /* bytes held for clients */
    recorder *recorder;
    int log_fd; /* of the access log; -1: there is none */
    tenant_quota quotas[SERVER_TENANTS_MAX + 1];
    _Atomic int connections, closing; /* of all loops */
    /* Refused for want of the process's budget, and when: who is stalled shall make room. */
    _Atomic size_t refused_bytes;
    _Atomic uint64_t refused_ns;
    _Atomic size_t
        leaving_bytes;   /* held for connections that were ended for it and are not closed */
    int connections_max; /* limits.connections_max, or fewer if there are no descriptors for it */
    int loop_count;      /* without the one for health, whose counters follow those of the others */
    bool has_health;     /* health and metrics have a loop of their own */
    service_loop loops[SERVER_LOOPS_MAX + 1];
} service;

/* `options` are borrowed until service_destroy(). NULL: memory is out. */
service *service_create(const server_options *options, int loop_count);

/* Reads the keys; on failure those that are there stay. Errors: access_table_create(). */
status service_load_access(service *s) MUST_CHECK;
/* A reference to who is known now. Any thread. */
access_table *service_acquire_access(service *s);

static inline bool service_is_health_loop(const service *s, int index)
{
    return index == s->loop_count;
}
void service_destroy(service *s);

bool service_is_open(const service *s);

/* Does every loop turn, by timeouts.liveness_ms? Are all models ready, and is it not draining? Any
 * thread. */
bool service_is_live(const service *s);
bool service_is_ready(const service *s);

/* Copies what the start is doing, cut to fit. Any thread; takes a lock, so only for routes
 * that answer before the server is open. */
void service_set_progress(service *s, const char *progress);
void service_get_progress(service *s, char progress[SERVICE_PROGRESS_BYTES]);
void service_set_missing(service *s, const char *why);
void service_get_missing(service *s, char why[SERVICE_PROGRESS_BYTES]);

/* A turn of the loop has taken so long. On its thread. */
void service_count_turn(service_loop *counters, uint64_t ms);

/* The longest time for which a loop has been stuck (server/watchdog/); 0: all turn. Any thread. */
uint64_t service_stuck_ns(const service *s);

/* Requests that are open in all loops. Any thread. */
int service_open_requests(const service *s);

#endif
