#ifndef BATCHER_ADMISSION_ADMISSION_H
#define BATCHER_ADMISSION_ADMISSION_H

#include <stdatomic.h>

#include "batcher/job/job.h"
#include "batcher/policy/fair.h"
#include "batcher/policy/policy.h"
#include "models/latency.h"

#define ADMISSION_ONE 4096
#define ADMISSION_FIRST (ADMISSION_ONE * 8 / 10) /* a limit before anything was learned */
#define ADMISSION_MODELS BACKLOG_MODELS
#define ADMISSION_OCTAVES 16

/* How many times the time that is left before its deadline the backlog may be before a job is
 * rejected, in ADMISSION_ONE-ths. It is learned from which jobs were in time, as TCP learns its
 * window (additive increase, multiplicative decrease: Chiu and Jain 1989): the limit rises while
 * jobs that were admitted near it are in time, and is cut when one is not. A cut counts once for
 * all jobs that were admitted before it. */
typedef struct admission_limit {
    _Atomic uint32_t value;              /* 0: ADMISSION_FIRST */
    _Atomic uint64_t changed_ns, cut_ns; /* the latest change; the latest cut */
} admission_limit;

/* When would a job that arrives now be done? Any thread asks, without a lock, so that a request
 * that cannot meet its deadline is rejected at once. Counters only: the backlog, and how far such
 * estimates were from the truth lately. */
typedef struct admission {
    int tenant_count;
    uint32_t weights[FAIR_TENANTS_MAX];
    uint64_t weight_sum;
    backlog backlog;
    _Atomic uint64_t scale;    /* time that batches took / the estimate of their members,
                                  in ADMISSION_ONE-ths */
    _Atomic uint32_t batches;  /* that taught `scale`; the first ones count for more */
    _Atomic uint64_t batch_ns; /* moving mean of a batch */
    _Atomic int32_t busy;      /* workers that execute now */
    /* By octave of length, because the policy reorders work: in an overload short jobs are in time
     * where long ones have no chance. */
    admission_limit limits[ADMISSION_MODELS][FAIR_TENANTS_MAX][FAIR_CLASSES][ADMISSION_OCTAVES];
} admission;

typedef struct admission_estimate {
    bool is_known;       /* there are measurements, and recent ones */
    uint64_t cost_ns;    /* device time of this job in a full batch, before scaling */
    uint64_t backlog_ns; /* of device time ahead of it, per worker */
    uint64_t wait_ns;    /* until its batch begins, if it is as late as others were lately */
    uint64_t run_ns;     /* of its batch, if it were alone */
} admission_estimate;

/* Until its batch begins, by what is ahead of it. */
static inline uint64_t admission_expected_wait_ns(const admission_estimate *e)
{
    return e->backlog_ns < e->wait_ns ? e->backlog_ns : e->wait_ns;
}

/* `a` is zeroed memory. Its tables are large: what no request uses is never touched. */
void admission_init(admission *a, int tenant_count, const uint32_t *weights);

/* The part of `rows_max` waiting rows that is that tenant's by weight, whatever the others do. */
int64_t admission_share(const admission *a, int tenant, int64_t rows_max);

/* For `rows` of `length` on `workers` workers of the kind of device `device_index`. Work that is
 * ahead: that of its own class, and of every other class what its weight lets through meanwhile
 * (generalised processor sharing, Parekh and Gallager 1993). */
void admission_estimate_job(const admission *a, const model *m, const latency *l, int device_index,
                            int workers, tenant_class whose, int64_t rows, int64_t length,
                            uint64_t now_ns, admission_estimate *out);

/* Until `workers` workers have begun all that waits for `m` now, by measured times; 0: nothing
 * waits, or nothing was measured yet. */
uint64_t admission_drain_ns(const admission *a, const model *m, int workers);

static inline bool admission_is_hopeless(const admission_estimate *e, uint64_t now_ns,
                                         uint64_t deadline_ns)
{
    return e->is_known && deadline_ns != UINT64_MAX &&
           now_ns + e->run_ns + e->wait_ns > deadline_ns;
}

/* Of a hopeless job: it would be late even by the expected wait. Else it might be in time, but not
 * if all jobs like it were admitted. */
static inline bool admission_is_sure(const admission_estimate *e, uint64_t now_ns,
                                     uint64_t deadline_ns)
{
    return now_ns + e->run_ns + admission_expected_wait_ns(e) > deadline_ns;
}

/* Of a hopeless job: the backlog is not to blame, its own batch takes longer than what is left. */
static inline bool admission_is_late_alone(const admission_estimate *e, uint64_t now_ns,
                                           uint64_t deadline_ns)
{
    return now_ns + e->run_ns > deadline_ns;
}

/* An admitted job is done, in time or not, or was dropped because it would have been late. */
void admission_learn_end(admission *a, const job *j, bool is_in_time, uint64_t now_ns);
/* A batch whose members were estimated at `cost_ns` together took `took_ns`. */
void admission_learn(admission *a, uint64_t cost_ns, uint64_t took_ns);

#endif
