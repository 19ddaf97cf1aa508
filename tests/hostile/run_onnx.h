#ifndef TESTS_HOSTILE_RUN_ONNX_H
#define TESTS_HOSTILE_RUN_ONNX_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* An ONNX model of a stranger, as far as it goes: import, shapes and folding, specialised to a
 * batch of 2 and 5 tokens, a plan of the CPU, and that plan run once. Bounded in memory and
 * operations. */
status run_onnx(const uint8_t *data, size_t bytes) MUST_CHECK;

#endif
