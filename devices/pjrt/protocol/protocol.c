#include "devices/pjrt/protocol/protocol.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 3

status pjrt_send(int socket, const pjrt_message *m, const int *fds, int fd_count)
{
    union {
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec data = {(void *)m, sizeof *m};
    struct msghdr packet = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd_count > 0) {
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&packet);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, (size_t)fd_count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &packet, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != (ssize_t)sizeof *m)
        return status_fail(STATUS_UNAVAILABLE, "the device host cannot be reached: %m");
    return STATUS_OK;
}

/* Keeps up to FDS_MAX, closes others. */
static int collect_fds(struct cmsghdr *head, int fds[FDS_MAX], int before)
{
    int all = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int)), count = 0;
    for (int i = 0; i < all; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(head) + (size_t)i * sizeof fd, sizeof fd);
        if (before + count < FDS_MAX)
            fds[before + count++] = fd;
        else
            close(fd);
    }
    return count;
}

status pjrt_receive(int socket, pjrt_message *m, int fds[FDS_MAX])
{
    union {
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec data = {m, sizeof *m};
    struct msghdr packet = {.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    for (int i = 0; i < FDS_MAX; i++)
        fds[i] = -1;
    int count = 0;
    ssize_t received;
    do
        received = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&packet); received >= 0 && head != NULL;
         head = CMSG_NXTHDR(&packet, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
            count += collect_fds(head, fds, count);
    if (received != (ssize_t)sizeof *m || packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        for (int i = 0; i < FDS_MAX; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        return status_fail(STATUS_UNAVAILABLE, "the control socket was closed");
    }
    m->text[sizeof m->text - 1] = 0;
    m->device_kind[sizeof m->device_kind - 1] = 0;
    m->platform[sizeof m->platform - 1] = 0;
    m->version[sizeof m->version - 1] = 0;
    m->fingerprint[sizeof m->fingerprint - 1] = 0;
    return STATUS_OK;
}

pjrt_tensor_shape pjrt_tensor_shape_of(const tensor *t)
{
    pjrt_tensor_shape shape = {.dtype = (int32_t)t->dtype, .rank = t->rank};
    memcpy(shape.dims, t->dims, sizeof shape.dims);
    return shape;
}

void pjrt_tensor_from_shape(const pjrt_tensor_shape *shape, void *data, tensor *out)
{
    assert(shape->rank >= 0 && shape->rank <= TENSOR_RANK_MAX &&
           (unsigned)shape->dtype < DTYPE_COUNT);
    *out = (tensor){.dtype = (dtype)shape->dtype, .rank = shape->rank, .data = data};
    memcpy(out->dims, shape->dims, sizeof out->dims);
}

status pjrt_memory_create(const char *name, size_t bytes, int *fd)
{
    int made = memfd_create(name, MFD_CLOEXEC);
    if (made < 0)
        return status_fail(STATUS_OUT_OF_MEMORY, "memfd_create: %m");
    if (ftruncate(made, (off_t)bytes) != 0) {
        close(made);
        return status_fail(STATUS_OUT_OF_MEMORY, "a shared memory file of %zu bytes: %m", bytes);
    }
    *fd = made;
    return STATUS_OK;
}

status pjrt_memory_create_from(const char *name, const void *data, size_t bytes, int *fd)
{
    int made = -1;
    status s = pjrt_memory_create(name, 0, &made);
    if (s)
        return s;
    for (size_t done = 0; done < bytes;) {
        ssize_t written = write(made, (const char *)data + done, bytes - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            close(made);
            return status_fail(STATUS_OUT_OF_MEMORY, "writing %zu bytes of shared memory: %m",
                               bytes);
        }
        done += (size_t)written;
    }
    *fd = made;
    return STATUS_OK;
}

status pjrt_memory_map(int fd, size_t bytes, bool is_writable, void **out)
{
    void *p = mmap(NULL, bytes ? bytes : 1, is_writable ? PROT_READ | PROT_WRITE : PROT_READ,
                   MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return status_fail(STATUS_OUT_OF_MEMORY, "mapping %zu bytes of shared memory: %m", bytes);
    *out = p;
    return STATUS_OK;
}

void pjrt_memory_unmap(void *data, size_t bytes)
{
    munmap(data, bytes ? bytes : 1);
}
