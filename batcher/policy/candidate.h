#ifndef BATCHER_POLICY_CANDIDATE_H
#define BATCHER_POLICY_CANDIDATE_H

#include "batcher/policy/policy.h"

/* The batch that a bucket queue (policy_queue) would run now, and what it is worth: of a ragged
 * program, of a padded or packed bucket, or exact. Pure, like the policy that chooses among them.
 */

/* Slack, in batches, at which urgency has fallen to 1/e. */
#define CANDIDATE_URGENCY_BATCHES 3.0
/* Times vary: to be in time a batch starts earlier by so much of its time. */
#define CANDIDATE_TIME_MARGIN 0.15
/* So many executions make the fit worth asking. */
#define CANDIDATE_GUESS_OBSERVATIONS 16

/* A batch that could run: `own` rows of the bucket queue that leads, `backfill` rows of others. */
typedef struct candidate {
    int bucket;
    int64_t own, backfill;
    double time_ns, budget_ns;
    device_bucket shape;         /* padded: of the bucket */
    const bucket_packed *packed; /* NULL: one sequence a row */
    double tokens;               /* packed: that it would hold */
    double worth;                /* packed: real tokens by time or by computed tokens */
    double rows;                 /* packed: of all bucket queues, each of which earns */
} candidate;

/* The batch of queue `q` with the best index; and, as `feasible`, the best of those that meet the
 * deadline of its most urgent member. `scale_ns`: the unit of urgency. False: some time is not
 * known. */
bool candidate_find(const policy_snapshot *s, int q, double scale_ns, candidate *out,
                    candidate *feasible);
/* Without measurements: as many rows as there are, in the smallest bucket that holds them. */
void candidate_guess(const policy_snapshot *s, int q, candidate *out);

/* What a batch of queue `q` earns per time: policy.h. */
double candidate_index(const policy_snapshot *s, int q, const candidate *c, double scale_ns);
/* Latest start, from now, that keeps the most urgent member of the queue in time. */
double candidate_start_ns(const policy_snapshot *s, const policy_queue *q, double time_ns);
/* Time of a bucket of that shape; of one never run yet what the fitted cost says. 0: not known.
 */
double candidate_bucket_ns(const policy_model *m, int bucket, int64_t rows, int64_t length);

/* candidate_packed.c: packed rows in place of the padded batch `out`, where they are worth more and
 * keep the most urgent member in time. */
void candidate_prefer_packed(const policy_snapshot *s, int q, candidate *out, candidate *feasible);

#endif
