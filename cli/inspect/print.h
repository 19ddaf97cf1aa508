#ifndef CLI_INSPECT_PRINT_H
#define CLI_INSPECT_PRINT_H

#include "models/model.h"

/* A loaded model on standard output, for people. */
void inspect_print_text(const model *m);
/* The same and more as one JSON object. `programs`: of inspect_programs(), or NULL. */
void inspect_print_json(const model *m, const char *programs);

#endif
