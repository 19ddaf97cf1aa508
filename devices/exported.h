#ifndef DEVICES_EXPORTED_H
#define DEVICES_EXPORTED_H

#include "devices/device.h"

/* A model that was exported as StableHLO, one program for each bucket, instead of a graph of
 * operators: its graph has inputs, outputs and weights, and no node. Only devices that compile
 * StableHLO run it. Constant; models/loading/program_folder.c makes it. */

typedef struct device_exported_program {
    device_bucket bucket;
    const char *name;          /* of the file, for messages: "program.8x128.mlir" */
    const unsigned char *data; /* StableHLO: text, or MLIR bytecode (a portable artifact) */
    size_t bytes;
} device_exported_program;

/* What an argument of every program is. */
typedef struct device_exported_argument {
    const char *name;
    int input;                /* of the graph, or -1: */
    graph_value_index weight; /* a constant of the graph */
} device_exported_argument;

struct device_exported {
    const device_exported_program *programs;
    int program_count;
    const device_exported_argument *arguments; /* in the programs' order */
    int argument_count;
    const char *custom_calls; /* without a promise of jax.export, "a, b"; NULL: none is known */
};

/* The program of that bucket, or NULL. */
const device_exported_program *device_exported_find(const struct device_exported *exported,
                                                    device_bucket bucket);

/* The version of StableHLO that a portable artifact is written in, as its head says. False: it is
 * text, or does not say. */
bool device_exported_version(const device_exported_program *p, int version[3]);

#endif
