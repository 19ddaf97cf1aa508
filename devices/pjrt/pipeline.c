#include "devices/pjrt/pipeline.h"

#include <assert.h>

/* A device that idles less than this is busy. */
#define IDLE_MAX 0.02
/* A step that leaves more than this of the idle time did not help. */
#define HELPS_MIN 0.75
/* After a step that did not help, the next one is tried so many windows later. */
#define HELD_WINDOWS 32
/* So many windows in a row show that fewer batches are enough. */
#define EASY_WINDOWS 8
/* ... by this part of a batch. */
#define EASY_MARGIN 0.25

void pjrt_pipeline_init(pjrt_pipeline *p, int depth_min, int depth_max)
{
    assert(depth_min > 0 && depth_min <= depth_max);
    *p = (pjrt_pipeline){
        .depth = depth_min, .depth_min = depth_min, .depth_max = depth_max, .idle_before = -1};
}

static void begin_window(pjrt_pipeline *p)
{
    p->batches = 0;
    p->window_computing_ns = p->window_transfer_ns = p->window_idle_ns = 0;
}

void pjrt_pipeline_move(pjrt_pipeline *p, int depth)
{
    assert(depth >= p->depth_min && depth <= p->depth_max);
    bool is_taken_back = depth < p->depth && p->idle_before >= 0;
    p->held = is_taken_back ? HELD_WINDOWS : 0;
    p->idle_before = depth > p->depth ? p->idle_fraction : -1;
    p->easy = 0;
    p->depth = depth;
    begin_window(p);
}

void pjrt_pipeline_refuse(pjrt_pipeline *p)
{
    p->held = HELD_WINDOWS;
}

/* Would one batch less have kept the device busy? Each is in flight for its copies and its own
 * execution, without the wait for others'. */
static bool is_easy(const pjrt_pipeline *p)
{
    double computing = (double)p->window_computing_ns;
    double needed = computing > 0 ? 1 + (double)p->window_transfer_ns / computing : p->depth_max;
    return needed < p->depth - 1 - EASY_MARGIN;
}

static int decide(pjrt_pipeline *p)
{
    if (p->idle_before >= 0) { /* the step up is judged */
        if (p->idle_fraction > HELPS_MIN * p->idle_before)
            return p->depth - 1;
        p->idle_before = -1;
    }
    if (p->held > 0)
        p->held--;
    else if (p->idle_fraction > IDLE_MAX && p->depth < p->depth_max)
        return p->depth + 1;
    p->easy = is_easy(p) ? p->easy + 1 : 0;
    return p->easy >= EASY_WINDOWS && p->depth > p->depth_min ? p->depth - 1 : p->depth;
}

int pjrt_pipeline_observe(pjrt_pipeline *p, const pjrt_times *t, bool is_full)
{
    uint64_t ready_ns = t->uploaded_ns, before_ns = p->last_executed_ns;
    uint64_t begin_ns = ready_ns > before_ns ? ready_ns : before_ns;
    uint64_t computing_ns = t->executed_ns > begin_ns ? t->executed_ns - begin_ns : 0;
    uint64_t transfer_ns = ready_ns - t->submitted_ns + t->downloaded_ns - t->executed_ns;
    /* Not before there was work. */
    uint64_t free_ns = before_ns > t->submitted_ns ? before_ns : t->submitted_ns;
    uint64_t idle_ns = ready_ns > free_ns ? ready_ns - free_ns : 0;
    if (t->executed_ns > before_ns)
        p->last_executed_ns = t->executed_ns;
    p->computing_ns += computing_ns;
    p->transfer_ns += transfer_ns;
    if (!is_full)
        return p->depth;
    p->window_computing_ns += computing_ns;
    p->window_transfer_ns += transfer_ns;
    p->window_idle_ns += idle_ns;
    if (++p->batches < PJRT_PIPELINE_WINDOW)
        return p->depth;
    uint64_t whole_ns = p->window_computing_ns + p->window_idle_ns;
    p->idle_fraction = whole_ns > 0 ? (double)p->window_idle_ns / (double)whole_ns : 0;
    int depth = decide(p);
    begin_window(p);
    return depth;
}
