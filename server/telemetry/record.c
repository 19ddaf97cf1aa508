#include "server/telemetry/record.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/options/options.h"

typedef struct window {
    _Atomic uint64_t epoch; /* which ten seconds it holds; 0: none */
    histogram series[RECORD_SERIES];
} window;

/* Of one bucket, what depends on it: fewer series than a model has. */
typedef struct bucket_record {
    record_shape bucket;
    histogram since_start[RECORD_BUCKET_SERIES];
    struct {
        _Atomic uint64_t epoch;
        histogram series[RECORD_BUCKET_SERIES];
    } window[RECORD_WINDOW_SLOTS];
} bucket_record;

/* What batches of one size took. A request is a share of its batch; shares are in 2^-20. */
typedef struct size_record {
    _Atomic uint64_t shares, input_ns, infer_ns, output_ns;
} size_record;

/* One loop's part of one model. Counters are relaxed atomics: one writer, any readers. */
typedef struct part {
    _Atomic uint64_t codes[RECORD_PROTOCOLS][RECORD_CODES],
        reasons[RECORD_PROTOCOLS][RECORD_REASONS];
    _Atomic uint64_t rows, fallbacks, success_count, success_ns, failure_count, failure_ns, last_ns;
    _Atomic uint64_t batch_cells[RECORD_BATCH_CELLS], batch_rows;
    size_record sizes[RECORD_BATCH_SIZES];
    histogram since_start[RECORD_SERIES];
    window window[RECORD_WINDOW_SLOTS];
    _Atomic(bucket_record *) buckets[MODEL_BUCKETS_MAX];
} part;

struct model_record {
    char name[128];
    int64_t version;
    _Atomic(model_record *) next;
    _Atomic(part *) parts[SERVER_LOOPS_MAX + 1]; /* the last: health */
};

/* The record of the model loaded as that index. It is written while somebody holds a reference to
 * that model, so nobody can hold one to the model that had the index before. */
typedef struct model_cell {
    _Atomic uint64_t serial; /* whose record it is; 0: nobody's */
    _Atomic(model_record *) record;
} model_cell;

struct recorder {
    int loops;
    model_cell models[MODEL_INDEX_MAX]; /* by model->index */
    pthread_mutex_t lock;               /* of adding records and writing cells */
    model_record none;                  /* the first */
    model_record *last;
};

static const int code_of_cell[RECORD_CODES] = {200, 400, 401, 403, 404, 405, 408, 413, 415,
                                               422, 424, 429, 499, 500, 501, 503, 504, 0};

int record_code(int cell)
{
    return code_of_cell[cell];
}

const char *record_protocol_name(int protocol)
{
    return protocol < ROUTE_DIALECT_COUNT ? route_dialect_name((route_dialect)protocol) : "unknown";
}

const char *record_reason_name(record_reason reason)
{
    static const char *const names[RECORD_REASONS] = {
        [RECORD_SERVED] = "",
        [RECORD_BAD_REQUEST] = "bad_request",
        [RECORD_UNAUTHORIZED] = "unauthorized",
        [RECORD_NOT_FOUND] = "not_found",
        [RECORD_TOO_LARGE] = "too_large",
        [RECORD_TOO_SLOW] = "too_slow",
        [RECORD_QUEUE_FULL] = "queue_full",
        [RECORD_QUOTA] = "quota",
        [RECORD_CONNECTION_LIMIT] = "connection_limit",
        [RECORD_DEADLINE_ADMISSION] = "deadline_admission",
        [RECORD_DEADLINE_QUEUE] = "deadline_queue",
        [RECORD_CLIENT_GONE] = "client_gone",
        [RECORD_NOT_READY] = "not_ready",
        [RECORD_OVERLOADED] = "overloaded",
        [RECORD_DEVICE_LOST] = "device_lost",
        [RECORD_INTERNAL] = "internal",
    };
    assert((unsigned)reason < RECORD_REASONS);
    return names[reason];
}

record_reason record_reason_of(const record_sample *s, bool has_model)
{
    if (s->reason != RECORD_SERVED || s->code < 400)
        return s->reason;
    switch (s->code) {
    case 401:
    case 403:
        return RECORD_UNAUTHORIZED;
    case 404:
        return RECORD_NOT_FOUND;
    case 408:
        return RECORD_TOO_SLOW;
    case 413:
    case 431:
        return RECORD_TOO_LARGE;
    case 429:
        return RECORD_QUEUE_FULL;
    case 499:
        return RECORD_CLIENT_GONE;
    case 503:
        return has_model ? RECORD_OVERLOADED : RECORD_NOT_READY;
    case 504:
        return s->stage_ns[STAGE_ADMIT] > 0 ? RECORD_DEADLINE_QUEUE : RECORD_DEADLINE_ADMISSION;
    default:
        return s->code == 500 ? RECORD_INTERNAL : RECORD_BAD_REQUEST;
    }
}

const char *record_series_name(int series)
{
    return series == RECORD_STAGE_TOTAL ? "total" : stage_name((stage)series);
}

recorder *recorder_create(int loops)
{
    assert(loops <= SERVER_LOOPS_MAX + 1);
    recorder *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->loops = loops;
    pthread_mutex_init(&r->lock, NULL);
    r->last = &r->none;
    return r;
}

static void dispose(model_record *m, int loops)
{
    for (int i = 0; i < loops; i++) {
        part *p = m->parts[i];
        for (int b = 0; p != NULL && b < MODEL_BUCKETS_MAX; b++)
            free(p->buckets[b]);
        free(p);
    }
}

void recorder_destroy(recorder *r)
{
    if (r == NULL)
        return;
    for (model_record *m = r->none.next, *next; m != NULL; m = next) {
        next = m->next;
        dispose(m, r->loops);
        free(m);
    }
    dispose(&r->none, r->loops);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static model_record *find_or_add(recorder *r, const char *name, int64_t version)
{
    model_record *m = &r->none;
    for (; m != NULL; m = atomic_load(&m->next)) {
        if (m->version == version && strcmp(m->name, name) == 0)
            return m;
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL)
        return &r->none;
    strncpy(m->name, name, sizeof(m->name) - 1);
    m->version = version;
    atomic_store(&r->last->next, m);
    r->last = m;
    return m;
}

model_record *record_of_model(recorder *r, const model *m)
{
    assert(m->index >= 0 && m->index < MODEL_INDEX_MAX && m->serial != 0);
    model_cell *cell = &r->models[m->index];
    if (atomic_load_explicit(&cell->serial, memory_order_acquire) == m->serial)
        return atomic_load_explicit(&cell->record, memory_order_relaxed);
    pthread_mutex_lock(&r->lock);
    model_record *found = find_or_add(r, m->name, m->version);
    atomic_store_explicit(&cell->record, found, memory_order_relaxed);
    atomic_store_explicit(&cell->serial, m->serial, memory_order_release);
    pthread_mutex_unlock(&r->lock);
    return found;
}

static inline void add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static part *part_of(model_record *m, int loop)
{
    part *p = atomic_load_explicit(&m->parts[loop], memory_order_acquire);
    if (p == NULL) {
        p = calloc(1, sizeof(*p));
        if (p != NULL)
            atomic_store_explicit(&m->parts[loop], p, memory_order_release);
    }
    return p;
}

/* Slots of ten seconds are used in turn; an old one is wiped when it is used again. */
static void wipe_if_old(_Atomic uint64_t *held, uint64_t epoch, histogram *series, int count)
{
    if (atomic_load_explicit(held, memory_order_relaxed) == epoch)
        return;
    atomic_store(held, 0);
    for (int i = 0; i < count; i++)
        histogram_reset(&series[i]);
    atomic_store(held, epoch);
}

static void record_bucket(part *p, const record_sample *s, uint64_t epoch,
                          const uint64_t took_ns[RECORD_BUCKET_SERIES])
{
    if (s->bucket_index < 0)
        return;
    bucket_record *b = atomic_load_explicit(&p->buckets[s->bucket_index], memory_order_relaxed);
    if (b == NULL) {
        b = calloc(1, sizeof(*b));
        if (b == NULL)
            return;
        b->bucket = s->bucket;
        atomic_store_explicit(&p->buckets[s->bucket_index], b, memory_order_release);
    }
    int slot = (int)(epoch % RECORD_WINDOW_SLOTS);
    wipe_if_old(&b->window[slot].epoch, epoch, b->window[slot].series, RECORD_BUCKET_SERIES);
    for (int i = 0; i < RECORD_BUCKET_SERIES; i++) {
        histogram_record(&b->since_start[i], took_ns[i]);
        histogram_record(&b->window[slot].series[i], took_ns[i]);
    }
}

static void record_size(part *p, const record_sample *s, const uint64_t took_ns[STAGE_COUNT])
{
    if (s->batch_rows <= 0)
        return;
    int64_t at = s->batch_rows < RECORD_BATCH_SIZES ? s->batch_rows : RECORD_BATCH_SIZES;
    size_record *size = &p->sizes[at - 1];
    double share = (double)s->rows / (double)s->batch_rows;
    uint64_t input_ns = took_ns[STAGE_FORM] + took_ns[STAGE_PAD] + took_ns[STAGE_PLACE];
    add(&size->shares, (uint64_t)(share * RECORD_SHARE));
    add(&size->input_ns, (uint64_t)(share * (double)input_ns));
    add(&size->infer_ns, (uint64_t)(share * (double)took_ns[STAGE_EXECUTE]));
    add(&size->output_ns, (uint64_t)(share * (double)took_ns[STAGE_SLICE]));
}

static int code_cell(int code)
{
    int i = 0;
    while (code_of_cell[i] != 0 && code_of_cell[i] != code)
        i++;
    return i;
}

static int batch_cell(int64_t rows)
{
    int cell = 0;
    for (int64_t most = 1; cell < RECORD_BATCH_CELLS - 1 && rows > most; most *= 2)
        cell++;
    return cell;
}

/* Counts the stages that were reached before stage record; took_ns[i] is how long stage i took. */
static void record_stages(part *p, window *w, const record_sample *s, uint64_t took_ns[STAGE_COUNT])
{
    uint64_t before_ns = s->begin_ns;
    for (int i = 0; i < STAGE_RECORD; i++) {
        took_ns[i] = 0;
        if (s->stage_ns[i] == 0)
            continue;
        if (s->stage_ns[i] > before_ns)
            took_ns[i] = s->stage_ns[i] - before_ns;
        before_ns = s->stage_ns[i];
        histogram_record(&p->since_start[i], took_ns[i]);
        histogram_record(&w->series[i], took_ns[i]);
    }
}

static void record_success(part *p, record_sample *s, uint64_t now_ns)
{
    uint64_t epoch = now_ns / RECORD_SLOT_NS + 1, total_ns = now_ns - s->begin_ns;
    uint64_t took_ns[STAGE_COUNT];
    window *w = &p->window[epoch % RECORD_WINDOW_SLOTS];
    add(&p->rows, (uint64_t)s->rows);
    add(&p->fallbacks, s->fell_back);
    add(&p->batch_cells[batch_cell(s->batch_rows)], 1);
    add(&p->batch_rows, (uint64_t)s->batch_rows);
    wipe_if_old(&w->epoch, epoch, w->series, RECORD_SERIES);
    record_stages(p, w, s, took_ns);
    histogram_record(&p->since_start[RECORD_STAGE_TOTAL], total_ns);
    histogram_record(&w->series[RECORD_STAGE_TOTAL], total_ns);
    record_bucket(p, s, epoch,
                  (uint64_t[]){took_ns[STAGE_QUEUE], took_ns[STAGE_EXECUTE], total_ns});
    record_size(p, s, took_ns);
    /* Recording itself is a stage: what it took is known only now. */
    stage_stamp(s->stage_ns, STAGE_RECORD, clock_now_ns());
    uint64_t record_ns =
        s->stage_ns[STAGE_RECORD] > now_ns ? s->stage_ns[STAGE_RECORD] - now_ns : 0;
    histogram_record(&p->since_start[STAGE_RECORD], record_ns);
    histogram_record(&w->series[STAGE_RECORD], record_ns);
}

void record_request(recorder *r, model_record *m, int loop, record_sample *s, uint64_t now_ns)
{
    part *p = part_of(m ? m : &r->none, loop);
    if (p == NULL)
        return;
    bool is_success = s->code == 200;
    assert((unsigned)s->protocol < RECORD_PROTOCOLS);
    add(&p->codes[s->protocol][code_cell(s->code)], 1);
    record_reason reason = record_reason_of(s, m != NULL);
    if (reason != RECORD_SERVED)
        add(&p->reasons[s->protocol][reason], 1);
    atomic_store_explicit(&p->last_ns, now_ns, memory_order_relaxed);
    add(is_success ? &p->success_count : &p->failure_count, 1);
    add(is_success ? &p->success_ns : &p->failure_ns, now_ns - s->begin_ns);
    /* Latencies are of successes: refusals would make them look better. */
    if (is_success && m != NULL)
        record_success(p, s, now_ns);
}

void record_refused(recorder *r, int loop, int code, record_reason reason, int protocol,
                    uint64_t now_ns)
{
    record_sample sample = {.begin_ns = now_ns,
                            .code = code,
                            .reason = reason,
                            .protocol = protocol,
                            .bucket_index = -1};
    record_request(r, NULL, loop, &sample, now_ns);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void record_read_totals(const recorder *r, const model_record *m, record_totals *out)
{
    memset(out, 0, sizeof(*out));
    for (int loop = 0; loop < r->loops; loop++) {
        const part *p = atomic_load(&m->parts[loop]);
        if (p == NULL)
            continue;
        for (int k = 0; k < RECORD_PROTOCOLS; k++) {
            for (int i = 0; i < RECORD_CODES; i++)
                out->codes[k][i] += get(&p->codes[k][i]);
            for (int i = 0; i < RECORD_REASONS; i++)
                out->reasons[k][i] += get(&p->reasons[k][i]);
        }
        for (int i = 0; i < RECORD_BATCH_CELLS; i++)
            out->batch_cells[i] += get(&p->batch_cells[i]);
        for (int i = 0; i < RECORD_SERIES; i++) {
            out->stage_count[i] += get(&p->since_start[i].count);
            out->stage_sum_ns[i] += get(&p->since_start[i].sum);
        }
        out->rows += get(&p->rows);
        out->batch_rows += get(&p->batch_rows);
        out->fallbacks += get(&p->fallbacks);
        out->success_count += get(&p->success_count);
        out->success_ns += get(&p->success_ns);
        out->failure_count += get(&p->failure_count);
        out->failure_ns += get(&p->failure_ns);
        uint64_t last = get(&p->last_ns);
        out->last_ns = last > out->last_ns ? last : out->last_ns;
    }
}

bool record_read_size(const recorder *r, const model_record *m, int rows, record_batches *out)
{
    uint64_t shares = 0;
    record_batches sum = {0};
    for (int loop = 0; loop < r->loops; loop++) {
        const part *p = atomic_load(&m->parts[loop]);
        if (p == NULL)
            continue;
        const size_record *size = &p->sizes[rows - 1];
        shares += get(&size->shares);
        sum.input_ns += get(&size->input_ns);
        sum.infer_ns += get(&size->infer_ns);
        sum.output_ns += get(&size->output_ns);
    }
    sum.count = (shares + RECORD_SHARE / 2) / RECORD_SHARE;
    if (shares == 0)
        return false;
    sum.count += sum.count == 0; /* its other requests are still on their way, or failed */
    *out = sum;
    return true;
}

void record_read(const recorder *r, const model_record *m, int series, bool is_window,
                 uint64_t now_ns, histogram *out)
{
    uint64_t newest = now_ns / RECORD_SLOT_NS + 1;
    histogram_reset(out);
    for (int loop = 0; loop < r->loops; loop++) {
        const part *p = atomic_load(&m->parts[loop]);
        if (p == NULL)
            continue;
        if (!is_window) {
            histogram_merge(out, &p->since_start[series]);
            continue;
        }
        for (int slot = 0; slot < RECORD_WINDOW_SLOTS; slot++) {
            uint64_t epoch = get(&p->window[slot].epoch);
            if (epoch != 0 && epoch + RECORD_WINDOW_SLOTS > newest)
                histogram_merge(out, &p->window[slot].series[series]);
        }
    }
}

const char *record_bucket_series_name(int series)
{
    static const char *const names[RECORD_BUCKET_SERIES] = {"queue", "execute", "total"};
    return names[series];
}

bool record_read_bucket(const recorder *r, const model_record *m, int bucket_index, int series,
                        bool is_window, uint64_t now_ns, histogram *out, record_shape *bucket)
{
    uint64_t newest = now_ns / RECORD_SLOT_NS + 1;
    bool has_any = false;
    histogram_reset(out);
    for (int loop = 0; loop < r->loops; loop++) {
        const part *p = atomic_load(&m->parts[loop]);
        const bucket_record *b = p ? atomic_load(&p->buckets[bucket_index]) : NULL;
        if (b == NULL)
            continue;
        *bucket = b->bucket;
        has_any = true;
        if (!is_window)
            histogram_merge(out, &b->since_start[series]);
        for (int slot = 0; is_window && slot < RECORD_WINDOW_SLOTS; slot++) {
            uint64_t epoch = get(&b->window[slot].epoch);
            if (epoch != 0 && epoch + RECORD_WINDOW_SLOTS > newest)
                histogram_merge(out, &b->window[slot].series[series]);
        }
    }
    return has_any;
}

const model_record *record_first(const recorder *r)
{
    return &r->none;
}

const model_record *record_next(const model_record *m)
{
    return atomic_load(&m->next);
}

const char *record_name(const model_record *m)
{
    return m->name;
}

int64_t record_version(const model_record *m)
{
    return m->version;
}
