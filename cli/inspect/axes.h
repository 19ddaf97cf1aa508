#ifndef CLI_INSPECT_AXES_H
#define CLI_INSPECT_AXES_H

#include "base/text/text_buffer.h"
#include "models/model.h"

/* What each size is that the file leaves open, and from what that is known. */

/* For people, on standard output; nothing where the file leaves none open. */
void inspect_axes_print(const model *m);
/* Appends ",\"axes\":[...]". */
void inspect_axes_json(const model *m, text_buffer *out);

#endif
