#ifndef BATCHER_QUEUE_DISPATCH_H
#define BATCHER_QUEUE_DISPATCH_H

#include "batcher/policy/placement.h"
#include "batcher/queue/cost_attribution.h"
#include "batcher/queue/queue.h"

/* All queues, and what a free device takes from them: fair.h chooses who leads, policy.h what runs,
 * queue.h gives the members. It knows no thread, no clock and no device that computes, so the
 * server (worker_thread.c, with the mutex held) and the simulator (tests/sim) run the same code. */

/* Of so many batches one is led by the job whose implied deadline (queue.h) passed first, so that
 * jobs without a deadline do not starve: batcher/README.md has the bound. */
#define DISPATCH_AGED_TURN 4
/* A tenant of whom work was taken so lately shares the devices. */
#define DISPATCH_SHARING_NS UINT64_C(1000000000)
/* A tenant that shares them with so few rows waiting, or none, is quiet: it waits for the batches
 * of others and not for its own. For its sake no batch takes longer than so many times its fixed
 * cost (a padded one, whose next smaller size may be half of that, twice as long), and a ragged one
 * that it leads is backfilled with rows of tenants that are not quiet only up to so many times its
 * fixed cost. */
#define DISPATCH_QUIET_ROWS 4
#define DISPATCH_SHARED_BATCH 8.0
#define DISPATCH_SHARED_BACKFILL 2.0
/* Cancelled jobs deep in a queue are looked for at most this often; at its head always. */
#define DISPATCH_SWEEP_NS UINT64_C(5000000)

typedef struct dispatch {
    fair fair;
    int device_count;
    model_queue *queues[MODEL_INDEX_MAX];
    int queue_count; /* highest index in use + 1 */
    uint64_t batches, swept_ns;
    uint64_t served_ns[FAIR_TENANTS_MAX]; /* when each tenant's work was taken last; 0: never */
    /* Of the latest decision. */
    policy_queue *seen_queues;
    int seen_capacity;
    policy_model seen_models[MODEL_INDEX_MAX];
    bool is_eligible[MODEL_INDEX_MAX];
    pack pack;
} dispatch;

typedef struct dispatch_request {
    uint64_t now_ns;
    int device_index, workers; /* which device asks; how many workers share this work */
    const placement_devices *devices;
} dispatch_request;

typedef struct dispatch_batch {
    batch_member *members; /* the caller's, `capacity` of them */
    int capacity;
    pack_place *places;            /* the caller's, PACK_SEQUENCES_MAX of them */
    cost_attribution *attribution; /* the caller's; of POLICY_RUN, until it is settled */
    policy_action action;
    uint64_t until_ns; /* POLICY_WAIT */
    model_queue *queue;
    int bucket; /* index of model->buckets; -1: exact */
    /* Of a packed bucket, else NULL: `places` has an entry for each sequence, in the members'
     * order.
     */
    const bucket_packed *packed;
    int count;
    int64_t rows;
    uint64_t expected_ns; /* 0: not known */
    job *overdue, *dead;  /* dropped on the way, linked by `next`: the caller returns them */
} dispatch_batch;

void dispatch_init(dispatch *d, int device_count, int tenant_count, const uint32_t *weights);
/* Holds no jobs any more. */
void dispatch_dispose(dispatch *d);

/* The queue of that model, made when it is new; NULL: no memory. */
model_queue *dispatch_queue(dispatch *d, const model *m);

/* Takes the job in (model_queue_push). False: no memory. */
bool dispatch_push(dispatch *d, model_queue *q, job *j) MUST_CHECK;

/* Drops what is late, chooses and takes a batch, and attributes its expected time. Nothing is
 * taken unless POLICY_RUN. */
void dispatch_next(dispatch *d, const dispatch_request *r, dispatch_batch *out);
/* That batch is over and took `took_ns` of device time: the difference to the expected time is
 * attributed to tenants, classes and the model. Once only. */
void dispatch_settle(dispatch *d, cost_attribution *c, uint64_t took_ns);

/* Takes cancelled and failed jobs out of all queues. False: it is too soon after the last sweep of
 * such long queues; call again later. */
bool dispatch_sweep(dispatch *d, uint64_t now_ns, job **dead);
/* Takes out all jobs. */
void dispatch_empty(dispatch *d, job **dropped);
/* The earliest deadline of all; UINT64_MAX: none. `*has_rows`: does anything wait? */
uint64_t dispatch_deadline(const dispatch *d, bool *has_rows);

#endif
