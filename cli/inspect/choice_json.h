#ifndef CLI_INSPECT_CHOICE_JSON_H
#define CLI_INSPECT_CHOICE_JSON_H

#include "base/text/text_buffer.h"
#include "devices/pjrt/choice.h"

/* Adds `"candidate":...,"reason":...,"tried":[...]`: what a bucket got, why, and what else was
 * tried, with what the accuracy check found of int8 that would have been chosen. */
void choice_json_put(const pjrt_choice *c, const char *candidate, text_buffer *out);

#endif
