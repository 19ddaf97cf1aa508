/* Jobs from several threads through two devices, one of which fails now and then, with
 * cancellations, short deadlines, bad members and jobs larger than a bucket: every job comes back
 * exactly once with the right answer or the right error. Prints one line; exit status 0 when so.
 *
 *     check_scheduler [JOBS]        default 100000
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/xorshift.h"
#include "tests/unit/batcher/fake_device.h"

#define LOOPS 3
#define IN_FLIGHT_MAX 200

typedef struct loop {
    pthread_t thread;
    scheduler *scheduler;
    model *models[3];
    int number;
    int64_t jobs;
    mailbox box;
    job_pool pool;
    int64_t sent, back, right, bad, cancelled, late, wrong;
} loop;

static void on_done(job *j)
{
    mailbox_post(&((loop *)j->home)->box, &j->node);
}

static void take_back(loop *l, job **live)
{
    for (mailbox_node *n = mailbox_take_all(&l->box), *next; n; n = next) {
        next = n->next;
        job *j = (job *)n;
        size_t slot = (size_t)j->tag;
        l->back++;
        if (live[slot] != j)
            l->wrong++; /* came back twice, or was never sent */
        live[slot] = NULL;
        bool has_bad = ((int64_t *)j->inputs[0].data)[0] == FAKE_BAD_ID;
        if (j->result == STATUS_OK)
            *(fake_is_right(j) && !has_bad ? &l->right : &l->wrong) += 1;
        else if (j->result == STATUS_INVALID_ARGUMENT && has_bad)
            l->bad++;
        else if (j->result == STATUS_CANCELLED && atomic_load(&j->is_cancelled))
            l->cancelled++;
        else if (j->result == STATUS_DEADLINE_EXCEEDED && j->deadline_ns != UINT64_MAX)
            l->late++;
        else
            l->wrong++;
        job_pool_release(&l->pool, j);
    }
}

static void *run(void *pointer)
{
    loop *l = pointer;
    uint64_t random = 88172645463325252u + (uint64_t)l->number * 977;
    job *live[IN_FLIGHT_MAX] = {0};
    while (l->back < l->jobs) {
        for (int i = 0; i < IN_FLIGHT_MAX && l->sent < l->jobs; i++) {
            if (live[i] != NULL)
                continue;
            uint64_t r = xorshift64_next(&random);
            model *m = l->models[r % 16 == 0 ? 1 : r % 16 == 1 ? 2 : 0];
            int64_t rows = 1 + (int64_t)((r >> 8) % 3), length = 1 + (int64_t)((r >> 16) % 16);
            if ((r >> 24) % 64 == 0)
                rows = m->batching.can_batch ? 19 : 8; /* more than the largest bucket */
            job *j = fake_job(&l->pool, m, rows, length, (int64_t)((r >> 32) % 100000) + 1000,
                              on_done, l);
            if ((r >> 40) % 64 == 0)
                ((int64_t *)j->inputs[0].data)[0] = FAKE_BAD_ID;
            if ((r >> 46) % 16 == 0)
                j->deadline_ns = clock_now_ns() + (r >> 50) % 200000;
            j->tag = (uint64_t)i;
            live[i] = j;
            l->sent++;
            submit_admitted(l->scheduler, j);
            uint64_t c = xorshift64_next(&random);
            job *victim = live[c % IN_FLIGHT_MAX];
            if (c % 5 == 0 && victim != NULL) {
                atomic_store(&victim->is_cancelled, true);
                if (c % 7 == 0)
                    scheduler_nudge(l->scheduler);
            }
        }
        take_back(l, live);
        if (l->sent == l->jobs)
            nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
    job_pool_dispose(&l->pool);
    return NULL;
}

int main(int argc, char **argv)
{
    int64_t jobs = argc > 1 ? atoll(argv[1]) : 100000;
    static fake_device accelerator, cpu;
    fake_device_init(&accelerator, "accelerator", 2);
    fake_device_init(&cpu, "cpu", 2);
    cpu.layout = DEVICE_PADDED;
    atomic_store(&accelerator.gone_every, 97);
    device *devices[] = {&accelerator.base, &cpu.base};
    model *models[] = {fake_model_create(devices, 2, 0, true, true),
                       fake_model_create(devices, 2, 1, true, false),
                       fake_model_create(devices, 2, 5, false, false)};
    models[0]->batching.queue_delay_ns = 20000;
    scheduler *s;
    if (scheduler_create(&(scheduler_options){.fallback = FALLBACK_WHEN_SOONER}, devices, 2, &s))
        return 2;
    static loop loops[LOOPS];
    for (int i = 0; i < LOOPS; i++) {
        loops[i] = (loop){.scheduler = s,
                          .number = i,
                          .jobs = jobs / LOOPS,
                          .models = {models[0], models[1], models[2]}};
        mailbox_init(&loops[i].box);
        job_pool_init(&loops[i].pool, IN_FLIGHT_MAX, (size_t)64 << 20);
        pthread_create(&loops[i].thread, NULL, run, &loops[i]);
    }
    int64_t back = 0, right = 0, bad = 0, cancelled = 0, late = 0, wrong = 0;
    for (int i = 0; i < LOOPS; i++) {
        pthread_join(loops[i].thread, NULL);
        back += loops[i].back;
        right += loops[i].right;
        bad += loops[i].bad;
        cancelled += loops[i].cancelled;
        late += loops[i].late;
        wrong += loops[i].wrong;
    }
    bool is_clean = wrong == 0 && back == jobs / LOOPS * LOOPS && right > 0;
    for (int i = 0; i < 3; i++)
        is_clean &= scheduler_queued_rows(s, models[i]) == 0;
    scheduler_destroy(s);
    for (int i = 0; i < 3; i++)
        fake_model_destroy(models[i]);
    is_clean &= atomic_load(&cpu.programs) == 0 && atomic_load(&accelerator.programs) == 0;
    is_clean &= !atomic_load(&cpu.slot_clashed) && !atomic_load(&accelerator.slot_clashed);
    printf("%s: %lld back, %lld right, %lld bad, %lld cancelled, %lld late, %lld wrong; batches "
           "%lld + %lld\n",
           is_clean ? "passed" : "FAILED", (long long)back, (long long)right, (long long)bad,
           (long long)cancelled, (long long)late, (long long)wrong,
           (long long)accelerator.executions, (long long)cpu.executions);
    return is_clean ? 0 : 1;
}
