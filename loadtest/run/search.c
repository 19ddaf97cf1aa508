#include "loadtest/run/search.h"

#include <assert.h>
#include <math.h>

#define RATE_MIN 0.1
#define RATE_MAX 1e8
#define FACTOR 1.6 /* of bracketing; below 2 saves runs */

void search_begin(search *s, double start, double resolution, unsigned confirmations)
{
    assert(start > 0 && resolution > 0);
    *s = (search){.stage = SEARCH_BRACKET,
                  .rate = start,
                  .resolution = resolution,
                  .rate_min = RATE_MIN,
                  .rate_max = RATE_MAX,
                  .confirmations = confirmations,
                  .runs_max = SEARCH_RUNS_MAX};
}

static void finish(search *s, double rate)
{
    s->stage = SEARCH_DONE;
    s->rate = rate;
}

/* Chooses the next rate from what is known. */
static void choose(search *s)
{
    s->confirmed = 0;
    if (s->low == 0) {
        s->stage = SEARCH_BRACKET;
        s->rate = s->high / FACTOR;
        if (s->rate < s->rate_min)
            finish(s, 0);
    } else if (s->high == 0) {
        s->stage = SEARCH_BRACKET;
        s->rate = s->low * FACTOR;
        if (s->rate > s->rate_max)
            finish(s, s->low);
    } else if (s->high / s->low > 1 + s->resolution) {
        s->stage = SEARCH_NARROW;
        s->rate = sqrt(s->low * s->high);
    } else if (s->confirmations == 0) {
        finish(s, s->low);
    } else {
        s->stage = SEARCH_CONFIRM;
        s->rate = s->low;
    }
}

void search_tell(search *s, bool held)
{
    assert(s->stage != SEARCH_DONE);
    s->runs++;
    bool second_chance = !held && !s->doubted && s->runs < s->runs_max;
    s->doubted = second_chance;
    if (second_chance)
        return;
    if (s->stage == SEARCH_CONFIRM) {
        if (held && ++s->confirmed == s->confirmations) {
            finish(s, s->rate);
            return;
        }
        if (!held) {
            /* It met the objective by chance: search below it. */
            s->high = s->rate;
            s->low = s->high / (1 + s->resolution);
            s->confirmed = 0;
            s->rate = s->low;
            if (s->rate < s->rate_min)
                finish(s, 0);
        }
    } else {
        if (held)
            s->low = s->rate;
        else
            s->high = s->rate;
        choose(s);
    }
    if (s->stage != SEARCH_DONE && s->runs >= s->runs_max)
        finish(s, s->stage == SEARCH_CONFIRM ? 0 : s->low);
}
