#ifndef TESTS_SUPPORT_TEMPORARY_H
#define TESTS_SUPPORT_TEMPORARY_H

#include <stddef.h>

/* Files of one test, in a folder of its own below /tmp. What fails here ends the test. */
#define TEMPORARY_FOLDER_BYTES 64

void temporary_make(char folder[TEMPORARY_FOLDER_BYTES]);
/* With all that is in it. */
void temporary_remove(const char *folder);
/* Writes `bytes` of `data` to folder/name; makes the folders on the way to it. */
void temporary_write(const char *folder, const char *name, const void *data, size_t bytes);
/* The same with a text. */
void temporary_write_text(const char *folder, const char *name, const char *text);

#endif
