#ifndef TESTS_UNIT_DEVICES_CPU_CASE_H
#define TESTS_UNIT_DEVICES_CPU_CASE_H

#include "base/cancel.h"
#include "graph/graph.h"

/* One node with its tensors, evaluated by itself: inferred by graph_infer_node, computed by
 * cpu_evaluate_node. */
#define CPU_CASE_OPERANDS 9

typedef struct cpu_case {
    arena memory;
    graph_attribute attributes[8];
    int attribute_count;
    tensor inputs[CPU_CASE_OPERANDS];
    bool is_absent[CPU_CASE_OPERANDS];
    int input_count;
    tensor outputs[CPU_CASE_OPERANDS];
    const cancel_token *cancel; /* or NULL */
} cpu_case;

/* Adds an input of `count` numbers converted to `type`; `dims` ends with -1. */
tensor *cpu_case_input(cpu_case *c, dtype type, const int64_t *dims, const double *numbers);
/* The same with reproducible numbers between -2 and 2. */
tensor *cpu_case_random(cpu_case *c, dtype type, const int64_t *dims);
#define DIMS(...) ((const int64_t[]){__VA_ARGS__ __VA_OPT__(, ) - 1})

/* Runs; asserts that inference succeeds. */
status cpu_case_run(cpu_case *c, graph_op op, int output_count);
/* Runs again as a plan does: with the kernels of this machine, inputs of the bits `constants` known
 * when it is prepared and packed in `weights`. Takes the place of c->outputs. */
struct cpu_weights;
status cpu_case_run_packed(cpu_case *c, graph_op op, int output_count, unsigned constants,
                           struct cpu_weights *weights);
void cpu_case_dispose(cpu_case *c);

/* Element i of a tensor as a number. */
double cpu_case_get(const tensor *t, int64_t i);
/* Fails the test, naming index `at`, unless both are within `tolerance`. */
void cpu_case_expect_near(double actual, double expected, double tolerance, int64_t at);

#endif
