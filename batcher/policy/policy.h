#ifndef BATCHER_POLICY_POLICY_H
#define BATCHER_POLICY_POLICY_H

#include "batcher/policy/bucket.h"
#include "models/latency.h"

/* What a free device should run now: a pure function. It reads no clock, allocates nothing and
 * keeps nothing, so the same code decides in the server and under a simulated clock (tests/sim).
 *
 * It is asked about one flow (a tenant's class, which fair.h chose): the lists of that flow lead,
 * others ride along where there is room. Among them it runs the batch that earns most per time:
 *
 *     index = sum over members of urgency(slack) / time of the batch
 *
 * after "apparent tardiness cost" (Vepsalainen and Morton 1987), with a batch in place of a job:
 * urgency falls with the slack that is left after the batch, from 1 (none) to a floor, and is 0 for
 * who would be late. With slack everywhere the fullest batch wins (throughput); as a deadline nears
 * its list rises; where not everything can be met the cheapest goes first, and no device works for
 * somebody who is late already. */

/* The waiting jobs of the leading flow, of one model and sequence bucket. Only those with rows. */
typedef struct policy_queue {
    int model;    /* index into snapshot.models */
    int sequence; /* position on the model's sequence axis; 0 for exact models */
    int64_t jobs, rows;
    uint64_t oldest_ns;        /* when the most urgent one was admitted */
    uint64_t deadline_ns;      /* no member's deadline is earlier; UINT64_MAX: none has one */
    uint64_t mean_deadline_ns; /* of those that have one; 0: as `deadline_ns` */
    int64_t timed_rows; /* rows with a deadline; the rest are due some time after they came */
    uint64_t due_ns;    /* of the rest: the first; UINT64_MAX: there are none */
    int64_t head_rows;  /* rows of the head not yet in a batch */
    int64_t head_length;
} policy_queue;

typedef struct policy_model {
    const bucket_table *table;  /* what the asking device can run */
    const latency *latency;     /* of the model; NULL: nothing is known */
    int device_index;           /* the asking device */
    const int64_t *list_rows;   /* over all flows, by sequence; NULL: those in `queues` */
    const int64_t *list_tokens; /* their positions; NULL: not known, and nothing is packed */
    uint64_t virtual_ns;        /* device time the model received / weight */
    uint64_t queue_delay_ns;
    uint64_t time_max_ns; /* no longer batch while a shorter one is there; 0: no bound */
    int64_t rows_max;     /* of one batch, for exact models */
    bool is_exact;        /* a batch is jobs of the head's own length; bucket index is -1 */
    bool is_alone;        /* exact, and a batch is the head alone, whole */
    bool is_eligible;     /* this device may run it: place.c decides from health and fallback */
    bool saves_positions; /* packs where that pads less, whatever the times */
    int64_t rows_queued;
} policy_model;

typedef struct policy_snapshot {
    uint64_t now_ns;
    const policy_queue *queues;
    int queue_count;
    const policy_model *models;
    int model_count;
    int workers;        /* that take such work at once: how soon another decision comes; 0: 1 */
    bool is_flushing;   /* shutting down: wait for nobody */
    bool is_aged_first; /* this time the one longest overdue goes first, if any is */
} policy_snapshot;

typedef enum policy_action {
    POLICY_NOTHING, /* no queue holds work for this device */
    POLICY_WAIT,    /* ask again at `until_ns`, or when a job arrives */
    POLICY_RUN
} policy_action;

typedef struct policy_decision {
    policy_action action;
    uint64_t until_ns;
    int queue;         /* index into snapshot.queues: its head is in the batch */
    int bucket;        /* index of model->buckets; -1 for exact models */
    int64_t rows;      /* from that queue's list */
    int64_t fill_rows; /* then this many of other flows and of shorter sequences; of a packed
                          bucket of all that it holds */
    const bucket_packed *packed; /* of the bucket, in the model's table; NULL: it is none */
    uint64_t expected_ns;        /* the batch will take; 0: not known */
    uint64_t late_ns; /* members with an earlier deadline would be late: leave them out */
    double budget_ns; /* ragged programs: no more members than this takes; 0: no bound */
} policy_decision;

/* Ragged programs: how long a batch may take. A fixed cost F delays everybody behind it, a large
 * batch makes its members wait for each other: with B of device time waiting, batches of T make
 * them wait for F * B / T and T, which is least at T = sqrt(F * B) (the economic lot of Harris,
 * 1913). At least, a batch grows until its fixed cost is this part of it. */
#define POLICY_FIXED_SHARE (1.0 / 16)
/* How far models' received times (by weight) may drift apart before the one behind must lead. */
#define POLICY_MODEL_LAG_NS UINT64_C(100000000)

void policy_decide(const policy_snapshot *s, policy_decision *out);

#endif
