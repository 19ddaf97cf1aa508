/* A worker's thread: takes arrivals into the queues, decides what its device runs now, runs it, and
 * sleeps while there is nothing to run. */
#include <stdio.h>

#include "base/clock.h"
#include "batcher/execute/form.h"
#include "batcher/execute/run.h"
#include "batcher/scheduler_state.h"

/* So often a sleeping worker looks at work that it may not run: a busy device may be late. */
#define LOOK_AGAIN_NS UINT64_C(50000000)

/* What a worker does after deciding. */
typedef struct pulled {
    policy_action action;
    uint64_t until_ns; /* wake up then, at the latest; UINT64_MAX: no need */
    /* To give back without the mutex: too late; cancelled or failed; fit no bucket; no device. */
    job *overdue, *dead, *refused, *stranded;
    bool has_left;   /* rows still wait */
    bool is_leaving; /* the scheduler stops, and this worker is done */
} pulled;

static bool is_acceptable(const model_queue *q, const job *j)
{
    if (j->rows <= 0 || j->length < 0)
        return false;
    if (model_is_exact(j->model))
        return true; /* in parts, or whole: how many rows there are was checked on admission */
    return bucket_find_sequence(&q->axes, j->length) >= 0;
}

static void chain(job **first, job *j)
{
    j->next = *first;
    *first = j;
}

/* Moves arrivals into the queues. */
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

/* What is known of the devices before the mutex is taken: asking one may take time. */
static void describe_devices(worker_thread *t, placement_devices *out)
{
    scheduler *s = t->scheduler;
    executor *e = &s->executor;
    int cpu = executor_cpu(e);
    health_refresh(&e->health, clock_now_ns());
    for (int i = 0; i < e->device_count; i++) {
        t->is_healthy[i] = health_is_good(&e->health, i);
        t->is_draining[i] = health_is_draining(&e->health, i);
    }
    *out = (placement_devices){.count = e->device_count,
                               .cpu = cpu,
                               .is_healthy = t->is_healthy,
                               .is_draining = t->is_draining,
                               .other_workers = atomic_load(&s->other_workers),
                               .fallback = e->fallback,
                               .is_stopping =
                                   atomic_load_explicit(&s->is_stopping, memory_order_relaxed)};
}

static void decide(worker_thread *t, placement_devices *devices, pulled *p, uint64_t now_ns)
{
    scheduler *s = t->scheduler;
    worker *w = &t->worker;
    if (w->device_index == devices->cpu && devices->fallback == FALLBACK_WHEN_SOONER)
        devices->has_idle_worker = sleepers_has_other(&s->sleepers, devices->cpu);
    dispatch_request request = {.now_ns = now_ns,
                                .device_index = w->device_index,
                                .workers = device_depth(s->executor.devices[w->device_index]),
                                .devices = devices};
    dispatch_batch taken = {.members = w->batch.members,
                            .capacity = BATCH_MEMBERS_MAX,
                            .places = w->batch.places,
                            .attribution = &w->batch.attribution};
    dispatch_next(&s->dispatch, &request, &taken);
    p->action = taken.action;
    p->until_ns = taken.until_ns;
    p->overdue = taken.overdue;
    p->dead = taken.dead;
    if (taken.action == POLICY_RUN)
        form_batch(w, &taken, now_ns);
    /* A cancelled job deep in a long queue may wait a little: a sweep looks at every job. */
    if (atomic_load_explicit(&s->sweep_wanted, memory_order_relaxed) &&
        dispatch_sweep(&s->dispatch, now_ns, &p->dead))
        atomic_store_explicit(&s->sweep_wanted, false, memory_order_relaxed);
}

static void pull(worker_thread *t, pulled *p)
{
    scheduler *s = t->scheduler;
    batch *b = &t->worker.batch;
    placement_devices devices;
    *p = (pulled){.until_ns = UINT64_MAX};
    describe_devices(t, &devices);
    pthread_mutex_lock(&s->mutex);
    uint64_t now_ns = clock_now_ns();
    drain(s, p);
    dispatch_settle(&s->dispatch, &b->attribution, b->device_ns);
    b->count = 0;
    bool is_parked = sleepers_is_parked(&s->sleepers, t->index);
    if (!is_parked)
        decide(t, &devices, p, now_ns);
    uint64_t deadline_ns = dispatch_deadline(&s->dispatch, &p->has_left);
    if (p->has_left && p->action == POLICY_RUN)
        atomic_fetch_add(&s->left, 1);
    t->seen_left = atomic_load(&s->left);
    /* The last worker to leave gives back what no worker could run. */
    p->is_leaving =
        p->action != POLICY_RUN && atomic_load(&s->is_stopping) && mailbox_is_empty(&s->inbox);
    if (p->is_leaving && --s->workers_alive == 0)
        dispatch_empty(&s->dispatch, &p->stranded);
    pthread_mutex_unlock(&s->mutex);

    if (deadline_ns < p->until_ns)
        p->until_ns = deadline_ns;
    if (p->action != POLICY_RUN && p->has_left && p->until_ns > now_ns + LOOK_AGAIN_NS)
        p->until_ns = now_ns + LOOK_AGAIN_NS;
    drop_jobs(s, p->overdue, STATUS_DEADLINE_EXCEEDED, now_ns);
    drop_jobs(s, p->dead, STATUS_CANCELLED, now_ns);
    drop_jobs(s, p->refused, STATUS_INVALID_ARGUMENT, now_ns);
    drop_jobs(s, p->stranded, STATUS_UNAVAILABLE, now_ns);
    /* More than one worker's work: pass it on. Work that is not this device's: to another kind. */
    if (p->has_left && (p->action == POLICY_RUN || is_parked))
        sleepers_wake_one(&s->sleepers, 0, -1);
    else if (p->has_left && p->action == POLICY_NOTHING)
        sleepers_wake_one(&s->sleepers, t->index + 1, t->worker.device_index);
}

static void sleep_until(worker_thread *t, uint64_t until_ns)
{
    scheduler *s = t->scheduler;
    sleepers_announce(&s->sleepers, t->index);
    if (mailbox_is_empty(&s->inbox) && atomic_load(&s->left) == t->seen_left &&
        !atomic_load(&s->is_stopping) && !atomic_load(&s->sweep_wanted))
        sleepers_wait(&s->sleepers, t->index, until_ns);
    sleepers_end(&s->sleepers, t->index);
}

void *worker_thread_main(void *thread)
{
    worker_thread *t = thread;
    char name[16];
    snprintf(name, sizeof name, "worker %d", t->index);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        pulled p;
        pull(t, &p);
        if (p.action == POLICY_RUN)
            run_batch(&t->worker);
        else if (p.is_leaving)
            return NULL;
        else
            sleep_until(t, p.until_ns);
    }
}
