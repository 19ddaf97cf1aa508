#ifndef TESTS_UNIT_GRAPH_ENCODER_CHECK_H
#define TESTS_UNIT_GRAPH_ENCODER_CHECK_H

#include "graph/encoder/encoder.h"

/* Compares the reference with what the graph computes, at several sizes, on random ids
 * and ragged masks (zeros at the end, in front and in the middle). Criterion fails where they
 * differ by more than `tolerance` times the largest number. */
void check_same(const graph *g, const encoder *e, const char *name, double tolerance);

/* Recognises `g` (after folding its constants in place) and compares as above. The caller disposes
 * of
 * `*out`; NULL: not wanted. */
void check_recognised(graph *g, const char *name, double tolerance, encoder *out);

/* The same for a batch that has a row whose mask is all zero. */
void check_empty_row(graph *g, const char *name, double tolerance);

/* Expects STATUS_UNSUPPORTED with these words in the message. */
void check_rejected(graph *g, const char *words);

/* A file's graph: a folder is a Hugging Face one. Fails the test when it cannot be imported. */
graph *check_import(const char *path);

#endif
