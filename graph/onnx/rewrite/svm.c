#include <string.h>

#include "graph/onnx/rewrite/rewrite.h"

/* SVMClassifier and SVMRegressor of domain ai.onnx.ml, rewritten to matrix multiplications and the
 * penstock operators of graph/op.inc. Where the definition is silent (scores of two classes, ties,
 * probabilities) they do what ONNX Runtime does. Source: onnx/docs/Operators-ml.md. */

#define CLASSES_MAX 1000                     /* half a million pairs */
#define PAIR_WEIGHTS_MAX ((int64_t)64 << 20) /* of FP32, most of them zeros */

typedef enum kernel_type { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID } kernel_type;

typedef struct machine {
    kernel_type kernel;
    float gamma, offset, degree;
    const graph_attribute *vectors;      /* NULL: the coefficients are those of the columns */
    const graph_attribute *coefficients; /* not NULL */
    const graph_attribute *rho;          /* not NULL */
    int64_t vector_count;
} machine;

static status read_kernel(onnx_node *n, machine *m)
{
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const char *name = onnx_pop_string(n, "kernel_type", "LINEAR");
    const graph_attribute *numbers = onnx_take_floats(n, "kernel_params");
    int k = 0;
    while (k < 4 && strcmp(name, names[k]) != 0)
        k++;
    if (k == 4)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "kernel_type '%s'; supported: LINEAR, POLY, RBF, SIGMOID", name);
    if (numbers == NULL ? k != KERNEL_LINEAR : numbers->count < 3)
        return onnx_fail(n, STATUS_CORRUPT, "kernel_params are not three numbers");
    m->kernel = (kernel_type)k;
    if (numbers != NULL) {
        m->gamma = numbers->floats[0];
        m->offset = numbers->floats[1];
        m->degree = numbers->floats[2];
    }
    return STATUS_OK;
}

/* What both operators have. `m->vector_count` is set. */
static status read_machine(onnx_node *n, machine *m)
{
    m->coefficients = onnx_take_floats(n, "coefficients");
    m->rho = onnx_take_floats(n, "rho");
    m->vectors = onnx_take_floats(n, "support_vectors");
    status s = read_kernel(n, m);
    if (s)
        return s;
    if (m->coefficients == NULL || m->rho == NULL)
        return onnx_fail(n, STATUS_CORRUPT, "coefficients or rho are missing");
    if (m->vector_count == 0) {
        m->kernel = KERNEL_LINEAR;
        m->vectors = NULL;
        return STATUS_OK;
    }
    if (m->vector_count < 0 || m->vectors == NULL ||
        m->vectors->count % (size_t)m->vector_count != 0)
        return onnx_fail(n, STATUS_CORRUPT, "%zu numbers for %lld support vectors",
                         m->vectors != NULL ? m->vectors->count : 0, (long long)m->vector_count);
    return STATUS_OK;
}

static graph_value_index list(onnx_node *n, const graph_attribute *a)
{
    int64_t count = (int64_t)a->count;
    return graph_add_constant_f32(n->graph, n->name, 1, &count, a->floats);
}

static graph_value_index matrix(onnx_node *n, int64_t rows, int64_t columns, const float *numbers)
{
    return graph_add_constant_f32(n->graph, n->name, 2, (int64_t[]){rows, columns}, numbers);
}

/* scale * x [rows, columns] times the transpose of y [vectors, columns], plus `offset`. */
static graph_value_index products(onnx_node *n, graph_value_index x, graph_value_index y,
                                  float scale, graph_value_index offset)
{
    graph_attribute how[] = {graph_make_int("transB", 1), graph_make_float("alpha", scale)};
    graph_value_index inputs[] = {x, y, offset};
    return graph_add(n->graph, GRAPH_OP_GEMM, 3, inputs, 2, how);
}

/* [rows, vectors]: the kernel of each row and each support vector. */
static graph_value_index apply_kernel(onnx_node *n, const machine *m)
{
    graph_value_index x = onnx_cast(n, n->inputs[0], dtype_to_onnx(DTYPE_F32));
    graph_value_index y = matrix(n, m->vector_count, (int64_t)m->vectors->count / m->vector_count,
                                 m->vectors->floats);
    graph_value_index k;
    switch (m->kernel) {
    case KERNEL_RBF:
        k = onnx_binary(n, GRAPH_OP_SQUARED_DISTANCE, x, y);
        return onnx_unary(n, GRAPH_OP_EXP,
                          onnx_binary(n, GRAPH_OP_MUL, k, onnx_float(n, -m->gamma)));
    case KERNEL_POLY:
        k = products(n, x, y, m->gamma, onnx_float(n, m->offset));
        return onnx_binary(n, GRAPH_OP_POW, k, onnx_float(n, m->degree));
    case KERNEL_SIGMOID:
        return onnx_unary(n, GRAPH_OP_TANH, products(n, x, y, m->gamma, onnx_float(n, m->offset)));
    default:
        return products(n, x, y, 1, onnx_float(n, 0));
    }
}

/* post_transform is left aside: ONNX Runtime does nothing with it here. */
status onnx_rewrite_svm_regressor(onnx_node *n)
{
    machine m = {.vector_count = onnx_pop_int(n, "n_supports", 0)};
    bool is_one_class = onnx_pop_int(n, "one_class", 0) != 0;
    onnx_pop_attribute(n, "post_transform");
    status s = read_machine(n, &m);
    if (!s)
        s = onnx_check_no_attributes(n);
    if (!s)
        s = onnx_check_inputs(n, 1, 1);
    if (!s && m.vectors != NULL && m.coefficients->count != (size_t)m.vector_count)
        s = onnx_fail(n, STATUS_CORRUPT, "%zu coefficients for %lld support vectors",
                      m.coefficients->count, (long long)m.vector_count);
    if (s)
        return s;
    graph_value_index k = m.vectors != NULL ? apply_kernel(n, &m)
                                            : onnx_cast(n, n->inputs[0], dtype_to_onnx(DTYPE_F32));
    graph_value_index y =
        products(n, k, matrix(n, 1, (int64_t)m.coefficients->count, m.coefficients->floats), 1,
                 onnx_float(n, m.rho->floats[0]));
    if (is_one_class) {
        graph_value_index choose[] = {onnx_binary(n, GRAPH_OP_GREATER, y, onnx_float(n, 0)),
                                      onnx_float(n, 1), onnx_float(n, -1)};
        y = graph_add(n->graph, GRAPH_OP_WHERE, 3, choose, 0, NULL);
    }
    onnx_finish_as(n, y);
    return STATUS_OK;
}

typedef struct classes {
    int64_t count, pairs;
    const int64_t *vectors;       /* of each class; they lie in the order of the classes */
    const graph_attribute *a, *b; /* of the probabilities of each pair; NULL: none */
    onnx_transform after;
    graph_value_index labels;
} classes;

static status check_classes(onnx_node *n, const classes *c, const machine *m)
{
    if (m->coefficients->count != (size_t)(c->count - 1) * (size_t)m->vector_count ||
        m->rho->count < (size_t)c->pairs)
        return onnx_fail(n, STATUS_CORRUPT,
                         "%zu coefficients and %zu rho for %lld support vectors of %lld classes",
                         m->coefficients->count, m->rho->count, (long long)m->vector_count,
                         (long long)c->count);
    if (c->pairs * m->vector_count > PAIR_WEIGHTS_MAX)
        return onnx_fail(n, STATUS_TOO_LARGE,
                         "%lld support vectors of %lld classes; at most %lld for each pair of "
                         "classes are supported",
                         (long long)m->vector_count, (long long)c->count,
                         (long long)(PAIR_WEIGHTS_MAX / c->pairs));
    if (c->a != NULL &&
        (c->b == NULL || c->a->count < (size_t)c->pairs || c->b->count < (size_t)c->pairs))
        return onnx_fail(n, STATUS_CORRUPT, "prob_a and prob_b are not a number for each pair");
    return STATUS_OK;
}

/* vectors_per_class, and their sum in `m`. */
static status take_vectors(onnx_node *n, classes *c, machine *m)
{
    const graph_attribute *list = onnx_pop_attribute(n, "vectors_per_class");
    if (list == NULL || list->kind != GRAPH_ATTRIBUTE_INTS || list->count == 0)
        return STATUS_OK;
    if (list->count != (size_t)c->count)
        return onnx_fail(n, STATUS_CORRUPT, "vectors_per_class has %zu numbers for %lld classes",
                         list->count, (long long)c->count);
    c->vectors = list->ints;
    for (int64_t i = 0; i < c->count; i++) {
        if (list->ints[i] < 0 || list->ints[i] > INT32_MAX)
            return onnx_fail(n, STATUS_CORRUPT, "a class has %lld support vectors",
                             (long long)list->ints[i]);
        m->vector_count += list->ints[i];
    }
    return STATUS_OK;
}

/* The coefficients of pair (i, j) are those of i's vectors in row j - 1 and those of j's in row i:
 * a matrix [pairs, vectors] with zeros elsewhere. */
static status pair_weights(onnx_node *n, const classes *c, const machine *m, graph_value_index *out)
{
    tensor t = {0};
    if (tensor_allocate(&t, &n->graph->memory, DTYPE_F32, 2,
                        (int64_t[]){c->pairs, m->vector_count}))
        return onnx_fail_memory();
    float *row = t.data;
    int64_t first = 0;
    for (int64_t i = 0; i < c->count; first += c->vectors[i++]) {
        int64_t second = first + c->vectors[i];
        for (int64_t j = i + 1; j < c->count; second += c->vectors[j++], row += m->vector_count) {
            memcpy(row + first, m->coefficients->floats + (j - 1) * m->vector_count + first,
                   (size_t)c->vectors[i] * sizeof *row);
            memcpy(row + second, m->coefficients->floats + i * m->vector_count + second,
                   (size_t)c->vectors[j] * sizeof *row);
        }
    }
    *out = graph_add_constant(n->graph, n->name, &t);
    return STATUS_OK;
}

/* The class that wins most pairs; the first one of equals. Votes are won * weights + losses: a
 * class has 1 for each pair that it wins as the first, and loses what its second place won. */
static status count_votes(onnx_node *n, const classes *c, graph_value_index scores,
                          graph_value_index *out)
{
    tensor weights = {0}, losses = {0};
    if (tensor_allocate(&weights, &n->graph->memory, DTYPE_F32, 2,
                        (int64_t[]){c->count, c->pairs}) ||
        tensor_allocate(&losses, &n->graph->memory, DTYPE_F32, 1, &c->count))
        return onnx_fail_memory();
    int64_t pair = 0;
    for (int64_t i = 0; i < c->count; i++)
        for (int64_t j = i + 1; j < c->count; j++, pair++) {
            ((float *)weights.data)[i * c->pairs + pair] = 1;
            ((float *)weights.data)[j * c->pairs + pair] = -1;
            ((float *)losses.data)[j] += 1;
        }
    graph_value_index won = onnx_cast(n, onnx_binary(n, GRAPH_OP_GREATER, scores, onnx_float(n, 0)),
                                      dtype_to_onnx(DTYPE_F32));
    graph_value_index votes = products(n, won, graph_add_constant(n->graph, n->name, &weights), 1,
                                       graph_add_constant(n->graph, n->name, &losses));
    *out = onnx_best_column(n, votes);
    return STATUS_OK;
}

/* Of each class, from those of the pairs: 1 / (1 + exp(score * a + b)), kept off 0 and 1. */
static graph_value_index probabilities(onnx_node *n, const classes *c, graph_value_index scores)
{
    graph_value_index z = onnx_binary(n, GRAPH_OP_MUL, scores, list(n, c->a));
    z = onnx_unary(n, GRAPH_OP_NEG, onnx_binary(n, GRAPH_OP_ADD, z, list(n, c->b)));
    graph_value_index p[] = {onnx_unary(n, GRAPH_OP_SIGMOID, z), onnx_float(n, 1e-7f),
                             onnx_float(n, 1 - 1e-7f)};
    graph_value_index clipped = graph_add(n->graph, GRAPH_OP_CLIP, 3, p, 0, NULL);
    graph_attribute count = graph_make_int("classes", c->count);
    clipped = graph_add(n->graph, GRAPH_OP_COUPLE, 1, &clipped, 1, &count);
    return onnx_apply_transform(n, c->after, clipped);
}

/* Of two classes without probabilities: one score, made two. */
static graph_value_index two_scores(onnx_node *n, const classes *c, graph_value_index score)
{
    if (c->after == ONNX_TRANSFORM_LOGISTIC)
        score = onnx_unary(n, GRAPH_OP_SIGMOID, score);
    graph_value_index first = c->after == ONNX_TRANSFORM_NONE
                                  ? onnx_unary(n, GRAPH_OP_NEG, score)
                                  : onnx_binary(n, GRAPH_OP_SUB, onnx_float(n, 1), score);
    return onnx_join_columns(n, first, score);
}

static status finish_with_vectors(onnx_node *n, const classes *c, const machine *m)
{
    graph_value_index weights = GRAPH_NO_VALUE, best = GRAPH_NO_VALUE;
    status s = check_classes(n, c, m);
    if (!s)
        s = pair_weights(n, c, m, &weights);
    if (s)
        return s;
    graph_value_index offsets =
        graph_add_constant_f32(n->graph, n->name, 1, &c->pairs, m->rho->floats);
    graph_value_index scores = products(n, apply_kernel(n, m), weights, 1, offsets);
    s = count_votes(n, c, scores, &best);
    if (s)
        return s;
    if (c->a != NULL)
        scores = probabilities(n, c, scores);
    else
        scores =
            c->count == 2 ? two_scores(n, c, scores) : onnx_apply_transform(n, c->after, scores);
    onnx_finish_classes(n, c->labels, best, ONNX_TRANSFORM_NONE, scores);
    return STATUS_OK;
}

/* A row of coefficients for each class, as LIBLINEAR has them. */
static status finish_linear(onnx_node *n, const classes *c, const machine *m)
{
    if (c->count == 2 || m->coefficients->count % (size_t)c->count != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "%zu coefficients for %lld classes without support vectors; supported: "
                         "three classes and more, with equally many for each",
                         m->coefficients->count, (long long)c->count);
    graph_value_index x = onnx_cast(n, n->inputs[0], dtype_to_onnx(DTYPE_F32));
    graph_value_index weights =
        matrix(n, c->count, (int64_t)m->coefficients->count / c->count, m->coefficients->floats);
    graph_value_index scores = products(n, x, weights, 1, onnx_float(n, m->rho->floats[0]));
    onnx_finish_classes(n, c->labels, onnx_best_column(n, scores), c->after, scores);
    return STATUS_OK;
}

status onnx_rewrite_svm_classifier(onnx_node *n)
{
    machine m = {0};
    classes c = {.labels = GRAPH_NO_VALUE};
    status s = onnx_read_transform(n, &c.after);
    if (!s)
        s = onnx_take_class_labels(n, &c.labels, &c.count);
    if (!s && (c.count < 2 || c.count > CLASSES_MAX))
        s = onnx_fail(n, STATUS_UNSUPPORTED, "%lld classes; supported: 2 to %d", (long long)c.count,
                      CLASSES_MAX);
    if (s)
        return s;
    c.pairs = c.count * (c.count - 1) / 2;
    c.a = onnx_take_floats(n, "prob_a");
    c.b = onnx_take_floats(n, "prob_b");
    s = take_vectors(n, &c, &m);
    if (!s)
        s = read_machine(n, &m);
    if (!s)
        s = onnx_check_no_attributes(n);
    if (!s)
        s = onnx_check_inputs(n, 1, 1);
    if (s)
        return s;
    return m.vectors != NULL ? finish_with_vectors(n, &c, &m) : finish_linear(n, &c, &m);
}
