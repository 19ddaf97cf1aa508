#ifndef LOADTEST_RUN_SEARCH_H
#define LOADTEST_RUN_SEARCH_H

#include <stdbool.h>

/* Finding the highest rate that holds an objective, as a pure state machine: it says which rate to
 * try, the caller runs it and tells how it went. Brackets by doubling or halving, narrows the
 * bracket by bisection (geometric), then wants the rate confirmed; a failed confirmation makes it
 * the new upper end. */
typedef enum search_stage {
    SEARCH_BRACKET,
    SEARCH_NARROW,
    SEARCH_CONFIRM,
    SEARCH_DONE
} search_stage;

typedef struct search {
    search_stage stage;
    double rate;       /* to try next; when done: the answer, 0 if no rate holds */
    double low, high;  /* held, and did not; 0: not known */
    double resolution; /* stop when high / low <= 1 + resolution */
    double rate_min, rate_max;
    bool doubted; /* this rate failed once and is tried again */
    unsigned confirmations, confirmed;
    unsigned runs, runs_max;
} search;

#define SEARCH_RUNS_MAX 90

/* `start` is a first guess. */
void search_begin(search *s, double start, double resolution, unsigned confirmations);
/* The run at s->rate held the objective or not. */
void search_tell(search *s, bool held);

#endif
