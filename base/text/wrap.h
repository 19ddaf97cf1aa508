#ifndef BASE_TEXT_WRAP_H
#define BASE_TEXT_WRAP_H

#include <stdio.h>

/* Prints `text` in lines of at most 96 columns, broken at spaces, and ends the last one. The first
 * line begins at column `indent`, where the caller's output stands; later lines are indented by as
 * much. A newline in `text` starts a new line. */
void wrap_print(FILE *out, const char *text, int indent);

#endif
