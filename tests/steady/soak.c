/* A soak in process: requests of many lengths for several models at once through scheduler and CPU,
 * whose answers are checked against those of the same rows alone. After a tenth of the requests
 * every allocation of the process is counted, and the resident memory is watched.
 *
 *     soak COUNT PATH...          models as penstock serve takes them
 *
 * Prints a line for each tenth and a verdict; exit status 0 when all answers were right and nothing
 * was allocated. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/xorshift.h"
#include "batcher/job/pool.h"
#include "batcher/scheduler.h"
#include "models/batching/probe.h"
#include "models/repository/repository.h"
#include "tests/unit/batcher/submit.h"

#define MODELS_MAX 32
#define KINDS 12         /* requests prepared for each model */
#define LENGTH_MAX 48    /* positions: short, so that a million take minutes */
#define IN_FLIGHT_MAX 48 /* jobs */
#define TOLERANCE 1e-4   /* of the output's range: batches are padded, which moves the last bits */

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static _Atomic int64_t allocations;

void *malloc(size_t n)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t m)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_calloc(n, m);
}
void *realloc(void *p, size_t n)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_realloc(p, n);
}
void *aligned_alloc(size_t a, size_t n)
{
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return __libc_memalign(a, n);
}

/* A request that is asked again and again, and its answer when asked alone. */
typedef struct kind {
    const model *m;
    device_bucket shape;
    tensor inputs[MODEL_TENSORS_MAX], answers[MODEL_TENSORS_MAX];
    bool has_answer;
} kind;

static arena memory;
static kind kinds[MODELS_MAX * KINDS];
static int kind_count;
static mailbox box;
static job_pool pool;
static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    return xorshift64_next(&random_state);
}

static void on_back(job *j)
{
    mailbox_post(&box, &j->node);
}

static long resident_kib(void)
{
    char text[200] = "";
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f != NULL && fgets(text, sizeof text, f) != NULL)
        sscanf(text, "%*d %ld", &pages);
    if (f != NULL)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

static status prepare(const model *m)
{
    int64_t longest = m->batching.sequence_max < LENGTH_MAX ? m->batching.sequence_max : LENGTH_MAX;
    for (int i = 0; i < KINDS; i++) {
        kind *k = &kinds[kind_count++];
        int64_t length = longest > 0 ? 1 + (int64_t)(next_random() % (uint64_t)longest) : 0;
        int64_t rows = m->batching.batch_max > 1 ? 1 + (int64_t)(next_random() % 4) : 1;
        *k = (kind){.m = m, .shape = {rows, length}};
        status s = probe_make_inputs(m, k->shape, next_random(), &memory, k->inputs);
        if (!s)
            s = probe_make_outputs(m, k->shape, &memory, k->answers);
        if (s)
            return s;
    }
    return STATUS_OK;
}

static void submit(scheduler *s, kind *k)
{
    job *j = job_pool_acquire(&pool);
    model_retain(k->m);
    j->model = k->m;
    j->rows = k->shape.batch;
    j->length = k->shape.sequence;
    j->deadline_ns = UINT64_MAX;
    j->on_done = on_back;
    j->home = k;
    memcpy(j->inputs, k->inputs, (size_t)k->m->input_count * sizeof k->inputs[0]);
    if (job_allocate_outputs(j))
        abort();
    submit_admitted(s, j);
}

static bool is_close(const tensor *a, const tensor *b)
{
    double apart = 0, range = 0;
    for (int64_t i = 0; i < tensor_count(a); i++) {
        double x = tensor_get_number(a, i), y = tensor_get_number(b, i);
        apart = fmax(apart, x == y ? 0 : isfinite(x) ? fabs(x - y) : INFINITY);
        range = fmax(range, fabs(y));
    }
    return apart <= TOLERANCE * range;
}

/* The first answer, which was asked alone, is what later ones must be. */
static bool is_right(const job *j)
{
    kind *k = j->home;
    bool is_good = j->result == STATUS_OK;
    for (int i = 0; i < k->m->output_count && is_good; i++) {
        if (!k->has_answer)
            memcpy(k->answers[i].data, j->outputs[i].data, tensor_bytes(&k->answers[i]));
        is_good = is_close(&j->outputs[i], &k->answers[i]);
    }
    k->has_answer |= is_good;
    if (!is_good)
        printf("%s, %lld rows of %lld: %s\n", k->m->name, (long long)k->shape.batch,
               (long long)k->shape.sequence, j->result ? j->error : "another answer than alone");
    return is_good;
}

/* Takes back what is done; returns how many jobs, of which *wrong were. */
static int collect(int64_t *wrong)
{
    int count = 0;
    for (mailbox_node *n = mailbox_take_all(&box), *next; n != NULL; n = next, count++) {
        next = n->next;
        *wrong += !is_right((job *)n);
        job_pool_release(&pool, (job *)n);
    }
    return count;
}

/* `count` requests, at most `in_flight` at once; all come back. Returns how many were wrong. */
static int64_t go_round(scheduler *s, int64_t count, int in_flight_max, bool is_in_order)
{
    int64_t wrong = 0, submitted = 0;
    int in_flight = 0;
    while (submitted < count || in_flight > 0) {
        for (; submitted < count && in_flight < in_flight_max; submitted++, in_flight++)
            submit(s, &kinds[is_in_order ? submitted % kind_count
                                         : (int64_t)(next_random() % (uint64_t)kind_count)]);
        int back = collect(&wrong);
        in_flight -= back;
        if (back == 0)
            usleep(20);
    }
    return wrong;
}

static int soak(scheduler *s, int64_t count)
{
    int64_t wrong = go_round(s, kind_count, 1, true), counted = 0, tenth = count / 10;
    uint64_t start_ns = clock_now_ns();
    for (int i = 1; i <= 10; i++) {
        int64_t before = atomic_load(&allocations);
        wrong += go_round(s, tenth, IN_FLIGHT_MAX, false);
        int64_t here = atomic_load(&allocations) - before;
        counted += i == 1 ? 0 : here;
        printf("%9lld requests, %6.1f s, %lld allocations, %ld KiB resident, %lld wrong\n",
               (long long)(tenth * i), (double)(clock_now_ns() - start_ns) / 1e9, (long long)here,
               resident_kib(), (long long)wrong);
        fflush(stdout);
    }
    bool is_good = wrong == 0 && counted == 0;
    printf("%s: %lld allocations after the first tenth, %lld wrong answers in %lld requests\n",
           is_good ? "passed" : "FAILED", (long long)counted, (long long)wrong,
           (long long)(tenth * 10));
    return is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
    int64_t count = argc > 1 ? atoll(argv[1]) : 0;
    if (count < 10 || argc < 3 || argc - 2 > MODELS_MAX) {
        fprintf(stderr, "usage: soak COUNT PATH... (COUNT at least 10, at most %d models)\n",
                MODELS_MAX);
        return 2;
    }
    log_configure(LOG_WARNING, LOG_FORMAT_AUTO);
    mailbox_init(&box);
    job_pool_init(&pool, IN_FLIGHT_MAX, (size_t)256 << 20);
    repository_model_options models[MODELS_MAX];
    char names[MODELS_MAX][16];
    for (int i = 0; i < argc - 2; i++) {
        snprintf(names[i], sizeof names[i], "m%d", i);
        models[i] = (repository_model_options){.name = names[i], .path = argv[i + 2]};
    }
    repository_options options = {.models = models,
                                  .model_count = argc - 2,
                                  .load = {.precision = DEVICE_INT8, .sequence_max = 128}};
    device *cpu;
    repository *r;
    scheduler *s;
    status failure = device_cpu_create(0, NULL, &cpu);
    if (!failure)
        failure = repository_create(&options, &cpu, 1, &r);
    if (!failure)
        failure = repository_wait(r);
    for (int i = 0; i < argc - 2 && !failure; i++) {
        const model *m;
        failure = repository_find(r, names[i], strlen(names[i]), 0, &m);
        if (!failure)
            failure = prepare(m);
    }
    if (!failure)
        failure = scheduler_create(&(scheduler_options){0}, &cpu, 1, &s);
    if (failure) {
        fprintf(stderr, "soak: %s\n", status_message());
        return 2;
    }
    int verdict = soak(s, count);
    scheduler_destroy(s);
    return verdict; /* models and device go with the process */
}
