#include "batcher/queue/queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/start/deferred_buckets.h"

model_queue *model_queue_create(const model *m, int device_count, fair *f)
{
    model_queue *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->model = m;
    q->serial = m->serial;
    q->fair = f;
    q->device_count = device_count;
    q->tables = calloc((size_t)device_count, sizeof *q->tables);
    q->latency = m->latency;
    if (q->latency == NULL) {
        q->latency = latency_create(m->devices, m->device_count);
        q->owns_latency = true;
    }
    if (q->tables == NULL || q->latency == NULL) {
        model_queue_destroy(q);
        return NULL;
    }
    q->made_seen = deferred_buckets_made(m);
    for (int i = 0; i < device_count; i++)
        bucket_table_init(&q->tables[i], m, i);
    q->axes = q->tables[0];
    q->bucket_queue_count =
        model_is_exact(m) || m->sequence_bucket_count < 1 ? 1 : m->sequence_bucket_count;
    return q;
}

void model_queue_destroy(model_queue *q)
{
    if (q == NULL)
        return;
    assert(q->rows == 0);
    for (int t = 0; t < FAIR_TENANTS_MAX; t++)
        for (int c = 0; c < FAIR_CLASSES; c++) {
            tenant_class_queue *queue = q->queues[t][c];
            for (int i = 0; queue != NULL && i < q->bucket_queue_count; i++) {
                free(queue->buckets[i].timed.entries);
                free(queue->buckets[i].untimed.entries);
            }
            free(queue);
        }
    if (q->owns_latency)
        latency_destroy(q->latency);
    free(q->tables);
    free(q);
}

void model_queue_refresh(model_queue *q)
{
    uint32_t made = deferred_buckets_made(q->model);
    if (made == q->made_seen)
        return;
    q->made_seen = made;
    for (int i = 0; i < q->device_count; i++)
        bucket_table_add_made(&q->tables[i], q->model, i);
}

void queue_stamp(uint64_t stage_ns[STAGE_COUNT], uint64_t now_ns)
{
    stage_stamp(stage_ns, STAGE_QUEUE, now_ns);
}

static bool is_before(const queue_entry *a, const queue_entry *b)
{
    return a->deadline_ns < b->deadline_ns ||
           (a->deadline_ns == b->deadline_ns && a->order < b->order);
}

static void sift_up(job_heap *h, int at)
{
    queue_entry moved = h->entries[at];
    while (at > 0 && is_before(&moved, &h->entries[(at - 1) / 2])) {
        h->entries[at] = h->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->entries[at] = moved;
}

static void sift_down(job_heap *h, int at)
{
    queue_entry moved = h->entries[at];
    for (int child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && is_before(&h->entries[child + 1], &h->entries[child]))
            child++;
        if (!is_before(&h->entries[child], &moved))
            break;
        h->entries[at] = h->entries[child];
    }
    h->entries[at] = moved;
}

static bool grow(job_heap *h)
{
    int capacity = h->capacity ? h->capacity * 2 : 64;
    queue_entry *entries = realloc(h->entries, (size_t)capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    h->entries = entries;
    h->capacity = capacity;
    return true;
}

bool model_queue_push(model_queue *q, job *j)
{
    int sequence = q->bucket_queue_count == 1 ? 0 : bucket_find_sequence(&q->axes, j->length);
    assert(j->rows > 0 && sequence >= 0 && sequence < q->bucket_queue_count);
    tenant_class whose = job_tenant_class(j);
    assert(whose.tenant < q->fair->tenant_count);
    tenant_class_queue **slot = &q->queues[whose.tenant][whose.class];
    if (*slot == NULL)
        *slot = calloc(1, sizeof **slot + (size_t)q->bucket_queue_count * sizeof(bucket_queue));
    if (*slot == NULL)
        return false;
    bucket_queue *in = &(*slot)->buckets[sequence];
    bool is_timed = j->deadline_ns != UINT64_MAX;
    job_heap *h = is_timed ? &in->timed : &in->untimed;
    if (h->count == h->capacity && !grow(h))
        return false;
    j->next = NULL;
    j->row_next = 0;
    uint64_t deadline_ns = is_timed ? j->deadline_ns : j->stage_ns[STAGE_ADMIT] + QUEUE_PATIENCE_NS;
    h->entries[h->count] = (queue_entry){.deadline_ns = deadline_ns, .order = q->order++, .job = j};
    sift_up(h, h->count++);
    h->rows += j->rows;
    h->deadline_sum_us += deadline_ns / 1024;
    (*slot)->rows += j->rows;
    q->rows += j->rows;
    q->bucket_queue_rows[sequence] += j->rows;
    q->bucket_queue_tokens[sequence] += j->rows * j->length;
    fair_add_rows(q->fair, whose, j->rows);
    return true;
}

/* `rows` of that bucket queue wait no longer. */
static void subtract(model_queue *q, tenant_class whose, int sequence, job_heap *h, const job *j,
                     int64_t rows)
{
    h->rows -= rows;
    q->queues[whose.tenant][whose.class]->rows -= rows;
    q->rows -= rows;
    q->bucket_queue_rows[sequence] -= rows;
    q->bucket_queue_tokens[sequence] -= rows * j->length;
    fair_add_rows(q->fair, whose, -rows);
    assert(h->rows >= 0);
}

static job *unlink_at(model_queue *q, tenant_class whose, int sequence, job_heap *h, int at)
{
    job *j = h->entries[at].job;
    h->deadline_sum_us -= h->entries[at].deadline_ns / 1024;
    subtract(q, whose, sequence, h, j, j->rows - j->row_next);
    h->count--;
    if (at < h->count) {
        h->entries[at] = h->entries[h->count];
        sift_down(h, at);
        sift_up(h, at);
    }
    j->next = NULL;
    return j;
}

static void drop(job **dropped, job *j)
{
    j->next = *dropped;
    *dropped = j;
}

/* A job that failed in part is not worth more device time; it comes back as failed. */
static bool is_dead(const job *j)
{
    return atomic_load_explicit(&j->is_cancelled, memory_order_relaxed) ||
           atomic_load_explicit(&j->has_failed, memory_order_relaxed);
}

/* The heap with the earliest deadline, its cancelled and failed heads dropped; NULL: the bucket
 * queue is empty. */
static job_heap *first_heap(model_queue *q, tenant_class whose, int sequence, job **dead)
{
    tenant_class_queue *own = q->queues[whose.tenant][whose.class];
    if (own == NULL)
        return NULL;
    bucket_queue *from = &own->buckets[sequence];
    job_heap *heaps[2] = {&from->timed, &from->untimed};
    for (int i = 0; i < 2; i++)
        while (heaps[i]->count > 0 && is_dead(heaps[i]->entries[0].job))
            drop(dead, unlink_at(q, whose, sequence, heaps[i], 0));
    if (from->timed.count == 0)
        return from->untimed.count ? &from->untimed : NULL;
    if (from->untimed.count == 0)
        return &from->timed;
    return from->untimed.entries[0].deadline_ns < from->timed.entries[0].deadline_ns
               ? &from->untimed
               : &from->timed;
}

job *model_queue_head(model_queue *q, tenant_class whose, int sequence, job **dead)
{
    job_heap *h = first_heap(q, whose, sequence, dead);
    return h ? h->entries[0].job : NULL;
}

/* Of `rows` sequences of that length, how many found a place. */
static int64_t pack_rows(queue_take *t, int64_t length, int64_t rows)
{
    int64_t placed = 0;
    while (placed < rows && pack_add(t->pack, length, &t->places[t->pack->count]))
        placed++;
    return placed;
}

int64_t model_queue_take(model_queue *q, tenant_class whose, int sequence, queue_take *t)
{
    int64_t taken = 0;
    while (taken < t->rows && t->count < t->capacity) {
        job_heap *h = first_heap(q, whose, sequence, &t->dead);
        if (h == NULL)
            break;
        job *j = h->entries[0].job;
        if (t->length >= 0 && j->length != t->length)
            break;
        if (j->deadline_ns < t->until_ns && j->row_next == 0) {
            if (t->is_backfill)
                break; /* a shorter batch of its own may still be in time */
            drop(&t->overdue, unlink_at(q, whose, sequence, h, 0));
            continue;
        }
        int64_t part = j->rows - j->row_next;
        if (part > t->rows - taken) {
            if (t->is_whole)
                break;
            part = t->rows - taken;
        }
        double length = j->length > 0 ? (double)j->length : 1;
        double row_ns = t->fit.token_ns * length + t->fit.square_ns * length * length;
        if (row_ns > 0 && t->cost_ns + row_ns * (double)part > t->budget_ns) {
            int64_t fits = (int64_t)((t->budget_ns - t->cost_ns) / row_ns);
            fits = fits < 0 ? 0 : fits;
            if (fits == 0 && t->count > 0)
                break;
            if (!t->is_whole)
                part = fits == 0 ? 1 : fits < part ? fits : part;
        }
        if (t->pack != NULL && (part = pack_rows(t, j->length, part)) == 0)
            break;
        t->cost_ns += row_ns * (double)part;
        t->members[t->count++] = (batch_member){.job = j, .row = j->row_next, .rows = part};
        taken += part;
        if (j->row_next + part == j->rows)
            unlink_at(q, whose, sequence, h, 0);
        else
            subtract(q, whose, sequence, h, j, part);
        j->row_next += part;
    }
    return taken;
}

uint64_t model_queue_least_ns(const model_queue *q, int sequence, int d)
{
    const bucket_table *t = &q->tables[d];
    int bucket = model_is_exact(q->model) ? -1 : bucket_choose(t, sequence, 1);
    if (bucket < 0)
        return 0;
    if (!t->is_ragged)
        return latency_bucket_ns(q->latency, d, bucket);
    /* A bucket queue holds lengths down to one more than the one before it. */
    double length = sequence > 0 ? (double)t->sequences[sequence - 1] + 1 : 1;
    return (uint64_t)latency_cost_ns(latency_fit_of(q->latency, d), length, length * length);
}

void model_queue_drop_late(model_queue *q, uint64_t now_ns, bool looks_ahead, job **overdue)
{
    uint64_t least_ns[MODEL_AXIS_MAX];
    for (int i = 0; i < q->bucket_queue_count; i++) {
        least_ns[i] = UINT64_MAX;
        for (int d = 0; d < q->device_count && q->bucket_queue_rows[i] > 0 && looks_ahead; d++) {
            uint64_t ns = model_queue_least_ns(q, i, d);
            if (!q->tables[d].has_any && !model_is_exact(q->model))
                continue;
            least_ns[i] = ns < least_ns[i] ? ns : least_ns[i];
        }
        if (least_ns[i] == UINT64_MAX)
            least_ns[i] = 0;
    }
    for (int t = 0; t < q->fair->tenant_count; t++) {
        if (q->fair->tenants[t].rows == 0)
            continue;
        for (int c = 0; c < FAIR_CLASSES; c++) {
            tenant_class_queue *queue = q->queues[t][c];
            for (int i = 0; queue != NULL && queue->rows > 0 && i < q->bucket_queue_count; i++) {
                job_heap *h = &queue->buckets[i].timed;
                while (h->count > 0 && h->entries[0].deadline_ns <= now_ns + least_ns[i])
                    drop(overdue, unlink_at(q, (tenant_class){t, c}, i, h, 0));
            }
        }
    }
}

/* Unlinks the unwanted jobs of all bucket queues. */
static void drop_if(model_queue *q, bool (*is_unwanted)(const job *j), job **dropped)
{
    for (int t = 0; t < q->fair->tenant_count; t++)
        for (int c = 0; c < FAIR_CLASSES; c++) {
            tenant_class_queue *queue = q->queues[t][c];
            for (int i = 0; queue != NULL && queue->rows > 0 && i < q->bucket_queue_count; i++) {
                job_heap *heaps[2] = {&queue->buckets[i].timed, &queue->buckets[i].untimed};
                for (int k = 0; k < 2; k++)
                    for (int at = heaps[k]->count - 1; at >= 0; at--)
                        if (at < heaps[k]->count && is_unwanted(heaps[k]->entries[at].job))
                            drop(dropped, unlink_at(q, (tenant_class){t, c}, i, heaps[k], at));
            }
        }
}

void model_queue_drop_dead(model_queue *q, job **dead)
{
    drop_if(q, is_dead, dead);
}

static bool is_any(const job *j)
{
    (void)j;
    return true;
}

void model_queue_empty(model_queue *q, job **dropped)
{
    drop_if(q, is_any, dropped);
    assert(q->rows == 0);
}

uint64_t model_queue_deadline(const model_queue *q)
{
    uint64_t deadline_ns = UINT64_MAX;
    for (int t = 0; t < q->fair->tenant_count; t++)
        for (int c = 0; c < FAIR_CLASSES; c++) {
            const tenant_class_queue *queue = q->queues[t][c];
            for (int i = 0; queue != NULL && queue->rows > 0 && i < q->bucket_queue_count; i++) {
                const job_heap *h = &queue->buckets[i].timed;
                if (h->count > 0 && h->entries[0].deadline_ns < deadline_ns)
                    deadline_ns = h->entries[0].deadline_ns;
            }
        }
    return deadline_ns;
}
