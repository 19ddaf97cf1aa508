#include "tests/unit/graph/shapes/case.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/shapes/infer.h"

#define PORTS_MAX 12

static dtype read_dtype(const char **at)
{
    for (int type = 0; type < DTYPE_COUNT; type++) {
        size_t bytes = strlen(dtype_name((dtype)type));
        if (strncmp(*at, dtype_name((dtype)type), bytes) == 0 && (*at)[bytes] == '[') {
            *at += bytes;
            return (dtype)type;
        }
    }
    cr_assert_fail("no dtype at \"%s\"", *at);
    return DTYPE_COUNT;
}

static int read_ints(const char **at, char open, char close, int64_t *values)
{
    int count = 0;
    cr_assert_eq(**at, open, "at \"%s\"", *at);
    for ((*at)++; **at != close; *at += **at == ',') {
        char *end;
        values[count++] = strtoll(*at, &end, 10);
        cr_assert_neq(end, *at, "at \"%s\"", *at);
        *at = end;
    }
    (*at)++;
    return count;
}

static tensor read_tensor(const char **at, arena *memory)
{
    tensor t = {.dtype = read_dtype(at)};
    t.rank = read_ints(at, '[', ']', t.dims);
    if (**at != '=')
        return t;
    (*at)++;
    cr_assert_eq(*(*at)++, '{');
    tensor shape = t;
    cr_assert_eq(tensor_allocate(&t, memory, shape.dtype, shape.rank, shape.dims), STATUS_OK);
    for (int64_t i = 0; **at != '}'; i++, *at += **at == ',') {
        char *end;
        double value = strtod(*at, &end);
        if (t.dtype == DTYPE_I64)
            ((int64_t *)t.data)[i] = strtoll(*at, NULL, 10);
        else
            tensor_set_number(&t, i, value);
        *at = end;
    }
    (*at)++;
    return t;
}

static graph_attribute read_attribute(const char **at, arena *memory)
{
    size_t name_bytes = strcspn(*at, "=");
    graph_attribute a = {.name = arena_copy_string(memory, *at, name_bytes)};
    *at += name_bytes + 1;
    size_t bytes = strcspn(*at, " ");
    if (**at == '[') {
        int64_t *ints = arena_allocate(memory, 32 * sizeof *ints);
        a.kind = GRAPH_ATTRIBUTE_INTS;
        a.count = (size_t)read_ints(at, '[', ']', ints);
        a.ints = ints;
        return a;
    }
    if (strcmp(a.name, "value") == 0) {
        tensor *t = arena_allocate(memory, sizeof *t);
        *t = read_tensor(at, memory);
        a.kind = GRAPH_ATTRIBUTE_TENSOR;
        a.t = t;
        return a;
    }
    char *text = arena_copy_string(memory, *at, bytes), *end;
    *at += bytes;
    a.i = strtoll(text, &end, 10);
    a.kind = GRAPH_ATTRIBUTE_INT;
    if (end != text && *end == '.') {
        a.kind = GRAPH_ATTRIBUTE_FLOAT;
        a.f = strtof(text, NULL);
    } else if (*end != 0 || end == text) {
        a.kind = GRAPH_ATTRIBUTE_STRING;
        a.s = text;
    }
    return a;
}

static void compare(const infer_case *row, int line, const tensor *outputs, int count,
                    arena *memory)
{
    const char *at = row->expected;
    for (int i = 0; i < count; i++) {
        tensor expected = read_tensor(&at, memory);
        at += *at == ' ';
        char text[TENSOR_SHAPE_TEXT_BYTES];
        cr_expect(outputs[i].dtype == expected.dtype && tensor_same_shape(&outputs[i], &expected),
                  "row %d, %s(%s){%s}: output %d is %s%s, expected %s", line,
                  graph_op_name(row->op), row->inputs, row->attributes, i,
                  dtype_name(outputs[i].dtype),
                  tensor_shape_text(text, outputs[i].rank, outputs[i].dims), row->expected);
    }
}

void infer_case_check(const infer_case *row, int line)
{
    arena memory = {0};
    tensor inputs[PORTS_MAX], outputs[PORTS_MAX] = {0};
    const tensor *in[PORTS_MAX] = {NULL};
    graph_value_index in_values[PORTS_MAX] = {0}, out_values[PORTS_MAX] = {0};
    graph_attribute attributes[PORTS_MAX];
    graph_node node = {.op = row->op,
                       .name = "tested",
                       .inputs = in_values,
                       .outputs = out_values,
                       .attributes = attributes};
    for (const char *at = row->inputs; *at != 0; at += *at == ' ') {
        int i = node.input_count++;
        if (*at == '-') {
            in_values[i] = GRAPH_NO_VALUE;
            at++;
            continue;
        }
        inputs[i] = read_tensor(&at, &memory);
        in[i] = &inputs[i];
    }
    for (const char *at = row->attributes; *at != 0; at += *at == ' ')
        attributes[node.attribute_count++] = read_attribute(&at, &memory);
    node.output_count = 1;
    for (const char *c = row->expected; *c != 0; c++)
        node.output_count += *c == ' ';
    const char *wanted = row->expected[0] == '!' ? row->expected + 1 : "ok";
    /* "!invalid_argument 3": with three outputs */
    if (row->expected[0] == '!' && strchr(wanted, ' ') != NULL)
        node.output_count = atoi(strchr(wanted, ' ') + 1);
    status s = graph_infer_node(&node, in, outputs);
    cr_expect(strncmp(status_name(s), wanted, strcspn(wanted, " ")) == 0,
              "row %d, %s(%s){%s}: %s (%s), expected %s", line, graph_op_name(row->op), row->inputs,
              row->attributes, status_name(s), s ? status_message() : "", row->expected);
    if (s == STATUS_OK && row->expected[0] != '!')
        compare(row, line, outputs, node.output_count, &memory);
    arena_dispose(&memory);
}
