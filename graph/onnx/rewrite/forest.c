#include "graph/onnx/rewrite/forest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (1 << 28)

/* Where a node of the file is: trees and nodes have numbers of their own. */
typedef struct node_key {
    int64_t tree, node;
    int32_t index; /* in the file's lists */
} node_key;

/* What both formats are made into first: one entry for each node of the file. */
typedef struct node_list {
    onnx_node *n;
    arena *memory; /* scratch */
    int64_t count;
    const int64_t *columns, *missing; /* missing: NULL where it is absent */
    const node_key *keys;             /* sorted; NULL: nodes are their indices */
    int32_t *places;                  /* of each entry: branch, or ~leaf */
    uint8_t *is_child;                /* somebody's */
    int64_t branches, leaves;
} node_list;

static status corrupt(const node_list *l, const char *what)
{
    return onnx_fail(l->n, STATUS_CORRUPT, "%s", what);
}

static const graph_attribute *take(onnx_node *n, const char *prefix, const char *name,
                                   graph_attribute_kind kind)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const graph_attribute *a = onnx_pop_attribute(n, full);
    return a != NULL && a->kind == kind ? a : NULL;
}

static const int64_t *take_ints(onnx_node *n, const char *prefix, const char *name, int64_t count)
{
    const graph_attribute *a = take(n, prefix, name, GRAPH_ATTRIBUTE_INTS);
    return a != NULL && (int64_t)a->count == count ? a->ints : NULL;
}

/* A list of floats, or a tensor of floats or doubles `<name>_as_tensor`. False: neither. */
static bool take_numbers(onnx_node *n, const char *prefix, const char *name, tensor *out)
{
    char wide[64];
    snprintf(wide, sizeof wide, "%s_as_tensor", name);
    const graph_attribute *list = take(n, prefix, name, GRAPH_ATTRIBUTE_FLOATS);
    const graph_attribute *t = take(n, prefix, wide, GRAPH_ATTRIBUTE_TENSOR);
    if (t != NULL && t->t->rank == 1) {
        *out = *t->t;
        return out->dtype == DTYPE_F32 || out->dtype == DTYPE_F64;
    }
    if (list == NULL)
        return false;
    int64_t count = (int64_t)list->count;
    if (tensor_set_shape(out, DTYPE_F32, 1, &count))
        return false;
    out->data = (void *)list->floats;
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const node_key *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Index of a node in the file's lists, or -1. `near`: an index not far from it, tried first. */
static int64_t find_node(const node_list *l, int64_t tree, int64_t node, int64_t near)
{
    if (l->keys == NULL)
        return node >= 0 && node < l->count ? node : -1;
    const node_key wanted = {tree, node, 0};
    if (near >= 0 && near < l->count && compare_keys(&l->keys[near], &wanted) == 0)
        return l->keys[near].index;
    const node_key *found =
        bsearch(&wanted, l->keys, (size_t)l->count, sizeof wanted, compare_keys);
    return found != NULL ? found->index : -1;
}

/* Where `to` is when nodes are numbered as they are listed; the numbers of a file may be any. */
static int64_t index_near(int64_t index, int64_t node, int64_t to)
{
    int64_t distance, near;
    bool is_far = __builtin_sub_overflow(to, node, &distance) ||
                  __builtin_add_overflow(index, distance, &near);
    return is_far ? -1 : near;
}

static status sort_keys(node_list *l, const int64_t *trees, const int64_t *nodes)
{
    node_key *keys = arena_allocate_zeroed(l->memory, (size_t)l->count, sizeof *keys);
    if (keys == NULL)
        return onnx_fail_memory();
    bool is_sorted = true;
    for (int64_t i = 0; i < l->count; i++) {
        keys[i] = (node_key){trees[i], nodes[i], (int32_t)i};
        is_sorted &= i == 0 || compare_keys(&keys[i - 1], &keys[i]) < 0;
    }
    if (!is_sorted)
        qsort(keys, (size_t)l->count, sizeof *keys, compare_keys);
    for (int64_t i = 1; i < l->count; i++)
        if (compare_keys(&keys[i - 1], &keys[i]) == 0)
            return corrupt(l, "two of its nodes have the same number");
    l->keys = keys;
    return STATUS_OK;
}

static status allocate(onnx_node *n, tensor *t, dtype type, int rank, int64_t rows, int64_t columns)
{
    status s = tensor_allocate(t, &n->graph->memory, type, rank, (int64_t[]){rows, columns});
    return s ? onnx_fail_memory() : STATUS_OK;
}

static int32_t *node_at(const forest *f, int64_t branch)
{
    return (int32_t *)f->nodes.data + branch * FOREST_NODE_INTS;
}

/* Writes a branch; where it leads to is known later. */
static status add_branch(const node_list *l, forest *f, int64_t branch, int64_t entry,
                         forest_branch mode, double split)
{
    int64_t column = l->columns[entry];
    int32_t *node = node_at(f, branch);
    if (column < 0 || column >= 1 << 27)
        return corrupt(l, "a column of its input is negative, or far too large");
    bool is_missing_true = l->missing != NULL && l->missing[entry] != 0;
    node[0] = (int32_t)(column << 4) | (is_missing_true ? FOREST_MISSING : 0) | (int32_t)mode;
    memcpy(&node[3], &split, sizeof split);
    f->columns = column + 1 > f->columns ? column + 1 : f->columns;
    return STATUS_OK;
}

/* A branch has one parent, and a root none: then nothing that hangs on a root is a circle. */
static status link_branch(node_list *l, int32_t *to, int64_t entry)
{
    if (entry < 0)
        return corrupt(l, "a branch leads to a node that is not there");
    if (l->is_child[entry])
        return corrupt(l, "two branches lead to one node: its nodes are no trees");
    l->is_child[entry] = 1;
    *to = l->places[entry];
    return STATUS_OK;
}

static status begin_list(node_list *l)
{
    if (l->count < 1 || l->count > NODES_MAX)
        return onnx_fail(l->n, STATUS_CORRUPT, "it has %lld nodes; supported: 1 to %d",
                         (long long)l->count, NODES_MAX);
    l->places = arena_allocate_zeroed(l->memory, (size_t)l->count, sizeof l->places[0]);
    l->is_child = arena_allocate_zeroed(l->memory, (size_t)l->count, sizeof l->is_child[0]);
    return l->places != NULL && l->is_child != NULL ? STATUS_OK : onnx_fail_memory();
}

/* FOREST_BRANCHES: a leaf; -1: unknown. */
static int read_mode(const char *name)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
    for (int i = 0; i <= FOREST_BRANCHES; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static status number_nodes(node_list *l, const char *const *modes)
{
    for (int64_t i = 0; i < l->count; i++) {
        int mode = read_mode(modes[i]);
        if (mode < 0)
            return onnx_fail(l->n, STATUS_UNSUPPORTED,
                             "mode '%s'; supported: LEAF, BRANCH_ and LEQ, LT, GTE, GT, EQ, NEQ",
                             modes[i]);
        l->places[i] = mode == FOREST_BRANCHES ? ~(int32_t)l->leaves++ : (int32_t)l->branches++;
    }
    return STATUS_OK;
}

/* Nodes that no root leads to: those that go round in a circle. */
static int64_t count_lost(const node_list *l, const forest *f, int32_t *stack)
{
    int64_t reached = 0, depth = 0;
    for (int64_t t = 0; t < f->roots.dims[0]; t++) {
        stack[depth++] = ((const int32_t *)f->roots.data)[t];
        while (depth > 0) {
            int32_t at = stack[--depth];
            reached++;
            for (int side = 0; at >= 0 && side < 2; side++)
                stack[depth++] = node_at(f, at)[1 + side];
        }
    }
    return l->count - reached;
}

/* The nodes that nobody leads to, in the file's order: one for each tree. */
static status list_roots(const node_list *l, forest *f)
{
    int64_t count = 0, wanted = 1;
    for (int64_t i = 0; i < l->count; i++)
        count += !l->is_child[i];
    for (int64_t i = 1; i < l->count; i++)
        wanted += l->keys[i].tree != l->keys[i - 1].tree;
    if (count != wanted)
        return onnx_fail(l->n, STATUS_CORRUPT, "it has %lld trees and %lld roots",
                         (long long)wanted, (long long)count);
    status s = allocate(l->n, &f->roots, DTYPE_I32, 1, count, 0);
    for (int64_t i = 0, k = 0; !s && i < l->count; i++)
        if (!l->is_child[i])
            ((int32_t *)f->roots.data)[k++] = l->places[i];
    if (s)
        return s;
    int32_t *stack = arena_allocate_zeroed(l->memory, (size_t)l->count + 2, sizeof stack[0]);
    if (stack == NULL)
        return onnx_fail_memory();
    return count_lost(l, f, stack) == 0 ? s : corrupt(l, "some nodes hang on no root");
}

/* Sorts the weights by leaf; those of one leaf stay in order. */
static status list_weights(const node_list *l, const char *prefix, forest *f)
{
    tensor weights;
    onnx_node *n = l->n;
    if (!take_numbers(n, prefix, "_weights", &weights))
        return corrupt(l, "its weights are missing");
    int64_t count = weights.dims[0];
    const int64_t *trees = take_ints(n, prefix, "_treeids", count);
    const int64_t *nodes = take_ints(n, prefix, "_nodeids", count);
    const int64_t *ids = take_ints(n, prefix, "_ids", count);
    if (trees == NULL || nodes == NULL || ids == NULL || count > NODES_MAX)
        return corrupt(l, "the lists of its weights differ in length");
    int32_t *leaf_of = arena_allocate_zeroed(l->memory, (size_t)count + 1, sizeof leaf_of[0]);
    status s = allocate(n, &f->leaves, DTYPE_I32, 1, l->leaves + 1, 0);
    if (leaf_of == NULL || s)
        return onnx_fail_memory();
    int32_t *starts = f->leaves.data;
    memset(starts, 0, (size_t)(l->leaves + 1) * sizeof starts[0]);
    int64_t kept = 0, near = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t entry = find_node(l, trees[i], nodes[i], near);
        if (entry < 0 || ids[i] < 0 || ids[i] > INT32_MAX)
            return corrupt(l, "a weight of a node that is not there, or of a negative number");
        near = entry;
        leaf_of[i] = l->places[entry] < 0 ? ~l->places[entry] : -1; /* of a branch: no weight */
        if (leaf_of[i] >= 0) {
            starts[leaf_of[i] + 1]++;
            kept++;
        }
    }
    for (int64_t i = 0; i < l->leaves; i++)
        starts[i + 1] += starts[i];
    int32_t *next = arena_allocate_zeroed(l->memory, (size_t)l->leaves + 1, sizeof next[0]);
    s = allocate(n, &f->targets, DTYPE_I32, 1, kept, 0);
    if (!s)
        s = allocate(n, &f->weights, weights.dtype, 1, kept, 0);
    if (next == NULL || s)
        return onnx_fail_memory();
    for (int64_t i = 0; i < count; i++) {
        if (leaf_of[i] < 0)
            continue;
        int64_t to = starts[leaf_of[i]] + next[leaf_of[i]]++;
        ((int32_t *)f->targets.data)[to] = (int32_t)ids[i];
        tensor_set_number(&f->weights, to, tensor_get_number(&weights, i));
    }
    return STATUS_OK;
}

static status read_lists(node_list *l, const char *prefix, forest *f)
{
    onnx_node *n = l->n;
    tensor splits;
    const graph_attribute *modes = take(n, "nodes", "_modes", GRAPH_ATTRIBUTE_STRINGS);
    l->count = modes != NULL ? (int64_t)modes->count : 0;
    status s = begin_list(l);
    if (s)
        return s;
    const int64_t *trees = take_ints(n, "nodes", "_treeids", l->count);
    const int64_t *nodes = take_ints(n, "nodes", "_nodeids", l->count);
    const int64_t *where[] = {take_ints(n, "nodes", "_truenodeids", l->count),
                              take_ints(n, "nodes", "_falsenodeids", l->count)};
    l->columns = take_ints(n, "nodes", "_featureids", l->count);
    l->missing = take_ints(n, "nodes", "_missing_value_tracks_true", l->count);
    if (trees == NULL || nodes == NULL || where[0] == NULL || where[1] == NULL ||
        l->columns == NULL || !take_numbers(n, "nodes", "_values", &splits) ||
        splits.dims[0] != l->count)
        return corrupt(l, "the lists of its nodes differ in length");
    s = sort_keys(l, trees, nodes);
    if (!s)
        s = number_nodes(l, modes->strings);
    if (!s)
        s = allocate(n, &f->nodes, DTYPE_I32, 2, l->branches, FOREST_NODE_INTS);
    for (int64_t i = 0; !s && i < l->count; i++) {
        int32_t at = l->places[i];
        if (at < 0)
            continue;
        s = add_branch(l, f, at, i, (forest_branch)read_mode(modes->strings[i]),
                       tensor_get_number(&splits, i));
        for (int side = 0; !s && side < 2; side++)
            s = link_branch(
                l, &node_at(f, at)[1 + side],
                find_node(l, trees[i], where[side][i], index_near(i, nodes[i], where[side][i])));
    }
    if (!s)
        s = list_roots(l, f);
    return s ? s : list_weights(l, prefix, f);
}

status forest_read_lists(onnx_node *n, const char *prefix, forest *out)
{
    arena scratch = {0};
    node_list l = {.n = n, .memory = &scratch};
    *out = (forest){0};
    onnx_pop_attribute(n, "nodes_hitrates");
    onnx_pop_attribute(n, "nodes_hitrates_as_tensor");
    status s = read_lists(&l, prefix, out);
    arena_dispose(&scratch);
    return s;
}

/* Each leaf has one weight. */
static status list_leaves(onnx_node *n, const node_list *l, forest *f)
{
    const graph_attribute *weights = onnx_pop_attribute(n, "leaf_weights");
    const graph_attribute *targets = onnx_pop_attribute(n, "leaf_targetids");
    if (weights == NULL || weights->kind != GRAPH_ATTRIBUTE_TENSOR || targets == NULL ||
        targets->kind != GRAPH_ATTRIBUTE_INTS || weights->t->rank != 1 ||
        weights->t->dims[0] != (int64_t)targets->count || targets->count > NODES_MAX)
        return corrupt(l, "its leaves are missing, or their lists differ in length");
    if (weights->t->dtype != DTYPE_F32 && weights->t->dtype != DTYPE_F64)
        return onnx_fail(n, STATUS_UNSUPPORTED, "weights that are neither FP32 nor FP64");
    int64_t count = weights->t->dims[0];
    f->weights = *weights->t;
    status s = allocate(n, &f->targets, DTYPE_I32, 1, count, 0);
    if (!s)
        s = allocate(n, &f->leaves, DTYPE_I32, 1, count + 1, 0);
    for (int64_t i = 0; !s && i <= count; i++) {
        ((int32_t *)f->leaves.data)[i] = (int32_t)i;
        if (i == count)
            break;
        if (targets->ints[i] < 0 || targets->ints[i] > INT32_MAX)
            return corrupt(l, "a target is negative");
        ((int32_t *)f->targets.data)[i] = (int32_t)targets->ints[i];
    }
    return s;
}

static status link_ensemble(node_list *l, forest *f, const int64_t *const *where,
                            const int64_t *const *is_leaf)
{
    status s = STATUS_OK;
    int64_t leaves = f->targets.dims[0];
    for (int64_t i = 0; !s && i < l->count; i++)
        for (int side = 0; !s && side < 2; side++) {
            int64_t to = where[side][i];
            int32_t *place = &node_at(f, i)[1 + side];
            if (!is_leaf[side][i])
                s = link_branch(l, place, find_node(l, 0, to, 0));
            else if (to < 0 || to >= leaves)
                s = corrupt(l, "a branch leads to a leaf that is not there");
            else
                *place = ~(int32_t)to;
        }
    return s;
}

static status read_ensemble(node_list *l, forest *f)
{
    onnx_node *n = l->n;
    const graph_attribute *modes = onnx_pop_attribute(n, "nodes_modes");
    const graph_attribute *splits = onnx_pop_attribute(n, "nodes_splits");
    const graph_attribute *roots = onnx_pop_attribute(n, "tree_roots");
    if (modes == NULL || splits == NULL || modes->kind != GRAPH_ATTRIBUTE_TENSOR ||
        splits->kind != GRAPH_ATTRIBUTE_TENSOR || modes->t->dtype != DTYPE_U8 ||
        (splits->t->dtype != DTYPE_F32 && splits->t->dtype != DTYPE_F64) || roots == NULL ||
        roots->kind != GRAPH_ATTRIBUTE_INTS)
        return corrupt(l, "its modes, splits or roots are missing");
    l->count = tensor_count(modes->t);
    status s = begin_list(l);
    if (s)
        return s;
    const int64_t *where[] = {take_ints(n, "nodes", "_truenodeids", l->count),
                              take_ints(n, "nodes", "_falsenodeids", l->count)};
    const int64_t *is_leaf[] = {take_ints(n, "nodes", "_trueleafs", l->count),
                                take_ints(n, "nodes", "_falseleafs", l->count)};
    l->columns = take_ints(n, "nodes", "_featureids", l->count);
    l->missing = take_ints(n, "nodes", "_missing_value_tracks_true", l->count);
    if (where[0] == NULL || where[1] == NULL || is_leaf[0] == NULL || is_leaf[1] == NULL ||
        l->columns == NULL || tensor_count(splits->t) != l->count)
        return corrupt(l, "the lists of its nodes differ in length");
    s = allocate(n, &f->nodes, DTYPE_I32, 2, l->count, FOREST_NODE_INTS);
    for (int64_t i = 0; !s && i < l->count; i++) {
        int mode = ((const uint8_t *)modes->t->data)[i];
        l->places[i] = (int32_t)i;
        if (mode >= FOREST_BRANCHES)
            return onnx_fail(n, STATUS_UNSUPPORTED,
                             "mode %d; supported: 0 to %d (a set of members is not)", mode,
                             FOREST_BRANCHES - 1);
        s = add_branch(l, f, i, i, (forest_branch)mode, tensor_get_number(splits->t, i));
    }
    if (!s)
        s = list_leaves(n, l, f);
    if (!s)
        s = link_ensemble(l, f, where, is_leaf);
    if (!s)
        s = allocate(n, &f->roots, DTYPE_I32, 1, (int64_t)roots->count, 0);
    for (size_t i = 0; !s && i < roots->count; i++) {
        int64_t root = find_node(l, 0, roots->ints[i], 0);
        if (root < 0 || l->is_child[root])
            return corrupt(l, "a root is not there, or another node leads to it");
        ((int32_t *)f->roots.data)[i] = (int32_t)root;
    }
    return s;
}

status forest_read_ensemble(onnx_node *n, forest *out)
{
    arena scratch = {0};
    node_list l = {.n = n, .memory = &scratch};
    *out = (forest){0};
    onnx_pop_attribute(n, "nodes_hitrates");
    status s = read_ensemble(&l, out);
    arena_dispose(&scratch);
    return s;
}
