#ifndef TESTS_UNIT_DEVICES_CPU_FUSED_NET_H
#define TESTS_UNIT_DEVICES_CPU_FUSED_NET_H

#include <criterion/criterion.h>

#include "devices/cpu/plan/plan.h"

/* Small networks for tests of fused layers, planned at several kernel levels, against the same
 * nodes computed one by one. */

extern uint32_t seed; /* of the random numbers */

/* A graph under construction. */
typedef struct net {
    graph *g;
    dtype activations; /* U8 or I8 */
    int64_t batch;
} net;

int64_t random_below(int64_t n);

float random_float(void);

graph_value_index constant(net *n, dtype type, int rank, const int64_t *dims, double scale);

graph_value_index number(net *n, dtype type, double x);

graph_value_index node(net *n, graph_op op, int count, const graph_value_index *in,
                       int attribute_count, const graph_attribute *attributes);

#define NODE(n, op, ...)                                                                           \
    node(n, op, (int)(sizeof((graph_value_index[]){__VA_ARGS__}) / sizeof(graph_value_index)),     \
         (graph_value_index[]){__VA_ARGS__}, 0, NULL)

/* QuantizeLinear then DequantizeLinear. */
graph_value_index requantise(net *n, graph_value_index x, double scale, int zero);

/* DequantizeLinear of random i8 weights, a scale for each output channel. */
graph_value_index weights(net *n, int rank, const int64_t *dims, int axis);

/* A convolution of random geometry; quantised or in floats. */
graph_value_index convolve(net *n, graph_value_index x, int64_t channels, int64_t out,
                           int64_t groups, bool is_quantised);

/* Outputs at most `step` apart; more than a rounding (`noise`) apart in at most a hundredth of
 * them. */
cpu_plan_facts check_within(net *n, graph_value_index out, double step, double noise);
cpu_plan_facts check(net *n, graph_value_index out, double step); /* noise of floats */

net open_net(int turn, int rank, const int64_t *dims, graph_value_index *input);

#endif
