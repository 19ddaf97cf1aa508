#include "base/io/file_reader.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/large_memory.h"
#include "base/log.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECES_IN_FLIGHT 32
#define RING_BYTES_MIN ((size_t)1 << 20) /* below, a ring takes longer to make than it saves */

static pthread_once_t choose_once = PTHREAD_ONCE_INIT;
static file_reader_way chosen_way;

/* Creates a ring and checks that it supports IORING_OP_READ (kernel 5.6). Returns 0 or a negative
 * errno. */
static int open_ring(struct io_uring *ring)
{
    int error = io_uring_queue_init(PIECES_IN_FLIGHT, ring, 0);
    if (error < 0)
        return error;
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    bool can_read = probe != NULL && io_uring_opcode_supported(probe, IORING_OP_READ);
    io_uring_free_probe(probe);
    if (!can_read) {
        io_uring_queue_exit(ring);
        return -EOPNOTSUPP;
    }
    return 0;
}

static void choose(void)
{
    const char *wish = getenv("PENSTOCK_IO");
    if (wish != NULL && strcmp(wish, "pread") == 0) {
        chosen_way = FILE_READER_PREAD;
        log_info("base", "files are read through pread (PENSTOCK_IO)");
        return;
    }
    struct io_uring ring;
    int error = open_ring(&ring);
    if (error < 0) {
        chosen_way = FILE_READER_PREAD;
        log_info("base", "files are read through pread (io_uring: %s)", strerror(-error));
        return;
    }
    io_uring_queue_exit(&ring);
    chosen_way = FILE_READER_IO_URING;
    log_debug("base", "files are read through io_uring");
}

file_reader_way file_reader_chosen_way(void)
{
    pthread_once(&choose_once, choose);
    return chosen_way;
}

static status fail_short(const file_range *range, size_t done)
{
    return status_fail(STATUS_CORRUPT,
                       "the file ends at byte %llu, inside a range that ends at %llu",
                       (unsigned long long)(range->offset + done),
                       (unsigned long long)(range->offset + range->bytes));
}

static status read_range_by_pread(const file_range *range)
{
    for (size_t done = 0; done < range->bytes;) {
        ssize_t n = pread(range->descriptor, (char *)range->data + done, range->bytes - done,
                          (off_t)(range->offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return status_fail(STATUS_IO, "pread: %s", strerror(errno));
        if (n == 0)
            return fail_short(range, done);
        done += (size_t)n;
    }
    return STATUS_OK;
}

/* A part of a range that is being read. After a short read the rest is submitted again. */
typedef struct piece {
    const file_range *range;
    size_t start, bytes; /* within the range; `start` advances */
} piece;

typedef struct ring_reader {
    struct io_uring ring;
    const file_range *ranges;
    size_t range_count;
    size_t range, start; /* where the next piece begins */
    piece pieces[PIECES_IN_FLIGHT];
    piece *idle[PIECES_IN_FLIGHT];
    size_t idle_count;
} ring_reader;

static void send_piece(ring_reader *r, piece *p)
{
    /* There are as many queue entries as pieces, so one is always free. */
    struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);
    assert(sqe != NULL);
    io_uring_prep_read(sqe, p->range->descriptor, (char *)p->range->data + p->start,
                       (unsigned)p->bytes, p->range->offset + p->start);
    io_uring_sqe_set_data(sqe, p);
}

static void send_more(ring_reader *r)
{
    while (r->idle_count > 0 && r->range < r->range_count) {
        const file_range *range = &r->ranges[r->range];
        size_t left = range->bytes - r->start;
        if (left == 0) {
            r->range++;
            r->start = 0;
            continue;
        }
        piece *p = r->idle[--r->idle_count];
        *p = (piece){range, r->start, left < PIECE_BYTES ? left : PIECE_BYTES};
        r->start += p->bytes;
        send_piece(r, p);
    }
}

static status take_completion(ring_reader *r, piece *p, int result)
{
    if (result == -EINTR || result == -EAGAIN) {
        send_piece(r, p);
        return STATUS_OK;
    }
    if (result <= 0 || (size_t)result == p->bytes)
        r->idle[r->idle_count++] = p;
    if (result < 0)
        return status_fail(STATUS_IO, "io_uring read: %s", strerror(-result));
    if (result == 0)
        return fail_short(p->range, p->start);
    if ((size_t)result < p->bytes) {
        p->start += (size_t)result;
        p->bytes -= (size_t)result;
        send_piece(r, p);
    }
    return STATUS_OK;
}

static status read_by_ring(ring_reader *r)
{
    status s = STATUS_OK;
    for (size_t i = 0; i < PIECES_IN_FLIGHT; i++)
        r->idle[r->idle_count++] = &r->pieces[i];
    send_more(r);
    /* After a failure, too, wait for the pieces in flight: the kernel writes to their memory. */
    while (r->idle_count < PIECES_IN_FLIGHT) {
        int error = io_uring_submit_and_wait(&r->ring, 1);
        if (error < 0 && error != -EINTR && error != -EAGAIN && error != -EBUSY) {
            log_error("base", "io_uring_submit_and_wait: %s", strerror(-error));
            abort(); /* the kernel may still write to the memory */
        }
        struct io_uring_cqe *cqe;
        while (io_uring_peek_cqe(&r->ring, &cqe) == 0) {
            piece *p = io_uring_cqe_get_data(cqe);
            int result = cqe->res;
            io_uring_cqe_seen(&r->ring, cqe);
            status of_piece = take_completion(r, p, result);
            if (s == STATUS_OK)
                s = of_piece;
        }
        if (s == STATUS_OK)
            send_more(r);
    }
    return s;
}

status file_reader_read_by(file_reader_way way, const file_range *ranges, size_t range_count)
{
    if (way == FILE_READER_IO_URING) {
        ring_reader r = {.ranges = ranges, .range_count = range_count};
        /* The limit of locked memory may allow the first ring and no other. */
        if (open_ring(&r.ring) == 0) {
            status s = read_by_ring(&r);
            io_uring_queue_exit(&r.ring);
            return s;
        }
    }
    for (size_t i = 0; i < range_count; i++) {
        status s = read_range_by_pread(&ranges[i]);
        if (s)
            return s;
    }
    return STATUS_OK;
}

status file_reader_read(const file_range *ranges, size_t range_count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < range_count && bytes < RING_BYTES_MIN; i++)
        bytes += ranges[i].bytes;
    bool is_small = bytes < RING_BYTES_MIN;
    return file_reader_read_by(is_small ? FILE_READER_PREAD : file_reader_chosen_way(), ranges,
                               range_count);
}

status file_reader_open(const char *path, int *descriptor, uint64_t *bytes)
{
    /* O_NONBLOCK: opening a FIFO by mistake must not block; regular files ignore it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return status_fail(errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO,
                           "%s: %s", path, strerror(errno));
    struct stat about;
    if (fstat(fd, &about) != 0) {
        status s = status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
        close(fd);
        return s;
    }
    if (!S_ISREG(about.st_mode)) {
        close(fd);
        return status_fail(STATUS_IO, "%s: not a regular file", path);
    }
    *descriptor = fd;
    *bytes = (uint64_t)about.st_size;
    return STATUS_OK;
}

status file_reader_read_whole(const char *path, size_t bytes_max, void **data, size_t *bytes)
{
    int descriptor = -1;
    uint64_t file_bytes = 0;
    unsigned char *memory = NULL;
    status s = file_reader_open(path, &descriptor, &file_bytes);
    if (s)
        return s;
    if (file_bytes > bytes_max) {
        s = status_fail(STATUS_TOO_LARGE, "%s: %llu bytes; the limit is %zu", path,
                        (unsigned long long)file_bytes, bytes_max);
        goto fail;
    }
    size_t room = ((size_t)file_bytes + 64) & ~(size_t)63;
    memory = large_memory_allocate(room);
    if (memory == NULL) {
        s = status_fail(STATUS_OUT_OF_MEMORY, "%s: no memory for %zu bytes", path, room);
        goto fail;
    }
    file_range range = {descriptor, 0, (size_t)file_bytes, memory};
    s = file_reader_read(&range, 1);
    if (s) {
        s = status_prefix(s, "%s", path);
        goto fail;
    }
    memory[file_bytes] = 0;
    close(descriptor);
    *data = memory;
    *bytes = (size_t)file_bytes;
    return STATUS_OK;
fail:
    free(memory);
    close(descriptor);
    return s;
}
