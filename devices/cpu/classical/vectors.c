#include <math.h>
#include <string.h>

#include "devices/cpu/ops/op.h"
#include "devices/cpu/ops/split.h"

/* penstock.SquaredDistance and penstock.Couple (graph/op.inc), of support vector machines. */

#define LANES 8 /* sums side by side, in a fixed order whatever the vector units */
#define SUM_NS 0.3

static float distance_f32(const float *a, const float *b, size_t count)
{
    float sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            float d = a[i + k] - b[i + k];
            sums[k] += d * d;
        }
    float sum = 0;
    for (; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    for (size_t k = 0; k < LANES; k++)
        sum += sums[k];
    return sum;
}

static double distance_f64(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

static void measure_rows(const cpu_call *c, void *memory, size_t first, size_t count)
{
    (void)memory;
    const tensor *x = c->inputs[0], *y = c->inputs[1];
    size_t columns = (size_t)x->dims[1], vectors = (size_t)y->dims[0];
    for (size_t row = first; row < first + count; row++)
        for (size_t v = 0; v < vectors; v++)
            if (x->dtype == DTYPE_F64)
                ((double *)c->outputs[0].data)[row * vectors + v] =
                    distance_f64((const double *)x->data + row * columns,
                                 (const double *)y->data + v * columns, columns);
            else
                ((float *)c->outputs[0].data)[row * vectors + v] =
                    distance_f32((const float *)x->data + row * columns,
                                 (const float *)y->data + v * columns, columns);
}

static status run_distance(const cpu_call *c)
{
    size_t rows = (size_t)c->inputs[0]->dims[0];
    double each = (double)c->inputs[0]->dims[1] * (double)c->inputs[1]->dims[0] * SUM_NS;
    if (rows > 0)
        cpu_split_rows(c, (double)rows * each, measure_rows, rows);
    return STATUS_OK;
}

#define COUPLE_STEPS 100
#define COUPLE_ERROR 0.005f /* of all classes; ONNX Runtime's number, as LIBSVM's */

/* One estimate for `classes` classes: the matrix q, the probabilities p, and q * p. */
typedef struct estimate {
    size_t classes;
    float *q, *p, *qp;
} estimate;

/* q of "Probability Estimates for Multi-class Classification by Pairwise Coupling" (Wu, Lin, Weng,
 * 2004), equation 21: p minimises p' q p. */
static void begin_estimate(estimate *e, const float *pairs)
{
    size_t n = e->classes;
    memset(e->q, 0, n * n * sizeof *e->q);
    for (size_t i = 0; i < n; i++) {
        e->p[i] = 1 / (float)n;
        for (size_t j = i + 1; j < n; j++, pairs++) {
            float first = *pairs, second = 1 - *pairs;
            e->q[i * n + i] += second * second;
            e->q[j * n + j] += first * first;
            e->q[i * n + j] = e->q[j * n + i] = -first * second;
        }
    }
}

/* Sets q * p and returns p' q p. */
static float multiply(const estimate *e)
{
    float all = 0;
    for (size_t i = 0; i < e->classes; i++) {
        e->qp[i] = 0;
        for (size_t j = 0; j < e->classes; j++)
            e->qp[i] += e->q[i * e->classes + j] * e->p[j];
        all += e->p[i] * e->qp[i];
    }
    return all;
}

/* Algorithm 2 of that paper: moves one probability after the other to its best value. */
static void improve(const estimate *e, float all)
{
    for (size_t i = 0; i < e->classes; i++) {
        const float *q = e->q + i * e->classes;
        float step = (all - e->qp[i]) / q[i], whole = 1 + step;
        all = (all + step * (step * q[i] + 2 * e->qp[i])) / whole / whole;
        e->p[i] += step;
        for (size_t j = 0; j < e->classes; j++) {
            e->qp[j] = (e->qp[j] + step * q[j]) / whole;
            e->p[j] /= whole;
        }
    }
}

static bool is_good(const estimate *e, float all)
{
    float most = 0;
    for (size_t i = 0; i < e->classes; i++)
        most = fmaxf(most, fabsf(e->qp[i] - all));
    return most < COUPLE_ERROR / (float)e->classes;
}

static void couple_rows(const cpu_call *c, void *memory, size_t first, size_t count)
{
    size_t classes = (size_t)c->outputs[0].dims[1], pairs = (size_t)c->inputs[0]->dims[1];
    float *q = memory;
    for (size_t row = first; row < first + count; row++) {
        estimate e = {classes, q, (float *)c->outputs[0].data + row * classes,
                      q + classes * classes};
        begin_estimate(&e, (const float *)c->inputs[0]->data + row * pairs);
        for (int step = 0; step < COUPLE_STEPS; step++) {
            float all = multiply(&e);
            if (is_good(&e, all))
                break;
            improve(&e, all);
        }
    }
}

static status prepare_couple(cpu_prepare *p)
{
    size_t classes = (size_t)p->outputs[0].dims[1];
    p->part_bytes = (classes * classes + classes) * sizeof(float);
    return STATUS_OK;
}

static status run_couple(const cpu_call *c)
{
    size_t rows = (size_t)c->inputs[0]->dims[0];
    double classes = (double)c->outputs[0].dims[1];
    if (rows > 0)
        cpu_split_rows(c, (double)rows * classes * classes * COUPLE_STEPS / 4, couple_rows, rows);
    return STATUS_OK;
}

static const cpu_op table[] = {
    {GRAPH_OP_SQUARED_DISTANCE, NULL, run_distance, 0, false},
    {GRAPH_OP_COUPLE, prepare_couple, run_couple, 0, false},
};

const cpu_op_family cpu_ops_vectors = {table, sizeof table / sizeof table[0]};
