#include <assert.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "batcher/scheduler_internal.h"

/* While work waits that this lane cannot run: a failed device may be back. */
#define LOOK_AGAIN_NS UINT64_C(50000000)

/* What a lane does after deciding. */
typedef struct pulled {
    policy_action action;
    uint64_t until_ns; /* wake up then, at the latest; UINT64_MAX: no need */
    /* To return, without the mutex: too late or cancelled; wrong; nothing can run it. */
    job *overdue, *refused, *stranded;
    bool has_left;   /* rows still wait */
    bool is_leaving; /* the scheduler stops, and this lane is done */
} pulled;

static model_queue *find_queue(scheduler *s, const model *m)
{
    assert(m->index >= 0 && m->index < MODEL_INDEX_MAX);
    model_queue **slot = &s->queues[m->index];
    if (*slot != NULL && ((*slot)->model != m || (*slot)->serial != m->serial)) {
        /* The index was another model's, which is gone: no job of it can be left. */
        model_queue_destroy(*slot);
        *slot = NULL;
    }
    if (*slot == NULL) {
        model_queue *q = model_queue_create(m, s->device_count);
        if (q == NULL)
            return NULL;
        if (m->index >= s->queue_count) {
            policy_queue *seen =
                realloc(s->seen_queues, (size_t)(m->index + 1) * MODEL_AXIS_MAX * sizeof *seen);
            if (seen == NULL) {
                model_queue_destroy(q);
                return NULL;
            }
            s->seen_queues = seen;
            s->seen_capacity = (m->index + 1) * MODEL_AXIS_MAX;
            s->queue_count = m->index + 1;
        }
        *slot = q;
    }
    return *slot;
}

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

static void drain(scheduler *s, pulled *p, uint64_t now_ns)
{
    for (mailbox_node *node = mailbox_take_all(&s->inbox), *next; node != NULL; node = next) {
        next = node->next;
        job *j = (job *)node;
        atomic_store_explicit(&j->rows_left, j->rows, memory_order_relaxed);
        if (j->stage_ns[STAGE_ADMIT] == 0)
            j->stage_ns[STAGE_ADMIT] = now_ns;
        model_queue *q = find_queue(s, j->model);
        j->row_next = 0;
        if (q == NULL)
            chain(&p->stranded, j);
        else if (is_acceptable(q, j))
            model_queue_push(q, j);
        else
            chain(&p->refused, j);
    }
}

static void see_queues(scheduler *s, lane *l, policy_snapshot *snapshot, uint64_t now_ns)
{
    int queue_count = 0;
    for (int i = 0; i < s->queue_count; i++) {
        model_queue *q = s->queues[i];
        if (q == NULL || q->rows == 0)
            continue;
        const model_batching *b = &q->model->batching;
        s->seen_models[i] = (policy_model){
            .table = &q->tables[l->device_index],
            .latency_ns = &q->latency_ns[l->device_index * MODEL_BUCKETS_MAX],
            .queue_delay_ns = b->queue_delay_ns,
            .rows_max = b->batch_max,
            .is_exact = model_is_exact(q->model),
            .is_alone = !b->can_batch,
            .is_eligible = place_is_eligible(s, l->device_index, q, now_ns),
            .rows_queued = q->rows,
        };
        for (int k = 0; k < q->list_count; k++) {
            const job_list *list = &q->lists[k];
            if (list->rows == 0)
                continue;
            assert(queue_count < s->seen_capacity);
            s->seen_queues[queue_count++] = (policy_queue){
                .model = i,
                .sequence = k,
                .jobs = list->jobs,
                .rows = list->rows,
                .oldest_ns = list->first->stage_ns[STAGE_ADMIT],
                .deadline_ns = list->deadline_ns,
                .priority = list->priority,
                .head_rows = list->first->rows - list->first->row_next,
                .head_tenant = list->first->tenant,
            };
        }
    }
    *snapshot = (policy_snapshot){
        .now_ns = now_ns,
        .queues = s->seen_queues,
        .queue_count = queue_count,
        .models = s->seen_models,
        .model_count = s->queue_count,
        .is_flushing = atomic_load_explicit(&s->is_stopping, memory_order_relaxed),
    };
}

static void decide(lane *l, pulled *p, uint64_t now_ns)
{
    scheduler *s = l->scheduler;
    policy_snapshot snapshot;
    /* A queue may turn out to hold nothing but cancelled jobs: then ask again. */
    do {
        policy_decision d;
        see_queues(s, l, &snapshot, now_ns);
        policy_decide(&snapshot, &d);
        p->action = d.action;
        if (d.action == POLICY_WAIT)
            p->until_ns = d.until_ns;
        if (d.action == POLICY_RUN) {
            const policy_queue *q = &snapshot.queues[d.queue];
            form_batch(s, l, s->queues[q->model], q->sequence, &d, &p->overdue);
        }
    } while (p->action == POLICY_RUN && l->batch.count == 0);
}

static void pull(lane *l, pulled *p)
{
    scheduler *s = l->scheduler;
    *p = (pulled){.until_ns = UINT64_MAX};
    pthread_mutex_lock(&s->mutex);
    uint64_t now_ns = clock_now_ns();
    drain(s, p, now_ns);
    bool sweep_all = atomic_exchange_explicit(&s->sweep_wanted, false, memory_order_relaxed);
    for (int i = 0; i < s->queue_count; i++)
        if (s->queues[i] != NULL && s->queues[i]->rows > 0)
            model_queue_sweep(s->queues[i], now_ns, sweep_all, &p->overdue);
    l->batch.count = 0;
    decide(l, p, now_ns);
    uint64_t deadline_ns = UINT64_MAX;
    for (int i = 0; i < s->queue_count; i++) {
        if (s->queues[i] == NULL || s->queues[i]->rows == 0)
            continue;
        p->has_left = true;
        uint64_t d = model_queue_deadline(s->queues[i]);
        if (d < deadline_ns)
            deadline_ns = d;
    }
    if (p->has_left && p->action == POLICY_RUN)
        atomic_fetch_add(&s->left, 1);
    l->seen_left = atomic_load(&s->left);
    /* The last lane to leave gives back what no lane could run. */
    p->is_leaving =
        p->action != POLICY_RUN && atomic_load(&s->is_stopping) && mailbox_is_empty(&s->inbox);
    if (p->is_leaving && --s->lanes_alive == 0)
        for (int i = 0; i < s->queue_count; i++)
            if (s->queues[i] != NULL && s->queues[i]->rows > 0)
                model_queue_empty(s->queues[i], &p->stranded);
    pthread_mutex_unlock(&s->mutex);

    if (deadline_ns < p->until_ns)
        p->until_ns = deadline_ns;
    if (p->action == POLICY_RUN) {
        l->batch.stage_ns[STAGE_QUEUE] = now_ns;
        l->batch.stage_ns[STAGE_FORM] = clock_now_ns();
    } else if (p->has_left && p->until_ns > now_ns + LOOK_AGAIN_NS) {
        p->until_ns = now_ns + LOOK_AGAIN_NS;
    }
    scheduler_return(s, p->overdue, STATUS_DEADLINE_EXCEEDED, now_ns);
    scheduler_return(s, p->refused, STATUS_INVALID_ARGUMENT, now_ns);
    scheduler_return(s, p->stranded, STATUS_UNAVAILABLE, now_ns);
    /* More than one lane's work: pass it on. Work that is not this device's: to another kind. */
    if (p->has_left && p->action == POLICY_RUN)
        scheduler_wake(s, 0, -1);
    else if (p->has_left && p->action == POLICY_NOTHING)
        scheduler_wake(s, (int)(l - s->lanes) + 1, l->device_index);
}

static void sleep_until(lane *l, uint64_t until_ns)
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

void *lane_main(void *lane_pointer)
{
    lane *l = lane_pointer;
    scheduler *s = l->scheduler;
    char name[16];
    snprintf(name, sizeof name, "lane %d", (int)(l - s->lanes));
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
