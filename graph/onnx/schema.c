#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "graph/onnx/importer.h"

typedef struct schema {
    int input_count_min, input_count_max, output_count_max;
    const char *attributes; /* NULL: the format does not have the operator */
} schema;

static const schema schemas[GRAPH_OP_COUNT] = {
#define ONNX_SCHEMA(identifier, inputs_min, inputs_max, outputs_max, attributes)                   \
    [GRAPH_OP_##identifier] = {inputs_min, inputs_max, outputs_max, attributes},
#include "graph/onnx/schema.inc"
#undef ONNX_SCHEMA
};

static const struct {
    char letter;
    graph_attribute_kind kind;
    const char *name;
} kinds[] = {
    {'i', GRAPH_ATTRIBUTE_INT, "an int"},      {'f', GRAPH_ATTRIBUTE_FLOAT, "a float"},
    {'s', GRAPH_ATTRIBUTE_STRING, "a string"}, {'t', GRAPH_ATTRIBUTE_TENSOR, "a tensor"},
    {'I', GRAPH_ATTRIBUTE_INTS, "ints"},       {'F', GRAPH_ATTRIBUTE_FLOATS, "floats"},
    {'S', GRAPH_ATTRIBUTE_STRINGS, "strings"}, {'g', GRAPH_ATTRIBUTE_GRAPH, "a graph"},
};

/* Reads the next of "name:kind[!] name:kind[!] ..."; false at the end. */
static bool next_attribute(const char **at, const char **name, size_t *name_bytes, char *letter,
                           bool *is_required)
{
    while (**at == ' ')
        (*at)++;
    if (**at == 0)
        return false;
    const char *colon = strchr(*at, ':');
    assert(colon != NULL);
    *name = *at;
    *name_bytes = (size_t)(colon - *at);
    *letter = colon[1];
    *is_required = colon[2] == '!';
    *at = colon + 2 + *is_required;
    return true;
}

static const char *list_attributes(char *text, size_t room, const char *attributes)
{
    const char *name;
    size_t bytes, used = 0;
    char letter;
    bool is_required;
    text[0] = 0;
    while (next_attribute(&attributes, &name, &bytes, &letter, &is_required) && used < room)
        used += (size_t)snprintf(text + used, room - used, "%s%.*s", used ? ", " : "", (int)bytes,
                                 name);
    return text[0] ? text : "none";
}

static status check_attribute(const onnx_node *n, const graph_attribute *a, const char *attributes)
{
    const char *at = attributes, *name;
    size_t bytes;
    char letter, list[500];
    bool is_required;
    while (next_attribute(&at, &name, &bytes, &letter, &is_required)) {
        if (strlen(a->name) != bytes || memcmp(a->name, name, bytes) != 0)
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (kinds[i].letter == letter && kinds[i].kind != a->kind)
                return onnx_fail(n, STATUS_CORRUPT, "attribute '%s' must be %s", a->name,
                                 kinds[i].name);
        return STATUS_OK;
    }
    return onnx_fail(n, STATUS_UNSUPPORTED, "attribute '%s' is not supported; supported: %s",
                     a->name, list_attributes(list, sizeof list, attributes));
}

status onnx_check_schema(const onnx_node *n, graph_op op)
{
    const schema *wanted = &schemas[op];
    if (wanted->attributes == NULL)
        return onnx_reject_operator(n);
    if (n->input_count < wanted->input_count_min || n->input_count > wanted->input_count_max)
        return onnx_fail(n, STATUS_CORRUPT, "it has %d inputs; %d to %d are allowed",
                         n->input_count, wanted->input_count_min, wanted->input_count_max);
    for (int i = 0; i < wanted->input_count_min; i++)
        if (n->inputs[i] == GRAPH_NO_VALUE)
            return onnx_fail(n, STATUS_CORRUPT, "its input %d is missing", i);
    if (n->output_count > wanted->output_count_max)
        return onnx_fail(n, STATUS_UNSUPPORTED, "it has %d outputs; at most %d are supported",
                         n->output_count, wanted->output_count_max);
    for (int i = 0; i < n->attribute_count; i++) {
        status s = check_attribute(n, &n->attributes[i], wanted->attributes);
        if (s)
            return s;
    }
    const char *at = wanted->attributes, *name;
    size_t bytes;
    char letter;
    bool is_required;
    while (next_attribute(&at, &name, &bytes, &letter, &is_required)) {
        bool is_there = !is_required;
        for (int i = 0; i < n->attribute_count && !is_there; i++)
            is_there = strlen(n->attributes[i].name) == bytes &&
                       memcmp(n->attributes[i].name, name, bytes) == 0;
        if (!is_there)
            return onnx_fail(n, STATUS_CORRUPT, "attribute '%.*s' is missing", (int)bytes, name);
    }
    return STATUS_OK;
}

/* `count`: supported operators of the ONNX domain. */
static status reject_of_domain(const onnx_node *n, int count)
{
    char supported[800];
    if (strcmp(n->domain, "com.microsoft") == 0)
        onnx_list_contrib(supported, sizeof supported);
    else if (strcmp(n->domain, "ai.onnx.ml") == 0)
        onnx_list_ml(supported, sizeof supported);
    else
        snprintf(supported, sizeof supported,
                 "%d operators of the ONNX domain, opsets %d to %d, and some of com.microsoft and "
                 "ai.onnx.ml (docs/models.md)",
                 count, ONNX_OPSET_MIN, ONNX_OPSET_MAX);
    return onnx_fail(n, STATUS_UNSUPPORTED, "the operator is not supported; supported: %s",
                     supported);
}

status onnx_reject_operator(const onnx_node *n)
{
    int best = -1, best_distance = 0, count = 0;
    for (int i = 0; i < GRAPH_OP_COUNT; i++) {
        if (schemas[i].attributes == NULL)
            continue;
        count++;
        int d = nearest_distance(n->op_type, graph_op_name((graph_op)i));
        if (best < 0 || d < best_distance) {
            best = i;
            best_distance = d;
        }
    }
    if (n->domain[0] != 0)
        return reject_of_domain(n, count);
    /* A name that differs by more than a typing error is no help: Elu for GRU. */
    if (3 * best_distance > (int)strlen(n->op_type))
        return onnx_fail(n, STATUS_UNSUPPORTED,
                         "the operator is not supported; supported: %d operators, opsets %d to %d "
                         "(docs/models.md)",
                         count, ONNX_OPSET_MIN, ONNX_OPSET_MAX);
    return onnx_fail(
        n, STATUS_UNSUPPORTED,
        "the operator is not supported; the nearest supported name is %s (%d operators "
        "are supported, opsets %d to %d)",
        graph_op_name((graph_op)best), count, ONNX_OPSET_MIN, ONNX_OPSET_MAX);
}
