#include <criterion/criterion.h>

#include "base/clock.h"
#include "devices/exported.h"
#include "models/start/late_programs.h"
#include "tests/unit/batcher/fake_device.h"

typedef struct rig {
    fake_device accelerator, cpu;
    device *devices[2];
    model *model;
    scheduler *scheduler;
    job_pool pool;
    mailbox box;
    _Atomic int64_t back;
} rig;

static rig r;
static int cpu_slots = 1; /* each test is a process of its own */

static void on_done(job *j)
{
    mailbox_post(&r.box, &j->node);
    atomic_fetch_add(&r.back, 1);
}

static void start(bool has_accelerator, placement_fallback fallback, bool can_batch, bool can_pad)
{
    memset(&r, 0, sizeof r);
    mailbox_init(&r.box);
    job_pool_init(&r.pool, 1024, (size_t)64 << 20);
    fake_device_init(&r.accelerator, "accelerator", 1);
    fake_device_init(&r.cpu, "cpu", cpu_slots);
    int n = 0;
    if (has_accelerator)
        r.devices[n++] = &r.accelerator.base;
    r.devices[n++] = &r.cpu.base;
    r.model = fake_model_create(r.devices, n, 0, can_batch, can_pad);
    cr_assert_eq(
        scheduler_create(&(scheduler_options){.fallback = fallback}, r.devices, n, &r.scheduler),
        0);
}

static job *send(int64_t rows, int64_t length, int64_t first)
{
    job *j = fake_job(&r.pool, r.model, rows, length, first, on_done, NULL);
    submit_admitted(r.scheduler, j);
    return j;
}

/* However slow the machine: what never comes back is ended by the runner. */
static void wait_back(int64_t count)
{
    while (atomic_load(&r.back) < count)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    cr_assert_eq(atomic_load(&r.back), count);
}

static void stop(void)
{
    cr_assert_eq(scheduler_queued_rows(r.scheduler, r.model), 0);
    scheduler_destroy(r.scheduler);
    for (mailbox_node *n = mailbox_take_all(&r.box), *next; n; n = next) {
        next = n->next;
        job_pool_release(&r.pool, (job *)n);
    }
    job_pool_dispose(&r.pool);
    fake_model_destroy(r.model);
}

/* Occupies the CPU until it is no longer held. */
static void occupy(fake_device *f)
{
    atomic_store(&f->is_held, true);
    send(1, 1, 1);
    while (atomic_load(&f->inside) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

Test(scheduler, jobs_that_wait_make_one_batch)
{
    start(false, FALLBACK_NEVER, true, true);
    occupy(&r.cpu);
    job *jobs[6];
    for (int i = 0; i < 6; i++)
        jobs[i] = send(1, 5 + i % 4, 10 * i);
    atomic_store(&r.cpu.is_held, false);
    wait_back(7);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(jobs[i]->result, STATUS_OK);
        cr_assert(fake_is_right(jobs[i]));
        cr_assert_eq(jobs[i]->batch_rows, 6);
        cr_assert_eq(jobs[i]->bucket.batch, 8);
        cr_assert_eq(jobs[i]->bucket.sequence, 8);
        for (int s = STAGE_QUEUE; s <= STAGE_SLICE; s++)
            cr_assert_geq(jobs[i]->stage_ns[s], jobs[i]->stage_ns[s - 1]);
    }
    cr_assert_eq(atomic_load(&r.model->counters->batches), 2);
    cr_assert_eq(atomic_load(&r.model->counters->computed_tokens), 4 + 64);
    stop();
}

static void wait_inside(int64_t count)
{
    while (atomic_load(&r.cpu.inside) != count)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

Test(scheduler, a_device_has_as_many_batches_in_flight_as_it_is_deep)
{
    cpu_slots = 4;
    start(false, FALLBACK_NEVER, false, true);
    atomic_store(&r.cpu.base.depth, 2);
    atomic_store(&r.cpu.is_held, true);
    for (int i = 0; i < 12; i++)
        send(1, 4, i + 1);
    wait_inside(2);
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
    cr_assert_eq(atomic_load(&r.cpu.inside), 2);
    /* Deeper: another worker takes what waits. */
    atomic_store(&r.cpu.base.depth, 4);
    send(1, 4, 1);
    wait_inside(4);
    /* Less deep: who is inside ends, and the others do all that is left. */
    atomic_store(&r.cpu.base.depth, 1);
    atomic_store(&r.cpu.is_held, false);
    wait_back(13);
    atomic_store(&r.cpu.is_held, true);
    for (int i = 0; i < 6; i++)
        send(1, 4, i + 1);
    wait_inside(1);
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
    cr_assert_eq(atomic_load(&r.cpu.inside), 1);
    atomic_store(&r.cpu.is_held, false);
    wait_back(19);
    cr_assert_not(atomic_load(&r.cpu.slot_clashed));
    stop(); /* the workers that have nothing to do end, too */
}

Test(scheduler, work_is_not_left_to_workers_that_do_nothing)
{
    cpu_slots = 4;
    start(false, FALLBACK_NEVER, true, true);
    atomic_store(&r.cpu.base.depth, 1);
    for (int i = 0; i < 1000; i++) {
        send(1, 4, i + 1);
        wait_back(i + 1);
    }
    stop();
}

/* As a model of exported programs: no CPU can run it. */
static void start_without_cpu(void)
{
    static const struct device_exported exported;
    start(true, FALLBACK_WHEN_SOONER, true, true);
    r.model->on_device.exported = &exported;
    for (int i = 0; i < r.model->bucket_count; i++) {
        device_program **of_cpu = &r.model->buckets[i].programs[1];
        r.cpu.base.interface->release(&r.cpu.base, *of_cpu);
        *of_cpu = NULL;
    }
}

static void wait_executions(int64_t count)
{
    while (atomic_load(&r.accelerator.executions) < count)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

Test(scheduler, what_no_cpu_can_run_waits_for_its_device)
{
    start_without_cpu();
    job *first = send(1, 5, 10);
    wait_back(1);
    cr_assert_eq(first->result, STATUS_OK);
    fake_set_gone(&r.accelerator, true);
    job *jobs[2] = {send(1, 5, 20), send(2, 7, 30)};
    wait_executions(2); /* the first of them failed and waits */
    cr_assert_eq(atomic_load(&r.back), 1);
    fake_set_gone(&r.accelerator, false);
    wait_back(3);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(jobs[i]->result, STATUS_OK);
        cr_assert(fake_is_right(jobs[i]));
    }
    cr_assert_eq(atomic_load(&r.cpu.executions), 0);
    stop();
}

Test(scheduler, a_deadline_ends_the_wait_for_a_device)
{
    start_without_cpu();
    fake_set_gone(&r.accelerator, true);
    job *j = fake_job(&r.pool, r.model, 2, 5, 10, on_done, NULL);
    /* Long enough that the device is tried once, even on a machine with much else to do. */
    j->deadline_ns = clock_now_ns() + 2000000000;
    submit_admitted(r.scheduler, j);
    wait_back(1);
    cr_assert_geq(atomic_load(&r.accelerator.executions), 1);
    cr_assert_eq(j->result, STATUS_DEADLINE_EXCEEDED);
    cr_expect(strstr(j->error, "no device could run"), "%s", j->error);
    cr_assert_eq(atomic_load(&r.model->counters->isolations), 0);
    stop();
}

/* A retry waits for up to 30 s, but not while the scheduler stops. */
Test(scheduler, destroy_ends_the_wait_for_a_device)
{
    start_without_cpu();
    send(1, 5, 10);
    wait_back(1);
    fake_set_gone(&r.accelerator, true);
    job *j = send(2, 5, 10);
    while (atomic_load(&r.accelerator.asked_while_gone) == 0) /* its rest is over */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    scheduler_destroy(r.scheduler);
    cr_assert_eq(atomic_load(&r.back), 2);
    cr_assert_eq(j->result, STATUS_UNAVAILABLE);
    cr_assert_eq(scheduler_create(&(scheduler_options){0}, r.devices, 1, &r.scheduler), 0);
    stop();
}

Test(scheduler, a_job_larger_than_every_bucket_is_split_and_reassembled)
{
    start(false, FALLBACK_NEVER, true, true);
    job *j = send(29, 7, 3);
    wait_back(1);
    cr_assert_eq(j->result, STATUS_OK);
    cr_assert(fake_is_right(j));
    cr_assert_eq(atomic_load(&r.cpu.rows), 29);
    stop();
}

Test(scheduler, a_row_that_is_too_long_is_refused)
{
    start(false, FALLBACK_NEVER, true, true);
    job *j = send(1, 17, 3);
    wait_back(1);
    cr_assert_eq(j->result, STATUS_INVALID_ARGUMENT);
    cr_assert(strstr(j->error, "16"), "%s", j->error);
    stop();
}

Test(scheduler, only_the_member_at_fault_fails)
{
    start(false, FALLBACK_NEVER, true, true);
    occupy(&r.cpu);
    job *jobs[5];
    for (int i = 0; i < 5; i++)
        jobs[i] = send(1, 8, i == 2 ? FAKE_BAD_ID : 100 * i + 1000);
    atomic_store(&r.cpu.is_held, false);
    wait_back(6);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(jobs[i]->result, i == 2 ? STATUS_INVALID_ARGUMENT : STATUS_OK);
        cr_assert(i == 2 || fake_is_right(jobs[i]));
    }
    cr_assert(strstr(jobs[2]->error, "666"));
    cr_assert_eq(atomic_load(&r.model->counters->isolations), 1);
    stop();
}

Test(scheduler, a_device_that_fails_is_replaced_by_the_cpu)
{
    start(true, FALLBACK_ON_FAILURE, true, true);
    job *a = send(2, 4, 1);
    wait_back(1);
    cr_assert_eq(a->device_index, 0);
    cr_assert_not(a->fell_back);
    fake_set_gone(&r.accelerator, true);
    job *b = send(2, 4, 1);
    wait_back(2);
    cr_assert_eq(b->result, STATUS_OK);
    cr_assert(fake_is_right(b));
    cr_assert_eq(b->device_index, 1);
    cr_assert(b->fell_back);
    cr_assert_eq(atomic_load(&r.model->counters->fallbacks[MODEL_FALLBACK_DEVICE_FAILED]), 1);
    job *c = send(2, 4, 1);
    wait_back(3);
    cr_assert(c->fell_back && c->result == STATUS_OK);
    stop();
}

/* Its programs are made after it has come. */
Test(scheduler, a_device_that_comes_later_takes_work)
{
    memset(&r, 0, sizeof r);
    mailbox_init(&r.box);
    job_pool_init(&r.pool, 1024, (size_t)64 << 20);
    fake_device_init(&r.accelerator, "accelerator", 2);
    fake_device_init(&r.cpu, "cpu", 1);
    r.devices[0] = &r.accelerator.base;
    r.devices[1] = &r.cpu.base;
    r.accelerator.base.is_absent = true;
    r.model = fake_model_create(r.devices, 2, 0, true, true);
    r.model->late = late_programs_create(r.model);
    for (int i = 0; i < r.model->bucket_count; i++) {
        fake_release(r.devices[0], r.model->buckets[i].programs[0]);
        r.model->buckets[i].programs[0] = NULL;
    }
    cr_assert_eq(scheduler_create(&(scheduler_options){.fallback = FALLBACK_ON_FAILURE}, r.devices,
                                  2, &r.scheduler),
                 0);
    send(2, 4, 1);
    wait_back(1);
    cr_assert_eq(atomic_load(&r.cpu.executions), 1);
    r.accelerator.base.is_absent = false;
    cr_assert_eq(scheduler_join_devices(r.scheduler, 0, 1), STATUS_OK);
    send(2, 4, 1);
    wait_back(2);
    cr_assert_eq(atomic_load(&r.cpu.executions), 2); /* nothing to run it with */
    for (int i = 0; i < r.model->bucket_count; i++) {
        device_program *program;
        cr_assert_eq(fake_compile(r.devices[0], NULL, r.model->buckets[i].shape, &program), 0);
        late_programs_put(r.model, i, 0, program);
    }
    late_programs_publish(r.model);
    job *last = send(2, 4, 1);
    wait_back(3);
    cr_assert(fake_is_right(last));
    cr_assert_eq(last->device_index, 0);
    cr_assert_eq(atomic_load(&r.accelerator.executions), 1);
    late_programs_dispose(r.model);
    stop();
    cr_assert_eq(atomic_load(&r.accelerator.programs), 0);
}

Test(scheduler, a_device_that_drains_leaves_what_waits_to_others)
{
    start(true, FALLBACK_ON_FAILURE, true, true);
    atomic_store(&r.accelerator.is_held, true);
    job *running = send(1, 4, 1);
    while (atomic_load(&r.accelerator.inside) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    job *waiting = send(1, 4, 2);
    scheduler_drain_device(r.scheduler, 0, true);
    cr_assert(scheduler_is_draining(r.scheduler, 0));
    wait_back(1); /* while the other still runs */
    cr_assert_eq(waiting->device_index, 1);
    cr_assert(fake_is_right(waiting));
    atomic_store(&r.accelerator.is_held, false);
    wait_back(2);
    cr_assert_eq(running->device_index, 0);
    cr_assert(fake_is_right(running));
    scheduler_drain_device(r.scheduler, 0, false);
    job *after = send(1, 4, 3);
    wait_back(3);
    cr_assert_eq(after->device_index, 0);
    stop();
}

Test(scheduler, without_fallback_the_failure_is_the_answer)
{
    start(true, FALLBACK_NEVER, true, true);
    fake_set_gone(&r.accelerator, true);
    job *j = send(2, 4, 1);
    wait_back(1);
    cr_assert_eq(j->result, STATUS_UNAVAILABLE);
    cr_assert_eq(atomic_load(&r.cpu.executions), 0);
    stop();
}

Test(scheduler, cancelled_and_overdue_jobs_come_back_without_running)
{
    start(false, FALLBACK_NEVER, true, true);
    occupy(&r.cpu);
    job *cancelled = send(1, 4, 1);
    job *late = fake_job(&r.pool, r.model, 1, 4, 1, on_done, NULL);
    late->deadline_ns = clock_now_ns();
    submit_admitted(r.scheduler, late);
    job *good = send(1, 4, 1);
    atomic_store(&cancelled->is_cancelled, true);
    scheduler_nudge(r.scheduler);
    atomic_store(&r.cpu.is_held, false);
    wait_back(4);
    cr_assert_eq(cancelled->result, STATUS_CANCELLED);
    cr_assert_eq(late->result, STATUS_DEADLINE_EXCEEDED);
    cr_assert_eq(good->result, STATUS_OK);
    cr_assert_eq(atomic_load(&r.cpu.rows), 2);
    stop();
}

/* A refusal names the time left, the time expected, and whether the load is to blame. */
Test(scheduler, a_refusal_says_whether_it_could_be_met_alone)
{
    start(false, FALLBACK_NEVER, true, true);
    const uint64_t ms = 1000000;
    uint64_t now_ns = clock_now_ns();
    latency *measured = r.model->latency = latency_create(r.devices, 1);
    for (int i = 0; i < r.model->bucket_count; i++)
        latency_observe(measured, 0, i, (latency_work){1, 1, 1}, 10 * ms, now_ns);
    occupy(&r.cpu);
    uint64_t retry_after_ns;
    job *j = fake_job(&r.pool, r.model, 1, 1, 0, on_done, NULL);
    j->deadline_ns = now_ns + 5 * ms;
    cr_assert_eq(scheduler_admit(r.scheduler, &j, 1, now_ns, &retry_after_ns),
                 STATUS_DEADLINE_EXCEEDED);
    cr_expect(strstr(status_message(), "cannot be met: 5.000 ms are left"), "%s", status_message());
    cr_expect(strstr(status_message(), "alone it would be late, too"), "%s", status_message());
    for (int i = 0; i < 20; i++)
        send(1, 1, 0);
    j->deadline_ns = now_ns + 12 * ms;
    cr_assert_eq(scheduler_admit(r.scheduler, &j, 1, now_ns, &retry_after_ns),
                 STATUS_DEADLINE_EXCEEDED);
    cr_expect(strstr(status_message(), "alone it would be in time"), "%s", status_message());
    cr_expect_eq(scheduler_queued_rows(r.scheduler, r.model), 20, "the refused hold nothing");
    job_pool_release(&r.pool, j);
    atomic_store(&r.cpu.is_held, false);
    wait_back(21);
    r.model->latency = NULL;
    stop();
    latency_destroy(measured);
}

/* All jobs of a request or none, and the ceiling of the model's queue. */
Test(scheduler, jobs_of_a_request_are_admitted_together)
{
    start(false, FALLBACK_NEVER, true, true);
    r.model->batching.queue_rows_max = 10;
    uint64_t retry_after_ns = 77, now_ns = clock_now_ns();
    job *jobs[3];
    for (int i = 0; i < 3; i++)
        jobs[i] = fake_job(&r.pool, r.model, 4, 4, 1, on_done, NULL);
    cr_assert_eq(scheduler_admit(r.scheduler, jobs, 3, now_ns, &retry_after_ns),
                 STATUS_RESOURCE_EXHAUSTED);
    cr_expect(strstr(status_message(), "is full: 8 rows"), "%s", status_message());
    cr_expect_eq(retry_after_ns, 0, "nothing was measured");
    cr_assert_eq(scheduler_queued_rows(r.scheduler, r.model), 0);
    job *large = fake_job(&r.pool, r.model, 11, 4, 1, on_done, NULL);
    cr_assert_eq(scheduler_admit(r.scheduler, &large, 1, now_ns, &retry_after_ns),
                 STATUS_TOO_LARGE);
    cr_assert_eq(scheduler_admit(r.scheduler, jobs, 2, now_ns, &retry_after_ns), STATUS_OK);
    cr_assert_eq(scheduler_queued_rows(r.scheduler, r.model), 8);
    cr_expect_eq(scheduler_has_room(r.scheduler, r.model, 0, &retry_after_ns), STATUS_OK);
    r.model->batching.queue_rows_max = 8;
    cr_expect_eq(scheduler_has_room(r.scheduler, r.model, 0, &retry_after_ns),
                 STATUS_RESOURCE_EXHAUSTED);
    for (int i = 0; i < 2; i++) {
        jobs[i]->stage_ns[STAGE_ADMIT] = now_ns;
        scheduler_submit(r.scheduler, jobs[i]);
    }
    wait_back(2);
    job_pool_release(&r.pool, jobs[2]);
    job_pool_release(&r.pool, large);
    stop();
}

Test(scheduler, destroy_finishes_what_waits)
{
    start(false, FALLBACK_NEVER, true, true);
    r.model->batching.queue_delay_ns = UINT64_C(3600000000000);
    job *j = send(1, 4, 1);
    scheduler_destroy(r.scheduler);
    cr_assert_eq(atomic_load(&r.back), 1);
    cr_assert_eq(j->result, STATUS_OK);
    cr_assert_eq(scheduler_create(&(scheduler_options){0}, r.devices, 1, &r.scheduler), 0);
    stop();
}

Test(scheduler, rows_that_must_not_be_padded_run_at_their_length)
{
    start(false, FALLBACK_NEVER, true, false);
    job *a = send(3, 5, 1);
    wait_back(1);
    cr_assert(fake_is_right(a));
    cr_assert_eq(a->bucket.sequence, 5);
    cr_assert_eq(a->bucket.batch, 4);
    job *b = send(3, 5, 1);
    wait_back(2);
    cr_assert(fake_is_right(b));
    cr_assert_eq(atomic_load(&r.model->counters->compiles[MODEL_COMPILE_EXACT]), 1);
    stop();
}

Test(scheduler, a_model_that_mixes_rows_runs_each_job_alone)
{
    start(false, FALLBACK_NEVER, false, false);
    occupy(&r.cpu);
    job *a = send(3, 5, 1), *b = send(3, 5, 50);
    atomic_store(&r.cpu.is_held, false);
    wait_back(3);
    cr_assert(fake_is_right(a) && fake_is_right(b));
    cr_assert_eq(a->batch_rows, 3);
    cr_assert_eq(b->batch_rows, 3);
    cr_assert_eq(a->bucket.batch, 3);
    stop();
}

Test(scheduler, ragged_programs_use_the_jobs_own_tensors)
{
    start(false, FALLBACK_NEVER, true, true);
    for (int i = 0; i < r.model->bucket_count; i++)
        r.model->buckets[i].programs[0]->layout = DEVICE_RAGGED;
    occupy(&r.cpu);
    job *jobs[5];
    for (int i = 0; i < 5; i++)
        jobs[i] = send(1 + i, 3 * i + 1, 20 * i);
    atomic_store(&r.cpu.is_held, false);
    wait_back(6);
    for (int i = 0; i < 5; i++)
        cr_assert(jobs[i]->result == STATUS_OK && fake_is_right(jobs[i]));
    cr_assert_eq(atomic_load(&r.model->counters->computed_tokens),
                 atomic_load(&r.model->counters->real_tokens));
    stop();
}
