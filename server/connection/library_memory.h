#ifndef SERVER_CONNECTION_LIBRARY_MEMORY_H
#define SERVER_CONNECTION_LIBRARY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* libh2o ends the process when malloc() gives it nothing. So the program's malloc(), calloc() and
 * realloc() are ours: they call the allocator's, and where that fails for libh2o, a hook makes room
 * and the call is tried again. All other callers get NULL: they know what to refuse. */

/* On the calling thread; `bytes` were wanted. False: there is nothing more to be done, and the
 * library ends the process. */
typedef bool library_memory_hook(size_t bytes);

/* Once, before any loop runs; asserts that the library calls ours. */
void library_memory_install(library_memory_hook *on_shortage);

#endif
