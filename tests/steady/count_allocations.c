/* libcount_allocations.so, for LD_PRELOAD: tells what each thread of a program has allocated.
 *
 * The figures are jemalloc's own: each thread's thread.allocated counter, in bytes. A thread of
 * this library serves them on the Unix socket that COUNT_ALLOCATIONS_SOCKET names, one command a
 * connection:
 *
 *     counts    a line "TID NAME BYTES" for each thread that lives
 *     trace     from now on, every allocation's call stack is kept
 *     stacks    a line "COUNT BYTES NAME MODULE+OFFSET..." for each stack since, innermost frame
 * first
 *
 * Stacks cost time and are taken only to say where allocations come from. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define THREADS_MAX 256
#define STACKS_MAX 4096
#define FRAMES_MAX 24

typedef struct counted_thread {
    _Atomic(uint64_t *) allocated; /* jemalloc's counter; NULL when the thread is gone */
    pid_t tid;
} counted_thread;

typedef struct call_stack {
    void *frames[FRAMES_MAX];
    int frame_count;
    char name[16];
    int64_t count, bytes;
} call_stack;

static counted_thread threads[THREADS_MAX];
static _Atomic int thread_count;
static __thread counted_thread *self;
static __thread bool is_inside; /* this thread is in this library: its allocations are not kept */

static _Atomic bool is_tracing;
static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;
static call_stack stacks[STACKS_MAX];
static int stack_count;

static int (*next_mallctl)(const char *, void *, size_t *, void *, size_t);
static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static int (*next_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static void find_next(void)
{
    static bool is_finding;
    if (next_malloc != NULL || is_finding)
        return;
    is_finding = true;
    *(void **)&next_mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&next_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&next_pthread_create = dlsym(RTLD_NEXT, "pthread_create");
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
}

/* dlsym may allocate: until it has found malloc, memory comes from here. */
static void *first_memory(size_t bytes)
{
    static _Alignas(16) char memory[65536];
    static size_t used;
    size_t begin = used;
    used += (bytes + 15) & ~(size_t)15;
    if (used > sizeof memory)
        abort();
    return memory + begin;
}

static void keep_stack(size_t bytes)
{
    if (is_inside || !atomic_load_explicit(&is_tracing, memory_order_relaxed))
        return;
    is_inside = true;
    void *frames[FRAMES_MAX + 2];
    int count = backtrace(frames, FRAMES_MAX + 2) - 2; /* without this function and its caller */
    pthread_mutex_lock(&stacks_lock);
    int i = 0;
    for (; i < stack_count; i++)
        if (stacks[i].frame_count == count &&
            memcmp(stacks[i].frames, frames + 2, (size_t)count * sizeof *frames) == 0)
            break;
    if (i == stack_count && count > 0 && stack_count < STACKS_MAX) {
        call_stack *s = &stacks[stack_count++];
        s->frame_count = count;
        memcpy(s->frames, frames + 2, (size_t)count * sizeof *frames);
        pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    }
    if (i < stack_count) {
        stacks[i].count++;
        stacks[i].bytes += (int64_t)bytes;
    }
    pthread_mutex_unlock(&stacks_lock);
    is_inside = false;
}

void *malloc(size_t bytes)
{
    find_next();
    if (next_malloc == NULL)
        return first_memory(bytes);
    keep_stack(bytes);
    return next_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    find_next();
    if (next_malloc == NULL)
        return first_memory(count * bytes); /* zero already */
    keep_stack(count * bytes);
    return next_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    find_next();
    keep_stack(bytes);
    return next_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    find_next();
    keep_stack(bytes);
    return next_aligned_alloc(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    find_next();
    keep_stack(bytes);
    return next_posix_memalign(out, alignment, bytes);
}

static void enter_thread(void)
{
    uint64_t *allocated = NULL;
    size_t size = sizeof allocated;
    int slot = atomic_fetch_add(&thread_count, 1);
    if (slot >= THREADS_MAX || next_mallctl == NULL ||
        next_mallctl("thread.allocatedp", &allocated, &size, NULL, 0) != 0) {
        fprintf(stderr, "count_allocations: no jemalloc, or more than %d threads\n", THREADS_MAX);
        _exit(97);
    }
    self = &threads[slot];
    self->tid = gettid();
    atomic_store(&self->allocated, allocated);
}

typedef struct start {
    void *(*body)(void *);
    void *argument;
} start;

static void leave_thread(void *unused)
{
    (void)unused;
    atomic_store(&self->allocated, NULL);
}

static void *thread_main(void *argument)
{
    start begin = *(start *)argument;
    free(argument);
    enter_thread();
    void *result;
    pthread_cleanup_push(leave_thread, NULL);
    result = begin.body(begin.argument);
    pthread_cleanup_pop(1);
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument)
{
    find_next();
    start *begin = malloc(sizeof *begin);
    if (begin == NULL)
        return -1;
    *begin = (start){body, argument};
    int failure = next_pthread_create(thread, attributes, thread_main, begin);
    if (failure)
        free(begin);
    return failure;
}

static void write_counts(FILE *out)
{
    for (int i = 0; i < atomic_load(&thread_count); i++) {
        uint64_t *allocated = atomic_load(&threads[i].allocated);
        char path[64], name[32] = "?";
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", threads[i].tid);
        FILE *comm = allocated != NULL ? fopen(path, "re") : NULL;
        if (comm != NULL && fgets(name, sizeof name, comm) != NULL)
            name[strcspn(name, "\n")] = 0;
        if (comm != NULL)
            fclose(comm);
        if (allocated != NULL)
            fprintf(out, "%d %s %llu\n", threads[i].tid, name, (unsigned long long)*allocated);
    }
}

static void write_stacks(FILE *out)
{
    pthread_mutex_lock(&stacks_lock);
    for (int i = 0; i < stack_count; i++) {
        fprintf(out, "%lld %lld %s", (long long)stacks[i].count, (long long)stacks[i].bytes,
                stacks[i].name);
        for (int f = 0; f < stacks[i].frame_count; f++) {
            Dl_info info = {0};
            char *at = stacks[i].frames[f];
            bool is_known = dladdr(at, &info) != 0 && info.dli_fname != NULL;
            fprintf(out, " %s+0x%lx", is_known ? info.dli_fname : "?",
                    (unsigned long)(at - (is_known ? (char *)info.dli_fbase : NULL)) - 1);
        }
        fputc('\n', out);
    }
    pthread_mutex_unlock(&stacks_lock);
}

static void *serve(void *argument)
{
    int listener = (int)(intptr_t)argument;
    is_inside = true;
    pthread_setname_np(pthread_self(), "count");
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        FILE *f = connection >= 0 ? fdopen(connection, "r+") : NULL;
        char command[16] = "";
        if (f == NULL)
            continue;
        if (fgets(command, sizeof command, f) != NULL) {
            fseek(f, 0, SEEK_CUR);
            if (strncmp(command, "counts", 6) == 0)
                write_counts(f);
            else if (strncmp(command, "trace", 5) == 0)
                atomic_store(&is_tracing, true);
            else if (strncmp(command, "stacks", 6) == 0)
                write_stacks(f);
        }
        fclose(f);
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("COUNT_ALLOCATIONS_SOCKET");
    void *frames[1];
    find_next();
    if (path == NULL)
        return;
    unsetenv("LD_PRELOAD"); /* programs that this one starts are not counted */
    backtrace(frames, 1);   /* loads what it needs now, not within malloc */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    enter_thread();
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 8) != 0 ||
        next_pthread_create(&thread, NULL, serve, (void *)(intptr_t)listener) != 0) {
        perror("count_allocations");
        _exit(97);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
