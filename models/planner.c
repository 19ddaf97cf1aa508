#include "models/planner.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

length_histogram *length_histogram_create(int64_t length_max)
{
    assert(length_max >= 0 && length_max <= PLANNER_LENGTH_MAX);
    length_histogram *h = calloc(1, sizeof *h + (size_t)(length_max + 1) * sizeof h->counts[0]);
    if (h != NULL)
        h->length_max = length_max;
    return h;
}

void length_histogram_add(length_histogram *h, int64_t length, uint64_t rows)
{
    if (length >= 0 && length <= h->length_max)
        atomic_fetch_add_explicit(&h->counts[length], rows, memory_order_relaxed);
}

static uint64_t count_of(const length_histogram *h, int64_t length)
{
    return atomic_load_explicit(&h->counts[length], memory_order_relaxed);
}

uint64_t length_histogram_total(const length_histogram *h)
{
    uint64_t total = 0;
    for (int64_t i = 0; i <= h->length_max; i++)
        total += count_of(h, i);
    return total;
}

int64_t length_histogram_quantile(const length_histogram *h, double q)
{
    uint64_t total = length_histogram_total(h), seen = 0;
    for (int64_t i = 0; i <= h->length_max; i++) {
        seen += count_of(h, i);
        if (seen > 0 && (double)seen >= q * (double)total)
            return i;
    }
    return 0;
}

double length_histogram_mean(const length_histogram *h)
{
    double rows = 0, tokens = 0;
    for (int64_t i = 0; i <= h->length_max; i++) {
        rows += (double)count_of(h, i);
        tokens += (double)count_of(h, i) * (double)i;
    }
    return rows > 0 ? tokens / rows : 0;
}

/* Elements of a JSON array of whole numbers; `*end` is behind it, or at `line` if it is none. Only
 * counts: models/loading/samples.c parses such lines. */
static long long count_elements(const char *line, char **end)
{
    const char *inside = line + 1 + strspn(line + 1, " \t");
    size_t bytes = strspn(inside, "-0123456789, \t");
    long long count = *inside != ']';
    for (size_t i = 0; i < bytes; i++)
        count += inside[i] == ',';
    *end = (char *)(inside[bytes] == ']' ? inside + bytes + 1 : line);
    return count;
}

static status read_line(const char *path, int number, const char *line, length_histogram *h)
{
    char *end;
    line += strspn(line, " \t");
    if (*line == 0 || *line == '#' || *line == '\r')
        return STATUS_OK;
    errno = 0;
    long long length = *line == '[' ? count_elements(line, &end) : strtoll(line, &end, 10);
    end += strspn(end, " \t\r");
    if (end == line || (*end != 0 && *end != '#') || errno != 0 || length < 1 ||
        length > PLANNER_LENGTH_MAX)
        return status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: \"%.40s\" is no length from 1 to %d",
                           path, number, line, PLANNER_LENGTH_MAX);
    length_histogram_add(h, length, 1);
    return STATUS_OK;
}

status length_histogram_read(const char *path, length_histogram **out)
{
    /* Line by line, because it may be a pipe. */
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                           strerror(errno));
    length_histogram *h = length_histogram_create(PLANNER_LENGTH_MAX);
    status failure = h ? STATUS_OK : status_fail(STATUS_OUT_OF_MEMORY, "no memory for lengths");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t bytes;
    for (int number = 1; !failure && (bytes = getline(&line, &capacity, file)) >= 0; number++) {
        if (bytes > 0 && line[bytes - 1] == '\n')
            line[--bytes] = 0;
        failure = strlen(line) == (size_t)bytes
                      ? read_line(path, number, line, h)
                      : status_fail(STATUS_INVALID_ARGUMENT, "%s:%d: a zero byte", path, number);
    }
    if (!failure && ferror(file))
        failure = status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    if (failure) {
        free(h);
        return failure;
    }
    *out = h;
    return STATUS_OK;
}

static double row_cost(const latency_fit *cost, int64_t length)
{
    double l = (double)length;
    return cost && latency_is_known(*cost) ? cost->token_ns * l + cost->square_ns * l * l : l;
}

/* Lengths that occur, ascending, with `last` added; rows up to and including each. */
static int distinct(const length_histogram *h, int64_t last, int64_t *lengths, double *rows_until)
{
    int n = 0;
    double rows = 0;
    for (int64_t i = 1; i <= h->length_max || i <= last; i++) {
        uint64_t here = i <= h->length_max ? count_of(h, i) : 0;
        if (here == 0 && i != last)
            continue;
        rows += (double)here;
        lengths[n] = i;
        rows_until[n++] = rows;
    }
    return n;
}

/* Dynamic programming over n lengths: with at most k + 1 buckets, of which the last one ends at
 * length j, the first j + 1 lengths cost best[k * n + j], and the bucket before ends at from[...];
 * -1: there is none. */
typedef struct table {
    const double *each, *rows; /* a row's cost in a bucket of that length; rows up to it */
    int n;
    double *best;
    int *from;
} table;

static void choose_end(table *t, int k, int j, int first, int last)
{
    double *best = &t->best[k * t->n + j];
    *best = 1e300;
    for (int i = first; i <= last && i < j; i++) {
        double before = i < 0 ? 0 : t->best[(k - 1) * t->n + i];
        double rows = t->rows[j] - (i < 0 ? 0 : t->rows[i]);
        if (before + rows * t->each[j] < *best) {
            *best = before + rows * t->each[j];
            t->from[k * t->n + j] = i;
        }
    }
}

/* For lengths low to high, whose best ends are known to lie in [first, last]. They only move up
 * with j, since rows and costs both grow (the quadrangle inequality: Yao 1980), so the middle one's
 * end divides what is to be looked at: n log n steps and not n * n. */
static void fill(table *t, int k, int low, int high, int first, int last)
{
    if (low > high)
        return;
    int middle = low + (high - low) / 2;
    choose_end(t, k, middle, first, last);
    int end = t->from[k * t->n + middle];
    fill(t, k, low, middle - 1, first, end);
    fill(t, k, middle + 1, high, end, last);
}

status planner_make(const length_histogram *h, int buckets_max, const latency_fit *cost,
                    int64_t last, planner_plan *out)
{
    assert(buckets_max >= 1 && buckets_max <= PLANNER_BUCKETS_MAX && last <= PLANNER_LENGTH_MAX);
    int64_t most = h->length_max > last ? h->length_max : last, sequences[PLANNER_BUCKETS_MAX];
    int64_t *lengths = malloc((size_t)(most + 1) * sizeof *lengths);
    double *rows = malloc((size_t)(most + 1) * sizeof *rows);
    double *each = malloc((size_t)(most + 1) * sizeof *each);
    int n = lengths && rows ? distinct(h, last, lengths, rows) : 0;
    table t = {.each = each, .rows = rows, .n = n};
    t.best = malloc((size_t)buckets_max * (size_t)(n ? n : 1) * sizeof *t.best);
    t.from = malloc((size_t)buckets_max * (size_t)(n ? n : 1) * sizeof *t.from);
    status s = STATUS_OK;
    if (lengths == NULL || rows == NULL || each == NULL || t.best == NULL || t.from == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "no memory to plan buckets");
        goto done;
    }
    assert(n > 0);
    for (int j = 0; j < n; j++)
        each[j] = row_cost(cost, lengths[j]);
    for (int k = 0; k < buckets_max; k++)
        fill(&t, k, 0, n - 1, -1, k > 0 ? n - 1 : -1);
    int count = 0;
    for (int j = n - 1, k = buckets_max - 1; j >= 0; j = t.from[k * n + j], k--)
        count++;
    for (int j = n - 1, k = buckets_max - 1, at = count; j >= 0; j = t.from[k * n + j], k--)
        sequences[--at] = lengths[j];
    planner_measure(h, sequences, count, cost, out);
done:
    free(lengths), free(rows), free(each), free(t.best), free(t.from);
    return s;
}

void planner_measure(const length_histogram *h, const int64_t *sequences, int count,
                     const latency_fit *cost, planner_plan *out)
{
    double all_real = 0, all_computed = 0;
    assert(count <= PLANNER_BUCKETS_MAX);
    *out = (planner_plan){.count = count};
    int64_t length = 1;
    for (int b = 0; b < count; b++) {
        planner_bucket *to = &out->buckets[b];
        double real = 0;
        to->sequence = sequences[b];
        for (; length <= sequences[b] && length <= h->length_max; length++) {
            to->rows += count_of(h, length);
            real += (double)count_of(h, length) * (double)length;
        }
        double computed = (double)to->rows * (double)sequences[b];
        to->waste = computed > 0 ? 1 - real / computed : 0;
        out->cost += (double)to->rows * row_cost(cost, sequences[b]);
        all_real += real;
        all_computed += computed;
    }
    out->waste = all_computed > 0 ? 1 - all_real / all_computed : 0;
}

int planner_powers_of_two(const length_histogram *h, int64_t *sequences)
{
    int64_t longest = length_histogram_quantile(h, 1);
    int n = 0;
    for (int64_t size = 16; n < PLANNER_BUCKETS_MAX; size *= 2) {
        sequences[n++] = size;
        if (size >= longest)
            break;
    }
    return n;
}
