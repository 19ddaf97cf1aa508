#ifndef TESTS_CONFORMANCE_TENSOR_FILE_H
#define TESTS_CONFORMANCE_TENSOR_FILE_H

#include "base/tensor.h"

/* Reads one serialised TensorProto, as the onnx package stores test inputs and outputs. Data lives
 * in `memory`. STATUS_UNSUPPORTED: an element type that Penstock does not have. */
status tensor_file_read(const char *path, arena *memory, tensor *out) MUST_CHECK;

#endif
