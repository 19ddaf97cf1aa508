#include "graph/stablehlo/emit.h"

#include <assert.h>
#include <stdlib.h>

#include "graph/stablehlo/operators.h"

/* A node's result whose builder asks that it is computed before its readers, not with them. */
static void keep(emitter *e, const graph_node *n)
{
    if (e->precision != STABLEHLO_FP32 && graph_attribute_int(n, "is_kept", 0))
        e->values[n->outputs[0]] = hlo_barrier(e, e->values[n->outputs[0]]);
}

static status emit_node(emitter *e, const graph_node *n)
{
    if (emit_defer_transpose(e, n))
        return STATUS_OK;
    emit_fn (*const families[])(graph_op) = {emit_find_elementwise, emit_find_shape,
                                             emit_find_dense, emit_find_reduce, emit_find_quantise};
    for (int i = 0; i < n->output_count; i++)
        if (n->outputs[i] != GRAPH_NO_VALUE && e->graph->values[n->outputs[i]].dtype == DTYPE_BYTES)
            return status_fail(STATUS_UNSUPPORTED, "devices do not support string tensors");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        emit_fn emit = families[i](n->op);
        if (emit == NULL)
            continue;
        status s = emit(e, n);
        if (s == STATUS_OK)
            keep(e, n);
        return s;
    }
    return status_fail(STATUS_UNSUPPORTED,
                       "this operator is not supported in StableHLO; the model runs on the CPU");
}

static void write_module(emitter *e)
{
    stablehlo_program *p = e->program;
    char *body = e->body;
    size_t body_bytes = e->body_bytes;
    e->body = NULL;
    e->body_bytes = e->body_capacity = 0;
    stablehlo_append(e, "module @penstock {\n  func.func public @main(");
    for (int i = 0; i < p->argument_count; i++) {
        ssa v = emit_argument(e, i);
        stablehlo_append(e, "%s%%%d: ", i ? ", " : "", v.number);
        stablehlo_append_type(e, &v);
    }
    stablehlo_append(e, ") -> (");
    for (int i = 0; i < e->graph->output_count; i++) {
        ssa v = emit_value_type(e, e->graph->outputs[i]);
        stablehlo_append(e, i ? ", " : "");
        stablehlo_append_type(e, &v);
    }
    stablehlo_append(e, ") {\n%.*s    return ", (int)body_bytes, body ? body : "");
    for (int i = 0; i < e->graph->output_count; i++)
        stablehlo_append(e, "%s%%%d", i ? ", " : "", e->values[e->graph->outputs[i]].number);
    stablehlo_append(e, " : ");
    for (int i = 0; i < e->graph->output_count; i++) {
        stablehlo_append(e, i ? ", " : "");
        stablehlo_append_type(e, &e->values[e->graph->outputs[i]]);
    }
    stablehlo_append(e, "\n  }\n}\n");
    free(body);
}

status graph_emit_stablehlo(const graph *g, const stablehlo_options *options,
                            stablehlo_program *out)
{
    stablehlo_program program = {.output_count = g->output_count};
    emitter e = {.graph = g, .precision = options->precision, .program = &program};
    if (options->precision != STABLEHLO_FP32)
        e.options = *options;
    e.divisors = calloc((size_t)g->value_count + 1, sizeof *e.divisors);
    e.values = calloc((size_t)g->value_count + 1, sizeof *e.values);
    e.transposed_weights = calloc((size_t)g->value_count + 1, sizeof *e.transposed_weights);
    assert(e.values != NULL && e.transposed_weights != NULL && e.divisors != NULL);
    status s = STATUS_OK;
    /* Every graph input is an argument, used or not, so that callers need not know which are used.
     */
    for (int i = 0; i < g->input_count; i++) {
        if (g->values[g->inputs[i]].dtype == DTYPE_BYTES) {
            s = status_fail(STATUS_UNSUPPORTED,
                            "input \"%s\": devices do not support string tensors",
                            g->values[g->inputs[i]].name);
            goto done;
        }
        emit_graph_input(&e, i);
    }
    for (int32_t i = 0; i < g->node_count; i++) {
        const graph_node *n = &g->nodes[i];
        s = emit_node(&e, n);
        if (s) {
            s = status_prefix(s, "node \"%s\" (%s)", n->name, graph_op_title(n->op));
            goto done;
        }
    }
    for (int i = 0; i < g->output_count; i++)
        emit_value(&e, g->outputs[i]); /* an output may be a folded constant */
    write_module(&e);
    program.text = e.body;
    program.bytes = e.body_bytes;
    e.body = NULL;
    *out = program;
done:
    free(e.values);
    free(e.transposed_weights);
    free(e.divisors);
    free(e.body);
    if (s)
        stablehlo_program_dispose(&program);
    return s;
}
