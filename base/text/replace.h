#ifndef BASE_TEXT_REPLACE_H
#define BASE_TEXT_REPLACE_H

#include <stddef.h>

/* Replaces each `what`, which is not empty, in the terminated `text` by `with`, in place. What does
 * not fit `capacity` bytes, with the zero byte, is cut off at the end. */
void text_replace(char *text, size_t capacity, const char *what, const char *with);

#endif
