#include <string.h>

#include "graph/onnx/rewrite/forest.h"

/* TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble of domain ai.onnx.ml:
 * penstock.Trees for the scores, and standard operators for what follows. Where the definition is
 * silent (two classes, one target) they do what ONNX Runtime does. Source:
 * onnx/docs/Operators-ml.md. */

static graph_value_index constant_of(onnx_node *n, const tensor *t)
{
    return graph_add_constant(n->graph, n->name, t);
}

/* The scores of `targets` targets; `aggregate`: SUM, AVERAGE, MIN or MAX. */
static status add_trees(onnx_node *n, const forest *f, int64_t targets, const char *aggregate,
                        graph_value_index *out)
{
    const int32_t *ids = f->targets.data;
    bool is_average = strcmp(aggregate, "AVERAGE") == 0;
    if (!is_average && strcmp(aggregate, "SUM") != 0 && strcmp(aggregate, "MIN") != 0 &&
        strcmp(aggregate, "MAX") != 0)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "aggregate_function '%s'; supported: SUM, AVERAGE, MIN, MAX", aggregate);
    if (n->input_count != 1 || n->inputs[0] == GRAPH_NO_VALUE || targets < 1)
        return onnx_fail(n, STATUS_CORRUPT, "it has no input, or no targets");
    for (int64_t i = 0; i < f->targets.dims[0]; i++)
        if (ids[i] >= targets)
            return onnx_fail(n, STATUS_CORRUPT, "a weight of target %d; it has %lld", ids[i],
                             (long long)targets);
    graph_value_index inputs[] = {n->inputs[0],
                                  constant_of(n, &f->nodes),
                                  constant_of(n, &f->leaves),
                                  constant_of(n, &f->targets),
                                  constant_of(n, &f->weights),
                                  constant_of(n, &f->roots)};
    graph_attribute attributes[] = {graph_make_int("targets", targets),
                                    graph_make_int("columns", f->columns),
                                    graph_make_string("aggregate", is_average ? "SUM" : aggregate)};
    *out = graph_add(n->graph, GRAPH_OP_TREES, 6, inputs, 3, attributes);
    if (is_average)
        *out =
            onnx_binary(n, GRAPH_OP_DIV, *out, onnx_float_like(n, (float)f->roots.dims[0], *out));
    return STATUS_OK;
}

static bool is_numbers(const graph_attribute *a)
{
    return a->kind == GRAPH_ATTRIBUTE_FLOATS ||
           (a->kind == GRAPH_ATTRIBUTE_TENSOR &&
            (a->t->dtype == DTYPE_F32 || a->t->dtype == DTYPE_F64));
}

/* Base values in FP32, or NULL. */
static status take_base(onnx_node *n, const tensor **out)
{
    const graph_attribute *list = onnx_pop_attribute(n, "base_values");
    const graph_attribute *given = onnx_pop_attribute(n, "base_values_as_tensor");
    given = given != NULL ? given : list;
    *out = NULL;
    if (given == NULL)
        return STATUS_OK;
    if (!is_numbers(given))
        return onnx_fail(n, STATUS_CORRUPT, "its base values are neither FP32 nor FP64");
    const tensor *t = given->kind == GRAPH_ATTRIBUTE_TENSOR ? given->t : NULL;
    int64_t count = t != NULL ? tensor_count(t) : (int64_t)given->count;
    if (count == 0)
        return STATUS_OK;
    tensor *made = arena_allocate_zeroed(&n->graph->memory, 1, sizeof *made);
    if (made == NULL || tensor_allocate(made, &n->graph->memory, DTYPE_F32, 1, &count))
        return onnx_fail_memory();
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(made, i, t != NULL ? tensor_get_number(t, i) : given->floats[i]);
    *out = made;
    return STATUS_OK;
}

/* What the leaves say about the classes. */
typedef struct class_facts {
    bool is_positive; /* no weight is negative */
    bool has_one;     /* all weights are of one class: `only` */
    int32_t only;
} class_facts;

static class_facts find_facts(const forest *f)
{
    class_facts facts = {.is_positive = true, .has_one = true};
    const int32_t *ids = f->targets.data;
    for (int64_t i = 0; i < f->targets.dims[0]; i++) {
        facts.is_positive &= !(tensor_get_number(&f->weights, i) < 0);
        facts.only = i == 0 ? ids[i] : facts.only;
        facts.has_one &= ids[i] == facts.only;
    }
    return facts;
}

/* Two classes and weights of one of them alone, that of `facts->only`. */
static status finish_binary(onnx_node *n, const class_facts *facts, const tensor *base,
                            onnx_transform t, graph_value_index labels, graph_value_index scores)
{
    if (base != NULL && (facts->only != 0 || base->dims[0] != 1))
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "%lld base values for two classes with weights of class %d; supported: "
                         "one, and weights of class 0",
                         (long long)base->dims[0], facts->only);
    const int64_t one = 1, only = facts->only;
    graph_attribute axis = graph_make_int("axis", 1);
    graph_value_index inputs[] = {scores,
                                  graph_add_constant_i64(n->graph, n->name, 1, &one, &only)};
    graph_value_index s = graph_add(n->graph, GRAPH_OP_GATHER, 2, inputs, 1, &axis);
    if (base != NULL)
        s = onnx_binary(n, GRAPH_OP_ADD, s, constant_of(n, base));
    graph_value_index label = onnx_is_above(n, s, 0, facts->is_positive ? 0.5f : 0);
    graph_value_index minus = onnx_unary(n, GRAPH_OP_NEG, s), both;
    if (facts->only == 1)
        both = onnx_apply_transform(
            n, t, onnx_join_columns(n, onnx_binary(n, GRAPH_OP_MUL, s, onnx_float(n, 0)), s));
    else if (t == ONNX_TRANSFORM_LOGISTIC)
        both = onnx_apply_transform(n, t, onnx_join_columns(n, minus, s));
    else if (facts->is_positive)
        both = onnx_join_columns(n, onnx_binary(n, GRAPH_OP_SUB, onnx_float(n, 1), s), s);
    else
        both = onnx_join_columns(n, minus, s);
    onnx_finish_classes(n, labels, label, ONNX_TRANSFORM_NONE, both);
    return STATUS_OK;
}

/* Adds the leaves below a root to the counts of their classes; returns their number. */
static int64_t count_classes(const forest *f, int32_t root, int32_t *stack, int64_t *counts)
{
    const int32_t *nodes = f->nodes.data, *leaves = f->leaves.data, *ids = f->targets.data;
    int64_t found = 0, depth = 0;
    stack[depth++] = root;
    while (depth > 0) {
        int32_t at = stack[--depth];
        if (at >= 0) {
            stack[depth++] = nodes[at * FOREST_NODE_INTS + 1];
            stack[depth++] = nodes[at * FOREST_NODE_INTS + 2];
            continue;
        }
        found++;
        for (int32_t w = leaves[~at]; w < leaves[~at + 1]; w++)
            counts[ids[w]] += w == leaves[~at] || ids[w] != ids[w - 1];
    }
    return found;
}

/* Whether each class gets a score from every row: one of the trees has it in all leaves. Without,
 * ONNX Runtime leaves the class out of the comparison for that row. */
static bool scores_all(const forest *f, int64_t classes, bool *is_out_of_memory)
{
    arena memory = {0};
    int32_t *stack =
        arena_allocate_zeroed(&memory, (size_t)f->nodes.dims[0] + 2, 2 * sizeof stack[0]);
    int64_t *counts = arena_allocate_zeroed(&memory, (size_t)classes, sizeof counts[0]);
    bool *is_scored = arena_allocate_zeroed(&memory, (size_t)classes, sizeof is_scored[0]);
    *is_out_of_memory = stack == NULL || counts == NULL || is_scored == NULL;
    int64_t missing = classes;
    for (int64_t t = 0; !*is_out_of_memory && missing > 0 && t < f->roots.dims[0]; t++) {
        memset(counts, 0, (size_t)classes * sizeof counts[0]);
        int64_t leaves = count_classes(f, ((const int32_t *)f->roots.data)[t], stack, counts);
        for (int64_t c = 0; c < classes; c++)
            if (counts[c] >= leaves && !is_scored[c]) {
                is_scored[c] = true;
                missing--;
            }
    }
    arena_dispose(&memory);
    return missing == 0;
}

/* Two classes and weights of both. ONNX Runtime's label is the sign of the second score. */
static status finish_two(onnx_node *n, const tensor *base, onnx_transform t,
                         graph_value_index labels, graph_value_index scores)
{
    if (base != NULL && base->dims[0] != 1)
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "%lld base values for two classes with weights of both; supported: one",
                         (long long)base->dims[0]);
    if (base != NULL) {
        const int64_t two = 2;
        const float both[] = {((const float *)base->data)[0], 0};
        scores = onnx_binary(n, GRAPH_OP_ADD, scores,
                             graph_add_constant_f32(n->graph, n->name, 1, &two, both));
    }
    onnx_finish_classes(n, labels, onnx_is_above(n, scores, 1, 0), t, scores);
    return STATUS_OK;
}

static status finish_many(onnx_node *n, const tensor *base, int64_t classes, onnx_transform t,
                          graph_value_index labels, graph_value_index scores)
{
    if (base != NULL && base->dims[0] != classes)
        return onnx_fail(n, STATUS_UNSUPPORTED, "%lld base values for %lld classes",
                         (long long)base->dims[0], (long long)classes);
    if (base != NULL)
        scores = onnx_binary(n, GRAPH_OP_ADD, scores, constant_of(n, base));
    onnx_finish_classes(n, labels, onnx_best_column(n, scores), t, scores);
    return STATUS_OK;
}

status onnx_rewrite_tree_classifier(onnx_node *n)
{
    forest f;
    onnx_transform t = ONNX_TRANSFORM_NONE;
    graph_value_index labels = GRAPH_NO_VALUE, scores = GRAPH_NO_VALUE;
    int64_t classes = 0;
    status s = onnx_read_transform(n, &t);
    if (!s)
        s = onnx_take_class_labels(n, &labels, &classes);
    if (!s)
        s = forest_read_lists(n, "class", &f);
    const tensor *base = NULL;
    if (!s)
        s = take_base(n, &base);
    if (!s)
        s = onnx_check_no_attributes(n);
    if (!s && classes < 2)
        s = onnx_fail(n, STATUS_UNSUPPORTED, "one class; supported: two and more");
    if (!s)
        s = add_trees(n, &f, classes, "SUM", &scores);
    if (s)
        return s;
    class_facts facts = find_facts(&f);
    scores = onnx_cast(n, scores, dtype_to_onnx(DTYPE_F32));
    if (classes == 2 && facts.has_one)
        return finish_binary(n, &facts, base, t, labels, scores);
    bool is_out_of_memory = false, is_sure = base != NULL && classes > 2;
    is_sure |= classes > 2 && facts.is_positive;
    if (!is_sure && !scores_all(&f, classes, &is_out_of_memory))
        return is_out_of_memory
                   ? onnx_fail_memory()
                   : onnx_fail(n, STATUS_UNSUPPORTED,
                               "a class that some rows get no weight for; supported: a weight of "
                               "each class in all leaves of a tree");
    return classes == 2 ? finish_two(n, base, t, labels, scores)
                        : finish_many(n, base, classes, t, labels, scores);
}

/* ONNX Runtime leaves the score of one target as it is, whatever post_transform says. */
status onnx_rewrite_tree_regressor(onnx_node *n)
{
    forest f;
    onnx_transform t = ONNX_TRANSFORM_NONE;
    graph_value_index scores = GRAPH_NO_VALUE;
    int64_t targets = onnx_pop_int(n, "n_targets", 1);
    const char *aggregate = onnx_pop_string(n, "aggregate_function", "SUM");
    status s = onnx_read_transform(n, &t);
    if (!s)
        s = forest_read_lists(n, "target", &f);
    const tensor *base = NULL;
    if (!s)
        s = take_base(n, &base);
    if (!s && base != NULL && base->dims[0] != targets)
        s = onnx_fail(n, STATUS_UNSUPPORTED, "%lld base values for %lld targets",
                      (long long)base->dims[0], (long long)targets);
    if (!s)
        s = onnx_check_no_attributes(n);
    if (!s)
        s = add_trees(n, &f, targets, aggregate, &scores);
    if (s)
        return s;
    scores = onnx_cast(n, scores, dtype_to_onnx(DTYPE_F32));
    if (base != NULL)
        scores = onnx_binary(n, GRAPH_OP_ADD, scores, constant_of(n, base));
    onnx_finish_as(n, targets > 1 ? onnx_apply_transform(n, t, scores) : scores);
    return STATUS_OK;
}

/* post_transform: the definition has SOFTMAX as 1 and LOGISTIC as 2, ONNX Runtime the reverse, and
 * what it answers is what a model was tested with. */
status onnx_rewrite_tree_ensemble(onnx_node *n)
{
    static const char *const aggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    forest f;
    graph_value_index scores = GRAPH_NO_VALUE;
    int64_t targets = onnx_pop_int(n, "n_targets", 1);
    int64_t aggregate = onnx_pop_int(n, "aggregate_function", 1);
    int64_t t = onnx_pop_int(n, "post_transform", 0);
    status s = forest_read_ensemble(n, &f);
    if (!s)
        s = onnx_check_no_attributes(n);
    if (!s && (aggregate < 0 || aggregate > 3 || t < 0 || t > 3))
        s = onnx_fail(n, STATUS_UNSUPPORTED,
                      "aggregate_function %lld, post_transform %lld; supported: 0 to 3",
                      (long long)aggregate, (long long)t);
    if (!s)
        s = add_trees(n, &f, targets, aggregates[aggregate], &scores);
    if (s)
        return s;
    static const onnx_transform transforms[] = {ONNX_TRANSFORM_NONE, ONNX_TRANSFORM_LOGISTIC,
                                                ONNX_TRANSFORM_SOFTMAX,
                                                ONNX_TRANSFORM_SOFTMAX_ZERO};
    onnx_finish_as(n, targets > 1 ? onnx_apply_transform(n, transforms[t], scores) : scores);
    return STATUS_OK;
}
