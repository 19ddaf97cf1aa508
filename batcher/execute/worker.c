#include <assert.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "batcher/scheduler_internal.h"

/* While work waits that this worker cannot run: a failed device may be back. */
#define LOOK_AGAIN_NS UINT64_C(50000000)

/* What a worker does after deciding. */
typedef struct pulled {
    policy_action action;
    uint64_t until_ns; /* wake up then, at the latest; UINT64_MAX: no need */
    /* To return, without the mutex: too late or cancelled; wrong; nothing can run it. */
    job *overdue, *dead, *refused, *stranded;
    bool has_left;   /* rows still wait */
    bool is_leaving; /* the scheduler stops, and this worker is done */
} pulled;

static bool is_acceptable(const model_queue *q, const job *j)
{
    const model_batching *b = &j->model->batching;
    if (j->rows <= 0 || j->length < 0)
        return false;
    if (model_is_exact(j->model))
        return b->can_batch || j->rows <= (b->batch_max > 1 ? b->batch_max : 1);
    return bucket_find_sequence(&q->axes, j->length) >= 0;
}

static void chain(job **first, job *j)
{
    j->next = *first;
    *first = j;
}

static void drain(scheduler *s, pulled *p)
{
    for (mailbox_node *node = mailbox_take_all(&s->inbox), *next; node != NULL; node = next) {
        next = node->next;
        job *j = (job *)node;
        atomic_store_explicit(&j->rows_left, j->rows, memory_order_relaxed);
        model_queue *q = dispatch_queue(&s->dispatch, j->model);
        j->row_next = 0;
        if (q != NULL && !is_acceptable(q, j))
            chain(&p->refused, j);
        else if (q == NULL || !dispatch_push(&s->dispatch, q, j))
            chain(&p->stranded, j);
    }
}

static bool is_eligible(void *context, int device_index, const model_queue *q, uint64_t now_ns)
{
    return place_is_eligible(context, device_index, q, now_ns);
}

static void decide(worker *l, pulled *p, uint64_t now_ns)
{
    scheduler *s = l->scheduler;
    dispatch_request request = {.now_ns = now_ns,
                                .device_index = l->device_index,
                                .workers = s->devices[l->device_index]->slots,
                                .is_flushing =
                                    atomic_load_explicit(&s->is_stopping, memory_order_relaxed),
                                .is_eligible = is_eligible,
                                .context = s};
    dispatch_batch taken = {.members = l->batch.members,
                            .capacity = BATCH_MEMBERS_MAX,
                            .places = l->batch.places,
                            .bill = &l->batch.bill};
    dispatch_next(&s->dispatch, &request, &taken);
    p->action = taken.action;
    p->until_ns = taken.until_ns;
    p->overdue = taken.overdue;
    p->dead = taken.dead;
    if (taken.action == POLICY_RUN)
        form_batch(l, &taken);
    /* A cancelled job deep in a long queue may wait a little: looking at all of them costs. */
    if (atomic_load_explicit(&s->sweep_wanted, memory_order_relaxed) &&
        dispatch_sweep(&s->dispatch, now_ns, &p->dead))
        atomic_store_explicit(&s->sweep_wanted, false, memory_order_relaxed);
}

static void pull(worker *l, pulled *p)
{
    scheduler *s = l->scheduler;
    *p = (pulled){.until_ns = UINT64_MAX};
    pthread_mutex_lock(&s->mutex);
    uint64_t now_ns = clock_now_ns();
    drain(s, p);
    dispatch_settle(&s->dispatch, &l->batch.bill, l->batch.device_ns);
    l->batch.count = 0;
    decide(l, p, now_ns);
    uint64_t deadline_ns = dispatch_deadline(&s->dispatch, &p->has_left);
    if (p->has_left && p->action == POLICY_RUN)
        atomic_fetch_add(&s->left, 1);
    l->seen_left = atomic_load(&s->left);
    /* The last worker to leave gives back what no worker could run. */
    p->is_leaving =
        p->action != POLICY_RUN && atomic_load(&s->is_stopping) && mailbox_is_empty(&s->inbox);
    if (p->is_leaving && --s->workers_alive == 0)
        dispatch_empty(&s->dispatch, &p->stranded);
    pthread_mutex_unlock(&s->mutex);

    if (deadline_ns < p->until_ns)
        p->until_ns = deadline_ns;
    if (p->action == POLICY_RUN) {
        stage_stamp(l->batch.stage_ns, STAGE_QUEUE, now_ns);
        stage_stamp(l->batch.stage_ns, STAGE_FORM, clock_now_ns());
    } else if (p->has_left && p->until_ns > now_ns + LOOK_AGAIN_NS) {
        p->until_ns = now_ns + LOOK_AGAIN_NS;
    }
    scheduler_return(s, p->overdue, STATUS_DEADLINE_EXCEEDED, now_ns);
    scheduler_return(s, p->dead, STATUS_CANCELLED, now_ns);
    scheduler_return(s, p->refused, STATUS_INVALID_ARGUMENT, now_ns);
    scheduler_return(s, p->stranded, STATUS_UNAVAILABLE, now_ns);
    /* More than one worker's work: pass it on. Work that is not this device's: to another kind. */
    if (p->has_left && p->action == POLICY_RUN)
        scheduler_wake(s, 0, -1);
    else if (p->has_left && p->action == POLICY_NOTHING)
        scheduler_wake(s, (int)(l - s->workers) + 1, l->device_index);
}

static void sleep_until(worker *l, uint64_t until_ns)
{
    scheduler *s = l->scheduler;
    /* Whoever posts looks at `is_sleeping` after posting; we look at the box after setting it: one
     * of the two sees the other. */
    atomic_exchange(&l->is_sleeping, 1);
    if (mailbox_is_empty(&s->inbox) && atomic_load(&s->left) == l->seen_left &&
        !atomic_load(&s->is_stopping) && !atomic_load(&s->sweep_wanted)) {
        struct timespec timeout, *limit = NULL;
        if (until_ns != UINT64_MAX) {
            uint64_t now_ns = clock_now_ns();
            uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
            timeout.tv_sec = (time_t)(left_ns / 1000000000);
            timeout.tv_nsec = (long)(left_ns % 1000000000);
            limit = &timeout;
        }
        syscall(SYS_futex, &l->is_sleeping, FUTEX_WAIT_PRIVATE, 1, limit, NULL, 0);
    }
    atomic_exchange(&l->is_sleeping, 0);
}

void *worker_main(void *worker_pointer)
{
    worker *l = worker_pointer;
    scheduler *s = l->scheduler;
    char name[16];
    snprintf(name, sizeof name, "worker %d", (int)(l - s->workers));
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        pulled p;
        pull(l, &p);
        if (p.action == POLICY_RUN)
            place_run(l);
        else if (p.is_leaving)
            return NULL;
        else
            sleep_until(l, p.until_ns);
    }
}
