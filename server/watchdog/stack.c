#include "server/watchdog/stack.h"

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

#include "base/clock.h"

#define FRAMES_MAX 48
#define FRAMES_OF_SIGNAL 2 /* the handler, and the kernel's return from it */
#define WAIT_NS 200000000

/* Filled by the thread that is asked, on a signal. */
static struct {
    _Atomic bool is_wanted;
    pthread_t thread;
    void *frames[FRAMES_MAX];
    int count;
    sem_t is_there;
} asked;

static int signal_number(void)
{
    return SIGRTMIN + 2;
}

static _Unwind_Reason_Code on_frame(struct _Unwind_Context *frame, void *context)
{
    (void)context;
    if (asked.count == FRAMES_MAX)
        return _URC_END_OF_STACK;
    asked.frames[asked.count++] = (void *)_Unwind_GetIP(frame);
    return _URC_NO_REASON;
}

/* Async-signal-safe: it unwinds by what is inside the program. backtrace() would load libgcc_s. */
static void on_signal(int number)
{
    int before = errno;
    (void)number;
    if (pthread_equal(asked.thread, pthread_self()) && atomic_exchange(&asked.is_wanted, false)) {
        asked.count = 0;
        _Unwind_Backtrace(on_frame, NULL);
        sem_post(&asked.is_there);
    }
    errno = before;
}

void stack_install(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sem_init(&asked.is_there, 0, 0);
    sigaction(signal_number(), &action, NULL);
}

static bool wait_for_answer(void)
{
    uint64_t end_ns = clock_wall_ns() + WAIT_NS;
    struct timespec end = {.tv_sec = (time_t)(end_ns / 1000000000),
                           .tv_nsec = (long)(end_ns % 1000000000)};
    int code;
    while ((code = sem_timedwait(&asked.is_there, &end)) != 0 && errno == EINTR)
        ;
    /* It answers at this very moment: wait for that, it takes no time. */
    if (code != 0 && !atomic_exchange(&asked.is_wanted, false))
        while ((code = sem_wait(&asked.is_there)) != 0 && errno == EINTR)
            ;
    return code == 0;
}

static int put_frame(char *text, size_t bytes, const void *address)
{
    Dl_info at = {0};
    if (dladdr(address, &at) == 0 || at.dli_fname == NULL)
        return snprintf(text, bytes, "%p", address);
    const char *slash = strrchr(at.dli_fname, '/');
    const char *name = at.dli_sname != NULL ? at.dli_sname : slash ? slash + 1 : at.dli_fname;
    const void *from = at.dli_sname != NULL ? at.dli_saddr : at.dli_fbase;
    return snprintf(text, bytes, "%s+0x%zx", name, (size_t)((uintptr_t)address - (uintptr_t)from));
}

bool stack_describe(pthread_t thread, char *text, size_t bytes)
{
    text[0] = '\0';
    asked.thread = thread;
    atomic_store(&asked.is_wanted, true);
    if (pthread_kill(thread, signal_number()) != 0) {
        atomic_store(&asked.is_wanted, false);
        return false;
    }
    if (!wait_for_answer())
        return false;
    size_t used = 0;
    for (int i = FRAMES_OF_SIGNAL; i < asked.count && used < bytes; i++) {
        const char *separator = i > FRAMES_OF_SIGNAL ? " < " : "";
        used += (size_t)snprintf(text + used, bytes - used, "%s", separator);
        if (used < bytes)
            used += (size_t)put_frame(text + used, bytes - used, asked.frames[i]);
    }
    return true;
}
