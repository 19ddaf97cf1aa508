/* libfail_calls.so, for LD_PRELOAD: makes one call of a kind fail.
 *
 * Calls are counted by kind in the file that FAIL_CALLS_FILE names, which is mapped and shared with
 * the test: it reads the counts and writes which call is to fail, before the start or while the
 * program runs. The file has, for each kind in the order of `enum kind`, a `struct calls`. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { MEMORY, MAP, READ, WRITE, OPEN, SYNC, THREAD, ACCEPT, POLL, KIND_COUNT };

struct calls {
    _Atomic uint64_t count;
    _Atomic uint64_t fail_at;    /* the count at which a call fails; 0: none */
    _Atomic uint64_t fail_calls; /* from there on, how many; 0 is 1 */
    _Atomic uint64_t failed;
};

static struct calls nothing[KIND_COUNT]; /* until the file is mapped */
static struct calls *all = nothing;

static bool fails(enum kind kind, int error)
{
    struct calls *c = &all[kind];
    uint64_t count = atomic_fetch_add(&c->count, 1) + 1;
    uint64_t first = atomic_load(&c->fail_at), calls = atomic_load(&c->fail_calls);
    if (first == 0 || count < first || count >= first + (calls ? calls : 1))
        return false;
    atomic_fetch_add(&c->failed, 1);
    errno = error;
    return true;
}

/* Only what can fail: the counter of an eventfd, for one, always takes what is written. */
static bool is_file_or_socket(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && (S_ISSOCK(s.st_mode) || S_ISREG(s.st_mode));
}

/* dlsym may allocate: until it has found calloc, memory comes from here. */
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

/* Defines `next`, the function behind ours. */
#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (next == NULL)                                                                              \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

void *malloc(size_t bytes)
{
    NEXT(malloc);
    return fails(MEMORY, ENOMEM) ? NULL : next(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    static __typeof__(&calloc) next;
    static bool is_finding;
    if (next == NULL) {
        if (is_finding)
            return first_memory(count * bytes); /* zero already */
        is_finding = true;
        *(void **)&next = dlsym(RTLD_NEXT, "calloc");
    }
    return fails(MEMORY, ENOMEM) ? NULL : next(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    NEXT(realloc);
    return fails(MEMORY, ENOMEM) ? NULL : next(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    NEXT(aligned_alloc);
    return fails(MEMORY, ENOMEM) ? NULL : next(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    NEXT(posix_memalign);
    return fails(MEMORY, ENOMEM) ? ENOMEM : next(out, alignment, bytes);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap);
    return fails(MAP, ENOMEM) ? MAP_FAILED : next(address, bytes, protection, flags, fd, offset);
}

ssize_t read(int fd, void *to, size_t bytes)
{
    NEXT(read);
    return is_file_or_socket(fd) && fails(READ, EIO) ? -1 : next(fd, to, bytes);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    NEXT(pread);
    return is_file_or_socket(fd) && fails(READ, EIO) ? -1 : next(fd, to, bytes, offset);
}

ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
    NEXT(recv);
    return fails(READ, ECONNRESET) ? -1 : next(fd, to, bytes, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    NEXT(recvmsg);
    return fails(READ, ECONNRESET) ? -1 : next(fd, message, flags);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    NEXT(write);
    return is_file_or_socket(fd) && fails(WRITE, EIO) ? -1 : next(fd, from, bytes);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    NEXT(pwrite);
    return fails(WRITE, ENOSPC) ? -1 : next(fd, from, bytes, offset);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    NEXT(writev);
    return fails(WRITE, EPIPE) ? -1 : next(fd, pieces, count);
}

ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
    NEXT(send);
    return fails(WRITE, EPIPE) ? -1 : next(fd, from, bytes, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    NEXT(sendmsg);
    return fails(WRITE, EPIPE) ? -1 : next(fd, message, flags);
}

#define MODE_OF(flags, mode)                                                                       \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode = va_arg(more, mode_t);                                                               \
        va_end(more);                                                                              \
    }

int open(const char *path, int flags, ...)
{
    NEXT(open);
    MODE_OF(flags, mode)
    return fails(OPEN, EMFILE) ? -1 : next(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    NEXT(openat);
    MODE_OF(flags, mode)
    return fails(OPEN, EMFILE) ? -1 : next(folder, path, flags, mode);
}

int fsync(int fd)
{
    NEXT(fsync);
    return fails(SYNC, EIO) ? -1 : next(fd);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    return fails(SYNC, EIO) ? -1 : next(fd);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument)
{
    NEXT(pthread_create);
    return fails(THREAD, EAGAIN) ? EAGAIN : next(thread, attributes, body, argument);
}

int accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    NEXT(accept4);
    return fails(ACCEPT, EMFILE) ? -1 : next(fd, address, bytes, flags);
}

int accept(int fd, struct sockaddr *address, socklen_t *bytes)
{
    NEXT(accept);
    return fails(ACCEPT, EMFILE) ? -1 : next(fd, address, bytes);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    NEXT(epoll_ctl);
    return fails(POLL, ENOSPC) ? -1 : next(epoll, operation, fd, event);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAIL_CALLS_FILE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    unsetenv("LD_PRELOAD"); /* programs that this one starts do not fail */
    void *mapped = mmap(NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        _exit(97);
    all = mapped;
}
