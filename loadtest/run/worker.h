#ifndef LOADTEST_RUN_WORKER_H
#define LOADTEST_RUN_WORKER_H

#include "loadtest/report/result.h"
#include "loadtest/wire/network.h"
#include "loadtest/wire/target.h"
#include "loadtest/workload/arrival.h"
#include "loadtest/workload/expect.h"
#include "loadtest/workload/request_source.h"

/* One thread of the load: its connections, its share of the arrivals, its result. */
typedef struct worker_plan {
    const target *target;
    const request_head *head;
    const request_source *source;
    expect *expect; /* or NULL */
    network_kind network;
    const arrival_spec *arrivals; /* NULL: closed loop */
    uint64_t seed;
    unsigned concurrency;     /* closed loop: of this worker */
    unsigned connections;     /* kept open, of this worker */
    unsigned connections_max; /* opened when the others are busy */
    unsigned streams_max;     /* requests at once on an HTTP/2 connection */
    unsigned index, count;    /* this worker takes arrivals index, index + count, ... */
    uint64_t warm_up_ns, duration_ns, timeout_ns, spin_ns, slo_limit_ns;
} worker_plan;

/* Other threads may read this, and the atomics of the result, while a worker runs. */
typedef struct worker_live {
    _Atomic uint64_t sent, succeeded, failed; /* warm-up included */
    _Atomic uint64_t in_flight, waiting;
    histogram latency; /* warm-up included, by time of response */
} worker_live;

typedef struct worker worker;

/* Any thread; `plan` and what it points to are borrowed until worker_destroy. */
worker *worker_create(const worker_plan *plan);
void worker_destroy(worker *w);
/* The worker's thread calls worker_prepare, then worker_run. worker_prepare opens the connections
 * and waits for them a few seconds at most; connections that fail are retried later. */
status worker_prepare(worker *w) MUST_CHECK;
/* Sends from `start_ns` on. Returns when every request has succeeded or failed, or soon after
 * `*stop` is set. */
void worker_run(worker *w, uint64_t start_ns, const _Atomic int *stop);

const worker_live *worker_live_view(const worker *w);
/* Complete after worker_run; its atomics and histograms may be read before. */
const result *worker_result(const worker *w);
/* "HTTP/1.1" or "HTTP/2"; after worker_prepare. NULL if no connection was made. */
const char *worker_protocol(const worker *w);

#endif
