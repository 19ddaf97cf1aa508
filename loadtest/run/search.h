#ifndef LOADTEST_RUN_SEARCH_H
#define LOADTEST_RUN_SEARCH_H

#include <stdbool.h>

/* Finds the highest rate that meets an objective. A pure state machine: it names the rate to try,
 * the caller runs it and reports the outcome. It brackets the rate by multiplying or dividing,
 * narrows the bracket by geometric bisection, then confirms the rate; a failed confirmation makes
 * it the new upper end. */
typedef enum search_stage {
    SEARCH_BRACKET,
    SEARCH_NARROW,
    SEARCH_CONFIRM,
    SEARCH_DONE
} search_stage;

typedef struct search {
    search_stage stage;
    double rate;       /* to try next; when done: the result, 0 if no rate meets it */
    double low, high;  /* met, and not met; 0: not known */
    double resolution; /* stop when high / low <= 1 + resolution */
    double rate_min, rate_max;
    bool doubted; /* this rate failed once and is tried again */
    unsigned confirmations, confirmed;
    unsigned runs, runs_max;
} search;

#define SEARCH_RUNS_MAX 90

/* `start` is a first guess. */
void search_begin(search *s, double start, double resolution, unsigned confirmations);
/* Reports whether the run at s->rate met the objective. */
void search_tell(search *s, bool held);

#endif
