#ifndef BATCHER_POLICY_CANDIDATE_H
#define BATCHER_POLICY_CANDIDATE_H

#include "batcher/policy/policy.h"

/* The batch that a list (policy_queue) would run now, and what it is worth: of a ragged program, of
 * a padded or packed bucket, or exact. Pure, like the policy that chooses among them. */

/* Slack, in batches, at which urgency has fallen to 1/e. */
#define CANDIDATE_URGENCY_BATCHES 3.0
/* Times vary: whoever is to be in time starts by so much of the batch's time earlier. */
#define CANDIDATE_TIME_MARGIN 0.15
/* So many executions make the fit worth asking. */
#define CANDIDATE_GUESS_OBSERVATIONS 16

/* A batch that could run: `own` rows of the list, `riders` beside them. */
typedef struct candidate {
    int bucket;
    int64_t own, riders;
    double time_ns, budget_ns;
    device_bucket shape;         /* padded: of the bucket */
    const bucket_packed *packed; /* NULL: one sequence a row */
    double tokens;               /* packed: that it would hold */
    double worth;                /* packed: real tokens by time or positions */
    double rows;                 /* packed: members of all lists, each of which earns */
} candidate;

/* The batch of list `q` with the best index; and, as `saver`, the best of those short enough for
 * its most urgent member. `scale_ns`: the unit of urgency. False: some time is not known. */
bool candidate_find(const policy_snapshot *s, int q, double scale_ns, candidate *out,
                    candidate *saver);
/* Without measurements: as many rows as there are, in the smallest bucket that holds them. */
void candidate_guess(const policy_snapshot *s, int q, candidate *out);

/* What a batch of list `q` earns per time: policy.h. */
double candidate_index(const policy_snapshot *s, int q, const candidate *c, double scale_ns);
/* Latest start, from now, that keeps the most urgent member of the list in time. */
double candidate_start_ns(const policy_snapshot *s, const policy_queue *q, double time_ns);
/* Time of a bucket of that shape; of one never run yet what the fitted cost says. 0: nobody knows.
 */
double candidate_bucket_ns(const policy_model *m, int bucket, int64_t rows, int64_t length);

/* candidate_packed.c: packed rows in place of the padded batch `out`, where they are worth more and
 * the most urgent member is not late for it. */
void candidate_prefer_packed(const policy_snapshot *s, int q, candidate *out, candidate *saver);

#endif
