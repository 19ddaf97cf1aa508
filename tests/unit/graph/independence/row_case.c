#include "tests/unit/graph/independence/row_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xorshift.h"
#include "devices/cpu/evaluate.h"
#include "graph/independence/rules.h"
#include "graph/shapes/infer.h"

#define ROWS 3
#define PORTS_MAX 12

/* An input or output: its relation, and real data of each single run and of the batch. */
typedef struct port {
    row_value value;
    tensor ones[ROWS], many; /* with data, also where the rule does not see it */
} port;

typedef struct bench {
    arena memory;
    graph_node node;
    graph_value_index in_values[PORTS_MAX], out_values[PORTS_MAX];
    graph_attribute attributes[PORTS_MAX];
    port in[PORTS_MAX], out[PORTS_MAX];
    bool is_absent[PORTS_MAX];
    uint64_t state;
} bench;

static dtype read_dtype(const char **at)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        size_t bytes = strlen(dtype_name((dtype)type));
        if (strncmp(*at, dtype_name((dtype)type), bytes) == 0 && (*at)[bytes] == '[') {
            *at += bytes + 1;
            return (dtype)type;
        }
    }
    cr_assert_fail("no dtype at \"%s\"", *at);
    return DTYPE_COUNT;
}

/* "3", "B", "2*B*4": its size in a single run; *before: blocks before B, or 0 where it has none. */
static int64_t read_size(const char **at, int64_t *before)
{
    int64_t size = 1;
    *before = 0;
    for (;; (*at)++) {
        if (**at == 'B') {
            *before = size;
            (*at)++;
        } else {
            char *end;
            size *= strtoll(*at, &end, 10);
            cr_assert_neq(end, *at, "at \"%s\"", *at);
            *at = end;
        }
        if (**at != '*')
            return size;
    }
}

static int64_t read_value(const char **at, int64_t rows)
{
    int64_t before, size = read_size(at, &before);
    return before > 0 ? size * rows : size;
}

static void set_random(bench *b, tensor *t)
{
    for (int64_t i = 0; i < tensor_count(t); i++) {
        uint64_t r = xorshift_next(&b->state) >> 20;
        tensor_set_number(t, i,
                          dtype_is_float(t->dtype) ? (double)(r % 2000) / 500 - 2
                          : t->dtype == DTYPE_BOOL ? (double)(r & 1)
                                                   : (double)(r % 2));
    }
}

static void allocate(bench *b, tensor *t)
{
    tensor shape = *t;
    cr_assert_eq(tensor_allocate(t, &b->memory, shape.dtype, shape.rank, shape.dims), STATUS_OK);
}

/* Puts the single runs into the batch, or compares them with it. */
static bool interleave(const tensor *ones, tensor *many, int64_t outer, bool compares)
{
    size_t block = tensor_bytes(&ones[0]) / (size_t)outer;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < ROWS; i++) {
            char *in_many = (char *)many->data + (size_t)(o * ROWS + i) * block;
            char *in_one = (char *)ones[i].data + (size_t)o * block;
            if (!compares)
                memcpy(in_many, in_one, block);
            else if (memcmp(in_many, in_one, block) != 0)
                return false;
        }
    }
    return true;
}

static void read_known(const char **at, port *p, bool has_rows)
{
    (*at)++;
    bool is_number = **at == '#';
    (*at)++;
    const char *start = *at;
    for (int k = 0; k <= ROWS; k++) {
        tensor *t = k < ROWS ? &p->ones[k] : &p->many;
        *at = start;
        for (int64_t i = 0; is_number && i < tensor_count(t); i++)
            tensor_set_number(t, i, k < ROWS ? 0 : (double)i);
        int64_t given = 0, last = 0;
        for (; !is_number && **at != '}'; *at += **at == ',') {
            last = read_value(at, k < ROWS ? 1 : ROWS);
            tensor_set_number(t, given++, (double)last);
        }
        for (; !is_number && given < tensor_count(t); given++)
            tensor_set_number(t, given, (double)last);
    }
    *at += !is_number;
    p->value.one.data = p->ones[0].data;
    p->value.many.data = p->many.data;
    bool is_same = !has_rows && memcmp(p->ones[0].data, p->many.data, tensor_bytes(&p->many)) == 0;
    p->value.relation.kind = is_same ? ROWS_SAME : ROWS_COUNTED;
}

static void read_input(bench *b, const char **at, port *p)
{
    tensor one = {.dtype = read_dtype(at)}, many;
    int axis = -1;
    int64_t outer = 0;
    while (**at != ']') {
        int64_t before;
        one.dims[one.rank] = read_size(at, &before);
        if (before > 0) {
            axis = one.rank;
            outer = before;
        }
        one.rank++;
        *at += **at == ',';
    }
    (*at)++;
    many = one;
    if (axis >= 0)
        many.dims[axis] *= ROWS;
    p->value = (row_value){.one = one, .many = many, .relation = {.kind = ROWS_SAME}};
    p->many = many;
    allocate(b, &p->many);
    for (int i = 0; i < ROWS; i++) {
        p->ones[i] = one;
        allocate(b, &p->ones[i]);
        set_random(b, &p->ones[axis >= 0 ? i : 0]);
        if (axis < 0)
            memcpy(p->ones[i].data, p->ones[0].data, tensor_bytes(&one));
    }
    if (**at == '=') {
        read_known(at, p, axis >= 0);
        return;
    }
    if (axis < 0) {
        for (int i = 0; i < ROWS; i++)
            p->ones[i].data = p->ones[0].data;
        p->many.data = p->ones[0].data;
        return;
    }
    p->value.relation.kind = ROWS_SPLIT;
    p->value.relation.outer = rows_product(one.dims, 0, axis) * outer;
    interleave(p->ones, &p->many, p->value.relation.outer, false);
}

static graph_attribute read_attribute(bench *b, const char **at)
{
    size_t name_bytes = strcspn(*at, "=");
    graph_attribute a = {.name = arena_copy_string(&b->memory, *at, name_bytes)};
    *at += name_bytes + 1;
    if (**at == '[') {
        int64_t *ints = arena_allocate(&b->memory, 16 * sizeof *ints);
        a.kind = GRAPH_ATTRIBUTE_INTS;
        for (; **at != ']';) {
            char *end;
            (*at)++;
            ints[a.count++] = strtoll(*at, &end, 10);
            *at = end;
        }
        (*at)++;
        a.ints = ints;
        return a;
    }
    size_t bytes = strcspn(*at, " ");
    char *text = arena_copy_string(&b->memory, *at, bytes), *end;
    *at += bytes;
    a.i = strtoll(text, &end, 10);
    a.kind = GRAPH_ATTRIBUTE_INT;
    if (*end != 0 || end == text) {
        a.kind = GRAPH_ATTRIBUTE_STRING;
        a.s = text;
    }
    return a;
}

static void read_case(bench *b, const row_case *row)
{
    b->node = (graph_node){.op = row->op,
                           .name = "tested",
                           .inputs = b->in_values,
                           .outputs = b->out_values,
                           .attributes = b->attributes};
    for (const char *at = row->inputs; *at != 0; at += *at == ' ') {
        int i = b->node.input_count++;
        b->is_absent[i] = *at == '-';
        if (b->is_absent[i]) {
            b->in_values[i] = GRAPH_NO_VALUE;
            at++;
        } else {
            read_input(b, &at, &b->in[i]);
        }
    }
    for (const char *at = row->attributes; *at != 0; at += *at == ' ')
        b->attributes[b->node.attribute_count++] = read_attribute(b, &at);
    b->node.output_count = 1;
    for (const char *c = row->expected; *c != 0; c++)
        b->node.output_count += *c == ' ';
}

/* Runs the reference kernel: one row (`run` is its number), or all (`run` is ROWS). False: it does
 * not support the node, or its random indices. */
static bool compute(bench *b, int run)
{
    const tensor *in[PORTS_MAX] = {NULL};
    tensor out[PORTS_MAX] = {0};
    for (int i = 0; i < b->node.input_count; i++)
        in[i] = b->is_absent[i] ? NULL : run < ROWS ? &b->in[i].ones[run] : &b->in[i].many;
    status s = graph_infer_node(&b->node, in, out);
    cr_assert_eq(s, STATUS_OK, "%s: %s", graph_op_name(b->node.op), status_message());
    for (int i = 0; i < b->node.output_count; i++) {
        *(run < ROWS ? &b->out[i].value.one : &b->out[i].value.many) = out[i];
        allocate(b, &out[i]);
        *(run < ROWS ? &b->out[i].ones[run] : &b->out[i].many) = out[i];
    }
    s = cpu_evaluate_node(&b->node, in, out, NULL);
    return s == STATUS_OK;
}

static const char *relation_text(char text[40], const row_call *c, const row_value *v)
{
    static const char *const names[] = {"same",    "view",  "counted",  "numbered",
                                        "indexed", "mixed", "undecided"};
    row_axis at;
    snprintf(text, 40, "%s", names[v->relation.kind]);
    if (v->relation.kind == ROWS_SPLIT && rows_find(c, v, &at) && at.outer > 1)
        snprintf(text, 40, "%d/%lld", at.axis, (long long)at.outer);
    else if (v->relation.kind == ROWS_SPLIT && rows_find(c, v, &at))
        snprintf(text, 40, "%d", at.axis);
    return text;
}

void row_case_check(const row_case *row, int line)
{
    bench b = {.state = (uint64_t)line * 2 + 1};
    bool is_computed = true;
    const row_value *in[PORTS_MAX] = {NULL};
    row_value out[PORTS_MAX];
    char text[40];
    read_case(&b, row);
    for (int run = 0; run <= ROWS; run++)
        is_computed &= compute(&b, run);
    for (int i = 0; i < b.node.input_count; i++)
        in[i] = b.is_absent[i] ? NULL : &b.in[i].value;
    for (int i = 0; i < b.node.output_count; i++)
        out[i] = b.out[i].value;
    row_call call = {&b.node, ROWS, in, out};
    row_rule rule = independence_rule_of(row->op);
    cr_assert(rule != NULL, "%s has no rule", graph_op_name(row->op));
    const char *expected = row->expected;
    for (int i = 0; i < b.node.output_count; i++) {
        row_value v = out[i];
        v.relation = rule(&call, i);
        size_t bytes = strcspn(expected, " ");
        relation_text(text, &call, &v);
        cr_expect(strlen(text) == bytes && strncmp(text, expected, bytes) == 0,
                  "row %d, %s(%s){%s}: output %d is %s (%s), expected %s", line,
                  graph_op_name(row->op), row->inputs, row->attributes, i, text,
                  v.relation.reason ? v.relation.reason : "", row->expected);
        expected += bytes + (expected[bytes] == ' ');
        bool is_claimed = v.relation.kind == ROWS_SPLIT || v.relation.kind == ROWS_SAME;
        if (!is_computed || !is_claimed)
            continue;
        int64_t outer = v.relation.kind == ROWS_SPLIT ? v.relation.outer : 1;
        for (int k = 0; v.relation.kind == ROWS_SAME && k < ROWS; k++)
            cr_expect(memcmp(b.out[i].many.data, b.out[i].ones[k].data,
                             tensor_bytes(&b.out[i].many)) == 0,
                      "row %d, %s(%s){%s}: not the same", line, graph_op_name(row->op), row->inputs,
                      row->attributes);
        cr_expect(v.relation.kind == ROWS_SAME ||
                      interleave(b.out[i].ones, &b.out[i].many, outer, true),
                  "row %d, %s(%s){%s}: the kernel mixes rows", line, graph_op_name(row->op),
                  row->inputs, row->attributes);
    }
    arena_dispose(&b.memory);
}
