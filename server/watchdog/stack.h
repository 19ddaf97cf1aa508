#ifndef SERVER_WATCHDOG_STACK_H
#define SERVER_WATCHDOG_STACK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* What another thread is doing: a signal makes it write down its own call stack. */

/* Once, before stack_describe(): takes the signal SIGRTMIN + 2 for the process. */
void stack_install(void);

/* The innermost calls of `thread`, which must exist: "read+0x1c < flush+0x40 < penstock+0x7a10".
 * Functions that are not exported are offsets into their file, for addr2line. False: the thread
 * did not answer within a fifth of a second. One thread calls this. */
bool stack_describe(pthread_t thread, char *text, size_t bytes);

#endif
