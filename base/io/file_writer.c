#include "base/io/file_writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file_reader.h"

#define PIECE_BYTES ((size_t)1 << 20)

/* One write at a time through the ring: files written at run time are small and rare, and a short
 * write is simple to continue. */
static ssize_t write_by_ring(struct io_uring *ring, int fd, const void *data, size_t bytes,
                             size_t offset)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    assert(sqe != NULL);
    io_uring_prep_write(sqe, fd, data, (unsigned)bytes, offset);
    int submitted;
    do
        submitted = io_uring_submit_and_wait(ring, 1);
    while (submitted == -EINTR);
    struct io_uring_cqe *cqe;
    int waited;
    do
        waited = io_uring_wait_cqe(ring, &cqe);
    while (waited == -EINTR);
    if (waited < 0) {
        errno = -waited;
        return -1;
    }
    int result = cqe->res;
    io_uring_cqe_seen(ring, cqe);
    if (result < 0) {
        errno = -result;
        return -1;
    }
    return result;
}

static status write_part(struct io_uring *ring, int fd, const file_part *part, size_t *offset)
{
    for (size_t done = 0; done < part->bytes;) {
        size_t left = part->bytes - done, bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
        const char *from = (const char *)part->data + done;
        ssize_t n = ring ? write_by_ring(ring, fd, from, bytes, *offset)
                         : pwrite(fd, from, bytes, (off_t)*offset);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return status_fail(STATUS_IO, "writing: %s", n < 0 ? strerror(errno) : "no progress");
        done += (size_t)n;
        *offset += (size_t)n;
    }
    return STATUS_OK;
}

status file_writer_write(const char *path, const file_part *parts, int part_count)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    struct io_uring ring;
    bool has_ring =
        file_reader_chosen_way() == FILE_READER_IO_URING && io_uring_queue_init(4, &ring, 0) == 0;
    size_t offset = 0;
    status s = STATUS_OK;
    for (int i = 0; s == STATUS_OK && i < part_count; i++)
        s = write_part(has_ring ? &ring : NULL, fd, &parts[i], &offset);
    if (has_ring)
        io_uring_queue_exit(&ring);
    if (s == STATUS_OK && fsync(fd) != 0)
        s = status_fail(STATUS_IO, "fsync: %s", strerror(errno));
    if (close(fd) != 0 && s == STATUS_OK)
        s = status_fail(STATUS_IO, "close: %s", strerror(errno));
    return s ? status_prefix(s, "%s", path) : STATUS_OK;
}

status file_writer_replace(const char *path, const file_part *parts, int part_count)
{
    char temporary[4096 + 32];
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    status s = file_writer_write(temporary, parts, part_count);
    if (!s && rename(temporary, path) != 0)
        s = status_fail(STATUS_IO, "%s: %s", path, strerror(errno));
    if (s)
        unlink(temporary);
    return s;
}
